"""Calls of traced functions, and the primitive that holds one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import hooks
from ..core.graph import ClosedGraph
from ..core.trace import bind
from ._bodies import Holding, holding
from .tracing import Traced

__all__: list[str] = []


def call_eagerly(graph: ClosedGraph, args: Sequence[Any]) -> tuple[Any, ...]:
    """Evaluate a graph on NumPy arrays as machine code."""
    return tuple(hooks.compiled_call(graph, args))


jit_p = holding("jit", Holding(), eval=lambda *xs, jaxpr, name: call_eagerly(jaxpr, xs))


def call(t: Traced, leaves: Sequence[Any]) -> Any:
    """Record a call of a traced function, or evaluate it; return its result."""
    outs = bind(jit_p, *t.consts, *leaves, name=t.name, jaxpr=t.closed)
    return t.out_spec.unflatten(outs)
