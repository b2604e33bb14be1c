"""Calls of functions with derivatives of their own, and how they are transformed.

A call runs as itself until something differentiates it. Within a graph it is an equation that
holds the function's graph, which is inlined when compiled, and the rule, which runs when the graph
is differentiated. Outside of graphs the rule runs on values, and Python may branch on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.graph import ClosedGraph
from ..core.primitive import Primitive
from ..core.tangents import (
    Zero,
    chosen,
    differentiable,
    is_undefined,
    is_zero,
    nonzero,
    tangent_aval,
    with_zeros,
)
from ..core.trace import CustomCall, bind, call_custom
from ..errors import UnexpectedTracerError
from ..ops.kit.calls import reduce_sum
from ..ops.kit.registry import register
from ..ops.kit.rules import spread
from ..transforms.batch import Axis, BatchTrace, batch
from ..transforms.derivative import lift, on_tape
from ..transforms.graphs import runner
from ..transforms.transpose import backward
from ._bodies import Holding, holding

__all__: list[str] = []

Flags = tuple[bool, ...]
Values = Sequence[Any]
Run = Callable[[Values], Values]
FORWARD = "can't apply forward-mode autodiff (jvp) to a custom_vjp function."


# ---- on batches ----------------------------------------------------------------------------------


class BatchRunner:
    """Runs a function, and the rules beside it, on batches.

    Attributes
    ----------
    flags : tuple of bool
        Which results of the function are batches: all, if any operand is; else what the first run
        finds.
    """

    __slots__ = ("axis", "batched", "flags", "name", "of")

    def __init__(self, name: str, axis: Axis, batched: Flags, of: BatchTrace | None):
        self.name = name
        self.axis = axis
        self.batched = batched
        self.of = of
        self.flags: Flags | None = None

    def __call__(self, run: Run, values: Values, flags: Flags) -> list[tuple[Any, bool]]:
        """Run on values and symbolic zeros; return results of either kind, and if batches."""
        zeros: list[Any] = []

        def fun(*some: Any) -> Values:
            left = iter(some)
            outs = run([self._narrow(v, f) if is_zero(v) else next(left) for v, f in pairs])
            zeros[:] = [o if is_zero(o) else None for o in outs]
            return chosen(nonzero(outs), outs)

        pairs = list(zip(values, flags, strict=True))
        given = nonzero(values)
        name = f"vmap({self.name})"
        outs, found = batch(
            fun, self.axis, chosen(given, values), chosen(given, flags), name, self.of
        )
        done = zip(outs, found, strict=True)
        return [next(done) if z is None else (z, False) for z in zeros]

    def settle(self, pairs: Sequence[tuple[Any, bool]]) -> Flags:
        """Decide at the first run which results are batches."""
        found = tuple(f for _, f in pairs)
        if self.flags is None:
            self.flags = (True,) * len(found) if any(self.batched) else found
        if any(f and not s for f, s in zip(found, self.flags, strict=True)):
            raise TypeError(
                f"vmap of {self.name}: a result is the same for all examples by the function, but "
                "not by its derivative rule. Make the rule agree with the function."
            )
        return self.flags

    def fit(self, pairs: Sequence[tuple[Any, bool]], wanted: Flags) -> list[Any]:
        """Give results the mapped axis where it is wanted."""
        return [x if f or not w else self._wide(x) for (x, f), w in zip(pairs, wanted, strict=True)]

    def _wide(self, x: Any) -> Any:
        if is_zero(x):
            return Zero(x.aval.update(shape=(int(self.axis), *x.aval.shape)))
        return spread(lift(x), self.axis)

    def _narrow(self, zero: Zero, batched: bool) -> Zero:
        return Zero(zero.aval.update(shape=zero.aval.shape[1:])) if batched else zero


class MappedCall(CustomCall):
    """A call on batches."""

    __slots__ = ("inner", "mapped", "name")

    def __init__(self, inner: Any, axis: Axis, batched: Flags, of: BatchTrace | None):
        self.inner = inner
        self.name = inner.name
        self.mapped = BatchRunner(inner.name, axis, batched, of)

    @property
    def flags(self) -> Flags | None:
        """Which results are batches, once the call has run."""
        return self.mapped.flags

    def run(self, *args: Any) -> Values:
        """Call the function."""
        mapped = self.mapped
        pairs = mapped(lambda xs: self.inner.run(*xs), args, mapped.batched)
        return mapped.fit(pairs, mapped.settle(pairs))

    def batched(self, axis: Axis, flags: Flags, of: BatchTrace | None = None) -> MappedCall:
        """Return the call on batches of batches."""
        return type(self)(self, axis, flags, of)


# ---- custom_jvp ----------------------------------------------------------------------------------


class JVPRule:
    """A function's rule, made flat: ``(primals, tangents) -> (results, tangents)``, with zeros.

    ``held`` of the operands come first that the rule takes as they are: they have no tangents.
    """

    held = 0

    def __call__(self, primals: Values, tangents: Values) -> tuple[Values, Values]:
        """Apply the rule."""
        raise TypeError(f"{type(self).__name__} does not say what its rule is")

    def __str__(self) -> str:
        return "rule"


class JVPCall(CustomCall):
    """A call of a ``custom_jvp`` function."""

    __slots__ = ("fun", "name", "num_consts", "rule", "symbolic_zeros")

    def __init__(
        self,
        fun: Callable[..., Values],
        rule: JVPRule,
        name: str,
        symbolic_zeros: bool,
        num_consts: int = 0,
    ):
        self.fun = fun
        self.rule = rule
        self.name = name
        self.symbolic_zeros = symbolic_zeros
        self.num_consts = num_consts

    def run(self, *args: Any) -> Values:
        """Call the function."""
        return self.fun(*args)

    def derive(self, primals: Values, tangents: Values, forward: bool) -> Any:
        """Apply the rule."""
        own = self.num_consts
        check_consts(self.name, tangents[:own])
        return self.rule(primals[own:], tangents[own:])

    def batched(self, axis: Axis, flags: Flags, of: BatchTrace | None = None) -> MappedCall:
        """Return the call on batches."""
        return MappedJVPCall(self, axis, flags, of)

    def recorded(self, graph: ClosedGraph, num_consts: int) -> tuple[Primitive, dict[str, Any]]:
        """Return the equation that holds the call."""
        held = self.num_consts + self.rule.held
        return custom_jvp_call_p, {
            "name": self.name,
            "call_jaxpr": graph,
            "jvp": self.rule,
            "num_consts": num_consts + held,
            "symbolic_zeros": self.symbolic_zeros,
        }


def check_consts(name: str, tangents: Values) -> None:
    """Raise `UnexpectedTracerError` if what a function closes over is differentiated."""
    if any(nonzero(tangents)):
        raise UnexpectedTracerError(
            f"{name} closes over a value that is being differentiated, of which its rule says "
            "nothing. Pass the value as an argument."
        )


class MappedJVPCall(MappedCall):
    """A call of a ``custom_jvp`` function on batches."""

    __slots__ = ()

    def derive(self, primals: Values, tangents: Values, forward: bool) -> Any:
        """Apply the rule to batches."""
        mapped, n = self.mapped, len(primals)

        def run(values: Values) -> Values:
            outs, duals = self.inner.derive(values[:n], values[n:], forward)
            return [*outs, *duals]

        pairs = mapped(run, [*primals, *tangents], mapped.batched * 2)
        half = len(pairs) // 2
        outs, duals = pairs[:half], pairs[half:]
        either = [(x, f or g) for (x, f), (_, g) in zip(outs, duals, strict=True)]
        wanted = mapped.settle(either)
        return mapped.fit(outs, wanted), mapped.fit(duals, wanted)

    def recorded(self, graph: ClosedGraph, num_consts: int) -> tuple[Primitive, dict[str, Any]]:
        """Return the equation that holds the call."""
        prim, params = self.inner.recorded(graph, num_consts)
        rule = MappedRule(self)
        return prim, {**params, "jvp": rule, "num_consts": num_consts}


class MappedRule(JVPRule):
    """The rule of a call on batches."""

    def __init__(self, call: MappedJVPCall):
        self.call = call

    def __call__(self, primals: Values, tangents: Values) -> tuple[Values, Values]:
        """Apply the rule."""
        return self.call.derive(primals, tangents, True)

    def __str__(self) -> str:
        inner = self.call.inner
        return str(MappedRule(inner) if isinstance(inner, MappedJVPCall) else inner.rule)


def call_of_jvp(params: dict[str, Any]) -> JVPCall:
    """Return the call that an equation holds."""
    rule = params["jvp"]
    num_consts = params["num_consts"] - rule.held
    fun = runner(params["call_jaxpr"])
    return JVPCall(fun, rule, params["name"], params["symbolic_zeros"], num_consts)


def _hide_no_consts(params: dict[str, Any]) -> dict[str, Any]:
    return {p: v for p, v in params.items() if p != "num_consts" or v}


def _call_rules(call_of: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Return the rules of an equation that holds a call."""

    def jvp(primals: Values, tangents: Values, **params: Any) -> Any:
        return call_of(params).derive(primals, tangents, True)

    def linearize(primals: Values, tangents: Values, **params: Any) -> Any:
        return on_tape(call_of(params), primals, tangents)

    def transpose(cts: Values, *operands: Any, call_jaxpr: ClosedGraph, **params: Any) -> Any:
        return backward(call_jaxpr.jaxpr, call_jaxpr.consts, operands, cts)

    def rule(axis: Axis, operands: Values, batched: Flags, **params: Any) -> Any:
        call = call_of(params).batched(axis, batched)
        outs = call_custom(call, operands)
        return outs, call.flags

    return {
        "jvp": jvp,
        "linearize": linearize,
        "transpose": transpose,
        "batch": rule,
    }


