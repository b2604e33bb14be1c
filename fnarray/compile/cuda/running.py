"""Running sums and the like: a thread for each line of elements, or a block for each long one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final

from ...core.forms import Library
from ...core.symbolic import variable
from ..emit.loops import split
from ..emit.values import Storage
from ..ir import Node
from .loops import BLOCKS, GRID, LANES, Grid, grid_of
from .values import GridValues

#: Lines of at least this many elements are a block's, where there are fewer than so many lines.
LONG, FEW = 256, 4096

_REAL: Final = {
    "cumsum": "sc.add({}, {})", "cumprod": "sc.mul({}, {})", "cummax": "sc.maximum({}, {})",
    "cummin": "sc.minimum({}, {})", "cumlogsumexp": "fk.cumulative._log_add({}, {})",
}  # fmt: skip
_COMPLEX: Final = {"cumsum": "({} + {})", "cumprod": "({} * {})"}
_LINEAR: Final = "linear_recurrence"


def runs_here(form: Library) -> bool:
    """Whether a library step is one of these, and its kernel is worth running."""
    if form.op.module != "cumulative" or not form.kernel:
        return False
    outer, n, inner = form.statics[:3]
    return n > 0 and (form.op.function != _LINEAR or n < LONG or outer * inner >= LANES)


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
        if self.name != _LINEAR and self.n >= LONG and lines < FEW:
            self._by_blocks(lines)
            return Grid(min(lines, BLOCKS), LANES)
        self._by_threads(lines)
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

    # -- a thread for each line --------------------------------------------------------------

    def _by_threads(self, lines: int) -> None:
        with ExitStack() as stack:
            line = self.values.turns(stack, lines, "thread()", "threads()")
            first, linear = self._at(line, 0), self.name == _LINEAR
            carry = self.writer.declare(self.writer.fresh("c"))
            self.writer.line(f"{carry} = {self._get(first, int(linear))}")
            self._put(first, carry)
            if self.n == 1:
                return
            at = self._at(line, self.values.loop(stack, self.n - 1) + 1)
            if linear:
                scaled = self.writer.assign(f"{self._get(at)} * {carry}")
                self.writer.line(f"{carry} = {scaled} + {self._get(at, 1)}")
            else:
                self.writer.line(f"{carry} = {self._combined(carry, self._get(at))}")
            self._put(at, carry)

    # -- a block for each line ---------------------------------------------------------------

    def _by_blocks(self, lines: int) -> None:
        """Each lane adds up neighbours; then lanes learn what comes before; then all are written.

        Lanes without elements are the last ones, whose sums nobody asks for.
        """
        values, writer = self.values, self.writer
        n = values.number(self.n)
        with ExitStack() as outer:
            line = values.turns(outer, lines, "block()", "blocks()")
            share = writer.assign(f"({n} + lanes() - 1) // lanes()", None, "share")
            start = writer.assign(f"min(lane() * {share}, {n} - 1)", None, "start")
            stop = writer.assign(f"min(lane() * {share} + {share}, {n})", None, "stop")
            begin = variable(start, self.n)
            total = writer.declare(writer.fresh("acc"))
            writer.line(f"{total} = {self._get(self._at(line, begin))}")
            with ExitStack() as stack:
                k = self._turns(stack, start, stop)
                writer.line(f"{total} = {self._combined(total, self._get(self._at(line, k)))}")
            step = writer.fresh("step")
            writer.line(f"{step} = 1")
            with writer.block(f"while {step} < lanes():", barrier=True):
                before = writer.assign(f"from_lane({total}, -{step})", None, "x")
                with writer.block(f"if lane() >= {step}:", barrier=True):
                    writer.line(f"{total} = {self._combined(before, total)}")
                writer.line(f"{step} *= 2")
            before = writer.assign(f"from_lane({total}, -1)", None, "x")
            carry = writer.declare(writer.fresh("c"))
            writer.line(f"{carry} = {self._get(self._at(line, begin))}")
            with writer.block(f"if lane() * {share} < {n}:", barrier=True):
                with writer.block("if lane() > 0:", barrier=True):
                    writer.line(f"{carry} = {self._combined(before, carry)}")
                self._put(self._at(line, begin), carry)
                with ExitStack() as stack:
                    k = self._turns(stack, start, stop)
                    at = self._at(line, k)
                    writer.line(f"{carry} = {self._combined(carry, self._get(at))}")
                    self._put(at, carry)

    def _turns(self, stack: ExitStack, start: str, stop: str) -> Any:
        """Open a loop over a lane's neighbours but the first; return the counter."""
        name = self.writer.fresh("i")
        self.values.counted.add(name)
        self.writer.line(f"{name} = {start} + 1")
        stack.enter_context(self.writer.block(f"while {name} < {stop}:", barrier=True))
        self.writer.declare(name)
        stack.callback(self.writer.line, f"{name} += 1")
        return variable(name, self.n)
