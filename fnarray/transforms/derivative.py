"""Forward derivatives: functions run on values with tangents.

``jvp`` computes tangents beside the values. ``linearize`` computes the values, and records what
would be done with tangents on a `Tape`, whose constants are the residuals: what reverse mode
transposes (Radul et al., *You Only Linearize Once*, 2022). Both run the function itself, so that
Python code may branch on values that are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..core import hooks
from ..core.array import Array, asarray
from ..core.avals import ShapedArray
from ..core.frozen import frozen
from ..core.graph import ClosedGraph, Literal, Var, eval_graph, subgraphs
from ..core.primitive import Primitive
from ..core.source import labels, user_source
from ..core.surgery import live
from ..core.tangents import Zero, differentiable, is_zero, nonzero, tangent_aval, with_zeros
from ..core.trace import (
    CustomCall,
    GraphTrace,
    JitTracer,
    Trace,
    Tracer,
    bind,
    call_custom,
    check_alive,
    state,
    tracing,
    within,
)
from ..ops.kit.calls import broadcast_in_dim
from ..ops.kit.rules import instantiate as as_array

FlatFun = Callable[..., Sequence[Any]]


class DerivativeTracer(Tracer):
    """A value, maybe a tracer of an outer trace, and its tangent.

    What Python asks of the value is asked of the value itself.
    """

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: Trace, primal: Any, tangent: Any):
        super().__init__(trace, primal.aval, user_source())
        self.primal = primal
        self.tangent = tangent

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes, which the value may know more of than their number."""
        return self.primal.shape

    def where_from(self) -> str:
        """Say where the value came from."""
        primal = self.primal
        return primal.where_from() if isinstance(primal, Tracer) else super().where_from()

    def _value(self) -> Any:
        if not self.frame.alive:
            check_alive(self)
        return self.primal

    def __bool__(self) -> bool:
        return bool(self._value())

    def __int__(self) -> int:
        return int(self._value())

    def __index__(self) -> int:
        return self._value().__index__()

    def item(self, *args: Any) -> Any:
        """Return the value of one element as a Python number; its derivative is not followed."""
        return self._value().item(*args)


