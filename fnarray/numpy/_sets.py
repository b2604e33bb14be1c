"""Arrays as sets and as wholes: distinct elements, membership, equality.

Everything is sorting and masks, so that with a ``size`` it can be traced.
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.dtypes import is_inexact
from ..core.eager import replayed
from ..core.trace import Tracer
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import Overlay
from ._creation import asarray
from ._indexing import take as take_index
from ._join import concatenate
from ._math import isclose, isnan
from ._promote import broadcast_to as stretch
from ._promote import operands, promote_dtypes
from ._reductions import all as reduce_all
from ._search import nonzero
from ._shape import array_of, axis_of, concrete, moveaxis, ravel
from ._sorting import index_dtype, order_of, places_along, searchsorted

__all__ = [
    "allclose",
    "array_equal",
    "array_equiv",
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


# --- distinct elements --------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def _changes(x: Array, equal_nan: bool = True) -> Array:
    """Whether each row of a sorted array differs from the row before it; the first does."""
    n = x.shape[0]
    old, new = (lax.slice_in_dim(x, k, k + n - 1) for k in (0, 1))
    differ = lax.ne(old, new)
    if equal_nan and is_inexact(x.dtype):
        differ = differ & ~(isnan(old) & isnan(new))
    differ = lax.reduce_or(differ, range(1, x.ndim)) if x.ndim > 1 else differ
    return lax.concatenate([lax.full((1,), True, bool), differ], 0)


def _rows(name: str, ar: Any, axis: int | None) -> tuple[Array, Any]:
    """Return what is to be distinct as rows, and how to give rows their shape back."""
    a = array_of(name, ar)
    if axis is None:
        return ravel(a), None
    axis = axis_of(name, axis, a.ndim)
    a = moveaxis(a, axis, 0)
    return lax.reshape(a, (a.shape[0], prod(a.shape[1:]))), (a.shape[1:], axis)


def _shaped(rows: Array, how: Any) -> Array:
    return rows if how is None else moveaxis(
        lax.reshape(rows, (rows.shape[0], *how[0])), 0, how[1]
    )  # fmt: skip


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """Return the distinct elements of an array, or its distinct slices along an axis, sorted.

    Parameters
    ----------
    ar : array_like
    return_index : bool
        Return the index of each one's first occurrence too.
    return_inverse : bool
        Return, for each element of ``ar``, its index among the distinct ones too.
    return_counts : bool
        Return the number of occurrences too.
    axis : int, optional
        Elements of the flattened array are meant where omitted.
    equal_nan : bool
        Whether NaNs count as one.
    size : int, optional
        Number of elements to return, which makes it possible to trace: further ones are cut.
    fill_value : scalar, optional
        What fills up to ``size``; the least element where omitted.
    sorted : bool
        Accepted; the result is always sorted.

    Raises
    ------
    ConcretizationTypeError
        For a traced array and no ``size``.
    """
    if isinstance(ar, Tracer) and size is None:
        concrete("unique", "ar", ar, "Give the number of results: size.")
    shape = np.shape(ar)
    rows, how = _rows("unique", ar, axis)
    wanted = (return_index, return_inverse, return_counts)
    if not rows.shape[0]:
        values, *extra = _unique_of_none(rows, how, size, fill_value)
        extra = [x for x, want in zip(extra, wanted, strict=True) if want]
    else:
        values, *extra = _unique(rows, how, equal_nan, size, fill_value, wanted)
    if return_inverse and axis is None:
        extra[return_index] = lax.reshape(extra[return_index], shape)
    return (values, *extra) if extra else values


def _unique_of_none(rows: Array, how: Any, size: int | None, fill_value: Any) -> tuple[Array, ...]:
    if size and fill_value is None:
        raise ValueError("numpy.unique: an array of no elements with a size needs a fill_value.")
    size, dtype = size or 0, index_dtype()
    fill = lax.convert_element_type(0 if fill_value is None else fill_value, rows.dtype)
    values = _shaped(stretch("unique", fill, (size, *rows.shape[1:])), how)
    none = lax.full((size,), 0, dtype)
    return values, none, lax.full((0,), 0, dtype), none


def _unique(
    rows: Array,
    how: Any,
    equal_nan: bool,
    size: int | None,
    fill_value: Any,
    wanted: tuple[bool, bool, bool],
) -> list[Array]:
    """Return the distinct rows, and what is wanted of first places, inverse and counts."""
    n, dtype = rows.shape[0], index_dtype(rows.shape[0])
    keys = [rows] if rows.ndim == 1 else [
        lax.index_in_dim(rows, k, 1, keepdims=False) for k in range(rows.shape[1])
    ]  # fmt: skip
    order = order_of(keys, 0) if keys else lax.iota(dtype, n)
    ordered = take_index(rows, order, mode="clip")
    change = _changes(ordered, equal_nan)
    # Past the last change every place is n, so that counts there come out as 0.
    (begin,) = nonzero(change, size=size, fill_value=n)
    found = lax.lt(begin, dtype.type(n))
    begin_or_first = lax.select(found, begin, lax.full_like(begin, 0))
    values = take_index(ordered, begin_or_first, mode="clip")
    if size is not None and fill_value is not None:
        fill = lax.convert_element_type(fill_value, rows.dtype)
        mask = lax.broadcast_in_dim(found, values.shape, (0,))
        values = lax.select(mask, values, stretch("unique", fill, values.shape))
    weak = rows.weak_type and fill_value is None
    out = [_shaped(convert(values, rows.dtype, weak), how)]
    if wanted[0]:
        out.append(take_index(order, begin_or_first, mode="clip"))
    if wanted[1]:
        number = lax.cumsum(lax.convert_element_type(change, dtype)) - 1
        out.append(lax.sort((order, number), num_keys=1)[1])
    if wanted[2]:
        out.append(_counts(change, begin, size))
    return out


def _counts(change: Array, begin: Array, size: int | None) -> Array:
    """Return how many rows there are from each place on where one differs from the one before."""
    n, dtype = change.shape[0], begin.dtype
    total = lax.reduce_sum(lax.convert_element_type(change, dtype), (0,))
    end = lax.concatenate([begin, lax.full((1,), n, dtype)], 0)[1:]
    if size is not None:  # the last one kept ends where the next, cut off, begins
        following = nonzero(change, size=size + 1, fill_value=n)[0]
        end = following[1:]
    return lax.select(lax.iota(dtype, begin.size) < total, end - begin, lax.full_like(begin, 0))


#: As the array API has it: each NaN is another value.
_each = functools.partial(unique, equal_nan=False)


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """Return the distinct elements, their first indices, inverse indices and counts."""
    return UniqueAll(*_each(x, True, True, True, size=size, fill_value=fill_value))


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """Return the distinct elements and their numbers of occurrences."""
    return UniqueCounts(*_each(x, return_counts=True, size=size, fill_value=fill_value))


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """Return the distinct elements and, for each element of ``x``, its index among them."""
    return UniqueInverse(*_each(x, return_inverse=True, size=size, fill_value=fill_value))


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the distinct elements."""
    return _each(x, size=size, fill_value=fill_value)


