"""Rows in registers: each lane of a block holds its share of what the loops over a row hand on.

A row that several loops read comes from memory once, all of a lane's elements under way together;
what one loop makes and another reads never leaves the lane. Loops over a lane's share are written
out, so that arrays of registers have no indices at run time: the block has as many lanes as the
text says, or more turns would be needed than there are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any

from ...core.frozen import frozen
from ...core.graph import Var
from ...core.symbolic import Ix, LoopVar, substitute, variable
from ..emit.loops import split
from ..emit.values import Counters, Storage
from ..schedule.nests import Nest
from ..schedule.plan import Tree
from .folds import word_of
from .grids import LANES, MOST, SHORT, WARP
from .trees import extents_of, fold_of, folded_in, known, perfect

#: Elements that a lane holds at most, in blocks of so many lanes: registers for as many again, and
#: for what is computed, leave a multiprocessor half full.
_ROOM = ((LANES, 16), (2 * LANES, 16), (MOST, 32))

#: Results of a row's loops up to which it holds so many.
FEW = 6


@frozen
class Share:
    """A lane's share of a row.

    Attributes
    ----------
    size : int
        Elements of the row.
    lanes, turns : int
        Of a block, and elements of a lane.
    """

    size: int
    lanes: int
    turns: int


class Held:
    """What the lanes of a block hold of a row.

    Parameters
    ----------
    loops : GridLoops
    children : sequence of Nest or Tree
        What a block does for a row.
    counters : tuple
        Of the row.

    Attributes
    ----------
    share : Share or None
        None where nothing is held.
    """

    def __init__(self, loops: Any, children: Sequence[Any], counters: Counters):
        self.loops, self.values, self.writer = loops, loops.values, loops.values.writer
        self.trees = [c for c in children if isinstance(c, Tree)]
        self.share: Share | None = None
        sizes = {prod(extents_of(perfect(t))) for t in self.trees}
        if len(self.trees) < 2 or len(sizes) > 1 or not all(map(_is_plain, self.trees)):
            return
        (self.size,) = sizes
        self.flat = LoopVar("flat", self.size)
        members = [m for t in self.trees for m in t.members]
        alone = [c for c in children if isinstance(c, Nest)]
        written = {v for m in (*members, *alone) for v in m.node.outs}
        self.read = self._rows(counters, written)
        self.made = self._made(counters, alone)
        if live := self._live():
            # What many operations compute takes registers of its own, for each turn written out.
            many = sum(len(t.members) for t in self.trees) > FEW
            self.share = _share_of(self.size, 2 * live if many else live)

    # -- what is held ------------------------------------------------------------------------

    def _places(self, tree: Tree, counters: Counters) -> dict[str, set[Any]]:
        """Return where a loop reads or writes arrays, at its counter."""
        inside = (*counters, *split(extents_of(perfect(tree)), Ix({self.flat: 1})))
        found: dict[str, set[Any]] = {}
        for nest in tree.members:
            at = known(nest, inside)
            for var in nest.node.outs:
                if store := self.values.storage.get(var):
                    found.setdefault(store.name, set()).add(store.offset(at(nest.out)))
            for var, indices in nest.reads.items():
                if store := self.values.storage.get(var):
                    places = (store.offset(at(idx)) for idx in indices)
                    found.setdefault(store.name, set()).update(places)
        return found

    def _rows(self, counters: Counters, written: set[Var]) -> dict[str, tuple[int, int]]:
        """Return arrays of which several loops read the row, in line: the first and the last."""
        self.at: dict[str, Any] = {}
        self.of: dict[str, list[Var]] = {}
        found: dict[str, list[int]] = {}
        self.places = [self._places(t, counters) for t in self.trees]
        for k, tree in enumerate(self.trees):
            for var in {v for m in tree.members for v in m.reads} - written:
                store = self.values.storage.get(var)
                if store is not None and store.name not in self.values.scratch:
                    found.setdefault(store.name, []).append(k)
                    if var not in self.of.setdefault(store.name, []):
                        self.of[store.name].append(var)
        rows: dict[str, tuple[int, int]] = {}
        for name, loops in found.items():
            offsets = {at for places in self.places for at in places.get(name, ())}
            at = next(iter(offsets))
            terms = at.terms if isinstance(at, Ix) else {}
            in_row = len(offsets) == 1 and terms.get(self.flat) == 1 and len(terms) > 1
            if in_row and len(set(loops)) > 1:
                self.at[name], rows[name] = at, (-1, max(loops))
        return rows

    def _made(self, counters: Counters, alone: list[Nest]) -> dict[str, tuple[int, int]]:
        """Return working arrays that hold a row: the first loop that has it, and the last."""
        made: dict[str, tuple[int, int]] = {}
        flat = Ix({self.flat: 1})
        seen = {
            self.values.storage[v].name
            for nest in alone
            for v in (*nest.reads, *nest.node.outs)
            if v in self.values.storage
        }
        for name, (_, length) in self.values.scratch.items():
            loops = [k for k, places in enumerate(self.places) if name in places]
            offsets = {at for places in self.places for at in places.get(name, ())}
            if length == self.size and offsets == {flat} and name not in seen:
                self.at[name], made[name] = flat, (min(loops), max(loops))
                variables = [v for v, s in self.values.storage.items() if s.name == name]
                self.of[name] = variables
        return made

    def _live(self) -> int:
        """Return how many arrays are held at a time at most."""
        held = [*self.read.values(), *self.made.values()]
        ends = range(len(self.trees))
        return max(sum(first < k <= last for first, last in held) for k in ends)

    # -- the text ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Name the registers, and bring the row there."""
        self.registers: dict[str, str] = {}
        for name in (*self.read, *self.made):
            like = f"{self.values.scratch.pop(name)[0]}(0)" if name in self.made else name
            self.registers[name] = self.writer.assign(f"held({like}, {self._spelled()})", 0, "h")
        for name in self.read:
            with self._turns() as (i, k):
                if not self._is_even():  # lanes beyond the end hold the last element: no branch
                    last = f"min({i}, {self.values.number(self.size)} - 1)"
                    i = self.writer.assign(f"{i} if {self._is_inside(k)} else {last}")
                    self.values.counted.add(i)
                at = substitute(self.at[name], {self.flat: variable(i, self.size)})
                element = f"{name}[{self.values.index(at)}]"
                self.writer.line(f"{self.registers[name]}[{k}] = {element}")

    def loop(self, inside: Callable[[Any], None]) -> None:
        """Emit a loop over a lane's share of the row."""
        kept = dict(self.values.storage)
        with self._turns() as (i, k), ExitStack() as stack:
            if not self._is_even():
                test = f"if {self._is_inside(k)} or {i} < {self.values.number(self.size)}:"
                stack.enter_context(self.writer.block(test, barrier=True))
            counter = variable(i, self.size)
            for name, register in self.registers.items():
                away = substitute(self.at[name], {self.flat: counter})
                for var in self.of[name]:
                    store = kept[var]
                    base = store.base - away + variable(k, self.size)
                    depth = self.writer.scope.depth
                    self.values.storage[var] = Storage(register, store.strides, base, depth)
            inside(counter)
        self.values.storage.update({v: kept[v] for of in self.of.values() for v in of})

    def _spelled(self) -> str:
        assert self.share is not None
        return f"{self.values.number(self.size)}, {self.share.lanes}, {self.share.turns}"

    def _is_even(self) -> bool:
        assert self.share is not None
        return self.size == self.share.lanes * self.share.turns

    def _is_inside(self, k: str) -> str:
        """Return the test of turns that no lane is beyond the end in: all but the last.

        Turns are written out on a GPU, so that it is known of each. Where a block has fewer lanes
        there are more of them, and the last of these fill the row.
        """
        assert self.share is not None
        return f"{k} < {self.share.turns - 1}"

    @contextmanager
    def _turns(self) -> Generator[tuple[str, str], None, None]:
        """Open a loop over a lane's share; yields the names of an element's place, and its turn."""
        values, writer = self.values, self.writer
        k = writer.fresh("k")
        values.counted.add(k)
        with writer.block(f"for {k} in range(share({self._spelled()})):"):
            writer.declare(k)
            i = writer.assign(f"lane() + {k} * lanes()", None, "i")
            values.counted.add(i)
            yield i, k


def _is_plain(tree: Tree) -> bool:
    """Whether a loop holds no other, and may be shared in any order."""
    plain = not any(isinstance(c, Tree) for c in perfect(tree)[-1].children)
    return plain and all(word_of(fold_of(nest)) is not None for nest in folded_in(tree))


def _share_of(size: int, live: int) -> Share | None:
    """Return a lane's share of a row of which so many arrays are held at a time, if they can be."""
    for lanes, most in ((WARP, SHORT // WARP), *_ROOM):
        turns = -(-size // lanes)
        if turns * live <= most:
            return Share(size, lanes, turns)
    return None
