"""Calls of traced functions, and the primitive that holds one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import hooks
from ..core.graph import ClosedGraph, eval_graph
from ..core.ref import check_distinct
from ..core.trace import bind
from ._bodies import Holding, holding
from .refs import give_back, values_of
from .tracing import Traced

__all__: list[str] = []


def call_eagerly(graph: ClosedGraph, args: Sequence[Any]) -> tuple[Any, ...]:
    """Evaluate a graph on NumPy arrays as machine code."""
    return tuple(hooks.compiled_call(graph, args))


jit_p = holding("jit", Holding(), eval=lambda *xs, jaxpr, name: call_eagerly(jaxpr, xs))


def call(t: Traced, leaves: Sequence[Any], *, inline: bool = False) -> Any:
    """Record a call of a traced function, or what is in it, or evaluate it; return its result."""
    operands = [*t.consts, *leaves]
    check_distinct(t.name, "jit", operands, len(t.consts))
    if inline:
        outs = eval_graph(t.closed.jaxpr, (), values_of(operands), bind)
    else:
        outs = bind(jit_p, *values_of(operands), name=t.name, jaxpr=t.closed)
    return t.out_spec.unflatten(give_back(operands, t.written, outs))
