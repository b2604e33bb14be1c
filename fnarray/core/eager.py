"""Eager calls of functions of several operations: recorded once, then replayed on NumPy buffers.

An operation called alone costs 2 us or more beside its work: promotion, binding, looking up its
rule, making an array; a function of fifteen such would take 60 us on a few numbers. What it does
follows from the signature of a call: avals of its arrays, values of its settings, configuration.
The first call with a signature runs the function itself, whose errors are its own; the second
records it, so that what is called once costs no more; later ones replay the record at the cost of
its NumPy calls alone.
"""

# pyright: standard
# Operands are arrays, numbers or settings until their signature is known: nothing is typed before.
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib import import_module
from itertools import repeat
from types import EllipsisType
from typing import Any, TypeVar, cast, overload

import numpy as np

from ..config import common, config, threads_own
from ..errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    ShapeError,
    TracerArrayConversionError,
    TracerIntegerConversionError,
)
from .apart import apart, is_among, leaves_of, with_leaves
from .array import Array, ArrayElsewhere, ArrayImpl, asarray, stored
from .avals import ShapedArray
from .dtypes import canonicalize_dtype, is_integer
from .graph import ClosedGraph
from .hooks import prepared
from .large import compiles, heavy, is_exact, is_large, runs_as_program
from .memo import recall, remember
from .quiet import free_contexts, quiet_context, quietly
from .record import Record
from .source import tidy
from .surgery import straight
from .trace import state, trace_graph

F = TypeVar("F", bound=Callable[..., Any])
#: What a signature is replayed by: of buffers and Python numbers, it returns the function's
#: result, or None for a number that does not fit.
Replay = Callable[..., Any]
#: What makes the sequence of a function's results; None where it has one.
Kind = Callable[[Any], Any] | None
#: Of a function of arrays alone: avals at which Python numbers among its operands enter.
Numbers = Callable[..., Sequence[ShapedArray]]

#: A signature that was met once. False, as no replay is: one test tells what is to be replayed.
_SEEN = False
_DOUBLE = ("float64", "complex128")
#: Errors of a function whose operations follow from values.
_BY_VALUE = (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerIntegerConversionError,
)


# ---- replaying -----------------------------------------------------------------------------------


def _replay_of(
    graph: ClosedGraph, kind: Callable[[Any], Any] | None, exact: bool = False
) -> Replay | None:
    """Return what replays a graph; None for one that has to be called each time.

    ``kind`` is that of the sequence of its results; None of a single one. An ``exact`` graph
    computes the same bits compiled, unless there are doubles in it. One on many elements is
    compiled as well: see `core.large`. So is one of several operations that is called often, where
    that changes no bit.
    """
    graph = straight(graph)
    jaxpr = graph.jaxpr
    inside = [v.aval for e in jaxpr.eqns for v in e.outvars]
    compiled = exact and kind is None and not (graph.consts or config.disable_jit)
    compiled = compiled and not any(a.dtype.name in _DOUBLE for a in inside)
    if compiled or (is_large([*jaxpr.in_avals, *inside]) and runs_as_program(graph)):
        return _program(graph, kind)
    if len(jaxpr.eqns) == 1 and heavy(jaxpr.eqns[0]):
        return _program(graph, kind)
    # Primitives that are not quiet run graphs, or the user's Python in the caller's context.
    if not all(e.primitive.quiet and not e.primitive.effects for e in jaxpr.eqns):
        return None
    by_numpy = _by_numpy(quietly(Record, graph, heavy), graph.jaxpr.out_avals, kind)
    if not compiles():
        return by_numpy
    calls = import_module(".stretches", __package__).patience(graph)
    return by_numpy if calls is None else _in_programs(graph, kind, by_numpy, calls)


