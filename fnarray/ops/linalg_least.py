"""Pseudo-inverses, with derivatives that hold where the rank is constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.forms import Library
from ..core.tangents import is_zero, zero_of
from ..core.trace import bind
from .contract import exact_matmul as matmul
from .kit.calls import add, neg, sub
from .kit.matrix import adjoint, by_lapack, check_matrix
from .kit.rules import Tangents
from .linalg_orthogonal import _svd_eval, by_library

__all__: list[str] = []


def _pinv_aval(a: ShapedArray, rtol: ShapedArray) -> ShapedArray:
    batch, m, n = check_matrix("pinv", a)
    if rtol.shape != batch:
        raise ValueError(
            f"lax.linalg.pinv: there must be one tolerance per matrix, got shapes {a.shape} and "
            f"{rtol.shape}."
        )
    return a.update(shape=(*batch, n, m))


def _pinv_eval(a: np.ndarray, rtol: np.ndarray) -> np.ndarray:
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    s, u, vh = _svd_eval(
        a, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=None
    )
    # A NaN is kept: it is not below any cutoff.
    small = s <= rtol[..., None] * s[..., :1]
    inverse = np.where(small, 0, 1 / np.where(small, 1, s)).astype(a.dtype)
    v = np.swapaxes(vh, -1, -2).conj() * inverse[..., None, :]
    return v @ np.swapaxes(u, -1, -2).conj()


def _pinv_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    """Derivative at constant rank (Golub & Pereyra 1973)."""
    a, rtol = primals
    p = bind(pinv_p, a, rtol)
    da = tangents[0]
    if is_zero(da):
        return p, zero_of(p)
    ph, dah = adjoint(p), adjoint(da)
    # P dA^H (1 - A P)  and  (1 - P A) dA^H P, between products with P and P^H.
    right = matmul(p, matmul(ph, dah))
    left = matmul(dah, matmul(ph, p))
    change = sub(right, matmul(matmul(right, a), p))
    change = add(change, sub(left, matmul(p, matmul(a, left))))
    return p, add(change, neg(matmul(p, matmul(da, p))))


def _pinv_call(ins: Any, outs: Any) -> Library:
    a, _ = ins
    return by_lapack("pinv", a, *a.shape[-2:], exact=False)


pinv_p = by_library("pinv", _pinv_aval, _pinv_eval, many=False, jvp=_pinv_jvp, call=_pinv_call)


def pinv(a: Any, rtol: Any) -> Array:
    """Return Moore-Penrose inverses; singular values up to ``rtol`` of the largest count as 0."""
    return bind(pinv_p, a, rtol)
