"""Tracing: running a function on tracers, and what every operation does when called.

`bind` is the one door through which operations act. With no trace in progress it evaluates at
once; inside a trace it records an equation.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..config import config, threads_own
from ..errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from . import hooks, lazy
from .array import (
    Array,
    ArrayElsewhere,
    ArrayImpl,
    ArrayPlaced,
    Elsewhere,
    asarray,
    aval_of,
    default,
    stays_on_host,
    stored,
)  # fmt: skip
from .avals import ShapedArray, ShapeDtypeStruct, ambiguous
from .graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var
from .large import evaluator, plainly
from .memo import recall, remember
from .primitive import Primitive
from .quiet import offence
from .source import UNKNOWN, Source, unlabelled, user_source
from .surgery import closed_over_nothing


class _State(threading.local):
    trace: Trace | None = None
    #: Set while somebody watches what traces make: called with each tracer, for one in its place.
    watch: Callable[[JitTracer], JitTracer] | None = None
    #: Set while somebody asks what lives on: the traces that ended since.
    ended: list[weakref.ref[Trace]] | None = None
    #: Whether programs that were accepted run again: how arrays are cut is no error then.
    accepted: bool = False
    #: Whether a bool made an array within a trace is not known there; one for all threads.
    stages_bools: bool = False

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "trace":
            if value is None:
                threads_own.pop(id(vars(self)), None)
            else:
                threads_own[id(vars(self))] = None


state = _State()


class Tracer(Array):
    """A value that stands for an array while a function is traced.

    It knows its aval, the trace it belongs to, and where it came from.
    """

    __slots__ = ("aval", "frame", "origin")

    def __init__(self, trace: Trace, aval: ShapedArray, origin: Source | str = UNKNOWN):
        self.frame = trace
        self.aval = aval
        self.origin = origin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short()})"

    def __dir__(self) -> Iterable[str]:
        ours = [kind for kind in type(self).__mro__ if kind.__module__.startswith("fnarray.")]
        hidden = {name for kind in ours for name in vars(kind).get("__slots__", ())}
        return {*super().__dir__()} - (hidden - {"aval"}) - {"where_from"}

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: {type(self).__name__!r}: its value is not known yet")

    # An array never changes: a copy of one is itself, also in a `copy.deepcopy` of a tree.
    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        return self

    def where_from(self) -> str:
        """Say where the tracer came from, as a clause for error messages."""
        return origin_text(self)

    def _refuse(self, error: type[Exception], asked: str, advice: str) -> Exception:
        if not self.frame.alive:
            check_alive(self)
        # JAX's words come first: they are what people search for.
        return error(
            f"{asked} traced array with shape {self.aval.str_short()} while tracing "
            f"{self.frame.name}, at {user_source()}: its value is not known when the function "
            f"is traced.\n  The array is {origin_text(self)}.\n  {advice}"
        )

    def __bool__(self) -> bool:
        if self.aval.shape and self.aval.size != 1:
            raise self._refuse(ValueError, f"{ambiguous(self.aval.shape)} It is a", "")
        raise self._refuse(
            TracerBoolConversionError,
            _BOOL,
            "Use fnarray.lax.cond or fnarray.numpy.where to choose by value, or mark the "
            "argument it depends on static (static_argnums, static_argnames).",
        )

    def __int__(self) -> int:
        raise self._refuse(ConcretizationTypeError, _VALUE.format("int"), _CONCRETE)

    def __float__(self) -> float:
        raise self._refuse(ConcretizationTypeError, _VALUE.format("float"), _CONCRETE)

    def __complex__(self) -> complex:
        raise self._refuse(ConcretizationTypeError, _VALUE.format("complex"), _CONCRETE)

    def __index__(self) -> int:
        raise self._refuse(
            TracerIntegerConversionError,
            "The __index__() method was called on",
            "Index with fnarray.numpy arrays (x[i], lax.dynamic_slice), loop with "
            "lax.fori_loop, or mark the argument it depends on static.",
        )

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise self._refuse(
            TracerArrayConversionError,
            "The numpy.ndarray conversion method __array__() was called on",
            "Use the fnarray.numpy function in place of the numpy one.",
        )

    def item(self, *args: Any) -> Any:
        """Refuse: the value of a tracer is not known."""
        raise self._refuse(ConcretizationTypeError, _VALUE.format("item"), _CONCRETE)

    def tolist(self) -> Any:
        """Refuse: the value of a tracer is not known."""
        raise self._refuse(ConcretizationTypeError, _VALUE.format("tolist"), _CONCRETE)

    def block_until_ready(self) -> Tracer:
        """Return the tracer itself: there is nothing to wait for."""
        return self


_BOOL = "Attempted boolean conversion of"
_VALUE = "Abstract tracer value encountered where concrete value is expected by {}():"
_CONCRETE = (
    "Keep it an array (x.astype, fnarray.numpy functions), or mark the argument it depends on "
    "static (static_argnums, static_argnames)."
)


class JitTracer(Tracer):
    """A tracer with no value, as under ``jit`` and in loop bodies: it stands for a graph's var."""

    __slots__ = ("atom",)

    def __init__(self, trace: GraphTrace, var: Var, origin: Source | str):
        super().__init__(trace, var.aval, origin)
        self.atom = var