def _in_programs(graph: ClosedGraph, kind: Kind, by_numpy: Replay, calls: int) -> Replay:
    """Return what replays a graph by NumPy so many times, then with programs in it."""
    left = calls
    made: Replay | None = None

    def run(*data: Any) -> Any:
        nonlocal left, made
        if made is not None:
            return made(*data)
        left -= 1
        if left > 0:
            return by_numpy(*data)
        stretches = import_module(".stretches", __package__)  # which a first call does not need
        cut = stretches.in_programs(graph)
        if cut is None:
            made = by_numpy
        elif whole := stretches.program_of(cut):
            made = _program(whole, kind)
        else:
            made = _by_numpy(quietly(Record, cut, heavy), graph.jaxpr.out_avals, kind)
        return made(*data)

    return run


def _by_numpy(record: Record, avals: Sequence[ShapedArray], kind: Kind) -> Replay:
    if kind is not None:
        run = record.run
        return lambda *data: kind(map(stored, quietly(run, *data), avals))
    return _single(record.single(), avals[0], record.is_sound())


def _single(evaluate: Callable[..., Any], aval: ShapedArray, sound: bool) -> Replay:
    """Return a replay by what computes one buffer: if it is ``sound``, as it is to be.

    It does what `quietly` and `stored` do, which cost half of what ``np.sin`` takes on 16 numbers.
    """
    take, give, new, dtype = free_contexts.pop, free_contexts.append, object.__new__, aval.dtype
    ndarray = np.ndarray

    def run(*data: Any) -> ArrayImpl:
        try:
            context = take()
        except IndexError:
            context = quiet_context()
        try:
            out = context.run(evaluate, *data)
        finally:
            give(context)
        if not sound and (
            type(out) is not ndarray or out.dtype is not dtype or not out.flags.c_contiguous
        ):
            return stored(out, aval)
        array = new(ArrayImpl)
        array._data, array.aval = out, aval
        return array

    return run


def _program(graph: ClosedGraph, kind: Kind) -> Replay:
    """Return what replays a graph as a program."""
    consts, avals = [np.asarray(x) for x in graph.consts], graph.jaxpr.out_avals
    call: Callable[..., Any] | None = None

    def run(*data: Any) -> Any:
        nonlocal call
        call = call or prepared(graph)
        outs = map(ArrayImpl, call(*consts, *map(np.asarray, data)), avals)
        return next(outs) if kind is None else kind(outs)

    return run


def _replay_by(evaluate: Callable[..., Any], aval: ShapedArray) -> Replay:
    """Return a replay by what may return None for values of which it knows nothing."""

    def replay(*data: Any) -> ArrayImpl | None:
        out = evaluate(*data)
        return None if out is None else stored(out, aval)

    return replay


# ---- recording -----------------------------------------------------------------------------------


def _kind_of(out: Any) -> Kind:
    """Return what makes a sequence of results as this one is; None for a single result."""
    if type(out) in (tuple, list):
        return type(out)
    return getattr(type(out), "_make", None) if isinstance(out, tuple) else None


def _record(
    name: str, call: Callable[..., Any], avals: Sequence[ShapedArray], out: Any, exact: bool = False
) -> Replay | None:
    """Return what replays a call on operands of some avals, whose result is known."""
    kind = _kind_of(out)
    outs = [out] if kind is None else out
    if not all(type(x) is ArrayImpl for x in outs):
        return None
    flat = call if kind else lambda *tracers: [call(*tracers)]
    try:
        # What warns while it is traced, as of a number too large for a dtype, warns at each call.
        with np.errstate(all="raise"):
            graph = trace_graph(flat, avals, name.lstrip("_"))
    # The call itself went well: a shape that does not fit was an operand, whose value is asked for.
    except (*_BY_VALUE, FloatingPointError, ShapeError):
        return None
    known = tuple(x.aval for x in outs)
    if graph.jaxpr.out_avals != known:
        raise AssertionError(f"{name}: recorded {graph.jaxpr.out_avals}, called {known}")
    return _replay_of(graph, kind, exact)


