"""Products of matrices, and other contractions of whole arrays."""

from __future__ import annotations

from math import prod
from typing import Any

from ...core.forms import Contract
from ...core.symbolic import variable
from ..emit.loops import split
from ..ir import Node
from ..schedule.access import Indices
from ..schedule.nests import contraction
from .tiles import Tiles
from .values import GridValues


class Product(Tiles):
    """Spells a contraction, the region's own."""

    def __init__(self, values: GridValues, node: Node, stage: int):
        self.fold = contraction(node)
        form: Contract = node.form
        out = node.out.aval.shape
        batch = len(form.lhs_batch)
        rows = node.ins[0].aval.ndim - len(form.lhs_contract)
        #: Extents of the axes of the result that are batches, the rows', the columns'.
        self.parts = out[:batch], out[batch:rows], out[rows:]
        batches, m, n = map(prod, self.parts)
        super().__init__(values, node, stage, (batches, m, n), prod(self.fold.extents))

    def in_line(self, k: int) -> bool:
        """Whether the last axis of an operand is one of the terms'."""
        contracted: tuple[int, ...] = (self.node.form.lhs_contract, self.node.form.rhs_contract)[k]
        return self.node.ins[k].aval.ndim - 1 in contracted

    def fetch(self, k: int, turn: str, at: str, term: str) -> str:
        """Write the load of an element, where there is one."""
        writer, number = self.writer, self.values.number
        extent = (self.m, self.n)[k]
        value = writer.declare(writer.fresh("v"))
        writer.line(f"{value} = {self.zero}")
        test = f"if {at} < {number(extent)} and {term} < {number(self.inner)}:"
        with writer.block(test, barrier=True):
            for name in (at, term, "batch"):
                writer.declare(name)
                self.values.counted.add(name)
            idx = self._index(k, variable(at, extent), variable(term, self.inner))
            found = self.values.value(self.node.ins[k], idx)
            writer.line(f"{value} = {self.widened(found, k)}")
        return value

    def _index(self, k: int, at: Any, term: Any) -> Indices:
        batches, m, n = self.parts
        row, column = (at, 0) if k == 0 else (0, at)
        out = (
            *(split(batches, variable("batch", self.batches)) if batches else ()),
            *(split(m, row) if m else ()),
            *(split(n, column) if n else ()),
        )
        return self.fold.index[k](out, tuple(split(self.fold.extents, term)))

    def place(self, row: str, column: str) -> str:
        """Return a position in C order: batches, rows, columns."""
        number = self.values.number
        return f"(batch * {number(self.m)} + {row}) * {number(self.n)} + {column}"