# --- operations on sets -------------------------------------------------------------------------


@replayed
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Return whether each element is among ``test_elements`` (with ``invert``, whether it is not).

    Parameters
    ----------
    element, test_elements : array_like
        NaN is in no set.
    assume_unique : bool
        Accepted; it makes no difference.
    invert : bool
    method : {"auto", "compare_all", "binary_search", "sort"}
        Comparing all pairs, or searching a sorted array; by default whichever is less work.

    Raises
    ------
    ValueError
        For an unknown method.
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            "numpy.isin: method must be 'auto', 'compare_all', 'binary_search' or 'sort', got "
            f"{method!r}."
        )
    x, tests = promote_dtypes(*operands("isin", element, test_elements))
    tests = ravel(tests)
    if not tests.size or not x.size:
        return lax.full(x.shape, invert, bool)
    # Below some ten comparisons for each element, comparing beats sorting and searching.
    if method == "compare_all" or (method == "auto" and tests.size <= 16):
        shape = (*x.shape, tests.size)
        left = lax.broadcast_in_dim(x, shape, range(x.ndim))
        right = lax.broadcast_in_dim(tests, shape, (x.ndim,))
        hit = lax.reduce_or(lax.eq(left, right), (x.ndim,))
    else:
        ordered = lax.sort(tests)
        place = searchsorted(ordered, x)
        hit = lax.eq(take_index(ordered, place, mode="clip"), x)
    return lax.bitwise_not(hit) if invert else hit


def _known(name: str, size: int | None, *arrays: Any) -> list[Array]:
    """Return arguments as vectors; traced ones need a size of the result."""
    for x in arrays:
        if isinstance(x, Tracer) and size is None:
            concrete(name, "arguments", x, "Give the number of results: size.")
    return [ravel(x) for x in operands(name, *arrays)]


def _pick(
    x: Array, keep: Array, size: int | None, fill_value: Any, least: bool = True
) -> tuple[Array, Array, Array]:
    """Return elements that a mask keeps, filled up to a size; their places; which are found."""
    n = x.shape[0]
    if not n:
        fill = convert(0 if fill_value is None else fill_value, x.dtype)
        none = lax.full((size or 0,), 0, index_dtype())
        return stretch("unique", fill, (size or 0,)), none, lax.full((size or 0,), False, bool)
    (places,) = nonzero(keep, size=size, fill_value=n)
    found = lax.lt(places, places.dtype.type(n))
    values = take_index(x, places, mode="clip")
    if size:
        fill = convert(0 if fill_value is None else fill_value, x.dtype)
        if fill_value is None and least:
            any_found = lax.index_in_dim(found, 0, keepdims=False)
            fill = lax.select(any_found, lax.index_in_dim(values, 0, keepdims=False), fill)
        values = lax.select(found, values, stretch("unique", fill, values.shape))
    return values, places, found


