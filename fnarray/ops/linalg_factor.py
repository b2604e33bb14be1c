"""Triangular factors of matrices: Cholesky and LU, with what updates and unpacks them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import int32
from ..core.eager import replayed
from ..core.forms import HOST, KernelRef, Library
from ..core.record import known_of
from ..core.tangents import is_zero, zero_of
from ..core.trace import bind
from .contract import exact_matmul as matmul
from .gather import take_along
from .kit.calls import add, const, eq, expand, mul, pad, triangular_solve
from .kit.canonical import as_array
from .kit.checks import FLOAT, check_kind, check_same_dtypes
from .kit.declare import inlined, kernel_call
from .kit.matrix import (
    MANY,
    SMALL,
    are_small,
    check_matrix,
    check_square,
    count,
    cut,
    extend,
    eye,
    hermitian_part,
    join,
    lapack,
    lu_flops,
    native,
    parted,
    per_matrix,
    stacks,
    swap,
    tril,
    triu,
    unit_diagonal,
    where_entries,
)
from .kit.rules import CONSTANT, Tangents, add_tangents, one_more_axis

__all__ = [
    "cholesky",
    "cholesky_update",
    "lu",
    "lu_pivots_to_permutation",
    "symmetric_product",
]


# ---- Cholesky ------------------------------------------------------------------------------------


def _cholesky_aval(x: ShapedArray) -> ShapedArray:
    check_square("cholesky", x)
    return x


def _cholesky_eval(x: np.ndarray) -> np.ndarray:
    if not x.size:
        return x
    if count(x.shape[:-2]) >= MANY:
        try:
            return stacks(np.linalg.cholesky, x)
        except np.linalg.LinAlgError:
            pass  # one of them has no factor: which is found out below
    return per_matrix(_potrf, (x,), (2,), [(x.shape[-2:], x.dtype)])[0]


def _known_cholesky(x: ShapedArray) -> Any:
    small = x.ndim == 2 and 0 < x.size <= SMALL * SMALL
    return (lambda a: _potrf(a)[0]) if small else None


known_of[_cholesky_eval] = _known_cholesky


def _potrf(x: np.ndarray) -> tuple[np.ndarray]:
    factor, failed = lapack("potrf", x.dtype)(x, lower=True, clean=True)
    return (np.tril(np.full_like(x, np.nan)) if failed else factor,)


def _cholesky_call(ins: Any, outs: Any) -> Library:
    (x,) = ins
    n = x.shape[-1]
    statics = (count(x.shape[:-2]), n)
    return native(parted("cholesky", x), n, statics, n**3 / 3)


def _cholesky_tangent(factor: Any, change: Any) -> Any:
    """Derivative of a lower factor where the matrix changes (Smith 1995; Murray 2016).

    ``L^-1 dL`` is the lower triangle, its diagonal halved, of ``L^-1 dA L^-H``.
    """
    inner = triangular_solve(factor, change, left_side=True, lower=True)
    inner = triangular_solve(
        factor, inner, left_side=False, lower=True, transpose_a=True, conjugate_a=True
    )
    lower = tril(inner)
    return matmul(factor, where_entries(eq, mul(lower, 0.5), other=lower))


def _solve(*, left_side: bool, transpose_a: bool = False, conj: bool = False) -> dict[str, bool]:
    return {
        "left_side": left_side,
        "lower": True,
        "transpose_a": transpose_a,
        "conjugate_a": conj,
        "unit_diagonal": False,
    }


def _cholesky_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    factor = bind(cholesky_p, primals[0])
    return factor, _cholesky_tangent(factor, tangents[0])


cholesky_p = kernel_call(
    "cholesky",
    aval=_cholesky_aval,
    eval=_cholesky_eval,
    call=_cholesky_call,
    jvp=_cholesky_jvp,
    batch=one_more_axis(),
)


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """Return lower-triangular ``L`` with ``L @ L^H = x``.

    Parameters
    ----------
    x : array
        Hermitian positive definite matrices along the last two axes.
    symmetrize_input : bool
        Whether to factor ``(x + x^H) / 2``; otherwise only the lower triangle is read. Derivatives
        take the matrix as Hermitian in either case.

    Returns
    -------
    array
        NaN in the lower triangle for matrices that are not positive definite.

    Raises
    ------
    TypeError
        For ranks below 2, or dtypes other than single and double precision.
    ValueError
        For matrices that are not square.
    """
    x = as_array(x)
    check_square("cholesky", x.aval)
    return bind(cholesky_p, hermitian_part(x) if symmetrize_input else x)


# ---- rank-1 update -------------------------------------------------------------------------------


def _update_aval(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    check_same_dtypes("cholesky_update", (r, w))
    batch, n = check_square("cholesky_update", r)
    if w.shape != (*batch, n):
        raise ValueError(
            "lax.linalg.cholesky_update takes a square matrix and a vector of its size, got "
            f"shapes {r.shape} and {w.shape}."
        )
    check_kind("cholesky_update", r.dtype, FLOAT)
    return r


def _update_one(r: np.ndarray, w: np.ndarray) -> tuple[np.ndarray]:
    r, w = r.copy(), w.copy()
    for k in range(len(w)):
        # A rotation of row k against w makes w[k] zero.
        size = np.hypot(r[k, k], w[k])
        c, s = r[k, k] / size, w[k] / size
        r[k], w = c * r[k] + s * w, c * w - s * r[k]
    return (r,)


def _update_eval(r: np.ndarray, w: np.ndarray) -> np.ndarray:
    return per_matrix(_update_one, (r, w), (2, 1), [(r.shape[-2:], r.dtype)])[0]


def _update_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    (r, w), (dr, dw) = primals, tangents
    out = bind(cholesky_update_p, r, w)
    change: Any = zero_of(r)
    if not is_zero(dr):
        change = matmul(swap(r), dr)
    if not is_zero(dw):
        outer = matmul(expand(w, w.ndim), expand(dw, dw.ndim - 1))
        change = add_tangents(change, outer)
    change = add(change, swap(change))
    return out, swap(_cholesky_tangent(swap(out), change))


cholesky_update_p = kernel_call(
    "cholesky_update",
    aval=_update_aval,
    eval=_update_eval,
    call=lambda ins, outs: HOST,
    jvp=_update_jvp,
    batch=one_more_axis(),
)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """Return the upper factor of ``R^T R + w w^T``, given the upper factor ``R``.

    Costs the square of the size, where a new factorisation costs the cube.

    Raises
    ------
    TypeError
        For complex matrices, or operands of different dtypes.
    ValueError
        For a matrix that is not square, or a vector of another size.
    """
    return bind(cholesky_update_p, r_matrix, w_vector)


# ---- LU ------------------------------------------------------------------------------------------


def _lu_aval(x: ShapedArray) -> tuple[ShapedArray, ...]:
    batch, m, n = check_matrix("lu", x)
    integers = (min(m, n), m)
    return (x, *(ShapedArray((*batch, k), int32) for k in integers))


def _lu_one(x: np.ndarray) -> tuple[np.ndarray, ...]:
    factors, pivots, _ = lapack("getrf", x.dtype)(x)
    return factors, pivots


def _lu_stack(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eliminate in all matrices of ``(batch, m, n)`` at once: for many small ones."""
    x = x.copy()
    batch, m, n = x.shape
    each = np.arange(batch)
    pivots = np.empty((batch, min(m, n)), np.int32)
    for j in range(min(m, n)):
        column: Any = x[:, j:, j]
        size = abs(column.real) + abs(column.imag) if x.dtype.kind == "c" else abs(column)
        # A NaN is never the larger.
        best = j + np.argmax(np.where(np.isnan(size), -1, size), axis=1)
        best = np.where(np.isnan(size[:, 0]), j, best)
        pivots[:, j] = best
        rows = x[each, best]
        x[each, best] = x[:, j]
        x[:, j] = rows
        pivot = np.where(x[:, j, j] == 0, 1, x[:, j, j])
        x[:, j + 1 :, j] /= pivot[:, None]
        x[:, j + 1 :, j + 1 :] -= x[:, j + 1 :, j, None] * x[:, j, None, j + 1 :]
    return x, pivots


