"""Long sums: in blocks, with what rounding loses of their totals kept beside them.

Errors grow with a block, not with the array: totals are summed as by Neumaier (ZAMM 54, 1974),
once a block. In registers LLVM makes some 32 sums of a block, abreast; rows of sums in memory are
added to one after another.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any

import numpy as np

from ...core.symbolic import leaves, substitute
from ..schedule.nests import Nest, counter_var, jumps
from ..schedule.plan import Tree
from .values import Counters, Storage, Values

#: Terms of a block: of 1,024 the sum is off by 0.7 ULP (root of mean square, float32, uniform
#: numbers), as JAX's are; of 65,536 in one go by 2 to 4. One row after another, 32 are off by 1.2,
#: 65,536 by 55; adding a row of parts to its totals takes two rows' time. Of totals of so few
#: blocks, too, what they have lost is not kept.
TERMS, ROWS = 1024, 32

#: Each total, what it has lost if that is kept, and the part being summed: names or elements.
Cells = list[tuple[str, str, str]]


class Sums:
    """Spells the totals of long sums.

    Attributes
    ----------
    rows : dict
        Where the parts of a sum in memory lie while it is open.
    """

    def __init__(self, values: Values):
        self.values = values
        self.writer = values.writer
        self.rows: dict[Nest, Storage] = {}
        self._low: dict[Nest, Storage] = {}
        self._cells: dict[Nest, Cells] = {}
        self._zero = ""

    def takes(self, nest: Nest) -> bool:
        """Whether a fold is a long sum."""
        fold = nest.fold
        if fold is None or fold.combine != ("sc.radd({a0}, {x0})",):
            return False
        dtype = nest.node.out.aval.dtype
        if dtype.kind not in "fV" or (nest.in_memory and dtype.name in self.values.narrow):
            return False
        return any(loop.reduced for loop in nest.loops) and _terms(nest) > _most(nest)

    def has(self, nest: Nest) -> bool:
        """Whether a long sum is open."""
        return nest in self._cells or nest in self.rows

    def turns(self, nest: Nest, tree: Tree) -> int | None:
        """Return how many turns of a tree's loop make a block; None where they make none."""
        if not self.has(nest) or not nest.loops[tree.depth].reduced:
            return None
        within, most = _terms(nest, tree.last + 1), _most(nest)
        return max(1, most // within) if within <= most < within * tree.extent else None

    # -- from first to last --------------------------------------------------------------------

    def begin(self, nest: Nest, totals: list[list[str]], counters: Counters) -> list[list[str]]:
        """Start a sum whose totals are set; return the names of its parts, if they have any."""
        fold, out = nest.fold, nest.node.out
        assert fold is not None
        dtype = np.dtype(fold.dtypes[0]) if fold.dtypes else out.aval.dtype
        self._zero = zero = self.values.literal(0, dtype)
        if not nest.in_memory:
            names = [
                (
                    total,
                    self.writer.assign(zero, None, "low"),
                    self.writer.assign(zero, None, "part"),
                )
                for (total,) in totals
            ]
            self._cells[nest] = names
            return [[part] for _, _, part in names]
        outside = {counter_var(k, nest.loops[k].extent) for k in range(nest.parallel_depth)}
        contracted = tuple(outside.issuperset(leaves(ix)) for ix in nest.out)
        self.rows[nest] = self.values.new_scratch(out, contracted)
        if _terms(nest) > ROWS * ROWS:
            self._low[nest] = self.values.new_scratch(out, contracted)
        with self._open(nest, counters) as ((_, low, part),):
            for cell in filter(None, (low, part)):
                self.writer.line(f"{cell} = {zero}")
        return []

    def add(self, nest: Nest, counters: Counters) -> None:
        """Add a block to the totals, and start the next."""
        with self._open(nest, counters) as cells:
            for total, low, part in cells:
                if low:
                    self.writer.line(f"{low} = {low} + sc.lost({total}, {part})")
                self.writer.line(f"{total} = {total} + {part}")
                self.writer.line(f"{part} = {self._zero}")

    def end(self, nest: Nest, counters: Counters) -> list[list[str]]:
        """Finish the sum; return the accumulators, where they are registers."""
        if not nest.in_memory or nest in self._low:
            with self._open(nest, counters) as cells:
                for total, low, _ in cells:
                    self.writer.line(f"{total} = sc.settled({total}, {low})")
        self.rows.pop(nest, None)
        self._low.pop(nest, None)
        return [[total] for total, _, _ in self._cells.pop(nest, [])]

    @contextmanager
    def _open(self, nest: Nest, counters: Counters) -> Generator[Cells, None, None]:
        if not nest.in_memory:
            yield self._cells[nest]
            return
        with ExitStack() as stack:
            place = row(stack, nest, counters, self.values)
            stores = self.values.storage[nest.node.out], self._low.get(nest), self.rows[nest]
            total, low, part = (
                f"{s.name}[{self.values.index(s.offset(place))}]" if s else "" for s in stores
            )
            yield [(total, low, part)]


def _terms(nest: Nest, first: int = 0) -> int:
    return prod(loop.extent for loop in nest.loops[first:] if loop.reduced)


def _most(nest: Nest) -> int:
    """Return how many terms a block has: few where no vectors sum abreast."""
    folded = max(k for k, loop in enumerate(nest.loops) if loop.reduced)
    alone = nest.in_memory or (nest.abreast is None and jumps(nest, folded))
    return ROWS if alone else TERMS


def row(stack: ExitStack, nest: Nest, counters: Counters, values: Values) -> Counters:
    """Open the loops over the accumulators of a nest that lie in memory; return their place."""
    known: dict[Any, Any] = {
        counter_var(k, nest.loops[k].extent): ix for k, ix in enumerate(counters)
    }
    for k in range(len(counters), len(nest.loops)):
        if not nest.loops[k].reduced:
            extent = nest.loops[k].extent
            known[counter_var(k, extent)] = values.loop(stack, extent)
    return tuple(substitute(ix, known) for ix in nest.out)