def _sorted_firsts(x: Array) -> tuple[Array, Array, Array]:
    """Return a vector sorted, the order that sorts it, and where each run of equals begins."""
    if not x.size:
        return x, lax.iota(index_dtype(), 0), lax.full((0,), False, bool)
    ordered, order = lax.sort((x, places_along(x, 0)), num_keys=1)
    return ordered, order, _changes(ordered)


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the sorted distinct elements that are in either array; `unique` explains ``size``."""
    a, b = promote_dtypes(*_known("union1d", size, ar1, ar2))
    return unique(lax.concatenate([a, b], 0), size=size, fill_value=fill_value)


@replayed
def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Return the sorted distinct elements that are in both arrays.

    Parameters
    ----------
    ar1, ar2 : array_like
    assume_unique : bool
        Accepted; it makes no difference.
    return_indices : bool
        Return the indices of first occurrences in both too.
    size, fill_value : optional
        As for `unique`; indices are filled with the arrays' sizes.
    """
    a, b = promote_dtypes(*_known("intersect1d", size, ar1, ar2))
    ordered, order, first = _sorted_firsts(a)
    values, places, found = _pick(ordered, first & isin(ordered, b), size, fill_value)
    if not return_indices:
        return values
    if not a.size or not b.size:
        return values, lax.full_like(places, a.size), lax.full_like(places, b.size)
    theirs, order2, _ = _sorted_firsts(b)
    indices = []
    for n, perm, at in (
        (a.size, order, places),
        (b.size, order2, searchsorted(theirs, values)),
    ):
        index = take_index(perm, at, mode="clip")
        indices.append(lax.select(found, index, lax.full_like(index, n)))
    return values, *indices


def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """Return the sorted distinct elements of ``ar1`` that are not in ``ar2``.

    Parameters
    ----------
    ar1, ar2 : array_like
    assume_unique : bool
        Leave ``ar1`` in its order, and repeated elements in it.
    size, fill_value : optional
        As for `unique`; zeros fill where there is no ``fill_value``.
    """
    a, b = _known("setdiff1d", size, ar1, ar2)
    if assume_unique:
        return _pick(a, isin(a, b, invert=True), size, fill_value, least=False)[0]
    ordered, _, first = _sorted_firsts(a)
    keep = first & isin(ordered, b, invert=True)
    return _pick(ordered, keep, size, fill_value, least=False)[0]


@replayed
def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """Return the sorted distinct elements that are in one array, not in both.

    Parameters are as of `intersect1d`.
    """
    a, b = promote_dtypes(*_known("setxor1d", size, ar1, ar2))
    kept = []
    for x, other in ((a, b), (b, a)):
        ordered, _, first = _sorted_firsts(x)
        kept.append((ordered, first & isin(ordered, other, invert=True)))
    values, keep = (concatenate(parts) for parts in zip(*kept, strict=True))
    if values.size:
        values, keep = lax.sort((values, keep), num_keys=1)
    return _pick(values, keep, size, fill_value)[0]


# --- arrays as wholes ---------------------------------------------------------------------------


@replayed
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Return whether two arrays have one shape and equal elements; NaNs with ``equal_nan``."""
    if isinstance(a1, Overlay) or isinstance(a2, Overlay):
        kinds = getattr(a1, "dtype", None), getattr(a2, "dtype", None)
        words = getattr(a1, "_base", None), getattr(a2, "_base", None)
        return array_equal(*words) if kinds[0] == kinds[1] else as_array(np.False_)
    a, b = promote_dtypes(asarray(a1), asarray(a2))
    if a.shape != b.shape:
        return as_array(np.False_)
    same = lax.eq(a, b)
    if equal_nan and is_inexact(a.dtype):
        same = same | (isnan(a) & isnan(b))
    return lax.reduce_and(same, range(a.ndim))


def array_equiv(a1: Any, a2: Any) -> Array:
    """Return whether two arrays broadcast to one shape and have equal elements then."""
    a, b = promote_dtypes(asarray(a1), asarray(a2))
    try:
        shape = lax.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return as_array(np.False_)
    a, b = (stretch("array_equiv", x, shape) for x in (a, b))
    return lax.reduce_and(lax.eq(a, b), range(len(shape)))


@replayed
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Return whether all elements are close: ``|a - b| <= atol + rtol |b|``."""
    return reduce_all(isclose(a, b, rtol, atol, equal_nan))
