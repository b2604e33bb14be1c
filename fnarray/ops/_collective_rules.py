"""Rows of batches, by number: what collectives do to the examples of a mapped axis."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..core.array import ArrayImpl
from ..core.avals import ShapedArray
from ._derive import reshape
from ._windows import GatherDimensionNumbers
from .gather import GatherScatterMode, gather

Names = tuple[Hashable, ...]
Groups = tuple[tuple[int, ...], ...] | None


def rest_of(names: Names, name: Hashable) -> Names:
    """Return the names but one."""
    return tuple(n for n in names if n != name)


def chosen_rows(x: Any, numbers: Sequence[int] | np.ndarray) -> Any:
    """Return the rows of an array with these numbers, in this order."""
    order = np.asarray(numbers, np.int32)
    if np.array_equal(order, np.arange(x.shape[0])):
        return x
    indices = ArrayImpl(order[:, None].copy(), ShapedArray((len(order), 1), np.int32))
    return gather(
        x,
        indices,
        GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,)),
        (1, *x.shape[1:]),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def grouped(x: Any, groups: Groups) -> Any:
    """Return rows by groups, of one size: the first axis counts groups, the second members."""
    assert groups is not None
    rows = chosen_rows(x, [k for group in groups for k in group])
    return reshape(rows, (len(groups), len(groups[0]), *x.shape[1:]))
