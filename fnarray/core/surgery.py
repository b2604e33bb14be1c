"""Surgery on graphs: what cuts them, and changes the order of what they take and give.

Nothing here knows a primitive. Equations are moved, kept or left out, never looked into. The same
cut of the same graph is the same object, so that what was derived or compiled of it is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from .avals import ShapedArray
from .graph import Atom, ClosedGraph, Eqn, Graph, Literal, Var, eqn_effects, subgraphs
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


def _run_by(eqn: Eqn) -> ClosedGraph | None:
    return eqn.form().graph if eqn.primitive.stepwise else None


def straight(
    closed: ClosedGraph, inside: Callable[[Eqn], ClosedGraph | None] = _run_by
) -> ClosedGraph:
    """Return a graph with the operations of others in place of equations that stand for them.

    Parameters
    ----------
    closed : ClosedGraph
    inside : callable, optional
        What an equation stands for, if for anything: by default what graphs it only runs.
    """
    eqns: list[Eqn] = []
    opened = False

    def walk(graph: Graph, env: dict[Var, Atom]) -> tuple[Atom, ...]:
        nonlocal opened

        def read(atom: Atom) -> Atom:
            return env[atom] if isinstance(atom, Var) else atom

        for eqn in graph.eqns:
            ins = tuple(map(read, eqn.invars))
            inner = inside(eqn)
            if inner is not None and not inner.consts:
                opened = True
                outs = walk(inner.jaxpr, dict(zip(inner.jaxpr.invars, ins, strict=True)))
            else:  # a graph that is called twice has new names each time
                outs = tuple(Var(v.aval) for v in eqn.outvars)
                eqns.append(Eqn(eqn.primitive, ins, outs, eqn.params, eqn.source))
            env.update(zip(eqn.outvars, outs, strict=True))
        return tuple(map(read, graph.outvars))

    g = closed.jaxpr
    outs = walk(g, {v: v for v in (*g.constvars, *g.invars)})
    if not opened:
        return closed
    return ClosedGraph(Graph(g.constvars, g.invars, tuple(eqns), outs, g.debug_name), closed.consts)


# ---- where arrays are ----------------------------------------------------------------------------


def says_places(graph: Graph) -> bool:
    """Whether types or equations of a graph, or of one it holds, say where arrays are."""
    return any(v.aval.place is not None for v in (*graph.constvars, *graph.invars)) or any(
        eqn.primitive.word
        or any(v.aval.place is not None for v in eqn.outvars)
        or any(map(says_places, subgraphs(eqn.params)))
        for eqn in graph.eqns
    )


def erased(closed: ClosedGraph, kept: frozenset[Primitive] = frozenset()) -> ClosedGraph:
    """Return a closed graph that does not say where arrays are; itself, if it does not.

    All devices share the host's memory: to what is compiled it makes no difference. Words of the
    primitives that are ``kept`` stay.
    """
    return _erased(closed, kept) if says_places(closed.jaxpr) else closed


@remembered(4096)
def _erased(closed: ClosedGraph, kept: frozenset[Primitive]) -> ClosedGraph:
    return ClosedGraph(_without(closed.jaxpr, kept), closed.consts)


def _plain(aval: Any) -> Any:
    return aval.update(place=None) if isinstance(aval, ShapedArray) else aval


def _without(graph: Graph, kept: frozenset[Primitive]) -> Graph:
    new: dict[Var, Atom] = {}

    def made(var: Var) -> Var:
        out = new[var] = Var(_plain(var.aval))
        return out

    def read(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else new[atom]

    def param(value: Any) -> Any:
        if isinstance(value, ClosedGraph):
            return erased(value, kept)
        if isinstance(value, Graph):
            return _without(value, kept)
        if isinstance(value, ShapedArray):
            return _plain(value)
        if type(value) is tuple:
            return tuple(map(param, cast("tuple[Any, ...]", value)))
        return value

    constvars, invars = tuple(map(made, graph.constvars)), tuple(map(made, graph.invars))
    eqns: list[Eqn] = []
    for eqn in graph.eqns:
        ins = tuple(map(read, eqn.invars))
        if eqn.primitive.word and eqn.primitive not in kept:
            new.update(zip(eqn.outvars, ins, strict=False))
            continue
        params = {k: param(v) for k, v in eqn.params.items()}
        eqns.append(Eqn(eqn.primitive, ins, tuple(map(made, eqn.outvars)), params, eqn.source))
    outs = tuple(map(read, graph.outvars))
    return Graph(constvars, invars, tuple(eqns), outs, graph.debug_name)
