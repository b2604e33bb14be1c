"""What the lanes of a block do together, and what a GPU has no library for, as texts.

Read by the native compiler as functions of `fnarray_kernels` are. Every lane ends with the result,
added up in an order that depends on the number of lanes alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnarray_kernels import grid
from fnarray_kernels import scalar as sc
from fnarray_kernels import vmath as vm
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
    y = shown(x, there if 0 <= there < lanes() else lane())
    sync()
    return y


def _from_first(x):
    if lane() == 0:
        show(x, 0)
    sync()
    y = shown(x, 0)
    sync()
    return y


def lgamma(x):
    """Logarithm of the size of the gamma function, by Stirling's series beyond 10."""
    z = np.float64(x)
    y = 1.0 - z if z < 0.5 else z
    below = 1.0
    while y < 10.0:
        below = below * y
        y = y + 1.0
    r = 1.0 / y
    s = r * r
    tail = r * (_S0 + s * (_S1 + s * (_S2 + s * (_S3 + s * (_S4 + s * (_S5 + s * _S6))))))
    value = (y - 0.5) * vm.log(y) - y + _HALF_LOG_2PI + tail - vm.log(below)  # pyright: ignore
    if z >= 0.5:
        return value
    if z == np.floor(z):  # a pole
        return np.float64(np.inf)
    return vm.log(_PI / np.abs(vm.sin(_PI * (z - np.floor(z))))) - value  # pyright: ignore


_PI, _HALF_LOG_2PI = math.pi, 0.5 * math.log(2.0 * math.pi)
_S0, _S1, _S2, _S3 = 1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0
_S4, _S5, _S6 = 1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0

#: Words of `grid` that are texts here.
TEXTS = {
    grid.block_sum: _folded(sc.add),
    grid.block_max: _folded(sc.maximum),
    grid.block_min: _folded(sc.minimum),
    grid.from_lane: _from_lane,
    grid.from_first: _from_first,
}
