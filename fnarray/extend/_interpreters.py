"""Interpreters that extensions write: traces of their own, under JAX's names for what one does.

A subclass of `UserTrace` says in ``process_primitive`` what operations do, on values that its own
subclass of `Tracer` carries; `set_current_trace` makes it current. It is then asked as the traces
of the house are, and these answer under the same names when one hands operations on to them.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..control.call import jit_p
from ..control.custom_rules import (
    JVPCall,
    JVPRule,
    MappedCall,
    VJPCall,
    call_of_jvp,
    call_of_vjp,
    custom_jvp_call_p,
    custom_vjp_call_p,
)
from ..core import tree
from ..core.array import aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import float0
from ..core.graph import Literal
from ..core.primitive import Primitive
from ..core.source import user_source
from ..core.tangents import Zero, is_zero, tangent_aval
from ..core.trace import CustomCall, Trace, as_array, bind, call_custom, no_trace, state, within
from ..ops.kit.rules import instantiate
from .linear_util import StoreException, WrappedFun, wrap_init

Values = Sequence[Any]
Params = dict[str, Any]

_TABULATED = "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh"
#: Params that JAX's operations have beside those that are printed, as they are by default.
_MORE: dict[str, Params] = {
    "broadcast_in_dim": {"sharding": None},
    "convert_element_type": {"sharding": None},
    "dot_general": {"out_sharding": None},
    "jit": {"inline": False, "keep_unused": False, "compiler_options_kvs": ()},
} | {name: {"accuracy": None} for name in _TABULATED.split()}


class _Traces(type):
    """Lets the traces of the house count as instances."""

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Trace) if cls is UserTrace else type.__instancecheck__(cls, x)


class UserTrace(Trace, metaclass=_Traces):
    """What operations do while it is current, as an extension says.

    Its methods run outside of every trace; what they hand on to an outer one they say, by
    `set_current_trace`, or ``primitive.bind_with_trace(outer, values, avals, params)``.
    """

    lenient = True

    def __init__(self) -> None:
        super().__init__(type(self).__name__)
        if self.parent is None and _taken.traces:
            self.parent = _taken.traces[-1]
        self._invalidated = False
        self._weakref = weakref.ref(self)

    def __repr__(self) -> str:
        return type(self).__name__

    # ---- what its author gives ----

    def process_primitive(self, primitive: Primitive, tracers: Values, params: Params, /) -> Any:
        """Apply an operation to tracers, or to values that are none; return what a call gives."""
        raise self._lacks("process_primitive", "operations")

    def stage_value(self, val: Any) -> Any:
        """Return a value as a tracer of this trace."""
        raise self._lacks("stage_value", "values that are no tracers")

    def process_call(self, call_primitive: Any, f: WrappedFun, tracers: Values, params: Params, /):
        """Call a function as an equation does that holds one; its author calls it, if any."""
        raise self._lacks("process_call", "equations that hold a function")

    def process_custom_jvp_call(
        self,
        primitive: Primitive,
        fun: WrappedFun,
        jvp: WrappedFun,
        tracers: Values,
        /,
        *,
        symbolic_zeros: bool,
    ) -> Values:
        """Call a function that has a rule; ``jvp`` takes and gives primals, then tangents."""
        raise self._lacks("process_custom_jvp_call", "functions of custom_jvp")

    def process_custom_vjp_call(
        self,
        primitive: Primitive,
        fun: WrappedFun,
        fwd: WrappedFun,
        bwd: WrappedFun,
        tracers: Values,
        /,
        *,
        out_trees: Any,
        symbolic_zeros: bool,
    ) -> Values:
        """Call a function that has rules for reverse mode.

        ``fwd`` takes each value and whether it is differentiated, in turn, and gives residuals,
        then results; ``bwd`` takes residuals, then cotangents.
        """
        raise self._lacks("process_custom_vjp_call", "functions of custom_vjp")

    def _lacks(self, method: str, what: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__}.{method} is not defined, and {what} need it, at "
            f"{user_source()}. Define it in the subclass of Trace."
        )

    def invalidate(self) -> None:
        """Say that its tracers are not to be used any more."""
        self._invalidated = True
        self.end()

    # ---- what operations ask ----

    def process(self, prim: Primitive, args: Values, params: Params) -> Any:
        """Apply an operation as its author says."""
        if prim is custom_jvp_call_p:
            return self.custom(call_of_jvp(params), args)
        if prim is custom_vjp_call_p:
            return self.custom(call_of_vjp(params), args)
        if prim.print_params is not None:  # it shows an equation's params as JAX has them
            params = {**prim.print_params(params), **params}
        params = {**_MORE.get(prim.name, {}), **params}
        if prim is jit_p:
            params["donated_invars"] = (False,) * len(args)
        operands = [x.array() if type(x) is Literal else x for x in args]
        with no_trace():
            return self.process_primitive(prim, operands, params)

    def custom(self, call: CustomCall, args: Values) -> Values:
        """Call a function with a derivative of its own as its author says."""
        fun = _named(call.run, call.name)
        with no_trace():
            if hasattr(call, "forward"):
                rules = _ReverseRules(call)
                outs = self.process_custom_vjp_call(
                    custom_vjp_call_p,
                    fun,
                    _named(rules.fwd, _innermost(call).fwd_name),
                    _named(rules.bwd, _innermost(call).bwd_name),
                    list(args),
                    out_trees=rules.out_trees,
                    symbolic_zeros=_innermost(call).symbolic_zeros,
                )
            else:
                outs = self.process_custom_jvp_call(
                    custom_jvp_call_p,
                    fun,
                    _named(lambda *duals: _flat_rule(call, duals), f"jvp of {call.name}"),
                    list(args),
                    symbolic_zeros=_innermost(call).symbolic_zeros,
                )
        return list(outs)


class EvalTrace(UserTrace):
    """Evaluates: what is current where nothing is traced."""

    def process_primitive(self, primitive: Primitive, tracers: Values, params: Params, /) -> Any:
        """Evaluate an operation."""
        with no_trace():
            return primitive.bind(*tracers, **params)

    def stage_value(self, val: Any) -> Any:
        """Return a value as an array."""
        return as_array(val)

    def process_custom_jvp_call(
        self, primitive: Any, fun: WrappedFun, jvp: Any, tracers: Values, /, **settings: Any
    ) -> Values:
        """Call a function."""
        return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(
        self, primitive: Any, fun: WrappedFun, fwd: Any, bwd: Any, tracers: Values, /, **rest: Any
    ) -> Values:
        """Call a function."""
        return fun.call_wrapped(*tracers)


class _Taken(threading.local):
    def __init__(self) -> None:
        #: Traces outside of which something runs, the last taken last: parents of those made there.
        self.traces: list[Trace | None] = []


_taken = _Taken()
eval_trace = EvalTrace()


# Classes, not generators: an interpreter that is left by an error may drop one where it stands, and
# a generator that is thrown away would then take back a trace that is long over.
class take_current_trace:  # noqa: N801, JAX's name
    """Give the trace in progress, and evaluate outside of it for the duration of the block."""

    __slots__ = ("saved",)

    def __enter__(self) -> Trace:
        self.saved, state.trace = state.trace, None
        _taken.traces.append(self.saved)
        return self.saved or eval_trace

    def __exit__(self, *exception: Any) -> None:
        _taken.traces.pop()
        state.trace = self.saved


class set_current_trace(within):  # noqa: N801, JAX's name
    """Apply operations in a trace for the duration of the block."""

    __slots__ = ()

    def __init__(self, trace: Trace | None, check_leaks: bool = False):
        super().__init__(None if trace is eval_trace else trace)


# ---- functions with derivatives of their own -----------------------------------------------------


def _named(fun: Any, name: str) -> WrappedFun:
    def call(*args: Any) -> Any:
        return fun(*args)

    call.__name__ = name
    return wrap_init(call)


def _innermost(call: Any) -> Any:
    """Return the call of one example."""
    while isinstance(call, MappedCall):
        call = call.inner
    return call


def _own(call: Any) -> int:
    """Return how many operands come first that the rules of a call do not take."""
    return 0 if isinstance(call, MappedCall) else call.num_consts


def _zeros(xs: Values) -> Values:
    return [Zero(tangent_aval(aval_of(x))) for x in xs]


def _flat_rule(call: Any, duals: Values) -> Values:
    """Apply a call's rule to primals and then tangents; return results and then tangents."""
    half, own = len(duals) // 2, _own(call)
    primals, tangents = duals[:half], [*_zeros(duals[:own]), *duals[half + own :]]
    outs, tangents = call.derive(primals, tangents, True)
    if not _innermost(call).symbolic_zeros:
        tangents = list(map(instantiate, tangents))
    return [*outs, *tangents]


