"""Tracers that outlive their trace, which is looked for where it is asked for."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast
from weakref import ref

from ..core.trace import Trace, Tracer, origin_text, state
from ..errors import UnexpectedTracerError


@contextmanager
def refused(who: str) -> Generator[None, None, None]:
    """Raise where a tracer of a trace that ended within the block is still held.

    Parameters
    ----------
    who : str
        The function that is traced, for the message.

    Raises
    ------
    UnexpectedTracerError
        Says what is held, where it was made, and what kind of object holds it.
    """
    outer, state.ended = state.ended, []
    try:
        yield
        ended = state.ended
    finally:
        state.ended = outer
    # A look at all objects in memory takes a tenth of a second beside large libraries, and
    # programs have hundreds of traces: most die with their last reference, the others are seldom.
    if not _living(ended):
        return
    gc.collect()
    leaked = _kept(_living(ended))
    if leaked:
        held = "\n  ".join(f"{t}, {origin_text(t)}, held by {_holders(t, leaked)}" for t in leaked)
        raise UnexpectedTracerError(
            f"{who}: its trace has ended, and {len(leaked)} of its values live on; "
            f"config.check_tracer_leaks refuses that:\n  {held}\n  Return them from the function, "
            "and keep nothing of it elsewhere."
        )


def _living(ended: list[ref[Trace]]) -> list[Trace]:
    """Return the traces of a list that somebody refers to."""
    return [trace for each in ended if (trace := each()) is not None]


def _kept(traces: list[Trace]) -> list[Tracer]:
    """Return the tracers in memory that are of one of some traces."""
    if not traces:
        return []
    found = cast("list[object]", gc.get_objects())
    # By `type`: `isinstance` asks an object's `__class__`, which runs the code of whoever wrote it.
    tracers = cast("list[Tracer]", [x for x in found if issubclass(type(x), Tracer)])
    return [tracer for tracer in tracers if any(tracer.frame is trace for trace in traces)]


def _holders(tracer: Tracer, others: list[Tracer]) -> str:
    """Return the kinds of objects that refer to a tracer."""
    kinds = {type(x).__name__ for x in gc.get_referrers(tracer) if x is not others}
    return " and ".join(sorted(kinds - {"frame", "generator"})) or "a frame"
