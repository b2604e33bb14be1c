"""Which elements of which stored values a loop nest reads, as functions of its counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.forms import Iota, Map, Operand, Reindex
from ...core.graph import Atom, Literal, Var
from ...core.symbolic import scalar
from ..ir import Node

Indices = tuple[Any, ...]


def broadcast_index(shape: tuple[int, ...], idx: Indices) -> Indices:
    """Return the index of an elementwise operand: rank 0 and axes of size 1 stretch."""
    if not shape:
        return ()
    if 1 not in shape and len(shape) == len(idx):
        return idx
    return tuple(0 if n == 1 else i for n, i in zip(shape, idx, strict=True))


def row_major(shape: Any) -> tuple[int, ...]:
    """Return the strides, in elements, of a C-ordered array."""
    strides: list[int] = []
    step = 1
    for n in reversed(tuple(shape)):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


class AccessWalk:
    """Follows values that are written into their readers down to the stored values they read.

    Attributes
    ----------
    reads : dict
        For each stored var, the indices at which it is read.
    values : list
        Indices used as values (iota, data-dependent tests), which pin the loops' shape.
    """

    def __init__(self, producer: Mapping[Var, Node]):
        self.producer = producer
        self.reads: dict[Var, set[Indices]] = {}
        self.values: list[Any] = []
        self._seen: set[tuple[Var, Indices]] = set()

    def visit(self, atom: Atom, idx: Indices) -> None:
        """Record what reading ``atom`` at ``idx`` reads."""
        if isinstance(atom, Literal) or (atom, idx) in self._seen:
            return
        self._seen.add((atom, idx))
        node = self.producer.get(atom)
        if node is None:
            self.reads.setdefault(atom, set()).add(idx)
        else:
            self.enter(node, idx)

    def enter(self, node: Node, idx: Indices) -> None:
        """Record what computing a node's result at ``idx`` reads."""
        form = node.form
        if isinstance(form, Map):
            for operand in node.ins:
                self.visit(operand, broadcast_index(operand.aval.shape, idx))
        elif isinstance(form, Iota):
            self.values.append(idx[form.dimension])
        elif isinstance(form, Reindex):
            read = self.reader(node)
            self.visit(node.ins[0], form.index(idx, read))
            if isinstance(form.fill, Operand):
                self.visit(node.ins[form.fill.number], idx)
            if form.valid is not None:
                self.values.extend(ix for _, ix, _ in form.valid(idx, read))

    def reader(self, node: Node) -> Callable[[int, Indices], Any]:
        """Return the ``read`` that a form's index functions get."""

        def read(k: int, idx: Indices) -> Any:
            atom = node.ins[k]
            if isinstance(atom, Literal):
                return int(atom.val)
            self.visit(atom, idx)
            return scalar(f"data{id(atom)}_{idx}")

        return read
