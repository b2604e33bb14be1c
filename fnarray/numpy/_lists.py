"""Lists of indices, and what is done by them: insertion, deletion, index expressions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from .. import lax
from ..control.scan import map as lax_map
from ..core.array import Array, asarray
from ..core.dtypes import canonicalize_dtype, is_bool
from ..core.eager import replayed
from ..core.source import user_source
from ..core.trace import Tracer
from ..errors import ConcretizationTypeError
from ..ops.gather import wrap_negative
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import moving
from ._at import IndexUpdateHelper
from ._creation import array
from ._indexing import getitem
from ._indexing import take as take_index
from ._join import concatenate
from ._promote import broadcast_to as stretch
from ._promote import promote_dtypes
from ._search import functional, nonzero
from ._shape import along, array_of, axes_of, axis_of, concrete, expand_dims, moveaxis, ravel
from ._sorting import index_dtype

__all__ = [
    "apply_along_axis",
    "apply_over_axes",
    "c_",
    "delete",
    "fill_diagonal",
    "index_exp",
    "insert",
    "ix_",
    "mask_indices",
    "r_",
    "ravel_multi_index",
    "s_",
    "tril_indices",
    "tril_indices_from",
    "trim_zeros",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]

#: An index as a tuple: ``index_exp[1:3, ...]`` is ``(slice(1, 3), Ellipsis)``.
index_exp = np.index_exp
#: An index as a value: ``s_[1:3]`` is ``slice(1, 3)``.
s_ = np.s_


# --- indices of parts of matrices ---------------------------------------------------------------


def _constant(x: np.ndarray) -> Array:
    return asarray(x.astype(canonicalize_dtype(int)))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of an ``(n, m)`` matrix's elements on and below diagonal ``k``."""
    rows, columns = np.tril_indices(operator.index(n), operator.index(k), m)
    return _constant(rows), _constant(columns)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the indices of an ``(n, m)`` matrix's elements on and above diagonal ``k``."""
    rows, columns = np.triu_indices(operator.index(n), operator.index(k), m)
    return _constant(rows), _constant(columns)


def _matrix_shape(name: str, arr: Any) -> tuple[int, int]:
    shape = np.shape(arr)
    if len(shape) != 2:
        raise ValueError(f"numpy.{name}: arr must be a matrix, got shape {shape}.")
    return shape


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of a matrix's elements on and below diagonal ``k``."""
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of a matrix's elements on and above diagonal ``k``."""
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


