"""Loops nested perfectly run as one counter, where every array they touch allows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from ...core.graph import Var
from ...core.symbolic import Opaque, substitute, variable
from .nests import Nest, counter_var
from .plan import Place, Tree, strides_of


def collapsed(tree: Tree, places: Mapping[Var, Place]) -> Tree:
    """Return a tree whose loops, and those inside, stand for as many loops as they can."""
    last, extents, children = tree.last, tree.extents, tree.children
    while len(children) == 1 and isinstance(children[0], Tree):
        inner = children[0]
        if len(inner.members) != len(tree.members):
            break
        if any(m.loops[last].reduced != m.loops[last + 1].reduced for m in tree.members):
            break
        if not all(_contiguous(m, tree.depth, last + 1, places) for m in tree.members):
            break
        last, extents, children = last + 1, (*extents, *inner.extents), inner.children
    inside = tuple(c if isinstance(c, Nest) else collapsed(c, places) for c in children)
    return replace(tree, last=last, extents=extents, children=inside)


def _contiguous(nest: Nest, first: int, last: int, places: Mapping[Var, Place]) -> bool:
    """Whether one counter for loops ``first`` to ``last`` traverses a nest's arrays evenly."""
    total = prod(nest.loops[k].extent for k in range(first, last + 1))
    if not total:
        return False
    flat = variable("flat", total)
    values: dict[Any, Any] = {}
    for k in range(last, first - 1, -1):
        n = nest.loops[k].extent
        values[counter_var(k, n)] = flat % n if k > first else flat
        flat = flat // n

    def plain(ix: Any) -> bool:
        ix = substitute(ix, values)
        return isinstance(ix, int) or not any(isinstance(a, Opaque) for a in ix.terms)

    def evenly(var: Var, idx: tuple[Any, ...]) -> bool:
        if var not in places:
            return True  # a register of a shared loop
        strides = strides_of(places, var)
        return plain(sum((i * s for i, s in zip(idx, strides, strict=True)), 0))

    if not all(evenly(var, idx) for var, indices in nest.reads.items() for idx in indices):
        return False
    writes = nest.parallel_depth > first or nest.in_memory
    if writes and not evenly(nest.node.out, nest.out):
        return False
    return all(map(plain, nest.values))
