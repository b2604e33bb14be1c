"""Values of kernels that many threads run."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod
from typing import Any

from ...core.graph import Var
from ...core.symbolic import variable
from ..emit.loops import split
from ..emit.values import Narrow, Values
from ..schedule.access import Indices

#: Halves are 16 bits in memory and float32 in registers, as on the processor.
NARROW = {
    "float16": Narrow("u16", "sc.f16_load({})", "sc.f16_store({})"),
    "bfloat16": Narrow("u16", "sc.bf16_load({})", "sc.bf16_store({})"),
}


class GridValues(Values):
    """Spells values, and loops over a grid.

    Attributes
    ----------
    row : str
        Where several lanes of a block are at one place, the test that the one which stores passes.
    quiet : bool
        Whether a later kernel stores what this one computes.
    spread : bool
        Whether loops of a step are shared by all threads.
    owners : dict
        Working arrays of which each ``"thread"`` or ``"block"`` has its own.
    total : int
        Turns of the largest loop that threads share.
    per_block : bool
        Whether each block adds up what it then leaves to all, so that there are few of them.
    """

    row = ""
    quiet = False
    spread = False
    total = 0
    per_block = False

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.owners: dict[str, str] = {}

    def turns(
        self, stack: ExitStack, extent: int, first: str, step: str, *, quads: bool = False
    ) -> Any:
        """Open a loop from a thread's first iteration on, in steps; return its counter."""
        name = self.writer.fresh("i")
        self.counted.add(name)
        self.writer.line(f"{name} = {first}")
        stack.enter_context(self.writer.block(f"while {name} < {self.number(extent)}:"))
        self.writer.declare(name)
        stack.callback(self.writer.line, f"{name} += {step}")
        self.total = max(self.total, extent)
        return variable(name, extent - 3 if quads else extent)

    def stretch(self, stack: ExitStack, extent: int, who: str, count: str) -> Any:
        """Open a loop over a thread's share of neighbouring iterations; return its counter."""
        n = self.number(extent)
        share = self.writer.assign(f"({n} + {count} - 1) // {count}", None, "share")
        stop = self.writer.assign(f"min({who} * {share} + {share}, {n})", None, "stop")
        name = self.writer.fresh("i")
        self.counted.add(name)
        self.writer.line(f"{name} = {who} * {share}")
        stack.enter_context(self.writer.block(f"while {name} < {stop}:"))
        self.writer.declare(name)
        stack.callback(self.writer.line, f"{name} += 1")
        return variable(name, extent)

    def loops(self, stack: ExitStack, extents: tuple[int, ...]) -> tuple[Any, ...]:
        """Open a loop per axis, or one that all threads share; return the counters."""
        if not self.spread:
            return super().loops(stack, extents)
        total = prod(extents)
        counter = self.turns(stack, total, "thread()", "threads()")
        return tuple(split(extents, counter)) if extents else ()

    def deliver(self, var: Var, idx: Indices, name: str) -> None:
        """Store an element of a result, once, if the result lies in memory."""
        if self.quiet:
            return
        if not self.row or var not in self.storage:
            super().deliver(var, idx, name)
            return
        with self.writer.block(f"if {self.row}:"):
            super().deliver(var, idx, name)
