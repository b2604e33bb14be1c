"""Indexing as in NumPy, lowered as in JAX: to static slices, dynamic slices, or a gather.

Indices out of range never fail, for they may be known only at run time: reads are clamped. (An
axis of size 0 has nothing to clamp to.)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

from ..core.array import Array, ArrayImpl, asarray
from ..core.avals import ShapedArray
from ..core.eager import replayed
from ..core.frozen import frozen
from ..core.source import tidy
from ..core.trace import Tracer, state
from ..errors import ConcretizationTypeError
from ..ops.convert import convert_element_type
from ..ops.dynamic import dynamic_slice
from ..ops.elementwise import add, mul
from ..ops.gather import GatherDimensionNumbers, GatherScatterMode, gather, wrap_negative
from ..ops.kit.canonical import Shape, as_array
from ..ops.kit.moves import moving
from ..ops.shape import broadcast_in_dim, broadcast_shapes, expand_dims, iota, squeeze
from ..ops.slicing import concatenate, rev
from ..ops.slicing import slice as lax_slice
from ._index_parse import ARRAY, BOOL, INT, NONE, SLICE, WINDOW, Entry, Parsed, parse

__all__ = ["getitem"]

_CLAMPS = (GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.CLIP)
#: Results below this many bytes are copied, so that they do not keep a large buffer alive.
_SMALL = 4096
#: Types of indices that need no parsing.
_PLAIN = frozenset({int, slice})
#: Dtypes of places that NumPy refuses out of range: large unsigned ones it takes to be negative.
PLACES = frozenset("bhilqBHI")
#: Types of indices that say the same of every array of a shape.
_STATIC = _PLAIN | {NoneType, EllipsisType}
_INT32 = np.dtype(np.int32)
_INT64 = np.dtype(np.int64)


# --- reading ------------------------------------------------------------------------------------


def getitem(x: Array, idx: Any) -> Array:
    """Return ``x[idx]``.

    Parameters
    ----------
    x : Array
    idx : int, slice, `ds`, None, Ellipsis, integer or boolean array, or tuple of these
        Integers may be traced; masks must be concrete.

    Notes
    -----
    Negative indices count from the end; indices out of range are clamped. For other modes use
    ``x.at[idx].get(mode=...)``.
    """
    try:
        if state.trace is not None or type(x) is not ArrayImpl:
            return take(x, idx)
        data = x._data
        kind = type(idx)
        if 0 in data.shape:  # nothing to clamp to
            return take(x, idx)
        if kind is int and data.ndim:
            n = data.shape[0]
            part = data[min(max(idx + n if idx < 0 else idx, 0), n - 1), ...]
        elif kind is slice and data.ndim:
            part = data[idx]
        elif kind is tuple and len(idx) <= data.ndim and _PLAIN.issuperset(map(type, idx)):
            part = data[(*map(_clamped, idx, data.shape), ...)]
        elif _follows(idx):
            return _read(x, idx)
        else:
            parsed = parse(idx, data.shape)
            if any(e.kind is WINDOW for e in parsed.entries):
                return take(x, idx)
            part = np.asarray(data[_numpy_index(parsed, True)])
        return _share(part, x.aval)
    except Exception as error:
        tidy(error)
        raise


def _follows(idx: Any) -> bool:
    """Whether places follow from settings, or NumPy refuses those out of range."""
    parts = idx if type(idx) is tuple else (idx,)
    if ArrayImpl not in map(type, parts):
        return _STATIC.issuperset(map(type, parts))
    return all(type(i) is ArrayImpl and i.dtype.char in PLACES for i in parts)


def _numpy_reading(x: ArrayImpl, idx: Any) -> Callable[..., Any]:
    """Return what reads by NumPy, for an index of which `_follows` holds."""
    if type(idx) is ArrayImpl:
        return within(lambda data, places: data.take(places, 0))
    if idx and type(idx) is tuple and type(idx[0]) is ArrayImpl:
        return within(lambda data, *places: _kept(np.asarray(data[places])))
    places = _numpy_index(parse(idx, x.shape), True)
    return lambda data: _kept(np.asarray(data[places]))


@replayed(instead=_numpy_reading)
def _read(x: ArrayImpl, idx: Any) -> ArrayImpl:
    return _share(np.asarray(x._data[_numpy_index(parse(idx, x.shape), True)]), x.aval)


def within(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return what reads by NumPy unless it refuses a place, whatever is read there then."""

    def reading(*data: np.ndarray) -> np.ndarray | None:
        try:
            return read(*data)
        except IndexError:
            return None

    return reading


