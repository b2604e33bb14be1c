"""Which arrays of a driver are kept between calls, and which of them share memory.

A call that allocated its temporaries anew would fault their pages in anew: the sixteen of an ocean
model's mixing step cost as much as its arithmetic.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush
from math import prod

import numpy as np

from ...core.frozen import frozen
from ...core.graph import Var
from ..schedule.plan import Plan


@frozen
class Life:
    """From which region to which, both included, a value's storage is in use."""

    first: int
    last: int


def lives_of(plan: Plan) -> dict[Var, Life]:
    """Return the lives of arrays that only kernels see, by the value that is there first.

    Results are the caller's. What a step reads is not kept either: the host may hold on to it.
    """
    home: dict[Var, Var] = {}
    first: dict[Var, int] = {}
    last: dict[Var, int] = {}
    seen = {a for a in plan.block.outputs if isinstance(a, Var)}
    for k, region in enumerate(plan.regions):
        if region.step is not None and not region.view:
            seen.update(region.inputs)
            continue
        for var in region.inputs:
            if var in home:
                last[home[var]] = k
        for var in region.outputs:
            donor = region.aliases.get(var)
            if donor is None:
                first[var] = last[var] = k
                home[var] = var
            elif donor in home:
                home[var] = home[donor]
    given = {home[v] for v in seen if v in home}
    return {v: Life(first[v], last[v]) for v in first if v not in given}


class Workspace:
    """Shares memory out among arrays that are not alive at the same time.

    Attributes
    ----------
    slots : list of int
        Bytes of each piece of memory.
    views : list of (slot, shape, dtype)
        The arrays, in the order in which they were asked for.
    """

    def __init__(self) -> None:
        self.slots: list[int] = []
        self.views: list[tuple[int, tuple[int, ...], np.dtype]] = []
        self._busy: list[tuple[int, int]] = []
        self._free: list[tuple[int, int]] = []

    def place(self, life: Life, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Find memory for an array; those of earlier lives must have been placed before."""
        size = prod(shape) * dtype.itemsize
        while self._busy and self._busy[0][0] < life.first:
            _, slot = heappop(self._busy)
            insort(self._free, (self.slots[slot], slot))
        fitting = bisect_left(self._free, (size, 0))
        # A much larger one is left for those that need it.
        if fitting < len(self._free) and self._free[fitting][0] <= 4 * size:
            slot = self._free.pop(fitting)[1]
        else:
            slot = len(self.slots)
            self.slots.append(size)
        heappush(self._busy, (life.last, slot))
        self.views.append((slot, shape, dtype))