FAMILY = Holding("call_jaxpr")
custom_jvp_call_p = holding(
    "custom_jvp_call", FAMILY, print_params=_hide_no_consts, **_call_rules(call_of_jvp)
)


# ---- custom_vjp ----------------------------------------------------------------------------------

#: Residuals and cotangents of all results to cotangents of all operands, with zeros in either.
Backward = Callable[[Values, Values], Values]
#: Operands, and which of them are differentiated, to results, residuals, and the way back.
Forward = Callable[[Values, Flags], tuple[Values, Values, Backward]]


class VJPCall(CustomCall):
    """A call of a ``custom_vjp`` function."""

    __slots__ = ("bwd_name", "forward", "fun", "fwd_name", "name", "num_consts", "symbolic_zeros")

    def __init__(
        self,
        fun: Callable[..., Values],
        forward: Forward,
        names: tuple[str, str, str],
        symbolic_zeros: bool,
        num_consts: int = 0,
    ):
        self.fun = fun
        self.forward = forward
        self.name, self.fwd_name, self.bwd_name = names
        self.symbolic_zeros = symbolic_zeros
        self.num_consts = num_consts

    def run(self, *args: Any) -> Values:
        """Call the function."""
        return self.fun(*args)

    def derive(self, primals: Values, tangents: Values, forward: bool) -> Any:
        """Run forward, and record on the tape what the way back will be."""
        if forward:
            raise TypeError(f"{FORWARD[:-1]}: {self.name} has only a reverse rule.")
        own = self.num_consts
        check_consts(self.name, tangents[:own])
        return _recorded(self.forward, primals[own:], tangents[own:], self)

    def batched(self, axis: Axis, flags: Flags, of: BatchTrace | None = None) -> MappedCall:
        """Return the call on batches."""
        return MappedVJPCall(self, axis, flags, of)

    def recorded(self, graph: ClosedGraph, num_consts: int) -> tuple[Primitive, dict[str, Any]]:
        """Return the equation that holds the call."""
        return custom_vjp_call_p, {
            "name": self.name,
            "call_jaxpr": graph,
            "fwd": Named(self.forward, self.fwd_name),
            "bwd": Named(self.forward, self.bwd_name),
            "num_consts": self.num_consts + num_consts,
            "symbolic_zeros": self.symbolic_zeros,
        }