class JVPTracer(DerivativeTracer):
    """A tracer of ``jvp``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"


class LinearizeTracer(DerivativeTracer):
    """A tracer of ``linearize``, and so of ``grad`` and ``vjp``: its tangent is on the tape."""

    __slots__ = ()

    def __repr__(self) -> str:
        tangent = self.tangent.aval.str_short(True)
        return f"GradTracer(primal={self.primal}, typeof(tangent)={tangent})"


def lift(x: Any) -> Array:
    """Return an operand of an operation as an array."""
    if isinstance(x, Array):
        return x
    if type(x) is Literal:
        return x.array()
    return asarray(x)


@dataclass(slots=True)
class GivenRef:
    """A Ref that a function is differentiated with respect to, while the function runs.

    Attributes
    ----------
    value : Array
        What it holds now, with its tangent.
    used, written : bool
        Whether its value was asked for, or replaced.
    """

    ref: Any
    value: Any
    used: bool = False
    written: bool = False


class DerivativeTrace(Trace):
    """Applies operations to values and tangents.

    Values are computed in the enclosing trace. With a ``tape``, operations on tangents are recorded
    there; without, they are applied in the enclosing trace too.
    """

    def __init__(self, name: str, tape: Tape | None = None):
        super().__init__(name)
        self.tape = tape
        self.inner = self.parent if tape is None else tape
        self.kind = JVPTracer if tape is None else LinearizeTracer
        # A `jvp` inside of a rule that runs on a tape: its values must stay off the tape, where
        # what is computed with them would count as a function of tangents.
        self.taped = isinstance(self.inner, Tape | OnTape)
        #: Refs among the arguments, by `id`. Rules that functions bring along take them themselves.
        self.given_refs: dict[int, GivenRef] = {}

    def dual(self, primal: Any, tangent: Any) -> Any:
        """Return a value with its tangent; the value itself where that is zero."""
        if is_zero(tangent):
            return primal
        if primal.aval.place is not tangent.aval.place:  # part of what it is computed of is cut
            with within(self.inner):
                tangent = hooks.placed_as(tangent, primal.aval)
        return self.kind(self, primal, tangent)

    def split(self, x: Any) -> tuple[Array, Any]:
        """Return a value and its tangent."""
        if isinstance(x, Tracer):
            if x.frame is self:
                return x.primal, x.tangent  # type: ignore[attr-defined]
            check_alive(x)
        x = lift(x)
        return x, Zero(tangent_aval(x.aval))

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply an operation and its derivative."""
        pairs = [self.split(x) for x in args]
        primals = [p for p, _ in pairs]
        tangents = [t for _, t in pairs]
        if all(map(is_zero, tangents)):
            with within(self.parent):
                return bind(prim, *primals, **params)
        rule = prim.linearize if self.taped else None
        with within(self.inner):
            outs, duals = (rule or prim.rule("jvp"))(primals, tangents, **params)
        if prim.multiple_results:
            return [self.dual(o, t) for o, t in zip(outs, duals, strict=True)]
        return self.dual(outs, duals)

    def give(self, refs: Sequence[Any], tangents: Sequence[Any]) -> None:
        """Let Refs have tangents beside the values that they have outside."""
        for ref, t in zip(refs, tangents, strict=True):
            with within(self.parent):
                value = ref[...]
            self.given_refs[id(ref)] = GivenRef(ref, self.dual(value, t))

    def left(self) -> list[tuple[Any, Any]]:
        """Give values to the Refs that were written; return what tangents all of them have.

        Returns
        -------
        list
            The aval and tangent of each, None for one that was neither read nor written.
        """
        found: list[tuple[Any, Any]] = []
        for given in self.given_refs.values():
            primal, t = self.split(given.value)
            if given.written:
                with within(self.parent):
                    given.ref[...] = primal
            found.append((primal.aval, t if given.used else None))
        return found

    def load(self, ref: Any) -> Any:
        """Return the value of a Ref that was made outside: with a tangent, if it was given one."""
        given = self.given_refs.get(id(ref))
        if given is None:
            return super().load(ref)
        given.used = True
        return given.value

    def store(self, ref: Any, value: Any) -> None:
        """Give another value to a Ref that was made outside."""
        given = self.given_refs.get(id(ref))
        if given is None:
            super().store(ref, value)
        else:
            given.value, given.used, given.written = value, True, True

    def refused(self, ref: Any) -> Exception:
        """Return the error of a value with a tangent that is written to a Ref without one."""
        return ValueError(
            "performing a set/swap operation with a differentiated value on a non-differentiated "
            f"array reference of type {ref.aval}, at {user_source()}: {self.name} is "
            "differentiated, and the reference was made outside of it. Write "
            "lax.stop_gradient(value), or make the reference inside."
        )

    def custom(self, call: CustomCall, args: Sequence[Any]) -> Sequence[Any]:
        """Apply the derivative that a function brings along."""
        pairs = [self.split(x) for x in args]
        primals = [p for p, _ in pairs]
        tangents = [t for _, t in pairs]
        if all(map(is_zero, tangents)):
            with within(self.parent):
                return call_custom(call, primals)
        with within(self.inner):
            if self.tape is None:
                outs, duals = call.derive(primals, tangents, True)
            else:
                outs, duals = on_tape(call, primals, tangents)
        return [self.dual(o, t) for o, t in zip(outs, duals, strict=True)]


