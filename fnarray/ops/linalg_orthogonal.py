"""Orthogonal factors: QR, products of Householder reflections, singular values."""

from __future__ import annotations

import enum
from functools import lru_cache
from math import isqrt
from operator import index
from typing import Any, cast

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import int32, is_complex, to_real
from ..core.forms import HOST, Library
from ..core.primitive import Missing, Primitive
from ..core.record import known_of
from ..core.tangents import zero_of
from ..core.trace import bind
from ..errors import MissingRuleError
from .contract import exact_matmul as matmul
from .gather import take_along
from .kit.calls import (
    add,
    broadcast_in_dim,
    convert_like,
    div,
    eq,
    full,
    mul,
    real,
    sub,
    triangular_solve,
)
from .kit.canonical import as_array
from .kit.checks import check_same_dtypes
from .kit.declare import kernel_call
from .kit.matrix import (
    adjoint,
    alone,
    by_lapack,
    check_matrix,
    count,
    cut,
    diagonal,
    differences,
    inverse_off_diagonal,
    join,
    lapack,
    lu_flops,
    native,
    per_matrix,
    scale_columns,
    scale_rows,
    tril,
    where_entries,
    workspace,
)
from .kit.rules import NOT_LINEAR, Tangents, one_more_axis

__all__ = ["SvdAlgorithm", "householder_product", "ormqr", "qr", "svd"]


def by_library(
    name: str,
    aval: Any,
    evaluate: Any,
    *,
    many: bool = True,
    jvp: Any,
    transpose: Any = NOT_LINEAR,
    call: Any = lambda ins, outs, **params: HOST,
) -> Primitive:
    """Declare a decomposition of stacks of matrices, which LAPACK alone computes by default."""

    return kernel_call(
        name,
        aval=aval,
        eval=evaluate,
        call=call,
        multiple_results=many,
        jvp=jvp,
        transpose=transpose,
        batch=one_more_axis(),
    )


# ---- QR ------------------------------------------------------------------------------------------


def _qr_aval(x: ShapedArray, *, pivoting: bool, full_matrices: bool, use_magma: Any) -> Any:
    batch, m, n = check_matrix("qr", x)
    k = m if full_matrices else min(m, n)
    avals = (x.update(shape=(*batch, m, k)), x.update(shape=(*batch, k, n)))
    return (*avals, ShapedArray((*batch, n), int32)) if pivoting else avals


@lru_cache(256)
def _is_upper(m: int, n: int) -> np.ndarray:
    """Return which places of a matrix are not below its diagonal; `numpy.triu` asks each time."""
    return np.tri(n, m, dtype=bool).T


def _qr_eval(x: np.ndarray, **params: Any) -> Any:
    one, outs = _qr_of(x.shape, x.dtype, **params)
    if not x.size:
        return _empty_qr(x.shape[:-2], outs)
    return per_matrix(one, (x,), (2,), outs)


def _qr_of(
    shape: tuple[int, ...], dtype: np.dtype, *, pivoting: bool, full_matrices: bool, use_magma: Any
) -> tuple[Any, Any]:
    m, n = shape[-2:]
    k = m if full_matrices else min(m, n)
    outs = [((m, k), dtype), ((k, n), dtype)] + [((n,), np.dtype(np.int32))] * pivoting
    (lwork,) = workspace("geqrf", dtype, m, n) if m and n else (0,)
    factor = lapack("geqp3" if pivoting else "geqrf", dtype)
    columns_of = lapack("ungqr" if is_complex(dtype) else "orgqr", dtype)

    def one(a: np.ndarray) -> tuple[Any, ...]:
        order = None
        if pivoting:
            packed, order, taus, _, _ = factor(a)
        else:
            packed, taus, _, _ = factor(a, lwork=lwork)
        columns = packed
        if k > n:
            columns = np.zeros((m, k), dtype, order="F")
            columns[:, :n] = packed
        q = columns_of(columns[:, :k], taus, lwork=max(lwork, k))[0]
        upper = np.where(_is_upper(k, n), packed[:k], packed.dtype.type(0))
        return (q, upper, *((cast("Any", order) - 1,) if pivoting else ()))

    return one, outs


