"""Loops over squares of a result: a block for each, for arrays that are read along either axis."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import prod
from typing import Any

from ...core.graph import Var
from ...core.symbolic import Ix, variable
from ..emit.loops import split
from ..emit.values import CODES, Counters, Storage
from ..schedule.plan import Body, Tree
from .grids import GRID, LANES, SQUARE, Grid
from .trees import extents_of, known

#: Elements between lines of a square in shared memory: one more, so that banks differ.
PITCH = SQUARE + 1
#: Bytes of shared memory that a block takes for squares at most: a multiprocessor holds six blocks.
ROOM = 1 << 15


class Squares:
    """Spells a loop nest over squares.

    Parameters
    ----------
    loops : GridLoops
    chain : list of Tree
        Loops one inside another, of which the last two are cut into squares.
    body : Body
    """

    def __init__(self, loops: Any, chain: list[Tree], body: Body):
        self.loops, self.chain, self.body = loops, chain, body
        self.values, self.writer = loops.values, loops.values.writer
        *self.outer, self.rows, self.columns = extents_of(chain)
        names = ("tile", "top", "left", "e", "i", "j", "b")
        names = tuple(map(self.writer.fresh, names))
        self.tile, self.top, self.left, self.e, self.i, self.j, self.b = names
        self.counters: Counters = (
            *(split(tuple(self.outer), variable(self.b, prod(self.outer))) if self.outer else ()),
            variable(self.i, self.rows),
            variable(self.j, self.columns),
        )

    def write(self) -> None:
        """Write it, and choose the grid."""
        values, line = self.values, self.writer.line
        batches = prod(self.outer)
        brought = self._brought()
        squares = {var: self._room(var) for var in brought}
        high, wide = (self.writer.fresh(x) for x in ("high", "wide"))
        n, m = values.number(self.rows), values.number(self.columns)
        line(f"{high} = ({n} + {SQUARE - 1}) // {SQUARE}")
        line(f"{wide} = ({m} + {SQUARE - 1}) // {SQUARE}")
        line(f"{self.tile} = block()")
        test = f"while {self.tile} < {values.number(batches)} * {high} * {wide}:"
        with self.writer.block(test, barrier=True):
            line(f"{self.b} = {self.tile} // ({high} * {wide})")
            line(f"{self.top} = {self.tile} // {wide} % {high} * {SQUARE}")
            line(f"{self.left} = {self.tile} % {wide} * {SQUARE}")
            if brought:
                self._bring(brought, squares)
            self._compute(brought, squares)
            if brought:
                line("sync()")
            line(f"{self.tile} += blocks()")
        tiles = batches * -(-self.rows // SQUARE) * -(-self.columns // SQUARE)
        self.loops.grid = Grid(min(max(tiles, 1), GRID), LANES)

    # -- what lies crosswise -----------------------------------------------------------------

    def _brought(self) -> dict[Var, Any]:
        """Return what is brought, and where an element lies; nothing if not all of it can be."""
        made = {v for t in self.chain for m in t.members for v in m.node.outs}
        places: dict[Var, set[Any]] = {}
        for nest in self.chain[-1].members:
            at = known(nest, self.counters)
            for var, indices in nest.reads.items():
                if var in self.values.storage and var not in made:
                    store = self.values.storage[var]
                    places.setdefault(var, set()).update(store.offset(at(i)) for i in indices)
        found = {v: at for v, at in places.items() if any(map(self._is_crosswise, at))}
        size = sum(v.aval.dtype.itemsize for v in found) * PITCH * SQUARE
        plain = all(len(at) == 1 and v.aval.dtype.kind != "b" for v, at in found.items())
        return {v: next(iter(at)) for v, at in found.items()} if plain and size <= ROOM else {}

    def _is_crosswise(self, at: Any) -> bool:
        terms = at.terms if isinstance(at, Ix) else {}
        by = {getattr(v, "name", ""): stride for v, stride in terms.items()}
        return by.get(self.i) == 1 and by.get(self.j, 0) > 1

    def _room(self, var: Var) -> str:
        name = var.aval.dtype.name
        code = self.values.narrow[name].code if name in self.values.narrow else CODES[name]
        return self.writer.assign(f"room({code}(0), {PITCH * SQUARE})", None, "square")

    def _bring(self, brought: dict[Var, Any], squares: dict[Var, str]) -> None:
        """Bring squares to shared memory, lanes side by side along what lies in line there."""
        with self._elements(f"{self.e} % {SQUARE}", f"{self.e} // {SQUARE}"):
            for var, at in brought.items():
                place = f"{self.e} % {SQUARE} * {PITCH} + {self.e} // {SQUARE}"
                element = f"{self.values.storage[var].name}[{self.values.index(at)}]"
                self.writer.line(f"{squares[var]}[{place}] = {element}")
        self.writer.line("sync()")

    def _compute(self, brought: dict[Var, Any], squares: dict[Var, str]) -> None:
        """Emit what is done with each element of a square."""
        e, kept = self.e, {v: self.values.storage[v] for v in brought}
        by_lines = f"{e} // {SQUARE}", f"{e} % {SQUARE}"
        by_pieces = f"{e} // 8 % 4 + 4 * ({e} // 128)", f"{e} % 8 + 8 * ({e} // 32 % 4)"
        with self._elements(*(by_lines if brought else by_pieces)):
            if brought:
                place = self.writer.assign(f"{e} // {SQUARE} * {PITCH} + {e} % {SQUARE}", None, "s")
                self._read_there(brought, squares, place)
            for t in self.chain:
                self.loops._enter(t, self.body)
            self.loops._children(self.chain[-1].children, self.body, self.counters)
        self.values.storage.update(kept)

    def _read_there(self, brought: dict[Var, Any], squares: dict[Var, str], place: str) -> None:
        """Let elements be read from shared memory, of which those at hand are at a place."""
        values = self.values
        values.counted.add(place)
        here = variable(place, PITCH * SQUARE)
        for var, at in brought.items():
            store = values.storage[var]
            base = store.base - at + here
            depth = self.writer.scope.depth
            values.storage[var] = Storage(squares[var], store.strides, base, depth)

    @contextmanager
    def _elements(self, row: str, column: str) -> Generator[None]:
        """Open a loop over the elements of a square that are inside of the result.

        Its turns are written out on a GPU, so that their reads are under way together.
        """
        writer, values, k = self.writer, self.values, self.writer.fresh("k")
        share = f"share({SQUARE * SQUARE}, {LANES}, {SQUARE * SQUARE // LANES})"
        with writer.block(f"for {k} in range({share}):", barrier=True):
            writer.line(f"{self.e} = lane() + {k} * lanes()")
            writer.line(f"{self.i} = {self.top} + {row}")
            writer.line(f"{self.j} = {self.left} + {column}")
            inside = f"{self.i} < {values.number(self.rows)} and "
            inside += f"{self.j} < {values.number(self.columns)}"
            with writer.block(f"if {inside}:", barrier=True):
                for name in (self.b, self.i, self.j):
                    writer.declare(name)
                    values.counted.add(name)
                yield
