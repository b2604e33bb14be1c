"""Loops that hand an array on under another's name take two turns at a time.

A recurrence of second order updates what is older, ``a, b = b, a.at[1:-1].set(step(a, b))``. A turn
that has to end where it began copies both arrays; after two turns each is where it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..core.forms import Map, Scan, Update, form_of
from ..core.graph import Atom, ClosedGraph, Eqn, Graph, Var, eqn_effects
from .ir import AddedStep, Block, Node
from .target import Limits

_TURNS: Any = AddedStep("turns")


def turned_twice(block: Block, limits: Limits) -> Block:
    """Return a block whose loops that exchange what they update have turns of two."""
    nodes: list[Node] = []
    for node in block.nodes:
        nodes += _twice(node) if _exchanges(node, limits) else (node,)
    return replace(block, nodes=tuple(nodes))


def _exchanges(node: Node, limits: Limits) -> bool:
    """Whether turns update an array that the next one knows by the name of another."""
    form = node.form
    if not isinstance(form, Scan) or form.watch is not None or form.length < 2:
        return False
    graph, first = form.body.jaxpr, form.num_consts
    if not len(node.ins) - first == form.num_carry == len(node.outs):
        return False  # rows would be taken by twos
    if any(any(eqn_effects(eqn)) for eqn in graph.eqns):
        return False
    forms = [form_of(eqn) for eqn in graph.eqns]
    if sum(f.cost for f in forms if isinstance(f, Map)) > limits.exchanged:
        return False
    carried, outs = list(graph.invars[first:]), graph.outvars
    for eqn, made in zip(graph.eqns, forms, strict=True):
        out, old = eqn.outvars[0], eqn.invars[0] if eqn.invars else None
        if old in carried and out in outs and out.aval.size > limits.registers:
            other = outs[carried.index(old)]  # which takes the name of what is updated
            at = carried.index(other) if other in carried else -1
            if other is not old and at == outs.index(out) and isinstance(made, Update):
                return True
    return False


def _twice(node: Node) -> tuple[Node, ...]:
    """Return a loop of half as many turns, and a turn alone where one is left."""
    form: Scan = node.form
    half, rest = divmod(form.length, 2)
    body = ClosedGraph(_after_itself(form.body.jaxpr, form.num_consts), form.body.consts)
    between = tuple(Var(v.aval) for v in node.outs) if rest else node.outs
    loops = [_loop(node, node.ins, between, replace(form, body=body, length=half))]
    if rest:
        ins = (*node.ins[: form.num_consts], *between)
        loops.append(_loop(node, ins, node.outs, replace(form, length=1)))
    return tuple(loops)


def _loop(node: Node, ins: tuple[Atom, ...], outs: tuple[Var, ...], form: Scan) -> Node:
    params = {"jaxpr": form.body, "length": form.length}  # what tells it from others
    return Node(Eqn(_TURNS, ins, outs, params, node.eqn.source), form)


def _after_itself(graph: Graph, first: int) -> Graph:
    """Return a graph applied to its own results, which are its inputs from ``first`` on."""
    names: dict[Any, Atom] = dict(zip(graph.invars[first:], graph.outvars, strict=True))
    eqns = list(graph.eqns)
    for eqn in graph.eqns:
        outs = tuple(Var(v.aval) for v in eqn.outvars)
        ins = tuple(names.get(a, a) for a in eqn.invars)
        eqns.append(Eqn(eqn.primitive, ins, outs, eqn.params, eqn.source))
        names.update(zip(eqn.outvars, outs, strict=True))
    outs = tuple(names.get(a, a) for a in graph.outvars)
    return Graph(graph.constvars, graph.invars, tuple(eqns), outs, graph.debug_name)
