"""Arrays laid out of pieces that those who read them can read where the pieces lie.

What is one array turned round along an axis is read at the remainder of a place there; what is laid
out of few pieces is chosen from, element by element, on targets where a choice costs little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.forms import Map, Pieces, Reduce, Reindex
from ..core.graph import Atom, Eqn, Literal, Var
from ..core.symbolic import variable
from .ir import AddedStep, Block, Node, users_of
from .target import Limits

_PIECE: Any = AddedStep("piece")
_CHOICE: Any = AddedStep("choice")
_ROTATED: Any = AddedStep("rotated")


def read_pieces(block: Block, limits: Limits) -> Block:
    """Write what is laid out of pieces into its readers, where they can read the pieces."""
    makers = {v: node for node in block.nodes for v in node.outs}
    users, outputs = users_of(block.nodes), set(block.outputs)
    nodes: list[Node] = []
    for node in block.nodes:
        if (
            isinstance(node.form, Pieces)
            and all(set(p.stride) <= {1} for p in node.form.pieces)
            and outputs.isdisjoint(node.outs)
            and all(isinstance(u.form, Map | Reindex | Reduce) for u in users.get(node.out, ()))
        ):
            nodes += _read(node, makers, limits)
        else:
            nodes.append(node)
    return block.rebuilt(nodes, {})


def _read(node: Node, makers: Mapping[Var, Node], limits: Limits) -> Sequence[Node]:
    """Return the nodes that stand for what is laid out of pieces."""
    few = 0 < len(node.form.pieces) <= limits.pieces
    if few and all(_is_given(a, makers) for a in node.ins):
        return _choices(node)
    turned = _rotation(node, makers, limits.rotated)
    return (node,) if turned is None else (turned,)


def _rotation(node: Node, makers: Mapping[Var, Node], least: int) -> Node | None:
    """Return the reindexing of an array that two pieces turn round along an axis, if they do."""
    form: Pieces = node.form
    shape = node.out.aval.shape
    if len(form.pieces) != 2 or form.fill is not None:
        return None
    axis = max(range(len(shape)), key=lambda a: form.pieces[1].offset[a])
    if prod(shape[axis + 1 :]) < least:
        return None
    whole = [n for a, n in enumerate(shape) if a != axis]
    starts: list[int] = []
    arrays: list[Atom] = []
    for piece in form.pieces:
        atom, at = _box(node.ins[piece.operand], makers)
        at = tuple(low + start for low, start in zip(at, piece.start, strict=True))
        rest = [n for a, n in enumerate(piece.extents) if a != axis]
        if atom.aval.shape != shape or rest != whole or any((*at[:axis], *at[axis + 1 :])):
            return None
        starts.append(at[axis])
        arrays.append(atom)
    n, first = shape[axis], form.pieces[0].extents[axis]
    met = form.pieces[0].offset[axis] == 0 and form.pieces[1].offset[axis] == first
    if arrays[0] is not arrays[1] or not met or (*starts,) != (n - first, 0):
        return None

    def index(i: Any, read: Any) -> Any:
        return (*i[:axis], (i[axis] + (n - first)) % n, *i[axis + 1 :])

    eqn = Eqn(_ROTATED, (arrays[0],), node.outs, {"axis": axis, "by": first}, node.eqn.source)
    return Node(eqn, Reindex(index))


def _box(atom: Atom, makers: Mapping[Var, Node]) -> tuple[Atom, tuple[int, ...]]:
    """Return the array that a box was cut of, and where it begins there; itself if of none."""
    rank = len(atom.aval.shape)
    start = (0,) * rank
    while isinstance(atom, Var) and atom in makers:
        maker = makers[atom]
        form = maker.form
        if not isinstance(form, Reindex) or form.valid is not None or len(maker.ins) != 1:
            break
        i = tuple(variable(f"i{a}", max(n, 2)) for a, n in enumerate(atom.aval.shape))
        found = form.index(i, _unread)
        if len(found) != rank:
            break
        low = tuple(ix - k for ix, k in zip(found, i, strict=True))
        if not all(isinstance(k, int) for k in low):
            break
        atom, start = maker.ins[0], tuple(s + k for s, k in zip(start, low, strict=True))
    return atom, start


def _unread(operand: int, index: Any) -> Any:
    raise AssertionError("a box of one array reads no indices")


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
