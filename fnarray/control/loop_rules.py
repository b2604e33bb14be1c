"""How a ``while`` is transformed. Reverse mode does not exist: the number of turns is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.avals import ShapedArray
from ..core.axes import Axis, axes_named
from ..core.graph import ClosedGraph
from ..core.keep import remembered
from ..core.primitive import Primitive, RuleOf
from ..core.surgery import rearranged
from ..core.trace import bind
from ..ops.kit.calls import reduce_or, select_n
from ..ops.kit.registry import registry
from ..ops.kit.rules import all_spread
from ..transforms.graphs import Flags, batch_graph, recorded, runner
from ._looping import Looping, kept_whole, over_lanes, returned_operands

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
        fixed = _unchanged(params)
        order, params = _carried_less(fixed, params)
        # The whole loop runs again beside its tangents: how often it turns is in neither half.
        duals = jvp([primals[k] for k in order], [tangents[k] for k in order], **params)[1]
        moving = iter(duals)
        start = len(primals) - len(fixed)
        return outs, [tangents[start + k] if f else next(moving) for k, f in enumerate(fixed)]

    return linearize


def _unchanged(params: dict[str, Any]) -> Flags:
    """Return which parts of the carry every turn hands on as they are."""
    _, num_consts, _ = _counts(params)
    body = params["body_jaxpr"].jaxpr
    pairs = zip(body.outvars, body.invars[num_consts:], strict=True)
    return tuple(out is carried for out, carried in pairs)


def _carried_less(fixed: Flags, params: dict[str, Any]) -> tuple[list[int], dict[str, Any]]:
    """Return the operands, by number, and params of a loop that takes parts of a carry as they are.

    What is no carry has a derivative in reverse mode: that of its first value.
    """
    tests, consts, _ = _counts(params)
    kept = [k for k, f in enumerate(fixed) if f]
    moving = [k for k, f in enumerate(fixed) if not f]

    def order(first: int) -> tuple[int, ...]:
        return (*range(first), *(first + k for k in kept), *(first + k for k in moving))

    of_test, of_body = order(tests), order(consts)
    start = tests + consts
    operands = [*range(tests), *(start + k for k in kept), *(tests + k for k in of_body)]
    return operands, {
        "cond_nconsts": tests + len(kept),
        "cond_jaxpr": rearranged(params["cond_jaxpr"], of_test),
        "body_nconsts": consts + len(kept),
        "body_jaxpr": rearranged(params["body_jaxpr"], of_body, tuple(moving)),
    }


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
        step, flags = FAMILY.batched(axis, batched, params)
        test = batch_graph(params["cond_jaxpr"], batched[:first] + flags[num_consts:], axis)
        if test.flags[0]:
            exchange = axis.name in axes_named(prim, params)
            # Arrays that rules made are of this batch alone.
            made = (test.consts or step.consts) and not acts(params)
            lanes = _all_together if exchange or made else _in_lanes
            # What the body returns as it came is the same, however many turns a lane takes.
            origins = [
                first + num_consts + i if k == num_consts + i else None
                for i, k in enumerate(returned_operands(params["body_jaxpr"]))
            ]
            return kept_whole(
                operands, batched, lanes(prim, axis, operands, batched, params), origins
            )
        k = len(test.consts)
        params |= {"cond_jaxpr": test.graph, "cond_nconsts": k + first}
        return turn_together(axis, [*test.consts, *operands], (False,) * k + batched, **params)

    return batch


# ---- lanes ---------------------------------------------------------------------------------------


def _in_lanes(
    prim: Primitive, axis: Axis, operands: Sequence[Any], batched: Flags, params: dict[str, Any]
) -> Any:
    """Record lanes whose turns end at different times; which way they run the target chooses."""
    operands, flags = _spread(axis, operands, batched, params)
    outs = bind(registry["lanes"], *operands, axis_size=int(axis), rows=flags, **params)
    return outs, (True,) * len(outs)


def _all_together(
    prim: Primitive, axis: Axis, operands: Sequence[Any], batched: Flags, params: dict[str, Any]
) -> Any:
    """Turn all lanes until the slowest is done."""
    outs = _together(prim, axis, *_spread(axis, operands, batched, params), **params)
    return outs, (True,) * len(outs)


def _spread(
    axis: Axis, operands: Sequence[Any], batched: Flags, params: dict[str, Any]
) -> tuple[list[Any], Flags]:
    """Give all of the carry the mapped axis: it differs from the first turn or the second on."""
    first = len(operands) - len(params["body_jaxpr"].out_avals)
    carry = all_spread(axis, operands[first:], batched[first:])
    return [*operands[:first], *carry], batched[:first] + (True,) * len(carry)


@remembered(1024)
def together(
    prim: Primitive, width: int, batched: Flags, items: tuple[tuple[str, Any], ...]
) -> ClosedGraph:
    """Return the graph of ``width`` lanes of a ``while`` that turn together.

    Parameters
    ----------
    prim : Primitive
        The ``while``.
    width : int
    batched : tuple of bool
        Which operands have a row for each lane.
    items : tuple of (str, object)
        Its params, for one lane.
    """
    params = dict(items)
    avals = lane_avals(params)

    def fun(*args: Any) -> list[Any]:
        axis = Axis(width)
        return _together(prim, axis, *_spread(axis, args, batched, params), **params)

    rows = [
        a.update(shape=(width, *a.shape)) if f else a for a, f in zip(avals, batched, strict=True)
    ]
    found = recorded(fun, rows, "lanes")
    assert not found.consts, "batches of rules that make arrays turn together from the first"
    return found.graph


def acts(params: dict[str, Any]) -> bool:
    """Whether a turn does more than compute: lanes that are done must not take part in it."""
    return bool(params["cond_jaxpr"].effects or params["body_jaxpr"].effects)


def lane_avals(params: dict[str, Any]) -> tuple[ShapedArray, ...]:
    """Return the avals of the operands of a ``while``."""
    return params["cond_jaxpr"].in_avals[: params["cond_nconsts"]] + params["body_jaxpr"].in_avals


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
    """Turn lanes together until all are done; lanes that are done keep their state.

    They take part in what lanes exchange with it.
    """
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
