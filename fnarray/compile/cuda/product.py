"""Products of matrices, and other contractions of whole arrays: a block for a tile of the result.

A block's lanes lie in a square; each adds up four times four elements in registers, of terms that
the block brings to shared memory a few at a time. Where the tiles are too few for all
multiprocessors the terms are cut, and a second kernel adds up the sums of the parts. Every
element's sum has one order.
"""

from __future__ import annotations

from contextlib import ExitStack
from math import prod
from typing import Any, Final

import numpy as np

from ...core.forms import Contract
from ...core.symbolic import variable
from ..emit.loops import split
from ..emit.values import CODES
from ..ir import Node
from ..schedule.access import Indices
from ..schedule.nests import contraction, register_name
from .grids import GRID, LANES, Grid, grid_of
from .values import GridValues

#: Elements along a side that a lane adds up, and lanes along a side of a block at most.
SIDE, ACROSS = 4, 16
#: Terms that are brought at a time.
DEEP = 16
#: Blocks that a product should have, two for each of 132 multiprocessors, and the least terms of a
#: part where the terms are cut for that.
FEW, PART = 264, 256
#: Elements between columns in shared memory: a tile's side, and one for its banks.
PITCH: Final = SIDE * ACROSS + 1


class Product:
    """Spells a contraction, the region's own.

    Attributes
    ----------
    sums : dict
        The array of the parts' sums, where the terms are cut: name to code and length.
    """

    def __init__(self, values: GridValues, node: Node, stage: int):
        self.values = values
        self.stage = stage
        self.writer = values.writer
        self.node = node
        self.fold = contraction(node)
        form: Contract = node.form
        out = node.out.aval.shape
        batch = len(form.lhs_batch)
        rows = node.ins[0].aval.ndim - len(form.lhs_contract)
        #: Extents of the axes of the result that are batches, the rows', the columns'.
        self.parts = out[:batch], out[batch:rows], out[rows:]
        self.dtype = np.dtype(register_name(node.out.aval.dtype))
        self.inner = prod(self.fold.extents)
        batches, m, n = map(prod, self.parts)
        side = SIDE * ACROSS
        self.tiles = batches * -(-m // side) * -(-n // side)
        cuts = max(min(FEW // self.tiles, self.inner // PART), 1)
        #: Terms of a part, a multiple of those that are brought at a time; and how many parts.
        self.share = -(-self.inner // (cuts * DEEP)) * DEEP
        self.cuts = -(-self.inner // self.share)
        self.sums: dict[str, tuple[str, int]] = {}
        if self.cuts > 1:
            self.name = self.writer.declare(self.writer.fresh("part"))
            self.writer.depth_of[self.name] = 0
            self.sums[self.name] = CODES[self.dtype.name], self.cuts * node.out.aval.size

    def write(self) -> Grid:
        """Write the product, or the second of its kernels; return the grid."""
        return self._add_up() if self.stage else self._multiply()

    def _multiply(self) -> Grid:
        number, line = self.values.number, self.writer.line
        batches, m, n = map(prod, self.parts)
        for text in (
            f"across = min(lanes(), {ACROSS})",
            f"rows = {SIDE} * (lanes() // across)",
            f"columns = {SIDE} * across",
            f"high = ({number(m)} + rows - 1) // rows",
            f"wide = ({number(n)} + columns - 1) // columns",
            f"left = room({self._zero()}, {PITCH * DEEP})",
            f"right = room({self._zero()}, {PITCH * DEEP})",
        ):
            line(text)
        self._powers()
        with ExitStack() as stack:
            name = self.writer.fresh("tile")
            line(f"{name} = block()")
            cuts = f" * {self.cuts}" if self.cuts > 1 else ""
            header = f"while {name} < {number(batches)} * high * wide{cuts}:"
            stack.enter_context(self.writer.block(header, barrier=True))
            line(f"batch = {name} // (high * wide)")
            if cuts:
                line(f"cut, batch = batch // {number(batches)}, batch % {number(batches)}")
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
            self.writer.line(f"{total} = {self._zero()}")
            with ExitStack() as terms:
                at = i + values.loop(terms, self.cuts) * out.size
                term = f"{self.name}[{values.index(at)}]"
                self.writer.line(f"{total} = {self._combine.format(a0=total, x0=term)}")
            values.deliver(self.node.out, tuple(split(out.shape, i)), total)
        return grid_of(out.size, LANES, GRID)

    @property
    def _combine(self) -> str:
        return self.fold.combine[0] if isinstance(self.fold.combine, tuple) else ""

    def _zero(self) -> str:
        return self.values.literal(0, self.dtype)

    def _tile(self) -> None:
        line, number = self.writer.line, self.values.number
        inner = self.inner
        for r in range(SIDE):
            for c in range(SIDE):
                line(f"s{r}{c} = {self._zero()}")
        line(f"down = {SIDE} * (lane() // across)")
        line(f"along = {SIDE} * (lane() % across)")
        end = number(inner)
        line(f"begin = cut * {self.share}" if self.cuts > 1 else "begin = 0")
        if self.cuts > 1:
            end = "end"
            line(f"end = min(begin + {self.share}, {number(inner)})")
        with self.writer.block(f"while begin < {end}:", barrier=True):
            self._bring("left", 0, "top", "rows", inner)
            self._bring("right", 1, "first", "columns", inner)
            line("sync()")
            with self.writer.block(f"for q in range({DEEP}):", barrier=True):
                for r in range(SIDE):
                    line(f"l{r} = left[u(q * {PITCH} + down + {r})]")
                for c in range(SIDE):
                    line(f"r{c} = right[u(q * {PITCH} + along + {c})]")
                for r in range(SIDE):
                    for c in range(SIDE):
                        term = self._term(f"l{r}", f"r{c}")
                        line(f"s{r}{c} = {self._combine.format(a0=f's{r}{c}', x0=term)}")
            line("sync()")
            line(f"begin += {DEEP}")
        for r in range(SIDE):
            with self.writer.block(f"if top + down + {r} < {number(self._rows)}:", barrier=True):
                for c in range(SIDE):
                    self._deliver(r, c)

    @property
    def _rows(self) -> int:
        return prod(self.parts[1])

    def _term(self, left: str, right: str) -> str:
        """Return a product of what is in shared memory, which is in the result's type already."""
        if self.dtype.kind == "b":
            return f"({left} and {right})"
        return f"sc.mul({left}, {right})" if self.dtype.kind in "iu" else f"({left} * {right})"

    def _bring(self, room: str, k: int, low: str, span: str, inner: int) -> None:
        """Bring a slab of an operand; neighbouring lanes read neighbours in memory."""
        writer, number = self.writer, self.values.number
        extent = prod(self.parts[1 + k])
        e, i, q = (writer.fresh(p) for p in ("e", "i", "q"))
        writer.line(f"{e} = lane()")
        with writer.block(f"while {e} < {span} * {DEEP}:", barrier=True):
            if self._in_line(k):
                writer.line(f"{i}, {q} = {e} >> {DEEP.bit_length() - 1}, {e} & {DEEP - 1}")
            else:
                writer.line(f"{i}, {q} = {e} & ({span} - 1), {e} >> low_{span}")
            value = writer.declare(writer.fresh("v"))
            writer.line(f"{value} = {self._zero()}")
            at, term = writer.fresh("at"), writer.fresh("k")
            writer.line(f"{at} = {low} + {i}")
            writer.line(f"{term} = begin + {q}")
            test = f"if {at} < {number(extent)} and {term} < {number(inner)}:"
            with writer.block(test, barrier=True):
                self._known(at, term, "batch")
                idx = self._place(k, variable(at, extent), variable(term, inner))
                found = self.values.value(self.node.ins[k], idx)
                writer.line(f"{value} = {self._widened(found, k)}")
            writer.line(f"{room}[u({q} * {PITCH} + {i})] = {value}")
            writer.line(f"{e} += lanes()")

    def _known(self, *names: str) -> None:
        for name in names:
            self.writer.declare(name)
            self.values.counted.add(name)

    def _in_line(self, k: int) -> bool:
        """Whether the terms of a sum are neighbours in memory."""
        contracted: tuple[int, ...] = (self.node.form.lhs_contract, self.node.form.rhs_contract)[k]
        return self.node.ins[k].aval.ndim - 1 in contracted

    def _widened(self, name: str, k: int) -> str:
        have = register_name(self.node.ins[k].aval.dtype)
        if have == self.dtype.name:
            return name
        if self.dtype.kind == "c":
            return f"{'c64' if self.dtype == np.complex64 else 'c128'}({name})"
        return f"sc.to_{self.dtype.name}({name})"

    def _result(self, row: Any, column: Any) -> Indices:
        batches, m, n = self.parts
        at = split(batches, variable("batch", prod(batches))) if batches else []
        return (*at, *(split(m, row) if m else ()), *(split(n, column) if n else ()))

    def _place(self, k: int, at: Any, term: Any) -> Indices:
        out = self._result(*((at, 0) if k == 0 else (0, at)))
        return self.fold.index[k](out, tuple(split(self.fold.extents, term)))

    def _deliver(self, r: int, c: int) -> None:
        extent, writer = prod(self.parts[2]), self.writer
        with writer.block(f"if first + along + {c} < {self.values.number(extent)}:", barrier=True):
            row, column = writer.fresh("row"), writer.fresh("column")
            writer.line(f"{row}, {column} = top + down + {r}, first + along + {c}")
            self._known(row, column, "batch")
            if self.cuts > 1:
                _, m, n = (self.values.number(prod(p)) for p in self.parts)
                size = self.values.number(self.node.out.aval.size)
                at = f"cut * {size} + (batch * {m} + {row}) * {n} + {column}"
                writer.line(f"{self.name}[u({at})] = s{r}{c}")
                return
            idx = self._result(variable(row, self._rows), variable(column, extent))
            self.values.deliver(self.node.out, idx, f"s{r}{c}")
