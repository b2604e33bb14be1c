"""Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...core.eager import replayed
from ...numpy._promote import promote_dtypes_inexact
from .. import special

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


@replayed
def logpdf(x: Any, alpha: Any) -> Array:
    """Logarithm of the density at points of the simplex.

    Parameters
    ----------
    x : array_like
        Points, along the first axis: all components, or all but the last.
    alpha : array_like
        Concentrations, a vector.

    Raises
    ------
    ValueError
        For an ``alpha`` that is no vector, or another number of components.
    """
    if np.ndim(alpha) != 1:
        raise ValueError(f"dirichlet.logpdf: alpha must be a vector, got shape {np.shape(alpha)}.")
    n, given = np.shape(alpha)[0], (np.shape(x) or (0,))[0]
    if given not in (n, n - 1):
        raise ValueError(
            f"dirichlet.logpdf: x must have {n} or {n - 1} components along its first axis, as "
            f"alpha has {n}, got shape {np.shape(x)}."
        )
    x, alpha = promote_dtypes_inexact(x, alpha)
    if given == n - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    alpha = alpha.reshape(-1, *(1,) * (x.ndim - 1))
    norm = jnp.sum(special.gammaln(alpha)) - special.gammaln(jnp.sum(alpha))
    # Sums of components are as exact as the components.
    close = jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6 * (1 if x.dtype.itemsize < 8 else 1e-4) * 10
    ok = jnp.logical_and(jnp.all(x > 0, axis=0), close)
    total = jnp.sum(special.xlogy(alpha - 1, jnp.where(x > 0, x, 0.5)), axis=0) - norm
    return jnp.where(ok, total, -np.inf)


@replayed
def pdf(x: Any, alpha: Any) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, alpha))
