"""JAX's names for what tracers, traces, avals, graphs and equations have under others here.

Set on the classes when an extension first asks for any of them: nothing in the house uses these.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from ..core.avals import OverlayAval, ShapedArray
from ..core.dtypes import float0
from ..core.graph import ClosedGraph, Eqn, Graph, eqn_effects
from ..core.primitive import Primitive
from ..core.source import UNKNOWN, Source
from ..core.tangents import tangent_aval
from ..core.trace import GraphTrace, Trace, Tracer, as_array
from ..transforms.batch import BatchTracer
from ._graphs import DebugInfo, mapped_aval, unmapped_aval
from ._interpreters import bind_given, bind_with_trace
from ._primitive import as_aval
from .source_info_util import NameStack


def _strip_weak_type(self: ShapedArray) -> ShapedArray:
    return self.update(weak_type=False)


def _of_cotangents(self: ShapedArray) -> ShapedArray:
    return tangent_aval(self).of_cotangents()


def _set_frame(tracer: Tracer, trace: Trace) -> None:
    tracer.frame = trace


def _process_primitive(self: Trace, prim: Any, xs: Sequence[Any], params: dict[str, Any]) -> Any:
    return prim.bind_with_trace(self, xs, (), params)


def _itself(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self


def _new_arg(self: GraphTrace, aval: Any, source_info: Any = None) -> Any:
    """Return a tracer for one more input, behind those that the function was given."""
    key = isinstance(aval, OverlayAval)
    tracer = self.argument(aval.words() if key else as_aval(aval), f"an input added to {self.name}")
    self.added.append(tracer.atom)
    return aval.over(tracer) if key else tracer


def _replaced(self: Graph, *, debug_info: Any = None, effects: Any = None, **parts: Any) -> Graph:
    """Return a graph with other parts: its effects are its equations', its name the function's."""
    told = None if {"invars", "outvars"} & parts.keys() else self.told
    return replace(self, told=told, **{name: tuple(part) for name, part in parts.items()})


def _told(self: Graph) -> DebugInfo:
    if self.told is None:
        return DebugInfo("jit", self.debug_name)
    source, names, results = self.told
    at = "" if source.file == UNKNOWN.file else f" at {source.file}:{source.line}"
    return DebugInfo("jit", source.function + at, names, results)


class _Context:
    """What is set while an equation is run again: nothing."""

    manager = nullcontext()


for _cls, _names in {
    Tracer: {
        "_trace": property(lambda self: self.frame, _set_frame),
        "full_lower": _itself,
        "get_referent": _itself,
        "to_concrete_value": lambda self: None,
    },
    Trace: {
        "main": property(_itself),
        "tag": None,
        "full_raise": lambda self, x: x,
        "is_valid": lambda self: self.alive,
        "process_primitive": lambda self, prim, xs, params: prim.bind_with_trace(
            self, xs, (), params
        ),
        "stage_value": lambda self, x: as_array(x),
    },
    GraphTrace: {"new_arg": _new_arg},
    BatchTracer: {"val": property(lambda self: self.batch), "batch_dim": 0},
    Source: {
        "name_stack": property(lambda self: NameStack(self.scope)),
        "traceback": property(_itself),
    },
    Primitive: {"bind": bind_given, "bind_with_trace": bind_with_trace},
    ShapedArray: {
        "at_least_vspace": tangent_aval,
        "to_tangent_aval": tangent_aval,
        "to_ct_aval": _of_cotangents,
        "strip_weak_type": _strip_weak_type,
        "update_weak_type": lambda self, weak_type: self.update(weak_type=weak_type),
        "inc_rank": lambda self, size, axis: unmapped_aval(size, axis, self),
        "dec_rank": lambda self, size, axis: mapped_aval(size, axis, self),
        "lo_ty": lambda self: [self],
        "is_high": False,
        "has_qdd": False,
        "normalize": _itself,
    },
    OverlayAval: {
        "to_tangent_aval": lambda self: ShapedArray(self.shape, float0),
        "strip_weak_type": _itself,
    },
    Graph: {
        "debug_info": property(_told),
        "is_high": False,
        "replace": _replaced,
    },
    ClosedGraph: {
        "debug_info": property(lambda self: self.jaxpr.debug_info),
        "constvars": property(lambda self: self.jaxpr.constvars),
        "invars": property(lambda self: self.jaxpr.invars),
        "outvars": property(lambda self: self.jaxpr.outvars),
        "literals": property(lambda self: self.consts),
        "replace": replace,
    },
    Eqn: {
        "effects": property(lambda self: frozenset(eqn_effects(self))),
        "source_info": property(lambda self: self.source),
        "ctx": _Context,
        "replace": replace,
    },
}.items():
    for _name, _value in _names.items():
        setattr(_cls, _name, _value)
