"""Tracing a function: the value that comes of it, and where it is kept.

Traces are kept with the function they come from: traced twice for the same signature it is traced
once, and every call of it holds the same `Graph` object (which is how the printer knows).
"""

from __future__ import annotations

import sys
import threading
import time
import types
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..config import config
from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.axes import axis_env
from ..core.callables import is_a
from ..core.frozen import frozen
from ..core.graph import ClosedGraph
from ..core.hooks import span
from ..core.keep import Kept, kept_with
from ..core.logs import DEBUG, WARNING, Log
from ..core.ref import AbstractRef, Ref, described
from ..core.source import Source, user_source
from ..core.surgery import closed_over, closed_over_nothing
from ..core.trace import Tracer
from ..purity.guards import Guards
from .admission import admit, collect, collecting
from .refs import TAKES_REFS, refs_among, trace_with_refs, values_of
from .signature import Signature, fun_source, fun_text

if TYPE_CHECKING:
    from ..purity.live import Verdict

__all__: list[str] = []

log = Log("fnarray.api")


@frozen(eq=False)
class Traced:
    """A function traced for one signature.

    Attributes
    ----------
    signature : Signature
    source : Source
        Where the function begins, and its name.
    closed : ClosedGraph
        Closed over nothing: what the function captured comes before its arguments.
    consts : tuple of Array or Ref
        The captured arrays and outer tracers, and Refs, whose values the graph takes.
    written : tuple of int
        Which of the graph's inputs are values of Refs that it gives anew: its last results.
    out_spec : optree.PyTreeSpec
        Structure of the result.
    cells : tuple
        The captured variables' values when traced.
    guards : Guards
        Of all that the function, and what it called, read from outside.
    verdict : Verdict or None
        What was found of its purity; None where that was not asked.
    steady : bool
        Whether it may be kept: while the guards hold, the function does the same.
    """

    signature: Signature
    source: Source
    closed: ClosedGraph
    consts: tuple[Any, ...]
    written: tuple[int, ...]
    out_spec: Any
    cells: tuple[Any, ...]
    guards: Guards
    verdict: Verdict | None
    steady: bool

    @property
    def name(self) -> str:
        """The function's name."""
        return self.source.function

    @property
    def graph(self) -> ClosedGraph:
        """The graph that holds what the function captured: as it was traced."""
        return closed_over(self.closed, tuple(values_of(self.consts)))

    def told(self, closed: ClosedGraph, fun: Callable[..., Any]) -> ClosedGraph:
        """Return a graph of the function that says how the function names what it takes and gives.

        Taken are what was captured, if it is among the inputs, and the leaves of the arguments.
        """
        names = self.signature.paths(fun)
        captured = [""] * (len(closed.jaxpr.invars) - len(names))
        found = tree.leaves_with_path(self.out_spec.unflatten(range(self.out_spec.num_leaves)))
        results = tuple("result" + tree.keystr(path) for path, _ in found)
        told = self.source, (*captured, *names), results
        return ClosedGraph(replace(closed.jaxpr, told=told), closed.consts)

    @property
    def written_refs(self) -> tuple[int, ...] | None:
        """Which of its inputs are Refs that it writes; None where it takes no Refs at all."""
        kinds = *map(type, self.consts), *map(type, self.signature.in_avals)
        return self.written if Ref in kinds or AbstractRef in kinds else None

    @property
    def given(self) -> tuple[tuple[int, int], ...]:
        """Pairs of an input and the result that may lie where it does: of each Ref written."""
        return tuple((k, self.out_spec.num_leaves + j) for j, k in enumerate(self.written))

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """Avals of the results' leaves."""
        return self.closed.out_avals[: self.out_spec.num_leaves]

    @property
    def out_tree(self) -> tree.PyTreeDef:
        """Structure of the result."""
        return tree.PyTreeDef(self.out_spec)

    def fits(self, cells: tuple[Any, ...]) -> bool:
        """Whether the graph still says what the function does."""
        return (
            self.guards.holds()
            and all(a is b for a, b in zip(self.cells, cells, strict=True))
            and all(c.frame.alive for c in self.consts if isinstance(c, Tracer))
            and all(c.home is None or c.home.alive for c in self.consts if type(c) is Ref)
        )


