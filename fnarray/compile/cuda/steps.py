"""Steps of a region over a grid: layouts, updates, calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...core.forms import Pieces, Update
from ...core.graph import Atom
from ..emit.steps import Steps
from ..emit.values import Storage
from ..ir import Node
from .values import GridValues

#: Dtypes whose sums the memory itself adds up.
ADDED = frozenset({"int32", "uint32", "int64", "uint64", "float32", "float64"})


class GridSteps(Steps):
    """Spells steps; the region's own by all threads.

    Attributes
    ----------
    stage : int
        Which of the region's kernels is written. What fills an array must be done everywhere
        before anything else is written there, hence by a kernel of its own: stage 0.
    top : bool
        Whether the step is the region's own.
    """

    def __init__(self, values: GridValues, stage: int, *, top: bool):
        super().__init__(values)
        self.values: GridValues = values
        self.stage = stage
        self.top = top

    def whole(self, store: Storage, size: int) -> str:
        """Return the memory of a value that lies contiguously."""
        if store.base == 0:
            return store.name
        number = self.values.number(size)
        return f"part({store.name}, {self.values.index(store.base)}, {number})"

    def _array(self, atom: Atom, *, stored: bool) -> str:
        number = self.values.number(atom.aval.size)
        return f"array({super()._array(atom, stored=stored)}, {number})"

    def _pieces(self, node: Node, form: Pieces) -> None:
        if self.top and form.fill is not None:
            form = replace(form, fill=None) if self.stage else replace(form, pieces=())
        super()._pieces(node, form)

    def _update(self, node: Node, form: Update, *, filled: bool) -> None:
        if self.top and filled and not self.stage:
            self.fill(node.ins[0], self.values.storage[node.out])
            return
        super()._update(node, form, filled=filled and not self.top)

    def _merge(self, node: Node, form: Update, store: Storage, offset: Any, new: str) -> None:
        dtype = node.out.aval.dtype
        if not (self.top and self.values.spread) or form.combine == "{1}":
            super()._merge(node, form, store, offset, new)
            return
        at = self.values.index(offset)
        if _is_sum(node, form) and dtype.name in ADDED:
            self.writer.line(f"atomic_add({store.name}, {at}, {new})")
            return
        seen = self.writer.declare(self.writer.fresh("seen"))
        self.writer.line(f"{seen} = {store.name}[{at}]")
        with self.writer.block("while True:", barrier=True):
            old = self.writer.assign(seen, None, "old")
            value = self.values.updated(node, form.combine, old, new)
            self.writer.line(f"{seen} = swap({store.name}, {at}, {old}, {value})")
            with self.writer.block(f"if same({seen}, {old}):"):
                self.writer.line("break")


def _is_sum(node: Node, form: Update) -> bool:
    if isinstance(form.combine, str):
        return form.combine in ("sc.add({0}, {1})", "({0} + {1})", "sc.radd({0}, {1})")
    names = [n.eqn.primitive.name for n in node.bodies[0].nodes]
    return names == ["add"]


def one_by_one(node: Node) -> bool:
    """Whether a step must be run by one thread: nothing exchanges such elements at once."""
    form = node.form
    if not isinstance(form, Update):
        return not isinstance(form, Pieces)
    if form.combine == "{1}":
        return False
    dtype = node.out.aval.dtype
    return dtype.itemsize not in (4, 8) or dtype.kind == "c" or np.dtype(bool) == dtype


def fills(node: Node, *, filled: bool) -> bool:
    """Whether a step has a stage that fills its result."""
    form = node.form
    if isinstance(form, Pieces):
        return form.fill is not None
    return isinstance(form, Update) and filled
