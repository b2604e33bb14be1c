"""Linear systems: triangular, general, given by factors, tridiagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import is_complex
from ..core.forms import KernelRef, Library
from ..core.record import known_of
from ..core.tangents import is_zero, zero_of
from ..core.trace import bind
from .contract import exact_matmul as matmul
from .kit.calls import broadcast, conj, expand, mul, neg, reshape, sub
from .kit.canonical import as_array
from .kit.checks import check_same_dtypes
from .kit.declare import kernel_call
from .kit.matrix import (
    MANY,
    blas,
    both_alone,
    check_square,
    count,
    lapack,
    lu_flops,
    native,
    order_of_system,
    parted,
    per_matrix,
    shift,
    stacks,
    swap,
    tril,
    triu,
    with_columns_folded,
)
from .kit.rules import Tangents, add_tangents, all_spread, one_more_axis
from .linalg_factor import lu_p

__all__ = ["triangular_solve", "tridiagonal_solve"]


def _check_system(name: str, a: ShapedArray, b: ShapedArray, left_side: bool = True) -> None:
    check_same_dtypes(f"linalg.{name}", (a, b))
    batch, n = check_square(name, a)
    if b.ndim != a.ndim or b.shape[:-2] != batch or b.shape[-2 if left_side else -1] != n:
        raise ValueError(
            f"lax.linalg.{name}: incompatible shapes, got {a.shape} for the matrix and {b.shape} "
            f"for the other side, which must have {n} {'rows' if left_side else 'columns'} and "
            "the same leading axes."
        )


# ---- triangular systems --------------------------------------------------------------------------


def _applied(a: Any, transpose_a: bool, conjugate_a: bool) -> Any:
    """Return the matrix that the flags of a solve mean."""
    a = swap(a) if transpose_a else a
    return conj(a) if conjugate_a else a


def _triangular_aval(a: ShapedArray, b: ShapedArray, *, left_side: bool, **flags: Any) -> Any:
    _check_system("triangular_solve", a, b, left_side)
    return b


def _trsm(
    dtype: np.dtype,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return what solves one triangular system."""
    trsm = blas("trsm", dtype)
    # A matrix in rows is its transpose in columns, which is what BLAS reads: nothing is copied,
    # the side and the triangle change.
    side, trans = 1 if left_side else 0, 0 if not transpose_a else 2 if conjugate_a else 1
    conjugate, upper = conjugate_a and not transpose_a, not lower

    def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a = np.conj(a) if conjugate else a
        return trsm(1.0, a.T, b.T, side, upper, trans, unit_diagonal).T

    return solve


def _triangular_eval(a: np.ndarray, b: np.ndarray, **params: bool) -> np.ndarray:
    if not b.size:
        return b
    solve, outs = _trsm(a.dtype, **params), [(b.shape[-2:], b.dtype)]
    return per_matrix(lambda x, y: (solve(x, y),), (a, b), (2, 2), outs)[0]


known_of[_triangular_eval] = both_alone(_trsm)


def _triangular_call(ins: Any, outs: Any, **params: Any) -> Library:
    a, b = ins
    n = a.shape[-1]
    k = b.shape[-1] if params["left_side"] else b.shape[-2]
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    statics = (count(a.shape[:-2]), n, k, *(bool(params[name]) for name in names))
    return native("triangular_solve", order_of_system(n, k), statics, n * n * k)


def _triangle(x: Any, lower: bool, unit: bool) -> Any:
    return tril(x, -1 if unit else 0) if lower else triu(x, 1 if unit else 0)


def _triangular_jvp(primals: Any, tangents: Tangents, **params: Any) -> tuple[Any, Any]:
    (a, b), (da, db) = primals, tangents
    x = bind(triangular_solve_p, a, b, **params)
    change = db
    if not is_zero(da):
        da = _triangle(da, params["lower"], params["unit_diagonal"])
        da = _applied(da, params["transpose_a"], params["conjugate_a"])
        product = matmul(da, x) if params["left_side"] else matmul(x, da)
        change = neg(product) if is_zero(db) else sub(db, product)
    return x, bind(triangular_solve_p, a, change, **params)


def _triangular_transpose(ct: Any, a: Any, b: Any, **params: Any) -> list[Any]:
    params["transpose_a"] = not params["transpose_a"]
    return [None, bind(triangular_solve_p, a, ct, **params)]


