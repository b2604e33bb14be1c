"""Batching: functions of one example run on a batch.

The mapped axis is in front of every batched value, always; axes are moved where a function is
entered and left (as index arithmetic, once compiled). What does not depend on the mapped axis is
computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..core.primitive import Primitive
from ..core.trace import Trace, Tracer, bind, check_alive, tracing, within
from .derivative import FlatFun, lift


class BatchTracer(Tracer):
    """One example, standing for all: the batch has the mapped axis in front."""

    __slots__ = ("batch",)

    def __init__(self, trace: Trace, batch: Any):
        aval = batch.aval.update(shape=batch.aval.shape[1:])
        super().__init__(trace, aval, f"an example in {trace.name}")
        self.batch = batch

    def __repr__(self) -> str:
        short, whole = self.aval.str_short(), self.batch.aval.str_short()
        return f"VmapTracer(aval={short}, batched={whole})"


class Axis(int):
    """The mapped axis: its size, and its name if it has one."""

    name: Hashable | None

    def __new__(cls, size: int, name: Hashable | None = None) -> Axis:
        """Return the axis of a size and a name."""
        self = super().__new__(cls, size)
        self.name = name
        return self


class BatchTrace(Trace):
    """Applies operations to batches."""

    def __init__(self, name: str, axis: Axis):
        super().__init__(name)
        self.axis = axis

    def split(self, x: Any) -> tuple[Any, bool]:
        """Return a batch or a value, and which of them it is."""
        if isinstance(x, Tracer):
            if x.trace is self:
                return x.batch, True  # type: ignore[attr-defined]
            check_alive(x)
        return lift(x), False

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply an operation to batches."""
        pairs = [self.split(x) for x in args]
        values = [v for v, _ in pairs]
        batched = tuple(b for _, b in pairs)
        # Collectives name the axes they run along; one along this axis ends here.
        along = prim.collective is not None and self.axis.name in params["axis_name"]
        if not along and not any(batched):
            with within(self.parent):
                return bind(prim, *values, **params)
        with within(self.parent):
            if along:
                outs = prim.collective(self.axis, values, batched, **params)
            else:
                outs = prim.rule("batch")(self.axis, values, batched, **params)
        if not prim.multiple_results:
            return BatchTracer(self, outs)
        return [BatchTracer(self, o) if b else o for o, b in zip(*outs, strict=True)]


def batch(
    fun: FlatFun, axis: Axis, args: Sequence[Any], batched: Sequence[bool], name: str
) -> tuple[list[Any], tuple[bool, ...]]:
    """Run a flat function of examples on batches.

    Parameters
    ----------
    args : sequence
        Batches, the mapped axis in front, or values that are the same for all examples.
    batched : sequence of bool
        Which they are.

    Returns
    -------
    outs, flags : list, tuple of bool
        Results, and which of them are batches.
    """
    trace = BatchTrace(name, axis)
    with tracing(trace):
        outs = fun(
            *[BatchTracer(trace, lift(x)) if b else x for x, b in zip(args, batched, strict=True)]
        )
        pairs = [trace.split(x) for x in outs]
    return [x for x, _ in pairs], tuple(b for _, b in pairs)