def _clamped(i: Any, n: int) -> Any:
    return i if type(i) is slice else min(max(i + n if i < 0 else i, 0), n - 1)


def _share(part: np.ndarray, aval: ShapedArray) -> ArrayImpl:
    """Return a part of an immutable buffer as an array: a view where that is worth it."""
    return ArrayImpl(_kept(part), ShapedArray(part.shape, aval.dtype, aval.weak_type))


def _kept(part: np.ndarray) -> np.ndarray:
    small = part.nbytes < _SMALL or not part.flags.c_contiguous
    return part.copy(order="C") if small else part


def _numpy_index(parsed: Parsed, wrap: bool) -> tuple[Any, ...]:
    """Return an index for NumPy that does the same to a concrete array, clamped."""
    out: list[Any] = []
    arrays = [np.shape(e.value) for e in parsed.entries if e.kind is ARRAY]
    if len(arrays) > 1:
        broadcast_shapes(*arrays)
    for e in parsed.entries:
        if e.kind in (INT, ARRAY):
            n = parsed.shape[e.axis]
            if not np.shape(e.value):
                at = int(e.value)
                out.append(min(max(at + n if wrap and at < 0 else at, 0), n - 1))
                continue
            at = e.value.astype(np.intp)
            if wrap:
                at += n * (at < 0)
            out.append(np.minimum(np.maximum(at, 0), n - 1))
        else:
            out.append(e.value)
    if not parsed.contiguous:  # an ellipsis of no axes keeps arrays apart in NumPy too
        first = next(k for k, e in enumerate(parsed.entries) if e.kind in (INT, ARRAY, BOOL))
        if _adjacent(parsed):
            out.insert(first + 1, Ellipsis)
    return tuple(out)


def _adjacent(parsed: Parsed) -> bool:
    """Whether advanced indices are neighbours once the ellipsis is spelled out."""
    at = [k for k, e in enumerate(parsed.entries) if e.kind in (INT, ARRAY, BOOL)]
    return all(b - a == 1 for a, b in pairwise(at))


def _nonempty(shape: Shape, e: Entry) -> int:
    n = shape[e.axis]
    if n == 0:
        raise IndexError(f"index is out of bounds for axis {e.axis} with size 0")
    return n


@moving
def take(
    x: Any,
    idx: Any,
    *,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap: bool = True,
) -> Array:
    """Return ``x[idx]`` through operations, by the cheapest of three ways."""
    x = as_array(x)
    parsed = parse(idx, x.shape)
    how = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if how in _CLAMPS:
        sound = how is GatherScatterMode.CLIP or parsed.in_range(wrap)
        if sound and parsed.all_of(INT, SLICE, NONE):
            return _static_slice(x, parsed, wrap)
        if _fits_dynamic_slice(parsed):
            return _dynamic_slice(x, parsed, wrap)
    plan = make_plan(parsed, wrap)
    if plan.bool_dims:
        x = expand_dims(x, plan.bool_dims)
    if 0 in plan.slice_shape:
        zero = ArrayImpl(np.zeros((), x.dtype), ShapedArray((), x.dtype, x.weak_type))
        return broadcast_in_dim(zero, plan.slice_shape, ())
    if 0 not in plan.indices.shape:
        x = gather(
            x,
            plan.indices,
            plan.numbers,
            plan.window,
            unique_indices=unique_indices or plan.basic,
            indices_are_sorted=indices_are_sorted or plan.basic,
            mode=mode,
            fill_value=_fill_scalar(fill_value),
        )
    if plan.reversed_dims:
        x = rev(x, plan.reversed_dims)
    return expand_dims(x, plan.newaxis_dims)


