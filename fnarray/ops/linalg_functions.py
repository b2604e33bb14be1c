"""Functions of matrices: exponential, square root, and the Sylvester equation.

Each tangent is linear by one of two primitives that are closed under differentiation: the Frechet
derivative of the exponential, and the solution of ``A X + X B = C``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import to_complex, to_real
from ..core.forms import HOST, KernelRef, Library
from ..core.libraries import library
from ..core.tangents import is_zero
from ..core.trace import bind
from .contract import exact_matmul as matmul
from .convert import stop_gradient
from .kit import calls
from .kit.calls import (
    broadcast_in_dim,
    convert_like,
    div,
    eq,
    full,
    mul,
    neg,
    reduce_max,
    select,
    sub,
)
from .kit.checks import check_same_dtypes
from .kit.matrix import SMALL, by_lapack, check_square, count, cut, join, per_matrix, swap
from .kit.rules import Tangents, instantiate
from .linalg_orthogonal import by_library

__all__: list[str] = []


# ---- exponential ---------------------------------------------------------------------------------

#: Norms up to which Pade's approximants serve without scaling (Higham 2005), by precision.
_UNSCALED = {4: 3.925724783138660, 8: 5.371920351148152}


def _largest(dtype: np.dtype, max_squarings: int) -> float:
    """Return the norm up to which a matrix needs no more squarings than allowed."""
    return _UNSCALED[to_real(dtype).itemsize] * 2.0**max_squarings


def _too_large(a: Any, max_squarings: int) -> bool:
    norm = abs(a).sum(axis=-2).max(initial=0)
    return not norm <= _largest(a.dtype, max_squarings)


def _by_pade(ins: Any, outs: Any, *, max_squarings: int) -> Library:
    (*batch, n, _), dtype = ins[0].shape, ins[0].dtype
    if not ins[0].size:
        return HOST
    statics = n, _largest(dtype, max_squarings), to_real(dtype).itemsize == 4
    name = "expm" if len(ins) == 1 else "expm_frechet"
    size = n * len(ins)  # a derivative is a part of an exponential of twice the order
    return Library(
        KernelRef("exponential", name), (count(tuple(batch)), *statics), size, blas=size > SMALL
    )


def _expm_aval(a: ShapedArray, *, max_squarings: int) -> ShapedArray:
    check_square("expm", a)
    return a


def _expm_eval(a: np.ndarray, *, max_squarings: int) -> np.ndarray:
    linalg = library("scipy.linalg")

    def one(x: np.ndarray) -> tuple[np.ndarray]:
        if _too_large(x, max_squarings):
            raise np.linalg.LinAlgError
        return (linalg.expm(x),)

    return per_matrix(one, (a,), (2,), [(a.shape[-2:], a.dtype)])[0] if a.size else a


def _expm_jvp(primals: Any, tangents: Tangents, **params: Any) -> tuple[Any, Any]:
    (a,) = primals
    return bind(expm_p, a, **params), bind(expm_frechet_p, a, tangents[0], **params)


expm_p = by_library("expm", _expm_aval, _expm_eval, many=False, jvp=_expm_jvp, call=_by_pade)


def expm(a: Any, max_squarings: int) -> Array:
    """Return exponentials of square matrices; NaN where more squarings would be needed."""
    return bind(expm_p, a, max_squarings=max_squarings)


def _same_squares(name: str, *avals: ShapedArray) -> None:
    check_same_dtypes(f"linalg.{name}", avals)
    check_square(name, avals[0])
    if any(a.shape != avals[0].shape for a in avals):
        got = ", ".join(str(a.shape) for a in avals)
        raise ValueError(f"scipy.linalg.{name}: the matrices must have one shape, got {got}.")


def _frechet_aval(a: ShapedArray, e: ShapedArray, *, max_squarings: int) -> ShapedArray:
    _same_squares("expm_frechet", a, e)
    return a


def _frechet_eval(a: np.ndarray, e: np.ndarray, *, max_squarings: int) -> np.ndarray:
    linalg = library("scipy.linalg")

    n = a.shape[-1]

    def one(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray]:
        if _too_large(x, max_squarings) or not np.isfinite(y).all():
            raise np.linalg.LinAlgError
        # The direction is brought to the matrix's size, which its own scaling then serves.
        size = max(abs(y).max(), np.finfo(y.dtype).tiny)
        block = np.block([[x, y / size], [np.zeros_like(x), x]])
        return (linalg.expm(block)[:n, n:] * size,)

    return per_matrix(one, (a, e), (2, 2), [(a.shape[-2:], a.dtype)])[0] if a.size else e


def _block(x: Any, y: Any) -> Any:
    """Return ``[[x, y], [0, x]]``."""
    zero = full(x.aval, 0)
    return join([join([x, y], -1), join([zero, x], -1)], -2)


def _size(x: Any) -> Any:
    """Return each matrix's largest size, or 1, at all its entries: numbers without a slope."""
    last = x.ndim - 2, x.ndim - 1
    size = reduce_max(calls.abs(stop_gradient(x)), last)
    size = convert_like(select(eq(size, 0), 1, size), x)
    return broadcast_in_dim(size, x.shape, tuple(range(x.ndim - 2)))


