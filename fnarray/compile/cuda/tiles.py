"""Products of matrices, and what is seen as one: a block for a tile of the result.

A block's lanes lie in a rectangle; each adds up four times four elements in registers, of terms
that the block brings to shared memory a few at a time. While these are multiplied, the next ones
are on their way to registers. Where the tiles are too few for all multiprocessors the terms are
cut, and a second kernel adds up the sums of the parts. Every element's sum has one order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Final

import numpy as np

from ..emit.loops import split
from ..emit.values import CODES
from ..ir import Node
from ..schedule.nests import register_name
from .grids import GRID, LANES, Grid, grid_of
from .values import GridValues

#: Elements along a side that a lane adds up, and lanes along rows: a square of 64 elements, or a
#: rectangle for results that are narrow, of two lengths.
SIDE: Final = 4
ACROSS: Final = (16, 32, 8, 64, 4)
#: Terms that are brought at a time.
DEEP: Final = 16
#: Blocks that a product should have, two for each of 132 multiprocessors, and the least terms of a
#: part where the terms are cut for that.
FEW, PART = 264, 256
#: Bytes of an element up to which a block has room for a long rectangle.
NARROW_ROOM: Final = 8
#: Blocks that a multiprocessor has at once: 128 registers for each thread.
AT_ONCE: Final = 2


class Tiles(ABC):
    """Spells a product ``(batches, m, k) x (batches, k, n)``, the region's own.

    What the elements are is said by `begin`, `prepare`, `step`, `fetch` and `place`.

    Parameters
    ----------
    values : GridValues
    node : Node
    stage : int
        1 for the kernel that adds up the parts' sums.
    shape : tuple of int
        ``batches, m, n``.
    inner : int
        Terms of a sum.

    Attributes
    ----------
    sums : dict
        The array of the parts' sums, where the terms are cut: name to code and length.
    many : bool
        Whether much is known of each row and column, in registers.
    """

    many = False

    def __init__(
        self, values: GridValues, node: Node, stage: int, shape: tuple[int, int, int], inner: int
    ):
        self.values = values
        self.stage = stage
        self.writer = values.writer
        self.node = node
        self.batches, self.m, self.n = shape
        self.inner = inner
        self.dtype = np.dtype(register_name(node.out.aval.dtype))
        self.across = self._across()
        #: Rows and columns of a tile.
        self.sides = SIDE * LANES // self.across, SIDE * self.across
        high, wide = (-(-e // s) for e, s in zip(shape[1:], self.sides, strict=True))
        self.tiles = self.batches * high * wide
        cuts = max(min(FEW // max(self.tiles, 1), inner // PART), 1)
        #: Terms of a part, a multiple of those that are brought at a time; and how many parts.
        self.share = -(-inner // (cuts * DEEP)) * DEEP
        self.cuts = -(-inner // max(self.share, 1))
        self.sums: dict[str, tuple[str, int]] = {}
        if self.cuts > 1:
            self.name = self.writer.declare(self.writer.fresh("part"))
            self.writer.depth_of[self.name] = 0
            self.sums[self.name] = CODES[self.dtype.name], self.cuts * node.out.aval.size

    def _across(self) -> int:
        """Return how many lanes lie along a row: the fewest elements outside of the result."""

        def filled(across: int) -> int:
            rows, columns = SIDE * LANES // across, SIDE * across
            return -(-self.m // rows) * rows * -(-self.n // columns) * columns

        most = ACROSS[:3] if self.many else ACROSS
        return min(most, key=filled) if self.dtype.itemsize <= NARROW_ROOM else ACROSS[0]

    # -- what is multiplied ------------------------------------------------------------------

    @abstractmethod
    def in_line(self, k: int) -> bool:
        """Whether the terms of a sum are neighbours in the memory of an operand."""

    # Of the first three a plain product has nothing to say.

    def begin(self) -> None:  # noqa: B027
        """Write what there is before all tiles."""

    def prepare(self) -> None:  # noqa: B027
        """Write what a tile needs to know of its batch, its rows and columns."""

    def step(self) -> None:  # noqa: B027
        """Write what the terms from ``begin`` on have in common."""

    @abstractmethod
    def fetch(self, k: int, turn: str, at: str, term: str) -> str:
        """Write the load of an operand's element, if it is inside; return its name.

        ``at`` names its row or column, ``term`` its term.
        """

    @abstractmethod
    def place(self, row: str, column: str) -> str:
        """Return the position of an element of the result, after writing what it needs."""

    # -- the kernel --------------------------------------------------------------------------

    def write(self) -> Grid:
        """Write the product, or the second of its kernels; return the grid."""
        return self._add_up() if self.stage else self._multiply()

    def _multiply(self) -> Grid:
        number, line = self.values.number, self.writer.line
        high, wide = self.sides
        for text in (
            f"across = min(lanes(), {self.across})",
            f"rows = {SIDE} * (lanes() // across)",
            f"columns = {SIDE} * across",
            f"high = ({number(self.m)} + rows - 1) // rows",
            f"wide = ({number(self.n)} + columns - 1) // columns",
            f"left = room({self.zero}, {(high + SIDE) * DEEP})",
            f"right = room({self.zero}, {(wide + SIDE) * DEEP})",
            f"lefts = held({self.zero}, {self._turns(0)})",
            f"rights = held({self.zero}, {self._turns(1)})",
        ):
            line(text)
        self._powers()
        self.begin()
        with ExitStack() as stack:
            name = self.writer.fresh("tile")
            line(f"{name} = block()")
            cuts = f" * {self.cuts}" if self.cuts > 1 else ""
            header = f"while {name} < {number(self.batches)} * high * wide{cuts}:"
            stack.enter_context(self.writer.block(header, barrier=True))
            line(f"batch = {name} // (high * wide)")
            if cuts:
                count = number(self.batches)
                line(f"cut, batch = batch // {count}, batch % {count}")
            line(f"top = ({name} // wide) % high * rows")
            line(f"first = {name} % wide * columns")
            self._tile()
            line(f"{name} += blocks()")
        return Grid(min(self.tiles * self.cuts, GRID), LANES, again=self.cuts > 1)

    def _powers(self) -> None:
        """Find which powers of two a tile's sides are: divisions take a hundred instructions."""
        for side, power in (("rows", "low_rows"), ("columns", "low_columns")):
            self.writer.line(f"{power} = 0")
            with self.writer.block(f"while (1 << {power}) < {side}:", barrier=True):
                self.writer.line(f"{power} += 1")

    def _add_up(self) -> Grid:
        """Add up the parts' sums, a thread for each element of the result."""
        values, out = self.values, self.node.out.aval
        with ExitStack() as stack:
            i = values.turns(stack, out.size, "thread()", "threads()")
            total = self.writer.declare(self.writer.fresh("s"))
            self.writer.line(f"{total} = {self.zero}")
            with ExitStack() as terms:
                at = i + values.loop(terms, self.cuts) * out.size
                term = f"{self.name}[{values.index(at)}]"
                self.writer.line(f"{total} = {self._sum(total, term)}")
            values.deliver(self.node.out, tuple(split(out.shape, i)), total)
        return grid_of(out.size, LANES, GRID)

    @property
    def zero(self) -> str:
        """The literal that a sum begins with."""
        return self.values.literal(0, self.dtype)

    def _sum(self, a: str, b: str) -> str:
        if self.dtype.kind == "b":
            return f"({a} or {b})"
        return f"({a} + {b})" if self.dtype.kind == "c" else f"sc.radd({a}, {b})"

    def _term(self, left: str, right: str) -> str:
        """Return a product of what is in shared memory, which is in the result's type already."""
        if self.dtype.kind == "b":
            return f"({left} and {right})"
        return f"sc.mul({left}, {right})" if self.dtype.kind in "iu" else f"({left} * {right})"

    def _tile(self) -> None:
        line, number = self.writer.line, self.values.number
        for r in range(SIDE):
            for c in range(SIDE):
                line(f"s{r}{c} = {self.zero}")
        line(f"down = {SIDE} * (lane() // across)")
        line(f"along = {SIDE} * (lane() % across)")
        self.prepare()
        end = number(self.inner)
        line(f"begin = cut * {self.share}" if self.cuts > 1 else "begin = 0")
        if self.cuts > 1:
            end = "end"
            line(f"end = min(begin + {self.share}, {number(self.inner)})")
        self._bring()
        with self.writer.block(f"while begin < {end}:", barrier=True):
            for k in range(2):
                self._show(k)
            line("sync()")
            line(f"begin += {DEEP}")
            self._bring()
            self._slab()
            line("sync()")
        for r in range(SIDE):
            with self.writer.block(f"if top + down + {r} < {number(self.m)}:", barrier=True):
                for c in range(SIDE):
                    self._deliver(r, c)

    def _slab(self) -> None:
        """Multiply what is in shared memory, where four neighbours are one access."""
        line, (high, wide) = self.writer.line, self.sides
        with self.writer.block(f"for q in range({DEEP}):", barrier=True):
            line(f"l = load4(left, u(q * {high + SIDE} + down))")
            line(f"r = load4(right, u(q * {wide + SIDE} + along))")
            for r in range(SIDE):
                for c in range(SIDE):
                    term = self._term(f"l[{r}]", f"r[{c}]")
                    line(f"s{r}{c} = {self._sum(f's{r}{c}', term)}")

    # -- from memory to registers, and from there to shared memory ---------------------------

    def _turns(self, k: int) -> str:
        """Return the arguments of a lane's share of what is brought of an operand."""
        turns = self.sides[k] * DEEP // LANES
        most = AT_ONCE if self.dtype.itemsize <= NARROW_ROOM else 1
        return f"{('rows', 'columns')[k]} * {DEEP}, {LANES}, {turns}, {most}"

    @contextmanager
    def turns(self, k: int) -> Generator[tuple[str, str, str]]:
        """Open a loop over a lane's share; yields a turn, and a row or column and a term in it.

        Neighbouring lanes have neighbours in memory.
        """
        line, span = self.writer.line, ("rows", "columns")[k]
        turn, e, i, q = (self.writer.fresh(p) for p in ("turn", "e", "i", "q"))
        with self.writer.block(f"for {turn} in range(share({self._turns(k)})):", barrier=True):
            line(f"{e} = lane() + {turn} * lanes()")
            if self.in_line(k):
                line(f"{i}, {q} = {e} >> {DEEP.bit_length() - 1}, {e} & {DEEP - 1}")
            else:
                line(f"{i}, {q} = {e} & ({span} - 1), {e} >> low_{span}")
            yield turn, i, q

    def _bring(self) -> None:
        """Ask for the terms from ``begin`` on, all of which are under way together."""
        self.step()
        for k, (low, held) in enumerate((("top", "lefts"), ("first", "rights"))):
            with self.turns(k) as (turn, i, q):
                at, term = self.writer.fresh("at"), self.writer.fresh("k")
                self.writer.line(f"{at} = {low} + {i}")
                self.writer.line(f"{term} = begin + {q}")
                self.writer.line(f"{held}[{turn}] = {self.fetch(k, turn, at, term)}")

    def _show(self, k: int) -> None:
        """Let the block's lanes read what this one has brought."""
        room, held = (("left", "lefts"), ("right", "rights"))[k]
        with self.turns(k) as (turn, i, q):
            place = f"{q} * {self.sides[k] + SIDE} + {i}"
            self.writer.line(f"{room}[u({place})] = {held}[{turn}]")

    def widened(self, name: str, k: int) -> str:
        """Return an operand's element in the type of the sums."""
        have = register_name(self.node.ins[k].aval.dtype)
        if have == self.dtype.name:
            return name
        if self.dtype.kind == "c":
            return f"{'c64' if self.dtype == np.complex64 else 'c128'}({name})"
        return f"sc.to_{self.dtype.name}({name})"

    def _deliver(self, r: int, c: int) -> None:
        writer = self.writer
        with writer.block(f"if first + along + {c} < {self.values.number(self.n)}:", barrier=True):
            row, column = writer.fresh("row"), writer.fresh("column")
            writer.line(f"{row}, {column} = top + down + {r}, first + along + {c}")
            self.deliver(row, column, f"s{r}{c}")

    def deliver(self, row: str, column: str, name: str) -> None:
        """Write the store of a sum, or of a part of it."""
        at, out = self.place(row, column), self.node.out
        if self.cuts > 1:
            size = self.values.number(out.aval.size)
            self.writer.line(f"{self.name}[u(cut * {size} + {at})] = {name}")
            return
        held = self.values.narrow.get(out.aval.dtype.name)
        stored = held.store.format(name) if held else name
        self.writer.line(f"{self.values.storage[out].name}[u({at})] = {stored}")