def cells_of(fun: Callable[..., Any]) -> tuple[Any, ...]:
    """Return captured arrays and numbers; a closure whose variable is rebound is traced again."""
    out = []
    plain = fun.__func__ if is_a(fun, types.MethodType) else fun
    for cell in (plain.__closure__ or ()) if is_a(plain, types.FunctionType) else ():
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        # Other objects are left out: a cache that held a function would keep it alive.
        out.append(value if is_a(value, (Array, Ref, int, float, complex)) else None)
    return tuple(out)


class _Anew(threading.local):
    on = False


_anew = _Anew()


@contextmanager
def traced_anew() -> Iterator[None]:
    """Use no trace that is kept, and keep none: what is traced is what the functions do now."""
    before, _anew.on = _anew.on, True
    try:
        yield
    finally:
        _anew.on = before


def is_traced_anew() -> bool:
    """Say whether no trace that is kept is used."""
    return _anew.on


#: So many functions traced in each other have room under Python's limit as it is.
_FREE: Final = 16
#: Frames that each one beyond may take, of ours, in whatever is done with it: a transform of a
#: transform takes 32. They are Python's own, which take next to nothing of the stack of C.
_FRAMES: Final = 40
#: A function that calls itself without end is to end in `RecursionError`.
_MOST: Final = 500


class _Within(threading.local):
    depth = 0


_within: Final = _Within()
_granting: Final = threading.Lock()
_given = _FREE


@contextmanager
def _nested() -> Generator[None, None, None]:
    """Count one function more that is traced within others, while the block runs.

    The limit stays raised: what has been traced is transformed, printed and compiled later.
    """
    global _given
    _within.depth += 1
    try:
        if _given < _within.depth <= _MOST:
            with _granting:
                more = _within.depth - _given
                if more > 0:
                    sys.setrecursionlimit(sys.getrecursionlimit() + more * _FRAMES)
                    _given = _within.depth
        yield
    finally:
        _within.depth -= 1


def traced(
    fun: Callable[..., Any],
    signature: Signature,
    *,
    user: str = "jit",
    kept: Kept | None = None,
    call: Callable[..., Any] | None = None,
) -> Traced:
    """Trace a function, or return what an equal trace gave before.

    Parameters
    ----------
    fun : callable
        With which the trace is kept, and whose name messages show.
    signature : Signature
    user : str
        What traces it, for messages; graphs of different users are kept apart.
    kept : Kept, optional
        In place of what is kept with the function.
    call : callable, optional
        What is traced in place of ``fun``: a wrapper that ``user`` puts around it.

    Raises
    ------
    EffectError
        ``fun`` is not pure.
    TypeError
        A leaf of the result is no array.
    """
    kept = kept_with(fun) if kept is None else kept
    traces: dict[Hashable, Traced] = kept.table("traces")
    key = user, signature, config.trace_token, axis_env()
    found = traces.get(key)
    if found is not None and not _anew.on and found.fits(cells_of(fun)):
        collect(found.guards)
        return found
    result = trace(fun, signature, user=user, known=len(traces), call=call)
    if result.steady and not _anew.on:
        traces[key] = result
    return result


def _held_now(obj: Any) -> Any:
    """Return the contents of an object: few traces change some that they read."""
    from ..purity.contents import contents_of

    return contents_of(obj)