def origin_text(tracer: Tracer) -> str:
    """Say where a tracer came from: an argument, or the user's line that computed it."""
    origin = getattr(tracer, "origin", UNKNOWN)  # an extension's may have said nothing of it
    if isinstance(origin, str):
        return origin
    return f"computed at {origin}" + (f": {text}" if (text := origin.text()) else "")


class Trace:
    """What operations do during one run of a function, within the trace that was current before.

    Attributes
    ----------
    axes : tuple of (name, size)
        The mapped axes that it binds, which collectives may name.
    lenient : bool
        Whether its tracers may be operands outside of it, of which they are constants then.
    outside : frozenset of int
        The ids of arrays without axes that are constants of graphs that begin in it, as those of
        other shapes are, and no literals.
    """

    axes: tuple[tuple[Hashable, int], ...] = ()
    lenient = False
    outside: frozenset[int] = frozenset()

    def __init__(self, name: str):
        self.name = name
        self.parent = state.trace
        self.alive = True

    def end(self) -> None:
        """Say that its tracers are not to be used any more."""
        self.alive = False
        if state.ended is not None:
            state.ended.append(weakref.ref(self))

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply a primitive; return its result, or list of results."""
        raise TypeError(f"{type(self).__name__} does not say what operations do")

    def custom(self, call: CustomCall, args: Sequence[Any]) -> Sequence[Any]:
        """Call a function that has a derivative of its own; by default it is like any other."""
        return call.run(*args)

    def owns(self, tracer: Tracer) -> bool:
        """Whether a tracer is one of this run's."""
        return tracer.frame is self

    def load(self, ref: Any) -> Any:
        """Return the value of a Ref that was made outside."""
        with within(self.parent):
            return ref[...]

    def store(self, ref: Any, value: Any) -> None:
        """Give another value to a Ref that was made outside."""
        if isinstance(value, Tracer) and self.owns(value):
            raise self.refused(ref)
        with within(self.parent):
            ref[...] = value

    def refused(self, ref: Any) -> Exception:
        """Return the error of a value that belongs to this run, and is to be kept outside."""
        return UnexpectedTracerError(
            f"{self.name} writes a value of its own to a {ref.aval} of outside, at {user_source()}."
        )


