"""How much work a loop is, in the time that a vector unit takes to add two float32 to another two.

Measured on a Zen 4 with 512-bit vectors, one thread, arrays in the second cache: a unit is 0.04 ns
(``x + y`` 0.12 ns an element, three streams and an addition; tanh 0.57, an equation of state of 190
operations 10).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import inf, prod
from typing import Final, cast

from ...core.forms import (
    Branch,
    Contract,
    Iota,
    Lanes,
    Library,
    Map,
    Overlay,
    Pieces,
    Reduce,
    Reindex,
    Scan,
    Update,
    While,
)
from ...core.graph import Var
from ..ir import Block, Node
from ..target import Limits
from .nests import Nest
from .plan import Tree

#: Reading an element and writing it elsewhere, neither in a near cache.
_COPY: Final = 8
#: An operation on one number alone, in a loop whose turns wait for each other.
_SCALAR: Final = 8


def iterations(node: Node) -> int:
    """Return how many times a node's body runs."""
    outs, form = node.outs, node.form
    out = outs[0].aval.size if len(outs) == 1 else max((v.aval.size for v in outs), default=0)
    if type(form) is Map:
        return out
    if isinstance(form, Reduce):
        return out * prod(form.extents)
    if isinstance(form, Contract):
        return products_of(node)
    if isinstance(form, Update | Overlay):
        return prod(form.extents)
    return out


def products_of(node: Node) -> int:
    """Return how many products a contraction adds up."""
    form: Contract = node.form
    lhs = node.ins[0].aval
    return node.out.aval.size * prod(lhs.shape[a] for a in form.lhs_contract)


def flops_of(node: Node, *, as_additions: bool = False) -> int:
    """Return the operations of a node: two for each product added up, none for moving elements.

    A loop counts its turns where they are known, else one; of branches the longest counts. A
    library step of which they are not known counts none: `is_counted` says whether there is one.

    Parameters
    ----------
    as_additions : bool
        Whether a function such as ``exp`` counts as the additions that it takes as long as.
    """
    form = node.form
    bodies = [
        sum(flops_of(n, as_additions=as_additions) for n in block.nodes) for block in node.bodies
    ]
    if isinstance(form, Branch):
        return max(bodies)
    within = sum(bodies)
    if isinstance(form, Scan):
        return form.length * within
    if isinstance(form, Lanes):
        return form.count * within
    if isinstance(form, Contract):
        return 2 * products_of(node)
    if isinstance(form, Reduce):
        # A term that is more than an operand or an index is computed before it is folded.
        computed = sum(not re.fullmatch(r"\{r?\d+\}", term) for term in form.terms)
        return iterations(node) * (max(within, 1) + computed)
    if isinstance(form, Library):
        return form.flops or 0
    if isinstance(form, Pieces | Iota | Reindex):
        return 0
    cost = form.cost if as_additions and isinstance(form, Map) else 1
    return within or iterations(node) * cost


def is_counted(node: Node) -> bool:
    """Whether `flops_of` a node are those of a run: turns of a ``while`` are not known before."""
    form = node.form
    if isinstance(form, While) or (isinstance(form, Library) and form.flops is None):
        return False
    return all(is_counted(n) for block in node.bodies for n in block.nodes)


def operations_of(node: Node, inlined: Mapping[Var, Node]) -> set[Node]:
    """Return a node and those written into its loops."""
    stack, seen = [node], {node}
    while stack:
        for atom in stack.pop().eqn.invars:
            inner = inlined.get(cast("Var", atom))  # no literal is one
            if inner is not None and inner not in seen:
                seen.add(inner)
                stack.append(inner)
    return seen


def work_of(nodes: Iterable[Node]) -> int:
    """Estimate the work of one element of each node; moving elements costs nothing."""
    return sum(map(_cost, nodes))


def _cost(node: Node) -> int:
    form = node.form
    if isinstance(form, Map):
        return form.cost
    return 0 if isinstance(form, Iota | Reindex) else 1


def tree_work(tree: Tree, inlined: Mapping[Var, Node]) -> int:
    """Estimate the work of a loop and of what is inside."""
    return sum(_nest_work(m, inlined) for m in tree.members)


def _nest_work(nest: Nest, inlined: Mapping[Var, Node]) -> int:
    streams = 1 + sum(map(len, nest.reads.values()))
    words = max(nest.node.out.aval.dtype.itemsize // 4, 1)
    turns = iterations(nest.node)
    # What does not change with every turn is computed before the loop: edges of bins, a mean.
    steps = sum(min(turns, iterations(n)) * _cost(n) for n in operations_of(nest.node, inlined))
    return (steps + turns * streams) * words


def turn_work(block: Block) -> int:
    """Estimate the work of a loop's turn that threads can share, less what copying would cost.

    A kernel updates arrays that it carries in place; the driver's turns begin with a copy of them.
    """
    total = 0
    for node in block.nodes:
        form = node.form
        words = max(node.out.aval.dtype.itemsize // 4, 1) if node.outs else 0
        if isinstance(form, Update | Overlay):
            total -= _COPY * node.out.aval.size * words
        elif isinstance(form, Map | Reduce | Contract):
            total += iterations(node) * _cost(node) * words
    return total


def row_work(block: Block, limits: Limits) -> int:
    """Estimate the work of a turn of a loop."""
    total = 0
    for node in block.nodes:
        form = node.form
        turns = form.length if isinstance(form, Scan) else 1
        turns = limits.turns if isinstance(form, While) else turns
        total += _SCALAR * max((v.aval.size for v in node.outs), default=1)
        total += turns * sum(row_work(b, limits) for b in node.bodies)
    return total


def is_brief(node: Node, limits: Limits) -> bool:
    """Whether a watched loop surely ends before it is time to tell how far it is.

    Those of 0.04 ms by the estimate, which may be a hundred times too low where numbers are
    gathered from memory; 1.3 ms without a carry, as threads take those in parts otherwise.
    """
    form: Scan = node.form
    if form.watch is None:
        return True
    most = limits.parallel if form.num_carry else 32 * limits.parallel
    return form.watch.every > 0 and _bound(node) < most


def _bound(node: Node) -> float:
    """Return work that a node surely does not exceed by much."""
    form = node.form
    if isinstance(form, Library | While | Lanes):
        return inf
    turns = form.length if isinstance(form, Scan) else 1
    within = sum(_bound(n) for block in node.bodies for n in block.nodes)
    return turns * within + _SCALAR * iterations(node) * max(_cost(node), 1)