def _at_once(
    name: str, call: Callable[..., Any], avals: Sequence[ShapedArray], program: bool = False
) -> Replay | None:
    """Return what runs a first call on many elements, or of a program; None where it is called.

    That is where bits depend on who computes: all calls give the same.
    """
    if not (is_large(avals) or program) or not (_is_replayed() and compiles()):
        return None
    made: list[Any] = []

    def flat(*tracers: Any) -> Any:
        out = call(*tracers)
        made.append(_kind_of(out))
        return [out] if made[0] is None else out

    try:
        with np.errstate(all="raise"):
            graph = trace_graph(flat, avals, name.lstrip("_"))
    except Exception:  # the call, which follows, raises its own, or returns what is no array
        return None
    if program or (runs_as_program(graph) and not is_exact(graph)):
        return _program(graph, made[0])
    return None


def _never(*data: Any) -> None:
    """Replay nothing: the function has to be called."""


def _itself(*data: Any) -> None:
    """Replay nothing: the function returns its first argument."""


def _is_replayed() -> bool:
    """Whether calls are replayed now: a replay neither looks at each result nor warns."""
    looked_at = config.debug_nans or config.debug_infs
    return not looked_at and config.numpy_rank_promotion != "warn"


def _learn(
    f: Callable[..., Any],
    key: Any,
    known: Any,
    args: Sequence[Any],
    settings: dict[str, Any],
    record: Callable[[Any], Replay | None],
) -> Any:
    """Call a function, and note that, or record what it did."""
    out = f(*args, **settings)
    if known is None:
        if _is_replayed():
            remember(key, _SEEN)
    else:
        remember(key, record(out) or _never)
    return out


# ---- functions of arrays and settings ------------------------------------------------------------


def _signed(x: Any, data: list[np.ndarray]) -> Any:
    """Return what a signature says of an argument, and add its buffers to ``data``.

    Raises
    ------
    TypeError
        For what is no array and no plain value: it may change, or act by its identity.
    """
    kind = type(x)
    if kind is ArrayImpl:
        data.append(x._data)
        return x.aval
    if kind is int or x is None:
        return x
    if kind is bool or kind is str:  # 1 and True are equal, and different settings
        return kind, x
    if kind is tuple or kind is list:
        return kind, *[_signed(part, data) for part in x]
    if kind is float or kind is complex:
        return kind, repr(x)  # signs of zeros, NaNs
    if kind is slice:
        return kind, *[_signed(part, data) for part in (x.start, x.stop, x.step)]
    if kind is EllipsisType or isinstance(x, np.dtype | type):
        return kind, x
    raise TypeError("not part of a signature")


def _as_ours(x: Any) -> Any:
    """Return an array of NumPy's, which may change, as one that does not; all else as it is."""
    return asarray(x) if type(x) is np.ndarray else x


def _all_ours(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(_as_ours, args)) if np.ndarray in [type(x) for x in args] else args


def _signed_all(
    args: tuple[Any, ...], settings: dict[str, Any], data: list[np.ndarray]
) -> list[Any]:
    signed = []
    for x in args:
        if type(x) is ArrayImpl:  # a call less
            signed.append(x.aval)
            data.append(x._data)
        else:
            signed.append(x if type(x) is int else _signed(x, data))
    for name, x in settings.items():
        signed += name, x if type(x) is int else _signed(x, data)
    return signed


