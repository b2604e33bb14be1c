"""Calls that run where they are made, instead of as graphs.

No graph holds a Ref. So none can run the rules of a ``custom_vjp`` function that takes one, and may
write it on the way back: a call that is differentiated, of a function that has such a rule in it,
runs the function itself, under which the Ref is at hand.
"""

from __future__ import annotations

from typing import Any, Never

from ..core.graph import Graph, subgraphs
from ..core.keep import remembered
from ..core.trace import GraphTrace, Trace, state
from ..errors import MissingRuleError
from ..transforms.derivative import DerivativeTrace
from .custom_rules import innermost_forward
from .tracing import Traced

__all__: list[str] = []


class RulesOfRefs:
    """Stands in a graph for the rules of a function that was called with Refs."""

    __slots__ = ("fun",)

    def __init__(self, fun: str):
        self.fun = fun

    def __call__(self, *_: Any) -> Never:
        """Say that the function was traced before it is differentiated, and had Refs."""
        raise MissingRuleError(
            "grad",
            f"custom_vjp of {self.fun}",
            "it takes a Ref, and is in a graph that can only be differentiated as a whole: of a "
            "branch that is chosen by a traced value, of a while_loop, or of a program that was "
            "traced apart, as make_jaxpr does. Differentiate inside of what is traced, or loop "
            "with scan.",
        )


def runs_in_place(*ts: Traced) -> bool:
    """Whether a call of traced functions is differentiated, and has rules in it that take Refs."""
    return _differentiated(state.trace) and any(_has_rules(t.closed.jaxpr) for t in ts)


def _differentiated(trace: Trace | None) -> bool:
    """Whether what is done now has a derivative, before any of it is recorded in a graph."""
    while trace is not None and not isinstance(trace, GraphTrace):
        if isinstance(trace, DerivativeTrace):
            return True
        trace = trace.parent
    return False


@remembered(4096)
def _has_rules(graph: Graph) -> bool:
    return any(
        type(innermost_forward(eqn.params)) is RulesOfRefs
        or any(map(_has_rules, subgraphs(eqn.params)))
        for eqn in graph.eqns
    )
