"""Reductions of the rows of an array by the segment that each belongs to."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, cast

import numpy as np

from ..core.array import Array, ArrayImpl, aval_of
from ..core.dtypes import is_integer
from ..core.hooks import cut_as
from ..errors import ConcretizationTypeError
from ._windows import GatherScatterMode
from .elementwise import add, max, min, mul
from .fill import full
from .kit.calls import broadcast, reshape
from .kit.canonical import as_array
from .kit.checks import ANY, NUMBER, check_kind
from .reduce import highest_of, lowest_of, one_of, zero_of
from .scatter import ScatterDimensionNumbers, scatter_add, scatter_max, scatter_min, scatter_mul
from .slicing import slice_in_dim

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _count(name: str, ids: Array, given: Any) -> int:
    """Return the number of segments: as given, or one more than the largest id."""
    if given is None:
        if not isinstance(ids, ArrayImpl):
            raise ConcretizationTypeError(
                f"{name}() `num_segments` argument: give it inside a transformed function, where "
                f"the largest of the segment ids, {ids.aval.str_short()}, is not known."
            )
        if not ids.size:
            raise ValueError(f"{name}: there are no segment ids to count: give num_segments.")
        given = int(np.max(np.asarray(ids))) + 1
        return given if given > 0 else 0
    if index(given) < 0:
        raise ValueError(f"{name}: num_segments must be non-negative, got {given}.")
    return index(given)


def _rows(name: str, data: Any, segment_ids: Any) -> tuple[Array, Array]:
    """Return rows of data, and the id of each."""
    for position, x in enumerate((data, segment_ids)):
        if isinstance(x, list | tuple):
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(x)} at position "
                f"{position}. Convert it with fnarray.numpy.asarray."
            )
    shape = aval_of(segment_ids).shape
    data, ids = as_array(data), as_array(segment_ids)
    if not is_integer(ids.dtype):
        raise TypeError(f"{name}: segment_ids must be integers, got dtype {ids.dtype}.")
    if not data.ndim:
        data = broadcast(data, shape)
    if data.shape[: ids.ndim] != shape:
        raise ValueError(
            f"{name}: the first axes of data must be those of segment_ids, got shapes "
            f"{data.shape} and {shape}."
        )
    return reshape(data, (ids.size, *data.shape[ids.ndim :])), reshape(ids, (ids.size, 1))


_PARAMETERS = """

    Parameters
    ----------
    data : array
        Shape (\\*ids, \\*rest); a scalar stands for as many rows as there are ids.
    segment_ids : integer array
        Segment of each row. Rows of ids outside the segments are left out.
    num_segments : int, optional
        By default one more than the largest id, which must then be known: not under ``jit``.
    indices_are_sorted, unique_indices : bool
        What the caller promises of the ids.
    bucket_size : int, optional
        How many rows are reduced at a time, before the results are; long sums round less so.
    mode : optional
        As of ``lax.scatter_add``, of ids outside the segments.
    out_sharding : optional
        How the result is cut over the devices of a mesh.

    Returns
    -------
    array
        Shape (num_segments, \\*rest); the neutral element where a segment has no rows.

    Raises
    ------
    TypeError
        For lists, ids that are no integers, or a dtype that has no such reduction.
    ValueError
        For shapes that do not fit, or a negative number of segments.
    ConcretizationTypeError
        The number of segments is not given, and the ids are traced.
"""


def _segments(
    name: str,
    summary: str,
    scatter: Callable[..., Array],
    combine: Callable[..., Array],
    start: Callable[[np.dtype], Any],
    dtypes: str = ANY,
) -> Callable[..., Array]:
    """Return the reduction by segments of a name: a scatter of rows into neutral elements."""

    def face(
        data: Any,
        segment_ids: Any,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: Any = None,
    ) -> Array:
        if out_sharding is not None:
            return cut_as(
                out_sharding, face, data, segment_ids, num_segments,
                indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                bucket_size=bucket_size, mode=mode,
            )  # fmt: skip
        rows, ids = _rows(name, data, segment_ids)
        check_kind(name, rows.dtype, dtypes)
        count = _count(name, ids, num_segments)
        empty = full((count, *rows.shape[1:]), start(rows.dtype), rows.dtype)
        if not count:
            return empty
        numbers = ScatterDimensionNumbers(tuple(range(1, rows.ndim)), (0,), (0,))
        n = len(rows)
        size = n if bucket_size is None else index(bucket_size)
        out = None
        for low in range(0, n, size) if n else (0,):
            high = n if low + size > n else low + size
            part = scatter(
                empty,
                slice_in_dim(ids, low, high),
                slice_in_dim(rows, low, high),
                numbers,
                indices_are_sorted=indices_are_sorted,
                unique_indices=unique_indices,
                mode=GatherScatterMode.FILL_OR_DROP if mode is None else mode,
            )
            out = part if out is None else combine(out, part)
        return cast("Array", out)

    face.__name__ = face.__qualname__ = name
    face.__doc__ = summary + _PARAMETERS
    return face


segment_sum = _segments(
    "segment_sum",
    "Sum the rows of an array that belong to the same segment.",
    scatter_add,
    add,
    zero_of,
    NUMBER,
)
segment_prod = _segments(
    "segment_prod",
    "Multiply the rows of an array that belong to the same segment.",
    scatter_mul,
    mul,
    one_of,
    NUMBER,
)
segment_max = _segments(
    "segment_max",
    "Return the largest row, element by element, of each segment.",
    scatter_max,
    max,
    lowest_of,
)
segment_min = _segments(
    "segment_min",
    "Return the smallest row, element by element, of each segment.",
    scatter_min,
    min,
    highest_of,
)
