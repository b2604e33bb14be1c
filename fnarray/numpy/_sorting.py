"""Sorting, orders that sort, and places in sorted arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any

import numpy as np

from .. import lax
from ..control.loop import fori_loop
from ..core.array import Array, ArrayImpl, asarray
from ..core.dtypes import as_dtype, canonicalize_dtype, is_float, is_half, to_complex
from ..core.eager import replayed
from ..core.trace import Tracer
from ._indexing import take as take_index
from ._promote import operands, promote_dtypes
from ._select import choose_where
from ._shape import array_of, axis_of, ravel, sequence_of

__all__ = [
    "argpartition",
    "argsort",
    "digitize",
    "lexsort",
    "partition",
    "searchsorted",
    "sort",
    "sort_complex",
]

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all", "default")
#: Kinds and widths for which NumPy's stable order is that of ``lax.sort``.
_NATIVE = frozenset("?bhilqBHILQfd")


def index_dtype(size: int = 0) -> np.dtype:
    """Return the dtype of indices along an axis, the default integer.

    Raises
    ------
    ValueError
        It does not count so many.
    """
    dtype = canonicalize_dtype(int)
    if isinstance(size, int) and size - 1 > np.iinfo(dtype).max:
        raise ValueError(
            f"{size} elements have more places than {dtype} counts. Enable 64-bit dtypes by "
            "fnarray.enable_x64."
        )
    return dtype


def places_along(x: Array, axis: int, dtype: Any = None) -> Array:
    """Return an array of ``x``'s shape whose elements are their own index along an axis."""
    dtype = index_dtype(x.shape[axis]) if dtype is None else canonicalize_dtype(as_dtype(dtype))
    return lax.broadcasted_iota(dtype, x.shape, axis)


def _operand(name: str, a: Any, axis: int | None, kind: Any, order: Any) -> tuple[Array, int]:
    if kind is not None:
        raise TypeError(f"numpy.{name}: kind must be None, got {kind!r}. Use stable=True or False.")
    if order is not None:
        raise TypeError(f"numpy.{name}: order must be None: there are no structured arrays.")
    a = array_of(name, a)
    if axis is None:
        return ravel(a), 0
    return a, axis_of(name, axis, a.ndim)


@replayed
def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Return the elements in rising order along an axis; NaNs are last.

    Parameters
    ----------
    a : array_like
        Complex numbers are ordered by real, then imaginary part.
    axis : int or None
        The flattened array is sorted for None.
    stable : bool
        Whether equal elements keep their order; of no effect on values.
    descending : bool
        Reverse the result: NaNs come first.

    Raises
    ------
    TypeError
        For ``kind`` or ``order``.
    """
    a, axis = _operand("sort", a, axis, kind, order)
    out = lax.sort(a, dimension=axis, is_stable=stable)
    return lax.rev(out, (axis,)) if descending else out


def _native_order(
    a: Any,
    axis: int | None = -1,
    *,
    stable: bool = True,
    descending: bool = False,
    **_: Any,
) -> Any:
    """Return NumPy's stable sort of places, for dtypes whose order is ours."""
    known = type(a) is ArrayImpl and type(axis) in (int, NoneType)
    if not known or a.dtype.char not in _NATIVE or descending:
        return None
    return lambda x: x.argsort(axis, kind="stable")


@replayed(instead=_native_order)
def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Array:
    """Return the indices that sort an array along an axis; see `sort`.

    Parameters
    ----------
    stable : bool
        Whether equal elements keep their order, in descending order too.
    dtype : dtype-like, optional
        Of the indices.
    """
    a, axis = _operand("argsort", a, axis, kind, order)
    places = places_along(a, axis, dtype)
    if descending:  # backwards, so that equal elements are in order once it is all reversed
        a, places = lax.rev(a, (axis,)), lax.rev(places, (axis,))
    _, out = lax.sort((a, places), dimension=axis, is_stable=stable, num_keys=1)
    return lax.rev(out, (axis,)) if descending else out


@replayed
def lexsort(keys: Any, axis: int = -1) -> Array:
    """Return the indices that sort by several keys: the last is the primary one.

    Parameters
    ----------
    keys : sequence of array_like, or array
        Of one shape.
    axis : int

    Raises
    ------
    TypeError
        For no keys.
    ValueError
        For keys of different shapes.
    """
    found = [array_of("lexsort", k, i) for i, k in enumerate(sequence_of("lexsort", keys))]
    if not found:
        raise TypeError("numpy.lexsort: need at least one key.")
    if len({k.shape for k in found}) > 1:
        raise ValueError(
            f"numpy.lexsort: all keys must have one shape, got {[k.shape for k in found]}."
        )
    if not found[0].ndim:
        return lax.full((), 0, index_dtype())
    axis = axis_of("lexsort", axis, found[0].ndim)
    return order_of(found[::-1], axis)


