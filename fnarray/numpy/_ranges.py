"""Evenly spaced numbers."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal, overload

import numpy as np

from .. import lax
from ..core.array import Array, ArrayImpl
from ..core.dtypes import (
    canonicalize_dtype,
    dtype_and_weak,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    lattice_result_type,
    to_inexact,
)
from ..core.eager import replayed
from ..core.hooks import cut_as
from ..core.trace import Tracer
from ..errors import ConcretizationTypeError
from ..ops.kit.calls import convert
from ..ops.kit.canonical import canonical_axis
from ._creation import _SCALARS, DTypeLike
from ._promote import as_operand, broadcast_to, operands, promote_dtypes_inexact

__all__ = ["arange", "geomspace", "linspace", "logspace"]


def _concrete(name: str, what: str, x: Any) -> Any:
    """Return a number whose value is known, as a Python or NumPy scalar."""
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            f"numpy.{name}: {what} must be concrete, as the result's shape depends on it; it is "
            f"{x.where_from()}. Take it from x.shape, or mark the argument it depends on static."
        )
    if x is None:
        raise TypeError(f"numpy.{name}: {what} must be a number, got None.")
    if isinstance(x, ArrayImpl):
        x = np.asarray(x)[()]
    if np.ndim(x):
        raise TypeError(f"numpy.{name}: {what} must be a scalar, got shape {np.shape(x)}.")
    if np.iscomplexobj(x):
        raise ValueError(f"numpy.{name}: {what} must be real, got {x!r}.")
    return x


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Numbers from ``start`` up to but not including ``stop``, by ``step``.

    ``arange(n)`` counts from 0. The number of elements is ``ceil((stop - start) / step)``; it must
    be known while tracing.

    Parameters
    ----------
    start, stop, step : number
    dtype : dtype-like, optional
        That of the bounds together by default.

    Raises
    ------
    ConcretizationTypeError
        For a traced bound.
    ZeroDivisionError
        For ``step`` 0.
    """
    if device is not None or out_sharding is not None:
        where = device if out_sharding is None else out_sharding
        return cut_as(where, arange, start, stop, step, dtype)
    given = [x for x in (start, stop, step) if x is not None]
    for x in given:
        as_operand("arange", x)
    first = _concrete("arange", "start", start)
    last = None if stop is None else _concrete("arange", "stop", stop)
    by = 1 if step is None else _concrete("arange", "step", step)
    if last is None:
        first, last = 0, first
    target = canonicalize_dtype(dtype) if dtype is not None else _arange_dtype(given)
    if by == 0:
        raise ZeroDivisionError("numpy.arange: step must not be 0.")
    count = max(0, math.ceil(_exact(last - first, by)))
    counted = lax.iota(target, count)
    if by != 1:
        counted = lax.mul(convert(np.asarray(by).item(), target), counted)
    if first != 0 or by != 1:
        counted = lax.add(convert(np.asarray(first).item(), target), counted)
    return counted


def _exact(difference: Any, by: Any) -> Any:
    if isinstance(difference, int | np.integer) and isinstance(by, int | np.integer):
        return -(-int(difference) // int(by))
    return difference / by


def _arange_dtype(values: list[Any]) -> np.dtype:
    pairs = []
    for x in values:
        # Bounds too large for the default integer still count, modulo its width.
        dtype = canonicalize_dtype(int) if type(x) is int else dtype_and_weak(x)[0]
        pairs.append((dtype, type(x) in _SCALARS and type(x) is not bool))
    dtype, _ = lattice_result_type(pairs)
    if dtype == np.bool_:
        raise TypeError("numpy.arange: bounds must be numbers, got bool.")
    return dtype


@overload
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: Literal[False] = False,
    dtype: DTypeLike = None, axis: int = 0, *, device: Any = None,
) -> Array: ...  # fmt: skip


@overload
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, *, retstep: Literal[True],
    dtype: DTypeLike = None, axis: int = 0, device: Any = None,
) -> tuple[Array, Array]: ...  # fmt: skip


