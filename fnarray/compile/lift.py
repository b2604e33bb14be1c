"""What every turn of a loop would compute alike is computed once, before the loop."""

from __future__ import annotations

from typing import Final

from ..core.forms import Contract, Inline, Library, Map, Reduce, Scan, Update, While, form_of
from ..core.graph import Eqn, Graph, Literal, Var, eqn_effects

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
    stays = [eqn for eqn in body.eqns if not any(eqn is m for m in moved)]
    read = {a for eqn in stays for a in eqn.invars if isinstance(a, Var)}
    read.update(a for a in body.outvars if isinstance(a, Var))
    results = tuple(v for eqn in moved for v in eqn.outvars if v in read)
    first, rest = body.invars[:count], body.invars[count:]
    before = Graph((), first, _needed(alike, results), results)
    return before, Graph(body.constvars, (*first, *results, *rest), tuple(stays), body.outvars)


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
