"""Places of arrays: slices whose start may be traced, and what an index of a Ref selects.

Where all of a Ref's index is numbers and slices without a step, it is one window, and a window that
lies outside moves inside, when it is read and when it is written, as `lax.dynamic_slice` does.
Other places outside are dropped by writes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from .array import Array, ArrayImpl, asarray
from .frozen import frozen
from .trace import Tracer, state
from .tree import register_pytree_node_class

__all__: list[str] = []

_STATIC = (int, np.integer, slice, type(...), type(None))


@register_pytree_node_class
@frozen(eq=False)
class Slice:
    """So many elements from a start on, made by `ds`.

    Attributes
    ----------
    start : int or Array
        May be traced.
    size : int
    stride : int
    """

    start: Any
    size: int
    stride: int = 1

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, int, int]]:
        """Return the start, if it is an array, and what is known."""
        known = None if isinstance(self.start, Array) else self.start
        return () if known is not None else (self.start,), (known, self.size, self.stride)

    @classmethod
    def tree_unflatten(cls, metadata: tuple[Any, int, int], children: Sequence[Any]) -> Slice:
        """Return the slice with its start."""
        known, size, stride = metadata
        return cls(known if known is not None else children[0], size, stride)

    @property
    def last(self) -> Any:
        """Place of the last element, counted from the first."""
        return max(self.size - 1, 0) * self.stride


def dslice(start: Any, size: Any = None, stride: Any = None) -> slice | Slice:
    """Slice of a size that is known, from a start that may be traced: ``x[ds(i, n)]``.

    Parameters
    ----------
    start : int or Array
        An integer. Alone it is the size, and the slice begins at 0; None selects all there is.
    size : int
        How many elements.
    stride : int
        Distance between them, at least 1.

    Returns
    -------
    Slice
        An index of arrays, of their ``.at`` and of Refs. Reads whose start is out of range are
        moved into it, as by `lax.dynamic_slice`.

    Raises
    ------
    TypeError
        The start or the size is no integer, or the size is traced.
    ValueError
        The stride is not a positive int, or the size is negative.
    """
    if start is None:
        return slice(None)
    if size is None:
        start, size = 0, start
    if isinstance(size, Tracer):
        raise TypeError(
            "ds: the size must be known when the function is traced, got "
            f"{size.aval.str_short()}, {size.where_from()}. Mark what it depends on static."
        )
    try:
        size = operator.index(size)
        start = start if isinstance(start, Array) else operator.index(start)
    except TypeError:
        raise TypeError(
            f"ds: the start and the size must be integers, got {start!r} and {size!r}."
        ) from None
    if np.dtype(getattr(start, "dtype", int)).kind not in "iu" or np.shape(start):
        raise TypeError(f"ds: the start must be an integer, got {start!r}.")
    if stride is None:
        stride = 1
    if not isinstance(stride, int) or stride < 1 or size < 0:
        raise ValueError(
            f"ds: the stride must be a positive int and the size no less than 0, got {stride!r} "
            f"and {size}. Reverse what is read: x[ds(i, n)][::-1]."
        )
    return Slice(start, size, stride)


ds = dslice


# ---- of Refs ------------------------------------------------------------------------------------


class Place(NamedTuple):
    """An index, the shape that it selects, and whether NumPy means the same by it."""

    index: Any
    shape: tuple[int, ...]
    static: bool
    window: bool


def is_whole(index: Any) -> bool:
    """Whether an index selects all there is."""
    if type(index) is not tuple:
        return index is ...
    parts = cast("tuple[Any, ...]", index)
    return not parts or (len(parts) == 1 and parts[0] is ...)


def place(what: Any, shape: tuple[int, ...], index: Any) -> Place:
    """Return an index of a shape, checked; ``what`` has it, for the errors.

    Raises
    ------
    ValueError
        A static index is out of range.
    """
    parts = list(cast("tuple[Any, ...]", index)) if isinstance(index, tuple) else [index]
    shown: list[Any] = []  # the index with numbers in place of what is traced
    static = True
    for k, part in enumerate(parts):
        if state.trace is None and type(part) in (ArrayImpl, np.ndarray) and not np.shape(part):
            parts[k] = part = np.asarray(part)[()]  # checked as other numbers are
        if isinstance(part, Slice):
            n = _axis(shape, parts, k)
            parts[k], part, known = _window(what, part, n)
            static &= known
        elif isinstance(part, Array | np.ndarray) and cast("Any", part).dtype.kind in "iu":
            static, sizes = False, np.shape(cast("Any", part))
            part = np.broadcast_to(np.intp(0), sizes) if sizes else 0
        elif not isinstance(part, _STATIC) or isinstance(part, bool):
            static = False
            if isinstance(part, Array):  # a mask: a traced one is refused, with where it is from
                part = np.asarray(part)
        shown.append(part)
    try:
        selected = np.broadcast_to(np.False_, shape)[tuple(shown)].shape
    except IndexError as error:
        raise ValueError(f"Out of bound indexer {index!r} of {what}: {error}.") from None
    window = not static and all(type(i) is int or _unit(i) for i in shown)
    return Place(tuple(parts), selected, static, window)


def _unit(part: Any) -> bool:
    return part is ... or (type(part) is slice and part.step in (None, 1))


def _axis(shape: tuple[int, ...], parts: Sequence[Any], k: int) -> int:
    """Return the size of the axis that an index's part takes."""
    used = [p is not None and p is not ... for p in parts]
    before = any(p is ... for p in parts[:k])
    axis = -sum(used[k:]) if before else sum(used[:k])
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"Too many indices: a Ref of shape {shape} is indexed by {tuple(parts)}.")
    return shape[axis]