def _fill_scalar(fill_value: Any) -> Any:
    """Return a fill value as a hashable scalar."""
    if fill_value is None:
        return None
    if isinstance(fill_value, Tracer):
        raise ConcretizationTypeError(
            "fill_value argument to indexed get() must be concrete, got "
            f"{fill_value.aval.str_short()}, {fill_value.where_from()}. Read with mode='clip' and "
            "choose by fnarray.numpy.where."
        )
    value = np.asarray(fill_value)
    if value.dtype.kind in "USO":
        raise TypeError(
            f"fill_value argument to indexed get() must be a number, got {fill_value!r} of type "
            f"{type(fill_value)}."
        )
    if value.ndim:
        raise ValueError(
            f"fill_value argument to indexed get() must be a scalar, got shape {value.shape}"
        )
    return value.item() if isinstance(fill_value, np.ndarray | Array) else fill_value


def _bounds(index: slice, n: int) -> tuple[int, int, int]:
    """Return start, limit and positive step of the elements a slice takes, in rising order."""
    start, stop, step = index.indices(n)
    if step > 0:
        return start, max(start, stop), step
    count = len(range(start, stop, step))
    return (start + (count - 1) * step, start + 1, -step) if count else (0, 0, -step)


def _rest(x: Array, parsed: Parsed) -> Array:
    """Reverse, drop and insert axes of a sliced array as the indices ask."""
    reverse, drop, insert, kept = [], [], [], 0
    for e in parsed.entries:
        if e.kind is NONE:
            insert.append(kept + len(insert))
        elif e.kind is SLICE:
            kept += 1
            if e.value.step is not None and int(e.value.step) < 0:
                reverse.append(e.axis)
        elif e.kind is WINDOW:
            kept += 1
        else:
            drop.append(e.axis)
    if reverse:
        x = rev(x, reverse)
    if drop:
        x = squeeze(x, drop)
    return expand_dims(x, insert) if insert else x


def _static_slice(x: Array, parsed: Parsed, wrap: bool) -> Array:
    starts, limits, strides = [], [], []
    for e in parsed.entries:
        if e.kind is INT:
            n = _nonempty(parsed.shape, e)
            at = e.value + n if wrap and e.value < 0 else e.value
            at = min(max(at, 0), n - 1)
            start, limit, step = at, at + 1, 1
        elif e.kind is SLICE:
            start, limit, step = _bounds(e.value, parsed.shape[e.axis])
        else:
            continue
        starts.append(start)
        limits.append(limit)
        strides.append(step)
    plain = all(s == 1 for s in strides)
    if not (plain and not any(starts) and tuple(limits) == parsed.shape):
        x = lax_slice(x, starts, limits, None if plain else strides)
    return _rest(x, parsed)


def _fits_dynamic_slice(parsed: Parsed) -> bool:
    return all(
        e.kind in (INT, NONE)
        or (e.kind is SLICE and e.value.step in (None, 1, -1))
        or (e.kind is WINDOW and e.value.stride == 1)
        or (e.kind is ARRAY and not np.shape(e.value) and parsed.shape[e.axis])
        for e in parsed.entries
    )