class CustomCall:
    """A call of a function of flat arrays whose derivative is given beside it.

    Its methods run in whatever trace is current, on values of that trace.
    """

    __slots__ = ()

    name: str

    def run(self, *args: Any) -> Sequence[Any]:
        """Call the function."""
        raise TypeError(f"{type(self).__name__} does not say what it runs")

    def derive(
        self, primals: Sequence[Any], tangents: Sequence[Any], forward: bool
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Apply its derivative: results and tangents, of which some may be `Zero`.

        ``forward`` says that tangents are values; else they are recorded on a tape.
        """
        raise TypeError(f"{type(self).__name__} has no derivative")

    def batched(self, axis: Any, flags: tuple[bool, ...], of: Any = None) -> Any:
        """Return the call on batches; once run, its ``flags`` say which results are batches."""
        raise TypeError(f"{type(self).__name__} does not say how it is batched")

    def recorded(self, graph: ClosedGraph, num_consts: int) -> tuple[Primitive, dict[str, Any]]:
        """Return the equation that holds the call, once the function is a graph."""
        raise TypeError(f"{type(self).__name__} cannot be recorded")


def call_custom(call: CustomCall, args: Sequence[Any]) -> Sequence[Any]:
    """Call a function that has a derivative of its own, as the trace in progress wants it."""
    trace = state.trace
    return call.run(*args) if trace is None else trace.custom(call, args)


class GraphTrace(Trace):
    """Records the operations of one run of a function.

    Values from outside, arrays and outer tracers alike, become ``constvars``: the function is
    closed over nothing once its graph is made.
    """

    def __init__(self, name: str):
        super().__init__(name)
        self.eqns: list[Eqn] = []
        self.added: list[Var] = []
        self.lifted = frozenset[int]() if self.parent is None else self.parent.outside
        self.constvars: dict[int, tuple[Var, Any]] = {}
        # Values of the Refs of outside, where whoever traces can take them and give them back.
        self.refs: dict[int, Any] | None = None

    def argument(self, aval: ShapedArray, origin: Source | str) -> JitTracer:
        """Return a tracer for a new input."""
        tracer = JitTracer(self, Var(aval), origin)
        return tracer if state.watch is None else state.watch(tracer)

    def atom(self, x: Any) -> Atom:
        """Return the operand that stands for a value."""
        if isinstance(x, Tracer):
            if x.frame is self:
                return x.atom  # type: ignore[attr-defined]
            check_alive(x)
        elif type(x) is Literal:
            return x
        elif isinstance(x, ShapeDtypeStruct):
            # It has no value, and where shapes alone are asked for it needs none.
            var = Var(aval_of(x))
            return self.constvars.setdefault(id(x), (var, (x, x)))[0]
        elif not isinstance(x, ArrayImpl):
            aval = aval_of(x)
            if not aval.shape:
                return Literal(x, aval)
        elif not x.aval.shape and id(x) not in self.lifted:
            return Literal(x._data, x.aval)  # pyright: ignore[reportPrivateUsage]
        known = self.constvars.get(id(x))
        if known is None:
            value = x if isinstance(x, Array) else asarray(x)
            # The original is kept too: its id must not be used again while the trace lives.
            known = self.constvars[id(x)] = (Var(value.aval), (value, x))
        return known[0]

    def load(self, ref: Any) -> Any:
        """Return the value of a Ref of outside: an input of the graph, until it is written."""
        if self.refs is None:
            raise NotImplementedError(
                f"{self.name}: a {ref.aval} of outside is used at {user_source()}, in a function "
                "that no Ref can be handed to. Pass its value, ref[...], and return the new one."
            )
        if id(ref) not in self.refs:
            check_encloses(ref)
            var = Var(ref.aval.inner_aval)
            self.constvars[id(ref)] = var, (ref, ref)
            self.refs[id(ref)] = JitTracer(self, var, f"the value of a {ref.aval} of outside")
        return self.refs[id(ref)]

    def store(self, ref: Any, value: Any) -> None:
        """Give a Ref of outside another value: a result of the graph."""
        self.load(ref)
        assert self.refs is not None
        self.refs[id(ref)] = value

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record an equation; return the tracer, or list of tracers, of its results."""
        try:
            atoms = tuple(map(self.atom, args))
        except UnexpectedTracerError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"lax.{prim}: {error}") from None
        if prim.collective is not None or any(a.aval.place is not None for a in atoms):
            atoms, avals = hooks.cut_eqn(self, prim, atoms, params)
        else:
            avals = prim.aval(*(a.aval for a in atoms), **params)
        source = user_source()
        many = prim.multiple_results
        outvars = tuple(map(Var, avals)) if many else (Var(avals),)
        self.eqns.append(Eqn(prim, atoms, outvars, params, source))
        tracers = [JitTracer(self, v, source) for v in outvars]
        if state.watch is not None:
            tracers = list(map(state.watch, tracers))
        return tracers if many else tracers[0]

    def custom(self, call: CustomCall, args: Sequence[Any]) -> Sequence[Any]:
        """Record a call with the graph of its function."""
        closed = trace_graph(call.run, [self.atom(x).aval for x in args], call.name)
        prim, params = call.recorded(closed_over_nothing(closed), len(closed.consts))
        return self.process(prim, [*closed.consts, *args], params)

    def close(self, invars: Sequence[Var], outs: Sequence[Any]) -> ClosedGraph:
        """Return the graph of what was recorded, with ``outs`` as its results."""
        outvars = tuple(map(self.atom, outs))
        constvars, consts = tuple(zip(*self.constvars.values(), strict=True)) or ((), ())
        ins = (*invars, *self.added)
        graph = Graph(constvars, ins, tuple(self.eqns), outvars, self.name)
        return ClosedGraph(graph, tuple(value for value, _ in consts))


