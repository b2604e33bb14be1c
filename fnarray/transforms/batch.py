"""Batching: functions of one example run on a batch.

The mapped axis is in front of every batched value, always; axes are moved where a function is
entered and left (as index arithmetic, once compiled). What does not depend on the mapped axis is
computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..core.axes import Axis, axes_named
from ..core.primitive import Primitive
from ..core.source import user_source
from ..core.trace import (
    CustomCall,
    Trace,
    Tracer,
    bind,
    call_custom,
    check_alive,
    tracing,
    within,
)
from .derivative import FlatFun, lift


class BatchTracer(Tracer):
    """One example, standing for all: the batch has the mapped axis in front."""

    __slots__ = ("batch",)

    def __init__(self, trace: Trace, batch: Any):
        aval = batch.aval.update(shape=batch.aval.shape[1:])
        super().__init__(trace, aval, user_source())
        self.batch = batch

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes, which the batch may know more of than their number."""
        return self.batch.shape[1:]

    def __repr__(self) -> str:
        short, whole = self.aval.str_short(), self.batch.aval.str_short()
        return f"VmapTracer(aval={short}, batched={whole})"


class BatchTrace(Trace):
    """Applies operations to batches.

    Parameters
    ----------
    of : BatchTrace, optional
        Whose batches are known here, too: part of what runs there was put off, such as the rule of
        a custom derivative.
    """

    def __init__(self, name: str, axis: Axis, of: BatchTrace | None = None):
        super().__init__(name)
        self.axis = axis
        if axis.name is not None:
            self.axes = ((axis.name, int(axis)),)
        self.of = of if of is None or of.of is None else of.of

    def owns(self, tracer: Tracer) -> bool:
        """Whether a tracer stands for an example of this batch."""
        other = tracer.frame
        if other is self:
            return True
        return self.of is not None and (other is self.of or getattr(other, "of", None) is self.of)

    def split(self, x: Any) -> tuple[Any, bool]:
        """Return a batch or a value, and which of them it is."""
        if isinstance(x, Tracer):
            if x.frame is self or self.owns(x):
                return x.batch, True  # type: ignore[attr-defined]
            check_alive(x)
        return lift(x), False

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply an operation to batches."""
        pairs = [self.split(x) for x in args]
        values = [v for v, _ in pairs]
        batched = tuple(b for _, b in pairs)
        # Collectives name the axes they run along; one along this axis ends here.
        along = self.axis.name is not None and self.axis.name in axes_named(prim, params)
        if not along and not any(batched):
            with within(self.parent):
                return bind(prim, *values, **params)
        with within(self.parent):
            if along and prim.collective is not None:
                out, differs = prim.collective(self.axis, values, batched, **params)
                return BatchTracer(self, out) if differs else out
            outs = prim.rule("batch")(self.axis, values, batched, **params)
        if not prim.multiple_results:
            # A rule may say that its result is the same for all examples.
            out, differs = cast("Any", outs) if type(outs) is tuple else (outs, True)
            return BatchTracer(self, out) if differs else out
        return [BatchTracer(self, o) if b else o for o, b in zip(*outs, strict=True)]

    def store(self, ref: Any, value: Any) -> None:
        """Refuse: all examples would write to one place."""
        raise ValueError(
            "performing a set/swap operation with vmapped value on an unbatched array reference of "
            f"type {ref.aval}, at {user_source()}: all examples of {self.name} would write to one "
            "place. Move the array reference to be an argument to the vmapped function, mapped "
            "along an axis."
        )

    def custom(self, call: CustomCall, args: Sequence[Any]) -> Sequence[Any]:
        """Call the function that works on batches."""
        pairs = [self.split(x) for x in args]
        mapped = call.batched(self.axis, tuple(b for _, b in pairs), self)
        with within(self.parent):
            outs = call_custom(mapped, [v for v, _ in pairs])
        return [
            BatchTracer(self, lift(o)) if b else o for o, b in zip(outs, mapped.flags, strict=True)
        ]


def batch(
    fun: FlatFun,
    axis: Axis,
    args: Sequence[Any],
    batched: Sequence[bool],
    name: str,
    of: BatchTrace | None = None,
) -> tuple[list[Any], tuple[bool, ...]]:
    """Run a flat function of examples on batches.

    Parameters
    ----------
    args : sequence
        Batches, the mapped axis in front, or values that are the same for all examples.
    batched : sequence of bool
        Which they are.
    of : BatchTrace, optional
        As of `BatchTrace`.

    Returns
    -------
    outs, flags : list, tuple of bool
        Results, and which of them are batches.
    """
    trace = BatchTrace(name, axis, of)
    with tracing(trace):
        outs = fun(
            *[BatchTracer(trace, lift(x)) if b else x for x, b in zip(args, batched, strict=True)]
        )
        pairs = [trace.split(x) for x in outs]
    return [x for x, _ in pairs], tuple(b for _, b in pairs)