def _frechet_jvp(primals: Any, tangents: Tangents, **params: Any) -> tuple[Any, Any]:
    """The derivative is of the same kind, of matrices of twice the size (Higham & Relton 2014)."""
    (a, e), (da, de) = primals, tangents
    out = bind(expm_frechet_p, a, e, **params)
    if is_zero(da):
        return out, bind(expm_frechet_p, a, de, **params)
    n, axis = a.shape[-1], a.ndim - 1
    # What is cut out is linear in e and de: a large e would have the block squared more often
    # than a needs, by which entries of size 1 lose digits.
    size = _size(e)
    direction = _block(da, div(instantiate(de), size))
    large = bind(expm_frechet_p, _block(a, div(e, size)), direction, **params)
    return out, mul(cut(cut(large, axis, n, 2 * n), axis - 1, 0, n), size)


def _frechet_transpose(ct: Any, a: Any, e: Any, **params: Any) -> list[Any]:
    return [None, bind(expm_frechet_p, swap(a), ct, **params)]


expm_frechet_p = by_library(
    "expm_frechet",
    _frechet_aval,
    _frechet_eval,
    many=False,
    jvp=_frechet_jvp,
    transpose=_frechet_transpose,
    call=_by_pade,
)


def expm_frechet(a: Any, e: Any, max_squarings: int = 1000) -> Array:
    """Return the derivative of the exponential at ``a`` in the direction ``e``."""
    return bind(expm_frechet_p, a, e, max_squarings=max_squarings)


# ---- Sylvester equation --------------------------------------------------------------------------


def _sylvester_aval(a: ShapedArray, b: ShapedArray, c: ShapedArray) -> ShapedArray:
    check_same_dtypes("linalg.solve_sylvester", (a, b, c))
    batch, m = check_square("solve_sylvester", a)
    _, n = check_square("solve_sylvester", b)
    if b.shape[:-2] != batch or c.shape != (*batch, m, n):
        raise ValueError(
            "scipy.linalg.solve_sylvester takes matrices (m, m), (n, n) and (m, n), got shapes "
            f"{a.shape}, {b.shape} and {c.shape}."
        )
    return c


def _sylvester_eval(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    linalg = library("scipy.linalg")

    def one(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray]:
        return (linalg.solve_sylvester(x, y, z),)

    outs = [(c.shape[-2:], c.dtype)]
    return per_matrix(one, (a, b, c), (2, 2, 2), outs, finite=True)[0] if c.size else c


def _sylvester_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    (a, b, _), (da, db, change) = primals, tangents
    x = bind(sylvester_p, *primals)
    terms = [] if is_zero(da) else [matmul(da, x)]
    terms += [] if is_zero(db) else [matmul(x, db)]
    for term in terms:
        change = neg(term) if is_zero(change) else sub(change, term)
    return x, bind(sylvester_p, a, b, change)


def _sylvester_transpose(ct: Any, a: Any, b: Any, c: Any) -> list[Any]:
    return [None, None, bind(sylvester_p, swap(a), swap(b), ct)]


sylvester_p = by_library(
    "solve_sylvester",
    _sylvester_aval,
    _sylvester_eval,
    many=False,
    jvp=_sylvester_jvp,
    transpose=_sylvester_transpose,
)


def solve_sylvester(a: Any, b: Any, c: Any) -> Array:
    """Solve ``a @ x + x @ b = c`` (Bartels & Stewart 1972)."""
    return bind(sylvester_p, a, b, c)


# ---- square root ---------------------------------------------------------------------------------


def _sqrtm_aval(a: ShapedArray) -> ShapedArray:
    check_square("sqrtm", a)
    return a.update(dtype=to_complex(a.dtype))


def _sqrtm_eval(a: np.ndarray) -> np.ndarray:
    linalg = library("scipy.linalg")

    dtype = to_complex(a.dtype)

    def one(x: np.ndarray) -> tuple[Any]:
        return (linalg.sqrtm(x),)

    outs = [(a.shape[-2:], dtype)]
    return per_matrix(one, (a,), (2,), outs, finite=True)[0] if a.size else a.astype(dtype)


def _sqrtm_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    """``S dS + dS S = dA``."""
    root = bind(sqrtm_p, primals[0])
    return root, bind(sylvester_p, root, root, convert_like(tangents[0], root))


def _sqrtm_call(ins: Any, outs: Any) -> Library:
    return by_lapack("sqrtm", ins[0], ins[0].shape[-1], exact=False)


sqrtm_p = by_library(
    "sqrtm", _sqrtm_aval, _sqrtm_eval, many=False, jvp=_sqrtm_jvp, call=_sqrtm_call
)


def sqrtm(a: Any) -> Array:
    """Return principal square roots of square matrices, complex."""
    return bind(sqrtm_p, a)
