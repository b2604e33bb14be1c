"""Functions that rearrange places: shapes, axes, flips, rolls.

Also here, for the modules beside it: what axes and concrete arguments may be.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from .. import lax
from ..core.apart import another, apart
from ..core.array import Array
from ..core.dtypes import is_bool
from ..core.eager import replayed
from ..core.hooks import cut_as
from ..core.trace import Tracer
from ..errors import ConcretizationTypeError, ShapeError
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import moving
from ._promote import as_operand, operands, promote_shapes
from ._promote import broadcast_to as _broadcast_to

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "resize",
    "roll",
    "rollaxis",
    "rot90",
    "squeeze",
    "swapaxes",
    "transpose",
]

Axes = int | Sequence[int] | None


# --- arguments ----------------------------------------------------------------------------------


def array_of(name: str, x: Any, position: int = 0) -> Array:
    """Return an argument of ``numpy.<name>`` as an array; lists and other objects are refused."""
    return as_array(as_operand(name, x, position))


def axis_of(name: str, axis: Any, ndim: int) -> int:
    """Return an axis counted from the front.

    Raises
    ------
    numpy.exceptions.AxisError
        A `ValueError` and `IndexError`, for an axis out of range.
    TypeError
        For what is not an integer.
    """
    if axis is None or isinstance(axis, float | str):
        raise TypeError(f"numpy.{name}: axis must be an int, got {axis!r}.")
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(
            f"numpy.{name}: axis {axis} is out of bounds for array of dimension {ndim}."
        )
    return axis % ndim


def axes_of(name: str, axes: Axes, ndim: int) -> tuple[int, ...]:
    """Return one or several distinct axes, counted from the front; None stands for all."""
    if axes is None:
        return tuple(range(ndim))
    found = tuple(axis_of(name, a, ndim) for a in (axes if np.iterable(axes) else (axes,)))
    if len(set(found)) != len(found):
        raise ValueError(f"numpy.{name}: axes must be distinct, got {axes}.")
    return found


def concrete(name: str, what: str, x: Any, advice: str = "") -> np.ndarray:
    """Return an argument on which a result's shape depends, as a NumPy array.

    Where derivatives are taken of values that are known, that is their value.

    Raises
    ------
    ConcretizationTypeError
        For a tracer whose value is not known.
    """
    if isinstance(x, Tracer):
        x = lax.stop_gradient(x)
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            f"numpy.{name}: {what} must be concrete, got traced array {x.aval.str_short()}.\n"
            f"  It is {x.where_from()}.\n"
            f"  {advice or 'Mark the argument it depends on static (static_argnums).'}"
        )
    return np.asarray(x)


def along(ndim: int, axis: int, index: Any) -> tuple[Any, ...]:
    """Return the index expression that has ``index`` at one axis and takes all of the others."""
    out: list[Any] = [slice(None)] * ndim
    out[axis] = index
    return tuple(out)


# --- reshaping ----------------------------------------------------------------------------------


def sizes_of(name: str, shape: Any) -> tuple[int, ...]:
    items = shape if np.iterable(shape) else (shape,)
    try:
        return tuple(operator.index(n) for n in items)
    except TypeError as error:
        raise ShapeError(
            f"numpy.{name}: shapes must be sequences of concrete integers, got {shape}. Take sizes "
            "from x.shape, or mark the argument they depend on static."
        ) from error


def _infer(size: int, old: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Replace the -1 in a shape by the size that is left."""
    if shape.count(-1) > 1:
        raise ShapeError(f"numpy.reshape: at most one size can be -1, got {shape}.")
    if -1 not in shape:
        return shape
    known = prod(n for n in shape if n != -1)
    if known == 0 or size % known:
        raise ShapeError(
            f"numpy.reshape: cannot reshape array of shape {old} (size {size}) into shape {shape}: "
            f"{size} is not a multiple of {known}."
        )
    return tuple(size // known if n == -1 else n for n in shape)


@moving
@replayed(same=True)
def reshape(
    a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """Return an array's elements in another shape of the same size.

    Parameters
    ----------
    a : array_like
    shape : int or sequence of int
        One size may be -1: it is what is left.
    order : {"C", "F"}
        Whether the last or the first axis runs fastest, in reading and writing.
    copy : bool, optional
        Accepted; arrays are immutable, so sharing cannot be told from copying.

    Raises
    ------
    TypeError
        For a shape of another size, or one that is not concrete.
    """
    if out_sharding is not None:
        return cut_as(out_sharding, reshape, a, shape, order, copy=copy)
    a = array_of("reshape", a)
    sizes = _infer(a.size, a.shape, sizes_of("reshape", shape))
    if any(n < 0 for n in sizes) or prod(sizes) != a.size:
        raise ShapeError(
            f"numpy.reshape: cannot reshape array of shape {a.shape} (size {a.size}) into shape "
            f"{sizes}."
        )
    if order == "C":
        return lax.reshape(a, sizes)
    if order == "F":
        backwards = lax.reshape(a, sizes[::-1], range(a.ndim)[::-1])
        return lax.transpose(backwards, range(len(sizes))[::-1])
    if order == "A":
        raise NotImplementedError(
            "numpy.reshape: order='A' is not implemented: arrays have no layout to follow. Use 'C' "
            "or 'F'."
        )
    raise ValueError(f"numpy.reshape: order must be 'C' or 'F', got {order!r}.")


@moving
@replayed
def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Array:
    """Return an array's elements as a vector, in C or Fortran order."""
    if out_sharding is not None:
        return cut_as(out_sharding, ravel, a, order)
    if order == "K":
        raise NotImplementedError(
            "numpy.ravel: not implemented for order 'K': arrays have no layout. Use 'C' or 'F'."
        )
    a = array_of("ravel", a)
    return another(a) if a.ndim == 1 else reshape(a, (a.size,), order)


@moving
@replayed
def resize(a: Any, new_shape: Any) -> Array:
    """Return an array of a new shape, filled with ``a``'s elements, repeated or cut as needed.

    Raises
    ------
    ValueError
        For negative sizes.
    """
    sizes = sizes_of("resize", new_shape)
    flat = ravel(array_of("resize", a))
    if any(n < 0 for n in sizes):
        raise ValueError(f"numpy.resize: sizes must not be negative, got {sizes}.")
    size = prod(sizes)
    if not size or not flat.size:
        return lax.full(sizes, 0, flat.dtype)
    whole = lax.tile(flat, (-(-size // flat.size),))
    return lax.reshape(lax.slice(whole, (0,), (size,)), sizes)


@moving
def squeeze(a: Any, axis: Axes = None) -> Array:
    """Remove axes of size 1: all of them, or those given.

    Raises
    ------
    ValueError
        For an axis of another size, or out of range.
    """
    a = array_of("squeeze", a)
    if axis is None:
        axis = tuple(k for k, n in enumerate(a.shape) if n == 1)
    axes = axes_of("squeeze", axis, a.ndim)
    if wide := [k for k in axes if a.shape[k] != 1]:
        raise ValueError(
            f"numpy.squeeze: only axes of size 1 can be removed, got axis {wide[0]} of shape "
            f"{a.shape}."
        )
    return lax.squeeze(a, axes) if axes else another(a)


@moving
@replayed(same=True)
def expand_dims(a: Any, axis: int | Sequence[int]) -> Array:
    """Insert axes of size 1, which become the axes ``axis`` of the result."""
    a = array_of("expand_dims", a)
    axis = (axis,) if axis is None else axis  # refused below, as any other bad axis
    count = len(axis) if np.iterable(axis) else 1
    return lax.expand_dims(a, axes_of("expand_dims", axis, a.ndim + count))


def _atleast(name: str, arys: tuple[Any, ...], grow: Any) -> Array | list[Array]:
    out = [grow(as_array(x)) for x in operands(name, *arys)]
    return out[0] if len(out) == 1 else out


@moving
@replayed
def atleast_1d(*arys: Any) -> Array | list[Array]:
    """Return arrays with at least one axis; a list, unless there is one argument."""
    return _atleast("atleast_1d", arys, lambda x: another(x) if x.ndim else lax.reshape(x, (1,)))


@moving
@replayed
def atleast_2d(*arys: Any) -> Array | list[Array]:
    """Return arrays with at least two axes: new ones are put in front."""

    def grow(x: Array) -> Array:
        return another(x) if x.ndim > 1 else lax.broadcast_to_rank(x, 2)

    return _atleast("atleast_2d", arys, grow)


@moving
@replayed
def atleast_3d(*arys: Any) -> Array | list[Array]:
    """Return arrays with at least three axes: a vector becomes ``(1, n, 1)``."""
    axes = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _atleast("atleast_3d", arys, lambda x: lax.expand_dims(x, axes.get(x.ndim, ())))


# --- broadcasting -------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that arrays of the given shapes broadcast to.

    Raises
    ------
    ValueError
        Where sizes differ and neither is 1.
    """
    return lax.broadcast_shapes(*(sizes_of("broadcast_shapes", s) for s in shapes))


@moving
@replayed(same=True)
def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Array:
    """Stretch an array to a shape, by the rule of broadcasting.

    Raises
    ------
    ValueError
        The array does not fit the shape.
    """
    if out_sharding is not None:
        return cut_as(out_sharding, broadcast_to, array, shape)
    return as_array(
        _broadcast_to(
            "broadcast_to", as_operand("broadcast_to", array), sizes_of("broadcast_to", shape)
        )
    )


@moving
def broadcast_arrays(*args: Any) -> list[Array]:
    """Return arrays stretched to their common shape, each in its own dtype."""
    arrays = promote_shapes("broadcast_arrays", *operands("broadcast_arrays", *args))
    shape = lax.broadcast_shapes(*(np.shape(x) for x in arrays))
    out = [as_array(_broadcast_to("broadcast_arrays", x, shape)) for x in arrays]
    return apart(out, args)


# --- order of axes ------------------------------------------------------------------------------


@moving
@replayed(same=True)
def transpose(a: Any, axes: Sequence[int] | None = None) -> Array:
    """Reverse the order of the axes, or put them in the order given.

    Raises
    ------
    TypeError
        For what is not a permutation of all axes.
    """
    a = array_of("transpose", a)
    if axes is None:
        return lax.transpose(a, range(a.ndim)[::-1])
    order = tuple(axis_of("transpose", k, a.ndim) for k in axes)
    if sorted(order) != list(range(a.ndim)):
        raise ShapeError(
            f"numpy.transpose: axes must be a permutation of the {a.ndim} axes of shape {a.shape}, "
            f"got {tuple(axes)}."
        )
    return lax.transpose(a, order)


@moving
def permute_dims(a: Any, /, axes: tuple[int, ...]) -> Array:
    """Put the axes in the order given; see `transpose`."""
    return transpose(a, axes)


@replayed
def matrix_transpose(x: Any, /) -> Array:
    """Swap the last two axes.

    Raises
    ------
    ValueError
        For an array of fewer than two axes.
    """
    x = array_of("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"numpy.matrix_transpose: x must have at least 2 axes, got {x.shape}.")
    return swapaxes(x, -1, -2)


@moving
@replayed
def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Exchange two axes."""
    a = array_of("swapaxes", a)
    order = list(range(a.ndim))
    i, j = (axis_of("swapaxes", k, a.ndim) for k in (axis1, axis2))
    order[i], order[j] = j, i
    return lax.transpose(a, order)


@moving
@replayed
def moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move axes to new places; the others keep their order.

    Raises
    ------
    ValueError
        For as many sources as destinations are not given, or repeated axes.
    """
    a = array_of("moveaxis", a)
    old, new = (axes_of("moveaxis", k, a.ndim) for k in (source, destination))
    if len(old) != len(new):
        raise ValueError(
            f"numpy.moveaxis: source and destination must have as many axes, got {source} and "
            f"{destination}."
        )
    order = [k for k in range(a.ndim) if k not in old]
    for place, k in sorted(zip(new, old, strict=True)):
        order.insert(place, k)
    return lax.transpose(a, order)


@replayed
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """Move an axis to stand before axis ``start``; `moveaxis` is easier to read."""
    a = array_of("rollaxis", a)
    axis = axis_of("rollaxis", axis, a.ndim)
    if not -a.ndim <= start <= a.ndim:
        raise np.exceptions.AxisError(
            f"numpy.rollaxis: start {start} is out of bounds for array of dimension {a.ndim}."
        )
    start += a.ndim * (start < 0)
    return moveaxis(a, axis, start - (start > axis))


# --- order of elements --------------------------------------------------------------------------


@moving
@replayed
def flip(m: Any, axis: Axes = None) -> Array:
    """Reverse the elements along axes: all of them, or those given."""
    m = array_of("flip", m)
    return lax.rev(m, axes_of("flip", axis, m.ndim))


@replayed
def fliplr(m: Any) -> Array:
    """Reverse the elements along axis 1."""
    return flip(m, 1)


@replayed
def flipud(m: Any) -> Array:
    """Reverse the elements along axis 0."""
    return flip(m, 0)


@replayed
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate by ``k`` right angles in the plane of two axes, from the first towards the second.

    Raises
    ------
    ValueError
        Unless there are two different axes.
    """
    m = array_of("rot90", m)
    if len(axes) != 2:
        raise ValueError(f"numpy.rot90: axes must be two, got {axes}.")
    first, second = axes_of("rot90", axes, m.ndim)
    k %= 4
    if k == 0:
        return another(m)
    if k == 2:
        return flip(m, (first, second))
    if k == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


@moving
@replayed
def roll(a: Any, shift: Any, axis: Axes = None) -> Array:
    """Shift elements along axes; what leaves at the end comes in at the start.

    Parameters
    ----------
    a : array_like
    shift : int or array of int
        One for each axis, or one for all; may be traced.
    axis : int or sequence of int, optional
        The flattened array is rolled where omitted. Axes may repeat: their shifts add up.
    """
    a = array_of("roll", a)
    if axis is None:
        return lax.reshape(roll(ravel(a), shift, 0), a.shape)
    axes = tuple(axis_of("roll", k, a.ndim) for k in (axis if np.iterable(axis) else (axis,)))
    if not axes:
        return a
    if isinstance(shift, Sequence):
        shifts = [_shift(s) for s in shift]
    else:
        whole = _shift(shift)
        shifts = [whole] if not np.ndim(whole) else [whole[i] for i in range(np.shape(whole)[0])]
    if len(shifts) == 1 or len(axes) == 1:
        count = max(len(shifts), len(axes))
        shifts, axes = shifts * (count // len(shifts)), axes * (count // len(axes))
    if len(shifts) != len(axes):
        raise ValueError(f"numpy.roll: shift {shift} and axis {axis} must be as many.")
    for s, k in zip(shifts, axes, strict=True):
        if a.shape[k]:
            a = _roll_traced(a, s, k) if isinstance(s, Tracer) else _roll_static(a, int(s), k)
    return a


def _shift(shift: Any) -> Any:
    out = as_array(shift) if isinstance(shift, Tracer) else np.asarray(shift)
    if is_bool(out.dtype):
        return out.astype(np.int32)
    if out.dtype.kind not in "iu" and out.size:
        raise TypeError(f"numpy.roll: shift must be an integer, got dtype {out.dtype}.")
    if out.ndim > 1:
        raise ValueError(f"numpy.roll: shift must be a scalar or a vector, got shape {out.shape}.")
    return out


def _roll_static(a: Array, shift: int, axis: int) -> Array:
    n = a.shape[axis]
    shift %= n
    if not shift:
        return a
    tail = lax.slice_in_dim(a, n - shift, n, axis=axis)
    return lax.concatenate([tail, lax.slice_in_dim(a, 0, n - shift, axis=axis)], axis)


def _roll_traced(a: Array, shift: Any, axis: int) -> Array:
    n = a.shape[axis]
    shift = lax.convert_element_type(shift, np.int32)
    start = lax.rem(lax.add(lax.rem(lax.neg(shift), np.int32(n)), np.int32(n)), np.int32(n))
    return lax.dynamic_slice_in_dim(lax.concatenate([a, a], axis), start, n, axis)


def sequence_of(name: str, xs: Any) -> Iterable[Any]:
    """Return the arrays of a sequence, or the rows of an array.

    Raises
    ------
    TypeError, ValueError
        For one object that is neither, or an empty sequence.
    """
    if isinstance(xs, Array | np.ndarray):
        if not xs.ndim:
            raise ValueError(f"numpy.{name}: arrays must be a sequence of arrays, got a scalar.")
        rows = as_array(xs)
        return [lax.index_in_dim(rows, i, keepdims=False) for i in range(rows.shape[0])]
    if not isinstance(xs, Sequence) or isinstance(xs, str):
        raise TypeError(
            f"numpy.{name}: arrays must be a sequence of arrays (a list or tuple), got {type(xs)}."
        )
    return operands(name, *xs)
