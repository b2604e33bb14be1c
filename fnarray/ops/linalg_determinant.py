"""Determinants, with derivatives that share the factors and hold at singular matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import int32, is_complex, to_real
from ..core.forms import Call
from ..core.tangents import zero_of
from ..core.trace import bind
from ._derive import (
    Tangents,
    broadcast,
    convert,
    expand,
    full,
    mul,
    one_more_axis,
    op,
    reduce_sum,
    reshape,
    select,
)
from ._matrix import (
    check_square,
    count,
    cut,
    diagonal,
    join,
    native,
    take_along,
    triu,
    where_entries,
)
from ._rules import kernel_call
from .linalg_factor import lu_p
from .linalg_solve import factored_solve_p

__all__: list[str] = []


def _det_aval(a: ShapedArray) -> ShapedArray:
    batch, _ = check_square("det", a)
    return a.update(shape=batch)


def _det_call(ins: Any, outs: Any) -> Call:
    batch, n = ins[0].shape[:-2], ins[0].shape[-1]
    return native("determinant", n, (count(batch), n), lambda a: (np.linalg.det(a),))


def _parity(pivots: Any, dtype: Any) -> Any:
    """Return 1 for an even number of exchanges, -1 for an odd one."""
    places = op("iota", dtype=int32, shape=pivots.shape, dimension=pivots.ndim - 1)
    moved = convert(op("ne", pivots, places), dtype)
    factor = op("sub", full(moved.aval, 1), mul(moved, 2))
    return _product(factor)


def _product(x: Any, axis: int = -1) -> Any:
    return op("reduce_prod", x, axes=(x.ndim + axis,))


def _det_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    """``d det = trace(adj(A) dA)`` (Jacobi), whatever the rank."""
    out = bind(det_p, *primals)
    terms = op("mul", swap(bind(adjugate_p, *primals)), tangents[0])
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


def _slogdet_aval(a: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    batch, _ = check_square("slogdet", a)
    return a.update(shape=batch), a.update(shape=batch, dtype=to_real(a.dtype))


def _slogdet_eval(a: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.linalg.slogdet(a))


def _slogdet_call(ins: Any, outs: Any) -> Call:
    batch, n = ins[0].shape[:-2], ins[0].shape[-1]
    return native("log_determinant", n, (count(batch), n), _slogdet_eval)


def _slogdet_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    """``d log det = trace(A^-1 dA)``: its real part changes the size, its imaginary the phase."""
    (a,), (da,) = primals, tangents
    factors, pivots, order = bind(lu_p, a)
    pivot = diagonal(factors)
    axis = pivot.ndim - 1
    size = op("abs", pivot)
    log = reduce_sum(op("log", size), (axis,))
    sign = op("mul", _parity(pivots, a.dtype), _product(_phase(pivot, size)))
    flags = {"transpose_a": False, "conjugate_a": False}
    ratio = bind(factored_solve_p, a, factors, order, da, **flags)
    ratio = reduce_sum(diagonal(ratio), (axis,))
    if not is_complex(a.dtype):
        return [sign, log], [zero_of(sign), ratio]
    turn = op("complex", full(log.aval, 0), op("imag", ratio))
    return [sign, log], [op("mul", sign, turn), op("real", ratio)]


def _phase(x: Any, size: Any) -> Any:
    if is_complex(x.dtype):
        return op("div", x, op("complex", size, full(size.aval, 0)))
    return op("sign", x)


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
