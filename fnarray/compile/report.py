"""What a plan does, in words and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..core.graph import Var
from .ir import Node
from .schedule.nests import Nest
from .schedule.plan import Body, Item, Plan, Region, Same, Tree, statements_of
from .schedule.work import flops_of, operations_of


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


def label(body: Body) -> str:
    """Return what a kernel does in a few words: operations, and the user's function."""
    nodes = [s.node for s in statements_of(body.items)]
    names = list(dict.fromkeys(n.eqn.primitive.name for n in nodes))
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    places = [n.eqn.source for n in nodes if n.eqn.source.line]
    return f"{shown} in {places[0].function}" if places else shown


def bytes_of(values: Iterable[Var]) -> int:
    """Return how many bytes values take."""
    return sum(v.aval.size * v.aval.dtype.itemsize for v in values)


def peak_bytes(plan: Plan) -> int:
    """Return the most bytes of results and temporaries that are alive at a time.

    What steps of the driver need inside is theirs.
    """
    home: dict[Var, Var] = {}
    names: Counter[Var] = Counter()
    alive = most = 0
    for region in plan.regions:
        made = region.step.outs if region.step is not None else region.outputs
        for var in made:
            donor = region.aliases.get(var)
            home[var] = var if donor is None else home.get(donor, donor)
            names[home[var]] += 1
            alive += bytes_of([var]) if donor is None else 0
        most = max(most, alive)
        for var in region.released:
            if (root := home.get(var)) is not None:
                names[root] -= 1
                alive -= 0 if names[root] or root not in home else bytes_of([root])
    return most


def nodes_of(region: Region) -> list[Node]:
    """Return what a region computes: its statements, and what is written into their loops."""
    if region.body is None:
        assert region.step is not None
        return [region.step]
    inlined = region.body.inlined
    found = (operations_of(s.node, inlined) for s in statements_of(region.body.items))
    return list(dict.fromkeys(n for nodes in found for n in nodes))


def region_cost(region: Region) -> tuple[int, int, int]:
    """Estimate the operations of a region, the additions they take as long as, and bytes moved."""
    if region.view:
        return 0, 0, 0
    nodes = nodes_of(region)
    flops = sum(map(flops_of, nodes))
    additions = sum(flops_of(n, as_additions=True) for n in nodes)
    return flops, additions, bytes_of((*region.inputs, *region.outputs))


def cost(plan: Plan) -> dict[str, float]:
    """Estimate operations and bytes moved of a plan."""
    flops = moved = 0
    inlined: dict[Var, Node] = {}
    for region in plan.regions:
        if region.view:
            continue
        if region.step is not None:
            flops += flops_of(region.step)
            moved += bytes_of((*region.inputs, *region.outputs))
            continue
        assert region.body is not None
        inlined.update(region.body.inlined)
        for s in statements_of(region.body.items):
            flops += flops_of(s.node)
            moved += bytes_of((*s.node.outs, *s.reads))
    flops += sum(flops_of(n) for n in inlined.values())
    return {"flops": float(flops), "bytes accessed": float(moved)}
