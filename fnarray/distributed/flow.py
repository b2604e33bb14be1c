"""Control flow on blocks: bodies are graphs on blocks, whose carry stays cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.forms import Branch, Scan, While
from ..core.graph import eval_graph
from ..core.primitive import Primitive
from ..core.trace import bind
from ..transforms.graphs import Derived, recorded
from .blocks import Flow, Mapped, Spec, Value


def _carried(body: Callable[[list[Spec]], list[Spec]], carry: list[Spec]) -> list[Spec]:
    """Return how a carry is cut: as it comes in; or as the body leaves it, if it comes in whole.

    The body must keep it so: else it would be put together in each turn.
    """
    found = body(carry)
    aims = [c if any(c) else f for c, f in zip(carry, found, strict=True)]
    return aims if aims != carry and body(aims) == aims else carry


def _scan(
    m: Mapped, prim: Primitive, form: Scan, values: list[Value], params: dict[str, Any]
) -> list[Value]:
    nc, ni = form.num_consts, form.num_consts + form.num_carry
    specs = [v.spec for v in values]
    specs[ni:] = [((), *s[1:]) for s in specs[ni:]]  # turns follow each other
    rest, body = [s[1:] for s in specs[ni:]], form.body

    def left(carry: list[Spec]) -> list[Spec]:
        return m.graph(body, [*specs[:nc], *carry, *rest], body.in_avals)[1][: form.num_carry]

    specs[nc:ni] = _carried(left, specs[nc:ni])
    blocks = [m.to(v, s) for v, s in zip(values, specs, strict=True)]
    bodies = [*specs[:ni], *rest]
    free, found = m.graph(body, bodies, body.in_avals)
    if found[: form.num_carry] != specs[nc:ni]:
        aims = [*specs[nc:ni], *found[form.num_carry :]]
        free, found = m.graph(body, bodies, body.in_avals, aims)
    held = list(free.consts)
    params = {**params, "jaxpr": free.graph, "num_consts": nc + len(held)}
    outs = bind(prim, *held, *blocks, **params)
    results = [*specs[nc:ni], *(((), *s) for s in found[form.num_carry :])]
    return [Value(o, s) for o, s in zip(outs, results, strict=True)]


def _while(
    m: Mapped, prim: Primitive, form: While, values: list[Value], params: dict[str, Any]
) -> list[Value]:
    nc, nb = form.cond_nconsts, form.body_nconsts
    specs = [v.spec for v in values]

    def left(carry: list[Spec]) -> list[Spec]:
        return m.graph(form.body, [*specs[nc : nc + nb], *carry], form.body.in_avals)[1]

    carry = specs[nc + nb :] = _carried(left, specs[nc + nb :])
    cond, _ = m.graph(form.cond, [*specs[:nc], *carry], form.cond.in_avals, [()])
    body, _ = m.graph(form.body, specs[nc:], form.body.in_avals, carry)
    blocks = [m.to(v, s) for v, s in zip(values, specs, strict=True)]
    operands = [
        *cond.consts, *blocks[:nc], *body.consts, *blocks[nc : nc + nb], *blocks[nc + nb :]
    ]  # fmt: skip
    params = {
        **params,
        "cond_jaxpr": cond.graph,
        "body_jaxpr": body.graph,
        "cond_nconsts": nc + len(cond.consts),
        "body_nconsts": nb + len(body.consts),
    }
    return [Value(o, s) for o, s in zip(bind(prim, *operands, **params), carry, strict=True)]


def _cond(
    m: Mapped, prim: Primitive, form: Branch, values: list[Value], params: dict[str, Any]
) -> list[Value]:
    which, *rest = values
    specs = [v.spec for v in rest]
    ways = [m.graph(b, specs, b.in_avals)[1] for b in form.branches]
    aims = [s[0] if len(set(s)) == 1 else ((),) * len(s[0]) for s in zip(*ways, strict=True)]
    made = [m.graph(b, specs, b.in_avals, aims)[0] for b in form.branches]
    held = [c for d in made for c in d.consts]
    if held:  # branches take the same operands: each gets those of the others, too
        made = [_widened(made, k) for k in range(len(made))]
    branches = tuple(d.graph for d in made)
    blocks = [m.whole(which), *held, *(v.x for v in rest)]
    outs = bind(prim, *blocks, **{**params, "branches": branches})
    return [Value(o, s) for o, s in zip(outs, aims, strict=True)]


def _widened(made: Sequence[Derived], k: int) -> Derived:
    counts = [len(d.consts) for d in made]
    before, own = sum(counts[:k]), counts[k]
    graph = made[k].graph
    avals = [c.aval for d in made for c in d.consts]

    def fun(*xs: Any) -> list[Any]:
        args = [*xs[before : before + own], *xs[len(avals) :]]
        return eval_graph(graph.jaxpr, graph.consts, args, bind)

    return recorded(fun, [*avals, *graph.in_avals[own:]], graph.jaxpr.debug_name)


#: By form.
FLOW: dict[type, Flow] = {Scan: _scan, While: _while, Branch: _cond}