class Named:
    """A function under the name that it is printed by."""

    __slots__ = ("name", "rule")

    def __init__(self, rule: Any, name: str):
        self.rule = rule
        self.name = name

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        return self.rule(*args)

    def __str__(self) -> str:
        return self.name


class MappedVJPCall(MappedCall):
    """A call of a ``custom_vjp`` function on batches."""

    __slots__ = ()

    def derive(self, primals: Values, tangents: Values, forward: bool) -> Any:
        """Run forward on batches, and record on the tape what the way back will be."""
        if forward:
            return self.inner.derive(primals, tangents, True)
        check_consts(self.name, tangents[: self.own])
        return _recorded(self.forward, primals, tangents, self.innermost)

    @property
    def own(self) -> int:
        """Number of operands that the function closes over."""
        return 0 if isinstance(self.inner, MappedVJPCall) else self.inner.num_consts

    @property
    def innermost(self) -> VJPCall:
        """The call of one example."""
        inner = self.inner
        return inner.innermost if isinstance(inner, MappedVJPCall) else inner

    def forward(self, primals: Values, perturbed: Flags) -> tuple[Values, Values, Backward]:
        """Run forward on batches."""
        mapped, own = self.mapped, self.own
        found: list[Any] = []

        def run(values: Values) -> Values:
            outs, residuals, back = self.inner.forward(values[own:], perturbed[own:])
            found[:] = len(outs), back, [Zero(lift(x).aval) for x in values[:own]]
            return [*outs, *residuals]

        pairs = mapped(run, primals, mapped.batched)
        n, back, of_consts = found
        wanted = mapped.settle(pairs[:n])
        of_residuals = tuple(f for _, f in pairs[n:])
        k = len(of_residuals)

        def backwards(residuals: Values, cts: Values) -> Values:
            cotangents = mapped(
                lambda xs: [*of_consts, *back(xs[:k], xs[k:])],
                [*residuals, *cts],
                (*of_residuals, *wanted),
            )
            # What is the same for all examples gets the cotangents of all.
            summed = [
                (reduce_sum(c, (0,)), True) if f and not b else (c, f)
                for (c, f), b in zip(cotangents, mapped.batched, strict=True)
            ]
            return mapped.fit(summed, mapped.batched)

        return mapped.fit(pairs[:n], wanted), [x for x, _ in pairs[n:]], backwards

    def recorded(self, graph: ClosedGraph, num_consts: int) -> tuple[Primitive, dict[str, Any]]:
        """Return the equation that holds the call."""
        call = self.innermost
        prim, params = call.recorded(graph, num_consts)
        return prim, {
            **params,
            "fwd": Named(self.forward, call.fwd_name),
            "bwd": Named(self.forward, call.bwd_name),
            "num_consts": num_consts,
        }