def _window(what: Any, part: Slice, n: int) -> tuple[Any, slice, bool]:
    """Return a slice that begins anywhere as an index, one of its size, and whether it is known."""
    start, last = part.start, part.last
    if last >= n and part.size:
        raise ValueError(f"Out of bound slice: {part} of {what}, whose axis has {n} elements.")
    shown = slice(0, last + 1 if part.size else 0, part.stride)
    if isinstance(start, Array):
        # From the end, as dynamic slices count.
        return (
            Slice(start + n * (start < 0).astype(start.dtype), part.size, part.stride),
            shown,
            False,
        )
    begin = start + n if start < 0 else start
    if part.size and not 0 <= begin < n - last:
        raise ValueError(f"Out of bound slice: {part} of {what}, whose axis has {n} elements.")
    known = slice(begin, begin + shown.stop, part.stride)
    return known, known, True


def updated(what: Any, value: Array, path: Sequence[Any], name: str, x: Array) -> Array:
    """Return a value with what lies at a path of indices replaced, or added to.

    Parameters
    ----------
    name : {"set", "add"}
        Where places repeat, the last that is set stays, and all that are added count.

    Raises
    ------
    ValueError
        What is written has another shape than the places.
    """
    index, *inner = [i for i in path if not is_whole(i)] or [...]
    if is_whole(index):
        check_shape(what, value.shape, x, name)
        return x if name == "set" else value + x
    at = place(what, value.shape, index)
    if inner:
        part = value[at.index] if name == "set" else asarray(np.zeros(at.shape, value.dtype))
        x = updated(what, part, inner, name, x)
    check_shape(what, at.shape, x, name)
    places = value.at[at.index]
    put = places.set if name == "set" else places.add
    return put(x, mode="clip") if at.window else put(x)


def check_shape(what: Any, shape: tuple[int, ...], x: Array, name: str) -> None:
    """Raise `ValueError` for a value that has another shape than the places it is written to."""
    if x.shape != shape:
        raise ValueError(
            f"Invalid shape for `{'swap' if name == 'set' else 'addupdate'}`: the part of {what} "
            f"that is written has the shape {shape}, the value has {x.shape}. Broadcast it first: "
            "fnarray.numpy.broadcast_to(value, shape)."
        )
