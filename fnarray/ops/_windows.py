"""The windows of gather and scatter: where they start, and how they lie in the batched array.

Both operations pair a *whole* array (the operand) with a *batched* one (the result of a gather,
the updates of a scatter). The batched array's axes are those of the index vectors (the batch)
interleaved with those of the windows; its element at batch ``b`` and offset ``w`` belongs to the
whole's element ``start(b) + w``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..core import symbolic
from ..core.forms import Bound
from ..errors import ShapeError
from .kit.canonical import Shape


class GatherScatterMode(enum.Enum):
    """What becomes of windows that are not entirely inside the array.

    CLIP
        They are moved until they are inside.
    FILL_OR_DROP
        They read as a fill value, and are not written at all.
    PROMISE_IN_BOUNDS
        There are none, the caller says. Should there be some, reads clip and writes drop.
    ONE_HOT
        They read as zeros, as in a product with one-hot rows, and are not written at all.
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """Return the mode that a name stands for; None stands for ``FILL_OR_DROP``.

        Raises
        ------
        ValueError
            For other names.
        """
        if isinstance(s, GatherScatterMode):
            return s
        mode = _MODES.get(s)
        if mode is None:
            names = ", ".join(repr(name) for name in _MODES if name)
            raise ValueError(f'Unknown gather mode "{s}": must be one of {names}.')
        return mode


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class GatherDimensionNumbers(NamedTuple):
    """How operand, indices and result of `gather` correspond.

    Index vectors are the last axis of the indices, always.

    Parameters
    ----------
    offset_dims : tuple of int
        Axes of the result that run over a window, ascending.
    collapsed_slice_dims : tuple of int
        Axes of the operand along which windows have size 1 and the result has no axis.
    start_index_map : tuple of int
        For each entry of an index vector, the operand's axis it is a start along.
    operand_batching_dims, start_indices_batching_dims : tuple of int
        Axes of operand and indices that run together.
    """

    offset_dims: Shape
    collapsed_slice_dims: Shape
    start_index_map: Shape
    operand_batching_dims: Shape = ()
    start_indices_batching_dims: Shape = ()

    def scatter(self) -> ScatterDimensionNumbers:
        """Return the numbers by which `scatter` writes what a gather reads."""
        return ScatterDimensionNumbers(*self)

    def led(self, operand: bool, indices: bool) -> GatherDimensionNumbers:
        """Return the numbers for operands with one more leading axis: either of them, or both.

        An axis of the operand alone is a window's, of the indices alone the batch's; one of both
        runs along.
        """
        batch, window = _led(operand, indices)
        return GatherDimensionNumbers(
            (*window, *_after(self.offset_dims, True)),
            _after(self.collapsed_slice_dims, operand),
            _after(self.start_index_map, operand),
            (*batch, *_after(self.operand_batching_dims, operand)),
            (*batch, *_after(self.start_indices_batching_dims, indices)),
        )


class ScatterDimensionNumbers(NamedTuple):
    """How operand, indices and updates of `scatter` correspond; mirrors `GatherDimensionNumbers`.

    Parameters
    ----------
    update_window_dims : tuple of int
        Axes of the updates that run over a window, ascending.
    inserted_window_dims : tuple of int
        Axes of the operand along which windows have size 1 and the updates have no axis.
    scatter_dims_to_operand_dims : tuple of int
        For each entry of an index vector, the operand's axis it is a start along.
    operand_batching_dims, scatter_indices_batching_dims : tuple of int
        Axes of operand and indices that run together.
    """

    update_window_dims: Shape
    inserted_window_dims: Shape
    scatter_dims_to_operand_dims: Shape
    operand_batching_dims: Shape = ()
    scatter_indices_batching_dims: Shape = ()

    def led(self, indices: bool) -> ScatterDimensionNumbers:
        """Return the numbers for one more leading axis of operand and updates, perhaps indices."""
        batch, window = _led(True, indices)
        return ScatterDimensionNumbers(
            (*window, *_after(self.update_window_dims, True)),
            _after(self.inserted_window_dims, True),
            _after(self.scatter_dims_to_operand_dims, True),
            (*batch, *_after(self.operand_batching_dims, True)),
            (*batch, *_after(self.scatter_indices_batching_dims, indices)),
        )

    def gather(self) -> GatherDimensionNumbers:
        """Return the numbers by which `gather` reads what a scatter writes."""
        return GatherDimensionNumbers(*self)


def _led(operand: bool, indices: bool) -> tuple[Shape, Shape]:
    return (0,) * (operand and indices), (0,) * (operand and not indices)


def _after(axes: Shape, more: bool) -> Shape:
    return tuple(a + more for a in axes)


