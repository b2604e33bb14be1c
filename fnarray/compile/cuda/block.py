"""What the lanes of a block do together, as texts over the words of a warp and of shared memory.

Read by the native compiler as functions of `fnarray_kernels` are. Every lane ends with the result,
added up in an order that depends on the number of lanes alone.
"""

from __future__ import annotations

from typing import Any

from fnarray_kernels import grid
from fnarray_kernels import scalar as sc
from fnarray_kernels.grid import lane, lanes, sync


def from_warp(x: Any, distance: int) -> Any:
    """Return the ``x`` of the lane of this warp that is so far ahead."""
    raise NotImplementedError


def show(x: Any, place: int) -> None:
    """Write a number where all lanes of the block can read it."""
    raise NotImplementedError


def shown(like: Any, place: int) -> Any:
    """Read a number that a lane showed, of the type of ``like``."""
    raise NotImplementedError


def _folded(combine: Any) -> Any:
    def block_fold(x):
        step = 16
        while step > 0:
            x = combine(x, from_warp(x, step))
            step = step // 2
        if lane() % 32 == 0:
            show(x, lane() // 32)
        sync()
        y = shown(x, 0)
        k = 32
        while k < lanes():
            y = combine(y, shown(x, k // 32))
            k = k + 32
        sync()
        return y

    return block_fold


def _from_lane(x, distance):
    show(x, lane())
    sync()
    there = lane() + distance
    y = shown(x, there if there < lanes() else lane())
    sync()
    return y


def _from_first(x):
    if lane() == 0:
        show(x, 0)
    sync()
    y = shown(x, 0)
    sync()
    return y


#: Words of `grid` that are texts here.
TEXTS = {
    grid.block_sum: _folded(sc.add),
    grid.block_max: _folded(sc.maximum),
    grid.block_min: _folded(sc.minimum),
    grid.from_lane: _from_lane,
    grid.from_first: _from_first,
}
