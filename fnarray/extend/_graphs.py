"""Graphs under JAX's names for what one does with them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..control.signature import fun_text
from ..core.avals import ShapedArray
from ..core.frozen import frozen
from ..core.graph import ClosedGraph, Eqn, Graph, Var, eval_graph, subgraphs
from ..core.source import UNKNOWN
from ..core.trace import bind
from ..core.verify import verify
from ..ops.kit.moves import Overlay
from ._primitive import as_aval

ClosedJaxpr = ClosedGraph
JaxprEqn = Eqn
#: Kinds of effects of a graph, as a set.
Effects = frozenset
#: The effects of a graph that has none.
no_effects: frozenset[Any] = frozenset()


class Effect:
    """What an operation does beside computing its results: a base to derive from."""


class Token:
    """What orders effects, which have their order from the graph here."""


class DropVar(Var):
    """A result that nobody reads; tracing makes ordinary variables of those too."""

    __slots__ = ()


class _Graphs(type):
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Graph)


class Jaxpr(metaclass=_Graphs):
    """A graph; a call makes one of arguments in JAX's order, results before equations."""

    def __new__(
        cls,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Any],
        eqns: Sequence[Eqn],
        effects: Any = no_effects,
        debug_info: Any = None,
        is_high: bool = False,
    ) -> Any:
        name = getattr(debug_info, "func_name", "")
        return Graph(tuple(constvars), tuple(invars), tuple(eqns), tuple(outvars), name)


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Var],
    primitive: Any,
    params: dict[str, Any],
    effects: Any = no_effects,
    source_info: Any = None,
    ctx: Any = None,
) -> Eqn:
    """Return an equation."""
    return Eqn(primitive, tuple(invars), tuple(outvars), params, source_info or UNKNOWN)


def jaxpr_as_fun(closed_jaxpr: ClosedGraph, *args: Any) -> Callable[..., list[Any]]:
    """Return the function on arrays that a closed graph is; ``args`` are the first of them."""
    return functools.partial(_run, closed_jaxpr, *args)


def _run(closed_jaxpr: ClosedGraph, *args: Any) -> list[Any]:
    return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)


def eval_jaxpr(
    jaxpr: Graph, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True
) -> list[Any]:
    """Run a graph on constants and arguments; return the list of its results.

    Graphs compute with the words of random keys: those of an argument are taken.
    """
    words: list[Any] = [x._base if isinstance(x, Overlay) else x for x in args]  # pyright: ignore[reportPrivateUsage]
    return eval_graph(jaxpr, consts, words, bind)


def subjaxprs(jaxpr: Graph) -> Iterator[Graph]:
    """Yield the graphs that equations of a graph hold."""
    for eqn in jaxpr.eqns:
        yield from subgraphs(eqn.params)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Graph]:
    """Yield the graphs held in an equation's params."""
    yield from subgraphs(params)


def check_jaxpr(jaxpr: Graph) -> None:
    """Raise `JaxprTypeError` for a graph that breaks an invariant."""
    verify(jaxpr)


def gensym() -> Callable[[Any], Var]:
    """Return what makes new variables of avals."""
    return lambda aval: Var(as_aval(aval))


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Call a wrapped function."""
    return f.call_wrapped(*args, **params)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """Return an aval without its mapped axis."""
    if axis is None:
        return aval
    return aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None
) -> ShapedArray:
    """Return an aval with a mapped axis of a size."""
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


@frozen
class DebugInfo:
    """What is said of a function in messages."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] = ()
    result_paths: tuple[str, ...] = ()

    @property
    def func_name(self) -> str:
        """The function's name."""
        return self.func_src_info.split(" ")[0]


def debug_info(
    traced_for: str, fun: Callable[..., Any], args: Any, kwargs: Any, **settings: Any
) -> DebugInfo:
    """Return what is said of a function in messages."""
    try:
        names = tuple(inspect.signature(fun).parameters)
    except (ValueError, TypeError):
        names = ()
    return DebugInfo(traced_for, fun_text(fun), names)
