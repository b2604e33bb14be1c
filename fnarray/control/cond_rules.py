"""How a ``cond`` is transformed: into one of transformed branches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any

from ..core.avals import ShapedArray
from ..core.axes import collective_axes
from ..core.forms import Branch, Call, Scan, While
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive, RuleOf
from ..core.surgery import rearranged
from ..core.tangents import chosen, is_undefined, nonzero, with_zeros
from ..core.trace import bind, recording
from ..ops._derive import full, op
from ..transforms.batch import Axis
from ..transforms.graphs import (
    Derived,
    Flags,
    batch_graph,
    jvp_graph,
    linearize_graph,
    runner,
    transpose_graph,
)
from .call_rules import lanes, over_lanes
from .scan_rules import either

__all__: list[str] = []

Branches = tuple[ClosedGraph, ...]


def common(derived: Sequence[Derived]) -> tuple[list[Any], Branches]:
    """Return the arrays that rules made for any branch, and branches that take them all."""
    consts = [c for d in derived for c in d.consts]
    avals = [c.aval for c in consts]
    graphs, start = [], 0
    for d in derived:
        k, n = len(d.consts), len(d.graph.in_avals)
        before, after = avals[:start], avals[start + k :]
        graphs.append(rearranged(d.graph, (*before, *range(k), *after, *range(k, n))))
        start += k
    return consts, tuple(graphs)


def alike(make: Any, branches: Branches) -> tuple[list[Any], Flags]:
    """Derive all branches so that the same results have a tangent, or the mapped axis, in each."""
    first = [make(b, ()) for b in branches]
    flags = reduce(either, (d.flags for d in first))
    same = all(d.flags == flags for d in first)
    return (first if same else [make(b, flags) for b in branches]), flags


# ---- derivatives ---------------------------------------------------------------------------------


def _jvp(prim: Primitive) -> Any:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches) -> Any:
        active = nonzero(tangents[1:])
        derived, flags = alike(lambda b, force: jvp_graph(b, active, force), branches)
        consts, graphs = common(derived)
        index, *rest = primals
        duals = chosen(active, tangents[1:])
        outs = bind(prim, index, *consts, *rest, *duals, branches=graphs)
        n = len(flags)
        return outs[:n], with_zeros(flags, outs[n:], branches[0].out_avals)

    return jvp


def _linearize(prim: Primitive) -> Any:
    def linearize(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches) -> Any:
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


@lru_cache(maxsize=4096)
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
        return trace.close([a.var for a in args], [*outs[:n], *rest])


def _linear_branches(
    halves: Sequence[Any], places: Any, slots: Any, active: Flags
) -> tuple[list[Any], list[int], Branches]:
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


def _transpose(prim: Primitive) -> Any:
    def transpose(cts: Sequence[Any], index: Any, *operands: Any, branches: Branches) -> list[Any]:
        linear = tuple(map(is_undefined, operands))
        given = nonzero(cts)
        derived = [transpose_graph(b, linear, given, True) for b in branches]
        consts, graphs = common(derived)
        known = [x for x in operands if not is_undefined(x)]
        outs = iter(bind(prim, index, *consts, *known, *chosen(given, cts), branches=graphs))
        return [None, *(next(outs) if f else None for f in linear)]

    return transpose


# ---- batch ---------------------------------------------------------------------------------------


def _batch(prim: Primitive) -> Any:
    def batch(axis: Axis, operands: Sequence[Any], batched: Flags, *, branches: Branches) -> Any:
        if batched[0]:
            meets = any(axis.name in collective_axes(b.jaxpr) for b in branches)
            if any(map(_heavy, branches)) and not meets:
                return lanes(prim, axis, operands, batched, branches=branches)
            return _selected(axis, operands, batched, branches)
        derived, flags = alike(lambda b, force: batch_graph(b, batched[1:], axis, force), branches)
        consts, graphs = common(derived)
        index, *rest = operands
        return bind(prim, index, *consts, *rest, branches=graphs), flags

    return batch


@lru_cache(maxsize=4096)
def _heavy(branch: ClosedGraph) -> bool:
    """Whether a branch is worth skipping: it loops, branches, or calls on whole arrays."""
    return any(isinstance(eqn.form(), Scan | While | Branch | Call) for eqn in branch.eqns)


def _selected(axis: Axis, operands: Sequence[Any], batched: Flags, branches: Branches) -> Any:
    """Run all branches, cheap ones, on all lanes; choose results lane by lane."""
    index, *rest = operands
    every = (True,) * len(branches[0].out_avals)
    results = []
    for b in branches:
        d = batch_graph(b, batched[1:], axis, every)
        results.append(runner(d.graph)(*d.consts, *rest))
    which = op("ne", index, full(index.aval.update(shape=()), 0)) if len(branches) == 2 else index
    outs = [
        op("select_n", over_lanes(which, cases[0]), *cases) for cases in zip(*results, strict=True)
    ]
    return outs, every


JVP, LINEARIZE, TRANSPOSE, BATCH = map(RuleOf, (_jvp, _linearize, _transpose, _batch))
