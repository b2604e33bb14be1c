"""Sorting, and orders that sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.dtypes import as_dtype, canonicalize_dtype, to_complex
from ._shape import array_of, axis_of, ravel, sequence_of

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "sort_complex"]


def index_dtype(size: int = 0) -> np.dtype:
    """Return the dtype of indices along an axis: the default integer, wider where needed."""
    return np.dtype(np.int64) if size >= 2**31 else canonicalize_dtype(int)


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


def sort_complex(a: Any) -> Array:
    """Sort along the last axis, as complex numbers: by real part, then by imaginary part."""
    a = array_of("sort_complex", a)
    return sort(lax.convert_element_type(a, to_complex(a.dtype)))


def _rank(name: str, a: Array, kth: Any, axis: int) -> None:
    n = a.shape[axis]
    if not -n <= int(kth) < n:
        raise ValueError(f"numpy.{name}: kth={kth} is out of bounds for axis of size {n}.")


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


def argpartition(a: Any, kth: int, axis: int = -1) -> Array:
    """Return the indices that partition an array along an axis; see `partition`."""
    a = array_of("argpartition", a)
    axis = axis_of("argpartition", axis, a.ndim)
    _rank("argpartition", a, kth, axis)
    return argsort(a, axis)
