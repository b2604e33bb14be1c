"""Stacks of columns that are read by columns are never laid out: their columns are values.

A system of equations is a function of rows of few numbers, which it takes apart and stacks again.
What is computed of the stack number by number, and taken apart in turn, is computed of columns: a
step of Runge and Kutta is one loop, in which all is in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from math import prod
from typing import Any, Final, cast

from ..core.avals import ShapedArray
from ..core.forms import Map, Piece, Pieces, Reindex
from ..core.graph import Atom, Eqn, Var
from ..core.symbolic import variable
from .boxes import nothing
from .ir import AddedStep, Block, Node, users_of
from .target import Limits

_COLUMN: Any = AddedStep("column")
#: Columns of a row up to which it is taken apart, and of each piece of it: wider ones are vectors.
_ROW: Final = 8
_PIECE: Final = 2
#: Operations on columns up to which all are written out: what compiles beyond is no single loop.
_LONG: Final = 500


def taken_apart(block: Block, limits: Limits) -> Block:
    """Return a block in which stacks that are only read by columns are columns."""
    apart = _apart(block, limits)
    if not apart:
        return block
    columns: dict[Var, tuple[Atom, ...]] = {}
    users, outputs = users_of(block.nodes), set(block.outputs)
    nodes: list[Node] = []
    for node in block.nodes:
        out = node.out if node.outs else None
        if out in apart:
            made = _pieces_of(node, nodes) if isinstance(node.form, Pieces) else None
            columns[out] = made or _maps_of(node, columns, nodes)
            if out in outputs or not _by_columns(users.get(out, ()), apart):
                nodes.append(_stacked(node, columns[out]))
        elif node.ins and node.ins[0] in columns and (k := _column(node)) is not None:
            nodes.append(_read(node, columns[node.ins[0]][k]))
        else:
            nodes.append(node)
    return block.rebuilt(nodes, {})


def _apart(block: Block, limits: Limits) -> set[Var]:
    """Return stacks all of whose readers take columns, and what is computed of them."""
    stacks: set[Var] = set()
    for node in block.nodes:
        if _is_stack(node, limits) or (
            isinstance(node.form, Map)
            and any(a in stacks and a.aval.shape == node.out.aval.shape for a in node.ins)
            and all(a.aval.shape in ((), node.out.aval.shape) for a in node.ins)
        ):
            stacks.add(node.out)
    if not stacks:
        return stacks
    users, outputs = users_of(block.nodes), set(block.outputs)
    found: set[Var] = set()
    for node in block.nodes:
        if not node.outs or node.out not in stacks:
            continue
        if isinstance(node.form, Map):  # laid out where it is read whole, in place of the stacks
            taken = any(a in found for a in node.ins)
        else:
            taken = node.out not in outputs and _by_columns(users.get(node.out, ()), stacks)
        if taken:
            found.add(node.out)
    return found if sum(v.aval.shape[-1] for v in found) <= _LONG else set()


def _by_columns(readers: Sequence[Node], apart: Set[Var]) -> bool:
    """Whether readers take columns, as what is taken apart itself does."""
    return all(
        _column(u) is not None or (isinstance(u.form, Map) and u.out in apart) for u in readers
    )


def _is_stack(node: Node, limits: Limits) -> bool:
    """Whether rows are laid out of their columns, and of one number."""
    if not isinstance(node.form, Pieces):
        return False
    shape, pieces = node.out.aval.shape, node.form.pieces
    if not shape or not 1 < shape[-1] <= _ROW or prod(shape[:-1]) <= limits.registers:
        return False
    plain = all(
        p.extents[:-1] == shape[:-1] and p.extents[-1] <= _PIECE and {*p.stride} == {1}
        for p in pieces
    )
    return plain and (node.form.fill is not None or sum(p.extents[-1] for p in pieces) == shape[-1])


def _column(node: Node) -> int | None:
    """Return which column of its operand a node reads, if it reads one."""
    form = node.form
    if not isinstance(form, Reindex) or form.valid is not None or len(node.ins) != 1:
        return None
    shape = node.out.aval.shape
    i = tuple(variable(f"i{a}", n) if n > 1 else 0 for a, n in enumerate(shape))
    at = form.index(i, nothing)
    return at[-1] if at and isinstance(at[-1], int) else None


def _pieces_of(node: Node, nodes: list[Node]) -> tuple[Atom, ...]:
    """Return the columns that a stack is laid out of."""
    form: Pieces = node.form
    found: dict[int, Atom] = {}
    for piece in form.pieces:
        operand = node.ins[piece.operand]
        for k in range(piece.extents[-1]):
            start = (*piece.start[:-1], piece.start[-1] + k)
            found[piece.offset[-1] + k] = _cut(operand, start, node, nodes)
    rest = () if form.fill is None else (node.ins[form.fill],)
    return tuple(found.get(k, *rest) for k in range(node.out.aval.shape[-1]))


def _maps_of(
    node: Node, columns: Mapping[Var, tuple[Atom, ...]], nodes: list[Node]
) -> tuple[Atom, ...]:
    """Return the columns of what is computed number by number."""
    found: list[Atom] = []
    for k in range(node.out.aval.shape[-1]):
        ins: list[Atom] = []
        for atom in node.ins:
            if atom in columns:
                ins.append(columns[cast("Var", atom)][k])
            elif atom.aval.shape:
                ins.append(_cut(atom, (*(0,) * (atom.aval.ndim - 1), k), node, nodes))
            else:
                ins.append(atom)
        aval = ShapedArray((*node.out.aval.shape[:-1], 1), node.out.aval.dtype)
        nodes.append(node.taking(ins, (Var(aval),)))
        found.append(nodes[-1].out)
    return tuple(found)


def _cut(atom: Atom, start: tuple[int, ...], like: Node, nodes: list[Node]) -> Atom:
    """Return the column of an array that begins there."""
    shape = (*like.out.aval.shape[:-1], 1)
    if atom.aval.shape == shape:
        return atom
    form = Reindex(lambda i, read: tuple(s + ix for s, ix in zip(start, i, strict=True)))
    out = Var(ShapedArray(shape, atom.aval.dtype))
    nodes.append(Node(Eqn(_COLUMN, (atom,), (out,), {}, like.eqn.source), form))
    return out


def _read(node: Node, column: Atom) -> Node:
    """Return the node that reads the column itself."""
    form: Reindex = node.form

    def index(i: Any, read: Any) -> Any:
        return (*form.index(i, read)[:-1], 0) if column.aval.shape else ()

    return replace(node.taking((column,)), form=Reindex(index))


def _stacked(node: Node, columns: tuple[Atom, ...]) -> Node:
    """Return the node that lays out a result."""
    shape = node.out.aval.shape
    none, one = (0,) * len(shape), (1,) * len(shape)
    pieces = tuple(Piece(k, none, (*shape[:-1], 1), (*none[:-1], k), one) for k in range(shape[-1]))
    eqn = Eqn(_COLUMN, columns, node.outs, {}, node.eqn.source)
    return Node(eqn, Pieces(pieces))