def _dynamic_slice(x: Array, parsed: Parsed, wrap: bool) -> Array:
    starts: list[Any] = []
    sizes = []
    for e in parsed.entries:
        if e.kind is NONE:
            continue
        n = parsed.shape[e.axis]
        if e.kind is SLICE:
            start, limit, _ = _bounds(e.value, n)
            sizes.append(limit - start)
        elif e.kind is WINDOW:
            start = e.value.start
            sizes.append(e.value.size)
        else:
            _nonempty(parsed.shape, e)
            start = as_index(e.value, x.shape) if e.kind is INT else e.value
            sizes.append(1)
        starts.append(start)
    if len(starts) > 1:  # starts must have one dtype
        starts = [as_index(s, x.shape) for s in starts]
    else:
        starts = [_widened(s, n) for s, n in zip(starts, x.shape, strict=True)]
    return _rest(dynamic_slice(x, starts, sizes, allow_negative_indices=wrap), parsed)


def _index_dtype(shape: Shape) -> np.dtype:
    return _INT32 if all(n <= np.iinfo(np.int32).max for n in shape) else _INT64


def as_index(value: Any, shape: Shape) -> Array:
    """Return an index as an array of the dtype that gathers from a shape use."""
    dtype = _index_dtype(shape)
    if not isinstance(value, Array):
        return asarray(np.asarray(value).astype(dtype))
    return value if value.dtype == dtype else convert_element_type(value, dtype)


def _widened(index: Any, n: int) -> Any:
    """Return an index whose dtype can hold the size of its axis, for wrapping."""
    narrow = isinstance(index, Array | np.ndarray) and np.iinfo(index.dtype).max < n
    return as_index(index, (n,)) if narrow else index


# --- gathers and scatters -----------------------------------------------------------------------


@frozen
class Plan:
    """How an index expression is a gather, and, mirrored, a scatter.

    Parameters
    ----------
    slice_shape : tuple of int
        Shape of the result, new axes included.
    window : tuple of int
        Extents of the windows that are gathered.
    indices : Array
        Index vectors.
    numbers : GatherDimensionNumbers
    basic : bool
        Whether there are no advanced indices, so that places are distinct and ascending.
    reversed_dims : tuple of int
        Axes of what is gathered that run backwards.
    newaxis_dims : tuple of int
        Axes of the result that ``None`` inserts.
    bool_dims : tuple of int
        Axes of size 1 to insert in the operand, for scalar masks to index.
    """

    slice_shape: Shape
    window: Shape
    indices: Array
    numbers: GatherDimensionNumbers
    basic: bool
    reversed_dims: Shape
    newaxis_dims: Shape
    bool_dims: Shape


def _spell_out_bools(parsed: Parsed) -> tuple[Parsed, Shape]:
    """Turn scalar masks into arrays that index new axes of size 1: one element or none."""
    if parsed.all_of(INT, SLICE, NONE, ARRAY):
        return parsed, ()
    shape, entries, dims, shift, axis = list(parsed.shape), [], [], 0, 0
    for e in parsed.entries:
        if e.kind is BOOL:
            shape.insert(axis, 1)
            dims.append(axis)
            entries.append(Entry(ARRAY, np.arange(int(e.value)), axis))
            shift += 1
        else:
            entries.append(Entry(e.kind, e.value, e.axis + shift if e.axis >= 0 else -1))
        axis += entries[-1].axis >= 0
    return Parsed(tuple(shape), tuple(entries), parsed.contiguous), tuple(dims)


def _wrapped(value: Any, n: int, wrap: bool) -> Any:
    if not wrap:
        return value
    if isinstance(value, np.ndarray):
        value = value.astype(np.intp)
        return np.where(value < 0, value + n, value)
    return wrap_negative(_widened(value, n), n)


def _advanced_columns(
    advanced: list[Entry], shape: Shape, wrap: bool, first: int
) -> tuple[Shape, list[tuple[Any, int, int]]]:
    """Return the common shape of advanced indices, and each of them broadcast to it."""
    common = broadcast_shapes(*[np.shape(a.value) for a in advanced])
    columns = []
    for a in advanced:
        value = as_index(_wrapped(a.value, shape[a.axis], wrap), shape)
        dims = range(len(common) - value.ndim, len(common))
        columns.append((broadcast_in_dim(value, common, dims), first, a.axis))
    return common, columns


