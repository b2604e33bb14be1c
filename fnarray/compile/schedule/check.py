"""Invariants of a plan, one function each, run between stages under ``FNARRAY_VERIFY=1``."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.graph import Var
from .nests import Statement
from .plan import Arms, Body, Plan, Region, Same, Tree, Turns, statements_of


def check_regions_read_what_is_there(plan: Plan) -> None:
    """A region reads inputs of the program and results of earlier regions, not yet released."""
    known = set(plan.block.inputs)
    for region in plan.regions:
        for var in region.inputs:
            assert var in known, f"{_name(region)} reads {var}, which no region before it makes"
        known.update(region.outputs)
        known.difference_update(region.released)
    for atom in plan.block.outputs:
        assert not isinstance(atom, Var) or atom in known, f"the result {atom} is never made"


def check_values_are_made_before_they_are_read(plan: Plan) -> None:
    """Statements of a body read its inputs, or what statements before them make."""
    for region, body in _bodies(plan):
        made = {v for s in statements_of(body.items) for v in s.node.outs}
        written: set[Var] = set()
        for s in statements_of(body.items):
            for var in s.reads:
                early = var in made and var not in written
                assert not early, f"{_name(region)}: {s.node.eqn.primitive} reads {var} too early"
            written.update(s.node.outs)


def check_places_end_in_storage(plan: Plan) -> None:
    """A value that lies where another does is led to an array, and not in a circle."""
    for region, body in _bodies(plan):
        for first in body.places:
            var, steps = first, 0
            while isinstance(place := body.places.get(var), Same):
                var, steps = place.var, steps + 1
                assert steps <= len(body.places), f"{_name(region)}: places of {first} go round"


def check_nothing_is_read_after_it_is_overwritten(plan: Plan) -> None:
    """No statement outside of the loops of an overwriting one reads the old value after it."""
    for region, body in _bodies(plan):
        order = {s: k for k, s in enumerate(statements_of(body.items))}
        trees = _trees(body)
        for s, k in order.items():
            for var in s.node.outs:
                place = body.places.get(var)
                if not isinstance(place, Same) or place.var not in s.reads or var in body.filled:
                    continue
                late = [
                    r
                    for r, at in order.items()
                    if at > k and place.var in r.reads and trees.get(r, r) is not trees.get(s, s)
                ]
                assert not late, f"{_name(region)}: {place.var} is read after {var} replaced it"


def check_loops_stand_for_members(plan: Plan) -> None:
    """All members of a fused loop have the loops that it stands for, of its extents."""
    for region, body in _bodies(plan):
        for tree in _every_tree(body):
            for nest in tree.members:
                extents = tuple(nest.loops[k].extent for k in range(tree.depth, tree.last + 1))
                assert extents == tree.extents, f"{_name(region)}: {nest.node} has other loops"


CHECKS = (
    check_regions_read_what_is_there,
    check_values_are_made_before_they_are_read,
    check_places_end_in_storage,
    check_nothing_is_read_after_it_is_overwritten,
    check_loops_stand_for_members,
)


def check_plan(plan: Plan) -> None:
    """Run every check on a plan.

    Raises
    ------
    AssertionError
        An invariant does not hold: a fault of the scheduler.
    """
    for check in CHECKS:
        check(plan)


def _bodies(plan: Plan) -> Iterator[tuple[Region, Body]]:
    """Yield every body, those of loops and branches included, with its region."""
    for region in plan.regions:
        stack = [region.body] if region.body is not None else []
        while stack:
            body = stack.pop()
            yield region, body
            for flow in body.flows.values():
                if isinstance(flow, Arms):
                    stack.extend(arm.body for arm in flow.arms)
                elif isinstance(flow, Turns):
                    stack.extend(b for b in (flow.test, flow.body) if b is not None)


def _trees(body: Body) -> dict[Statement, Tree]:
    return {m: item for item in body.items if isinstance(item, Tree) for m in item.members}


def _every_tree(body: Body) -> Iterator[Tree]:
    stack = [item for item in body.items if isinstance(item, Tree)]
    while stack:
        tree = stack.pop()
        yield tree
        stack.extend(c for c in tree.children if isinstance(c, Tree))


def _name(region: Region) -> str:
    node = region.step or (statements_of(region.body.items)[0].node if region.body else None)
    return f"the region of {node.eqn.primitive} at {node.eqn.source}" if node else "a region"