def check_alive(tracer: Tracer) -> None:
    """Raise `UnexpectedTracerError` for a tracer whose trace has ended or is not enclosing."""
    trace = state.trace
    while trace is not None and trace is not tracer.frame and not trace.owns(tracer):
        trace = trace.parent
    if trace is None and tracer.frame.lenient:
        return
    if trace is None and tracer.frame.alive:
        raise UnexpectedTracerError(
            f"A tracer {tracer.aval.str_short()} of {tracer.frame.name} is used at "
            f"{user_source()}, outside of it.\n  It is {origin_text(tracer)}.\n"
            "  Functions with derivatives of their own, and their rules, may not close over what "
            "is being differentiated: pass it as an argument."
        )
    if trace is None:
        raise UnexpectedTracerError(
            f"A tracer {tracer.aval.str_short()} of {tracer.frame.name} is used at "
            f"{user_source()}, after that function's tracing has ended.\n"
            f"  It is {origin_text(tracer)}.\n"
            "  It was kept by a side effect (a global, a list from outside, an attribute): "
            "return the value from the function instead."
        )


def check_encloses(ref: Any) -> None:
    """Raise `UnexpectedTracerError` for a Ref of a trace that has ended or is not enclosing."""
    trace = state.trace
    while trace is not None and trace is not ref.home:
        trace = trace.parent
    if trace is not ref.home:
        with no_trace():
            ref[...]  # raises


@contextmanager
def recording(name: str) -> Generator[GraphTrace, None, None]:
    """Make a new trace current for the duration of the block."""
    trace = GraphTrace(name)
    with tracing(trace), unlabelled():
        yield trace


class tracing:  # noqa: N801, a context manager, lighter than a generator's
    """Make a trace current for the duration of the block, and dead after it."""

    __slots__ = ("saved", "trace")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self) -> Trace:
        self.saved, state.trace = state.trace, self.trace
        return self.trace

    def __exit__(self, *exception: Any) -> None:
        state.trace = self.saved
        self.trace.end()


class within:  # noqa: N801
    """Apply operations in another trace, None for none, for the duration of the block."""

    __slots__ = ("saved", "trace")

    def __init__(self, trace: Trace | None):
        self.trace = trace

    def __enter__(self) -> None:
        self.saved, state.trace = state.trace, self.trace

    def __exit__(self, *exception: Any) -> None:
        state.trace = self.saved


class accepted:  # noqa: N801
    """Let results be cut somehow for the duration of the block, where it is not said how."""

    __slots__ = ("saved",)

    def __enter__(self) -> None:
        self.saved, state.accepted = state.accepted, True

    def __exit__(self, *exception: Any) -> None:
        state.accepted = self.saved


def no_trace() -> within:
    """Evaluate eagerly for the duration of the block, whatever trace is current."""
    return within(None)


lazy.outside.append(no_trace)


