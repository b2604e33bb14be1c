"""Functions run on some values and on what stands for others: ``jax.interpreters.partial_eval``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.avals import OverlayAval, ShapedArray
from ..core.graph import Graph, Literal
from ..core.lazy import absent
from ..core.surgery import live
from ..core.trace import JitTracer, trace_graph, tracing
from ..extend._primitive import as_aval
from ..extend.linear_util import WrappedFun
from ..ops.kit.moves import Overlay
from ..transforms.derivative import Tape, lift

__all__ = [
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "custom_partial_eval_rules",
    "dce_jaxpr",
    "dce_rules",
    "partial_eval_jaxpr_custom_rules",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]
__dir__ = __all__.copy

#: Rules that extensions register for primitives of their own, kept for them and read by nobody:
#: what is dropped, saved or computed anew is decided for whole equations.
dce_rules: dict[Any, Any] = {}
#: As `dce_rules`.
custom_partial_eval_rules: dict[Any, Any] = {}
#: As `dce_rules`.
partial_eval_jaxpr_custom_rules: dict[Any, Any] = {}

DynamicJaxprTracer = JitTracer
JaxprTracer = JitTracer


class PartialVal(tuple[ShapedArray | None, Any]):
    """A value, or the aval of one that is not known: ``(None, value)`` or ``(aval, None)``."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """Return a value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> PartialVal:
        """Return what stands for a value of an aval."""
        return cls((as_aval(aval), None))

    def is_known(self) -> bool:
        """Say whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """Return the value, None where it is not known."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> ShapedArray:
        """Return the aval."""
        aval, const = self
        return lift(const).aval if aval is None else aval


def _argument(tape: Tape, aval: Any, origin: str) -> Any:
    """Return a tracer; of random keys those keys whose words it is."""
    if isinstance(aval, OverlayAval):
        return aval.over(tape.argument(aval.words(), origin))
    return tape.argument(aval, origin)


def _words(x: Any) -> Any:
    return x._base if isinstance(x, Overlay) else x


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Graph, list[PartialVal], list[Any]]:
    """Run a flat function: compute what follows from known arguments, record the rest.

    Parameters
    ----------
    fun : WrappedFun
    pvals : sequence of PartialVal
        Its arguments.
    instantiate : bool or sequence of bool
        Which results are to be of the graph though they are known.

    Returns
    -------
    jaxpr : Graph
        Of the constants and then the arguments not known, to the results not known.
    out_pvals : list of PartialVal
    consts : list
    """
    tape = Tape("partial evaluation")
    args = [
        p.get_known() if p.is_known() else _argument(tape, p.get_aval(), f"argument {k}")
        for k, p in enumerate(pvals)
    ]
    with tracing(tape):
        outs = [x if isinstance(x, Overlay) else lift(x) for x in fun.call_wrapped(*args)]
        forced = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
        values = list(map(_words, outs))
        recorded = [
            force or (isinstance(x, JitTracer) and x.frame is tape)
            for x, force in zip(values, forced, strict=True)
        ]
        invars = [_words(x).atom for x, p in zip(args, pvals, strict=True) if not p.is_known()]
        closed = tape.close(invars, [x for x, r in zip(values, recorded, strict=True) if r])
    found = [
        PartialVal.unknown(x.kind if isinstance(x, Overlay) else x.aval)
        if r
        else PartialVal.known(x)
        for x, r in zip(outs, recorded, strict=True)
    ]
    return closed.jaxpr, found, list(closed.consts)


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Sequence[Any], **settings: Any
) -> tuple[Graph, list[ShapedArray], list[Any]]:
    """Return the graph of a flat function, its results' avals, and the constants it takes."""
    avals = list(map(as_aval, in_avals))

    def flat(*args: Any) -> list[Any]:
        pairs = zip(avals, args, strict=True)
        outs = fun.call_wrapped(*(a.over(x) if isinstance(a, OverlayAval) else x for a, x in pairs))
        return list(map(_words, outs))

    words = [a.words() if isinstance(a, OverlayAval) else a for a in avals]
    closed = trace_graph(flat, words, fun.__name__)
    return closed.jaxpr, list(closed.out_avals), list(closed.consts)


def dce_jaxpr(
    jaxpr: Graph, used_outputs: Sequence[bool] | bool, instantiate: bool | Sequence[bool] = False
) -> tuple[Graph, list[bool]]:
    """Return the graph of some results, and which inputs it takes.

    Parameters
    ----------
    jaxpr : Graph
    used_outputs : sequence of bool
        Results that are kept.
    instantiate : bool or sequence of bool
        Inputs that are kept though nothing reads them.
    """
    n, m = len(jaxpr.outvars), len(jaxpr.invars)
    used = [used_outputs] * n if isinstance(used_outputs, bool) else used_outputs
    kept = [instantiate] * m if isinstance(instantiate, bool) else instantiate
    outs = tuple(a for a, u in zip(jaxpr.outvars, used, strict=True) if u)
    eqns = live(jaxpr.eqns, outs)
    read = {a for eqn in eqns for a in eqn.invars if not isinstance(a, Literal)}
    read |= {a for a in outs if not isinstance(a, Literal)}
    flags = [bool(k) or v in read for v, k in zip(jaxpr.invars, kept, strict=True)]
    invars = tuple(v for v, f in zip(jaxpr.invars, flags, strict=True) if f)
    return Graph(jaxpr.constvars, invars, eqns, outs, jaxpr.debug_name), flags


__getattr__ = absent(
    __name__,
    {
        "calls hold graphs: dce_jaxpr drops what nobody reads": """
            Val dce_jaxpr_call_rule dce_jaxpr_closed_call_rule dce_jaxpr_consts
        """,
    },
)
