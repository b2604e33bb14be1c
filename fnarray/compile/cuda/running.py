"""Running sums and the like over short lines, or very many: a thread for each."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final

from ...core.forms import Library
from ..emit.loops import split
from ..emit.values import Storage
from ..ir import Node
from .grids import GRID, LANES, Grid, grid_of
from .values import GridValues

_REAL: Final = {
    "cumsum": "sc.add({}, {})", "cumprod": "sc.mul({}, {})", "cummax": "sc.maximum({}, {})",
    "cummin": "sc.minimum({}, {})", "cumlogsumexp": "fk.cumulative._log_add({}, {})",
}  # fmt: skip
_COMPLEX: Final = {"cumsum": "({} + {})", "cumprod": "({} * {})"}
_LINEAR: Final = "linear_recurrence"


class Running:
    """Spells such a step, the region's own."""

    def __init__(self, values: GridValues, node: Node):
        self.values = values
        self.writer = values.writer
        self.node = node
        form: Library = node.form
        name = form.op.function
        self.name = "cumsum" if name.startswith("cumsum_") else name
        self.outer, self.n, self.inner, self.reverse = form.statics
        self.ins = [self._stored(a) for a in node.ins]
        self.out = values.storage[node.out]

    def _stored(self, atom: Any) -> Storage:
        store = self.values.stored(atom)
        assert store is not None
        return store

    def write(self) -> Grid:
        """Write the step; return its grid."""
        lines = self.outer * self.inner
        with ExitStack() as stack:
            line = self.values.turns(stack, lines, "thread()", "threads()")
            first, linear = self._at(line, 0), self.name == _LINEAR
            carry = self.writer.declare(self.writer.fresh("c"))
            self.writer.line(f"{carry} = {self._get(first, int(linear))}")
            self._put(first, carry)
            if self.n > 1:
                at = self._at(line, self.values.loop(stack, self.n - 1) + 1)
                if linear:
                    scaled = self.writer.assign(f"{self._get(at)} * {carry}")
                    self.writer.line(f"{carry} = {scaled} + {self._get(at, 1)}")
                else:
                    self.writer.line(f"{carry} = {self._combined(carry, self._get(at))}")
                self._put(at, carry)
        return grid_of(lines, LANES, GRID)

    def _combined(self, a: str, b: str) -> str:
        kind = self.node.out.aval.dtype.kind
        return (_COMPLEX if kind == "c" else _REAL)[self.name].format(a, b)

    def _at(self, line: Any, k: Any) -> Any:
        """Return the position of element ``k`` of a line."""
        o, i = split((self.outer, self.inner), line)
        k = self.n - 1 - k if self.reverse else k
        return o * (self.n * self.inner) + i + k * self.inner

    def _get(self, at: Any, operand: int = 0) -> str:
        values = self.values
        return values.fetch(self.ins[operand].name, at, self.node.out.aval.dtype)

    def _put(self, at: Any, name: str) -> None:
        self.values.put(self.out.name, at, name, self.node.out.aval.dtype)
