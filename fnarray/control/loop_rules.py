"""How a ``while`` is transformed. Reverse mode does not exist: the number of turns is not known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from ..core.avals import ShapedArray
from ..core.axes import collective_axes
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive, RuleOf
from ..core.surgery import rearranged
from ..core.tangents import chosen, nonzero, with_zeros
from ..core.trace import bind
from ..ops._derive import all_spread, instantiate, op, reshape
from ..transforms.batch import Axis
from ..transforms.graphs import (
    Derived,
    Flags,
    batch_graph,
    jvp_graph,
    recorded,
    runner,
)
from .call_rules import lanes, over_lanes, row_by_row
from .scan_rules import settled, spread_where

__all__: list[str] = []


def _jvp(prim: Primitive) -> Any:
    def jvp(
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        cond_jaxpr: ClosedGraph,
        cond_nconsts: int,
        body_jaxpr: ClosedGraph,
        body_nconsts: int,
    ) -> Any:
        nc, nb = cond_nconsts, body_nconsts
        tests, consts, carry = primals[:nc], primals[nc : nc + nb], primals[nc + nb :]
        d, active = settled(partial(jvp_graph, body_jaxpr), nonzero(tangents[nc:]), nb, len(carry))
        duals = [instantiate(t) for t in chosen(active, tangents[nc:])]
        of_consts = duals[: sum(active[:nb])]
        of_carry = duals[len(of_consts) :]
        k, n, m = len(d.consts), len(carry), len(of_consts)
        first = k + nb + n  # the graph's inputs: consts, the body's, then all tangents
        order = (
            *range(k + nb),
            *range(first, first + m),
            *range(k + nb, first),
            *range(first + m, first + m + len(of_carry)),
        )
        extra = tuple(c.aval for c in of_carry)
        outs = bind(
            prim,
            *tests,
            *d.consts,
            *consts,
            *of_consts,
            *carry,
            *of_carry,
            cond_jaxpr=rearranged(cond_jaxpr, (*range(nc + n), *extra)),
            cond_nconsts=nc,
            body_jaxpr=rearranged(d.graph, order),
            body_nconsts=k + nb + m,
        )
        return outs[:n], with_zeros(d.flags, outs[n:], [o.aval for o in outs[:n]])

    return jvp


def _linearize(prim: Primitive) -> Any:
    jvp = _jvp(prim)

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
    def batch(
        axis: Axis,
        operands: Sequence[Any],
        batched: Flags,
        *,
        cond_jaxpr: ClosedGraph,
        cond_nconsts: int,
        body_jaxpr: ClosedGraph,
        body_nconsts: int,
    ) -> Any:
        nc, nb = cond_nconsts, body_nconsts

        def make(flags: Flags, forced: Flags) -> Derived:
            return batch_graph(body_jaxpr, flags, axis, forced)

        d, flags = settled(make, batched[nc:], nb, len(body_jaxpr.out_avals))
        carried = flags[nb:]
        test: Derived = batch_graph(cond_jaxpr, (*batched[:nc], *carried), axis)
        if test.flags[0]:
            return _in_lanes(prim, axis, operands, batched, cond_jaxpr, nc, body_jaxpr, nb)
        outs = bind(
            prim,
            *test.consts,
            *operands[:nc],
            *d.consts,
            *operands[nc : nc + nb],
            *spread_where(carried, batched[nc + nb :], operands[nc + nb :], axis),
            cond_jaxpr=test.graph,
            cond_nconsts=len(test.consts) + nc,
            body_jaxpr=d.graph,
            body_nconsts=len(d.consts) + nb,
        )
        return outs, d.flags

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
    cond: ClosedGraph,
    nc: int,
    body: ClosedGraph,
    nb: int,
) -> Any:
    """Run lanes whose turns end at different times: none waits for the slowest of all.

    Lanes of little state turn in groups that fill vector registers, until the slowest of a group is
    done; others one by one. Groups, or lanes, are independent and may run at the same time.
    """
    params = {
        "cond_jaxpr": cond, "cond_nconsts": nc, "body_jaxpr": body, "body_nconsts": nb,
    }  # fmt: skip
    exchange = axis.name in collective_axes(cond.jaxpr) | collective_axes(body.jaxpr)
    # Lanes at rest, and those that fill the last group up, must not act.
    acts = bool(cond.effects or body.effects)
    if not exchange and (acts or sum(a.size for a in body.out_avals) > _SMALL):
        return lanes(prim, axis, operands, batched, **params)
    # All of the carry differs between lanes, from the first turn or the second on.
    first = nc + nb
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
        *params.values(),
    )
    groups = -(-axis // WIDTH)
    shared = [x for x, f in zip(operands, flags, strict=True) if not f]
    rows = [_grouped(x, axis, groups) for x in chosen(flags, operands)]
    outs = row_by_row(group.graph, [*group.consts, *shared], rows, groups)
    flat = [reshape(o, (groups * WIDTH, *o.shape[2:])) for o in outs]
    return [_first(o, axis) for o in flat], (True,) * len(outs)


def _grouped(x: Any, size: int, groups: int) -> Any:
    """Return a batch as rows of groups; the last lane fills the last group up."""
    missing = groups * WIDTH - size
    if missing:
        last = op(
            "slice",
            x,
            start_indices=(size - 1, *(0,) * (x.ndim - 1)),
            limit_indices=x.shape,
            strides=None,
        )
        filling = op(
            "broadcast_in_dim",
            last,
            shape=(missing, *x.shape[1:]),
            broadcast_dimensions=tuple(range(x.ndim)),
        )
        x = op("concatenate", x, filling, dimension=0)
    return reshape(x, (groups, WIDTH, *x.shape[1:]))


def _first(x: Any, size: int) -> Any:
    """Return the first rows of an array."""
    if x.shape[0] == size:
        return x
    return op(
        "slice", x, start_indices=(0,) * x.ndim, limit_indices=(size, *x.shape[1:]), strides=None
    )


@lru_cache(maxsize=1024)
def _group(
    prim: Primitive,
    avals: tuple[ShapedArray, ...],
    flags: Flags,
    cond: ClosedGraph,
    nc: int,
    body: ClosedGraph,
    nb: int,
) -> Derived:
    """Return the graph of one group's loop: what is the same for all lanes, then the lanes'."""
    same = [a for a, f in zip(avals, flags, strict=True) if not f]
    own = [a.update(shape=(WIDTH, *a.shape)) for a, f in zip(avals, flags, strict=True) if f]

    def fun(*args: Any) -> list[Any]:
        shared, rows = iter(args[: len(same)]), iter(args[len(same) :])
        operands = [next(rows) if f else next(shared) for f in flags]
        return _together(
            prim,
            Axis(WIDTH),
            operands,
            flags,
            cond_jaxpr=cond,
            cond_nconsts=nc,
            body_jaxpr=body,
            body_nconsts=nb,
        )

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
            op("select_n", over_lanes(pred, old), old, new)
            for old, new in zip(state, runner(step.graph)(*args[n : n + m], *state), strict=True)
        ]
        return [*runner(test.graph)(*args[:n], *after), *after]

    start = [*going, *carry]
    avals = [x.aval for x in (*tests, *consts, *start)]
    turned = recorded(turn, avals, "turn")
    some = recorded(
        lambda pred, *state: [op("reduce_or", pred, axes=(0,))], [x.aval for x in start], "some"
    )
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


JVP, LINEARIZE, BATCH = map(RuleOf, (_jvp, _linearize, _batch))
TRANSPOSE = _transpose