def trace_graph(
    fun: Callable[..., Sequence[Any]],
    in_avals: Sequence[ShapedArray],
    name: str = "function",
    origins: Sequence[str] | None = None,
) -> ClosedGraph:
    """Trace a function of flat arguments that returns a flat sequence of results.

    Parameters
    ----------
    fun : callable
        Called once with one tracer per aval.
    in_avals : sequence of ShapedArray
    name : str
        Of the function, for messages.
    origins : sequence of str, optional
        What each argument is, as a clause for messages (``"the argument x['w'] of f"``).

    Returns
    -------
    ClosedGraph
        Its ``consts`` are the arrays and outer tracers the function is closed over.
    """
    if origins is None:
        origins = [f"argument {i} of {name}" for i in range(len(in_avals))]
    with recording(name) as trace:
        args = [trace.argument(a, o) for a, o in zip(in_avals, origins, strict=True)]
        outs = fun(*args)
        return trace.close([a.atom for a in args], outs)


def bind(prim: Primitive, /, *args: Any, **params: Any) -> Any:
    """Apply a primitive: evaluate it, or record it in the trace in progress.

    Parameters
    ----------
    prim : Primitive
    *args
        Arrays, tracers, NumPy arrays or Python scalars.
    **params
        Metadata, canonical and hashable.

    Returns
    -------
    Array or list of Array
    """
    if threads_own and (trace := state.trace) is not None:
        return trace.process(prim, args, params)
    if (
        default.find is not None
        and (there := default.find()) is not None
        and not any(map(stays_on_host, args))
    ):
        return there.evaluate(prim, args, params)
    try:
        arrays = [a if type(a) is ArrayImpl else _operand(prim, k, a) for k, a in enumerate(args)]
    except Elsewhere as there:
        return there.run(prim, args, params)
    key = (prim, tuple(params.items()), *[a.aval for a in arrays])
    try:
        known = recall(key)
    except TypeError:  # a graph's or function's params may be unhashable
        key, known = None, None
    if known is None:
        ins = [a.aval for a in arrays]
        avals = prim.aval(*ins, **params)
        if key is None:
            known = avals, plainly(prim, params)
        else:
            known = avals, evaluator(prim, ins, avals, params)
            remember(key, known)
    avals, evaluate = known
    data = [a._data for a in arrays]  # pyright: ignore[reportPrivateUsage]
    outs = evaluate(*data)
    if prim.multiple_results:
        return [wrap(o, a, prim, data) for o, a in zip(outs, avals, strict=True)]
    return wrap(outs, avals, prim, data)


def as_array(x: Any) -> Array:
    """Return arrays and tracers as they are, anything else as an array, on the default device."""
    if isinstance(x, Array):
        return x
    array = asarray(x)
    if default.find is None or not array.ndim or state.trace is not None:
        return array
    return default.put(array)


# The record of an operation stands below; that it can be applied is known from here on.
Primitive.bind = bind  # type: ignore[method-assign]


def _operand(prim: Primitive, position: int, x: Any) -> ArrayImpl:
    """Return an operand as an array; errors name the operation and the position."""
    if type(x) is Literal:
        return x.array()
    if isinstance(x, ArrayElsewhere | ArrayPlaced):
        raise x.elsewhere()
    try:
        return asarray(x)
    except UnexpectedTracerError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise type(error)(f"lax.{prim}: operand {position}: {error}") from None


def wrap(
    data: Any, aval: ShapedArray, prim: Primitive, operands: Sequence[np.ndarray] = ()
) -> ArrayImpl:
    """Make an array of an evaluator's result, in the dtype that the aval rule promised."""
    out = stored(data, aval)
    data = out._data  # pyright: ignore[reportPrivateUsage]
    if data.shape != aval.shape:
        raise AssertionError(f"{prim}: evaluation gave {data.shape}, its rule says {aval.shape}")
    if (config.debug_nans or config.debug_infs) and (what := offence(data, operands)):
        raise FloatingPointError(f"invalid value ({what}) encountered in {prim} at {user_source()}")
    return out if aval.place is None else hooks.placed_result(out)
