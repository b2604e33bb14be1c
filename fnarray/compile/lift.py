"""What every turn of a loop would compute alike is computed once, before the loop.

What takes less than to read it is computed in the loop: places that are counted, for masks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..core.forms import (
    Contract,
    Inline,
    Iota,
    Library,
    Map,
    Reduce,
    Reindex,
    Scan,
    Update,
    While,
    form_of,
)
from ..core.graph import Atom, Eqn, Graph, Literal, Var, eqn_effects
from .ir import Block, Node

#: The cost of a map from which on it is worth an array, as in `core.forms.Map`.
_DEAR: Final = 8
#: Elements that a result may have in any case; a larger one has twice those of all constants.
_ROOM: Final = 1 << 16


def parted(body: Graph, count: int) -> tuple[Graph, Graph] | None:
    """Part a loop's body from what depends on its first inputs alone, which no turn changes.

    Arithmetic and moves stay: to read what they give takes as long as they do. What is moved may
    be computed in vain, where the loop takes no turn.

    Returns
    -------
    (before, turn) or None
        ``before`` takes the first ``count`` inputs; ``turn`` takes its results after them. None
        where there is nothing to move.
    """
    same: set[Var] = set(body.invars[:count])
    alike: list[Eqn] = []
    for eqn in body.eqns:
        known = all(isinstance(a, Literal) or a in same for a in eqn.invars)
        if known and not any(eqn_effects(eqn)) and _may_move(eqn):
            alike.append(eqn)
            same.update(eqn.outvars)
    room = max(_ROOM, 2 * sum(v.aval.size for v in body.invars[:count]))
    moved = [eqn for eqn in alike if _is_dear(eqn, room)]
    if not moved:
        return None
    moved = _with_turns(body, moved, alike)
    stays = [eqn for eqn in body.eqns if not any(eqn is m for m in moved)]
    read = {a for eqn in stays for a in eqn.invars if isinstance(a, Var)}
    read.update(a for a in body.outvars if isinstance(a, Var))
    results = tuple(v for eqn in moved for v in eqn.outvars if v in read)
    first, rest = body.invars[:count], body.invars[count:]
    before = Graph((), first, _needed(alike, results), results)
    return before, Graph(body.constvars, (*first, *results, *rest), tuple(stays), body.outvars)


def _with_turns(body: Graph, moved: list[Eqn], alike: list[Eqn]) -> list[Eqn]:
    """Return what is moved, and transposes of it that alone read it: turns would read across rows.

    A Hessian's turns read the product of a matrix with unit vectors by columns.
    """
    made = {v for eqn in moved for v in eqn.outvars}
    kept = {a for a in body.outvars if isinstance(a, Var)}
    for eqn in body.eqns:
        if "permutation" not in eqn.params or not isinstance(form_of(eqn), Reindex):
            kept.update(a for a in eqn.invars if isinstance(a, Var))
    turned = made - kept
    turns = [eqn for eqn in alike if any(a in turned for a in eqn.invars)]
    return [*moved, *turns]


def _needed(eqns: list[Eqn], results: tuple[Var, ...]) -> tuple[Eqn, ...]:
    wanted: set[Var] = set(results)
    kept: list[Eqn] = []
    for eqn in reversed(eqns):
        if any(v in wanted for v in eqn.outvars):
            kept.append(eqn)
            wanted.update(a for a in eqn.invars if isinstance(a, Var))
    return tuple(reversed(kept))


def _may_move(eqn: Eqn) -> bool:
    """Whether an equation may be computed in vain; not what asks to be computed again.

    Where shards meet is no place to move: those that take no turn would wait, or be waited for.
    """
    if eqn.primitive.collective is not None:
        return False
    form = form_of(eqn)
    return not (isinstance(form, While) or (isinstance(form, Inline) and form.apart))


def _is_dear(eqn: Eqn, room: int) -> bool:
    """Whether an equation takes longer than to read its results, which have room."""
    size = sum(v.aval.size for v in eqn.outvars)
    if size > room:
        return False
    form = form_of(eqn)
    if isinstance(form, Inline):
        return any(_is_dear(inner, room) for inner in form.graph.jaxpr.eqns)
    if isinstance(form, Map):
        return form.cost >= _DEAR and size > 1
    return isinstance(form, Contract | Library | Reduce | Scan | Update)


#: How a value is made of nothing but counting: equations in order, the last one its own.
Counted = tuple[Node, ...]


def counted_within(block: Block) -> Block:
    """Return a block whose loops count places themselves that they only compare.

    A mask of them was an array that each turn read. Loops take it as before: those that Python
    turns read it.
    """
    makers: dict[Atom, Counted] = {}
    for node in block.nodes:
        if isinstance(node.form, Iota):
            makers[node.out] = (node,)
        elif isinstance(node.form, Map) and node.form.cost <= 1:  # `arange(1, n)` is one more
            known = [makers.get(a, ()) for a in node.ins if not isinstance(a, Literal)]
            if len(known) == 1 and len(known[0]) == 1:
                makers[node.out] = (*known[0], node)
    return _counting(block, makers)


def _counting(block: Block, makers: Mapping[Any, Counted]) -> Block:
    """Return a block whose loops count what they take of ``makers`` and only compare."""
    nodes = [_loop_counting(node, makers) for node in block.nodes] if makers else block.nodes
    return replace(block, nodes=tuple(nodes))


def _loop_counting(node: Node, makers: Mapping[Any, Counted]) -> Node:
    body = node.bodies[-1] if node.bodies else None
    taken: dict[Atom, Counted] = {v: makers[a] for v, a in _constants(node).items() if a in makers}
    if body is None or not taken:
        return node
    body = _counting(body, taken)
    read = {a for n in body.nodes if not _constants(n) for a in n.ins}
    env: dict[Any, Atom] = {}
    counts: list[Node] = []
    for v, made in taken.items():
        if v in read and _is_compared(v, body):
            names: dict[Var, Atom] = {}
            for old in made:
                new = old.reading(names)
                env[v] = names[old.out] = own = Var(old.out.aval)
                counts.append(new.taking(new.ins, (own,)))
    nodes = (n if _constants(n) else n.reading(env) for n in body.nodes)
    body = replace(body, nodes=(*counts, *nodes))
    return replace(node, bodies=(*node.bodies[:-1], body))


def _constants(node: Node) -> dict[Var, Atom]:
    """Return the operands of a loop that stay as they are, by what its turns call them."""
    form = node.form
    if isinstance(form, Scan):
        return dict(zip(node.bodies[-1].inputs[: form.num_consts], node.ins, strict=False))
    if isinstance(form, While):
        own = node.bodies[-1].inputs[: form.body_nconsts]
        return dict(zip(own, node.ins[form.cond_nconsts :], strict=False))
    return {}


def _is_compared(var: Atom, block: Block) -> bool:
    """Whether all that is done with a value, but to hand it to a loop, is to compare elements."""
    if var in block.outputs:
        return False
    for node in block.nodes:
        if var not in node.ins or _constants(node):
            continue
        if isinstance(node.form, Reindex) and node.form.valid is None and len(node.ins) == 1:
            if not _is_compared(node.out, block):
                return False
        elif not isinstance(node.form, Map) or node.out.aval.dtype.kind != "b":
            return False
    return True
