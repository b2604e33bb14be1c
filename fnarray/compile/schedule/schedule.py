"""The whole of scheduling: one block in, one frozen plan out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir import Block
from ..target import Limits, Target
from .fuse import fused
from .nests import Nest, Selection, Step
from .order import ordered
from .partition import partitioned
from .plan import Plan, Reason
from .select import select


def schedule(block: Block, sizes: frozenset[int], target: Target) -> Plan:
    """Decide how a program runs on a target.

    Parameters
    ----------
    block : Block
    sizes : frozenset of int
        Sizes of the program's arrays.
    target : Target

    Returns
    -------
    Plan

    Raises
    ------
    UnsupportedOnTarget
        The function of a fold does more than compute with numbers.
    """
    while True:
        reasons: list[Reason] = []
        selection = select(block, target, reasons.append, in_loop=False)
        touched = min(_touched(selection, target.limits, in_loop=False), default=None)
        if touched is None:
            break
        target = replace(target, limits=replace(target.limits, registers=touched - 1))
    order = ordered(selection, block.owned)
    items = fused(order, selection, target.limits, reasons.append)
    regions = partitioned(selection, order, items, target, reasons.append)
    return Plan(block, regions, sizes, target.limits, tuple(reasons))


def _touched(selection: Selection, limits: Limits, *, in_loop: bool) -> Iterator[int]:
    """Yield the sizes of vectors that would live in registers although a loop runs over them.

    Registers have no index: each turn of the loop around would write them out first, element by
    element, and read them back.
    """
    for s in selection.statements:
        if isinstance(s, Step):
            for body in s.bodies:
                yield from _touched(body, limits, in_loop=True)
        elif in_loop and s not in selection.unrolled:
            yield from (n for n in _indexed(s) if limits.vector <= n <= limits.registers)


def _indexed(nest: Nest) -> Iterator[int]:
    """Yield the sizes of arrays of which a nest reads or writes more than one place."""
    places = [
        (nest.node.out, nest.out),
        *((v, i) for v, found in nest.reads.items() for i in found),
    ]
    for var, idx in places:
        if not all(isinstance(ix, int) for ix in idx):
            yield var.aval.size
