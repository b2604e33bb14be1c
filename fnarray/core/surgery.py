"""Surgery on graphs: what cuts them, and changes the order of what they take and give.

Nothing here knows a primitive. Equations are moved, kept or left out, never looked into. The same
cut of the same graph is the same object, so that what was derived or compiled of it is found again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .avals import ShapedArray
from .graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var, eqn_effects
from .keep import remembered
from .primitive import Primitive
from .tangents import chosen


def closed_over_nothing(closed: ClosedGraph) -> ClosedGraph:
    """Return a graph that holds no arrays: its ``consts`` are to be its first inputs."""
    g = closed.jaxpr
    if not g.constvars:
        return closed
    return ClosedGraph(Graph((), (*g.constvars, *g.invars), g.eqns, g.outvars, g.debug_name))


def closed_over(closed: ClosedGraph, consts: tuple[Any, ...]) -> ClosedGraph:
    """Return a graph that holds arrays as what were its first inputs."""
    g, n = closed.jaxpr, len(consts)
    if not n:
        return closed
    return ClosedGraph(Graph(g.invars[:n], g.invars[n:], g.eqns, g.outvars, g.debug_name), consts)


@remembered(4096)
def rearranged(
    closed: ClosedGraph, ins: tuple[int | ShapedArray, ...], outs: tuple[int, ...] | None = None
) -> ClosedGraph:
    """Return a graph with its inputs and results in another order; itself, if it is the same.

    Parameters
    ----------
    closed : ClosedGraph
    ins : tuple
        For each input of the new graph the number of the old, or the aval of one that is not used.
    outs : tuple of int, optional
        For each result of the new graph the number of the old: negative ones, from -1 downwards,
        are the inputs of the old graph.
    """
    g = closed.jaxpr
    if ins == tuple(range(len(g.invars))) and outs in (None, tuple(range(len(g.outvars)))):
        return closed
    invars = tuple(g.invars[k] if isinstance(k, int) else Var(k) for k in ins)
    outvars = g.outvars
    if outs is not None:
        outvars = tuple(g.outvars[k] if k >= 0 else g.invars[-1 - k] for k in outs)
    return ClosedGraph(Graph(g.constvars, invars, g.eqns, outvars, g.debug_name), closed.consts)


@remembered(4096)
def one_equation(
    prim: Primitive, avals: tuple[ShapedArray, ...], items: tuple[tuple[str, Any], ...]
) -> ClosedGraph:
    """Return the graph of one equation, whose operands are its inputs; ``items`` are its params."""
    params = dict(items)
    operands = tuple(map(Var, avals))
    found = prim.aval(*avals, **params)
    outs = tuple(map(Var, found if prim.multiple_results else (found,)))
    return ClosedGraph(Graph((), operands, (Eqn(prim, operands, outs, params),), outs, prim.name))


def live(eqns: Sequence[Eqn], wanted: Iterable[Atom]) -> tuple[Eqn, ...]:
    """Return the equations that wanted values depend on, and those with effects."""
    needed = {a for a in wanted if isinstance(a, Var)}
    kept: list[Eqn] = []
    for eqn in reversed(eqns):
        if any(v in needed for v in eqn.outvars) or any(eqn_effects(eqn)):
            kept.append(eqn)
            needed.update(a for a in eqn.invars if isinstance(a, Var))
    return tuple(reversed(kept))


@remembered(4096)
def independent(closed: ClosedGraph, first: int) -> tuple[tuple[bool, ...], ClosedGraph]:
    """Return which results depend on the ``first`` inputs alone, and their graph of those."""
    g = closed.jaxpr
    known = set(g.invars[:first])
    eqns: list[Eqn] = []
    for eqn in g.eqns:
        if all(type(a) is Literal or a in known for a in eqn.invars) and not any(eqn_effects(eqn)):
            known.update(eqn.outvars)
            eqns.append(eqn)
    flags = tuple(type(a) is Literal or a in known for a in g.outvars)
    outs = tuple(chosen(flags, g.outvars))
    return flags, ClosedGraph(Graph((), g.invars[:first], live(eqns, outs), outs, g.debug_name))


def substituted(eqns: Iterable[Eqn], names: Mapping[Var, Atom]) -> tuple[Eqn, ...]:
    """Return equations that read other values in place of some: how graphs are joined."""
    return tuple(
        Eqn(
            eqn.primitive,
            tuple(names.get(a, a) if isinstance(a, Var) else a for a in eqn.invars),
            eqn.outvars,
            eqn.params,
            eqn.source,
        )
        for eqn in eqns
    )
