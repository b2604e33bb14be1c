"""Equal equations are computed once, loops and branches among them."""

from __future__ import annotations

from typing import Any, cast

from ..core.graph import Atom, ClosedGraph, Literal, Var, eqn_effects
from .ir import Block, Node


def share_equal(block: Block) -> Block:
    """Compute equal equations once."""
    env: dict[Var, Atom] = {}
    seen: dict[Any, Node] = {}
    nodes: list[Node] = []
    for old in block.nodes:
        node = old.reading(env)
        if eqn_effects(node.eqn):
            nodes.append(node)
            continue
        try:
            key = _key(node)
            first = seen.setdefault(key, node)
        except TypeError:  # params without hash or order: functions, graphs
            first = node
        if first is node:
            nodes.append(node)
        else:
            env.update(zip(node.outs, first.outs, strict=True))
    return block.rebuilt(nodes, env)


def _key(node: Node) -> Any:
    ins = tuple((a.val.tobytes(), a.aval) if isinstance(a, Literal) else a for a in node.ins)
    params = tuple(sorted((k, _content(v)) for k, v in node.eqn.params.items()))
    return node.eqn.primitive, ins, params


def _content(param: Any) -> Any:
    """Return what tells a parameter from others: of a graph its equations, by position.

    Two searches of one array are traced apart: two histograms of 400,000 took twice as long as one.
    """
    if isinstance(param, tuple):
        parts = cast("tuple[Any, ...]", param)
        return tuple(map(_content, parts)) if parts and isinstance(parts[0], ClosedGraph) else parts
    if not isinstance(param, ClosedGraph):
        return param
    graph = param.jaxpr
    place = {v: k for k, v in enumerate((*graph.constvars, *graph.invars))}

    def read(atom: Atom) -> Any:
        if isinstance(atom, Literal):
            return atom.val.tobytes(), atom.aval
        return place[atom]

    eqns: list[Any] = []
    for eqn in graph.eqns:
        params = tuple(sorted((k, _content(v)) for k, v in eqn.params.items()))
        eqns.append((eqn.primitive, tuple(map(read, eqn.invars)), params))
        place.update((v, len(place) + k) for k, v in enumerate(eqn.outvars))
    avals = tuple(v.aval for v in (*graph.constvars, *graph.invars))
    consts = tuple(map(id, param.consts))
    return avals, consts, tuple(eqns), tuple(map(read, graph.outvars))
