"""How a ``while`` is transformed. Reverse mode does not exist: the number of turns is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.avals import ShapedArray
from ..core.axes import collective_axes
from ..core.graph import ClosedGraph
from ..core.keep import remembered
from ..core.primitive import Primitive, RuleOf
from ..core.surgery import rearranged
from ..core.tangents import chosen
from ..core.trace import bind
from ..ops.kit import calls
from ..ops.kit.calls import broadcast_in_dim, concatenate, reduce_or, reshape, select_n
from ..ops.kit.rules import all_spread
from ..transforms.batch import Axis
from ..transforms.graphs import Derived, Flags, batch_graph, recorded, runner
from ._looping import Looping, lanes, over_lanes, over_rows

__all__: list[str] = []


def _counts(params: dict[str, Any]) -> tuple[int, int, int]:
    return params["cond_nconsts"], params["body_nconsts"], len(params["body_jaxpr"].out_avals)


def _turned(
    params: dict[str, Any], body: ClosedGraph, num_consts: int, num_carry: int
) -> dict[str, Any]:
    """Return the params of another body; the condition looks at none of what its carry has more."""
    first, _, n = _counts(params)
    more = body.in_avals[num_consts + n : num_consts + num_carry]
    test = rearranged(params["cond_jaxpr"], (*range(first + n), *more))
    return {**params, "cond_jaxpr": test, "body_jaxpr": body, "body_nconsts": num_consts}


FAMILY = Looping("body_jaxpr", _counts, _turned)


def _linearize(prim: Primitive) -> Any:
    jvp = FAMILY.jvp(prim)

    def linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        outs = bind(prim, *primals, **params)
        # The whole loop runs again beside its tangents: how often it turns is in neither half.
        return outs, jvp(primals, tangents, **params)[1]

    return linearize


def _transpose(cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
        "dynamic start/stop values. Try using lax.scan, or using fori_loop with static start/stop; "
        "a bounded loop may be a scan whose body is a lax.cond, under checkpoint to save memory. "
        "Forward mode (jvp, jacfwd) works."
    )


def _batch(prim: Primitive) -> Any:
    turn_together = FAMILY.batch(prim)

    def batch(axis: Axis, operands: Sequence[Any], batched: Flags, **params: Any) -> Any:
        first, num_consts, _ = _counts(params)
        _, flags = FAMILY.batched(axis, batched, params)
        test = batch_graph(params["cond_jaxpr"], batched[:first] + flags[num_consts:], axis)
        if test.flags[0]:
            return _in_lanes(prim, axis, operands, batched, params)
        k = len(test.consts)
        params |= {"cond_jaxpr": test.graph, "cond_nconsts": k + first}
        return turn_together(axis, [*test.consts, *operands], (False,) * k + batched, **params)

    return batch


# ---- lanes ---------------------------------------------------------------------------------------

#: Lanes in a group that turns together. Too many to be scalars, few enough to stay in the nearest
#: cache: 128 took half the time of 32, and 256 as long, on Newton's method and Collatz' sequence.
WIDTH = 128
#: Lanes that carry more elements than this loop on their own: their arrays fill vectors already.
_SMALL = 16


def _in_lanes(
    prim: Primitive,
    axis: Axis,
    operands: Sequence[Any],
    batched: Flags,
    params: dict[str, Any],
) -> Any:
    """Run lanes whose turns end at different times: none waits for the slowest of all.

    Lanes of little state turn in groups that fill vector registers, until the slowest of a group is
    done; others one by one. Groups, or lanes, are independent and may run at the same time.
    """
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    exchange = axis.name in collective_axes(cond.jaxpr) | collective_axes(body.jaxpr)
    # Lanes at rest, and those that fill the last group up, must not act.
    acts = bool(cond.effects or body.effects)
    if not exchange and (acts or sum(a.size for a in body.out_avals) > _SMALL):
        return lanes(prim, axis, operands, batched, **params)
    # All of the carry differs between lanes, from the first turn or the second on.
    first = params["cond_nconsts"] + params["body_nconsts"]
    operands = [*operands[:first], *all_spread(axis, operands[first:], batched[first:])]
    flags = (*batched[:first], *(True,) * (len(batched) - first))
    # Lanes that exchange values turn together; those at rest take part with their last state.
    if exchange or axis <= WIDTH:
        outs = _together(prim, axis, operands, flags, **params)
        return outs, (True,) * len(outs)
    group = _group(
        prim,
        tuple(
            x.aval.update(shape=x.shape[1:]) if f else x.aval
            for x, f in zip(operands, flags, strict=True)
        ),
        flags,
        tuple(params.items()),
    )
    groups = -(-axis // WIDTH)
    shared = [x for x, f in zip(operands, flags, strict=True) if not f]
    rows = [_grouped(x, axis, groups) for x in chosen(flags, operands)]
    outs = over_rows(group.graph, [*group.consts, *shared], rows, groups)
    flat = [reshape(o, (groups * WIDTH, *o.shape[2:])) for o in outs]
    return [_first(o, axis) for o in flat], (True,) * len(outs)


def _grouped(x: Any, size: int, groups: int) -> Any:
    """Return a batch as rows of groups; the last lane fills the last group up."""
    missing = groups * WIDTH - size
    if missing:
        last = calls.slice(x, (size - 1, *(0,) * (x.ndim - 1)), x.shape)
        filling = broadcast_in_dim(last, (missing, *x.shape[1:]), range(x.ndim))
        x = concatenate((x, filling), 0)
    return reshape(x, (groups, WIDTH, *x.shape[1:]))


def _first(x: Any, size: int) -> Any:
    """Return the first rows of an array."""
    if x.shape[0] == size:
        return x
    return calls.slice(x, (0,) * x.ndim, (size, *x.shape[1:]))


@remembered(1024)
def _group(
    prim: Primitive,
    avals: tuple[ShapedArray, ...],
    flags: Flags,
    items: tuple[tuple[str, Any], ...],
) -> Derived:
    """Return the graph of one group's loop: what is the same for all lanes, then the lanes'."""
    same = [a for a, f in zip(avals, flags, strict=True) if not f]
    own = [a.update(shape=(WIDTH, *a.shape)) for a, f in zip(avals, flags, strict=True) if f]

    def fun(*args: Any) -> list[Any]:
        shared, rows = iter(args[: len(same)]), iter(args[len(same) :])
        operands = [next(rows) if f else next(shared) for f in flags]
        return _together(prim, Axis(WIDTH), operands, flags, **dict(items))

    return recorded(fun, [*same, *own], "lanes")


def _together(
    prim: Primitive,
    axis: Axis,
    operands: Sequence[Any],
    flags: Flags,
    *,
    cond_jaxpr: ClosedGraph,
    cond_nconsts: int,
    body_jaxpr: ClosedGraph,
    body_nconsts: int,
) -> list[Any]:
    """Turn lanes together until all are done; lanes that are done keep their state."""
    nc, nb = cond_nconsts, body_nconsts
    every = (True,) * len(body_jaxpr.out_avals)
    test = batch_graph(cond_jaxpr, (*flags[:nc], *every), axis, (True,))
    step = batch_graph(body_jaxpr, (*flags[nc : nc + nb], *every), axis, every)
    tests = [*test.consts, *operands[:nc]]
    consts = [*step.consts, *operands[nc : nc + nb]]
    carry = operands[nc + nb :]
    going = runner(test.graph)(*tests, *carry)
    n, m = len(tests), len(consts)

    def turn(*args: Any) -> list[Any]:
        pred, state = args[n + m], args[n + m + 1 :]
        after = [
            select_n(over_lanes(pred, old), old, new)
            for old, new in zip(state, runner(step.graph)(*args[n : n + m], *state), strict=True)
        ]
        return [*runner(test.graph)(*args[:n], *after), *after]

    start = [*going, *carry]
    avals = [x.aval for x in (*tests, *consts, *start)]
    turned = recorded(turn, avals, "turn")
    some = recorded(lambda pred, *state: [reduce_or(pred, (0,))], [x.aval for x in start], "some")
    outs = bind(
        prim,
        *turned.consts,
        *tests,
        *consts,
        *start,
        cond_jaxpr=some.graph,
        cond_nconsts=0,
        body_jaxpr=turned.graph,
        body_nconsts=len(turned.consts) + n + m,
    )
    return outs[1:]


LINEARIZE, BATCH = map(RuleOf, (_linearize, _batch))
TRANSPOSE = _transpose
