"""The whole of scheduling: one block in, one frozen plan out."""

from __future__ import annotations

from ..ir import Block
from ..target import Target
from .fuse import fused
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
    reasons: list[Reason] = []
    selection = select(block, target, reasons.append, in_loop=False)
    order = ordered(selection)
    items = fused(order, selection.unrolled, target.limits, reasons.append)
    regions = partitioned(selection, order, items, target, reasons.append)
    return Plan(block, regions, sizes, tuple(reasons))