known_of[_qr_eval] = alone(_qr_of)


def _empty_qr(batch: tuple[int, ...], outs: Any) -> tuple[np.ndarray, ...]:
    """Factors of matrices without elements: an orthonormal basis, nothing, the order as it is."""
    q, r, *order = (np.zeros((*batch, *shape), dtype) for shape, dtype in outs)
    q[...] = np.eye(q.shape[-2], q.shape[-1])
    for places in order:
        places[...] = np.arange(places.shape[-1])
    return q, r, *order


def _qr_jvp(
    primals: Any, tangents: Tangents, *, pivoting: bool, full_matrices: bool, use_magma: Any
) -> tuple[Any, Any]:
    """Derivative of the reduced factors (Walter, Lehmann & Lamour 2012).

    ``Q^H dA R^-1`` is the sum of the skew ``Q^H dQ`` and the upper ``dR R^-1``. Of a wide matrix
    the leading square has ``Q`` and the other columns follow.
    """
    (x,), (dx,) = primals, tangents
    m, n = x.shape[-2:]
    if full_matrices and m > n:
        raise MissingRuleError(
            "jvp",
            "qr",
            f"the columns of Q beyond the {n} of a matrix of shape {x.shape} are not determined "
            "by it; use full_matrices=False (mode='reduced')",
        )
    q, r, *order = bind(
        qr_p, x, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma
    )
    if pivoting:
        dx = take_along(dx, order[0], -1)
    k, axis = min(m, n), x.ndim - 1
    square = cut(r, axis, 0, k)
    solved = triangular_solve(square, cut(dx, axis, 0, k), left_side=False, lower=False)
    inner = matmul(adjoint(q), solved)
    low = tril(inner, -1)
    skew = sub(low, adjoint(low))
    if is_complex(x.dtype):
        # The diagonal of R stays real: an imaginary change there is Q's.
        skew = add(skew, where_entries(eq, sub(inner, convert_like(real(inner), inner))))
    dq = add(matmul(q, sub(skew, inner)), solved)
    dr = matmul(sub(inner, skew), square)
    if n > m:
        rest = sub(matmul(adjoint(q), cut(dx, axis, k, n)), matmul(skew, cut(r, axis, k, n)))
        dr = join([dr, rest], -1)
    return [q, r, *order], [dq, dr, *map(zero_of, order)]


def _qr_call(ins: Any, outs: Any, *, pivoting: bool, **params: Any) -> Library:
    (x,), (*batch, m, k) = ins, outs[0].shape
    n = x.shape[-1]
    if pivoting:
        return by_lapack("qr_pivoted", x, m, n, k)
    r = min(m, n)  # reflections: made, and multiplied into k columns
    flops = 2 * lu_flops(m, n) + r * (4 * m * k - 2 * r * (m + k) + 4 * r * r / 3)
    # Of long thin matrices LAPACK has no more to gain than of square ones of as many numbers.
    return native("qr", isqrt(m * n), (count(tuple(batch)), m, n, k), flops)


qr_p = by_library("qr", _qr_aval, _qr_eval, jvp=_qr_jvp, call=_qr_call)


def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, ...]:
    """Factor matrices into orthonormal columns and an upper triangle: ``Q @ R = x``.

    Parameters
    ----------
    x : array
        Matrices (m, n) along the last two axes.
    pivoting : bool
        Whether to order the columns by what they add: ``Q @ R = x[:, p]``.
    full_matrices : bool
        Whether ``Q`` is (m, m) and ``R`` (m, n), or (m, k) and (k, n) with ``k = min(m, n)``.
    use_magma : bool, optional
        Accepted for compatibility.

    Returns
    -------
    tuple of array
        ``(q, r)``, or ``(q, r, p)`` with int32 ``p``. Signs are LAPACK's.

    Raises
    ------
    TypeError
        For ranks below 2, or dtypes other than single and double precision.
    """
    return tuple(
        bind(
            qr_p,
            x,
            pivoting=bool(pivoting),
            full_matrices=bool(full_matrices),
            use_magma=use_magma,
        )
    )


# ---- reflections ---------------------------------------------------------------------------------

_RAW = Missing("reflections are LAPACK's storage of Q; differentiate lax.linalg.qr")


