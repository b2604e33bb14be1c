"""How a ``while`` is transformed. Reverse mode does not exist: the number of turns is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.graph import ClosedGraph
from ..core.primitive import Primitive, RuleOf
from ..core.tangents import Zero, tangent_aval
from ..core.trace import bind
from ..ops._derive import instantiate, spread
from ..transforms.batch import Axis
from ..transforms.graphs import Derived, Flags, batch_graph, jvp_graph, rearranged
from .call_rules import chosen, lanes, nonzero, with_zeros
from .scan_rules import either

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
        active = nonzero(tangents[nc:])
        while True:
            d = jvp_graph(body_jaxpr, active, active[nb:])
            if d.flags == active[nb:]:
                break
            active = (*active[:nb], *d.flags)
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
        if not any(nonzero(tangents)):
            return outs, [Zero(tangent_aval(o.aval)) for o in outs]
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
        flags = batched[nc:]
        while True:
            d = batch_graph(body_jaxpr, flags, axis, flags[nb:])
            if d.flags == flags[nb:]:
                break
            flags = (*flags[:nb], *either(flags[nb:], d.flags))
        carried = flags[nb:]
        test: Derived = batch_graph(cond_jaxpr, (*batched[:nc], *carried), axis)
        if test.flags[0]:
            # Lanes end at different turns: a loop for each, none waits for the slowest.
            return lanes(
                prim,
                axis,
                operands,
                batched,
                cond_jaxpr=cond_jaxpr,
                cond_nconsts=nc,
                body_jaxpr=body_jaxpr,
                body_nconsts=nb,
            )
        was = batched[nc + nb :]
        outs = bind(
            prim,
            *test.consts,
            *operands[:nc],
            *d.consts,
            *operands[nc : nc + nb],
            *(
                spread(x, axis) if n and not w else x
                for x, n, w in zip(operands[nc + nb :], carried, was, strict=True)
            ),
            cond_jaxpr=test.graph,
            cond_nconsts=len(test.consts) + nc,
            body_jaxpr=d.graph,
            body_nconsts=len(d.consts) + nb,
        )
        return outs, d.flags

    return batch


JVP, LINEARIZE, BATCH = map(RuleOf, (_jvp, _linearize, _batch))
TRANSPOSE = _transpose
