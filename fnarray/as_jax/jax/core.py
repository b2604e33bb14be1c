"""``jax.core``: what is known of values while they are traced.

``fnarray.core`` is the house's own floor; this is JAX's module of that name.
"""

from __future__ import annotations

from abc import ABC
from contextlib import contextmanager
from typing import Any

import numpy as np

import fnarray as _fnarray
from fnarray.api.tracing import ensure_compile_time_eval as ensure_compile_time_eval
from fnarray.core.avals import OverlayAval
from fnarray.core.avals import ShapedArray as ShapedArray
from fnarray.core.dims import called
from fnarray.core.trace import Tracer as Tracer
from fnarray.core.trace import within
from fnarray.errors import ConcretizationTypeError as ConcretizationTypeError
from fnarray.extend import core as _extended
from fnarray.extend._graphs import eval_jaxpr as eval_jaxpr
from fnarray.extend._interpreters import UserTrace as Trace  # noqa: F401
from fnarray.extend.core import Jaxpr as Jaxpr
from fnarray.extend.core import Literal, Var

Value = Any
Atom = Var | Literal
ParamDict = dict[str, Any]
get_aval = _fnarray.typeof


class AbstractValue(ABC):  # noqa: B024 - only a place to register
    """What is known of a value; arrays have a `ShapedArray`."""


AbstractValue.register(ShapedArray)
AbstractValue.register(OverlayAval)


@contextmanager
def eval_context():
    """Evaluate at once for the duration of the block, whatever is being traced."""
    with within(None):
        yield


def max_dim(a: Any, b: Any) -> Any:
    """Return the larger of two sizes, which may be symbolic."""
    return called("max", a, b)


def min_dim(a: Any, b: Any) -> Any:
    """Return the smaller of two sizes, which may be symbolic."""
    return called("min", a, b)


#: By type, how the aval of a value is found; kept for those who register here, and read by nobody.
pytype_aval_mappings: dict[type, Any] = {np.ndarray: get_aval}

#: Names that JAX gives here with a warning, since they are `jax.extend.core`'s now.
_MOVED = frozenset({
    "DebugInfo", "DropVar", "Effect", "Effects", "InconclusiveDimensionOperation", "JaxprTypeError",
    "TraceTag", "call_impl", "check_jaxpr", "concrete_or_error", "find_top_trace", "gensym",
    "get_opaque_trace_state", "jaxprs_in_params", "mapped_aval", "new_jaxpr_eqn", "no_effects",
    "primal_dtype_to_tangent_dtype", "set_current_trace", "subjaxprs", "take_current_trace",
    "unmapped_aval", "valid_jaxtype",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        return getattr(_extended, name)
    raise AttributeError(name)