def _triangular_batch(
    size: int, operands: Sequence[Any], batched: Sequence[bool], **params: Any
) -> Any:
    a, b = operands
    if a.ndim == 2 and not batched[0]:
        if params["left_side"]:
            return with_columns_folded(size, b, lambda x: bind(triangular_solve_p, a, x, **params))
        rows = reshape(b, (size * b.shape[1], b.shape[2]))
        return reshape(bind(triangular_solve_p, a, rows, **params), b.shape)
    return bind(triangular_solve_p, *all_spread(size, operands, batched), **params)


triangular_solve_p = kernel_call(
    "triangular_solve",
    aval=_triangular_aval,
    eval=_triangular_eval,
    call=_triangular_call,
    jvp=_triangular_jvp,
    transpose=_triangular_transpose,
    batch=_triangular_batch,
)


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve ``op(a) @ x = b`` (``left_side``) or ``x @ op(a) = b`` for triangular ``a``.

    Parameters
    ----------
    a : array
        Square matrices along the last two axes; the other triangle is not read.
    b : array
        Of the same leading axes; a matrix, or a vector with one axis less.
    left_side, lower : bool
        On which side ``a`` stands, and which triangle it is.
    transpose_a, conjugate_a : bool
        What ``op`` does.
    unit_diagonal : bool
        Whether the diagonal is taken as ones, unread.

    Returns
    -------
    array
        In the shape of ``b``; infinite or NaN where the diagonal has a zero.

    Raises
    ------
    TypeError
        For different dtypes, or others than single and double precision.
    ValueError
        For shapes that do not fit.
    """
    a, b = as_array(a), as_array(b)
    vector = b.ndim == a.ndim - 1
    if vector:
        b = expand(b, b.ndim if left_side else b.ndim - 1)
    out = bind(
        triangular_solve_p,
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a) and is_complex(a.dtype),
        unit_diagonal=bool(unit_diagonal),
    )
    if vector:
        return reshape(out, b.shape[:-1] if left_side else (*b.shape[:-2], b.shape[-1]))
    return out


# ---- general systems -----------------------------------------------------------------------------


def _linear_aval(a: ShapedArray, b: ShapedArray) -> ShapedArray:
    _check_system("linear_solve", a, b)
    return b


def _gesv(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # One routine for both: `getrs` wakes BLAS's threads for three equations, whose mean on two busy
    # cores was 80 to 2,800 us so, and is 1.4.
    factors, pivots, x, singular = lapack("gesv", a.dtype)(a, b)
    if not singular:
        return x
    # It stops at the zeros by which this divides.
    order = np.arange(len(b))
    for i, other in enumerate(pivots):
        order[i], order[other] = order[other], order[i]
    trsm = blas("trsm", a.dtype)
    x = trsm(1.0, factors, b[order], lower=1, diag=1)
    return trsm(1.0, factors, x, lower=0)


def _linear_eval(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if not b.size:
        return b
    if count(a.shape[:-2]) >= MANY:
        try:
            return stacks(np.linalg.solve, a, b)
        except np.linalg.LinAlgError:
            pass  # one of them is singular: the others are solved below
    outs = [(b.shape[-2:], b.dtype)]
    return per_matrix(lambda x, y: (_gesv(x, y),), (a, b), (2, 2), outs)[0]


known_of[_linear_eval] = both_alone(lambda dtype: _gesv)


def _linear_call(ins: Any, outs: Any) -> Library:
    a, b = ins
    n, k = b.shape[-2:]
    statics = (count(a.shape[:-2]), n, k)
    name = parted("linear_solve", a)
    return native(name, order_of_system(n, k), statics, lu_flops(n, n) + 2 * n * n * k)


def _linear_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    (a, b), (da, db) = primals, tangents
    # Value and tangent share the factors, and so does the transposed tangent.
    factors, _, order = bind(lu_p, a)
    solve = {"transpose_a": False, "conjugate_a": False}
    x = bind(factored_solve_p, a, factors, order, b, **solve)
    change = _residual_change(da, db, x)
    return x, bind(factored_solve_p, a, factors, order, change, **solve)


def _residual_change(da: Any, db: Any, x: Any) -> Any:
    """Return ``db - da @ x``."""
    if is_zero(da):
        return db
    product = matmul(da, x)
    return neg(product) if is_zero(db) else sub(db, product)


def _linear_transpose(ct: Any, a: Any, b: Any) -> list[Any]:
    return [None, bind(linear_solve_p, swap(a), ct)]


def _linear_batch(size: int, operands: Sequence[Any], batched: Sequence[bool]) -> Any:
    a, b = operands
    if a.ndim == 2 and not batched[0]:
        return with_columns_folded(size, b, lambda x: bind(linear_solve_p, a, x))
    return bind(linear_solve_p, *all_spread(size, operands, batched))


linear_solve_p = kernel_call(
    "linear_solve",
    aval=_linear_aval,
    eval=_linear_eval,
    call=_linear_call,
    jvp=_linear_jvp,
    transpose=_linear_transpose,
    batch=_linear_batch,
)


def linear_solve(a: Any, b: Any) -> Array:
    """Solve ``a @ x = b`` for stacks of square ``a`` (n, n) and ``b`` (n, k).

    Infinite or NaN where ``a`` is singular.
    """
    return bind(linear_solve_p, a, b)


def _factored_aval(
    a: ShapedArray, factors: ShapedArray, order: ShapedArray, b: ShapedArray, **flags: bool
) -> ShapedArray:
    _check_system("factored_solve", factors, b)
    if order.shape != factors.shape[:-1]:
        raise ValueError(
            "lax.linalg.factored_solve: the permutation must have the factors' shape but for the "
            f"last axis, got {order.shape} and {factors.shape}."
        )
    return b


def _factored_one(
    factors: np.ndarray, order: np.ndarray, b: np.ndarray, transpose_a: bool, conjugate_a: bool
) -> tuple[np.ndarray]:
    if conjugate_a:
        factors = np.conj(factors)
    trsm = blas("trsm", factors.dtype)
    # `factors.T` is what BLAS reads without a copy: its upper triangle is L^T, its lower U^T.
    if transpose_a:
        x = trsm(1.0, factors.T, b, lower=1)
        x = trsm(1.0, factors.T, x, lower=0, diag=1)
        out = np.empty_like(b)
        out[order] = x
        return (out,)
    x = trsm(1.0, factors.T, b[order], lower=0, trans_a=1, diag=1)
    return (trsm(1.0, factors.T, x, lower=1, trans_a=1),)


def _factored_eval(
    a: np.ndarray,
    factors: np.ndarray,
    order: np.ndarray,
    b: np.ndarray,
    *,
    transpose_a: bool,
    conjugate_a: bool,
) -> np.ndarray:
    if not b.size:
        return b
    return per_matrix(
        lambda f, p, y: _factored_one(f, p, y, transpose_a, conjugate_a),
        (factors, order, b),
        (2, 1, 2),
        [(b.shape[-2:], b.dtype)],
    )[0]


def _factored_call(ins: Any, outs: Any, *, transpose_a: bool, conjugate_a: bool) -> Library:
    n, k = ins[3].shape[-2:]

    statics = (count(ins[3].shape[:-2]), n, k, transpose_a, conjugate_a)
    return native("factored_solve", order_of_system(n, k), statics, 2 * n * n * k)


def _factored_jvp(primals: Any, tangents: Tangents, **flags: bool) -> tuple[Any, Any]:
    """Derivative in the matrix and the right-hand side.

    Factors follow from the matrix: what they change by is in the matrix's tangent already.
    """
    (a, factors, order, b), (da, _, _, db) = primals, tangents
    x = bind(factored_solve_p, a, factors, order, b, **flags)
    if is_zero(da) and is_zero(db):
        return x, zero_of(x)
    if not is_zero(da):
        da = _applied(da, **flags)
    change = _residual_change(da, db, x)
    return x, bind(factored_solve_p, a, factors, order, change, **flags)


def _factored_transpose(
    ct: Any, a: Any, factors: Any, order: Any, b: Any, *, transpose_a: bool, conjugate_a: bool
) -> list[Any]:
    flags = {"transpose_a": not transpose_a, "conjugate_a": conjugate_a}
    return [None, None, None, bind(factored_solve_p, a, factors, order, ct, **flags)]


def _factored_batch(
    size: int, operands: Sequence[Any], batched: Sequence[bool], **flags: bool
) -> Any:
    a, factors, order, b = operands
    if a.ndim == 2 and not any(batched[:3]):
        return with_columns_folded(
            size, b, lambda x: bind(factored_solve_p, a, factors, order, x, **flags)
        )
    return bind(factored_solve_p, *all_spread(size, operands, batched), **flags)


factored_solve_p = kernel_call(
    "factored_solve",
    aval=_factored_aval,
    eval=_factored_eval,
    call=_factored_call,
    jvp=_factored_jvp,
    transpose=_factored_transpose,
    batch=_factored_batch,
)


# ---- tridiagonal systems -------------------------------------------------------------------------


def _tridiagonal_aval(
    dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *, perturb_singular: bool
) -> ShapedArray:
    avals = (dl, d, du, b)
    check_same_dtypes("linalg.tridiagonal_solve", avals)
    if b.ndim < 2 or any(a.shape != b.shape[:-1] for a in avals[:3]):
        got = ", ".join(str(a.shape) for a in avals)
        raise TypeError(
            "lax.linalg.tridiagonal_solve takes three diagonals of shape (..., n) and b of shape "
            f"(..., n, k) with the same leading axes, got {got}."
        )
    check_square("tridiagonal_solve", b.update(shape=(*b.shape[:-1], b.shape[-2])))
    return b


def _gtsv(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray) -> tuple[np.ndarray]:
    if len(d) < 2:
        return (b / d[:, None],)
    *_, x, info = lapack("gtsv", d.dtype)(dl[1:], d, du[:-1], b)
    return (x if info == 0 else np.full_like(b, np.nan),)


def _tridiagonal_eval(*operands: np.ndarray, perturb_singular: bool) -> np.ndarray:
    b = operands[3]
    if not b.size:
        return b
    return per_matrix(_gtsv, operands, (1, 1, 1, 2), [(b.shape[-2:], b.dtype)])[0]


def _tridiagonal_call(ins: Any, outs: Any, *, perturb_singular: bool) -> Library:
    shape = ins[3].shape
    # Elimination along a diagonal leaves LAPACK nothing to block: the kernel is as fast.
    ref, statics = KernelRef("linalg", "tridiagonal_solve"), (count(shape[:-2]), *shape[-2:])
    return Library(ref, statics, flops=3 * prod(shape[:-1]) + 5 * prod(shape))


def _columns(d: Any, like: Any) -> Any:
    return broadcast(expand(d, d.ndim), like.shape)


def _tridiagonal_jvp(primals: Any, tangents: Tangents, **params: bool) -> tuple[Any, Any]:
    *diagonals, _ = primals
    x = bind(tridiagonal_solve_p, *primals, **params)
    rows = x.ndim - 2
    neighbours = (shift(x, rows, 1), x, shift(x, rows, -1))
    change = tangents[3]
    for dd, y in zip(tangents[:3], neighbours, strict=True):
        if not is_zero(dd):
            change = add_tangents(change, neg(mul(_columns(dd, y), y)))
    return x, bind(tridiagonal_solve_p, *diagonals, change, **params)


def _tridiagonal_transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any, **params: bool) -> list[Any]:
    low, high = shift(du, du.ndim - 1, 1), shift(dl, dl.ndim - 1, -1)
    return [None, None, None, bind(tridiagonal_solve_p, low, d, high, ct, **params)]


tridiagonal_solve_p = kernel_call(
    "tridiagonal_solve",
    aval=_tridiagonal_aval,
    eval=_tridiagonal_eval,
    call=_tridiagonal_call,
    jvp=_tridiagonal_jvp,
    transpose=_tridiagonal_transpose,
    batch=one_more_axis(),
)


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Array:
    """Solve tridiagonal systems, by elimination with exchanges of neighbouring rows.

    Parameters
    ----------
    dl, d, du : array
        Diagonals below, on and above the main one, each of shape (..., n): ``dl[0]`` and
        ``du[-1]`` are not read.
    b : array
        Right-hand sides (..., n, k).
    perturb_singular : bool
        Accepted for compatibility; singular systems give infinities and NaN.

    Raises
    ------
    TypeError
        For shapes that do not fit, or different dtypes.
    """
    return bind(tridiagonal_solve_p, dl, d, du, b, perturb_singular=bool(perturb_singular))
