"""Primitives and graphs, named as in ``jax.extend.core``."""

from ...core.graph import Literal as Literal
from ...core.graph import Var as Var
from ...core.lazy import absent as _absent
from ...errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from ...errors import JaxprTypeError as JaxprTypeError
from .. import _aliases as _aliases
from .._calls import CallPrimitive as CallPrimitive
from .._graphs import ClosedJaxpr as ClosedJaxpr
from .._graphs import DebugInfo as DebugInfo
from .._graphs import DropVar as DropVar
from .._graphs import Effect as Effect
from .._graphs import Effects as Effects
from .._graphs import Jaxpr as Jaxpr
from .._graphs import JaxprEqn as JaxprEqn
from .._graphs import Token as Token
from .._graphs import call_impl as call_impl
from .._graphs import check_jaxpr as check_jaxpr
from .._graphs import gensym as gensym
from .._graphs import jaxpr_as_fun as jaxpr_as_fun
from .._graphs import jaxprs_in_params as jaxprs_in_params
from .._graphs import mapped_aval as mapped_aval
from .._graphs import new_jaxpr_eqn as new_jaxpr_eqn
from .._graphs import no_effects as no_effects
from .._graphs import subjaxprs as subjaxprs
from .._graphs import unmapped_aval as unmapped_aval
from .._interpreters import set_current_trace as set_current_trace
from .._interpreters import take_current_trace as take_current_trace
from .._primitive import Primitive as Primitive
from .._traces import OpaqueTraceState as OpaqueTraceState
from .._traces import TraceTag as TraceTag
from .._traces import array_types as array_types
from .._traces import concrete_or_error as concrete_or_error
from .._traces import find_top_trace as find_top_trace
from .._traces import get_opaque_trace_state as get_opaque_trace_state
from .._traces import nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE
from .._traces import primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype
from .._traces import unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE
from .._traces import unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE
from .._traces import unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE
from .._traces import valid_jaxtype as valid_jaxtype
from . import primitives as primitives

__getattr__ = _absent(
    __name__,
    {
        "effects are in the order of the program: no aval stands for a token": "AbstractToken",
    },
)
