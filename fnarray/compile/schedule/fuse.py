"""Loop fusion: nests that may share loops are merged into trees.

Two nests share their loop ``k`` when its extents agree and, where one reads the other's result, the
reading is aligned: at iteration ``i`` it reads only what iteration ``i`` wrote. This one rule gives
elementwise chains one loop, row-wise chains (softmax, layer norm) one outer loop with several inner
ones, and several reductions over the same data one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...core.graph import Var
from .nests import Nest, counter

#: Arrays one fused loop touches at most: more streams than this defeat prefetching and the
#: vectoriser's overlap checks.
STREAMS = 24


@dataclass(eq=False, slots=True)
class Tree:
    """A loop shared by ``members``, at depth ``depth``; ``children`` in order of execution."""

    depth: int
    extent: int
    members: list[Nest]
    children: list[Tree | Nest] = field(default_factory=list)


def nests_of(item: Tree | Nest) -> list[Nest]:
    """Return the nests inside an item."""
    return item.members if isinstance(item, Tree) else [item]


def fuse(nests: list[Nest], overwrites: dict[Nest, Var] | None = None) -> list[Tree | Nest]:
    """Merge nests, given in an order that respects their dependencies.

    Parameters
    ----------
    nests : list of Nest
    overwrites : dict, optional
        For a nest that writes its result over a value that is dead afterwards: that value.
    """
    return _fuse(nests, 0, overwrites or {})


def _fuse(nests: list[Nest], k: int, overwrites: dict[Nest, Var]) -> list[Tree | Nest]:
    items: list[Tree | Nest] = []
    for nest in nests:
        if len(nest.loops) == k:
            items.append(nest)
            continue
        for item in reversed(items):
            if isinstance(item, Tree) and _fits(nest, item, k, overwrites):
                item.members.append(nest)
                break
            if any(_depends(nest, m, overwrites) for m in nests_of(item)):
                items.append(Tree(k, nest.loops[k].extent, [nest]))
                break
        else:
            items.append(Tree(k, nest.loops[k].extent, [nest]))
    for item in items:
        if isinstance(item, Tree):
            item.children = _fuse(item.members, k + 1, overwrites)
    return items


def _depends(nest: Nest, earlier: Nest, overwrites: dict[Nest, Var]) -> bool:
    return any(v in nest.reads for v in earlier.node.outs) or overwrites.get(nest) in earlier.reads


def _fits(nest: Nest, tree: Tree, k: int, overwrites: dict[Nest, Var]) -> bool:
    if tree.extent != nest.loops[k].extent:
        return False
    streams = set(nest.reads).union(*(m.reads for m in tree.members))
    if len(streams) > STREAMS:
        return False
    over = overwrites.get(nest)
    for member in tree.members:
        for var in member.node.outs:
            if var in nest.reads and not _aligned(nest.reads[var], member, k):
                return False
        if over is not None and over in member.reads:
            here = counter(k, tree.extent)
            position = next((p for p, ix in enumerate(nest.out) if ix == here), None)
            if position is None or any(i[position] != here for i in member.reads[over]):
                return False
    return True


def _aligned(indices: set[tuple], writer: Nest, k: int) -> bool:
    """Whether a loop ``k`` shared with ``writer`` reads only the same iteration's results."""
    if k >= writer.parallel_depth:
        return False
    here = counter(k, writer.loops[k].extent)
    position = next(p for p, ix in enumerate(writer.out) if ix == here)
    return all(idx[position] == here for idx in indices)


def paths(items: list[Tree | Nest]) -> dict[Nest, tuple[Tree, ...]]:
    """Return, for each nest, the shared loops around it, outermost first."""
    found: dict[Nest, tuple[Tree, ...]] = {}

    def walk(item: Tree | Nest, above: tuple[Tree, ...]) -> None:
        if isinstance(item, Nest):
            found[item] = above
        else:
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
