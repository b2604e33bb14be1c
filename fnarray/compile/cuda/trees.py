"""Shapes of trees of loops over a grid, and what they read and write in line."""

from __future__ import annotations

from math import prod
from typing import Any

from ...core.forms import Reduce
from ...core.graph import Var
from ...core.symbolic import Ix, LoopVar, substitute, variable
from ..emit.loops import split
from ..emit.values import Counters, Storage
from ..schedule.nests import Nest, counter_var
from ..schedule.plan import Tree
from .values import GridValues

#: Inner loops of at least this many iterations are shared by the lanes of a block.
WIDE = 32


def fold_of(nest: Nest) -> Reduce:
    """Return the fold of a nest that has one."""
    assert nest.fold is not None
    return nest.fold


def folded_in(tree: Tree) -> list[Nest]:
    """Return the nests whose folding begins with a tree's loop."""
    return [m for m in tree.members if m.parallel_depth == tree.depth < len(m.loops)]


def _only(tree: Tree) -> Tree | None:
    """Return the one loop that is all of what a tree's loop holds."""
    child = tree.children[0] if len(tree.children) == 1 else None
    whole = isinstance(child, Tree) and len(child.members) == len(tree.members)
    return child if whole and isinstance(child, Tree) else None


def chain_of(tree: Tree) -> list[Tree]:
    """Return the loops, one inside another, that no member folds."""
    chain = [tree]
    while (child := _only(chain[-1])) is not None:
        if any(m.parallel_depth <= child.depth for m in child.members):
            break
        chain.append(child)
    return chain


def perfect(tree: Tree) -> list[Tree]:
    """Return the loops, one inside another, that each member folds all of, or none."""
    chain = [tree]
    while (child := _only(chain[-1])) is not None:
        last = chain[-1].depth
        if any(m.loops[last].reduced != m.loops[child.depth].reduced for m in child.members):
            break
        chain.append(child)
    return chain


def extents_of(chain: list[Tree]) -> tuple[int, ...]:
    """Return the extents of loops, one inside another."""
    return tuple(n for t in chain for n in t.extents)


def in_line(tree: Tree) -> bool:
    """Whether neighbouring iterations of an inner loop read neighbours in the largest of arrays."""
    chain = perfect(tree)
    if prod(extents_of(chain)) < WIDE:
        return False
    last = LoopVar(f"L{chain[-1].last}", chain[-1].extents[-1])
    largest = max((v.aval.size for m in tree.members for v in m.reads), default=0)
    for nest in tree.members:
        for var, indices in nest.reads.items():
            for idx in indices if var.aval.size == largest else ():
                if idx and isinstance(idx[-1], Ix) and last in idx[-1].terms:
                    return True
    return False


def _made(tree: Tree) -> set[Var]:
    return {v for m in tree.members for v in m.node.outs}


def read_in_line(tree: Tree, flat: Any, values: GridValues) -> list[Var]:
    """Return what a loop reads at its counter and nowhere else."""
    at: dict[Var, set[Any]] = {}
    made, counters = _made(tree), (*split(tree.extents, flat),)
    for nest in tree.members:
        here = known(nest, counters)
        for var, indices in nest.reads.items():
            if var in values.storage and var not in made:
                found = {values.storage[var].offset(here(idx)) for idx in indices}
                at.setdefault(var, set()).update(found)
    return [v for v, found in at.items() if found == {flat} and v.aval.size == tree.extent]


def crossed(chain: list[Tree], values: GridValues) -> bool:
    """Whether the last loop but one, and not the last, goes along an array in memory that is read.

    Then lanes side by side in the last would each read a line of memory of their own.
    """
    extents = extents_of(chain)
    if len(extents) < 2 or min(extents[-2:]) < WIDE:
        return False
    row, column = LoopVar("row", extents[-2]), LoopVar("column", extents[-1])
    outer = split(extents[:-2], variable("outer", prod(extents[:-2]))) if extents[2:] else []
    counters = (*outer, Ix({row: 1}), Ix({column: 1}))
    made = _made(chain[0])
    for nest in chain[-1].members:
        here = known(nest, counters)
        for var, indices in nest.reads.items():
            for idx in indices if var in values.storage and var not in made else ():
                at = values.storage[var].offset(here(idx))
                terms = at.terms if isinstance(at, Ix) else {}
                if terms.get(row) == 1 and terms.get(column, 0) > 1:
                    return True
    return False


def in_lines(tree: Tree, flat: Any, values: GridValues) -> tuple[list[Var], list[Var]]:
    """Return what a loop reads, and writes, at its counter and nowhere else."""
    read = read_in_line(tree, flat, values)
    reads = {v for m in tree.members for v in m.reads if v in values.storage} - _made(tree)
    counters = (*split(tree.extents, flat),)
    written: list[Var] = []
    for nest in tree.members:
        for var in nest.node.outs:
            if var in values.storage:
                store = values.storage[var]
                shared = any(s.name == store.name for v, s in values.storage.items() if v in reads)
                twice = any(store.name == values.storage[v].name for v in written)
                if store.offset(known(nest, counters)(nest.out)) != flat or shared or twice:
                    return [], []  # an overlay is laid over another's elements
                written.append(var)
    return read, written


def known(nest: Nest, counters: Counters) -> Any:
    """Return what spells indices in a nest's loops in the counters that stand for them."""
    at: dict[Any, Any] = {
        counter_var(k, loop.extent): counters[k] for k, loop in enumerate(nest.loops)
    }
    return lambda idx: tuple(substitute(ix, at) for ix in idx)


def quad(store: Storage, name: str, i: Any, depth: int) -> Storage:
    """Return four elements from ``i`` on, in registers, as the storage of the value they are of."""
    return Storage(name, store.strides, store.base - i, depth)
