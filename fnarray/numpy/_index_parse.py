"""Index expressions, checked and in canonical form."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..core.array import Array, ArrayImpl
from ..core.frozen import frozen
from ..core.places import Slice
from ..core.trace import Tracer, state
from ..errors import NonConcreteBooleanIndexError
from ..ops.kit.canonical import Shape
from ..ops.shape import expand_dims
from ..ops.slicing import concatenate

# Kinds of parsed indices.
INT = "int"  # static
SLICE = "slice"
WINDOW = "window"  # a `Slice`, whose start may be traced
NONE = "newaxis"
ELLIPSIS = "ellipsis"
ARRAY = "array"  # of integers; of rank 0 too, where the value may be traced
BOOL = "bool"  # scalar
#: Those that take an axis of the array.
AXIS = (INT, SLICE, WINDOW, ARRAY)


class Entry(NamedTuple):
    """One parsed index: its kind, its value, and the axis it consumes (-1 for none)."""

    kind: str
    value: Any
    axis: int = -1


@frozen
class Parsed:
    """Indices that account for every axis of an array, and where arrays' axes go.

    NumPy puts the axes of advanced indices where those stand if they are adjacent, and first if
    anything stands between them.
    """

    shape: Shape
    entries: tuple[Entry, ...]
    contiguous: bool

    def all_of(self, *kinds: str) -> bool:
        """Whether every index is of one of the kinds."""
        return all(e.kind in kinds for e in self.entries)

    def in_range(self, wrap: bool) -> bool:
        """Whether static integers are within their axes."""
        return all(
            (-self.shape[e.axis] if wrap else 0) <= e.value < self.shape[e.axis]
            for e in self.entries
            if e.kind is INT
        )


def parse(idx: Any, shape: Shape) -> Parsed:
    """Return an index expression, checked against a shape, in canonical form.

    Raises
    ------
    IndexError
        For too many indices, two ellipses, masks of another shape, traced masks, slices with
        traced bounds, or objects that are not indices.
    TypeError
        For lists in place of arrays, strings, and arrays that are neither integer nor bool.
    """
    if not isinstance(idx, tuple):
        _refuse_list(idx)
        idx = (idx,)
    kinds = [_classify(i) for i in idx]
    if sum(kind is ELLIPSIS for kind, _ in kinds) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(_consumes(kind, value) for kind, value in kinds)
    if used > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed"
        )
    if not any(kind is ELLIPSIS for kind, _ in kinds):
        kinds.append((ELLIPSIS, len(shape) - used))
    entries: list[Entry] = []
    places: list[int] = []  # of advanced indices, an ellipsis counting as one place
    axis = place = 0
    for position, (kind, value) in enumerate(kinds):
        place += 1
        if kind is ELLIPSIS:
            more = [Entry(SLICE, slice(None), axis + k) for k in range(len(shape) - used)]
        elif kind == "mask":
            more = _expand_mask(value, shape, axis, position)
            places.extend(range(place, place + len(more)))
            place += len(more) - 1
        else:
            more = [Entry(kind, value, axis if kind in AXIS else -1)]
            if kind in (INT, ARRAY, BOOL):
                places.append(place)
        axis += sum(e.axis >= 0 for e in more)
        entries.extend(more)
    contiguous = all(b - a == 1 for a, b in pairwise(places))
    return Parsed(shape, tuple(entries), contiguous)


def _refuse_list(idx: Any) -> None:
    if isinstance(idx, Sequence) and not isinstance(idx, str):
        nested = any(
            i is None or i is Ellipsis or isinstance(i, slice | Sequence) or np.ndim(i) != 0
            for i in idx
        )
        name = "tuple" if nested else "array"
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            f"`arr[{name}(seq)]` instead of `arr[seq]`."
        )


def _classify(i: Any) -> tuple[str, Any]:
    """Return the kind and value of one index; ``"mask"`` is a concrete mask of rank 1 or more."""
    if i is None:
        return NONE, None
    if i is Ellipsis:
        return ELLIPSIS, None
    if isinstance(i, slice):
        if any(isinstance(bound, Tracer) for bound in (i.start, i.stop, i.step)):
            raise IndexError(
                f"Slice entries must be static integers. Got {i}. For a traced start and a "
                "static size use x[fnarray.ds(start, size)] (lax.dynamic_slice); else "
                "mark the argument static."
            )
        return SLICE, i
    if isinstance(i, Slice):
        return WINDOW, i
    if isinstance(i, bool | np.bool_):
        return BOOL, bool(i)
    if isinstance(i, int | np.integer):
        return INT, int(i)
    if isinstance(i, Array | np.ndarray):
        return _classify_array(i)
    if isinstance(i, str):
        raise TypeError(f"string indexing is not supported; got idx={i!r}")
    if isinstance(i, Sequence):
        return _classify_array(_array_of(i))
    if isinstance(i, float | complex | np.generic):
        raise _not_an_index(np.dtype(type(i)))
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean "
        f"arrays are valid indices. Got {i!r}"
    )


def _classify_array(i: Any) -> tuple[str, Any]:
    if i.dtype.kind == "b":
        if isinstance(i, Tracer):
            raise NonConcreteBooleanIndexError(
                f"Array boolean indices must be concrete, got {i.aval.str_short()}: the result's "
                f"shape would depend on its values.\n  The array is {i.where_from()}.\n"
                "  Use fnarray.numpy.where(mask, x, y), or x.at[...].set with where."
            )
        mask = np.asarray(i)
        return ("mask", mask) if mask.ndim else (BOOL, bool(mask))
    if i.dtype.kind not in "iu":
        raise _not_an_index(i.dtype)
    if type(i) is ArrayImpl and state.trace is None:
        i = i._data
    return ARRAY, i


def _not_an_index(dtype: np.dtype) -> TypeError:
    return TypeError(
        f"Indexer must have integer or boolean type, got indexer with type {dtype}. "
        "Convert it: idx.astype(int)."
    )


def _array_of(items: Sequence[Any]) -> Any:
    """Return a list within an index as an array; an empty one selects nothing."""
    if not len(items):
        return np.zeros(0, np.int32)
    if any(isinstance(i, Tracer) for i in items):
        return concatenate([expand_dims(i, (0,)) for i in items], 0)
    return np.asarray([np.asarray(i) for i in items])


def _consumes(kind: str, value: Any) -> int:
    if kind == "mask":
        return value.ndim
    return 1 if kind in AXIS else 0


def _expand_mask(mask: np.ndarray, shape: Shape, axis: int, position: int) -> list[Entry]:
    want = shape[axis : axis + mask.ndim]
    if any(n not in (0, m) for n, m in zip(mask.shape, want, strict=True)):
        raise IndexError(
            "boolean index did not match shape of indexed array in index "
            f"{position}: got {mask.shape}, expected {want}"
        )
    return [Entry(ARRAY, where, axis + k) for k, where in enumerate(np.nonzero(mask))]
