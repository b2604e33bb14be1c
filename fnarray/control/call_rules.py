"""How a call of a graph is transformed: into calls of transformed graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.graph import ClosedGraph
from ..core.primitive import Primitive, RuleOf
from ..core.surgery import one_equation, rearranged
from ..core.tangents import chosen, is_undefined, nonzero, with_zeros
from ..core.trace import bind
from ..ops._derive import op
from ..transforms.batch import Axis
from ..transforms.graphs import batch_graph, jvp_graph, linearize_graph, transpose_graph


def residual_values(linearized: Any, operands: Sequence[Any], computed: Sequence[Any]) -> list[Any]:
    """Return the values of a linear graph's residuals."""
    found = iter(computed)
    return [
        next(found) if r is None else operands[r] if isinstance(r, int) else r
        for r in linearized.residuals
    ]


def _jvp(prim: Primitive) -> Any:
    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Any, name: str) -> Any:
        active = nonzero(tangents)
        d = jvp_graph(jaxpr, active)
        outs = bind(prim, *d.consts, *primals, *chosen(active, tangents), jaxpr=d.graph, name=name)
        n = len(jaxpr.out_avals)
        return outs[:n], with_zeros(d.flags, outs[n:], jaxpr.out_avals)

    return jvp


def _linearize(prim: Primitive) -> Any:
    def linearize(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Any, name: str) -> Any:
        active = nonzero(tangents)
        d = linearize_graph(jaxpr, active)
        n = len(jaxpr.out_avals)
        outs = bind(prim, *d.primal.consts, *primals, jaxpr=d.primal.graph, name=name)
        residuals = residual_values(d, primals, outs[n:])
        duals = bind(prim, *residuals, *chosen(active, tangents), jaxpr=d.linear, name=name)
        return outs[:n], with_zeros(d.flags, duals, jaxpr.out_avals)

    return linearize


def _transpose(prim: Primitive) -> Any:
    def transpose(cts: Sequence[Any], *operands: Any, jaxpr: Any, name: str) -> list[Any]:
        linear = tuple(map(is_undefined, operands))
        given = nonzero(cts)
        d = transpose_graph(jaxpr, linear, given)
        known = [x for x in operands if not is_undefined(x)]
        outs = iter(bind(prim, *d.consts, *known, *chosen(given, cts), jaxpr=d.graph, name=name))
        flags = iter(d.flags)
        return [next(outs) if f and next(flags) else None for f in linear]

    return transpose


def _batch(prim: Primitive) -> Any:
    def batch(
        axis: Axis, operands: Sequence[Any], batched: tuple[bool, ...], *, jaxpr: Any, name: str
    ) -> Any:
        d = batch_graph(jaxpr, batched, axis)
        return bind(prim, *d.consts, *operands, jaxpr=d.graph, name=name), d.flags

    return batch


def lanes(
    prim: Primitive, axis: Axis, operands: Sequence[Any], batched: Sequence[bool], **params: Any
) -> Any:
    """Apply an operation to each example on its own, in a loop over them: a rule of batching.

    The loop carries nothing from turn to turn, so examples may run at the same time.
    """
    avals = [
        x.aval.update(shape=x.aval.shape[1:]) if b else x.aval
        for x, b in zip(operands, batched, strict=True)
    ]
    each = one_equation(prim, tuple(avals), tuple(params.items()))
    # What is the same for all examples comes first.
    graph = rearranged(each, tuple(sorted(range(len(avals)), key=lambda k: batched[k])))
    shared = [x for x, b in zip(operands, batched, strict=True) if not b]
    outs = row_by_row(graph, shared, chosen(batched, operands), int(axis))
    return outs, (True,) * len(outs)


def row_by_row(
    graph: ClosedGraph, shared: Sequence[Any], rows: Sequence[Any], length: int
) -> list[Any]:
    """Run a graph of ``(shared, row)`` for each row: a loop that carries nothing."""
    return op(
        "scan",
        *shared,
        *rows,
        jaxpr=graph,
        length=length,
        num_consts=len(shared),
        num_carry=0,
        reverse=False,
        unroll=1,
    )


def over_lanes(choice: Any, like: Any) -> Any:
    """Return a choice for each lane as one for each element of a batch."""
    if choice.ndim == like.ndim:
        return choice
    return op("broadcast_in_dim", choice, shape=like.shape, broadcast_dimensions=(0,))


JVP, LINEARIZE, TRANSPOSE, BATCH = map(RuleOf, (_jvp, _linearize, _transpose, _batch))
