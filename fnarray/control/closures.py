"""Functions as what they are closed over: ``closure_convert``, and ``custom_gradient`` upon it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import tree
from ..core.callables import named_as
from ..core.graph import ClosedGraph, eval_graph
from ..core.surgery import closed_over_nothing
from ..core.tangents import differentiable, tangent_aval
from ..core.trace import Tracer, bind, trace_graph
from .admission import admit
from .custom import custom_vjp
from .custom_args import result
from .signature import abstract, fun_name, fun_text

__all__: list[str] = []


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable, list[Any]]:
    """Return a function that takes what is differentiated in its closure as arguments.

    Parameters
    ----------
    fun : callable
    *example_args : pytrees
        Arguments like those it will be called with.

    Returns
    -------
    converted : callable
        ``converted(*args, *hoisted)``.
    hoisted : list of Array
        The tracers of float or complex dtypes that ``fun`` is closed over.
    """
    leaves, spec = tree.flatten_spec(example_args)
    specs: list[Any] = []
    with admit(fun, "closure_convert"):
        graph = trace_graph(_flat(fun, spec, specs), [abstract(x) for x in leaves], fun_name(fun))
    closed, consts = closed_over_nothing(graph), graph.consts
    hoist = [isinstance(c, Tracer) and differentiable(c.dtype) for c in consts]
    hoisted = [c for c, h in zip(consts, hoist, strict=True) if h]

    @named_as(fun)
    def converted(*args_and_hoisted: Any) -> Any:
        n = len(args_and_hoisted) - len(hoisted)
        args, given = args_and_hoisted[:n], iter(args_and_hoisted[n:])
        leaves, got = tree.flatten_spec(args)
        if got != spec:
            raise TypeError(
                f"closure_convert: {fun_text(fun)} was converted for arguments of structure "
                f"{tree.PyTreeDef(spec)}, got {tree.PyTreeDef(got)}."
            )
        values = [next(given) if h else c for c, h in zip(consts, hoist, strict=True)]
        return specs[0].unflatten(_applied(closed, [*values, *leaves]))

    return converted, hoisted


def _flat(fun: Callable[..., Any], spec: Any, specs: list[Any]) -> Callable[..., list[Any]]:
    """Return a function of leaves; the structure of its result is appended to ``specs``."""

    def flat(*leaves: Any) -> list[Any]:
        out = fun(*spec.unflatten(leaves))
        outs, out_spec = tree.flatten_spec(out)
        specs.append(out_spec)
        return [result(x, k, out, fun) for k, x in enumerate(outs)]

    return flat


def _applied(closed: ClosedGraph, args: Sequence[Any]) -> list[Any]:
    return eval_graph(closed.jaxpr, closed.consts, args, bind)


@dataclass(frozen=True, eq=False)
class _Residuals:
    """Residuals of ``custom_gradient``: a graph, and what it is closed over."""

    closed: ClosedGraph
    in_spec: Any
    out_spec: Any
    consts: tuple[Any, ...]


tree.register_pytree_node(
    _Residuals,
    lambda held: (held.consts, (held.closed, held.in_spec, held.out_spec)),
    lambda fixed, consts: _Residuals(*fixed, consts=tuple(consts)),
)


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with a reverse rule that it returns itself.

    Parameters
    ----------
    fun : callable
        ``fun(*args) -> (result, vjp)``, where ``vjp`` takes a cotangent of the result to those of
        the arguments: a tuple of them, or the one of the only argument.
    """

    @custom_vjp
    @named_as(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)[0]

    def fwd(*args: Any) -> tuple[Any, _Residuals]:
        out, rule = fun(*args)
        outs, in_spec = tree.flatten_spec(out)
        avals = [tangent_aval(abstract(x)) for x in outs]
        specs: list[Any] = []
        graph = trace_graph(
            _flat(rule, in_spec_of_one(in_spec), specs), avals, f"the vjp of {fun_name(fun)}"
        )
        closed, consts = closed_over_nothing(graph), graph.consts
        return out, _Residuals(closed, in_spec, specs[0], consts)

    def bwd(held: _Residuals, ct: Any) -> Any:
        leaves = tree.leaves(ct)
        found = held.out_spec.unflatten(_applied(held.closed, [*held.consts, *leaves]))
        return found if isinstance(found, tuple) else (found,)

    wrapped.defvjp(fwd, bwd)
    return wrapped


def in_spec_of_one(spec: Any) -> Any:
    """Return the structure of a tuple of one tree."""
    return tree.flatten_spec((spec.unflatten([0] * spec.num_leaves),))[1]
