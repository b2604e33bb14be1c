"""Which values are computed once and kept, and which are written into their readers' loops."""

from __future__ import annotations

from math import prod

from ...core.forms import (
    Branch,
    Call,
    Contract,
    Iota,
    Map,
    Reduce,
    Reindex,
    Scan,
    Update,
    While,
)
from ...core.graph import Var
from ..simplify import Block, Node, users_of

#: From this cost on (in additions) a value is not computed twice.
DEAR = 8
#: Longest chain of values written into each other, which bounds recursion.
TALL = 48
#: Arrays of up to this many elements live in registers inside loops.
SMALL = 16
#: Contractions of up to this many multiplications are loops rather than library calls.
LIBRARY_FLOPS = {False: 1 << 15, True: 1 << 15}

INLINE = (Map, Iota, Reindex)


def iterations(node: Node) -> int:
    """Return how many times a node's body runs."""
    out = max((v.aval.size for v in node.outs), default=0)
    form = node.form
    if isinstance(form, Reduce):
        return out * prod(form.extents)
    if isinstance(form, Contract):
        return contraction_flops(node)
    if isinstance(form, Update):
        return prod(form.extents)
    return out


def contraction_flops(node: Node) -> int:
    """Return the multiplications of a contraction."""
    lhs = node.ins[0].aval
    return node.out.aval.size * prod(lhs.shape[a] for a in node.form.lhs_contract)


def is_library(node: Node, in_loop: bool) -> bool:
    """Whether a contraction is a library call rather than loops."""
    return isinstance(node.form, Contract) and contraction_flops(node) > LIBRARY_FLOPS[in_loop]


def needs_array(user: Node, var: Var, in_loop: bool) -> bool:
    """Whether a node reads ``var`` as a whole array rather than element by element."""
    form = user.form
    if isinstance(form, Call | Branch | While | Scan) or is_library(user, in_loop):
        return True
    return isinstance(form, Update) and user.ins[0] is var


def choose_roots(block: Block, in_loop: bool) -> set[Node]:
    """Return the nodes whose results are computed by statements of their own.

    The others are maps and reindexings that are cheap, or that are read once per element; they
    are written into the loops that read them.
    """
    users = users_of(block.nodes)
    outputs = {a for a in block.outputs if isinstance(a, Var)}
    cost: dict[Var, int] = {}
    height: dict[Var, int] = {}
    roots: set[Node] = set()
    for node in block.nodes:
        if not isinstance(node.form, INLINE):
            roots.add(node)
            continue
        out = node.out
        own = node.form.cost if isinstance(node.form, Map) else 0
        below = [a for a in node.ins if isinstance(a, Var)]
        cost[out] = own + sum(cost.get(a, 0) for a in below)
        height[out] = 1 + max((height.get(a, 0) for a in below), default=0)
        readers = users.get(out, [])
        repeated = len(readers) > 1 or any(iterations(u) > out.aval.size for u in readers)
        if (
            out in outputs
            or any(needs_array(u, out, in_loop) for u in readers)
            or (in_loop and out.aval.size <= SMALL)
            or (cost[out] >= DEAR and repeated)
            or height[out] > TALL
        ):
            roots.add(node)
            cost[out] = height[out] = 0
    return roots
