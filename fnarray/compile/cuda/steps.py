"""Steps of a region over a grid: layouts, updates, calls."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any

from ...config import config
from ...core.forms import Pieces, Update
from ...core.graph import Atom
from ...core.symbolic import variable
from ..emit.steps import Steps
from ..emit.values import Storage
from ..ir import Node
from ..schedule.plan import Layout
from .values import GridValues

#: Dtypes whose sums the memory itself adds up.
ADDED = frozenset({"int32", "uint32", "int64", "uint64", "float32", "float64"})
#: Results of up to so many bytes are added up by each block for itself, where so many updates or
#: more meet in each element: they would wait for one another at a few places of memory.
OWN_BYTES, MEET = 1 << 14, 1 << 8


class GridSteps(Steps):
    """Spells steps; the region's own by all threads.

    Attributes
    ----------
    stage : int
        Which of the region's kernels is written. What fills an array must be done everywhere
        before anything else is written there, hence by a kernel of its own: stage 0.
    top : bool
        Whether the step is the region's own.
    own : tuple of str or None
        The elements of the result that a thread updates, all others being other threads'.
    """

    own: tuple[str, str] | None = None

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

    def _pieces(self, node: Node, form: Pieces, layout: Layout) -> None:
        if self.top and form.fill is not None:
            if self.stage:
                form = replace(form, fill=None)
            else:
                form, layout = replace(form, pieces=()), replace(layout, runs=())
        super()._pieces(node, form, layout)

    def _update(self, node: Node, form: Update, *, filled: bool) -> None:
        if self.top and filled and not self.stage:
            self.fill(node.ins[0], self.values.storage[node.out])
            return
        if self.top and in_order(node):
            size = self.values.number(node.out.aval.size)
            share = self.writer.assign(f"({size} + threads() - 1) // threads()", None, "share")
            low = self.writer.assign(f"thread() * {share}", None, "low")
            self.own = low, self.writer.assign(f"{low} + {share}", None, "high")
        if self.top and self.values.spread and meets_often(node):
            self._by_blocks(node, form)
        else:
            super()._update(node, form, filled=filled and not self.top)
        self.own = None

    def _by_blocks(self, node: Node, form: Update) -> None:
        """Make updates of a block in memory that its lanes share, and then those of its sums."""
        values, writer, dtype = self.values, self.writer, node.out.aval.dtype
        store, size = values.storage[node.out], node.out.aval.size
        zero = values.literal(0, dtype)
        room = 1 << (size - 1).bit_length()  # of few sizes, so that kernels are few
        sums = writer.assign(f"room({zero}, {room})", None, "sums")
        values.per_block = True
        with self._lanes(size) as e:
            writer.line(f"{sums}[u({e})] = {zero}")
        writer.line("sync()")
        values.storage[node.out] = replace(store, name=sums, base=0)
        super()._update(node, form, filled=False)
        values.storage[node.out] = store
        writer.line("sync()")
        with self._lanes(size) as e, writer.block(f"if {sums}[u({e})] != {zero}:"):
            at = values.index(store.base + variable(e, size))
            writer.line(f"atomic_add({store.name}, {at}, {sums}[u({e})])")

    @contextmanager
    def _lanes(self, size: int) -> Generator[str]:
        """Open a loop over elements by the lanes of a block; yields the counter's name."""
        e = self.writer.fresh("e")
        self.values.counted.add(e)
        self.writer.line(f"{e} = lane()")
        with self.writer.block(f"while {e} < {self.values.number(size)}:", barrier=True):
            self.writer.declare(e)
            yield e
            self.writer.line(f"{e} += lanes()")

    def _nests(self) -> bool:
        return not self.values.spread

    def _tested(self, form: Update) -> int:
        # Threads share one loop over all updates.
        return len(form.extents) if self.values.spread else super()._tested(form)

    def _comes_in_runs(self, form: Update) -> bool:
        return False  # lanes would part

    def _merge(self, node: Node, form: Update, store: Storage, offset: Any, new: str) -> None:
        if self.own is None:
            self._exchange(node, form, store, offset, new)
            return
        low, high = self.own
        at = self.writer.assign(f"i64({self.values.index(offset)})", None, "at")
        with self.writer.block(f"if {low} <= {at} and {at} < {high}:", barrier=True):
            super()._merge(node, form, store, offset, new)

    def _exchange(self, node: Node, form: Update, store: Storage, offset: Any, new: str) -> None:
        """Combine an element with an update that other threads may combine with theirs."""
        dtype = node.out.aval.dtype
        if not (self.top and self.values.spread) or form.apart or form.combine == "{1}":
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


def meets_often(node: Node) -> bool:
    """Whether many updates are added to each of few elements."""
    form, out = node.form, node.out.aval
    if form.apart or in_order(node) or not _is_sum(node, form) or out.dtype.name not in ADDED:
        return False
    return 0 < out.size * out.dtype.itemsize <= OWN_BYTES and prod(form.extents) >= MEET * out.size


def in_order(node: Node) -> bool:
    """Whether each thread goes through all updates, in order, and makes those of its elements.

    Where updates meet they are exchanges of whole elements else, which four and eight bytes have,
    in the order in which threads come: sums of floats then differ from run to run, and which of
    two values stays is chance. The indices are read by all threads at once, so that a run through
    them is bound by their number, not by how many threads there are.
    """
    form = node.form
    if not isinstance(form, Update) or form.apart:
        return False
    if config.gpu_deterministic_ops:
        return True
    dtype = node.out.aval.dtype
    whole = dtype.itemsize in (4, 8) and dtype.kind != "c"
    return form.combine != "{1}" and not whole


def one_by_one(node: Node) -> bool:
    """Whether no loop of a step is shared by threads."""
    return not isinstance(node.form, Update | Pieces) or in_order(node)


def fills(node: Node, *, filled: bool) -> bool:
    """Whether a step has a stage that fills its result."""
    form = node.form
    if isinstance(form, Pieces):
        return form.fill is not None
    return isinstance(form, Update) and filled
