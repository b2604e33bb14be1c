"""Loop fusion: nests that may share loops are merged into trees.

Two nests share their loop ``k`` when its extents agree and, where one reads the other's result, the
reading is aligned: at iteration ``i`` it reads only what iteration ``i`` wrote. This one rule gives
elementwise chains one loop, row-wise chains (softmax, layer norm) one outer loop with several inner
ones, and several reductions over the same data one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from ...core.graph import Var
from ...core.symbolic import leaves
from ..target import Limits
from .access import Indices
from .nests import Nest, Selection, counter_var, takes_turns
from .order import Order, is_overlay
from .plan import Item, Reason, Tree
from .select import Note
from .views import shows_input
from .work import operations_of, work_of

#: Operations up to which a loop takes what it makes itself from registers, however many arrays that
#: were: 49 weights of a window and their two sums (345) compile in .65 s in place of 1.40, and run
#: in 590 us in place of 740.
LONG = 500
#: What a function of one number takes, in terms of its work for each number of a vector: where rows
#: take less, two loops are faster. Of 500,000 in rows of 100 `softplus(x @ b)` took 130 us of
#: processor time, and takes 38; of a million, `exp` 97 and 66, logarithms of sums 103 and 58.
_VECTOR = 40


def fused(order: Order, selection: Selection, limits: Limits, note: Note) -> tuple[Item, ...]:
    """Merge each run of consecutive nests into trees; what is written out stays apart."""
    fusion = _Fusion(order, selection, limits, note)
    items: list[Item] = []
    run: list[Nest] = []
    for s in order.statements:
        if isinstance(s, Nest) and s not in selection.unrolled:
            run.append(s)
            continue
        items.extend(fusion.merge(run, 0))
        run = []
        items.append(s)
    items.extend(fusion.merge(run, 0))
    return tuple(items)


@dataclass(slots=True, eq=False)
class _Group:
    """A loop that is being filled with nests."""

    extent: int
    members: list[Nest] = field(default_factory=list[Nest])
    streams: set[Var] = field(default_factory=set[Var])
    written: set[Var] = field(default_factory=set[Var])
    folds: bool = False

    def add(self, nest: Nest) -> None:
        self.members.append(nest)
        self.folds |= nest.fold is not None
        self.streams.update(nest.reads)
        self.written.update(nest.node.outs)


class _Fusion:
    """The one rule, over the nests of one block."""

    def __init__(self, order: Order, selection: Selection, limits: Limits, note: Note):
        self.inlined = selection.inlined
        self.limits = limits
        self.note = note
        #: For a nest that writes over a value that is dead afterwards: that value.
        self.over: Mapping[Nest, Var] = {
            s: order.donated[s.node.out]
            for s in order.statements
            if isinstance(s, Nest) and s.node.out in order.donated
        }

        self.operations: dict[Nest, int] = {}
        block = selection.block
        self.views = {s for s in order.statements if limits.views and shows_input(s, block)}

    def merge(self, nests: Sequence[Nest], k: int) -> list[Tree | Nest]:
        """Merge nests, given in an order that respects their dependencies, from loop ``k`` on."""
        items: list[_Group | Nest] = []
        for nest in nests:
            if len(nest.loops) == k:
                items.append(nest)
                continue
            for item in reversed(items):
                why = self._apart(nest, item, k)
                if not why and isinstance(item, _Group):
                    item.add(nest)
                    break
                if self._depends(nest, item):
                    if k == 0 and why:
                        self.note(Reason("fuse", nest.node, "begins a loop of its own", why))
                    items.append(self._group(nest, k))
                    break
            else:
                items.append(self._group(nest, k))
        return [i if isinstance(i, Nest) else self._tree(i, k) for i in items]

    def _group(self, nest: Nest, k: int) -> _Group:
        group = _Group(nest.loops[k].extent)
        group.add(nest)
        return group

    def _tree(self, group: _Group, k: int) -> Tree:
        children = tuple(self.merge(group.members, k + 1))
        return Tree(k, k, (group.extent,), tuple(group.members), children)

    def _depends(self, nest: Nest, earlier: _Group | Nest) -> bool:
        if isinstance(earlier, Nest):
            written, reads = earlier.node.outs, earlier.reads.keys()
        else:
            written, reads = earlier.written, earlier.streams
        return not nest.reads.keys().isdisjoint(written) or self.over.get(nest) in reads

    def _serialises(self, nest: Nest, other: Nest, k: int) -> bool:
        """Whether a nest lets a loop that is the other's only long one run turn by turn.

        It adds to memory in each, or folds into several numbers, and the other's are dear.

        Loops inside that are short are written out by the compiler, and the turns of this one run
        as vectors: k-means with 8 centres took 29 us, and 179 with its counts in the same loop.
        """
        turns = nest.in_memory or (takes_turns(nest.fold) and self._is_dear(other))
        if not turns or not nest.loops[k].reduced or other.loops[k].reduced:
            return False
        return prod(loop.extent for loop in other.loops[k + 1 :]) <= self.limits.unroll

    def _hinders(self, nest: Nest, group: _Group, k: int) -> bool:
        """Whether nests that share loop ``k`` alone are left with short loops.

        On their own each may run as one long loop. A value for each turn is no hindrance: what
        reads it cannot run as one loop anyway. But if it is dear its own loop runs as vectors:
        Jacobians of six sines in 20,000 lanes took 3.0 ms together, 1.0 apart.
        """
        members = (nest, *group.members)
        inside = {_inside(m, k) for m in members if _inside(m, k) or is_overlay(m)}
        if not inside or min(map(prod, inside)) >= self.limits.row:
            return False
        long = group.extent >= self.limits.row
        return len(inside) > 1 or (
            long and any(not _inside(m, k) and self._is_dear(m) for m in members)
        )

    def _scatters(self, nest: Nest, group: _Group, k: int) -> bool:
        """Whether nests that share loop ``k``, and fold short rows, compute what is dear apart.

        It is one number after each row then, and a function is called for it, where a loop of its
        own calls that for vectors. LLVM makes vectors of the turns only where rows of two or three
        are folded and none is written. A row that is not short takes less than what is dear where
        its work is little, as it runs as vectors: `softplus` of a product with 100 columns.
        """
        members = (nest, *group.members)
        inside = [m for m in members if _inside(m, k)]
        rows = max((prod(_inside(m, k)) for m in inside), default=0)
        if group.extent < self.limits.row or not rows or not self.limits.abreast:
            return False
        if rows < self.limits.abreast and all(m.fold is not None for m in inside):
            return False
        works = [self._work(m) for m in members if not _inside(m, k) and m.fold is None]
        dear = sum(work for work in works if work >= self.limits.dear)
        if rows < self.limits.row:
            return dear > 0
        return sum(prod(_inside(m, k)) * (1 + self._work(m)) for m in inside) < _VECTOR * dear

    def _touched(self, nest: Nest, group: _Group) -> int:
        """Return how many arrays a loop touches with a nest in it.

        What it makes itself is in registers, or written by one statement whoever reads it. But that
        holds a long loop together too, whose kernel would grow with the program.
        """
        touched = group.streams.union(nest.reads)
        if len(touched) > self.limits.streams:
            made = touched & group.written
            if made and sum(map(self._operations, (nest, *group.members))) <= LONG:
                return len(touched) - len(made)
        return len(touched)

    def _operations(self, nest: Nest) -> int:
        """Return how many operations are written into a nest."""
        if nest not in self.operations:
            self.operations[nest] = len(operations_of(nest.node, self.inlined))
        return self.operations[nest]

    def _work(self, nest: Nest) -> int:
        return work_of(operations_of(nest.node, self.inlined))

    def _is_dear(self, nest: Nest) -> bool:
        return self._work(nest) >= self.limits.dear

    def _apart(self, nest: Nest, item: _Group | Nest, k: int) -> str:
        """Return why a nest cannot join a loop, or nothing where it can."""
        if isinstance(item, Nest):
            return "what comes before it has no loop"
        if not self.views.isdisjoint((nest, item.members[0])):
            return "an input in another shape needs no loop"
        if item.extent != nest.loops[k].extent:
            return f"it runs {nest.loops[k].extent} times, what it reads {item.extent} times"
        if self._touched(nest, item) > self.limits.streams:
            return f"one loop touches {self.limits.streams} arrays at most"
        if len(item.members) >= self.limits.loop:
            return f"one loop holds {self.limits.loop} statements at most"
        over = self.over.get(nest)
        if nest.fold is None and not item.folds:
            if self._hinders(nest, item, k):
                return "the loops inside of the one that it would share are short, and not the same"
        elif self._scatters(nest, item, k):
            return "what is dear of it and what it would share a loop with runs as vectors alone"
        for member in item.members:
            if self._serialises(nest, member, k) or self._serialises(member, nest, k):
                return f"only one of it and {member.node.eqn.primitive} runs as vectors along it"
            if over in member.node.outs and member.loops[k + 1 :] == () and nest.out != member.out:
                return f"it and {member.node.eqn.primitive} write different places of one array"
            for var in member.node.outs:
                if var in nest.reads and not _aligned(nest.reads[var], member, k):
                    return f"it reads other iterations of {member.node.eqn.primitive}"
            if (
                over is not None
                and over in member.reads
                and not _aligned(member.reads[over], nest, k)
            ):
                return f"it overwrites what {member.node.eqn.primitive} still reads"
        return ""


def _inside(nest: Nest, k: int) -> tuple[int, ...]:
    """Return the extents of the loops inside of loop ``k``."""
    return tuple(loop.extent for loop in nest.loops[k + 1 :])


def _aligned(indices: set[Indices], writer: Nest, k: int) -> bool:
    """Whether a loop ``k`` shared with ``writer`` reads only the same iteration's results."""
    if k >= writer.parallel_depth:
        return False
    here = counter_var(k, writer.loops[k].extent)
    position = next(p for p, ix in enumerate(writer.out) if here in leaves(ix))
    return all(idx[position] == writer.out[position] for idx in indices)


def paths(items: Iterable[Item]) -> dict[Nest, tuple[Tree, ...]]:
    """Return, for each nest, the shared loops around it, outermost first."""
    found: dict[Nest, tuple[Tree, ...]] = {}

    def walk(item: Item, above: tuple[Tree, ...]) -> None:
        if isinstance(item, Nest):
            found[item] = above
        elif isinstance(item, Tree):
            for child in item.children:
                walk(child, (*above, item))

    for item in items:
        walk(item, ())
    return found


def shared_depth(a: tuple[Tree, ...], b: tuple[Tree, ...]) -> int:
    """Return how many loops two paths share."""
    depth = 0
    for x, y in zip(a, b, strict=False):
        if x is not y:
            break
        depth += 1
    return depth
