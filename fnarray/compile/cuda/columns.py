"""Folds over rows: lanes side by side have a column each, and groups of lanes share its rows.

Where columns are few, blocks share the rows as well: each takes a cut of them, and leaves its
accumulators to the next kernel, which combines those of all cuts and goes on to the next fold. So
there is a kernel more than there are folds that wait for each other.
"""

from __future__ import annotations

from contextlib import ExitStack
from math import prod
from typing import Any

from ...core.symbolic import variable
from ..emit.loops import split
from ..emit.values import Counters
from ..schedule.nests import Nest
from ..schedule.plan import Body, Tree
from .folds import SHARING, shareable
from .grids import BLOCKS, GRID, LANES, MOST, Grid
from .trees import WIDE, extents_of, folded_in, perfect

#: Columns of a block whose lanes share each: a line of memory's, or where there are few a sector's;
#: and from how many terms, and up to how many columns, a thread for each is not enough.
COLUMNS, SECTOR, TALL, MANY = 32, 8, 64, 1 << 16
#: Terms that a lane should have at least, where rows are cut.
TERMS = 8


def are_tall(chain: list[Tree], inner: list[Tree]) -> bool:
    """Whether a loop folds more terms than one thread should, in loops that do nothing else."""
    folds = all(len(folded_in(t)) == len(t.members) and shareable(t) for t in inner)
    tall = all(prod(extents_of(perfect(t))) >= TALL for t in inner)
    return folds and tall and WIDE <= prod(t.extent for t in chain) <= MANY


def _cuts(total: int, inner: list[Tree]) -> int:
    """Return how many blocks can share the rows of a column, if more than one."""
    rows = min(prod(extents_of(perfect(t))) for t in inner)
    return min(BLOCKS // -(-total // COLUMNS), rows // (TERMS * LANES // COLUMNS))


class Columns:
    """Spells the folds of a loop over columns, or those of them that are this stage's.

    Parameters
    ----------
    loops : GridLoops
    chain : list of Tree
        The loops over columns, one inside another.
    body : Body
    """

    def __init__(self, loops: Any, chain: list[Tree], body: Body):
        self.loops, self.chain, self.body = loops, chain, body
        self.values, self.writer = loops.values, loops.values.writer
        self.inner = [c for c in chain[-1].children if isinstance(c, Tree)]
        self.total = prod(t.extent for t in chain)
        cuts = 1 if loops.values.scratch else _cuts(self.total, self.inner)
        self.cuts = cuts if cuts > 1 else 1
        #: The fold whose cuts this kernel's blocks take; none where those of all are combined.
        self.cut = loops.stage if self.cuts > 1 and loops.stage < len(self.inner) else None
        self.left: dict[Nest, list[str]] = {}

    def write(self) -> None:
        """Write them, and choose the grid."""
        line, n = self.writer.line, self.values.number(self.total)
        few = self.cuts == 1 and self.total < COLUMNS * BLOCKS // 8
        wide = SECTOR if few else COLUMNS
        line(f"across = min(lanes(), {wide})")
        block, blocks = "block()", "blocks()"
        if self.cuts > 1:  # arrays of parts are the same in all stages
            nests = [nest for t in self.inner for nest in folded_in(t)]
            length = self.cuts * self.total
            self.left = {nest: self.loops.part_names(nest, length) for nest in nests}
        if self.cut is not None:
            line(f"cuts = {self.cuts}")
            line("cut = block() % cuts")
            block, blocks = "block() // cuts", "blocks() // cuts"
        line(f"first = {block} * across")
        with self.writer.block(f"while first < {n}:", barrier=True):
            name = self.writer.declare(self.writer.fresh("i"))
            self.values.counted.add(name)
            # Lanes beyond the last column repeat it, since all of a block meet at barriers.
            line(f"{name} = min(first + lane() % across, {n} - 1)")
            column = variable(name, self.total)
            for t in self.chain:
                self.loops._enter(t, self.body)
            self.values.row = f"lane() < across and first + lane() < {n}"
            self.values.quiet = self.cut is not None
            self._children((*split(extents_of(self.chain), column),), column)
            self.values.quiet, self.values.row = False, ""
            line(f"first += {blocks} * across")
        groups = -(-self.total // wide)
        shared = self.cuts if self.cut is not None else 1
        lanes = LANES if self.cuts > 1 else MOST
        self.loops.grid = Grid(min(groups, GRID) * shared, lanes, again=self.cut is not None)

    def _children(self, counters: Counters, column: Any) -> None:
        found = 0
        for child in self.chain[-1].children:
            if isinstance(child, Nest):
                self.loops.nest(child, counters)
                continue
            if found == self.cut:
                self.loops.shared(child, self.body, counters, "cuts")
                self._leave(child, column)
                return
            if self.cuts > 1:
                self._gather(child, counters, column)
            else:
                self.loops.shared(child, self.body, counters, "columns")
            found += 1

    def _place(self, cut: str, column: Any) -> str:
        return f"u({cut} * {self.values.number(self.total)} + {self.values.index(column)})"

    def _leave(self, tree: Tree, column: Any) -> None:
        """Leave a cut's accumulators for the next kernel."""
        with self.writer.block(f"if {self.values.row}:"):
            for nest in folded_in(tree):
                names = self.loops.names(nest)
                for part, name in zip(self.left[nest], names, strict=True):
                    self.writer.line(f"{part}[{self._place('cut', column)}] = {name}")

    def _gather(self, tree: Tree, counters: Counters, column: Any) -> None:
        """Combine the accumulators that the cuts left, in their order."""
        values, loops = self.values, self.loops
        for nest in folded_in(tree):
            loops.begin_parts(nest, counters)
            with ExitStack() as stack:
                who, all_ = SHARING["columns"]
                k = values.stretch(stack, self.cuts, who, all_)
                at = self._place(values.index(k), column)
                loops.merge(nest, [f"{part}[{at}]" for part in self.left[nest]])
            loops.combine(nest, columns=True)
            loops.finish(nest, counters)
