"""Transforms of graphs, by recording what running a graph under a transform does.

Each result is kept with the graph, so that loops, branches and calls differentiated again hold the
same graphs as before, and what was compiled for them is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.avals import ShapedArray
from ..core.axes import Axis
from ..core.frozen import frozen
from ..core.graph import ClosedGraph, eval_graph
from ..core.keep import remembered
from ..core.surgery import closed_over_nothing
from ..core.tangents import Undefined, Zero, chosen, is_zero, nonzero, with_zeros
from ..core.trace import JitTracer, bind, recording
from ..ops.kit.rules import instantiate as made
from ..ops.kit.rules import spread
from .batch import batch
from .derivative import jvp, linearize
from .transpose import backward

Flags = tuple[bool, ...]
Avals = Sequence[ShapedArray]


def runner(closed: ClosedGraph) -> Callable[..., list[Any]]:
    """Return the graph as a flat function."""
    return lambda *xs: eval_graph(closed.jaxpr, closed.consts, xs, bind)


@frozen(eq=False)
class Derived:
    """A graph made of another.

    Attributes
    ----------
    graph : ClosedGraph
        Takes ``consts`` before its other inputs.
    consts : tuple of Array
        Arrays that rules made.
    flags : tuple of bool
        Of the original's results (of linear inputs, for a transpose): which have a tangent, a
        cotangent, or the mapped axis.
    """

    graph: ClosedGraph
    consts: tuple[Any, ...]
    flags: Flags


def recorded(
    fun: Callable[..., Sequence[Any]], avals: Avals, name: str, flags: Sequence[bool] = ()
) -> Derived:
    """Return the graph of a flat function; ``flags`` may be filled while it runs."""
    with recording(name) as trace:
        args = [trace.argument(a, f"an input of {name}") for a in avals]
        outs = fun(*args)
        graph = trace.close([a.atom for a in args], outs)
    return Derived(closed_over_nothing(graph), graph.consts, tuple(flags))


@remembered(4096)
def jvp_graph(closed: ClosedGraph, active: Flags, instantiate: Flags = ()) -> Derived:
    """Return the graph ``(inputs, active tangents) -> (results, active tangents)``.

    ``instantiate`` says which results must have a tangent, if one of zeros.
    """
    flags: list[bool] = []
    n = len(active)

    def fun(*args: Any) -> list[Any]:
        primals, tangents = args[:n], with_zeros(active, args[n:], closed.in_avals)
        outs, duals = jvp(runner(closed), primals, tangents, closed.jaxpr.debug_name)
        flags.extend(nonzero(duals))
        if instantiate:
            flags[:] = [a or b for a, b in zip(flags, instantiate, strict=True)]
        return [*outs, *map(made, chosen(flags, duals))]

    avals = (*closed.in_avals, *chosen(active, closed.in_avals))
    return recorded(fun, avals, closed.jaxpr.debug_name, flags)


@frozen(eq=False)
class Linearized:
    """The two halves of a graph's derivative.

    Attributes
    ----------
    primal : ClosedGraph
        Inputs to results and then the computed residuals.
    linear : ClosedGraph
        Residuals and then tangents of active inputs, to tangents of active results.
    residuals : tuple of (int or Array or None)
        For each residual: the number of the input it is, the array that a rule made, or None for
        one that ``primal`` computes.
    flags : tuple of bool
        Which results have tangents.
    """

    primal: Derived
    linear: ClosedGraph
    residuals: tuple[Any, ...]
    flags: Flags


@remembered(4096)
def linearize_graph(closed: ClosedGraph, active: Flags, instantiate: Flags = ()) -> Linearized:
    """Return a graph's values-with-residuals half and its linear half."""
    name = closed.jaxpr.debug_name
    with recording(name) as trace:
        args = [trace.argument(a, f"an input of {name}") for a in closed.in_avals]
        outs, linear = linearize(runner(closed), args, name, active, instantiate)
        place = {id(a.atom): k for k, a in enumerate(args)}
        residuals: list[Any] = []
        computed: list[Any] = []
        for value in linear.closed.consts:
            own = isinstance(value, JitTracer) and value.frame is trace
            residuals.append(place.get(id(value.atom)) if own else value)
            if residuals[-1] is None:
                computed.append(value)
        graph = trace.close([a.atom for a in args], [*outs, *computed])
    primal = Derived(closed_over_nothing(graph), graph.consts, (True,) * len(graph.jaxpr.outvars))
    cut = closed_over_nothing(linear.closed)
    return Linearized(primal, cut, tuple(residuals), linear.active_out)


@remembered(4096)
def transpose_graph(
    closed: ClosedGraph, linear: Flags, nonzero: Flags, instantiate: bool = False
) -> Derived:
    """Return the graph ``(known inputs, nonzero cotangents) -> cotangents of linear inputs``.

    Cotangents known to be zero are left out, unless ``instantiate``; ``flags`` says which are not.
    """
    flags: list[bool] = []
    known_avals = [a for a, f in zip(closed.in_avals, linear, strict=True) if not f]
    of_results = [a.of_cotangents() for a in closed.out_avals]

    def fun(*args: Any) -> list[Any]:
        known, given = iter(args[: len(known_avals)]), iter(args[len(known_avals) :])
        operands = [
            Undefined(a) if f else next(known) for a, f in zip(closed.in_avals, linear, strict=True)
        ]
        cts = [next(given) if f else Zero(a) for a, f in zip(of_results, nonzero, strict=True)]
        found = chosen(linear, backward(closed.jaxpr, closed.consts, operands, cts))
        flags.extend(instantiate or not is_zero(c) for c in found)
        return [made(c) for c, f in zip(found, flags, strict=True) if f]

    avals = (*known_avals, *chosen(nonzero, of_results))
    return recorded(fun, avals, f"{closed.jaxpr.debug_name}", flags)


@remembered(4096)
def _batch_graph(
    closed: ClosedGraph, batched: Flags, size: int, name: Any, force: Flags
) -> Derived:
    flags: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        outs, found = batch(runner(closed), Axis(size, name), args, batched, f"vmap({name})")
        wanted = [f or w for f, w in zip(found, force or found, strict=True)]
        flags.extend(wanted)
        return [
            x if f or not w else spread(x, size)
            for x, f, w in zip(outs, found, wanted, strict=True)
        ]

    avals = [
        a.update(shape=(size, *a.shape)) if f else a
        for a, f in zip(closed.in_avals, batched, strict=True)
    ]
    return recorded(fun, avals, closed.jaxpr.debug_name, flags)


def batch_graph(closed: ClosedGraph, batched: Flags, axis: Axis, force: Flags = ()) -> Derived:
    """Return the graph on batches; ``force`` says which results must have the mapped axis."""
    return _batch_graph(closed, batched, int(axis), axis.name, force)