def _lu_eval(x: np.ndarray) -> tuple[np.ndarray, ...]:
    m, n = x.shape[-2:]
    size, batch = min(m, n), x.shape[:-2]
    if not x.size:
        factors, pivots = x, np.zeros((*batch, size), np.int32)
    elif count(batch) > 4 * size:
        # A step over the stack costs what LAPACK takes for some four matrices.
        factors, pivots = _lu_stack(x.reshape(-1, m, n))
        factors, pivots = factors.reshape(x.shape), pivots.reshape(*batch, size)
    else:
        outs = [((m, n), x.dtype), ((size,), np.int32)]
        factors, pivots = per_matrix(_lu_one, (x,), (2,), outs)
    return factors, pivots, _permutation(pivots, permutation_size=m)


def _lu_alone(x: ShapedArray) -> Callable[[np.ndarray], tuple[np.ndarray, ...]] | None:
    if not are_small(x):
        return None
    factor, rows = lapack("getrf", x.dtype), x.shape[0]

    def evaluate(x: np.ndarray) -> tuple[np.ndarray, ...]:
        factors, pivots, _ = factor(x)
        return factors.copy("C"), pivots, np.array(_swapped(pivots.tolist(), rows), np.int32)

    return evaluate


known_of[_lu_eval] = _lu_alone


