"""Elements said more than once: ``tile`` and ``repeat``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.eager import replayed
from ..core.hooks import cut_as
from ..core.trace import Tracer
from ..ops.kit.moves import moving
from ._promote import as_operand
from ._shape import array_of, axis_of, concrete, ravel, sizes_of

__all__ = ["repeat", "tile"]


@moving
@replayed
def tile(A: Any, reps: int | Sequence[int]) -> Array:
    """Repeat a whole array along axes; the shorter of shape and ``reps`` gets 1s in front."""
    A = array_of("tile", A)
    counts = sizes_of("tile", reps)
    rank = max(A.ndim, len(counts))
    return lax.tile(lax.broadcast_to_rank(A, rank), (1,) * (rank - len(counts)) + counts)


@moving
@replayed
def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Repeat each element along an axis.

    Parameters
    ----------
    a : array_like
    repeats : int or array of int
        Counts, one for each element or one for all; traced only with ``total_repeat_length``.
    axis : int, optional
        The flattened array is repeated where omitted.
    total_repeat_length : int, optional
        Length of the result: it is cut there, or the last element of ``a`` goes on repeating.

    Raises
    ------
    ConcretizationTypeError
        Traced counts and no ``total_repeat_length``.
    ValueError
        Counts that do not fit the axis.
    """
    if out_sharding is not None:
        return cut_as(
            out_sharding, repeat, a, repeats, axis, total_repeat_length=total_repeat_length
        )
    a = array_of("repeat", a)
    if axis is None:
        a, axis = ravel(a), 0
    axis = axis_of("repeat", axis, a.ndim)
    n = a.shape[axis]
    if isinstance(repeats, Tracer):
        if total_repeat_length is None:
            concrete("repeat", "repeats", repeats, "Give the result's length: total_repeat_length.")
        if np.ndim(repeats) > 1 or (np.ndim(repeats) and repeats.shape[0] not in (1, n)):
            raise ValueError(_repeats_misfit(repeats.shape, n))
        return _repeat_traced(a, repeats, axis, cast("int", total_repeat_length))
    counts = np.asarray(as_operand("repeat", repeats, 1))
    if counts.dtype.kind not in "iub":
        raise TypeError(f"numpy.repeat: repeats must be integers, got dtype {counts.dtype}.")
    if counts.ndim > 1 or (counts.ndim and counts.shape[0] not in (1, n)):
        raise ValueError(_repeats_misfit(counts.shape, n))
    if counts.size and counts.min() < 0:
        kind = ValueError if counts.ndim else TypeError
        raise kind(f"numpy.repeat: repeats must not be negative, got {counts.min()}.")
    if counts.size == 1 and total_repeat_length is None:
        return _repeat_each(a, int(counts.reshape(())), axis)
    places = np.repeat(np.arange(n), counts)
    if total_repeat_length is not None:
        more = np.full(max(total_repeat_length - places.size, 0), max(n - 1, 0))
        places = np.concatenate([places, more])[:total_repeat_length]
    return _pick(a, places.astype(np.int32), axis)


def _repeats_misfit(shape: tuple[int, ...], n: int) -> str:
    return f"numpy.repeat: repeats must have 1 or {n} elements, got shape {shape}."


def _repeat_each(a: Array, count: int, axis: int) -> Array:
    shape = a.shape
    out = (*shape[: axis + 1], count, *shape[axis + 1 :])
    dims = [k for k in range(len(out)) if k != axis + 1]
    merged = (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
    return lax.reshape(lax.broadcast_in_dim(a, out, dims), merged)


def _repeat_traced(a: Array, repeats: Any, axis: int, length: int) -> Array:
    """Mark where each element's run begins; the running count of marks is the element."""
    n = a.shape[axis]
    counts = lax.convert_element_type(lax.reshape(repeats, (repeats.size,)), np.int32)
    counts = lax.broadcast_in_dim(counts, (n,), (0,))
    starts = lax.sub(lax.cumsum(counts), counts)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    marks = lax.scatter_add(
        lax.full((length,), 0, np.int32),
        lax.reshape(starts, (n, 1)),
        lax.full((n,), 1, np.int32),
        numbers,
        indices_are_sorted=True,
        mode="drop",
    )
    return _pick(a, lax.sub(lax.cumsum(marks), np.int32(1)), axis)


def _pick(a: Array, places: Any, axis: int) -> Array:
    """Take elements along an axis at places known to be in range."""
    n = a.shape[axis]
    if not n and not places.size:
        return a
    window = tuple(1 if k == axis else size for k, size in enumerate(a.shape))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(k for k in range(a.ndim) if k != axis),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
    )
    return lax.gather(a, lax.expand_dims(places, (1,)), numbers, window, mode="clip")