class Tape(GraphTrace):
    """Records operations on tangents; what does not touch one happens in the enclosing trace."""

    def __init__(self, name: str):
        super().__init__(name)
        self.around = labels()
        #: Whether operations may be on it that no result depends on.
        self.pruned = False

    def close(self, invars: Sequence[Var], outs: Sequence[Any]) -> ClosedGraph:
        """Return the graph, whose labels are those within the tape's: it is run elsewhere."""
        if self.pruned:
            self.eqns = list(live(self.eqns, [self.atom(x) for x in outs]))
        if n := len(self.around):
            self.eqns = [
                replace(e, source=e.source.labelled(e.source.stack[n:])) for e in self.eqns
            ]
        return super().close(invars, outs)

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record an operation on a tangent, or pass it on."""
        for x in args:
            if isinstance(x, JitTracer) and x.frame is self:
                return super().process(prim, args, params)
        with within(self.parent):
            return bind(prim, *args, **params)

    def custom(self, call: CustomCall, args: Sequence[Any]) -> Sequence[Any]:
        """Run a function on tangents, in which it is linear, or pass the call on."""
        for x in args:
            if isinstance(x, JitTracer) and x.frame is self:
                return call.run(*args)
        with within(self.parent):
            return call_custom(call, args)

    load = Trace.load
    store = Trace.store

    def zeros(self, aval: ShapedArray) -> Any:
        """Record an array of zeros, which is no residual."""
        # A tracer of a constant: what is done with it is recorded here.
        constant = Literal(0, aval.update(shape=(), place=None))
        zero = JitTracer(self, constant, user_source())  # type: ignore[arg-type]
        with within(self):
            zeros = broadcast_in_dim(zero, aval.shape, ())
            return zeros if aval.place is None else hooks.placed_as(zeros, aval)


class OnTape(Trace):
    """Applies what a function's own rule says of tangents, on a tape.

    Of an operation that holds graphs, and takes tangents beside other values, some results may
    depend on no tangent: those are computed in the enclosing trace. It is linearized, at zeros.
    """

    def __init__(self, tape: Tape):
        super().__init__(tape.name)
        self.tape = tape

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record an operation on a tangent, or pass it on."""
        flags = [isinstance(x, JitTracer) and x.frame is self.tape for x in args]
        with within(self.tape):
            done = bind(prim, *args, **params)
            if all(flags) or not any(flags) or not prim.multiple_results or len(done) < 2:
                return done
            if next(subgraphs(params), None) is None:
                return done
            return self._apart(prim, args, flags, params, done)

    def _apart(
        self,
        prim: Primitive,
        args: Sequence[Any],
        flags: Sequence[bool],
        params: dict[str, Any],
        done: Sequence[Any],
    ) -> list[Any]:
        avals = [lift(x).aval for x in args]
        zeros = [Zero(tangent_aval(a)) for a in avals]
        primals = [
            as_array(zero) if f else lift(x) for x, zero, f in zip(args, zeros, flags, strict=True)
        ]
        tangents = [x if f else zero for x, zero, f in zip(args, zeros, flags, strict=True)]
        outs, duals = (prim.linearize or prim.rule("jvp"))(primals, tangents, **params)
        self.tape.pruned = True
        # What has no derivative, as numbers of turns, may still depend on tangents.
        return [
            d if not is_zero(d) else lift(o) if differentiable(lift(o).aval.dtype) else r
            for r, o, d in zip(done, outs, duals, strict=True)
        ]

    def custom(self, call: CustomCall, args: Sequence[Any]) -> Sequence[Any]:
        """Run a function on tangents, in which it is linear, or pass the call on."""
        if any(isinstance(x, JitTracer) and x.frame is self.tape for x in args):
            return call.run(*args)
        with within(self.tape):
            return call_custom(call, args)

    def load(self, ref: Any) -> Any:
        """Return the value of a Ref."""
        return self.tape.load(ref)

    def store(self, ref: Any, value: Any) -> None:
        """Give another value to a Ref."""
        self.tape.store(ref, value)


