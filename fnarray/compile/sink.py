"""Indices that the program spells are made where loops read them.

The derivative of ``x.at[1:-1].set(y)`` in a loop takes the update's indices from the loop forwards,
as an array like others. Read at places that nobody knows beforehand, a box is gathered number by
number: gradients of relaxations took twice as long as with places that are in the text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ..core.forms import Iota, Map, Pieces, Reindex, Scan
from ..core.graph import ClosedGraph, Eqn, Graph, Literal, Var
from ..core.surgery import substituted
from .ir import Block, Node

#: Elements of what is made anew in each turn: the places of a box, or of a few.
_FEW: Final = 16
#: What makes an array of literals alone, in order.
Made = tuple[Eqn, ...]


def made_within(block: Block) -> Block:
    """Return a block whose loops make integers themselves that are made of literals alone."""
    makers: dict[Any, Made] = {}
    nodes: list[Node] = []
    for node in block.nodes:
        if isinstance(node.form, Scan):
            nodes.append(_making(node, node.form, makers))
            continue
        nodes.append(node)
        if isinstance(node.form, Iota | Map | Reindex | Pieces):
            aval, ins = node.out.aval, [a for a in node.ins if not isinstance(a, Literal)]
            if aval.dtype.kind in "iu" and aval.size <= _FEW and all(a in makers for a in ins):
                before = dict.fromkeys(eqn for a in ins for eqn in makers[a])
                makers[node.out] = (*before, node.eqn)
    return replace(block, nodes=tuple(nodes))


def _making(node: Node, form: Scan, makers: dict[Any, Made]) -> Node:
    """Return a loop that makes what it could take of ``makers``, where turns do not change it."""
    count, graph = form.num_consts, form.body.jaxpr
    taken = {k: made for k, a in enumerate(node.ins[:count]) if (made := makers.get(a))}
    if not taken:
        return node
    own = dict.fromkeys(eqn for made in taken.values() for eqn in made)
    names: dict[Var, Any] = {graph.invars[k]: made[-1].outvars[0] for k, made in taken.items()}
    eqns = (*own, *substituted(graph.eqns, names))
    outs = tuple(names.get(a, a) if isinstance(a, Var) else a for a in graph.outvars)
    ins = tuple(v for k, v in enumerate(graph.invars) if k not in taken)
    body = ClosedGraph(Graph(graph.constvars, ins, eqns, outs, graph.debug_name), form.body.consts)
    params = {**node.eqn.params, "jaxpr": body, "num_consts": count - len(taken)}
    operands = tuple(a for k, a in enumerate(node.ins) if k not in taken)
    eqn = Eqn(node.eqn.primitive, operands, node.outs, params, node.eqn.source)
    return replace(node, eqn=eqn, form=replace(form, body=body, num_consts=count - len(taken)))