def innermost_forward(params: dict[str, Any]) -> Any:
    """Return what runs forward on one example, of an equation's params; None where none does."""
    rule = params["fwd"].rule if "fwd" in params else None
    call = getattr(rule, "__self__", None)
    return call.innermost.forward if isinstance(call, MappedVJPCall) else rule


def call_of_vjp(params: dict[str, Any]) -> VJPCall:
    """Return the call that an equation holds."""
    names = params["name"], str(params["fwd"]), str(params["bwd"])
    fun = runner(params["call_jaxpr"])
    forward = params["fwd"].rule
    return VJPCall(fun, forward, names, params["symbolic_zeros"], params["num_consts"])


custom_vjp_call_p = holding(
    "custom_vjp_call", FAMILY, print_params=_hide_no_consts, **_call_rules(call_of_vjp)
)


def _recorded(forward: Forward, primals: Values, tangents: Values, call: VJPCall) -> Any:
    """Run forward; record the way back as an operation on tangents, which only has a transpose."""
    active = nonzero(tangents)
    outs, residuals, back = forward(primals, active)
    outs = [lift(o) for o in outs]
    flags = tuple(differentiable(o.aval.dtype) for o in outs)
    duals = bind(
        custom_lin_p,
        *residuals,
        *chosen(active, tangents),
        bwd=Named(back, call.bwd_name),
        in_zeros=tuple(not a for a in active),
        num_res=len(residuals),
        out_avals=tuple(o.aval for o in outs),
        symbolic_zeros=call.symbolic_zeros,
    )
    return outs, with_zeros(flags, chosen(flags, duals), [o.aval for o in outs])


def _transposed(
    cts: Values,
    *operands: Any,
    bwd: Named,
    in_zeros: Flags,
    num_res: int,
    out_avals: Any,
    symbolic_zeros: bool,
) -> list[Any]:
    given = [
        Zero(tangent_aval(a)) if is_zero(c) or not differentiable(a.dtype) else c
        for c, a in zip(cts, out_avals, strict=True)
    ]
    found = bwd(operands[:num_res], given)
    wanted = [c for c, zero in zip(found, in_zeros, strict=True) if not zero]
    return [
        *(None for _ in range(num_res)),
        *(c if is_undefined(x) else None for c, x in zip(wanted, operands[num_res:], strict=True)),
    ]


def _forward_only(*args: Any, **params: Any) -> Any:
    raise TypeError(FORWARD)


custom_lin_p = register(
    Primitive(
        "custom_lin",
        quiet=False,
        typed=True,
        affine=True,
        aval=lambda *avals, out_avals, **params: out_avals,
        eval=_forward_only,
        form=_forward_only,
        jvp=_forward_only,
        transpose=_transposed,
        batch=_forward_only,
        multiple_results=True,
        print_params=lambda params: {k: v for k, v in params.items() if k != "out_avals"},
    )
)