def mask_indices(
    n: int, mask_func: Callable[[Array, int], Array], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Return the indices at which ``mask_func(ones((n, n)), k)`` is not zero; see `nonzero`."""
    square = lax.full((n, n), 1, canonicalize_dtype(float))
    rows, columns = nonzero(mask_func(square, k), size=size)
    return rows, columns


def ix_(*args: Any) -> tuple[Array, ...]:
    """Return vectors of indices shaped so that together they index their product.

    Raises
    ------
    ValueError
        For arguments that are not vectors.
    """
    out = []
    for position, arg in enumerate(args):
        a = array_of("ix_", arg, position)
        if a.ndim != 1:
            raise ValueError(f"numpy.ix_: arguments must be vectors, got shape {a.shape}.")
        if is_bool(a.dtype):
            (a,) = nonzero(a)
        elif not a.size:
            a = lax.convert_element_type(a, canonicalize_dtype(int))
        out.append(expand_dims(a, [k for k in range(len(args)) if k != position]))
    return tuple(out)


# --- flat indices -------------------------------------------------------------------------------


@replayed
def unravel_index(indices: Any, shape: Any) -> tuple[Array, ...]:
    """Return the index along each axis for indices of the flattened array.

    Negative indices count from the end; those out of range become the nearest in range.
    """
    flat = array_of("unravel_index", indices)
    if is_bool(flat.dtype):
        flat = convert(flat, np.dtype(np.int32), True)
    if flat.dtype.kind not in "iu":
        raise TypeError(f"numpy.unravel_index: indices must be integers, got dtype {flat.dtype}.")
    sizes = tuple(map(operator.index, shape if np.iterable(shape) else (shape,)))
    size = prod(sizes)
    if size > np.iinfo(flat.dtype).max:  # 998 of 1000 is no int8
        flat = convert(flat, index_dtype(size), flat.weak_type)
    one, weak = flat.dtype.type, flat.weak_type
    if flat.dtype.kind == "i":
        flat = wrap_negative(lax.clamp(one(-size), flat, one(max(size - 1, 0))), size)
    else:
        flat = lax.min(flat, one(max(size - 1, 0)))
    out: list[Array] = []
    for n in reversed(sizes):
        out.append(convert(lax.rem(flat, one(max(n, 1))), flat.dtype, weak))
        flat = lax.div(flat, one(max(n, 1)))
    return tuple(reversed(out))


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: Any = None,
) -> Array:
    """Return indices of the flattened array for an index along each axis.

    Parameters
    ----------
    multi_index : sequence of array_like of int
    dims : sequence of int
        Sizes of the axes.
    mode : {"raise", "wrap", "clip"}
        What indices out of range mean; ``"raise"`` cannot be traced.
    order : {"C", "F"}
        Whether the last or the first axis runs fastest.
    dtype : dtype-like, optional

    Raises
    ------
    ValueError
        For indices that are no integers, or out of range under ``"raise"``; as many indices as
        sizes are not given.
    ConcretizationTypeError
        For traced indices under ``"raise"``.
    """
    where = "ravel_multi_index"
    found = [array_of(where, x, i) for i, x in enumerate(multi_index)]
    sizes = [operator.index(n) for n in dims]
    if len(found) != len(sizes):
        raise ValueError(f"numpy.{where}: {len(found)} indices for {len(sizes)} dims.")
    if any(x.dtype.kind not in "iu" for x in found):
        raise ValueError(f"numpy.{where}: indices must be integers, at {user_source()}.")
    if order not in ("C", "F"):
        raise ValueError(f"numpy.{where}: order must be 'C' or 'F', got {order!r}.")
    to = canonicalize_dtype(int if dtype is None else dtype)
    total: Any = lax.full((), 0, to)
    stride = 1
    pairs = list(zip(found, sizes, strict=True))
    for x, n in reversed(pairs) if order == "C" else pairs:
        total = total + _in_range(lax.convert_element_type(x, to), n, mode) * to.type(stride)
        stride *= n
    return total


def _in_range(x: Array, n: int, mode: str) -> Array:
    if mode == "raise":
        values = concrete("ravel_multi_index", "multi_index", x, "Use mode='wrap' or 'clip'.")
        if values.size and (values.min() < 0 or values.max() >= n):
            raise ValueError("numpy.ravel_multi_index: invalid entry in coordinates array.")
        return x
    if mode == "clip":
        return lax.clamp(x.dtype.type(0), x, x.dtype.type(n - 1))
    if mode == "wrap":
        return x % n
    raise ValueError(
        f"numpy.ravel_multi_index: mode must be 'raise', 'wrap' or 'clip', got {mode!r}."
    )


# --- inserting, deleting, filling ---------------------------------------------------------------


def _static_index(name: str, obj: Any, n: int) -> Any:
    """Return what selects places along an axis: slices and lists as arrays of them."""
    if isinstance(obj, slice):
        return np.arange(n, dtype=np.int32)[obj]
    found = array_of(name, obj, 1)
    if found.dtype.kind not in "iub" and found.size:
        raise ValueError(
            f"numpy.{name}: obj must be integers, or bools, got dtype {found.dtype}, at "
            f"{user_source()}. Round what is computed, and convert: x.astype(int)."
        )
    return found


def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """Return an array without some of its slices along an axis (or elements).

    Parameters
    ----------
    arr : array_like
    obj : int, slice, or array of int or bool
        What to leave out. A traced integer is possible, and a traced array of integers with
        ``assume_unique_indices``; they may not be out of range.
    axis : int, optional
        The flattened array is meant where omitted.
    assume_unique_indices : bool
        Promise that no index is repeated, which makes the result's size known.

    Raises
    ------
    ConcretizationTypeError
        Where the size of the result cannot be known.
    IndexError
        For an index out of range.
    """
    a = array_of("delete", arr)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of("delete", axis, a.ndim)
    n = a.shape[axis]
    index = _static_index("delete", obj, n)
    if isinstance(index, Tracer):
        kept = _kept_traced(index, n, assume_unique_indices)
    else:
        kept = np.delete(np.arange(n, dtype=np.int32), np.asarray(index))
    return take_index(a, along(a.ndim, axis, kept), mode="clip")


def _kept_traced(index: Array, n: int, unique: bool) -> Array:
    if is_bool(index.dtype) or (index.ndim and not unique):
        raise ConcretizationTypeError(
            f"numpy.delete: obj must be concrete, got traced array {index.aval.str_short()}.\n"
            f"  It is {index.where_from()}.\n"
            "  For distinct integers pass assume_unique_indices=True; for a mask use "
            "fnarray.numpy.where."
        )
    index = lax.sort(ravel(wrap_negative(index, n)))
    count = lax.iota(index.dtype, n - index.size)
    # The k-th kept place is k plus the number of deleted places up to it.
    gaps = index - lax.iota(index.dtype, index.size)
    skipped = lax.expand_dims(count, (1,)) >= lax.expand_dims(gaps, (0,))
    return count + lax.reduce_sum(lax.convert_element_type(skipped, index.dtype), (1,))


@moving
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Return an array with values inserted before places along an axis.

    Parameters
    ----------
    arr : array_like
    obj : int, slice, or array of int
        Places in ``arr``; may be traced. Values for equal places stay in order.
    values : array_like
        Broadcast against the places, and converted to the array's dtype.
    axis : int, optional
        The flattened array is meant where omitted.

    Raises
    ------
    IndexError
        For a place out of range.
    """
    a, new = array_of("insert", arr), array_of("insert", values, 2)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of("insert", axis, a.ndim)
    n = a.shape[axis]
    index = _static_index("insert", obj, n)
    if is_bool(index.dtype):
        index = np.nonzero(concrete("insert", "obj", index))[0].astype(np.int32)
    new = lax.broadcast_to_rank(new, a.ndim)
    if np.ndim(index) == 0:
        new = moveaxis(new, 0, axis)
    flat = ravel(as_array(index))
    count = max(flat.size, new.shape[axis]) if flat.size else 0
    flat = stretch("insert", flat, (count,))
    new = stretch("insert", new, (*a.shape[:axis], count, *a.shape[axis + 1 :]))
    places = _insertion_order(flat, n)
    joined = lax.concatenate([a, lax.convert_element_type(new, a.dtype)], axis)
    out = take_index(joined, along(a.ndim, axis, places), mode="clip")
    return convert(out, a.dtype, a.weak_type)


def _insertion_order(index: Array, n: int) -> Any:
    """Return the order of old elements, then new ones, that puts new ones before their places."""
    if isinstance(index, Tracer):
        index = lax.clamp(np.int32(0), lax.convert_element_type(wrap_negative(index, n), "int32"),
                          np.int32(n))  # fmt: skip
        old = lax.iota(np.int32, n)
        keys = lax.concatenate([old * 2 + 1, index * 2], 0)
        return lax.sort((keys, lax.iota(np.int32, n + index.size)), num_keys=1)[1]
    places = np.asarray(index).astype(np.int64)
    if places.size and (places.min() < -n or places.max() > n):
        raise IndexError(f"numpy.insert: an index is out of bounds for axis of size {n}.")
    places = np.where(places < 0, places + n, places)
    keys = np.concatenate([2 * np.arange(n) + 1, 2 * places])
    return np.argsort(keys, kind="stable").astype(np.int32)


def trim_zeros(filt: Any, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """Cut off leading and trailing slices that are all zero.

    Parameters
    ----------
    filt : array_like
        Concrete: its values decide the result's shape.
    trim : str
        ``"f"`` for the front, ``"b"`` for the back, or both.
    axis : int or sequence of int, optional
        All axes where omitted.

    Raises
    ------
    ValueError
        For another ``trim``.
    """
    a = array_of("trim_zeros", filt)
    trim = trim.lower()
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueError(f"numpy.trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}.")
    values = concrete("trim_zeros", "filt", a)
    cut = [slice(None)] * a.ndim
    hits = np.nonzero(values)
    for k in axes_of("trim_zeros", axis, a.ndim):
        if not hits[0].size:
            cut[k] = slice(0, 0)
            continue
        cut[k] = slice(
            int(hits[k].min()) if "f" in trim else 0,
            int(hits[k].max()) + 1 if "b" in trim else a.shape[k],
        )
    return getitem(a, tuple(cut))


@moving
def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Array:
    """Return an array with values on its main diagonal.

    Parameters
    ----------
    a : array_like
        Of at least two axes, all of one size if there are more than two.
    val : array_like
        Flattened, and repeated as often as needed.
    wrap : bool
        Whether the diagonal of a tall matrix starts again below the square part.
    inplace : bool
        Must be False.

    Raises
    ------
    ValueError
        Unless ``inplace=False``, or for an array that has no main diagonal.
    """
    functional("fill_diagonal", inplace)
    a, values = array_of("fill_diagonal", a), ravel(array_of("fill_diagonal", val, 1))
    if a.ndim < 2:
        raise ValueError(f"numpy.fill_diagonal: a must have at least 2 axes, got {a.shape}.")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError(f"numpy.fill_diagonal: all axes of a must have one size, got {a.shape}.")
    if a.ndim == 2:
        n, m = a.shape
        flat = np.arange(0, n * m if wrap else min(n, m) * m, m + 1, dtype=np.int32)
    else:
        n = a.shape[0]
        flat = np.arange(n, dtype=np.int32) * sum(n**k for k in range(a.ndim))
    if not values.size or not flat.size:
        return a
    line = lax.slice_in_dim(lax.tile(values, (-(-flat.size // values.size),)), 0, flat.size)
    return lax.reshape(IndexUpdateHelper(ravel(a))[flat].set(line), a.shape)


# --- functions along axes -----------------------------------------------------------------------


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any):
    """Apply a function of vectors to each vector along an axis.

    The function is traced once. The axes of its result take the place of the axis.
    """
    a = array_of("apply_along_axis", arr, 2)
    axis = axis_of("apply_along_axis", axis, a.ndim)
    rows = moveaxis(a, axis, -1)
    lead = rows.shape[:-1]
    flat = lax.reshape(rows, (prod(lead), rows.shape[-1]))
    out = lax_map(lambda row: func1d(row, *args, **kwargs), flat)
    out = lax.reshape(out, (*lead, *out.shape[1:]))
    extra = out.ndim - len(lead)
    return moveaxis(out, range(len(lead), out.ndim), range(axis, axis + extra))


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Array:
    """Apply ``func(a, axis)`` for one axis after the other; reduced axes stay, with size 1.

    Raises
    ------
    ValueError
        Where a result has another rank than ``a`` or one less.
    """
    out = array_of("apply_over_axes", a, 1)
    rank = out.ndim
    for axis in axes if np.iterable(axes) else (axes,):
        axis = axis_of("apply_over_axes", axis, rank)
        out = func(out, axis)
        if out.ndim == rank - 1:
            out = expand_dims(out, axis)
        elif out.ndim != rank:
            raise ValueError(
                f"numpy.apply_over_axes: func must keep the rank {rank} or drop the axis, got a "
                f"result of shape {out.shape}."
            )
    return out


# --- index expressions that join ----------------------------------------------------------------


class _Joiner:
    """Joins what it is indexed by: arrays, scalars, and slices, which stand for ranges.

    ``start:stop:step`` is a range; with an imaginary step ``nj`` it is ``n`` points, ends included.
    A string in front gives the axis to join along, the least rank of each item, and where its own
    axes go among them: ``"1,2,0"``; ``"r"`` and ``"c"`` make a vector a row, or a column.
    """

    def __init__(self, name: str, axis: int, rank: int, place: int):
        self.name, self.axis, self.rank, self.place = name, axis, rank, place

    def __getitem__(self, key: Any) -> Array:
        items = key if isinstance(key, tuple) else (key,)
        axis, rank, place, rows = self.axis, self.rank, self.place, ""
        if items and isinstance(items[0], str):
            axis, rank, place = self._directive(items[0])
            rows, items = items[0], items[1:]
        parts = [self._part(x, k, rank, place) for k, x in enumerate(items)]
        if any(isinstance(x, str) for x in items):
            raise ValueError(f"numpy.{self.name}: directives come first.")
        parts = [p if p.ndim else lax.expand_dims(p, (0,)) for p in promote_dtypes(*parts)]
        joined = concatenate(parts, axis)
        if rows in ("r", "c") and joined.ndim < 2:  # a row, or a column
            return lax.expand_dims(joined, (0,) if rows == "r" else (1,))
        return joined

    def __len__(self) -> int:
        return 0

    def _directive(self, text: str) -> tuple[int, int, int]:
        if text in ("r", "c"):
            return self.axis, self.rank, self.place
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError as error:
            raise ValueError(f"numpy.{self.name}: unknown directive {text!r}.") from error
        defaults = (self.axis, self.rank, self.place)
        axis, rank, place = (*numbers, *defaults[len(numbers) :])
        return axis, rank, place

    def _part(self, x: Any, position: int, rank: int, place: int) -> Array:
        if isinstance(x, str):
            raise ValueError(f"numpy.{self.name}: directives come first, got {x!r}.")
        if isinstance(x, slice):
            found = asarray(_range(x))
        elif isinstance(x, list | tuple):
            found = array(x)
        else:
            found = array_of(self.name, x, position)
            if not found.ndim and rank == 1:
                return found
        extra = rank - found.ndim
        if extra <= 0:
            return found
        # The item's own axes begin at `place`, counted among the places they may begin at.
        first = place % (extra + 1) if place >= 0 else extra + 1 + place
        own = range(first, first + found.ndim)
        return lax.expand_dims(found, [k for k in range(rank) if k not in own])


def _range(x: slice) -> np.ndarray:
    start, step = 0 if x.start is None else x.start, 1 if x.step is None else x.step
    if x.stop is None:
        raise ValueError("numpy.r_: slices must have an end.")
    if isinstance(step, complex):
        return np.linspace(start, x.stop, int(abs(step)))
    return np.arange(start, x.stop, step)


r_ = _Joiner("r_", 0, 1, -1)
c_ = _Joiner("c_", -1, 2, 0)
