"""Slices whose start is known only at run time."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import symbolic
from ..core.array import Array, asarray, aval_of
from ..core.avals import ShapedArray
from ..core.forms import Reindex, Update
from ..core.primitive import Primitive
from ..core.tangents import is_undefined
from ..core.trace import bind
from ..errors import ShapeError
from ._windows import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from .convert import convert_element_type
from .gather import gather_p, wrap_negative
from .kit import calls
from .kit.calls import broadcast, const, full
from .kit.canonical import Shape, as_array, canonical_axis, canonical_shape
from .kit.checks import INTEGER, all_weak, check_same_dtypes, kind
from .kit.moves import moving
from .kit.registry import register
from .kit.rules import linear_in, spread
from .scatter import scatter_p
from .shape import expand_dims, squeeze
from .slicing import concatenate, index_in_dim

__all__ = [
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
]


# --- starts -------------------------------------------------------------------------------------


def _reaching(starts: Sequence[Any], shape: Shape) -> Sequence[Any]:
    """Return starts in int32 where their own dtype cannot count from the end of every axis."""
    dtypes = {aval_of(s).dtype for s in starts}
    if len(dtypes) != 1 or kind(dtype := dtypes.pop()) != "i" or dtype.itemsize > 2:
        return starts
    if max(shape) <= np.iinfo(dtype).max:
        return starts
    return [convert_element_type(s, np.int32) for s in starts]


def _starts(
    name: str, operand: Any, start_indices: Any, allow_negative_indices: bool | Sequence[bool]
) -> list[Any]:
    """Return one start for each axis, negative ones counted from the end where allowed."""
    shape = aval_of(operand).shape
    if len(start_indices) != len(shape):
        raise ValueError(
            f"lax.{name}: Length of slice indices must match number of operand dimensions, got "
            f"{len(start_indices)} indices for shape {shape}."
        )
    if isinstance(start_indices, Array | np.ndarray):
        if start_indices.ndim != 1:
            raise ValueError(
                f"lax.{name}: start_indices must be a sequence of scalars, got an array of shape "
                f"{start_indices.shape}."
            )
        if isinstance(start_indices, np.ndarray):
            start_indices = asarray(start_indices)
        start_indices = [
            index_in_dim(start_indices, k, keepdims=False) for k in range(len(start_indices))
        ]
    allowed = allow_negative_indices
    if isinstance(allowed, bool):
        allowed = [allowed] * len(shape)
    out = []
    for start, n, wraps in zip(_reaching(start_indices, shape), shape, allowed, strict=True):
        if not wraps and isinstance(start, int | np.integer) and start < 0:
            raise ValueError(
                f"lax.{name}: Index {start} is out of bounds for dimension {n} if "
                "allow_negative_indices=False"
            )
        out.append(wrap_negative(start, n) if wraps else start)
    return out


def _check_starts(name: str, starts: tuple[ShapedArray, ...]) -> None:
    if any(s.shape for s in starts):
        raise ShapeError(
            f"lax.{name}: start_indices arguments to {name} must be scalars, got shapes "
            f"{', '.join(str(s.shape) for s in starts)}."
        )
    if any(kind(s.dtype) not in INTEGER or s.dtype != starts[0].dtype for s in starts):
        raise TypeError(
            f"lax.{name}: index arguments to {name} must be integers of the same type, got "
            f"{', '.join(s.dtype.name for s in starts)}."
        )


def _box(shape: Shape, sizes: Shape, starts: tuple[np.ndarray, ...]) -> tuple[slice, ...]:
    """Return the box of the given sizes, its starts moved so that it lies within the shape."""
    out = []
    for n, w, start in zip(shape, sizes, starts, strict=True):
        s = min(max(int(start), 0), n - w)
        out.append(slice(s, s + w))
    return tuple(out)


def _moved(i: Any, shape: Shape, sizes: Shape, read: Any, first: int) -> tuple[Any, ...]:
    """Return indices ``i`` within a box as indices of the whole; starts follow ``first``."""
    return tuple(
        symbolic.clamp(read(first + d, ()), 0, n - w) + k
        for d, (k, n, w) in enumerate(zip(i, shape, sizes, strict=True))
    )


def _vectors(
    size: int, starts: Sequence[Any], batched: Sequence[bool], limits: Sequence[int]
) -> tuple[Array | None, Shape]:
    """Return a start vector for each of a batch of boxes, and the axes along which boxes can move.

    Along the others boxes are as wide as the array, whatever their starts.
    """
    axes = tuple(d for d, n in enumerate(limits) if n)
    columns = [
        calls.reshape(starts[d], (size, 1)) if batched[d] else broadcast(starts[d], (size, 1))
        for d in axes
    ]
    return concatenate(columns, 1) if axes else None, axes


def _limits(shape: Shape, sizes: Shape) -> list[int]:
    return [n - w for n, w in zip(shape, sizes, strict=True)]


# --- dynamic_slice ------------------------------------------------------------------------------


def _dynamic_slice_aval(x: ShapedArray, *starts: ShapedArray, slice_sizes: Shape) -> ShapedArray:
    if len(slice_sizes) != x.ndim or any(w > n for w, n in zip(slice_sizes, x.shape, strict=True)):
        raise ShapeError(
            "lax.dynamic_slice: slice_sizes must be less than or equal to operand shape, got "
            f"slice_sizes {slice_sizes} for operand shape {x.shape}."
        )
    _check_starts("dynamic_slice", starts)
    return x.update(shape=slice_sizes)


def _dynamic_slice_form(ins: Any, outs: Any, *, slice_sizes: Shape) -> Reindex:
    shape = ins[0].shape
    return Reindex(lambda i, read: _moved(i, shape, slice_sizes, read, 1))


def _dynamic_slice_transpose(ct: Any, x: Any, *starts: Any, slice_sizes: Shape) -> list[Any]:
    dx = bind(dynamic_update_slice_p, full(x.aval, 0), ct, *starts)
    return [dx, *(None,) * len(starts)]


def _dynamic_slice_batch(
    size: int, operands: Sequence[Any], batched: Sequence[bool], *, slice_sizes: Shape
) -> Array:
    """Slice along the mapped axis where all have one start; gather where each has its own."""
    x, *starts = operands
    if not any(batched[1:]):
        first = const(starts[0], 0) if starts else np.int32(0)
        return bind(dynamic_slice_p, x, first, *starts, slice_sizes=(size, *slice_sizes))
    limits = _limits(x.shape[batched[0] :], slice_sizes)
    vectors, axes = _vectors(size, starts, batched[1:], limits)
    if vectors is None:
        return x if batched[0] else spread(x, size)
    return gather_p.rule("batch")(
        size,
        (x, vectors),
        (batched[0], True),
        dimension_numbers=GatherDimensionNumbers(tuple(range(len(starts))), (), axes),
        slice_sizes=slice_sizes,
        unique_indices=False,
        indices_are_sorted=False,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )


dynamic_slice_p = register(
    Primitive(
        "dynamic_slice",
        aval=_dynamic_slice_aval,
        eval=lambda x, *starts, slice_sizes: x[_box(x.shape, slice_sizes, starts)],
        form=_dynamic_slice_form,
        jvp=linear_in(0),
        transpose=_dynamic_slice_transpose,
        batch=_dynamic_slice_batch,
    )
)


@moving
def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Cut a box of static sizes out of an array, from a start known at run time.

    Parameters
    ----------
    operand : array_like
    start_indices : sequence of integer scalars, or integer array of rank 1
        Negative ones count from the end of their axis. A start from which the box would not
        fit is moved until it does.
    slice_sizes : sequence of int
    allow_negative_indices : bool or sequence of bool
        False promises starts that are not negative, which saves the test.

    Raises
    ------
    TypeError
        For a box larger than the array, or starts that are not integers of one dtype.
    ValueError
        Unless there is one start for each axis.
    """
    starts = _starts("dynamic_slice", operand, start_indices, allow_negative_indices)
    sizes = canonical_shape("dynamic_slice", slice_sizes)
    if len(sizes) != len(starts):
        raise ValueError(
            f"lax.dynamic_slice: slice_sizes must have one entry for each axis, got {sizes} for "
            f"shape {aval_of(operand).shape}."
        )
    return bind(dynamic_slice_p, operand, *starts, slice_sizes=sizes)


