"""JAX's names for what tracers, traces, avals, graphs and equations have under others here.

Set on the classes when an extension first asks for any of them: nothing in the house uses these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..core.avals import ShapedArray
from ..core.graph import ClosedGraph, Eqn, Graph, eqn_effects
from ..core.tangents import tangent_aval
from ..core.trace import Trace, Tracer


def _strip_weak_type(self: ShapedArray) -> ShapedArray:
    return self.update(weak_type=False)


def _itself(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self


for _cls, _names in {
    Tracer: {"_trace": property(lambda self: self.frame)},
    Trace: {"main": property(_itself)},
    ShapedArray: {
        "at_least_vspace": tangent_aval,
        "to_tangent_aval": tangent_aval,
        "to_ct_aval": tangent_aval,
        "strip_weak_type": _strip_weak_type,
        "normalize": _itself,
    },
    Graph: {"debug_info": property(lambda self: self.debug_name), "replace": replace},
    ClosedGraph: {
        "constvars": property(lambda self: self.jaxpr.constvars),
        "invars": property(lambda self: self.jaxpr.invars),
        "outvars": property(lambda self: self.jaxpr.outvars),
        "literals": property(lambda self: self.consts),
        "replace": replace,
    },
    Eqn: {
        "effects": property(lambda self: frozenset(eqn_effects(self))),
        "source_info": property(lambda self: self.source),
        "replace": replace,
    },
}.items():
    for _name, _value in _names.items():
        setattr(_cls, _name, _value)