@replayed
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Evenly spaced numbers from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop : array_like
        Broadcast together; may be traced.
    num : int
        How many; concrete.
    endpoint : bool
        Whether ``stop`` is the last of them.
    retstep : bool
        Return the spacing too.
    dtype : dtype-like, optional
        Inexact by default; integers are rounded down.
    axis : int
        Of the result, along which the numbers lie.

    Returns
    -------
    Array, or pair of Array

    Raises
    ------
    ValueError
        For a negative ``num``.
    """
    if device is not None:
        made = linspace(start, stop, num, endpoint, dtype=dtype, axis=axis, retstep=True)
        out = cut_as(device, lambda: made[0])
        return (out, made[1]) if retstep else out
    num = operator.index(_concrete("linspace", "num", num))
    if num < 0:
        raise ValueError(f"numpy.linspace: num must not be negative, got {num}.")
    start, stop = operands("linspace", start, stop)
    target = canonicalize_dtype(dtype) if dtype is not None else None
    start, stop = promote_dtypes_inexact(start, stop)
    work = start.dtype if target is None or not is_inexact(target) else _join(start.dtype, target)
    start, stop = convert(start, work), convert(stop, work)
    shape = lax.broadcast_shapes(start.shape, stop.shape)
    start, stop = broadcast_to("linspace", start, shape), broadcast_to("linspace", stop, shape)
    steps = num - 1 if endpoint else num
    delta = lax.sub(stop, start)
    step = lax.div(delta, convert(steps, work)) if steps > 0 else lax.full_like(start, np.nan)
    if num == 1 and not endpoint:
        step = delta
    out = _spaced(start, stop, steps, num, endpoint)
    if target is not None and is_integer(target):
        out = lax.floor(out)
    if axis := canonical_axis("linspace", axis, out.ndim):
        order = [*range(1, out.ndim)]
        out = lax.transpose(out, (*order[:axis], 0, *order[axis:]))
    out = convert(out, work if target is None else target)
    return (out, step) if retstep else out


def _join(a: np.dtype, b: np.dtype) -> np.dtype:
    return lattice_result_type([(a, False), (b, False)])[0]


def _spaced(start: Array, stop: Array, steps: int, num: int, endpoint: bool) -> Array:
    """``start (1 - t) + stop t``, which is exact at both ends; ``stop`` itself as the last."""
    ones = (1,) * start.ndim
    work = start.dtype
    if num == 0:
        return lax.full((0, *start.shape), 0, work)
    rows = (1, *start.shape)
    if num == 1:
        return lax.reshape(start, rows)
    count = steps if endpoint else num
    real = np.dtype(work.type(0).real.dtype) if is_complex(work) else work
    t = lax.div(lax.iota(real, count), convert(steps, real))
    t = lax.reshape(convert(t, work), (count, *ones))
    start_row, stop_row = lax.reshape(start, rows), lax.reshape(stop, rows)
    out = lax.add(lax.mul(start_row, lax.sub(convert(1, work), t)), lax.mul(stop_row, t))
    return lax.concatenate([out, stop_row], 0) if endpoint else out


@replayed
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Array:
    """Powers of ``base`` whose exponents are evenly spaced; parameters are as of `linspace`."""
    exponents = linspace(start, stop, num, endpoint, dtype=None, axis=axis)
    base, exponents = promote_dtypes_inexact(base, exponents)
    rank = max(base.ndim, exponents.ndim)
    base, exponents = (lax.broadcast_to_rank(x, rank) for x in (base, exponents))
    out = lax.pow(base, exponents)
    return out if dtype is None else convert(out, canonicalize_dtype(dtype))


@replayed
def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Array:
    """Numbers with a constant ratio from ``start`` to ``stop``; parameters are as of `linspace`.

    The bounds must have one sign; else the result is NaN, unless they are complex.
    """
    start, stop = promote_dtypes_inexact(*operands("geomspace", start, stop))
    target = start.dtype if dtype is None else canonicalize_dtype(dtype)
    work = _join(start.dtype, to_inexact(target))
    start, stop = convert(start, work), convert(stop, work)
    shape = lax.broadcast_shapes(start.shape, stop.shape)
    start, stop = broadcast_to("geomspace", start, shape), broadcast_to("geomspace", stop, shape)
    sign = lax.sign(start)
    to_exponent = convert(math.log10(math.e), work)
    low, high = (lax.mul(lax.log(lax.div(x, sign)), to_exponent) for x in (start, stop))
    out = logspace(low, high, num, endpoint, axis=0)
    out = lax.mul(lax.reshape(sign, (1, *shape)), out)
    if num > 0 and is_float(work):
        out = lax.concatenate([lax.reshape(start, (1, *shape)), *_tail(out, stop, endpoint)], 0)
    if axis := canonical_axis("geomspace", axis, out.ndim):
        order = [*range(1, out.ndim)]
        out = lax.transpose(out, (*order[:axis], 0, *order[axis:]))
    return convert(out, target)


def _tail(out: Array, stop: Array, endpoint: bool) -> list[Array]:
    count = out.shape[0]
    if count == 1:
        return []
    if not endpoint:
        return [lax.slice_in_dim(out, 1, count)]
    middle = lax.slice_in_dim(out, 1, count - 1)
    return [middle, lax.reshape(stop, (1, *stop.shape))]