@dataclass(frozen=True)
class Windows:
    """How windows lie in the whole and in the batched array.

    Parameters
    ----------
    whole : tuple of int
        Shape of the whole array.
    sizes : tuple of int
        Extents of a window along the whole's axes.
    indices : tuple of int
        Shape of the array of index vectors, which are its last axis.
    offset_dims : tuple of int
        Axes of the batched array that run over windows.
    collapsed : tuple of int
        Axes of the whole that windows have one element along, and no axis of the batched array.
    index_map : tuple of int
        For each entry of an index vector, the axis of the whole it is a start along.
    batching : tuple of int
        Axes of the whole that run along with an axis of the batch, collapsed too.
    indices_batching : tuple of int
        Those axes of the batch.
    """

    whole: Shape
    sizes: Shape
    indices: Shape
    offset_dims: Shape
    collapsed: Shape
    index_map: Shape
    batching: Shape
    indices_batching: Shape

    @cached_property
    def batch(self) -> Shape:
        """Shape of the batch."""
        return self.indices[:-1]

    @cached_property
    def window_axes(self) -> Shape:
        """Axes of the whole that have an axis of the batched array, in order."""
        gone = (*self.collapsed, *self.batching)
        return tuple(d for d in range(len(self.whole)) if d not in gone)

    @cached_property
    def batch_dims(self) -> Shape:
        """Axes of the batched array that run over the batch."""
        rank = len(self.batch) + len(self.offset_dims)
        return tuple(d for d in range(rank) if d not in self.offset_dims)

    @cached_property
    def limits(self) -> Shape:
        """Largest start along each axis of the whole."""
        return tuple(n - w for n, w in zip(self.whole, self.sizes, strict=True))

    def check(self, name: str) -> None:
        """Raise `TypeError` unless the numbers describe windows of the whole array."""
        rank = len(self.whole)
        total = len(self.batch) + len(self.offset_dims)
        for what, dims, limit, ordered in (
            ("window dimensions of the batched array", self.offset_dims, total, True),
            ("collapsed dimensions", self.collapsed, rank, True),
            ("dimensions that index vectors map to", self.index_map, rank, False),
            ("batching dimensions of the operand", self.batching, rank, True),
            ("batching dimensions of the indices", self.indices_batching, len(self.batch), False),
        ):
            if (
                any(not 0 <= d < limit for d in dims)
                or len(set(dims)) != len(dims)
                or (ordered and tuple(dims) != tuple(sorted(dims)))
            ):
                order = "ascending, " if ordered else ""
                raise ShapeError(
                    f"lax.{name}: {what} must be distinct, {order}in [0, {limit}), got {dims}."
                )
        if len(self.index_map) != self.indices[-1]:
            raise ShapeError(
                f"lax.{name}: the last axis of the indices, of size {self.indices[-1]}, must hold "
                f"one entry for each mapped dimension, got {self.index_map}."
            )
        if set(self.batching) & {*self.collapsed, *self.index_map}:
            raise ShapeError(
                f"lax.{name}: batching dimensions {self.batching} must be neither collapsed "
                f"{self.collapsed} nor mapped to {self.index_map}."
            )
        ours = [self.whole[d] for d in self.batching]
        theirs = [self.batch[d] for d in self.indices_batching]
        if ours != theirs:
            raise ShapeError(
                f"lax.{name}: batching dimensions of operand and indices must have equal sizes, "
                f"got {ours} and {theirs}."
            )
        if len(self.sizes) != rank or len(self.window_axes) != len(self.offset_dims):
            raise ShapeError(
                f"lax.{name}: every dimension of the operand {self.whole} must be a window "
                f"dimension, collapsed or batching, got windows of {self.sizes}, window dimensions "
                f"{self.offset_dims}, collapsed {self.collapsed}, batching {self.batching}."
            )
        empty = 0 in self.batch
        if any(w < 0 or (w > n and not empty) for n, w in zip(self.whole, self.sizes, strict=True)):
            raise ShapeError(
                f"lax.{name}: windows must fit in the operand {self.whole}, got sizes {self.sizes}."
            )
        if any(self.sizes[d] != 1 for d in self.collapsed) or any(
            self.sizes[d] > 1 for d in self.batching
        ):
            raise ShapeError(
                f"lax.{name}: windows must have size 1 along collapsed and batching dimensions, "
                f"got sizes {self.sizes}."
            )

    # --- as symbols, for forms ---

    def _starts(self, i: Any, read: Any) -> dict[int, Any]:
        b = tuple(i[d] for d in self.batch_dims)
        starts = {d: read(1, (*b, k)) for k, d in enumerate(self.index_map)}
        starts.update((d, b[k]) for d, k in zip(self.batching, self.indices_batching, strict=True))
        return starts

    def index(self, i: Any, read: Any, *, clip: bool) -> tuple[Any, ...]:
        """Return the whole's indices of the batched array's element ``i``."""
        starts = self._starts(i, read)
        if clip:
            for d in self.index_map:
                starts[d] = symbolic.clamp(starts[d], 0, self.limits[d])
        offsets = {a: i[d] for a, d in zip(self.window_axes, self.offset_dims, strict=True)}
        return tuple(starts.get(d, 0) + offsets.get(d, 0) for d in range(len(self.whole)))

    def bounds(self, i: Any, read: Any) -> tuple[Bound, ...]:
        """Return what must hold for the window of element ``i`` to be inside."""
        starts = self._starts(i, read)
        return tuple((0, starts[d], self.limits[d] + 1) for d in self.index_map)

    # --- as arrays, for evaluation ---

    def starts(self, indices: np.ndarray) -> tuple[dict[int, np.ndarray], np.ndarray]:
        """Return starts along mapped, batching and collapsed axes, and which windows are inside.

        Starts are clipped: windows that are not inside are moved there.
        """
        if indices.dtype == np.uint64:
            indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
        raw = indices.astype(np.intp)
        found = {d: np.zeros(self.batch, np.intp) for d in self.collapsed}
        inside = np.ones(self.batch, bool)
        for k, d in enumerate(self.index_map):
            # Two calls: `numpy.clip` takes few numbers ten times as long.
            start = np.minimum(np.maximum(raw[..., k], 0), max(self.limits[d], 0))
            inside &= start == raw[..., k]
            found[d] = start
        found.update((d, np.broadcast_to(line, self.batch)) for d, line in self.lines.items())
        return dict(sorted(found.items())), inside

    def box(self, indices: np.ndarray) -> tuple[tuple[slice, ...], bool]:
        """Return the window of a batch of one as slices, clipped, and whether it is inside."""
        starts, inside = self.starts(indices)
        first = [int(starts[d].flat[0]) if d in starts else 0 for d in range(len(self.whole))]
        box = tuple(slice(s, s + w) for s, w in zip(first, self.sizes, strict=True))
        return box, bool(inside.all())

    @cached_property
    def lines(self) -> dict[int, np.ndarray]:
        """Starts along the axes that run along with one of the batch."""
        found: dict[int, np.ndarray] = {}
        for d, k in zip(self.batching, self.indices_batching, strict=True):
            line = [-1 if a == k else 1 for a in range(len(self.batch))]
            found[d] = np.arange(self.batch[k]).reshape(line)
        return found

    @cached_property
    def rows(self) -> tuple[Shape, Shape] | None:
        """How NumPy reaches whole rows or elements, as `lattice` says; None of other windows."""
        whole = all(self.whole[d] == self.sizes[d] for d in self.window_axes)
        if not whole or not self.collapsed == tuple(sorted(self.index_map)) != ():
            return None
        starts, _ = self.starts(np.zeros(self.indices, np.intp))
        order, _, axes = self.lattice(starts)
        return order, axes

    def places(self, indices: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Return the places of rows along the axes they are of; None unless all are inside.

        Indices are signed, and there are some.
        """
        found: list[np.ndarray] = []
        for d in sorted((*self.collapsed, *self.batching)):
            if d in self.lines:
                found.append(self.lines[d])
                continue
            place = indices[..., self.index_map.index(d)]
            if place.min() < 0 or place.max() > self.limits[d]:
                return None
            found.append(place)
        return tuple(found)

    def lattice(self, starts: dict[int, np.ndarray]) -> tuple[Shape, tuple[Any, ...], Shape]:
        """Return how NumPy indexing reaches the windows.

        Returns
        -------
        order : tuple of int
            Permutation of the whole's axes: those with starts come first.
        index : tuple
            Index of the permuted whole: arrays, then slices. What it gives has the axes of the
            batch, then those of the windows, in the permuted order.
        axes : tuple of int
            Permutation of that to the batched array's order.
        """
        rest = tuple(d for d in range(len(self.whole)) if d not in starts)
        order = (*starts, *rest)
        spread = [d for d in starts if d in self.window_axes]
        index: list[Any] = []
        for d, start in starts.items():
            offsets = np.zeros((), np.intp)
            if d in spread:
                offsets = np.arange(self.sizes[d])
                offsets = offsets.reshape([-1 if a == d else 1 for a in spread])
            shape = (*start.shape, *[1] * len(spread))
            index.append(start.reshape(shape) + offsets)
        index.extend(slice(0, self.sizes[d]) for d in rest)
        rank = len(self.batch)
        have = {d: rank + k for k, d in enumerate((*spread, *rest))}
        windows = iter(have[d] for d in self.window_axes)
        batch = iter(range(rank))
        total = rank + len(self.offset_dims)
        axes = tuple(next(windows if d in self.offset_dims else batch) for d in range(total))
        return order, tuple(index), axes
