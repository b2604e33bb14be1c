"""Finding places, and taking and putting elements at places."""

from __future__ import annotations

from types import NoneType
from typing import Any, overload

import numpy as np

from .. import lax
from ..core.array import Array, ArrayImpl, asarray
from ..core.dtypes import bool_, is_bool
from ..core.eager import replayed
from ..core.large import is_large
from ..core.source import user_source
from ..core.trace import Tracer
from ..ops.gather import wrap_negative
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import moving
from ..ops.select import picked
from ._at import IndexUpdateHelper
from ._indexing import PLACES, within
from ._indexing import take as take_index
from ._promote import broadcast_to as stretch
from ._promote import no_out, operands, promote_dtypes
from ._select import as_condition, choose_where
from ._shape import along, array_of, axis_of, concrete, ravel, sequence_of
from ._sorting import index_dtype

__all__ = [
    "argwhere",
    "choose",
    "compress",
    "extract",
    "flatnonzero",
    "nonzero",
    "place",
    "put",
    "put_along_axis",
    "take",
    "take_along_axis",
    "where",
]


# --- places of what is true ---------------------------------------------------------------------


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """Return the indices of elements that are not zero, an array for each axis.

    Parameters
    ----------
    a : array_like
    size : int, optional
        Number of indices to return, which makes it possible to trace: further ones are cut.
    fill_value : int, array, or tuple of them, optional
        What fills up to ``size``; 0 where omitted. A tuple has one for each axis.

    Raises
    ------
    ConcretizationTypeError
        For a traced array and no ``size``.
    ValueError
        For a scalar.
    """
    a = array_of("nonzero", a)
    if not a.ndim:
        raise ValueError("numpy.nonzero: a scalar has no axes. Use atleast_1d(a).nonzero().")
    if size is None:
        a = concrete("nonzero", "a", a, "Give the number of results: size.")
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * a.ndim
    if len(fills) != a.ndim:
        raise ValueError(
            f"numpy.nonzero: fill_value must have one entry for each of {a.ndim} axes, got "
            f"{fill_value}."
        )
    if isinstance(a, Tracer) or any(isinstance(f, Tracer) for f in fills):
        return _nonzero_traced(a, a.size if size is None else size, fills)
    found = np.nonzero(np.asarray(a))
    dtype = index_dtype(a.size)
    if size is None:
        return tuple(asarray(f.astype(dtype)) for f in found)
    more = max(size - found[0].size, 0)
    return tuple(
        asarray(np.concatenate([f[:size], np.full(more, 0 if v is None else v)]).astype(dtype))
        for f, v in zip(found, fills, strict=True)
    )


def _nonzero_traced(a: Array, size: int, fills: tuple[Any, ...]) -> tuple[Array, ...]:
    """Write each hit's flat index to the place that the running count of hits gives it."""
    dtype = index_dtype(a.size)
    if not size:
        return (lax.full((0,), 0, dtype),) * a.ndim
    one = dtype.type(1)
    hit = ravel(as_condition(a))
    count = lax.cumsum(lax.convert_element_type(hit, dtype))
    places = lax.select(hit, lax.sub(count, one), lax.full_like(count, size))
    flat = lax.scatter(
        lax.full((size,), 0, dtype),
        lax.expand_dims(places, (1,)),
        lax.iota(dtype, a.size),
        lax.ScatterDimensionNumbers((), (0,), (0,)),
        unique_indices=True,
        mode="drop",
    )
    total = lax.index_in_dim(count, -1, keepdims=False) if a.size else lax.full((), 0, dtype)
    found = lax.lt(lax.iota(dtype, size), total)
    out, stride = [], a.size
    for n, v in zip(a.shape, fills, strict=True):
        stride = stride // n if n else 1
        index = lax.rem(lax.div(flat, dtype.type(stride)), dtype.type(max(n, 1)))
        fill = lax.convert_element_type(0 if v is None else v, dtype)
        out.append(lax.select(found, index, stretch("nonzero", fill, (size,))))
    return tuple(out)


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the indices, in the flattened array, of elements that are not zero; see `nonzero`."""
    return nonzero(ravel(array_of("flatnonzero", a)), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the indices of elements that are not zero, as the rows of a matrix; see `nonzero`."""
    a = array_of("argwhere", a)
    if not a.ndim:
        rows = nonzero(lax.expand_dims(a, (0,)), size=size, fill_value=fill_value)[0]
        return lax.full((rows.shape[0], 0), 0, rows.dtype)
    if fill_value is not None and np.ndim(fill_value):
        fill_value = tuple(np.asarray(fill_value))
    columns = nonzero(a, size=size, fill_value=fill_value)
    return lax.concatenate([lax.expand_dims(c, (1,)) for c in columns], 1)