class _ReverseRules:
    """The rules of a call, flat, as interpreters are handed them."""

    def __init__(self, call: Any):
        self.call = call
        self.trees: tuple[Any, Any, list[None]] | None = None

    def fwd(self, *pairs: Any) -> Values:
        """Run forward: values, each followed by whether it is differentiated."""
        own = _own(self.call)
        primals, perturbed = pairs[::2], tuple(map(bool, pairs[1::2]))
        outs, residuals, back = self.call.forward(primals[own:], perturbed[own:])
        flat = tree.structure([0] * len(outs)), tree.structure([0] * len(residuals))
        self.trees = *flat, [None] * len(residuals)
        self.back, self.of_consts = back, _zeros(primals[:own])
        return [*residuals, *outs]

    def bwd(self, *values: Any) -> Values:
        """Run backward: residuals, then cotangents; return cotangents, some maybe `Zero`."""
        n = len(self.out_trees()[2])
        return [*self.of_consts, *self.back(values[:n], values[n:])]

    def out_trees(self) -> tuple[Any, Any, list[None]]:
        """Return the structures of results and residuals, and which residuals are operands."""
        if self.trees is None:
            raise StoreException("Store empty: fwd has not run yet.")
        return self.trees


class _GivenRule(JVPRule):
    """A rule that an interpreter hands on: of primals and then tangents."""

    def __init__(self, jvp: WrappedFun, symbolic_zeros: bool):
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros

    def __call__(self, primals: Values, tangents: Values) -> tuple[Values, Values]:
        """Apply the rule."""
        if not self.symbolic_zeros:
            tangents = list(map(instantiate, tangents))
        outs = list(self.jvp.call_wrapped(*primals, *tangents))
        half = len(outs) // 2
        return outs[:half], list(map(_tangent, outs[half:]))

    def __str__(self) -> str:
        return self.jvp.__name__