def on_tape(
    call: CustomCall, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Apply the derivative that a function brings along, on the tape that is current."""
    tape = state.trace
    if not isinstance(tape, Tape):
        return call.derive(primals, tangents, False)
    with within(OnTape(tape)):
        return call.derive(primals, tangents, False)


def linear_graph(fun: FlatFun, avals: Sequence[ShapedArray], name: str) -> ClosedGraph:
    """Return the graph of a flat function that is linear; what its inputs do not touch is done."""
    tape = Tape(name)
    args = [tape.argument(a, f"argument {k} of {name}") for k, a in enumerate(avals)]
    with tracing(tape):
        return tape.close([a.atom for a in args], fun(*args))


def jvp(
    fun: FlatFun,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    name: str,
    refs: Sequence[tuple[Any, Any]] = (),
) -> tuple[list[Any], list[Any]]:
    """Return the results of a flat function and their tangents, `Zero` where known to be.

    Refs that the function takes come with those of their tangents, both of which it may write.
    """
    trace = DerivativeTrace(name)
    trace.give([r for r, _ in refs], [t[...] for _, t in refs])
    with tracing(trace):
        outs = fun(*[trace.dual(lift(p), t) for p, t in zip(primals, tangents, strict=True)])
        pairs = [trace.split(x) for x in outs]
        lefts = trace.left()
    for (_, of_tangent), (_, t) in zip(refs, lefts, strict=True):
        if t is not None:
            of_tangent[...] = as_array(t)
    return [p for p, _ in pairs], [t for _, t in pairs]


@frozen(eq=False)
class Linear:
    """A linear function of tangents.

    Attributes
    ----------
    closed : ClosedGraph
        Tangents of the active inputs to those of the active results; constants are the residuals.
    active_in, active_out : tuple of bool
        Which inputs and results have a tangent that is not known to be zero.
    out_avals : tuple of ShapedArray
        Of the values' results.
    refs : dict
        Avals of the values of inputs that are Refs, by the inputs' numbers: last among the results
        are the tangents of what is left in them.
    """

    closed: ClosedGraph
    active_in: tuple[bool, ...]
    active_out: tuple[bool, ...]
    out_avals: tuple[ShapedArray, ...]
    refs: Mapping[int, ShapedArray] = field(default_factory=dict[int, ShapedArray])

    def __call__(self, tangents: Sequence[Any]) -> list[Any]:
        """Return the tangents of all results for tangents of the active inputs."""
        done = eval_graph(self.closed.jaxpr, self.closed.consts, tangents, bind)
        return with_zeros(self.active_out, done, self.out_avals)


def linearize(
    fun: FlatFun,
    primals: Sequence[Any],
    name: str,
    active: Sequence[bool] | None = None,
    instantiate: Sequence[bool] = (),
    refs: Mapping[int, Any] | None = None,
) -> tuple[list[Any], Linear]:
    """Return the results of a flat function, and the linear function of its tangents there.

    Parameters
    ----------
    active : sequence of bool, optional
        Which inputs have tangents; by default those of float or complex dtypes.
    instantiate : sequence of bool, optional
        Which results must have a tangent, if one of zeros.
    refs : dict, optional
        Refs that the function takes in the place of inputs, by their numbers. Those whose values it
        asks for are inputs with tangents; it may hand them all to rules of their own.
    """
    primals = [lift(p) for p in primals]
    if active is None:
        active = [differentiable(p.aval.dtype) for p in primals]
    tape = Tape(f"the derivative of {name}")
    trace = DerivativeTrace(name, tape)
    tangents = [
        tape.argument(p.aval, f"a tangent of {name}") if a else Zero(tangent_aval(p.aval))
        for p, a in zip(primals, active, strict=True)
    ]
    with_tangents = {
        k: tape.argument(ref.aval.inner_aval, f"the tangent of a Ref of {name}")
        for k, ref in (refs or {}).items()
        if differentiable(ref.dtype)
    }
    trace.give([refs[k] for k in with_tangents] if refs else (), [*with_tangents.values()])
    used: dict[int, ShapedArray] = {}
    with tracing(trace):
        outs = fun(*map(trace.dual, primals, tangents))
        pairs = [trace.split(x) for x in outs]
        of_results = len(pairs)
        for k, (aval, t) in zip(with_tangents, trace.left(), strict=True):
            if t is not None:
                used[k], tangents[k] = aval, with_tangents[k]
                pairs.append((aval, t))
        for k, (p, t) in enumerate(pairs):
            if instantiate and instantiate[k] and is_zero(t):
                pairs[k] = p, tape.zeros(p.aval)
    with tracing(tape):
        invars = [t.atom for t in tangents if not is_zero(t)]
        closed = tape.close(invars, [t for _, t in pairs if not is_zero(t)])
    return [p for p, _ in pairs[:of_results]], Linear(
        closed,
        nonzero(tangents),
        nonzero([t for _, t in pairs]),
        (*(p.aval for p, _ in pairs[:of_results]), *used.values()),
        used,
    )