def _geqrf_aval(x: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    batch, m, n = check_matrix("geqrf", x)
    return x, x.update(shape=(*batch, min(m, n)))


def _geqrf_eval(x: np.ndarray) -> tuple[np.ndarray, ...]:
    packed, taus = np.linalg.qr(x, "raw")
    return np.swapaxes(packed, -1, -2), taus


geqrf_p = by_library("geqrf", _geqrf_aval, _geqrf_eval, jvp=_RAW)


def geqrf(a: Any) -> tuple[Array, Array]:
    """Return a QR factorisation as LAPACK stores it: reflections below ``R``, and their scales."""
    packed, taus = bind(geqrf_p, a)
    return packed, taus


def _check_reflections(name: str, a: ShapedArray, taus: ShapedArray) -> None:
    check_same_dtypes(f"linalg.{name}", (a, taus))
    batch, m, n = check_matrix(name, a)
    if m < n:
        raise ValueError(
            f"lax.linalg.{name}: the reflections must have at least as many rows as columns, got "
            f"shape {a.shape}."
        )
    if taus.ndim != a.ndim - 1 or taus.shape[:-1] != batch or taus.shape[-1] > n:
        raise ValueError(
            f"lax.linalg.{name}: scales must be at most as many as the {n} reflections of shape "
            f"{a.shape}, got shape {taus.shape}."
        )


def _householder_aval(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    _check_reflections("householder_product", a, taus)
    return a


def _householder_eval(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    name = "ungqr" if a.dtype.kind == "c" else "orgqr"
    routine = lapack(name, a.dtype)
    if not a.size:
        return a
    return per_matrix(
        lambda x, t: (routine(x, t)[0],), (a, taus), (2, 1), [(a.shape[-2:], a.dtype)]
    )[0]


householder_product_p = by_library(
    "householder_product", _householder_aval, _householder_eval, many=False, jvp=_RAW
)


def householder_product(a: Any, taus: Any) -> Array:
    """Multiply elementary reflections out to the orthonormal columns that they stand for.

    Parameters
    ----------
    a : array
        Matrices (m, n), m >= n, with reflections below the diagonals, as `geqrf` leaves them.
    taus : array
        Their scales, at most n.

    Raises
    ------
    ValueError
        For more columns than rows, or more scales than columns.
    """
    return bind(householder_product_p, a, taus)


def _ormqr_aval(
    a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
) -> ShapedArray:
    check_same_dtypes("linalg.ormqr", (a, taus, c))
    _check_reflections("ormqr", a, taus)
    side, words = (-2, "rows") if left else (-1, "columns")
    if c.ndim != a.ndim or c.shape[:-2] != a.shape[:-2] or c.shape[side] != a.shape[-2]:
        raise ValueError(
            f"lax.linalg.ormqr: with left={left} c must have {a.shape[-2]} {words}, as the "
            f"reflections of shape {a.shape} have rows, got shape {c.shape}."
        )
    return c


def _ormqr_eval(
    a: np.ndarray, taus: np.ndarray, c: np.ndarray, *, left: bool, transpose: bool
) -> np.ndarray:
    if not c.size:
        return c
    is_cplx = a.dtype.kind == "c"
    routine = lapack("unmqr" if is_cplx else "ormqr", a.dtype)
    trans = ("C" if is_cplx else "T") if transpose else "N"
    side = "L" if left else "R"

    def one(x: np.ndarray, t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray]:
        reflections = np.asfortranarray(x[:, : len(t)])
        size = int(routine(side, trans, reflections, t, y, lwork=-1)[1][0].real)
        return (routine(side, trans, reflections, t, y, lwork=size)[0],)

    return per_matrix(one, (a, taus, c), (2, 1, 2), [(c.shape[-2:], c.dtype)])[0]


ormqr_p = by_library("ormqr", _ormqr_aval, _ormqr_eval, many=False, jvp=_RAW)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """Multiply by the full ``Q`` that reflections stand for, without forming it.

    Parameters
    ----------
    a, taus : array
        Reflections (m, n) and their scales, as of `householder_product`.
    c : array
        Matrices with m rows (``left``) or m columns.
    left : bool
        Whether the result is ``op(Q) @ c``, or ``c @ op(Q)``.
    transpose : bool
        Whether ``op`` is the conjugate transpose.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    return bind(ormqr_p, a, taus, c, left=bool(left), transpose=bool(transpose))


# ---- singular values -----------------------------------------------------------------------------


class SvdAlgorithm(enum.Enum):
    """Names of algorithms; all run LAPACK's divide and conquer here."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"


def _svd_aval(
    x: ShapedArray, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, algorithm: Any
) -> tuple[ShapedArray, ...]:
    batch, m, n = check_matrix("svd", x)
    k = min(m, n)
    if subset_by_index is not None:
        k = subset_size("svd", subset_by_index, k)
        if compute_uv and full_matrices and k < max(m, n):
            raise ValueError(
                "lax.linalg.svd: full_matrices and subset_by_index exclude each other, got "
                f"subset {subset_by_index} for shape {x.shape}. Use full_matrices=False."
            )
    values = x.update(shape=(*batch, k), dtype=to_real(x.dtype))
    if not compute_uv:
        return (values,)
    rows, columns = (m, n) if full_matrices else (k, k)
    return values, x.update(shape=(*batch, m, rows)), x.update(shape=(*batch, columns, n))


def subset_size(name: str, subset: tuple[int, int], k: int) -> int:
    """Return how many values a half-open range of indices selects."""
    start, stop = subset
    if not 0 <= start <= stop <= k:
        raise ValueError(
            f"lax.linalg.{name}: subset_by_index must be a range (start, stop) within {k} values, "
            f"got {subset}."
        )
    return stop - start


def _svd_eval(x: np.ndarray, **params: Any) -> tuple[np.ndarray, ...]:
    one, outs = _svd_of(x.shape, x.dtype, **params)
    if not x.size:
        return tuple(_empty_svd(x.shape[:-2], outs))
    return per_matrix(one, (x,), (2,), outs, finite=True)


def _svd_of(
    shape: tuple[int, ...],
    dtype: np.dtype,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: Any,
    algorithm: Any,
) -> tuple[Any, Any]:
    m, n = shape[-2:]
    low, high = subset_by_index or (0, min(m, n))
    rows, columns = (m, n) if full_matrices and not subset_by_index else (high - low,) * 2
    outs = [((high - low,), to_real(dtype)), ((m, rows), dtype), ((columns, n), dtype)]
    flags = {"compute_uv": compute_uv, "full_matrices": full_matrices}
    (lwork,) = workspace("gesdd", dtype, m, n, **flags) if m and n else (0,)
    routine = lapack("gesdd", dtype)

    def one(a: np.ndarray) -> tuple[np.ndarray, ...]:
        u, s, vh, info = routine(a, lwork=lwork, **flags)
        if info:
            raise np.linalg.LinAlgError
        if subset_by_index:
            s, u, vh = s[low:high], u[:, low:high], vh[low:high]
        return (s, u, vh) if compute_uv else (s,)

    return one, outs if compute_uv else outs[:1]


known_of[_svd_eval] = alone(_svd_of, finite=True)


def _empty_svd(batch: tuple[int, ...], outs: Any) -> list[np.ndarray]:
    """Factors of matrices without elements: orthonormal bases of what there is."""
    results = [np.zeros((*batch, *shape), dtype) for shape, dtype in outs]
    for vectors in results[1:]:
        vectors[...] = np.eye(vectors.shape[-2], vectors.shape[-1])
    return results


def _reciprocals(s: Any) -> Any:
    """``1 / s``, and 0 where ``s`` is 0."""
    zero = convert_like(eq(s, full(s.aval, 0)), s)
    return sub(div(full(s.aval, 1), add(s, zero)), zero)


def _svd_jvp(
    primals: Any,
    tangents: Tangents,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: Any,
    algorithm: Any,
) -> tuple[Any, Any]:
    """Derivative of the reduced factors (Townsend 2016; of complex ones Wan & Zhang 2019)."""
    (x,), (dx,) = primals, tangents
    m, n = x.shape[-2:]
    if compute_uv and full_matrices and m != n:
        raise MissingRuleError(
            "jvp",
            "svd",
            f"the singular vectors beyond the first {min(m, n)} of a matrix of shape {x.shape} "
            "are not determined by it; use full_matrices=False",
        )
    thin = {"full_matrices": False, "compute_uv": True, "subset_by_index": None}
    s, u, vh = bind(svd_p, x, **thin, algorithm=algorithm)
    uh, v = adjoint(u), adjoint(vh)
    inner = matmul(matmul(uh, dx), v)
    ds = diagonal(real(inner) if is_complex(x.dtype) else inner)
    if not compute_uv:
        return _subset([s], [ds], subset_by_index)
    # Squares' differences as products, which keeps their digits.
    w = mul(differences(s), _sums(s))
    inverse = convert_like(inverse_off_diagonal(w), x)
    right = scale_columns(inner, s)
    left = scale_rows(s, inner)
    turn_u = mul(inverse, add(right, adjoint(right)))
    turn_v = mul(inverse, add(left, adjoint(left)))
    reciprocal = _reciprocals(s)
    if is_complex(x.dtype):
        # Only the difference of the phases of a pair of vectors is determined: U's turn.
        skew = div(where_entries(eq, sub(inner, adjoint(inner))), 2)
        turn_u = add(turn_u, scale_columns(skew, reciprocal))
    du, dv = matmul(u, turn_u), matmul(v, turn_v)
    if m > n:
        rest = sub(matmul(dx, v), matmul(u, inner))
        du = add(du, scale_columns(rest, reciprocal))
    if n > m:
        rest = sub(matmul(adjoint(dx), u), matmul(v, adjoint(inner)))
        dv = add(dv, scale_columns(rest, reciprocal))
    return _subset([s, u, vh], [ds, du, adjoint(dv)], subset_by_index)


def _subset(outs: list[Any], tangents: list[Any], subset: Any) -> tuple[list[Any], list[Any]]:
    """Select a range of values, columns of ``U`` and rows of ``V^H``."""
    if subset is None:
        return outs, tangents
    axes = (outs[0].ndim - 1, outs[0].ndim, outs[0].ndim - 1)

    def select(xs: list[Any]) -> list[Any]:
        return [cut(x, axis, *subset) for x, axis in zip(xs, axes, strict=False)]

    return select(outs), select(tangents)


def _sums(s: Any) -> Any:
    """Return ``s[j] + s[i]`` at ``(i, j)``."""
    n = s.shape[-1]
    shape = (*s.shape, n)
    lead = tuple(range(s.ndim - 1))
    row = broadcast_in_dim(s, shape, (*lead, s.ndim))
    column = broadcast_in_dim(s, shape, (*lead, s.ndim - 1))
    return add(row, column)


def _svd_call(
    ins: Any, outs: Any, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, **_: Any
) -> Library:
    (x,) = ins
    if subset_by_index is not None:
        return HOST
    if compute_uv:
        return by_lapack("svd", x, *x.shape[-2:], full_matrices)
    return by_lapack("svdvals", x, *x.shape[-2:])


svd_p = by_library("svd", _svd_aval, _svd_eval, jvp=_svd_jvp, call=_svd_call)


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Return singular values, descending, and vectors: ``u @ diag(s) @ vh = x``.

    Parameters
    ----------
    x : array
        Matrices (m, n) along the last two axes.
    full_matrices : bool
        Whether ``u`` and ``vh`` are square, or have ``k = min(m, n)`` columns and rows.
    compute_uv : bool
        Whether to return ``(u, s, vh)``, or ``s`` alone.
    subset_by_index : (int, int), optional
        Range of the values wanted, from the largest.
    algorithm : SvdAlgorithm, optional
        Accepted for compatibility.

    Raises
    ------
    TypeError
        For ranks below 2, or dtypes other than single and double precision.
    ValueError
        For a range that is none, or one together with ``full_matrices``.
    """
    x = as_array(x)
    subset = None if subset_by_index is None else tuple(map(index, subset_by_index))
    outs = bind(
        svd_p,
        x,
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        subset_by_index=subset,
        algorithm=algorithm,
    )
    if not compute_uv:
        return outs[0]
    s, u, vh = outs
    return u, s, vh