def order_of(keys: Sequence[Array], axis: int) -> Array:
    """Return the indices that sort by keys, the first being the primary one."""
    places = places_along(keys[0], axis)
    return lax.sort((*keys, places), dimension=axis, num_keys=len(keys))[-1]


@replayed
def sort_complex(a: Any) -> Array:
    """Sort along the last axis, as complex numbers: by real part, then by imaginary part."""
    a = array_of("sort_complex", a)
    return sort(lax.convert_element_type(a, to_complex(a.dtype)))


def _rank(name: str, a: Array, kth: Any, axis: int) -> None:
    n = a.shape[axis]
    if not -n <= int(kth) < n:
        raise ValueError(f"numpy.{name}: kth={kth} is out of bounds for axis of size {n}.")


@replayed
def partition(a: Any, kth: int, axis: int = -1) -> Array:
    """Put element ``kth`` where sorting would; smaller ones before, larger ones after it.

    Notes
    -----
    Sorts in full: on current processors vectorised sorting leaves little to gain.
    """
    a = array_of("partition", a)
    axis = axis_of("partition", axis, a.ndim)
    _rank("partition", a, kth, axis)
    return lax.sort(a, dimension=axis)


@replayed
def argpartition(a: Any, kth: int, axis: int = -1) -> Array:
    """Return the indices that partition an array along an axis; see `partition`."""
    a = array_of("argpartition", a)
    axis = axis_of("argpartition", axis, a.ndim)
    _rank("argpartition", a, kth, axis)
    return argsort(a, axis)


# --- places in sorted arrays --------------------------------------------------------------------


