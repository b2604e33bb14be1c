"""Results that are an operand's elements in the same order: its storage in another shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from math import prod
from typing import Any

from ...core.forms import Pieces, Reindex
from ...core.graph import Var
from ...core.symbolic import Index, scalar, variable
from ..ir import Node
from .access import row_major
from .nests import Nest, Selection, Statement
from .order import Order
from .plan import Item, Place, Same, Tree, statements_of


class Views:
    """Finds statements of a program that need no kernel, asked of in order.

    A view of what nobody reads any more takes its storage over. Others borrow it, as long as they
    are neither results, which are the caller's alone, nor written over.
    """

    def __init__(self, selection: Selection, order: Order):
        block = selection.block
        self._outputs = {a for a in block.outputs if isinstance(a, Var)}
        self._overwritten = set(order.donated.values())
        self._owned = set(block.owned)
        self._borrowed = set(block.inputs)

    def takes(self, statements: Sequence[Statement], needed: Callable[[Var], bool]) -> bool:
        """Whether statements are one that is a view of its operand.

        Parameters
        ----------
        needed : callable
            Whether anyone reads a value after them.
        """
        if len(statements) != 1 or (view := _seen_through(statements[0], {})) is None:
            return False
        var, source, _ = view
        if source.aval.size != var.aval.size:
            return False
        if source not in self._borrowed:
            return not needed(source)
        if source in self._owned or var in self._outputs or var in self._overwritten:
            return False
        self._borrowed.add(var)
        return True


def within(
    items: tuple[Item, ...],
    order: Order,
    inlined: Mapping[Var, Node],
    inputs: Set[Var],
    new: Set[Var],
) -> tuple[tuple[Item, ...], dict[Var, Place], dict[Var, Place]]:
    """Find the views among the items of a kernel: they are no loops there.

    A view of an input lies where that does, or where a part of it does. What a view alone shows as
    a result is made there, and so are pieces of which a result is put together.

    Returns
    -------
    items
        Those that are left.
    shown : mapping
        Views of inputs.
    made : mapping
        What is made where its view is to lie.
    """
    over = set(order.donated.values())
    left: list[Item] = []
    shown: dict[Var, Place] = {}
    made: dict[Var, Place] = {}
    for item in items:
        statements = statements_of((item,))
        views = [view for s in statements if (view := _seen_through(s, inlined)) is not None]
        touched = any(v in over or v in order.donated for var, x, _ in views for v in (var, x))
        if touched or len(views) < len(statements):
            pieces = _pieces(item, inlined)
            own = pieces.keys().isdisjoint({*inputs, *new, *made, *over, *order.donated})
            if pieces and own and all(place.var in new for place in pieces.values()):
                made |= pieces
            else:
                left.append(item)
        elif all(source in inputs and var not in new for var, source, _ in views):
            shown.update((var, Same(source, at)) for var, source, at in views)
        elif all(
            var in new
            and source not in inputs
            and source not in new | made.keys()
            and source.aval.size == var.aval.size
            for var, source, _ in views
        ):
            made.update((source, Same(var)) for var, source, _ in views)
        else:
            left.append(item)
    return tuple(left), shown, made


def _pieces(item: Item, inlined: Mapping[Var, Node]) -> dict[Var, Same]:
    """Return where operands lie in a result that is nothing but them, one after another."""
    if isinstance(item, Tree) or not isinstance(form := item.node.form, Pieces):
        return {}
    out, found = item.node.out, dict[Var, Same]()
    row = prod(out.aval.shape[1:])
    for piece in form.pieces:
        x = item.node.ins[piece.operand]
        whole = piece.extents == x.aval.shape and not any(piece.start) and set(piece.stride) == {1}
        apart = piece.extents[1:] == out.aval.shape[1:] and not any(piece.offset[1:])
        if form.fill is not None or not (isinstance(x, Var) and whole and apart and x.aval.size):
            return {}
        _, source, at = _through(x, inlined)
        if at != 0 or source.aval.size != x.aval.size or source in found:
            return {}
        found[source] = Same(out, piece.offset[0] * row)
    return found


def _seen_through(s: Statement, inlined: Mapping[Var, Node]) -> tuple[Var, Var, int] | None:
    """Return result, operand, and from where its elements are given in order, if that is all."""
    if not isinstance(s, Nest) or not isinstance(s.node.form, Reindex) or s.values:
        return None
    if len(s.reads) != 1 or not s.node.out.aval.size:
        return None
    out, source, at = _through(s.node.out, {**inlined, s.node.out: s.node})
    return (out, source, at) if source in s.reads and isinstance(at, int) else None


def _through(var: Var, inlined: Mapping[Var, Node]) -> tuple[Var, Var, Any]:
    """Return a value, what it is a view of, and where in it: an int if all is in its order."""
    flat: Index = variable("flat", var.aval.size)
    source, idx = var, _unravelled(flat, var.aval.shape)
    while (node := inlined.get(source)) is not None:
        form, dtype = node.form, source.aval.dtype
        if not isinstance(form, Reindex) or form.valid is not None or len(node.ins) != 1:
            break
        (below,) = node.ins
        if not isinstance(below, Var) or below.aval.dtype != dtype:
            break
        idx, source = form.index(idx, _unread), below
    at = sum((i * n for i, n in zip(idx, row_major(source.aval.shape), strict=True)), 0)
    return var, source, at - flat


def _unravelled(flat: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    idx: list[Index] = []
    for k, extent in reversed(list(enumerate(shape))):
        idx.append(flat % extent if k else flat)
        flat = flat // extent
    return tuple(reversed(idx))


def _unread(operand: int, index: Any) -> Any:
    """Stand for an index that is read from an operand: whoever has one is no view."""
    return scalar("read")