def trace(
    fun: Callable[..., Any],
    signature: Signature,
    *,
    user: str = "jit",
    known: int = 0,
    call: Callable[..., Any] | None = None,
) -> Traced:
    """Check and trace a function, whatever was traced before.

    The arguments are those of `traced`; ``known`` is the number of its traces, for the log.
    """
    if config.no_tracing and user == "jit":
        raise RuntimeError(
            f"jit: {fun_text(fun)} would be traced, at {user_source()}, where no_tracing is set. "
            "Call it with arguments of these types before."
        )
    cells, guards = cells_of(fun), Guards()
    transform = user.partition(" ")[0]
    statics = (*signature.statics, *(() if call else refs_among(signature)))
    with _nested(), collecting(guards), admit(fun, transform, statics=statics) as admission:
        guards.update(admission.guards)
        graph, out_spec, written = _run(fun, signature, user, known, call)
    guards.settle(_held_now)
    if config.effects == "warn":
        # What it rebinds itself would never hold.
        guards.drop(guards.changed())
    closed, source = closed_over_nothing(graph), fun_source(fun)
    return Traced(
        signature, source, closed, graph.consts, written, out_spec, cells, guards,
        admission.verdict, admission.steady,
    )  # fmt: skip


def _leaks_refused(fun: Callable[..., Any]) -> AbstractContextManager[None]:
    if not config.check_tracer_leaks:
        return nullcontext()
    from .leaks import refused  # asked for by a setting

    return refused(fun_text(fun))


def _run(
    fun: Callable[..., Any],
    signature: Signature,
    user: str,
    known: int,
    call: Callable[..., Any] | None,
) -> tuple[ClosedGraph, Any, tuple[int, ...]]:
    """Return the graph of a function, the structure of its result, and which Refs it writes."""
    start = time.perf_counter()
    in_avals = signature.in_avals
    origins = [f"the argument {p} of {fun_text(fun)}" for p in signature.paths(call or fun)]
    out_specs: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = signature.arguments(leaves)
        out = (call or fun)(*args, **kwargs)
        outs, spec = tree.flatten_spec(out)
        out_specs.append(spec)
        _check_results(out, outs, fun, user)
        return outs

    name = fun_source(fun).function
    takes = user.partition(" ")[0] in TAKES_REFS
    with span("trace", name), _leaks_refused(fun):
        graph, written = trace_with_refs(flat, in_avals, name, origins, takes)
    if config.check_determinism:
        from .again import compare  # asked for by a setting

        again, _ = trace_with_refs(flat, in_avals, name, origins, takes)
        compare(graph, again, fun_text(fun))
    _log_trace(name, time.perf_counter() - start, in_avals, known)
    return graph, out_specs[0], written


def _log_trace(name: str, seconds: float, in_avals: Sequence[ShapedArray], known: int) -> None:
    level = WARNING if config.log_compiles else DEBUG
    log.log(level, "Finished tracing + transforming %s in %.6f sec", name, seconds)
    if config.explain_cache_misses:
        avals = ", ".join(a.str_short() for a in in_avals)
        why = f"{known} other signatures are known" if known else "it was never traced before"
        log.warning("TRACING CACHE MISS at %s: %s(%s): %s", user_source(), name, avals, why)


def _check_results(out: Any, leaves: Sequence[Any], fun: Callable[..., Any], user: str) -> None:
    """Raise `TypeError` naming the first leaf of a result that is no array."""
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Array):
            continue
        if type(leaf) is Ref:
            path = tree.keystr(tree.leaves_with_path(out)[i][0])
            at = f" at output tree path result{path}" if path else ""
            raise ValueError(
                f"function {fun_text(fun)} traced for {user} returned a mutable array reference of "
                f"type {leaf.aval}{at}, but mutable array references cannot be returned.\nThe "
                f"returned mutable array was {described(leaf)}. Return its value: ref[...]."
            )
        try:
            aval_of(leaf)
        except TypeError as error:
            path = tree.keystr(tree.leaves_with_path(out)[i][0])
            at = f"at result{path}" if path else "as its result"
            raise TypeError(
                f"{user}: {fun_text(fun)} returned {leaf!r} of type {type(leaf)} {at}, which is "
                "not a valid fnarray type. Return arrays, numbers, and containers of them."
            ) from error
