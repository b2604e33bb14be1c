"""Products of matrices, and other contractions of whole arrays: a block for a tile of the result.

A block's lanes lie in a square; each adds up four times four elements in registers, of terms that
the block brings to shared memory a few at a time. Every element's sum has one order.
"""

from __future__ import annotations

from contextlib import ExitStack
from math import prod
from typing import Any, Final

import numpy as np

from ...core.forms import Contract
from ...core.symbolic import variable
from ..emit.loops import split
from ..ir import Node
from ..schedule.access import Indices
from ..schedule.nests import contraction, register_name
from .loops import GRID, LANES, Grid
from .values import GridValues

#: Elements along a side that a lane adds up, and lanes along a side of a block at most.
SIDE, ACROSS = 4, 16
#: Terms that are brought at a time.
DEEP = 16
#: Elements between columns in shared memory: a tile's side, and one for its banks.
PITCH: Final = SIDE * ACROSS + 1


class Product:
    """Spells a contraction, the region's own."""

    def __init__(self, values: GridValues, node: Node):
        self.values = values
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

    def write(self) -> Grid:
        """Write the product; return its grid."""
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
        with ExitStack() as stack:
            name = self.writer.fresh("tile")
            line(f"{name} = block()")
            header = f"while {name} < {number(batches)} * high * wide:"
            stack.enter_context(self.writer.block(header, barrier=True))
            line(f"batch = {name} // (high * wide)")
            line(f"top = ({name} // wide) % high * rows")
            line(f"first = {name} % wide * columns")
            self._tile()
            line(f"{name} += blocks()")
        side = SIDE * ACROSS
        return Grid(min(batches * -(-m // side) * -(-n // side), GRID), LANES)

    def _zero(self) -> str:
        return self.values.literal(0, self.dtype)

    def _tile(self) -> None:
        line, number = self.writer.line, self.values.number
        (inner,) = (prod(self.fold.extents),)
        for r in range(SIDE):
            for c in range(SIDE):
                line(f"s{r}{c} = {self._zero()}")
        line(f"down = {SIDE} * (lane() // across)")
        line(f"along = {SIDE} * (lane() % across)")
        line("begin = 0")
        with self.writer.block(f"while begin < {number(inner)}:", barrier=True):
            self._bring("left", 0, "top", "rows", inner)
            self._bring("right", 1, "first", "columns", inner)
            line("sync()")
            with self.writer.block(f"for q in range({DEEP}):", barrier=True):
                for r in range(SIDE):
                    line(f"l{r} = left[u(q * {PITCH} + down + {r})]")
                for c in range(SIDE):
                    line(f"r{c} = right[u(q * {PITCH} + along + {c})]")
                (combine,) = self.fold.combine if isinstance(self.fold.combine, tuple) else ("",)
                for r in range(SIDE):
                    for c in range(SIDE):
                        term = self._term(f"l{r}", f"r{c}")
                        line(f"s{r}{c} = {combine.format(a0=f's{r}{c}', x0=term)}")
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
                writer.line(f"{i}, {q} = {e} // {DEEP}, {e} % {DEEP}")
            else:
                writer.line(f"{i}, {q} = {e} % {span}, {e} // {span}")
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
            idx = self._result(variable(row, self._rows), variable(column, extent))
            self.values.deliver(self.node.out, idx, f"s{r}{c}")
