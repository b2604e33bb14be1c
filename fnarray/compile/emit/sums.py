"""Long sums: in blocks, with what rounding loses of their totals kept beside them.

Errors grow with a block, not with the array: totals are summed as by Neumaier (ZAMM 54, 1974),
once a block. In registers LLVM makes some 32 sums of a block, abreast; rows of sums in memory are
added to one after another. Where loops lie in each other each has a sum of its own, which the one
around it adds to its own as a term.
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
#: Rows of a block of sums over rows, in registers, and terms that a block of short ones has at
#: least: 100 rows of 7, in one go off by 5.1 ULP, are off by 0.32 (JAX 0.55), 20 of 50 by 0.29.
RUN, LEAST = 8, 64

#: How floats are added in a fold, and complex numbers: these in order, not abreast.
_SUMS = ("sc.radd({a0}, {x0})",), ("({a0} + {x0})",)

#: Each total, what it has lost if that is kept, and the part being summed: names or elements.
Cells = list[tuple[str, str, str]]


class Sums:
    """Spells the totals of long sums.

    Attributes
    ----------
    stored : dict
        Where the parts of a sum in memory lie while it is open.
    """

    def __init__(self, values: Values):
        self.values = values
        self.writer = values.writer
        self.stored: dict[Nest, Storage] = {}
        self._low: dict[Nest, Storage] = {}
        self._cells: dict[Nest, Cells] = {}
        self._zero = ""
        self._cuts: dict[Nest, tuple[Tree, int]] = {}

    def takes(self, nest: Nest, tree: Tree) -> bool:
        """Whether the fold that a tree begins is a long sum."""
        cut = _cut(nest, tree) if self._adds(nest) and _terms(nest) else None
        if cut is not None:
            self._cuts[nest] = cut
        return cut is not None

    def _adds(self, nest: Nest) -> bool:
        fold, dtype = nest.fold, nest.node.out.aval.dtype
        if fold is None or fold.combine not in _SUMS or dtype.kind not in "fcV":
            return False
        return not (nest.in_memory and dtype.name in self.values.narrow)

    def has(self, nest: Nest) -> bool:
        """Whether a long sum is open."""
        return nest in self._cells or nest in self.stored

    def turns(self, nest: Nest, tree: Tree) -> int | None:
        """Return how many turns of a tree's loop make a block; None where they make none."""
        where, turns = self._cuts.get(nest, (None, None))
        return turns if where is tree else None

    def rows(self, nest: Nest, tree: Tree) -> bool:
        """Whether a tree's loop, inside of others of the fold, has a sum of its own."""
        if nest.in_memory or not nest.parallel_depth < tree.depth < len(nest.loops):
            return False
        where, _ = self._cuts.get(nest, (None, None))
        within = where is None or where.depth < tree.depth
        return within and nest.loops[tree.depth].reduced and self._adds(nest)

    @contextmanager
    def row(
        self, parts: list[list[str]], dtype: np.dtype
    ) -> Generator[list[list[str]], None, None]:
        """Have a loop add to sums of its own, and these to the others when it is over."""
        zero = self.values.literal(-np.zeros((), dtype)[()], dtype)  # which adds nothing, to -0 too
        names = [[self.writer.assign(zero, None, "row")] for _ in parts]
        yield names
        for (part,), (row,) in zip(parts, names, strict=True):
            self.writer.line(f"{part} = {part} + {row}")

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
        self.stored[nest] = self.values.new_scratch(out, contracted)
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
                    self.writer.line(f"{low} = {low} + {_module(nest)}.lost({total}, {part})")
                self.writer.line(f"{total} = {total} + {part}")
                self.writer.line(f"{part} = {self._zero}")

    def end(self, nest: Nest, counters: Counters) -> list[list[str]]:
        """Finish the sum; return the accumulators, where they are registers."""
        if not nest.in_memory or nest in self._low:
            with self._open(nest, counters) as cells:
                for total, low, _ in cells:
                    self.writer.line(f"{total} = {_module(nest)}.settled({total}, {low})")
        self.stored.pop(nest, None)
        self._low.pop(nest, None)
        self._cuts.pop(nest)
        return [[total] for total, _, _ in self._cells.pop(nest, [])]

    @contextmanager
    def _open(self, nest: Nest, counters: Counters) -> Generator[Cells, None, None]:
        if not nest.in_memory:
            yield self._cells[nest]
            return
        with ExitStack() as stack:
            place = row(stack, nest, counters, self.values)
            stores = self.values.storage[nest.node.out], self._low.get(nest), self.stored[nest]
            total, low, part = (
                f"{s.name}[{self.values.index(s.offset(place))}]" if s else "" for s in stores
            )
            yield [(total, low, part)]


def _terms(nest: Nest) -> int:
    return prod(loop.extent for loop in nest.loops if loop.reduced)


def _cut(nest: Nest, tree: Tree) -> tuple[Tree, int] | None:
    """Return the innermost loop of a fold that is too long for one block, and the turns of one."""
    path = [tree]
    while inner := [c for c in path[-1].children if isinstance(c, Tree) and nest in c.members]:
        path += inner
    within, most = 1, _most(nest)
    for loop in reversed([t for t in path if nest.loops[t.depth].reduced]):
        turns = most // within
        if within > 1 and not nest.in_memory:
            turns = min(turns, max(RUN, LEAST // within))
        if loop.extent > max(turns, 1):
            return loop, max(turns, 1)
        within *= loop.extent
    return None


def _module(nest: Nest) -> str:
    return "fk.complexmath" if nest.node.out.aval.dtype.kind == "c" else "sc"


def _most(nest: Nest) -> int:
    """Return how many terms a block has: few where no vectors sum abreast."""
    folded = max((k for k, loop in enumerate(nest.loops) if loop.reduced), default=None)
    in_order = nest.node.out.aval.dtype.kind == "c"
    alone = (
        nest.in_memory
        or in_order
        or (nest.abreast is None and folded is not None and jumps(nest, folded))
    )
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