@moving
def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Cut ``slice_size`` elements along one axis, from a start known at run time."""
    starts, sizes, axis = _along("dynamic_slice_in_dim", operand, start_index, axis)
    sizes[axis] = slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


@moving
def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Take one index along an axis, known at run time, keeping the axis or dropping it."""
    row = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return row if keepdims else squeeze(row, (axis,))


def _along(name: str, operand: Any, start: Any, axis: int) -> tuple[list[Any], list[int], int]:
    """Return starts that are 0 but along an axis, the operand's sizes, and the axis."""
    aval = aval_of(operand)
    axis = canonical_axis(name, axis, aval.ndim)
    starts: list[Any] = [aval_of(start).dtype.type(0)] * aval.ndim
    starts[axis] = start
    return starts, list(aval.shape), axis


# --- dynamic_update_slice -----------------------------------------------------------------------


def _update_aval(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    check_same_dtypes("dynamic_update_slice", (x, update))
    got = f"got update shape {update.shape} for operand shape {x.shape}"
    if x.ndim != update.ndim:
        raise ShapeError(
            f"lax.dynamic_update_slice: update must have the same rank as operand, {got}."
        )
    if any(w > n for w, n in zip(update.shape, x.shape, strict=True)):
        raise ShapeError(
            f"lax.dynamic_update_slice: update must not be larger than operand, {got}."
        )
    _check_starts("dynamic_update_slice", starts)
    return ShapedArray(x.shape, x.dtype, all_weak((x, update, *starts)))


def _update_eval(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[_box(x.shape, update.shape, starts)] = update
    return out


def _update_form(ins: Any, outs: Any) -> Update:
    shape, extents = ins[0].shape, ins[1].shape
    return Update(extents, lambda u, read: _moved(u, shape, extents, read, 2), value=1, apart=True)


def _update_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> list[Any]:
    dx = dupdate = None
    if is_undefined(x):
        dx = bind(dynamic_update_slice_p, ct, full(update.aval, 0), *starts)
    if is_undefined(update):
        dupdate = bind(dynamic_slice_p, ct, *starts, slice_sizes=update.shape)
    return [dx, dupdate, *(None,) * len(starts)]


def _update_batch(size: int, operands: Sequence[Any], batched: Sequence[bool]) -> Array:
    """Update along the mapped axis where all have one start; scatter where each has its own."""
    x, update, *starts = operands
    x, update = (a if b else spread(a, size) for a, b in zip((x, update), batched, strict=False))
    if not any(batched[2:]):
        first = const(starts[0], 0) if starts else np.int32(0)
        return bind(dynamic_update_slice_p, x, update, first, *starts)
    limits = _limits(x.shape[1:], update.shape[1:])
    vectors, axes = _vectors(size, starts, batched[2:], limits)
    if vectors is None:
        return update
    return scatter_p.rule("batch")(
        size,
        (x, vectors, update),
        (True, True, True),
        dimension_numbers=ScatterDimensionNumbers(tuple(range(len(starts))), (), axes),
        indices_are_sorted=True,
        mode=GatherScatterMode.CLIP,
        unique_indices=True,
        update_consts=(),
        update_jaxpr=None,
    )


dynamic_update_slice_p = register(
    Primitive(
        "dynamic_update_slice",
        aval=_update_aval,
        eval=_update_eval,
        form=_update_form,
        jvp=linear_in(0, 1),
        transpose=_update_transpose,
        batch=_update_batch,
    )
)


@moving
def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Return an array with a box of it replaced, from a start known at run time.

    Parameters
    ----------
    operand, update : array_like
        Of one dtype and rank; the update is no larger than the operand.
    start_indices, allow_negative_indices
        As in `dynamic_slice`.

    Raises
    ------
    TypeError
        For dtypes or shapes that do not fit, or starts that are not integers of one dtype.
    ValueError
        Unless there is one start for each axis.
    """
    starts = _starts("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    return bind(dynamic_update_slice_p, operand, update, *starts)


def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace a run of indices along one axis, from a start known at run time."""
    starts, _, _ = _along("dynamic_update_slice_in_dim", operand, start_index, axis)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


@moving
def dynamic_update_index_in_dim(
    operand: Any,
    update: Any,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace one index along an axis, known at run time; the update may lack the axis."""
    rank = aval_of(operand).ndim
    axis = canonical_axis("dynamic_update_index_in_dim", operator.index(axis), rank)
    update = as_array(update)
    if update.ndim != rank:
        if update.ndim != rank - 1:
            raise ShapeError(
                "lax.dynamic_update_index_in_dim: update must have the operand's axes, or all "
                f"but axis {axis}, got update shape {update.shape} for operand shape "
                f"{aval_of(operand).shape}."
            )
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )
