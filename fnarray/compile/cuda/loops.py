"""Nests over a grid of threads: who runs which iterations, and how folds of many threads end.

A region holds one item. A tree of loops runs in one of six ways:

- *map*: elements spread over all threads, four at a time where every array is read in line;
- *each*: iterations of the outer loops spread over all threads, what is inside one after another;
- *tiles*: where some arrays are read along one axis and others along another, a block for a square;
- *rows*: a block for each iteration of the outer loops, whose lanes share the loops inside;
- *columns*: a block for some iterations of the outer loops, or for a cut of what they fold;
- *fold*: everything folded into few values, by one block, or by many and then by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

import numpy as np

from ...core.forms import Operand, Reduce
from ...core.graph import Var
from ...core.symbolic import Ix, LoopVar, variable
from ..emit.loops import Loops, accumulator_dtypes, lays, replaced, split
from ..emit.values import CODES, Counters
from ..ir import Node
from ..neutral import NEUTRAL, word_of
from ..schedule.nests import Nest
from ..schedule.plan import Body, Scratch, Tree
from .columns import Columns, are_tall
from .folds import SHARING, WORDS, shareable
from .grids import ALONE, BLOCKS, GRID, LANES, MOST, ONE, PLAIN, SHORT, WARP, Grid, grid_of
from .held import Held
from .squares import Squares
from .trees import (
    WIDE,
    chain_of,
    crossed,
    extents_of,
    fold_of,
    folded_in,
    in_line,
    in_lines,
    perfect,
    quad,
    read_in_line,
)
from .values import GridValues

#: Turns of a thread whose reads are under way together.
AT_ONCE = 8
#: Who stores what all lanes of a block have.
FIRST = "lane() == 0"


class GridLoops(Loops):
    """Spells the nests of a region over a grid.

    Attributes
    ----------
    spread : bool
        Whether the next tree is the region's own, to be spread; inside of it loops are plain.
    stage : int
        Which of the region's kernels is written: 1 finishes the folds of 0.
    grid : Grid
        The grid that the kernel is for, once it is written.
    parts : dict
        Arrays of partial results: name to code and length, the same in both stages.
    """

    in_blocks = False  # a thread sums few terms, and a block's threads in a tree

    def __init__(self, values: GridValues, stage: int, *, spread: bool):
        super().__init__(values)
        self.values: GridValues = values
        self.stage = stage
        self.spread = spread
        self.grid = ONE
        self.parts: dict[str, tuple[str, int]] = {}
        self._sharing = False
        self._held: Held | None = None

    def tree(self, tree: Tree, body: Body, counters: Counters = ()) -> None:
        """Emit a fused loop: the region's own over the grid, others as they are."""
        if not self.spread:
            super().tree(tree, body, counters)
            return
        self.spread = False
        if any(m.parallel_depth <= tree.depth for m in tree.members):
            self._fold(tree, body)
            return
        chain = chain_of(tree)
        last = chain[-1]
        inner = [c for c in last.children if isinstance(c, Tree)]
        if inner:
            # Lanes would read what an overlay in between has one of them write.
            apart = not any(isinstance(c, Nest) and lays(c) for c in last.children)
            if apart and any(map(in_line, inner)) and all(map(shareable, inner)):
                self._rows(chain, last.children, body)
            elif apart and are_tall(chain, inner):
                Columns(self, chain, body).write()
            else:
                self._each(chain, body)
        elif len(chain) > 1 and self._tiles(chain, body):
            pass
        elif len(chain) > 1 and last.extent >= WIDE:
            self._rows(chain[:-1], (last,), body)
        elif len(chain) == 1 and self._map(last, body):
            pass
        else:
            self._each(chain, body)

    # -- one thread for each -----------------------------------------------------------------

    def _each(self, chain: list[Tree], body: Body) -> None:
        total = prod(t.extent for t in chain)
        with ExitStack() as stack:
            i = self.values.turns(stack, total, "thread()", "threads()")
            counters = (*split(extents_of(chain), i),)
            for t in chain:
                self._enter(t, body)
            self._children(chain[-1].children, body, counters)
        kept = self._kept(chain[0])
        self.grid = grid_of(total, LANES, BLOCKS if kept else GRID)
        self.values.owners.update(dict.fromkeys(kept, "thread"))

    def _kept(self, tree: Tree) -> set[str]:
        """Return the working arrays that hold what one iteration at a time needs.

        Others hold all of a value, where iterations have places of their own.
        """
        scratch, storage = self.values.scratch, self.values.storage
        stored = [(v, storage[v].name) for m in tree.members for v in m.node.outs if v in storage]
        whole = {x for v, x in stored if x in scratch and scratch[x][1] == v.aval.size}
        return scratch.keys() - whole

    def _children(self, children: Any, body: Body, counters: Counters) -> None:
        over = replaced(children)
        for child in children:
            if isinstance(child, Nest):
                self.nest(child, counters, stored=child not in over)
            else:
                super().tree(child, body, counters)

    def _map(self, tree: Tree, body: Body) -> bool:
        """Emit an elementwise loop four elements at a time; say whether that was possible."""
        values, writer, total = self.values, self.writer, tree.extent
        if total % 4 or not total:
            return False
        flat = variable("flat", total)
        read, written = in_lines(tree, flat, values)
        if not written:
            return False
        with ExitStack() as stack:
            i = values.turns(stack, total, "4 * thread()", "4 * threads()", quads=True)
            self._load(read, i)
            outs: dict[str, str] = {}
            for var in written:
                store = values.storage[var]
                name = writer.assign(f"four({store.name})", None)
                outs[store.name] = name
                values.storage[var] = quad(store, name, i, writer.scope.depth)
            self._four(tree, body, i)
            for array, name in outs.items():
                writer.line(f"store4({array}, {values.index(i)}, {name})")
        self.grid = grid_of(total // 4, LANES, GRID)
        return True

    def _load(self, read: list[Var], i: Any) -> None:
        """Bring four elements from ``i`` on of each array to registers."""
        values, writer = self.values, self.writer
        for var in read:
            name = writer.assign(f"load4({values.storage[var].name}, {values.index(i)})", None)
            values.storage[var] = quad(values.storage[var], name, i, writer.scope.depth)

    def _four(self, tree: Tree, body: Body, i: Any) -> None:
        """Emit four iterations of a loop, from ``i`` on."""
        k = self.writer.fresh("k")
        self.values.counted.add(k)
        with self.writer.block(f"for {k} in range(4):"):
            self.writer.declare(k)
            self._enter(tree, body)
            here = i + Ix({LoopVar(k, 4): 1})
            self._children(tree.children, body, (*split(tree.extents, here),))

    # -- a block for a square ----------------------------------------------------------------

    def _tiles(self, chain: list[Tree], body: Body) -> bool:
        """Emit a loop over squares, if arrays are read along both axes; say whether it was one.

        Arrays that lie crosswise are brought to shared memory along their own lines, whose banks
        are other ones along either axis. Where that cannot be, lanes of a warp have four rows of
        eight, and what is left of a line of memory is read by the block's next warps.
        """
        made = [v for t in chain for m in t.members for v in m.node.outs]
        kept = any(isinstance(body.places.get(v), Scratch) for v in made)
        plain = all(m.fold is None and not lays(m) for m in chain[0].members)
        if kept or not plain or not crossed(chain, self.values):
            return False
        Squares(self, chain, body).write()
        return True

    # -- a block for each --------------------------------------------------------------------

    def _rows(self, chain: list[Tree], children: Any, body: Body) -> None:
        values, total = self.values, prod(t.extent for t in chain)
        with ExitStack() as stack:
            i = values.turns(stack, total, "block()", "blocks()")
            for t in chain:
                self._enter(t, body)
            self._row(children, body, (*split(extents_of(chain), i),))
        kept = self._share_rows(chain[0], children)
        self.grid = Grid(min(max(total, 1), BLOCKS if kept else GRID), self.grid.lanes)

    def _row(
        self, children: Any, body: Body, counters: Counters, once: Sequence[Nest] = ()
    ) -> None:
        """Emit what a block does for a row; one lane adds to folds ``once`` outside of loops."""
        values, writer = self.values, self.writer
        held = Held(self, children, counters)
        self._held = held if held.share else None
        if self._held is not None:
            self._held.begin()
        values.row = FIRST
        for k, child in enumerate(children):
            if isinstance(child, Tree):
                self.shared(child, body, counters)
                between = k + 1 < len(children) and not folded_in(child)
                if between and (self._held is None or values.scratch):
                    writer.line("sync()")
            elif child in once:
                with writer.block(f"if {FIRST}:"):
                    self.nest(child, counters)
            else:
                self.nest(child, counters)
        if values.scratch:
            writer.line("sync()")  # the next row's values go where this one's are read
        values.row = ""

    def _share_rows(self, tree: Tree, children: Any) -> set[str]:
        """Choose the lanes of rows' blocks, which own working arrays; return those arrays."""
        width = max(prod(extents_of(perfect(c))) for c in children if isinstance(c, Tree))
        self.grid = Grid(1, WARP if width <= SHORT else LANES)
        if self._held is not None and self._held.share is not None:
            self.grid = Grid(1, self._held.share.lanes)
            self._held = None
        kept = self._kept(tree)
        self.values.owners.update(dict.fromkeys(kept, "block"))
        return kept

    def shared(self, tree: Tree, body: Body, counters: Counters, whole: str = "") -> None:
        """Emit a loop whose iterations the lanes of a block share.

        ``whole`` is "parts" where a grid's do, "columns" where those of one column do, "cuts" where
        those of several blocks do. Accumulators are combined over them, and left to `_end`, or as
        parts.
        """
        folded = folded_in(tree)
        for nest in folded:
            self.begin_parts(nest, counters)
        chain = perfect(tree)
        total = prod(extents_of(chain))
        who, all_ = SHARING[whole]
        ordered = any(word_of(fold_of(nest)) is None for nest in folded)
        row, self.values.row = self.values.row, ""

        def inside(i: Any) -> None:
            for t in chain:
                self._enter(t, body)
            self._children(chain[-1].children, body, (*counters, *split(extents_of(chain), i)))

        quads: list[Var] = []
        flat = len(chain) == 1 and not any(isinstance(c, Tree) for c in tree.children)
        if whole == "parts" and not ordered and flat and total % 4 == 0:
            quads = read_in_line(tree, variable("flat", total), self.values)
        if self._held is not None:
            self._held.loop(inside)
        elif quads:  # a thread has to ask for more than four bytes at a time to keep memory busy
            self._by_quads(tree, body, quads, total, who, all_)
        elif ordered:
            with ExitStack() as stack:
                inside(self.values.stretch(stack, total, who, all_))
        elif whole != "parts" and total >= AT_ONCE * LANES and len(tree.members) <= PLAIN:
            self._at_once(total, who, all_, inside)
        else:
            with ExitStack() as stack:
                inside(self.values.turns(stack, total, who, all_))
        self.values.row = row
        for nest in folded:
            self.combine(nest, columns=whole in ("columns", "cuts"))
            if whole == "parts":
                self._leave(nest)
            elif whole != "cuts":
                self.finish(nest, counters)

    def _by_quads(
        self, tree: Tree, body: Body, quads: list[Var], total: int, who: str, all_: str
    ) -> None:
        """Emit a loop over four neighbours at a time."""
        storage = dict(self.values.storage)
        with ExitStack() as stack:
            i = self.values.turns(stack, total, f"4 * {who}", f"4 * {all_}", quads=True)
            self._load(quads, i)
            self._four(tree, body, i)
        self.values.storage.update((v, storage[v]) for v in quads)

    def _at_once(self, total: int, who: str, all_: str, inside: Callable[[Any], None]) -> None:
        """Emit a loop some turns at a time, whose reads are under way together, and then the rest.

        A read takes memory some 700 cycles: threads that wait for one at a time get a third of it.
        """
        values, writer, n = self.values, self.writer, self.values.number(total)
        by, i = writer.assign(all_, None, "by"), writer.fresh("i")
        writer.line(f"{i} = {who}")
        values.counted.add(i)
        with writer.block(f"while {i} + {AT_ONCE - 1} * {by} < {n}:"):
            writer.declare(i)
            k = writer.fresh("k")
            with writer.block(f"for {k} in range({AT_ONCE}):"):
                writer.declare(k)
                j = writer.assign(f"{i} + {k} * {by}", None, "i")
                values.counted.add(j)
                inside(variable(j, total))
            writer.line(f"{i} += {AT_ONCE} * {by}")
        with writer.block(f"while {i} < {n}:"):
            writer.declare(i)
            inside(variable(i, total))
            writer.line(f"{i} += {by}")

    # -- folds -------------------------------------------------------------------------------

    def _fold(self, tree: Tree, body: Body) -> None:
        """Emit folds of everything: by a block, or by many blocks in parts and then by one."""
        self.values.row = FIRST
        total = prod(extents_of(perfect(tree)))
        if not shareable(tree):
            self.values.row = ""
            super().tree(tree, body)
        elif self.stage:
            self._finish_parts(tree)
            self.grid = Grid(1, LANES)
        elif _has_rows(tree):
            self._fold_rows(tree, body)
        elif total <= ALONE:
            self.shared(tree, body, ())
            self.grid = Grid(1, LANES if total <= 4 * LANES else MOST)
        else:
            self.grid = Grid(_blocks_of(tree), LANES, again=True)
            self.shared(tree, body, (), "parts")

    def _fold_rows(self, tree: Tree, body: Body) -> None:
        """Emit folds of everything whose rows have folds of their own: a block for each row."""
        values, chain = self.values, perfect(tree)
        total, children = prod(extents_of(chain)), chain[-1].children
        folded = folded_in(tree)
        for nest in folded:
            self.begin_parts(nest, ())
        with ExitStack() as stack:
            i = values.turns(stack, total, "block()", "blocks()")
            for t in chain:
                self._enter(t, body)
            self._row(children, body, (*split(extents_of(chain), i),), once=folded)
        for nest in folded:
            self.combine(nest)
            self._leave(nest)
        self._share_rows(tree, children)
        self.grid = Grid(_blocks_of(tree), self.grid.lanes, again=True)

    def _start(self, fold: Reduce, node: Node, j: int, dtype: np.dtype) -> str:
        word = word_of(fold)
        if self._sharing and word is not None and isinstance(fold.inits[j], Operand):
            return self.values.literal(NEUTRAL[word](dtype), dtype)
        return super()._start(fold, node, j, dtype)

    def begin_parts(self, nest: Nest, counters: Counters) -> None:
        """Start a fold that threads share: all of them at the neutral element."""
        self._sharing = True
        self._begin(nest, counters)
        self._sharing = False

    def combine(self, nest: Nest, *, columns: bool = False) -> None:
        """Combine the accumulators of a block's lanes, in order; every lane has the result."""
        fold, names, writer = fold_of(nest), self.names(nest), self.writer
        word = word_of(fold)
        if not columns and word in WORDS and accumulator_dtypes(fold, nest.node)[0].kind in "iuf":
            writer.line(f"{names[0]} = {WORDS[word]}({names[0]})")
            return
        step = writer.fresh("step")
        writer.line(f"{step} = {'across' if columns else 1}")
        with writer.block(f"while {step} < lanes():", barrier=True):
            self.merge(nest, [f"from_lane({n}, {step})" for n in names])
            writer.line(f"{step} *= 2")
        for name in names:
            found = (
                f"from_lane({name}, lane() % across - lane())" if columns else f"from_first({name})"
            )
            writer.line(f"{name} = {found}")

    def names(self, nest: Nest) -> list[str]:
        """Return the accumulators of a fold; places side by side are other threads' here."""
        (names,) = self._accumulators[nest]
        return names

    def merge(self, nest: Nest, terms: list[str]) -> None:
        """Combine other accumulators into a fold's own."""
        names, writer = self.names(nest), self.writer
        terms = [writer.assign(t, None, "x") for t in terms]
        new = self._combined(fold_of(nest), nest.node, names, terms)
        new = [writer.assign(n, None, "y") for n in new]
        for name, expression in zip(names, new, strict=True):
            writer.line(f"{name} = {expression}")

    def finish(self, nest: Nest, counters: Counters) -> None:
        """Bring a user's start in, and make accumulators the results."""
        fold = fold_of(nest)
        if word_of(fold) is not None and isinstance(fold.inits[0], Operand):
            dtype = accumulator_dtypes(fold, nest.node)[0]
            self.merge(nest, [Loops._start(self, fold, nest.node, 0, dtype)])
        self._end(nest, counters)

    def part_names(self, nest: Nest, length: int = BLOCKS) -> list[str]:
        """Name the arrays in which blocks leave a fold's accumulators."""
        names: list[str] = []
        for dtype in accumulator_dtypes(fold_of(nest), nest.node):
            code = "f32" if dtype.name in self.values.narrow else CODES[dtype.name]
            name = self.writer.declare(self.writer.fresh("part"))
            self.writer.depth_of[name] = 0
            self.parts[name] = code, length
            names.append(name)
        return names

    def _leave(self, nest: Nest) -> None:
        """Leave a block's accumulators for the kernel that finishes."""
        with self.writer.block("if lane() == 0:"):
            for part, name in zip(self.part_names(nest), self.names(nest), strict=True):
                self.writer.line(f"{part}[block()] = {name}")

    def _finish_parts(self, tree: Tree) -> None:
        blocks = _blocks_of(tree)
        for nest in folded_in(tree):
            parts = self.part_names(nest)
            self.begin_parts(nest, ())
            with ExitStack() as stack:
                i = self.values.stretch(stack, blocks, "lane()", "lanes()")
                self.merge(nest, [f"{part}[{self.values.index(i)}]" for part in parts])
            self.combine(nest)
            self.finish(nest, ())


# ---- shapes of trees -----------------------------------------------------------------------------


def _has_rows(tree: Tree) -> bool:
    """Whether what is folded is in rows, each of which is a block's, in any order."""
    if any(word_of(fold_of(nest)) is None for nest in folded_in(tree)):
        return False
    children = perfect(tree)[-1].children
    inner = [c for c in children if isinstance(c, Tree)]
    apart = not any(isinstance(c, Nest) and lays(c) for c in children)
    return apart and any(map(in_line, inner)) and all(map(shareable, inner))


def _blocks_of(tree: Tree) -> int:
    """Return how many blocks leave parts of the folds of everything."""
    total = prod(extents_of(perfect(tree)))
    return min(total, BLOCKS) if _has_rows(tree) else grid_of(total // 4, LANES, BLOCKS).blocks