def _search_alike(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Any:
    """Return what finds places by NumPy, among arrays of one dtype."""
    if sorter is not None or type(a) is not ArrayImpl or type(v) is not ArrayImpl:
        return None
    if a.dtype is not v.dtype or is_half(a.dtype):
        return None
    dtype = index_dtype(a.size)
    return lambda a, v: np.asarray(places_in(a, v, side), dtype)


@replayed(instead=_search_alike)
def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Array:
    """Return the places at which values would be inserted into a sorted vector.

    Parameters
    ----------
    a : array_like
        In rising order, NaNs last.
    v : array_like
    side : {"left", "right"}
        Before or after elements equal to the value.
    sorter : array of int, optional
        Indices that sort ``a``.
    method : {"scan", "scan_unrolled", "sort", "compare_all", "default"}
        ``"compare_all"`` counts smaller elements; the others are one binary search.

    Raises
    ------
    ValueError
        For ``a`` that is no vector, or an unknown ``side`` or ``method``.
    """
    a, v = operands("searchsorted", a, v)
    if side not in ("left", "right"):
        raise ValueError(f"numpy.searchsorted: side must be 'left' or 'right', got {side!r}.")
    if method not in _METHODS:
        raise ValueError(f"numpy.searchsorted: method must be in {_METHODS}, got {method!r}.")
    if np.ndim(a) != 1:
        raise ValueError(f"numpy.searchsorted: a must be a vector, got shape {np.shape(a)}.")
    a, v = promote_dtypes(a, v)
    if sorter is not None:
        a = take_index(a, (sorter,), mode="fill")
    dtype = index_dtype(a.size)  # the array API's; JAX's are int32 with 64-bit dtypes too
    if not (isinstance(a, Tracer) or isinstance(v, Tracer)):
        keys, values = np.asarray(a), np.asarray(v)
        if is_half(keys.dtype):
            keys, values = keys.astype(np.float32), values.astype(np.float32)
        return asarray(np.asarray(places_in(keys, values, side), dtype))
    if not a.size:
        return lax.full(v.shape, 0, dtype)
    search = _count_smaller if method == "compare_all" else _bisect
    return search(a, v, side == "right", dtype)


#: Values from which on all are looked for together, and how many at a time: those of a near cache.
_TOGETHER, _AT_ONCE = 1 << 12, 1 << 13


def places_in(keys: np.ndarray, values: np.ndarray, side: Any) -> np.ndarray:
    """Return where known values belong, as NumPy does.

    It looks for one after another, in jumps that no processor foresees: 10,000 in a million took
    2.2 ms, and take 0.4 where the ranges of all are halved together.
    """
    many = values.size >= _TOGETHER and keys.size > 1 and values.dtype.char in "bBhHiIlLqQfd"
    flat = values.reshape(-1)
    if not many or keys[-1] != keys[-1] or (flat != flat).any() or (flat[1:] >= flat[:-1]).all():
        return np.searchsorted(keys, values, side)
    before = np.less_equal if side == "right" else np.less
    out = np.empty(flat.shape, np.intp)
    for start in range(0, flat.size, _AT_ONCE):
        some = flat[start : start + _AT_ONCE]
        low, size = out[start : start + _AT_ONCE], keys.size
        low[:] = 0
        step, element, up = np.empty_like(low), np.empty_like(some), np.empty(some.shape, bool)
        while size:
            half = (size + 1) // 2
            keys[half - 1 :].take(low, out=element, mode="clip")  # which checks no place
            low += np.multiply(before(element, some, out=up), half, out=step)
            size -= half
    return out.reshape(values.shape)


def _before(x: Array, y: Array) -> Array:
    """Whether ``x`` sorts before ``y``, NaNs being last."""
    less = lax.lt(x, y)
    if not is_float(x.dtype):
        return less
    return lax.bitwise_or(less, lax.bitwise_and(lax.ne(y, y), lax.eq(x, x)))


def _bisect(a: Array, v: Array, right: bool, dtype: np.dtype) -> Array:
    """Halve all the ranges at once; the number of steps depends on the length alone."""
    n = a.shape[0]

    def step(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = lax.add(low, lax.div(lax.sub(high, low), dtype.type(2)))
        element = take_index(a, middle, mode="clip")
        up = lax.bitwise_not(_before(v, element)) if right else _before(element, v)
        # A range that is already empty stays as it is.
        up = lax.bitwise_and(up, lax.lt(low, high))
        above = lax.add(middle, dtype.type(1))
        return lax.select(up, above, low), lax.select(up, high, middle)

    bounds = lax.full(v.shape, 0, dtype), lax.full(v.shape, n, dtype)
    return fori_loop(0, n.bit_length(), step, bounds)[0]


def _count_smaller(a: Array, v: Array, right: bool, dtype: np.dtype) -> Array:
    shape = (*v.shape, a.shape[0])
    keys = lax.broadcast_in_dim(a, shape, (v.ndim,))
    values = lax.broadcast_in_dim(v, shape, range(v.ndim))
    below = lax.bitwise_not(_before(values, keys)) if right else _before(keys, values)
    return lax.reduce_sum(lax.convert_element_type(below, dtype), (v.ndim,))


def _digitize_alike(
    x: Any, bins: Any, right: bool = False, *, method: str | None = None
) -> Callable[..., Any] | None:
    """Return what finds bins by NumPy, among arrays of one dtype."""
    side = "left" if right else "right"
    found = _search_alike(bins, x, side)
    if found is None or bins.ndim != 1 or not bins.size:
        return None

    def evaluate(x: np.ndarray, bins: np.ndarray) -> np.ndarray:
        if bins[-1] >= bins[0]:
            return found(bins, x)
        after = found(bins[::-1], x)
        return after.dtype.type(len(bins)) - after

    return evaluate


@replayed(instead=_digitize_alike)
def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Array:
    """Return, for each value, the number of the bin that it falls into.

    Parameters
    ----------
    x : array_like
    bins : array_like
        Edges, in rising or falling order.
    right : bool
        Whether bins include their right edge rather than the left one.
    method : str, optional
        As for `searchsorted`.

    Raises
    ------
    ValueError
        For ``bins`` that are no vector.
    """
    x, bins = (array_of("digitize", k, i) for i, k in enumerate((x, bins)))
    if bins.ndim != 1:
        raise ValueError(f"numpy.digitize: bins must be a vector, got shape {bins.shape}.")
    n = bins.shape[0]
    if not n:
        return lax.full(x.shape, 0, np.int32)
    how = {"side": "left" if right else "right", "method": method or "scan"}
    rising = searchsorted(bins, x, **how)
    after = searchsorted(lax.rev(bins, (0,)), x, **how)
    falling = lax.sub(after.dtype.type(n), after)
    last, first = (lax.index_in_dim(bins, k, keepdims=False) for k in (-1, 0))
    return choose_where(lax.ge(last, first), rising, falling)
