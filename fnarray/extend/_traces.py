"""What is being traced, under JAX's names for what one asks of it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..core.array import Array, aval_of
from ..core.axes import axis_env
from ..core.dtypes import float0
from ..core.tangents import differentiable
from ..core.trace import GraphTrace, Trace, Tracer, state
from ..errors import ConcretizationTypeError, UnexpectedTracerError
from ..transforms.batch import BatchTrace
from ._interpreters import eval_trace

#: What operations take beside traced values.
#: Types of which values count as arrays.
array_types = {Array, np.ndarray, np.generic, bool, int, float, complex}


class TraceTag:
    """Names a trace; all are equal, as in JAX, and are told apart by which they are."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceTag)

    def __hash__(self) -> int:
        return hash(TraceTag)


class OpaqueTraceState:
    """Which trace is in progress; two are equal where that is the same one."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace | None):
        # A trace that has ended is not kept for being remembered.
        self._trace = None if trace is None else weakref.ref(trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._trace == other._trace

    __hash__ = None  # type: ignore[assignment]


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """Return which trace is in progress, to be compared later."""
    return OpaqueTraceState(state.trace)


def find_top_trace(xs: Any) -> Trace:
    """Return the trace in progress."""
    return state.trace or eval_trace


def _traces() -> Iterator[Trace]:
    trace = state.trace
    while trace is not None:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Say whether a graph is being recorded."""
    return any(isinstance(t, GraphTrace) for t in _traces())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Say whether a function is being batched."""
    return any(isinstance(t, BatchTrace) for t in _traces())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """Return the names of the mapped axes around."""
    return [name for name, _ in axis_env()]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Say whether there are mapped axes around."""
    return bool(axis_env())


def valid_jaxtype(x: Any) -> bool:
    """Say whether operations take a value."""
    try:
        aval_of(x)
    except UnexpectedTracerError:
        raise
    except (TypeError, ValueError):
        return False
    return True


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """Return ``force(val)``; refuse traced values, saying what for they were asked."""
    if isinstance(val, Tracer):
        raise ConcretizationTypeError(
            f"{val!r} is traced, and its value is asked for. {context}\n  It is {val.where_from()}."
        )
    return val if force is None else force(val)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> np.dtype:
    """Return the dtype of the tangents of values of a dtype."""
    return primal_dtype if differentiable(primal_dtype) else float0
