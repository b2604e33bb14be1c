"""What a plan does, in words and figures."""

from __future__ import annotations

from .emit.blocks import statements_of
from .schedule.fuse import Tree
from .schedule.nests import Nest
from .schedule.plan import Item, Plan
from .schedule.roots import iterations


def plan_text(plan: Plan) -> str:
    """Return the plan as indented text: loops, what they compute, steps."""
    lines: list[str] = []

    def walk(item: Item, level: int) -> None:
        pad = "  " * level
        if isinstance(item, Tree):
            lines.append(f"{pad}for {item.extent}:")
            for child in item.children:
                walk(child, level + 1)
            return
        outs = ", ".join(v.aval.str_short(True) for v in item.node.outs)
        note = ""
        if isinstance(item, Nest) and any(loop.reduced for loop in item.loops):
            note = " (fold)"
        over = [v for v in item.node.outs if v in plan.donated]
        note += " (in place)" if over else ""
        lines.append(f"{pad}{outs} = {item.node.eqn.primitive.name}{note}")

    for item in plan.items:
        walk(item, 0)
    return "\n".join(lines)


def cost(plan: Plan) -> dict[str, float]:
    """Estimate operations and bytes moved of a plan."""
    flops = moved = 0
    inlined = sum(n.out.aval.size for n in plan.inlined.values())
    for s in statements_of(plan):
        flops += iterations(s.node)
        moved += sum(v.aval.size * v.aval.dtype.itemsize for v in s.node.outs)
        moved += sum(v.aval.size * v.aval.dtype.itemsize for v in s.reads)
    return {"flops": float(flops + inlined), "bytes accessed": float(moved)}
