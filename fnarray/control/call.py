"""Calls: tracing a function into a graph closed over nothing, and the primitive that holds one.

Graphs are cached with the function they come from, so a function traced twice on the same avals is
traced once, and every call of it holds the same `Graph` object (which is how the printer knows).
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..config import config
from ..core import hooks, tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.axes import axis_env
from ..core.dtypes import canonicalize_dtype
from ..core.graph import ClosedGraph
from ..core.keep import forget_all, kept_with
from ..core.source import user_source
from ..core.surgery import closed_over_nothing
from ..core.trace import Tracer, bind, trace_graph
from ..purity.guards import Guards
from ._bodies import Holding, holding
from .admission import Admission as Admission
from .admission import admit as admit
from .admission import collect, collecting
from .again import compare

__all__ = []

log = logging.getLogger("fnarray.api")


# ---- functions -----------------------------------------------------------------------------------


def fun_name(fun: Callable[..., Any]) -> str:
    """Return a function's name; that of what it wraps for a partial."""
    while isinstance(fun, partial) and not hasattr(fun, "__name__"):
        fun = fun.func
    return getattr(fun, "__name__", "<unnamed function>")


def fun_text(fun: Callable[..., Any]) -> str:
    """Return a function's name with file and line, for messages."""
    inner = inspect.unwrap(fun)
    while isinstance(inner, partial):
        inner = inspect.unwrap(inner.func)
    code = getattr(inner, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return fun_name(fun) + where


def parameters_of(fun: Callable[..., Any]) -> dict[str, inspect.Parameter] | None:
    """Return a function's parameters by name, or None where it does not tell them."""
    try:
        return dict(inspect.signature(fun).parameters)
    except (ValueError, TypeError):
        return None


def argument_paths(fun: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """Return what each leaf is called in the function: ``x``, ``params['w'][0]``, ``args[2]``."""
    names = []
    for name, p in (parameters_of(fun) or {}).items():
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{name}[{i}]" for i in range(max(0, len(args) - len(names)))]
        elif p.kind is not p.KEYWORD_ONLY:
            names.append(name)
    names += [f"args[{i}]" for i in range(len(names), len(args))]
    return [
        name + tree.keystr(path)
        for name, value in [*zip(names, args, strict=False), *sorted(kwargs.items())]
        for path, _ in tree.leaves_with_path(value)
    ]


def abstract(x: Any) -> ShapedArray:
    """Return the aval of an array, a number, or anything else with a shape and a dtype."""
    kind = type(x)
    if kind is float or kind is bool or (kind is int and -_SMALL < x < _SMALL):
        return _number(kind, config.enable_x64)
    if isinstance(x, Array | np.ndarray | np.generic) or not hasattr(x, "dtype"):
        return aval_of(x)
    weak = bool(getattr(x, "weak_type", False))
    return ShapedArray(x.shape, canonicalize_dtype(np.dtype(x.dtype)), weak)


_SMALL = 2**31


@lru_cache
def _number(kind: type, wide: bool) -> ShapedArray:
    """Return the aval of Python numbers of a type, small ones for int, under ``enable_x64``."""
    return aval_of(kind())


# ---- traced functions ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """What tracing a function gives.

    Attributes
    ----------
    closed : ClosedGraph
        Closed over nothing: what the function captured comes before its arguments.
    consts : tuple of Array
        The captured arrays and outer tracers.
    out_spec : optree.PyTreeSpec
        Structure of the result.
    cells : tuple
        The captured variables' values when traced.
    guards : Guards
        Of all that the function, and what it called, read from outside.
    """

    closed: ClosedGraph
    consts: tuple[Array, ...]
    out_spec: Any
    cells: tuple[Any, ...]
    guards: Guards = field(default_factory=Guards)

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """Avals of the results' leaves."""
        return self.closed.out_avals

    @property
    def out_tree(self) -> tree.PyTreeDef:
        """Structure of the result."""
        return tree.PyTreeDef(self.out_spec)

    def fits(self, cells: tuple[Any, ...]) -> bool:
        """Whether the graph still says what the function does."""
        return (
            self.guards.holds()
            and all(a is b for a, b in zip(self.cells, cells, strict=True))
            and all(c.trace.alive for c in self.consts if isinstance(c, Tracer))
        )


Key = tuple[Hashable, ...]
Statics = Sequence[tuple[int | str, type, Any]]


def cache_of(fun: Callable[..., Any]) -> dict[Key, Any]:
    """Return the cache that lives as long as the function; a fresh one if it cannot be a key."""
    return kept_with(fun)


def clear_graphs() -> None:
    """Forget every traced function."""
    forget_all()


def cells_of(fun: Callable[..., Any]) -> tuple[Any, ...]:
    """Return captured arrays and numbers; a closure whose variable is rebound is traced again."""
    out = []
    for cell in getattr(fun, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        # Other objects are left out: a cache that held a function would keep it alive.
        out.append(value if isinstance(value, Array | int | float | complex) else None)
    return tuple(out)


def merged(args: tuple, kwargs: dict[str, Any], statics: Statics) -> tuple[list, dict[str, Any]]:
    """Return arguments with the static ones put back where they were."""
    args, kwargs = list(args), dict(kwargs)
    for where, _, value in statics:
        if isinstance(where, int):
            args.insert(where, value)
        else:
            kwargs[where] = value
    return args, kwargs


def traced(
    fun: Callable[..., Any],
    in_spec: Any,
    in_avals: tuple[ShapedArray, ...],
    *,
    statics: Statics = (),
    cache: dict[Key, Any] | None = None,
    user: str = "jit",
    call: Callable[..., Any] | None = None,
) -> Traced:
    """Trace a function, or return what an equal trace gave before.

    Parameters
    ----------
    fun : callable
        Whose cache is used, and whose name messages show.
    in_spec : optree.PyTreeSpec
        Structure of ``(args, kwargs)``.
    in_avals : tuple of ShapedArray
        Avals of the leaves.
    statics : tuple of (position or name, type, value)
        Arguments that are not traced, positions first and ascending.
    cache : dict, optional
        In place of the function's own.
    user : str
        What traces it, for messages; graphs of different users are kept apart.
    call : callable, optional
        What is traced in place of ``fun``: a wrapper that ``user`` puts around it.

    Raises
    ------
    EffectError
        ``fun`` is not pure.
    TypeError
        A leaf of the result is no array.
    """
    cache = cache_of(fun) if cache is None else cache
    key = (user, in_spec, in_avals, statics, config.trace_token, axis_env())
    found = cache.get(key)
    cells = cells_of(fun)
    if found is not None and found.fits(cells):
        collect(found.guards)
        return found
    known = sum(isinstance(entry, Traced) for entry in cache.values())
    guards = Guards()
    graph, out_spec = trace_once(fun, in_spec, in_avals, statics, user, known, call, guards)
    closed = closed_over_nothing(graph)
    cache[key] = result = Traced(closed, graph.consts, out_spec, cells, guards)
    return result


def trace_once(
    fun: Callable[..., Any],
    in_spec: Any,
    in_avals: tuple[ShapedArray, ...],
    statics: Statics = (),
    user: str = "jit",
    known: int = 0,
    call: Callable[..., Any] | None = None,
    guards: Guards | None = None,
) -> tuple[ClosedGraph, Any]:
    """Check and trace a function; return its graph and its result's structure.

    The arguments are those of `traced`; ``guards`` takes up what was read from outside.
    """
    guards = Guards() if guards is None else guards
    transform = user.partition(" ")[0]
    with collecting(guards), admit(fun, transform, statics=tuple(statics)) as admission:
        guards.update(admission.guards)
        result = _run(fun, in_spec, in_avals, statics, user, known, call)
    if config.effects == "warn":
        # What it rebinds itself would never hold.
        guards.drop(guards.changed())
    return result


def _run(
    fun: Callable[..., Any],
    in_spec: Any,
    in_avals: tuple[ShapedArray, ...],
    statics: Statics,
    user: str,
    known: int,
    call: Callable[..., Any] | None,
) -> tuple[ClosedGraph, Any]:
    start = time.perf_counter()
    name = fun_name(fun)
    args, kwargs = in_spec.unflatten(list(in_avals))
    shown = merged(args, kwargs, [(where, kind, None) for where, kind, _ in statics])
    origins = [f"the argument {p} of {fun_text(fun)}" for p in argument_paths(call or fun, *shown)]
    if len(origins) != len(in_avals):  # a class that opens in another order with keys
        origins = [f"an argument of {fun_text(fun)}"] * len(in_avals)
    out_specs: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = merged(*in_spec.unflatten(leaves), statics)
        out = (call or fun)(*args, **kwargs)
        outs, spec = tree.flatten_spec(out)
        out_specs.append(spec)
        _check_results(out, outs, fun, user)
        return outs

    graph = trace_graph(flat, in_avals, name, origins)
    if config.check_determinism:
        compare(graph, trace_graph(flat, in_avals, name, origins), fun_text(fun))
    _log_trace(name, time.perf_counter() - start, in_avals, known)
    return graph, out_specs[0]


def _log_trace(name: str, seconds: float, in_avals: Sequence[ShapedArray], known: int) -> None:
    level = logging.WARNING if config.log_compiles else logging.DEBUG
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
        try:
            aval_of(leaf)
        except TypeError as error:
            path = tree.keystr(tree.leaves_with_path(out)[i][0])
            at = f"at result{path}" if path else "as its result"
            raise TypeError(
                f"{user}: {fun_text(fun)} returned {leaf!r} of type {type(leaf)} {at}, which is "
                "not a valid fnarray type. Return arrays, numbers, and containers of them."
            ) from error


# ---- the primitive -------------------------------------------------------------------------------


def call_eagerly(graph: ClosedGraph, args: Sequence[Any]) -> tuple[Any, ...]:
    """Evaluate a graph on NumPy arrays as machine code."""
    return tuple(hooks.compiled_call(graph, args))


jit_p = holding("jit", Holding(), eval=lambda *xs, jaxpr, name: call_eagerly(jaxpr, xs))


def call(t: Traced, leaves: Sequence[Any], name: str) -> Any:
    """Record a call of a traced function, or evaluate it; return its result."""
    outs = bind(jit_p, *t.consts, *leaves, name=name, jaxpr=t.closed)
    return t.out_spec.unflatten(outs)
