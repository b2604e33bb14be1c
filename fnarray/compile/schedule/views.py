"""Results that are an operand's elements in the same order: its storage in another shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from math import prod
from typing import Any, Final

from ...core.forms import Reindex
from ...core.graph import Var
from ...core.symbolic import Index, substitute, variable
from ..ir import Block
from .access import row_major
from .nests import Nest, Selection, Statement, counter_var
from .order import Order
from .plan import Item, Place, Same, statements_of

#: Elements from which on a copy of what only has another shape takes longer than a kernel begins.
_LONG: Final = 1 << 14


def shows_input(s: Statement, block: Block) -> bool:
    """Whether a statement gives the elements of a long input of a program in their order."""
    if not isinstance(s, Nest) or s.node.out.aval.size < _LONG or s.node.out in block.outputs:
        return False
    source = _seen_through(s)
    return source in block.inputs and source not in block.owned


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
        if len(statements) != 1 or (source := _seen_through(statements[0])) is None:
            return False
        var = statements[0].node.out
        if source not in self._borrowed:
            return not needed(source)
        if source in self._owned or var in self._outputs or var in self._overwritten:
            return False
        self._borrowed.add(var)
        return True


def within(
    items: tuple[Item, ...], order: Order, inputs: Set[Var], new: Set[Var]
) -> tuple[tuple[Item, ...], dict[Var, Place], dict[Var, Place]]:
    """Find the views among the items of a kernel: they are no loops there.

    A view of an input lies where that does. What a view alone shows as a result is made there.

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
        views = [(s.node.out, _seen_through(s)) for s in statements_of((item,))]
        pairs = [(var, source) for var, source in views if source is not None]
        untouched = not any(v in over or v in order.donated for pair in pairs for v in pair)
        if len(pairs) < len(views) or not untouched:
            left.append(item)
        elif all(source in inputs and var not in new for var, source in pairs):
            shown.update((var, Same(source)) for var, source in pairs)
        elif all(
            var in new and source not in inputs and source not in new | made.keys()
            for var, source in pairs
        ):
            made.update((source, Same(var)) for var, source in pairs)
        else:
            left.append(item)
    return tuple(left), shown, made


def _seen_through(s: Statement) -> Var | None:
    """Return the operand whose elements a statement gives in their order, if it does only that."""
    if not isinstance(s, Nest) or not isinstance(s.node.form, Reindex) or s.values:
        return None
    out, atoms = s.node.out.aval, s.node.ins
    if len(s.reads) != 1 or len(atoms) != 1 or s.node.form.valid is not None:
        return None
    ((source, read),) = s.reads.items()
    aval = source.aval
    if source is not atoms[0] or len(read) != 1 or (aval.size, aval.dtype) != (out.size, out.dtype):
        return None
    flat: Index = variable("flat", out.size)
    counters: dict[Any, Any] = {}
    for k, extent in reversed(list(enumerate(loop.extent for loop in s.loops))):
        counters[counter_var(k, extent)] = flat % extent if k else flat
        flat = flat // extent

    def offset(idx: Any, shape: tuple[int, ...]) -> Any:
        at = sum((i * n for i, n in zip(idx, row_major(shape), strict=True)), 0)
        return substitute(at, counters)

    if prod(loop.extent for loop in s.loops) != out.size:
        return None
    (idx,) = read
    return source if offset(idx, aval.shape) == offset(s.out, out.shape) else None