def _select_alike(condition: Any, x: Any = None, y: Any = None, **_: Any) -> Any:
    """Return the choice among buffers, which is ours where nothing is promoted."""
    if is_large(v.aval for v in (condition, x, y) if type(v) is ArrayImpl):
        return None
    alike = type(condition) is type(x) is type(y) is ArrayImpl and x.dtype is y.dtype
    return picked if alike and condition.dtype == bool_ else None


@overload
def where(
    condition: Any, x: None = None, y: None = None, /, *, size: int | None = None,
    fill_value: Any = None,
) -> tuple[Array, ...]: ...  # fmt: skip


@overload
def where(condition: Any, x: Any, y: Any, /) -> Array: ...


@moving
@replayed(instead=_select_alike)
def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """Choose elements of ``x`` where ``condition`` holds, of ``y`` elsewhere.

    Parameters
    ----------
    condition, x, y : array_like
        Broadcast together; ``x`` and ``y`` promote. Without both, the result is
        ``nonzero(condition, size=size, fill_value=fill_value)``.

    Raises
    ------
    TypeError
        For one of ``x`` and ``y``.
    ValueError
        For ``size`` beside them.
    """
    if x is None and y is None:
        return nonzero(array_of("where", condition), size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError(
            "numpy.where requires ndarray or scalar arguments, got <class 'NoneType'> at position "
            f"{1 if x is None else 2}: give both x and y, or neither."
        )
    if size is not None or fill_value is not None:
        raise ValueError("numpy.where: size and fill_value go with a condition alone.")
    return choose_where(condition, x, y)


# --- taking -------------------------------------------------------------------------------------


def _indices(
    name: str,
    indices: Any,
    error: type[Exception] = TypeError,
    position: int = 1,
    bools: bool = False,
) -> Any:
    """Return integers, ``bools`` as their numbers; raise ``error`` for others."""
    found = array_of(name, indices, position)
    if bools and is_bool(found.dtype):
        return convert(found, np.dtype(np.int32))
    if found.dtype.kind not in "iu":
        raise error(
            f"numpy.{name}: indices must have an integer type, got dtype {found.dtype}, at "
            f"{user_source()}. Round them, and convert: x.astype(int)."
        )
    return found


def _modulo(index: Array, n: int) -> Any:
    """Return indices modulo ``n``, not negative."""
    size = index.dtype.type(n)
    rest = lax.rem(index, size)
    return choose_where(lax.lt(rest, index.dtype.type(0)), lax.add(rest, size), rest)


def _reads(a: Any, indices: Any, axis: Any) -> bool:
    arrays = type(a) is type(indices) is ArrayImpl and indices.dtype.char in PLACES
    return arrays and type(axis) in (int, NoneType)


def _take_within(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    **_: Any,
) -> Any:
    if mode in ("clip", "wrap") or not _reads(a, indices, axis):
        return None
    return within(lambda x, places: x.take(places, axis))


@moving
@replayed(instead=_take_within)
def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """Return elements at indices along an axis, or of the flattened array.

    Parameters
    ----------
    a : array_like
    indices : array_like of int
        Negative ones count from the end.
    axis : int, optional
    mode : {"fill", "clip", "wrap"}, optional
        What indices out of range read: ``fill_value``, the nearest element, or the element at the
        index modulo the size. ``"fill"`` where omitted.
    fill_value : scalar, optional
        NaN where omitted; for integers the least, or the largest if they are unsigned.

    Raises
    ------
    ValueError
        For indices that are not integers, or bools; for an unknown mode, ``"raise"`` included:
        results cannot depend on traced values.
    """
    no_out("take", out)
    a, index = array_of("take", a), _indices("take", indices, ValueError, bools=True)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of("take", axis, a.ndim)
    if mode == "raise":
        raise ValueError("numpy.take: mode='raise' is not possible; use 'fill', 'clip' or 'wrap'.")
    if mode == "wrap":
        index, mode = _modulo(index, a.shape[axis]), "clip"
    return take_index(
        a,
        along(a.ndim, axis, index),
        mode=mode or "fill",
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        wrap=mode != "clip",
    )


def _aligned(name: str, arr: Any, indices: Any, axis: int | None) -> tuple[Any, Any, int]:
    """Return array and indices of one shape but for an axis, along which the indices lie."""
    a, index = array_of(name, arr), _indices(name, indices)
    if axis is None:
        if index.ndim != 1:
            raise ValueError(f"numpy.{name}: with axis=None indices must be a vector.")
        a, axis = ravel(a), 0
    if a.ndim != index.ndim:
        raise ValueError(
            f"numpy.{name}: indices and arr must have the same rank, got shapes {index.shape} and "
            f"{a.shape}."
        )
    axis = axis_of(name, axis, a.ndim)
    rest = [(*s[:axis], 1, *s[axis + 1 :]) for s in (a.shape, index.shape)]
    common = lax.broadcast_shapes(*rest)
    shapes = [(*common[:axis], x.shape[axis], *common[axis + 1 :]) for x in (a, index)]
    return stretch(name, a, shapes[0]), stretch(name, index, shapes[1]), axis


def _along_within(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    *_: Any,
    wrap_negative_indices: bool | None = None,
    **__: Any,
) -> Any:
    if wrap_negative_indices is False or not _reads(arr, indices, axis):
        return None
    return within(lambda x, places: np.take_along_axis(x, places, axis))


@moving
@replayed(instead=_along_within)
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Return elements at indices along an axis, the other axes running together.

    Parameters
    ----------
    arr : array_like
    indices : array_like of int
        Of the same rank; axes other than ``axis`` broadcast. The result has their shape.
    axis : int or None
        The flattened array is read for None.
    mode : {"fill", "clip", "promise_in_bounds"}, optional
        As for `take`.
    fill_value : scalar, optional

    Raises
    ------
    ValueError
        For different ranks, or shapes that do not broadcast.
    TypeError
        For indices that are not integers.
    """
    a, index, axis = _aligned("take_along_axis", arr, indices, axis)
    if wrap_negative_indices is not False:
        index = wrap_negative(index, a.shape[axis])
    if not index.size:
        return lax.full(index.shape, 0, a.dtype)
    others = tuple(k for k in range(a.ndim) if k != axis)
    numbers = lax.GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return lax.gather(
        a,
        lax.expand_dims(index, (a.ndim,)),
        numbers,
        (1,) * a.ndim,
        mode=mode or "fill",
        fill_value=fill_value,
    )


@moving
def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """Choose, for each element, from the array that ``a`` numbers.

    Parameters
    ----------
    a : array_like of int
    choices : sequence of array_like, or array
        Broadcast together and with ``a``.
    mode : {"raise", "wrap", "clip"}
        What numbers out of range mean; ``"raise"`` cannot be traced.

    Raises
    ------
    ValueError
        For numbers out of range under ``"raise"``, or another mode.
    ConcretizationTypeError
        For traced numbers under ``"raise"``.
    """
    no_out("choose", out)
    index = _indices("choose", a, ValueError, 0)
    arrays = [as_array(x) for x in promote_dtypes(*sequence_of("choose", choices))]
    n = len(arrays)
    if mode == "raise":
        numbers = concrete("choose", "a", index, "Use mode='wrap' or 'clip'.")
        if numbers.size and (numbers.min() < 0 or numbers.max() >= n):
            raise ValueError(f"numpy.choose: numbers must be in [0, {n}) under mode='raise'.")
    elif mode == "wrap":
        index = _modulo(index, n)
    elif mode == "clip":
        index = lax.clamp(index.dtype.type(0), index, index.dtype.type(n - 1))
    else:
        raise ValueError(f"numpy.choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}.")
    shape = lax.broadcast_shapes(index.shape, *(x.shape for x in arrays))
    stacked = lax.concatenate(
        [lax.expand_dims(stretch("choose", x, shape), (0,)) for x in arrays], 0
    )
    index = lax.expand_dims(stretch("choose", index, shape), (0,))
    picked = lax.squeeze(take_along_axis(stacked, index, 0, mode="clip"), (0,))
    return convert(picked, picked.dtype)


def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Array:
    """Return the slices along an axis (or elements) at which a condition holds.

    Parameters
    ----------
    condition : array_like
        A vector, which may be shorter than the axis.
    a : array_like
    axis : int, optional
    size : int, optional
        Number of slices to return, which makes it possible to trace.
    fill_value : scalar
        What fills up to ``size``.

    Raises
    ------
    ConcretizationTypeError
        For a traced condition and no ``size``.
    ValueError
        For a condition that is no vector, or holds beyond the end of the axis.
    """
    no_out("compress", out)
    condition, a = operands("compress", condition, a)
    if np.ndim(condition) != 1:
        raise ValueError(
            f"numpy.compress: condition must be a vector, got shape {np.shape(condition)}."
        )
    if size is None:
        concrete("compress", "condition", condition, "Give the number of results: size.")
    a = as_array(a) if axis is not None else ravel(a)
    axis = axis_of("compress", axis or 0, a.ndim)
    hit, n = as_condition(condition), a.shape[axis]
    if hit.shape[0] > n:
        if not isinstance(hit, Tracer) and np.asarray(hit)[n:].any():
            raise ValueError("numpy.compress: condition holds beyond the end of the axis.")
        hit = lax.slice_in_dim(hit, 0, n)
    (places,) = nonzero(hit, size=size, fill_value=n)
    taken = take_index(a, along(a.ndim, axis, places), mode="clip")
    if size is None:
        return taken
    inside = lax.lt(places, places.dtype.type(n))
    mask = lax.broadcast_in_dim(inside, taken.shape, (axis,))
    fill = lax.convert_element_type(fill_value, a.dtype)
    return lax.select(mask, taken, stretch("compress", fill, taken.shape))


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Array:
    """Return the elements at which a condition of the same size holds; see `compress`."""
    holds, a = (ravel(x) for x in operands("extract", condition, arr))
    return compress(holds, a, size=size, fill_value=fill_value)


# --- putting ------------------------------------------------------------------------------------


def functional(name: str, inplace: bool) -> None:
    """Raise `ValueError` unless ``inplace=False``: arrays are immutable."""
    if inplace:
        raise ValueError(f"numpy.{name}: arrays are immutable: pass inplace=False, use the result.")


@moving
@replayed
def put_along_axis(
    arr: Any,
    indices: Any,
    values: Any,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Return ``arr`` with values put at indices along an axis, the other axes running together.

    Raises
    ------
    ValueError
        Unless ``inplace=False``.
    """
    functional("put_along_axis", inplace)
    shape = np.shape(arr)
    a, index, along_axis = _aligned("put_along_axis", arr, indices, axis)
    where_to = [lax.broadcasted_iota(index.dtype, index.shape, k) for k in range(a.ndim)]
    where_to[along_axis] = index
    out = IndexUpdateHelper(a)[tuple(where_to)].set(values, mode=mode)
    return lax.reshape(out, shape) if axis is None else out


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Array:
    """Return ``a`` with values put at indices of the flattened array.

    Parameters
    ----------
    a : array_like
    ind : array_like of int
    v : array_like
        Repeated as often as needed.
    mode : {"clip", "wrap"}, optional
        What indices out of range mean. Under ``"clip"`` negative ones mean the first element; where
        omitted they count from the end, and only then is the nearest element meant.
    inplace : bool
        Must be False.

    Raises
    ------
    ValueError
        Unless ``inplace=False``, or for another mode.
    """
    functional("put", inplace)
    a, v = array_of("put", a), ravel(array_of("put", v, 2))
    index = ravel(_indices("put", ind, bools=True))
    if not a.size or not index.size or not v.size:
        return a
    if mode == "wrap":
        index = _modulo(index, a.size)
    elif mode in (None, "clip"):
        index = wrap_negative(index, a.size) if mode is None else index
        index = lax.clamp(index.dtype.type(0), index, index.dtype.type(a.size - 1))
    else:
        raise ValueError(f"numpy.put: mode must be None, 'clip' or 'wrap', got {mode!r}.")
    values = lax.slice_in_dim(lax.tile(v, (-(-index.size // v.size),)), 0, index.size)
    out = IndexUpdateHelper(ravel(a))[index].set(values, mode="drop")
    return lax.reshape(out, a.shape)


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """Return ``arr`` with its elements where ``mask`` holds replaced by ``vals``, in order.

    Raises
    ------
    ValueError
        Unless ``inplace=False``; for a mask of another size, or no values.
    """
    functional("place", inplace)
    a, mask = array_of("place", arr), array_of("place", mask, 1)
    values = ravel(array_of("place", vals, 2))
    if mask.size != a.size:
        raise ValueError(
            f"numpy.place: arr and mask must have one size, got shapes {a.shape} and {mask.shape}."
        )
    if not values.size and a.size:
        raise ValueError("numpy.place: vals must not be empty.")
    if not a.size:
        return a
    hit = ravel(as_condition(mask))
    dtype = index_dtype(a.size)
    count = lax.cumsum(lax.convert_element_type(hit, dtype))
    number = lax.rem(lax.sub(count, dtype.type(1)), dtype.type(values.size))
    chosen = take_index(lax.convert_element_type(values, a.dtype), number, mode="clip")
    return lax.reshape(choose_where(hit, chosen, ravel(a)), a.shape)
