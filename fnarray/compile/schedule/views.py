"""Results that are an operand's elements in the same order: its storage in another shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...core.forms import Reindex
from ...core.graph import Var
from ...core.symbolic import Index, substitute, variable
from .access import row_major
from .nests import Nest, Selection, Statement, counter_var
from .order import Order


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