def _as_program(f: Callable[..., Any], args: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Call a function of what may be arrays of another device: as one program, where that does.

    One by one its operations would make arrays as large as their operands.
    """
    leaves = list(leaves_of([args, settings]))
    there = (x.elsewhere().program for x in leaves if isinstance(x, ArrayElsewhere))
    run = next(filter(None, there), None)
    if run is None:
        return f(*args, **settings)
    avals = [x.aval for x in leaves]
    try:
        given, named = with_leaves([args, settings], repeat(ArrayElsewhere))
        key = (f, config.trace_token, *avals, *_signed_all(given, named, []))
    except TypeError:
        return f(*args, **settings)
    known = recall(key)
    if known is None:
        made: list[type | None] = []

        def call(*tracers: Any) -> Any:
            given, named = with_leaves([args, settings], iter(tracers))
            out = f(*given, **named)
            made.append(type(out) if type(out) in (tuple, list) else None)
            outs = [out] if made[0] is None else out
            if not all(isinstance(x, Array) for x in outs):
                raise TypeError("not a function of arrays to arrays")
            return outs

        try:
            graph = trace_graph(call, avals, f.__name__.lstrip("_"))
        except (*_BY_VALUE, TypeError):  # what it does, or returns, follows from values
            known = (None, None)
        else:
            known = (graph, made[0])
        remember(key, known)
    graph, kind = known
    if graph is None:
        return f(*args, **settings)
    outs = run(graph, leaves)
    return outs[0] if kind is None else kind(outs)


def _called(f: Callable[..., Any], args: Any, settings: Any, *tracers: Any) -> Any:
    """Call a function with what stands for each of its arrays."""
    leaves = iter(tracers)
    return f(*with_leaves(args, leaves), **with_leaves(settings, leaves))


@overload
def replayed(f: F) -> F: ...


@overload
def replayed(
    *,
    instead: Callable[..., Callable[..., Any] | None] | None = None,
    same: bool = False,
    exact: bool = False,
    program: bool = False,
) -> Callable[[F], F]: ...


def replayed(
    f: Callable[..., Any] | None = None,
    *,
    instead: Callable[..., Callable[..., Any] | None] | None = None,
    same: bool = False,
    exact: bool = False,
    program: bool = False,
) -> Callable[..., Any]:
    """Declare a function of arrays and settings, both anywhere among its arguments.

    Python numbers are settings: their values are part of the signature.

    Parameters
    ----------
    f : callable, optional
    instead : callable, optional
        Given the arguments, of which it may use the avals and settings alone, returns what computes
        the one result of their buffers to the bit, for less than the record; None where nothing
        does. It runs with NumPy's warnings on, and may return None for values it knows nothing of.
    same : bool
        Whether it returns its operand itself where it has nothing to do; else another array.
    exact : bool
        Whether, in single precision, it computes the same bits when it is compiled, so that its
        record may be.
    program : bool
        Whether it runs compiled from its first call on: one with loops, or of a hundred operations,
        which NumPy takes hundreds of times as long to call one by one as to compute.
    """
    if f is None:
        declare = cast("Any", replayed)
        return partial(declare, instead=instead, same=same, exact=exact, program=program)
    own = (lambda out, *_: out) if same else apart

    @wraps(f)
    def face(*args: Any, **settings: Any) -> Any:
        try:
            if threads_own and state.trace is not None:
                return f(*args, **settings)
            token = config.trace_token if threads_own else common.token
            if len(args) == 1 and not settings and type(args[0]) is ArrayImpl:
                # Most calls; a loop over arguments would add a tenth to ``sum(x)``.
                key, data = (face, token, args[0].aval), [args[0]._data]
            else:
                data = []
                try:
                    args = _all_ours(args)
                    signed = _signed_all(args, settings, data)
                except TypeError:
                    return own(_as_program(f, args, settings), args, settings)
                key = (face, token, *signed)
            replay = recall(key)
            if replay:
                out = replay(*data)
                if out is not None:
                    return out
                return args[0] if replay is _itself else own(f(*args, **settings), args, settings)

            call = partial(_called, f, args, settings)
            avals = [x.aval for x in leaves_of([args, settings])]
            evaluate = instead(*args, **settings) if instead else None
            new = replay is None and evaluate is None and not same
            at_once = _at_once(f.__name__, call, avals, program) if new else None
            if at_once:
                remember(key, at_once)
                return at_once(*data)

            def record(out: Any) -> Replay | None:
                if same and is_among(out, (args, settings)):
                    return _itself if args and out is args[0] else None
                if evaluate:
                    return _replay_by(evaluate, out.aval)
                return _record(f.__name__, call, avals, out, exact)

            return own(_learn(f, key, replay, args, settings, record), args, settings)
        except Exception as error:
            tidy(error)
            raise

    return face


# ---- functions of arrays alone -------------------------------------------------------------------


def _with_numbers(replay: Replay, numbers: dict[int, tuple[np.dtype, type]]) -> Replay:
    """Return a replay of operands of which some are Python numbers, of given dtypes and kinds."""
    fitting = {}
    for at, (dtype, kind) in numbers.items():
        low, high = -np.inf, np.inf
        if kind is int:  # what does not wrap, and is no different when it is rounded at once
            limits = np.iinfo(dtype if is_integer(dtype) else canonicalize_dtype(int))
            low, high = int(limits.min), int(limits.max)
        fitting[at] = dtype.type, low, high

    if set(fitting) < {0, 1}:
        ((at, (number, low, high)),) = fitting.items()
        if at:
            return lambda x, y: replay(x, number(y)) if low <= y <= high else None
        return lambda x, y: replay(number(x), y) if low <= x <= high else None

    def fitted(*data: Any) -> Any:
        values = list(data)
        for at, (number, low, high) in fitting.items():
            if not low <= values[at] <= high:
                return None
            values[at] = number(values[at])
        return replay(*values)

    return fitted


def _learner(f: Callable[..., Any], numbers: Numbers, exact: bool) -> Callable[..., Any]:
    """Return what calls an elementwise function whose signature is new, and records it."""

    def learn(key: Any, known: Any, *args: Any) -> Any:
        kinds = [None if type(x) is ArrayImpl else type(x) for x in args]
        if not {None} <= {*kinds} <= {None, int, float}:
            return f(*args)

        def entered() -> list[ShapedArray]:
            found = zip(args, kinds, numbers(*args), strict=True)
            return [x.aval if kind is None else aval for x, kind, aval in found]

        def fitted(replay: Replay | None, avals: Sequence[ShapedArray]) -> Replay | None:
            found = {i: (avals[i].dtype, k) for i, k in enumerate(kinds) if k is not None}
            return _with_numbers(replay, found) if replay and found else replay

        def record(out: Any) -> Replay | None:
            avals = entered()
            return fitted(_record(f.__name__, f, avals, out, exact), avals)

        if known is None and is_large(x.aval for x, k in zip(args, kinds, strict=True) if not k):
            avals = entered()
            at_once = fitted(_at_once(f.__name__, f, avals), avals)
            if at_once:
                remember(key, at_once)
                out = at_once(
                    *(x._data if k is None else x for x, k in zip(args, kinds, strict=True))
                )
                return f(*args) if out is None else out
        return _learn(f, key, known, args, {}, record)

    return learn


def elementwise(numbers: Numbers, *, exact: bool = False) -> Callable[[F], F]:
    """Declare a function of one or two arrays, for which Python numbers may stand.

    Parameters
    ----------
    numbers : callable
        Given the operands, the avals at which Python numbers among them enter. Their values are no
        part of the signature.
    exact : bool
        As of `replayed`.
    """

    def declare(f: F) -> F:
        learn = _learner(f, numbers, exact)

        # Two of a kind, as a loop over operands would cost a fourth of ``x + y``.
        @wraps(f)
        def unary(x: Any, /) -> Any:
            try:
                if type(x) is not ArrayImpl or (threads_own and state.trace is not None):
                    return f(x)
                key = (unary, x.aval, config.trace_token if threads_own else common.token)
                replay = recall(key)
                if replay:
                    out = replay(x._data)
                    return f(x) if out is None else out
                return learn(key, replay, x)
            except Exception as error:
                tidy(error)
                raise

        @wraps(f)
        def binary(x: Any, y: Any, /) -> Any:
            try:
                if threads_own and state.trace is not None:
                    return f(x, y)
                if type(x) is ArrayImpl:
                    left, a = x.aval, x._data
                else:
                    left, a = type(x), x
                if type(y) is ArrayImpl:
                    right, b = y.aval, y._data
                else:
                    right, b = type(y), y
                if left is np.ndarray or right is np.ndarray:
                    return binary(_as_ours(x), _as_ours(y))
                key = (binary, left, right, config.trace_token if threads_own else common.token)
                replay = recall(key)
                if replay:
                    out = replay(a, b)
                    return f(x, y) if out is None else out
                return learn(key, replay, x, y)
            except Exception as error:
                tidy(error)
                raise

        return cast("F", unary if len(inspect.signature(f).parameters) == 1 else binary)

    return declare
