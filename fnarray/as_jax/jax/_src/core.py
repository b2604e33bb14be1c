"""``jax._src.core``: ``jax.core``, and more of what extensions use."""

from __future__ import annotations

import operator
from typing import Any

from fnarray.core.dims import is_symbolic_dim as is_symbolic_dim
from fnarray.core.trace import state as _state
from fnarray.extend._interpreters import EvalTrace as EvalTrace
from fnarray.extend._interpreters import eval_trace as eval_trace
from fnarray.extend.core import CallPrimitive as CallPrimitive
from fnarray.extend.core import ClosedJaxpr as ClosedJaxpr
from fnarray.extend.core import DropVar as DropVar
from fnarray.extend.core import JaxprEqn as JaxprEqn
from fnarray.extend.core import Literal as Literal
from fnarray.extend.core import Primitive as Primitive
from fnarray.extend.core import TraceTag as TraceTag
from fnarray.extend.core import Var as Var
from fnarray.extend.core import find_top_trace as find_top_trace
from fnarray.extend.core import get_opaque_trace_state as get_opaque_trace_state
from fnarray.extend.core import jaxpr_as_fun as jaxpr_as_fun
from fnarray.extend.core import mapped_aval as mapped_aval
from fnarray.extend.core import set_current_trace as set_current_trace
from fnarray.extend.core import take_current_trace as take_current_trace
from fnarray.extend.core import unmapped_aval as unmapped_aval
from fnarray.extend.core import valid_jaxtype as valid_jaxtype
from fnarray.extend.core.primitives import call_p as call_p
from fnarray.extend.core.primitives import closed_call_p as closed_call_p

from ..core import AbstractValue as AbstractValue
from ..core import Atom as Atom
from ..core import ConcretizationTypeError as ConcretizationTypeError
from ..core import Jaxpr as Jaxpr
from ..core import ShapedArray as ShapedArray
from ..core import Trace as Trace
from ..core import Tracer as Tracer
from ..core import Value as Value
from ..core import eval_context as eval_context
from ..core import eval_jaxpr as eval_jaxpr
from ..core import get_aval as get_aval
from ..core import pytype_aval_mappings as pytype_aval_mappings

typeof = get_aval


def trace_state_clean() -> bool:
    """Say whether nothing is being traced."""
    return _state.trace is None


class _TraceContext:
    """What is in progress: JAX's object of that name."""

    @property
    def trace(self) -> Any:
        """The trace in progress."""
        return _state.trace or eval_trace

    def set_trace(self, trace: Trace | None) -> None:
        """Make a trace current."""
        _state.trace = None if trace is eval_trace else trace

    def is_top_level(self) -> bool:
        """Say whether nothing is being traced."""
        return _state.trace is None


trace_ctx = _TraceContext()


class JaxprEqnContext:
    """The settings that an equation is traced under: equations keep none here."""

    def __init__(self, *settings: Any):
        del settings


def is_constant_dim(d: Any) -> bool:
    """Say whether a size is a number, not a symbol of an exported program."""
    if isinstance(d, Tracer) or is_symbolic_dim(d):
        return False
    try:
        operator.index(d)
    except TypeError:
        return False
    return True


def full_lower(val: Any) -> Any:
    """Return a tracer as its trace would hand it on, anything else as it is."""
    return val.full_lower() if isinstance(val, Tracer) else val  # type: ignore[attr-defined]
