"""What a plan does, in words and figures."""

from __future__ import annotations

from ..core.graph import Var
from .ir import Node
from .schedule.nests import Nest
from .schedule.plan import Item, Plan, Region, Same, Tree, statements_of
from .schedule.work import flops_of


def plan_text(plan: Plan) -> str:
    """Return the plan as indented text: loops, what they compute, steps."""
    lines: list[str] = []
    for region in plan.regions:
        if region.body is None:
            assert region.step is not None
            lines.append(_result(region.step))
        else:
            for item in region.body.items:
                _walk(item, region, 0, lines)
    return "\n".join(lines)


def _walk(item: Item, region: Region, level: int, lines: list[str]) -> None:
    pad = "  " * level
    if isinstance(item, Tree):
        lines.append(f"{pad}for {item.extent}:")
        for child in item.children:
            _walk(child, region, level + 1, lines)
        return
    note = ""
    if isinstance(item, Nest) and any(loop.reduced for loop in item.loops):
        note = " (fold)"
    assert region.body is not None
    if any(isinstance(region.body.places.get(v), Same) for v in item.node.outs):
        note += " (in place)"
    lines.append(f"{pad}{_result(item.node)}{note}")


def _result(node: Node) -> str:
    outs = ", ".join(v.aval.str_short(True) for v in node.outs)
    return f"{outs} = {node.eqn.primitive.name}"


def cost(plan: Plan) -> dict[str, float]:
    """Estimate operations and bytes moved of a plan."""
    flops = moved = 0
    inlined: dict[Var, Node] = {}
    for region in plan.regions:
        if region.step is not None:
            flops += flops_of(region.step)
            arrays = [*region.inputs, *region.outputs]
            moved += sum(v.aval.size * v.aval.dtype.itemsize for v in arrays)
            continue
        assert region.body is not None
        inlined.update(region.body.inlined)
        for s in statements_of(region.body.items):
            flops += flops_of(s.node)
            moved += sum(v.aval.size * v.aval.dtype.itemsize for v in (*s.node.outs, *s.reads))
    flops += sum(flops_of(n) for n in inlined.values())
    return {"flops": float(flops), "bytes accessed": float(moved)}
