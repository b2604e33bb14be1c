"""Determinants, with derivatives that hold at singular matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import complex128, float64, is_complex, to_real
from ..core.forms import Library
from ..core.tangents import zero_of
from ..core.trace import bind
from .contract import exact_matmul as matmul
from .kit import calls
from .kit.calls import (
    bitwise_or,
    broadcast_in_dim,
    convert,
    convert_like,
    div,
    eq,
    expand,
    full,
    imag,
    iota,
    mul,
    ne,
    real,
    reduce_prod,
    reduce_sum,
    select,
    sign,
    sub,
)
from .kit.declare import kernel_call
from .kit.matrix import (
    adjoint,
    check_square,
    count,
    diagonal,
    lu_flops,
    native,
    parted,
    scale_columns,
    swap,
    where_entries,
)
from .kit.rules import Tangents, one_more_axis
from .linalg_factor import lu_p
from .linalg_orthogonal import svd_p
from .linalg_solve import factored_solve_p

__all__: list[str] = []


def _det_aval(a: ShapedArray) -> ShapedArray:
    batch, _ = check_square("det", a)
    return a.update(shape=batch)


def _det_call(ins: Any, outs: Any) -> Library:
    batch, n = ins[0].shape[:-2], ins[0].shape[-1]
    return native(parted("determinant", ins[0]), n, (count(batch), n), lu_flops(n, n))


def _parity(pivots: Any, dtype: Any) -> Any:
    """Return 1 for an even number of exchanges, -1 for an odd one."""
    places = iota(pivots.shape, pivots.ndim - 1)
    moved = convert(ne(pivots, places), dtype)
    factor = sub(full(moved.aval, 1), mul(moved, 2))
    return _product(factor)


def _product(x: Any) -> Any:
    return reduce_prod(x, (x.ndim - 1,))


def _det_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    """``d det = trace(adj(A) dA)`` (Jacobi), whatever the rank."""
    out = bind(det_p, *primals)
    terms = mul(swap(bind(adjugate_p, *primals)), tangents[0])
    return out, reduce_sum(terms, (terms.ndim - 2, terms.ndim - 1))


det_p = kernel_call(
    "det",
    aval=_det_aval,
    eval=np.linalg.det,
    call=_det_call,
    jvp=_det_jvp,
    batch=one_more_axis(),
)


def det(a: Any) -> Array:
    """Return the determinants of square matrices; their derivatives hold at singular ones."""
    return bind(det_p, a)


# ---- adjugates -----------------------------------------------------------------------------------

_THIN = {"full_matrices": False, "compute_uv": True, "subset_by_index": None, "algorithm": None}


def _adjugate_aval(a: ShapedArray) -> ShapedArray:
    check_square("adjugate", a)
    return a


def _adjugate_eval(a: np.ndarray) -> np.ndarray:
    if not a.size:
        return a
    s, u, vh = svd_p.eval(a, **_THIN)
    # Well-conditioned matrices lose nothing by their inverses; NaN goes through either way.
    if (s[..., -1] > 1e-3 * s[..., 0]).all():
        return np.linalg.inv(a) * np.linalg.det(a)[..., None, None]
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    scale = others * (np.linalg.det(u) * np.linalg.det(vh))[..., None]
    v = np.swapaxes(vh, -1, -2).conj()
    return (v * scale[..., None, :]) @ np.swapaxes(u, -1, -2).conj()


def _adjugate_call(ins: Any, outs: Any) -> Library:
    batch, n = ins[0].shape[:-2], ins[0].shape[-1]
    return native("adjugate", n, (count(batch), n))


def _adjugate_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    """Derivative in the basis of singular vectors, where the adjugate is diagonal.

    ``adj(S + B)`` has to first order ``-b_ij`` times all values but two off the diagonal, and on
    it the sums of ``b_jj`` times all values but two. In double precision: entries are as exact as
    the largest singular value.
    """
    out = bind(adjugate_p, *primals)
    kind = complex128 if is_complex(out.dtype) else float64
    a, da = convert(primals[0], kind), convert(tangents[0], kind)
    s, u, vh = bind(svd_p, a, **_THIN)
    inner = matmul(matmul(adjoint(u), da), adjoint(vh))
    pairs = convert_like(_all_but_two(s), a)
    on = matmul(pairs, expand(diagonal(inner), s.ndim))
    on = where_entries(eq, broadcast_in_dim(on, inner.shape, range(on.ndim)))
    phase = mul(bind(det_p, u), bind(det_p, vh))
    change = scale_columns(sub(on, mul(pairs, inner)), _along_last(phase, s))
    return out, convert(matmul(matmul(adjoint(vh), change), adjoint(u)), out.dtype)


def _along_last(x: Any, like: Any) -> Any:
    return broadcast_in_dim(x, like.shape, tuple(range(x.ndim)))


def _all_but_two(s: Any) -> Any:
    """Return, at ``(i, j)``, the product of all values but the i-th and j-th; 0 where they meet."""
    n, lead = s.shape[-1], s.ndim - 1
    shape = (*s.shape[:-1], n, n, n)
    row, column, place = (iota(shape, lead + axis) for axis in range(3))
    left_out = bitwise_or(eq(row, place), eq(column, place))
    axes = (*range(lead), lead + 2)
    values = broadcast_in_dim(s, shape, axes)
    products = _product(select(left_out, 1, values))
    return sub(products, where_entries(eq, products))


adjugate_p = kernel_call(
    "adjugate",
    aval=_adjugate_aval,
    eval=_adjugate_eval,
    call=_adjugate_call,
    jvp=_adjugate_jvp,
    batch=one_more_axis(),
)


# ---- logarithms ----------------------------------------------------------------------------------


def _slogdet_aval(a: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    batch, _ = check_square("slogdet", a)
    return a.update(shape=batch), a.update(shape=batch, dtype=to_real(a.dtype))


def _slogdet_eval(a: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.linalg.slogdet(a))


def _slogdet_call(ins: Any, outs: Any) -> Library:
    batch, n = ins[0].shape[:-2], ins[0].shape[-1]
    return native(parted("log_determinant", ins[0]), n, (count(batch), n), lu_flops(n, n))


def _slogdet_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    """``d log det = trace(A^-1 dA)``: its real part changes the size, its imaginary the phase."""
    (a,), (da,) = primals, tangents
    factors, pivots, order = bind(lu_p, a)
    pivot = diagonal(factors)
    axis = pivot.ndim - 1
    size = calls.abs(pivot)
    log = reduce_sum(calls.log(size), (axis,))
    sign = mul(_parity(pivots, a.dtype), _product(_phase(pivot, size)))
    flags = {"transpose_a": False, "conjugate_a": False}
    ratio = bind(factored_solve_p, a, factors, order, da, **flags)
    ratio = reduce_sum(diagonal(ratio), (axis,))
    if not is_complex(a.dtype):
        return [sign, log], [zero_of(sign), ratio]
    turn = calls.complex(full(log.aval, 0), imag(ratio))
    return [sign, log], [mul(sign, turn), real(ratio)]


def _phase(x: Any, size: Any) -> Any:
    if is_complex(x.dtype):
        return div(x, calls.complex(size, full(size.aval, 0)))
    return sign(x)


slogdet_p = kernel_call(
    "slogdet",
    aval=_slogdet_aval,
    eval=_slogdet_eval,
    call=_slogdet_call,
    multiple_results=True,
    jvp=_slogdet_jvp,
    batch=one_more_axis(),
)


def slogdet(a: Any) -> tuple[Array, Array]:
    """Return phases and logarithms of the sizes of the determinants of square matrices."""
    sign, log = bind(slogdet_p, a)
    return sign, log