def _lu_call(ins: Any, outs: Any) -> Library:
    m, n = ins[0].shape[-2:]
    return native("lu", max(m, n), (count(ins[0].shape[:-2]), m, n), lu_flops(m, n))


def unpacked(factors: Any) -> tuple[Any, Any]:
    """Return ``L`` (m, m) and ``U`` (n, n) of packed factors, extended by identities."""
    m, n = factors.shape[-2:]
    size = min(m, n)
    low = extend(tril(cut(factors, factors.ndim - 1, 0, size), -1), factors.ndim - 1, m - size)
    high = triu(cut(factors, factors.ndim - 2, 0, size))
    if n > size:
        batch = factors.shape[:-2]
        corner = eye(n - size, factors, batch)
        edges = (*((0, 0, 0),) * (corner.ndim - 1), (size, 0, 0))
        high = join([high, pad(corner, 0, edges)], -2)
    return unit_diagonal(low), high


def _lu_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    """``L^-1 dA U^-1`` splits into the triangles ``L^-1 dL`` and ``dU U^-1``."""
    factors, pivots, order = bind(lu_p, primals[0])
    low, high = unpacked(factors)
    change = take_along(tangents[0], order, -2)
    inner = triangular_solve(low, change, left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(high, inner, left_side=False, lower=False)
    tangent = add(matmul(low, tril(inner, -1)), matmul(triu(inner), high))
    return [factors, pivots, order], [tangent, zero_of(pivots), zero_of(order)]


lu_p = kernel_call(
    "lu",
    aval=_lu_aval,
    eval=_lu_eval,
    call=_lu_call,
    multiple_results=True,
    jvp=_lu_jvp,
    batch=one_more_axis(),
)


@replayed
def lu(x: Any) -> list[Array]:
    """Factor matrices by elimination with exchanges of rows: ``x[permutation] = L @ U``.

    Parameters
    ----------
    x : array
        Matrices (m, n) along the last two axes.

    Returns
    -------
    lu : array
        Both factors: ``L`` below the diagonal (its own is ones), ``U`` on and above it.
    pivots : int32 array
        Row ``i`` was exchanged with row ``pivots[i]``, in turn.
    permutation : int32 array
        The rows' order that all exchanges make.

    Raises
    ------
    TypeError
        For ranks below 2, or dtypes other than single and double precision.
    """
    return bind(lu_p, x)


def _permutation_aval(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.dtype.kind not in "iu" or not pivots.ndim:
        raise TypeError(
            "lax.linalg.lu_pivots_to_permutation takes int32 vectors of pivots, got "
            f"{pivots.str_short()}."
        )
    if permutation_size < pivots.shape[-1]:
        raise ValueError(
            "lax.linalg.lu_pivots_to_permutation: the permutation must be no shorter than the "
            f"pivots, got permutation_size {permutation_size} for pivots of shape {pivots.shape}."
        )
    return ShapedArray((*pivots.shape[:-1], permutation_size), pivots.dtype)


#: Matrices whose rows are exchanged one by one: 60 steps of NumPy's over all of them take 80 us,
#: and as many exchanges in a list two.
_FEW_SWAPPED = 32


def _swapped(pivots: list[int], size: int) -> list[int]:
    order = list(range(size))
    for i, other in enumerate(pivots):
        order[i], order[other] = order[other], order[i]
    return order


def _permutation(pivots: np.ndarray, *, permutation_size: int) -> np.ndarray:
    batch, size = pivots.shape[:-1], pivots.shape[-1]
    flat = pivots.reshape(-1, size) if pivots.size else np.zeros((count(batch), size), np.int32)
    order = np.tile(np.arange(permutation_size, dtype=pivots.dtype), (len(flat), 1))
    if len(flat) <= _FEW_SWAPPED:
        for row, own in zip(order, flat, strict=True):
            row[:] = _swapped(own.tolist(), permutation_size)
        return order.reshape(*batch, permutation_size)
    each = np.arange(len(flat))
    for i in range(size):
        other = flat[:, i]
        taken = order[each, other]
        order[each, other] = order[:, i]
        order[:, i] = taken
    return order.reshape(*batch, permutation_size)


def _permutation_alone(
    pivots: ShapedArray, *, permutation_size: int
) -> Callable[[np.ndarray], np.ndarray] | None:
    if pivots.ndim != 1:
        return None
    return lambda own: np.array(_swapped(own.tolist(), permutation_size), own.dtype)


known_of[_permutation] = _permutation_alone


def _permutation_call(ins: Any, outs: Any, *, permutation_size: int) -> Library:
    (pivots,) = ins
    size = pivots.shape[-1]
    return Library(
        KernelRef("linalg", "permutation"),
        (count(pivots.shape[:-1]), size, permutation_size),
        flops=0,
    )


lu_pivots_to_permutation_p = kernel_call(
    "lu_pivots_to_permutation",
    aval=_permutation_aval,
    eval=_permutation,
    call=_permutation_call,
    jvp=CONSTANT,
    batch=one_more_axis(),
)


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """Return the order of rows that successive exchanges make.

    Parameters
    ----------
    pivots : int32 array
        Along its last axis: row ``i`` is exchanged with row ``pivots[i]``.
    permutation_size : int
        Number of rows.

    Raises
    ------
    TypeError
        For pivots that are not integers.
    ValueError
        For fewer rows than pivots.
    """
    return bind(
        lu_pivots_to_permutation_p, pivots, permutation_size=operator.index(permutation_size)
    )


# ---- symmetric product ---------------------------------------------------------------------------


def _symmetric_aval(a: ShapedArray, c: ShapedArray, *, alpha: float, beta: float) -> ShapedArray:
    check_same_dtypes("symmetric_product", (a, c))
    batch, m, _ = check_matrix("symmetric_product", a)
    if c.shape != (*batch, m, m):
        raise ValueError(
            "lax.linalg.symmetric_product takes matrices (m, n) and (m, m), got shapes "
            f"{a.shape} and {c.shape}."
        )
    check_kind("symmetric_product", a.dtype, FLOAT)
    return c


def _symmetric_eval(a: np.ndarray, c: np.ndarray, *, alpha: float, beta: float) -> np.ndarray:
    product = a.dtype.type(alpha) * (a @ np.swapaxes(a, -1, -2))
    return product + a.dtype.type(beta) * c


@inlined
def _symmetric_form(a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    product = matmul(a, swap(a))
    return add(mul(const(product, alpha), product), mul(const(c, beta), c))


def _symmetric_jvp(
    primals: Any, tangents: Tangents, *, alpha: float, beta: float
) -> tuple[Any, Any]:
    (a, c), (da, dc) = primals, tangents
    out = bind(symmetric_product_p, a, c, alpha=alpha, beta=beta)
    total: Any = zero_of(out)
    if not is_zero(da):
        half = matmul(da, swap(a))
        total = mul(add(half, swap(half)), const(half, alpha))
    if not is_zero(dc):
        total = add_tangents(total, mul(dc, const(dc, beta)))
    return out, total


symmetric_product_p = kernel_call(
    "symmetric_product",
    aval=_symmetric_aval,
    eval=_symmetric_eval,
    call=_symmetric_form,
    jvp=_symmetric_jvp,
    batch=one_more_axis(),
)


def symmetric_product(
    a_matrix: Any,
    c_matrix: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Return ``alpha * a @ a^T + beta * c``.

    Parameters
    ----------
    a_matrix, c_matrix : array
        Matrices (m, n) and symmetric matrices (m, m).
    alpha, beta : float
    symmetrize_output : bool
        Whether to mirror the lower triangle to the upper one.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    out = bind(symmetric_product_p, a_matrix, c_matrix, alpha=float(alpha), beta=float(beta))
    if symmetrize_output:
        low = tril(out, -1)
        out = add(tril(out), swap(low))
    return out
