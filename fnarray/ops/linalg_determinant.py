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


def _product(x: Any) -> Any:
    return op("reduce_prod", x, axes=(x.ndim - 1,))


def _det_jvp(primals: Any, tangents: Tangents) -> tuple[Any, Any]:
    """``d det = trace(adj(A) dA)``, finite where only the last pivot is zero.

    With ``X = L^-1 P dA`` and ``d`` the last pivot, ``adj(A) dA`` is ``det(A) / d`` times the
    solution for ``U``, its last pivot 1, of ``X`` with the rows but the last scaled by ``d``.
    """
    factors, pivots, order = bind(lu_p, primals[0])
    n = factors.shape[-1]
    pivot = diagonal(factors)
    axis = pivot.ndim - 1
    last = cut(pivot, axis, n - 1, n)
    others = op("mul", _parity(pivots, factors.dtype), _product(cut(pivot, axis, 0, n - 1)))
    out = op("mul", others, reshape(last, last.shape[:-1]))
    change = take_along(tangents[0], order, -2)
    flags = {"left_side": True, "transpose_a": False, "conjugate_a": False}
    x = op("triangular_solve", factors, change, lower=True, unit_diagonal=True, **flags)
    rows = x.ndim - 2
    scale = broadcast(expand(last, last.ndim), (*x.shape[:-2], n - 1, n))
    scaled = op("mul", cut(x, rows, 0, n - 1), scale)
    x = join([scaled, cut(x, rows, n - 1, n)], -2)
    ones = full(last.aval, 1)
    safe = join([cut(pivot, axis, 0, n - 1), ones], -1)
    high = where_entries("eq", broadcast(expand(safe, axis), factors.shape), other=triu(factors))
    y = op("triangular_solve", high, x, lower=False, unit_diagonal=False, **flags)
    trace = reduce_sum(diagonal(y), (axis,))
    lost = op("eq", others, full(others.aval, 0))
    return out, select(lost, full(others.aval, 0), op("mul", others, trace))


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
