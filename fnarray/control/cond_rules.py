"""How a ``cond`` is transformed: into one of transformed branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import Any

from ..core.avals import ShapedArray
from ..core.axes import collective_axes
from ..core.forms import Branch, Library, Loop
from ..core.graph import ClosedGraph
from ..core.keep import remembered
from ..core.primitive import Primitive, RuleOf
from ..core.surgery import rearranged
from ..core.tangents import chosen, nonzero, with_zeros
from ..core.trace import bind, recording
from ..ops.kit.calls import full, ne, select_n
from ..transforms.batch import Axis
from ..transforms.graphs import Derived, Flags, batch_graph, linearize_graph, runner
from ._bodies import Graphs, Holding, alike, common
from ._looping import kept_whole, one_by_one, over_lanes, returned_operands

__all__: list[str] = []

#: The index of the branch comes first.
FAMILY = Holding("branches", first=1)


# ---- reverse -------------------------------------------------------------------------------------


def _linearize(prim: Primitive) -> Any:
    def linearize(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Graphs) -> Any:
        active = nonzero(tangents[1:])
        halves, flags = alike(lambda b, force: linearize_graph(b, active, force), branches)
        index, *rest = primals
        n = len(flags)
        slots, places = _slots(halves)
        consts, graphs = common(
            [
                Derived(_filled(h.primal.graph, n, p, slots), h.primal.consts, ())
                for h, p in zip(halves, places, strict=True)
            ]
        )
        outs = bind(prim, index, *consts, *rest, branches=graphs)
        made, given, backs = _linear_branches(halves, places, slots, active)
        duals = bind(
            prim,
            index,
            *made,
            *(rest[k] for k in given),
            *outs[n:],
            *chosen(active, tangents[1:]),
            branches=backs,
        )
        return outs[:n], with_zeros(flags, duals, branches[0].out_avals)

    return linearize


def _slots(halves: Sequence[Any]) -> tuple[tuple[ShapedArray, ...], list[tuple[int, ...]]]:
    """Return avals for the computed residuals of any one branch, and each branch's places there.

    Only one branch runs, so residuals of different branches share a place if their types agree.
    """
    kinds = [
        [a for a, r in zip(h.linear.in_avals, h.residuals, strict=False) if r is None]
        for h in halves
    ]
    most: Counter[ShapedArray] = reduce(lambda a, b: a | b, (Counter(k) for k in kinds))
    slots = tuple(most.elements())
    places = []
    for avals in kinds:
        free = dict(enumerate(slots))
        mine = []
        for aval in avals:
            place = next(i for i, a in free.items() if a is aval)
            del free[place]
            mine.append(place)
        places.append(tuple(mine))
    return slots, places


@remembered(4096)
def _filled(
    closed: ClosedGraph, n: int, places: tuple[int, ...], slots: tuple[ShapedArray, ...]
) -> ClosedGraph:
    """Return a branch whose residuals come in the common places, zeros in those of others."""
    with recording(closed.jaxpr.debug_name) as trace:
        args = [trace.argument(a, "an operand of cond") for a in closed.in_avals]
        outs = runner(closed)(*args)
        row: list[Any] = [None] * len(slots)
        for place, value in zip(places, outs[n:], strict=True):
            row[place] = value
        rest = [full(a, 0) if x is None else x for x, a in zip(row, slots, strict=True)]
        return trace.close([a.atom for a in args], [*outs[:n], *rest])


def _linear_branches(
    halves: Sequence[Any], places: Any, slots: Any, active: Flags
) -> tuple[list[Any], list[int], Graphs]:
    """Return arrays made by rules, numbers of operands that are residuals, and linear branches.

    Each takes all of these, the computed residuals' places, and the tangents.
    """
    made = [r for h in halves for r in h.residuals if r is not None and not isinstance(r, int)]
    given = sorted({r for h in halves for r in h.residuals if isinstance(r, int)})
    avals = {
        r: a
        for h in halves
        for a, r in zip(h.linear.in_avals, h.residuals, strict=False)
        if isinstance(r, int)
    }
    graphs = []
    for h, mine in zip(halves, places, strict=True):
        inputs: list[Any] = [*(x.aval for x in made), *(avals[k] for k in given), *slots]
        computed = iter(mine)
        for number, r in enumerate(h.residuals):
            if r is None:
                inputs[len(made) + len(given) + next(computed)] = number
            elif isinstance(r, int):
                inputs[len(made) + given.index(r)] = number
            else:
                inputs[next(i for i, x in enumerate(made) if x is r)] = number
        first = len(h.residuals)
        inputs += range(first, first + sum(active))
        graphs.append(rearranged(h.linear, tuple(inputs)))
    return made, given, tuple(graphs)


# ---- batch ---------------------------------------------------------------------------------------


def _batch(prim: Primitive) -> Any:
    of_one_branch = FAMILY.batch(prim)

    def batch(axis: Axis, operands: Sequence[Any], batched: Flags, *, branches: Graphs) -> Any:
        if not batched[0]:
            return of_one_branch(axis, operands, batched, branches=branches)
        meets = any(axis.name in collective_axes(b.jaxpr) for b in branches)
        if any(map(_heavy, branches)) and not meets:
            results = one_by_one(prim, axis, operands, batched, branches=branches)
        else:
            results = _selected(axis, operands, batched, branches)
        return kept_whole(operands[1:], batched[1:], results, _passed_on(branches))

    return batch


@remembered(4096)
def _passed_on(branches: Graphs) -> tuple[int | None, ...]:
    """Return for each result the operand that every branch returns for it, if they do."""
    found = zip(*(returned_operands(b) for b in branches), strict=True)
    return tuple(one[0] if len(set(one)) == 1 else None for one in found)


@remembered(4096)
def _heavy(branch: ClosedGraph) -> bool:
    """Whether a branch is worth skipping: it loops, branches, or calls on whole arrays."""
    return any(isinstance(eqn.form(), Loop | Branch | Library) for eqn in branch.eqns)


def _selected(axis: Axis, operands: Sequence[Any], batched: Flags, branches: Graphs) -> Any:
    """Run all branches, cheap ones, on all lanes; choose results lane by lane."""
    index, *rest = operands
    every = (True,) * len(branches[0].out_avals)
    results = []
    for b in branches:
        d = batch_graph(b, batched[1:], axis, every)
        results.append(runner(d.graph)(*d.consts, *rest))
    which = ne(index, full(index.aval.update(shape=()), 0)) if len(branches) == 2 else index
    outs = [select_n(over_lanes(which, cases[0]), *cases) for cases in zip(*results, strict=True)]
    return outs, every


LINEARIZE, BATCH = map(RuleOf, (_linearize, _batch))
