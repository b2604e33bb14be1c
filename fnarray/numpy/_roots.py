"""Roots of polynomials, the eigenvalues of companion matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.dtypes import to_complex
from ..core.eager import replayed
from ._linalg_factors import eigvals
from ._patterns import eye
from ._promote import promote_dtypes_inexact
from ._search import where
from ._shape import array_of, atleast_1d, concrete, roll

__all__ = ["roots"]


def _of_companion(p: Array) -> Array:
    """Roots of a polynomial whose highest coefficient is not zero."""
    if p.shape[0] < 2:
        return lax.full((0,), 0, to_complex(p.dtype))
    top = -p[1:] / p[0]
    n = top.shape[0]
    return eigvals(lax.concatenate([top[None], eye(n - 1, n, dtype=p.dtype)], 0))


@replayed
def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """Return the roots of a polynomial.

    Parameters
    ----------
    p : array_like
        Coefficients, the highest power's first.
    strip_zeros : bool
        Whether zeros in front are left out, which needs concrete coefficients. Under `jit` use
        False: the roots that are then too many are NaN, and come last.

    Returns
    -------
    array
        Complex, one for each power.

    Raises
    ------
    ValueError
        For coefficients that are no vector.
    """
    (p,) = promote_dtypes_inexact(atleast_1d(array_of("roots", p)))
    if p.ndim != 1:
        raise ValueError(f"numpy.roots takes a vector of coefficients, got shape {p.shape}.")
    dtype = to_complex(p.dtype)
    if strip_zeros:
        values = concrete(
            "roots", "coefficients", p, "Use strip_zeros=False to leave zeros in front in place."
        )
        kept = np.flatnonzero(values)
        if not kept.size:
            return lax.full((0,), 0, dtype)
        return _of_companion(p[int(kept[0]) :])
    # The zeros in front, turned to the end, are roots at zero; a polynomial of zeros has none.
    if p.shape[0] < 2:
        return lax.full((0,), 0, dtype)
    present = p != 0
    leading = where(present.any(), present.argmax(), p.shape[0] - 1)
    turned = roll(p, -leading)
    found = _of_companion(where(present.any(), turned, eye(1, p.shape[0], dtype=p.dtype)[0]))
    order = (found == 0).astype(int)
    _, found = _stable(order, found)
    places = lax.iota(int, found.shape[0])
    return where(places < found.shape[0] - leading, found, complex(np.nan, np.nan))


def _stable(key: Array, values: Array) -> tuple[Array, Array]:
    places = lax.iota(key.dtype, key.shape[0])
    key, order = lax.sort_key_val(key, places)
    return key, values[order]