def _window(parsed: Parsed, collapsed: list[int]) -> tuple[int, ...]:
    """Return the shape of what each index gathers."""
    return tuple(
        1 if e.axis in collapsed else _extent(e, parsed.shape)[1]
        for e in parsed.entries
        if e.axis >= 0
    )


def make_plan(parsed: Parsed, wrap: bool) -> Plan:
    """Return how parsed indices are a gather."""
    parsed, bool_dims = _spell_out_bools(parsed)
    shape = parsed.shape
    advanced: list[Entry] = []
    if any(e.kind is ARRAY and np.shape(e.value) for e in parsed.entries):
        advanced = [e for e in parsed.entries if e.kind in (INT, ARRAY)]
    columns: list[tuple[Any, int, int]] = []  # index array, its first batch axis, operand's axis
    batch: list[int] = []
    out: list[int] = []  # result's shape
    offset, collapsed, new, reverse = [], [], [], []
    taken = 0  # axes of what is gathered
    for k, e in enumerate(parsed.entries):
        if advanced and (e is advanced[0] if parsed.contiguous else k == 0):
            common, more = _advanced_columns(advanced, shape, wrap, len(batch))
            columns += more
            batch += common
            out += common
            taken += len(common)
        if e.kind is NONE:
            new.append(len(out))
            out.append(1)
        elif e.kind in (SLICE, WINDOW):
            start, size, step = _extent(e, shape)
            if e.kind is SLICE and e.value.step is not None and int(e.value.step) < 0:
                reverse.append(taken)
            if step == 1:
                if e.kind is WINDOW or size != shape[e.axis]:
                    columns.append((as_index(start, shape), len(batch), e.axis))
                offset.append(taken)
            else:
                columns.append((_stride(start, step, size, shape), len(batch), e.axis))
                collapsed.append(e.axis)
                batch.append(size)
            out.append(size)
            taken += 1
        else:
            collapsed.append(e.axis)
            if not advanced:
                _nonempty(shape, e)
                index = as_index(_wrapped(e.value, shape[e.axis], wrap), shape)
                columns.append((index, len(batch), e.axis))
    numbers = GatherDimensionNumbers(
        tuple(offset), tuple(sorted(collapsed)), tuple(axis for _, _, axis in columns)
    )
    return Plan(
        tuple(out),
        _window(parsed, collapsed),
        _index_vectors(columns, tuple(batch), shape),
        numbers,
        not advanced,
        tuple(reverse),
        tuple(new),
        bool_dims,
    )


def _extent(e: Entry, shape: Shape) -> tuple[Any, int, int]:
    """Return start, size and positive step of the elements that a slice takes, rising."""
    if e.kind is WINDOW:
        return e.value.start, e.value.size, e.value.stride
    start, limit, step = _bounds(e.value, shape[e.axis])
    return start, -(-(limit - start) // step), step


def _stride(start: Any, step: int, size: int, shape: Shape) -> Array:
    """Return the indices that a slice with a step takes, in rising order."""
    dtype = _index_dtype(shape)
    return add(as_index(start, shape), mul(dtype.type(step), iota(dtype, size)))


def _index_vectors(columns: list[tuple[Any, int, int]], batch: Shape, shape: Shape) -> Array:
    """Lay index arrays side by side, each along its axes of the batch."""
    if not columns:
        return asarray(np.zeros(0, _index_dtype(shape)))
    if len(columns) == 1:
        only = columns[0][0]
        return expand_dims(only, (only.ndim,))
    parts = [
        broadcast_in_dim(value, (*batch, 1), range(first, first + value.ndim))
        for value, first, _ in columns
    ]
    return concatenate(parts, len(batch))
