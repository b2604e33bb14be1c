"""Loops nested perfectly run as one counter, where every array they touch allows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from operator import add
from typing import Any

from ...core.forms import Piece
from ...core.graph import Var
from ...core.symbolic import Opaque, substitute, variable
from ..ir import Node
from .access import AccessWalk, Indices
from .nests import Nest, counter, counter_var
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
    offsets = _offsets(nest.reads, places)
    if nest.parallel_depth > first or nest.in_memory:
        offsets += _offsets({nest.node.out: {nest.out}}, places)
    extents = [loop.extent for loop in nest.loops]
    return _evenly(extents, first, last, (*offsets, *nest.values))


def laid_out(
    node: Node, piece: Piece, inlined: Mapping[Var, Node], places: Mapping[Var, Place]
) -> tuple[int, ...]:
    """Return over how many axes of a piece that is laid out each counter runs, outermost first."""
    extents = piece.extents
    counters = [counter(k, n) if n > 1 else 0 for k, n in enumerate(extents)]
    walk = AccessWalk(inlined)
    walk.visit(node.ins[piece.operand], tuple(map(add, piece.start, counters)))
    at = tuple(o + i * k for o, i, k in zip(piece.offset, counters, piece.stride, strict=True))
    indices = (
        *_offsets(walk.reads, places), *_offsets({node.out: {at}}, places), *walk.values,
    )  # fmt: skip
    runs: list[int] = []
    for k in range(len(extents)):
        if runs and _evenly(extents, k - runs[-1], k, indices):
            runs[-1] += 1
        else:
            runs.append(1)
    return tuple(runs)


def _offsets(reads: Mapping[Var, Iterable[Indices]], places: Mapping[Var, Place]) -> list[Any]:
    """Return where elements lie; a register of a shared loop lies nowhere."""
    return [
        sum((i * s for i, s in zip(idx, strides_of(places, var), strict=True)), 0)
        for var, indices in reads.items()
        if var in places
        for idx in indices
    ]


def _evenly(extents: Sequence[int], first: int, last: int, indices: Iterable[Any]) -> bool:
    """Whether indices are even in one counter for loops ``first`` to ``last``."""
    total = prod(extents[first : last + 1])
    if not total:
        return False
    flat = variable("flat", total)
    values: dict[Any, Any] = {}
    for k in range(last, first - 1, -1):
        n = extents[k]
        values[counter_var(k, n)] = flat % n if k > first else flat
        flat = flat // n

    def plain(ix: Any) -> bool:
        ix = substitute(ix, values)
        return isinstance(ix, int) or not any(isinstance(a, Opaque) for a in ix.terms)

    return all(map(plain, indices))
