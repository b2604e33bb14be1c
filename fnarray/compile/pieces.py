"""Arrays laid out of few pieces are chosen from, element by element, by those who read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.forms import Map, Pieces, Reduce, Reindex
from ..core.graph import Atom, Eqn, Literal, Var
from .ir import AddedStep, Block, Node, users_of

_PIECE: Any = AddedStep("piece")
_CHOICE: Any = AddedStep("choice")


def choose_pieces(block: Block, most: int) -> Block:
    """Write what is laid out of few pieces of given arrays into its readers: a choice by place."""
    makers = {v: node for node in block.nodes for v in node.outs}
    users, outputs = users_of(block.nodes), set(block.outputs)
    nodes: list[Node] = []
    for node in block.nodes:
        if (
            isinstance(node.form, Pieces)
            and 0 < len(node.form.pieces) <= most
            and all(set(p.stride) <= {1} for p in node.form.pieces)
            and all(_is_given(a, makers) for a in node.ins)
            and outputs.isdisjoint(node.outs)
            and all(isinstance(u.form, Map | Reindex | Reduce) for u in users.get(node.out, ()))
        ):
            nodes += _choices(node)
        else:
            nodes.append(node)
    return block.rebuilt(nodes, {})


def _is_given(atom: Atom, makers: Mapping[Var, Node]) -> bool:
    """Whether a value is an input, or read off one: nothing is computed twice for it."""
    maker = makers.get(atom) if isinstance(atom, Var) else None
    if maker is None:
        return True
    return isinstance(maker.form, Reindex) and all(_is_given(a, makers) for a in maker.ins)


def _choices(node: Node) -> list[Node]:
    """Return nodes that choose, for each element, the piece that it is in."""
    form: Pieces = node.form
    aval = node.out.aval
    inside = ShapedArray(aval.shape, np.dtype(bool))
    nodes: list[Node] = []

    def made(name: Any, form: Any, ins: tuple[Atom, ...], aval: ShapedArray) -> Var:
        eqn = Eqn(name, ins, (Var(aval),), {}, node.eqn.source)
        nodes.append(Node(eqn, form))
        return eqn.outvars[0]

    rest: Atom | None = None if form.fill is None else node.ins[form.fill]
    for piece in form.pieces:

        def within(i: Any, read: Any, p: Any = piece) -> Any:
            ends = zip(p.offset, i, p.extents, strict=True)
            return tuple((low, ix, low + n) for low, ix, n in ends)

        def place(i: Any, read: Any, p: Any = piece) -> Any:
            starts = zip(p.start, i, p.offset, strict=True)
            return tuple(ix - low + start for start, ix, low in starts)

        operand = node.ins[piece.operand]
        taken: Atom = made(_PIECE, Reindex(place, within, aval.dtype.type(0)), (operand,), aval)
        if rest is not None:
            here = Reindex(lambda i, read: (), within, False)
            which = made(_PIECE, here, (Literal(True, ShapedArray((), inside.dtype)),), inside)
            taken = made(_CHOICE, Map("({1} if {0} else {2})", 1), (which, taken, rest), aval)
        rest = taken
    last = nodes.pop()
    return [*nodes, replace(last, eqn=replace(last.eqn, outvars=node.outs))]
