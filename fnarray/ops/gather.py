"""Gather: windows of an array at places that another array holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.array import Array, ArrayImpl, aval_of
from ..core.avals import ShapedArray
from ..core.forms import Reindex
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive
from ..core.record import known_of
from ..core.trace import bind, state, trace_graph
from ..errors import ShapeError
from ._windows import GatherDimensionNumbers, GatherScatterMode, Windows
from .convert import convert_element_type
from .elementwise import add, rem
from .kit.calls import full, lt, scatter_add, select_n
from .kit.canonical import Shape, canonical_ints, canonical_shape
from .kit.checks import INTEGER, kind
from .kit.moves import moving
from .kit.registry import register
from .kit.rules import partials
from .shape import expand_dims
from .slicing import concatenate

__all__ = ["GatherDimensionNumbers", "GatherScatterMode", "gather", "index_take"]

#: Modes in which windows that are not inside read as a fill value.
FILLING = (GatherScatterMode.FILL_OR_DROP, GatherScatterMode.ONE_HOT)


def canonical_numbers(name: str, kind_of: type, numbers: Any) -> Any:
    """Return dimension numbers with every field a tuple of ``int``."""
    if not isinstance(numbers, kind_of):
        raise TypeError(
            f"lax.{name}: dimension_numbers must be a {kind_of.__name__}, got {numbers!r}."
        )
    return kind_of(
        *(canonical_ints(name, f, v) for f, v in zip(kind_of._fields, numbers, strict=True))
    )


@lru_cache(maxsize=4096)
def _windows(
    operand: Shape, indices: Shape, numbers: GatherDimensionNumbers, sizes: Shape
) -> Windows:
    windows = Windows(
        operand,
        sizes,
        indices,
        numbers.offset_dims,
        numbers.collapsed_slice_dims,
        numbers.start_index_map,
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
    )
    windows.check("gather")
    return windows


def check_indices(name: str, indices: ShapedArray) -> None:
    """Raise unless an array can hold index vectors."""
    if kind(indices.dtype) not in INTEGER:
        raise ValueError(f"lax.{name}: indices must have an integer type, got {indices.dtype}.")
    if not indices.shape:
        raise ShapeError(f"lax.{name}: indices must have a last axis of index vectors, got rank 0.")


def _aval(
    x: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    **params: Any,
) -> ShapedArray:
    check_indices("gather", indices)
    windows = _windows(x.shape, indices.shape, dimension_numbers, slice_sizes)
    inner = iter(slice_sizes[d] for d in windows.window_axes)
    outer = iter(windows.batch)
    rank = len(windows.batch) + len(windows.offset_dims)
    return x.update(
        shape=tuple(next(inner if d in windows.offset_dims else outer) for d in range(rank))
    )


def _fill_scalar(fill_value: Any, dtype: np.dtype) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(fill_value).astype(dtype)[()]


def _eval(
    x: np.ndarray,
    indices: np.ndarray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    mode: GatherScatterMode,
    fill_value: Any,
    **params: Any,
) -> np.ndarray:
    windows = _windows(x.shape, indices.shape, dimension_numbers, slice_sizes)
    starts, inside = windows.starts(indices)
    if x.size == 0 and inside.size:
        inside = np.zeros_like(inside)
    order, index, axes = windows.lattice(starts)
    if not starts:
        taken = np.broadcast_to(x[index], (*windows.batch, *x[index].shape))
    elif not inside.size or 0 in slice_sizes:
        shape = np.broadcast_shapes(*[i.shape for i in index if isinstance(i, np.ndarray)])
        rest = tuple(s.stop for s in index if isinstance(s, slice))
        taken = np.zeros((*shape, *rest), x.dtype)
    else:
        taken = x.transpose(order)[index]
    out = taken.transpose(axes)
    if mode in FILLING and not inside.all():
        mask = np.expand_dims(inside, windows.offset_dims)
        out = np.where(mask, out, _fill_scalar(fill_value, x.dtype))
    return out


def _known_gather(
    x: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    **params: Any,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Return what takes whole rows, columns or elements, where all are inside; else asks `_eval`.

    Three elements of a matrix took 25 us by windows, and take 7.
    """
    windows = _windows(x.shape, indices.shape, dimension_numbers, slice_sizes)
    if windows.rows is None or not (x.size and indices.size) or indices.dtype.kind != "i":
        return None
    order, axes = windows.rows
    known = {"dimension_numbers": dimension_numbers, "slice_sizes": slice_sizes, **params}

    def take(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        places = windows.places(indices)
        if places is None:
            return _eval(x, indices, **known)
        x = x.transpose(order)
        taken = x.take(places[0], 0) if len(places) == 1 else x[places]
        return taken.transpose(axes)

    return take


known_of[_eval] = _known_gather


def _form(
    ins: Any,
    outs: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    mode: GatherScatterMode,
    fill_value: Any,
    **params: Any,
) -> Reindex:
    windows = _windows(ins[0].shape, ins[1].shape, dimension_numbers, slice_sizes)
    if mode not in FILLING:
        return Reindex(lambda i, read: windows.index(i, read, clip=True))
    return Reindex(
        lambda i, read: windows.index(i, read, clip=False),
        windows.bounds,
        _fill_scalar(fill_value, outs[0].dtype),
    )


@lru_cache(maxsize=256)
def combiner(face: Callable[..., Any], dtype: np.dtype) -> ClosedGraph:
    """Return the graph of ``face(old, update)``; one object per dtype, so that params are equal."""
    scalar = ShapedArray((), dtype)
    return trace_graph(lambda old, new: (face(old, new),), (scalar, scalar), face.__name__)


def _tangent(g: Any, out: Any, x: Any, indices: Any, **params: Any) -> Array:
    filled = params["fill_value"] is not None
    return bind(gather_p, g, indices, **{**params, "fill_value": 0 if filled else None})


def _transpose(
    ct: Any,
    x: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    **params: Any,
) -> list[Any]:
    dx = scatter_add(
        full(x.aval, 0),
        indices,
        ct,
        dimension_numbers=dimension_numbers.scatter(),
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        unique_indices=unique_indices,
        update_jaxpr=combiner(add, ct.dtype),
    )
    return [dx, None]


def _batch(
    size: int,
    operands: Sequence[Any],
    batched: Sequence[bool],
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    **params: Any,
) -> Array:
    if batched[0]:
        slice_sizes = (1 if batched[1] else size, *slice_sizes)
    numbers = dimension_numbers.led(*batched)
    return bind(gather_p, *operands, dimension_numbers=numbers, slice_sizes=slice_sizes, **params)


gather_p = register(
    Primitive(
        "gather",
        aval=_aval,
        eval=_eval,
        form=_form,
        jvp=partials(_tangent, None),
        transpose=_transpose,
        batch=_batch,
    )
)


def _default_fill(dtype: np.dtype) -> Any:
    letter = kind(dtype)
    if letter in "fc":
        return np.nan
    if letter == "b":
        return True
    info = np.iinfo(dtype)
    return int(info.min if letter == "i" else info.max)


def wrap_negative(index: Any, size: int) -> Any:
    """Return an index along an axis of ``size``, counted from the end where it is negative.

    Integers known now are wrapped now; traced ones by equations. What is not an integer is
    returned as it is, for the operation's rule to refuse.
    """
    aval = aval_of(index)
    if kind(aval.dtype) != "i":
        return index
    if isinstance(index, int | np.integer):
        return aval.dtype.type(index + size if index < 0 else index)
    if state.trace is None and not aval.shape and isinstance(index, ArrayImpl | np.ndarray):
        value = int(index)
        return aval.dtype.type(value + size) if value < 0 else index
    if aval.dtype.itemsize <= 2 and size > np.iinfo(aval.dtype).max:
        index, aval = convert_element_type(index, np.int32), aval.update(dtype=np.int32)
    zero, n = aval.dtype.type(0), np.asarray(size).astype(aval.dtype)[()]
    return select_n(lt(index, zero), index, add(index, n))


@moving
def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """Take windows of an array, one for each index vector.

    Parameters
    ----------
    operand : array_like
    start_indices : integer array_like
        Its last axis holds the index vectors.
    dimension_numbers : GatherDimensionNumbers
    slice_sizes : sequence of int
        Extents of a window along the operand's axes.
    unique_indices, indices_are_sorted : bool
        Promises about the index vectors.
    mode : GatherScatterMode or str, optional
        What windows not entirely inside read as; by default they are moved inside.
    fill_value : scalar, optional
        What ``mode="fill"`` reads; by default NaN, the smallest signed integer, the largest
        unsigned one, or True.

    Raises
    ------
    TypeError
        For dimension numbers that do not fit the shapes.
    ValueError
        For indices that are not integers.

    Notes
    -----
    XLA's Gather, with the index vectors in the last axis.
    """
    if mode is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    mode = GatherScatterMode.from_any(mode)
    if mode is GatherScatterMode.FILL_OR_DROP:
        if fill_value is None:
            fill_value = _default_fill(aval_of(operand).dtype)
    else:
        fill_value = 0 if mode is GatherScatterMode.ONE_HOT else None
    return bind(
        gather_p,
        operand,
        start_indices,
        dimension_numbers=canonical_numbers("gather", GatherDimensionNumbers, dimension_numbers),
        slice_sizes=canonical_shape("gather", slice_sizes),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        fill_value=fill_value,
    )


def _modulo(index: Any, size: int) -> Array:
    n = np.asarray(size).astype(aval_of(index).dtype)
    return wrap_negative(rem(index, n[()]), size)


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Take elements at integer arrays ``idxs`` along axes; the result's first axis runs over them.

    Parameters
    ----------
    src : array_like
    idxs : sequence of integer arrays of rank 1
        Of one length; entries are taken modulo the size of their axis.
    axes : sequence of int
        For each of them, the axis it indexes.
    """
    shape = aval_of(src).shape
    axes = canonical_ints("index_take", "axes", axes)
    columns = [expand_dims(_modulo(i, shape[a]), (1,)) for i, a in zip(idxs, axes, strict=True)]
    numbers = GatherDimensionNumbers(
        tuple(range(1, len(shape) - len(axes) + 1)), tuple(sorted(axes)), axes
    )
    sizes = tuple(1 if d in axes else n for d, n in enumerate(shape))
    return gather(src, concatenate(columns, 1), numbers, sizes)


def take_along(x: Any, order: Any, axis: int) -> Array:
    """Rearrange the rows (axis -2) or columns (axis -1) of matrices, each by its own order."""
    lead = x.ndim - 2
    batch = tuple(range(lead))
    moved = lead if axis == -2 else lead + 1
    sizes = [1] * lead + list(x.shape[-2:])
    sizes[moved] = 1
    numbers = GatherDimensionNumbers(
        offset_dims=(lead + 1 if axis == -2 else lead,),
        collapsed_slice_dims=(moved,),
        start_index_map=(moved,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    places = expand_dims(order, (order.ndim,))
    return gather(x, places, numbers, sizes, mode="promise_in_bounds")