def _tangent(t: Any) -> Any:
    """Return a tangent as rules have it: `Zero` for those of integers."""
    if is_zero(t) or t.dtype != float0:
        return t
    return Zero(ShapedArray(t.shape, float0))


def _given_jvp(*args: Any, subfuns: Any, symbolic_zeros: bool, **params: Any) -> Values:
    """Call a function with a rule for forward mode, as interpreters hand it on."""
    fun, jvp = subfuns
    rule = _GivenRule(jvp, symbolic_zeros)
    return call_custom(JVPCall(fun.call_wrapped, rule, fun.__name__, symbolic_zeros), args)


def _given_vjp(
    *args: Any, subfuns: Any, out_trees: Any, symbolic_zeros: bool, **params: Any
) -> Values:
    """Call a function with rules for reverse mode, as interpreters hand it on."""
    fun, fwd, bwd = subfuns

    def forward(primals: Values, perturbed: Sequence[bool]) -> tuple[Values, Values, Any]:
        pairs = zip(primals, perturbed, strict=True)
        found = list(fwd.call_wrapped(*(x for pair in pairs for x in pair)))
        *_, forwarded = out_trees()
        computed = iter(found)
        residuals = [next(computed) if k is None else primals[k] for k in forwarded]
        return list(computed), residuals, back

    def back(residuals: Values, cts: Values) -> Values:
        if not symbolic_zeros:
            cts = list(map(instantiate, cts))
        return bwd.call_wrapped(*residuals, *cts)

    names = fun.__name__, fwd.__name__, bwd.__name__
    return call_custom(VJPCall(fun.call_wrapped, forward, names, symbolic_zeros), args)


def _given_call(*args: Any, name: str, jaxpr: Any, **settings: Any) -> Values:
    """Call a graph; what JAX says of the call beside it decides nothing here."""
    return bind(jit_p, *args, name=name, jaxpr=jaxpr)


_GIVEN = {custom_jvp_call_p: _given_jvp, custom_vjp_call_p: _given_vjp, jit_p: _given_call}
#: Params of JAX's operations that say nothing where they are None.
_IDLE = frozenset({"accuracy", "axis_index_groups", "out_sharding", "sharding"})


@lru_cache(maxsize=1024)
def _takes(prim: Primitive, name: str) -> bool:
    return name in inspect.signature(prim.aval).parameters


def bind_given(prim: Primitive, /, *args: Any, **params: Any) -> Any:
    """Apply an operation; its params may be JAX's, as interpreters are given them."""
    if prim is jit_p or "subfuns" in params:
        return _GIVEN[prim](*args, **params)
    for name in _IDLE & params.keys():
        if params[name] is None and not _takes(prim, name):
            del params[name]
    return bind(prim, *args, **params)


def bind_with_trace(
    prim: Primitive, trace: Trace | None, args: Values, avals: Values, params: Params, /
) -> Any:
    """Apply an operation in a trace."""
    with set_current_trace(trace):
        return prim.bind(*args, **params)
