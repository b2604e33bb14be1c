"""How a program on several devices is transformed: into transformed programs on them.

As a map from whole arrays to whole arrays it is linear algebra: to hand an operand to all shards is
to repeat it, and the transpose of that is a sum over shards; to take the first shard's result is a
selection, and the transpose of that gives the others zeros.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

from ..core.axes import Axes
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive, RuleOf
from ..core.tangents import Undefined, Zero, chosen, is_zero, nonzero, with_zeros
from ..core.trace import bind
from ..ops.collective import axis_index_p, psum_p
from ..ops.kit.calls import eq, full, moveaxis, select
from ..ops.kit.rules import instantiate as made
from ..transforms.batch import Axis
from ..transforms.graphs import (
    Derived,
    batch_graph,
    jvp_graph,
    linearize_graph,
    recorded,
)
from ..transforms.transpose import backward
from .call_rules import residual_values

Names = tuple[Hashable, ...]
Layout = tuple[Names, ...]
Flags = tuple[bool, ...]


def _jvp(prim: Primitive) -> Any:
    def jvp(
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        jaxpr: ClosedGraph,
        in_names: Layout,
        out_names: Layout,
        **params: Any,
    ) -> Any:
        active = nonzero(tangents)
        d = jvp_graph(jaxpr, active)
        outs = bind(
            prim,
            *d.consts,
            *primals,
            *chosen(active, tangents),
            jaxpr=d.graph,
            in_names=((),) * len(d.consts) + in_names + tuple(chosen(active, in_names)),
            out_names=out_names + tuple(chosen(d.flags, out_names)),
            **params,
        )
        n = len(jaxpr.out_avals)
        avals = [x.aval for x in outs[:n]]
        return outs[:n], with_zeros(d.flags, outs[n:], avals)

    return jvp


def _linearize(prim: Primitive) -> Any:
    def linearize(
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        jaxpr: ClosedGraph,
        mesh_axes: Axes,
        in_names: Layout,
        out_names: Layout,
        **params: Any,
    ) -> Any:
        active = nonzero(tangents)
        d = linearize_graph(jaxpr, active)
        n = len(jaxpr.out_avals)
        computed = len(d.primal.graph.out_avals) - n
        own = tuple(name for name, _ in mesh_axes)
        outs = bind(
            prim,
            *d.primal.consts,
            *primals,
            jaxpr=d.primal.graph,
            mesh_axes=mesh_axes,
            in_names=((),) * len(d.primal.consts) + in_names,
            out_names=out_names + (own,) * computed,
            **params,
        )
        # Each shard keeps its own residuals.
        layout = [
            own if r is None else in_names[r] if isinstance(r, int) else () for r in d.residuals
        ]
        duals = bind(
            prim,
            *residual_values(d, primals, outs[n:]),
            *chosen(active, tangents),
            jaxpr=d.linear,
            mesh_axes=mesh_axes,
            in_names=(*layout, *chosen(active, in_names)),
            out_names=tuple(chosen(d.flags, out_names)),
            **params,
        )
        return outs[:n], with_zeros(d.flags, duals, [x.aval for x in outs[:n]])

    return linearize


def _transpose(prim: Primitive) -> Any:
    def transpose(
        cts: Sequence[Any],
        *operands: Any,
        jaxpr: ClosedGraph,
        mesh_axes: Axes,
        in_names: Layout,
        out_names: Layout,
        **params: Any,
    ) -> list[Any]:
        linear = tuple(type(x) is Undefined for x in operands)
        given = nonzero(cts)
        d = _transposed(jaxpr, linear, given, mesh_axes, in_names, out_names)
        known = [x for x in operands if type(x) is not Undefined]
        outs = iter(
            bind(
                prim,
                *d.consts,
                *known,
                *chosen(given, cts),
                jaxpr=d.graph,
                mesh_axes=mesh_axes,
                in_names=(
                    *((),) * len(d.consts),
                    *(names for names, f in zip(in_names, linear, strict=True) if not f),
                    *chosen(given, out_names),
                ),
                out_names=tuple(chosen(d.flags, chosen(linear, in_names))),
                **params,
            )
        )
        flags = iter(d.flags)
        return [next(outs) if f and next(flags) else None for f in linear]

    return transpose


@lru_cache(maxsize=1024)
def _transposed(
    closed: ClosedGraph,
    linear: Flags,
    given: Flags,
    mesh_axes: Axes,
    in_names: Layout,
    out_names: Layout,
) -> Derived:
    """Return a shard's graph ``(known inputs, cotangents) -> cotangents of linear inputs``."""
    flags: list[bool] = []
    known_avals = [a for a, f in zip(closed.in_avals, linear, strict=True) if not f]

    def others(names: Names) -> Names:
        return tuple(name for name, _ in mesh_axes if name not in names)

    def fun(*args: Any) -> list[Any]:
        known, cts = iter(args[: len(known_avals)]), iter(args[len(known_avals) :])
        operands = [
            Undefined(a) if f else next(known) for a, f in zip(closed.in_avals, linear, strict=True)
        ]
        own = [
            _of_the_first(next(cts), others(names)) if f else Zero(a)
            for a, f, names in zip(closed.out_avals, given, out_names, strict=True)
        ]
        found = chosen(linear, backward(closed.jaxpr, closed.consts, operands, own))
        flags.extend(not is_zero(c) for c in found)
        return [
            _summed(made(c), others(names))
            for c, names in zip(found, chosen(linear, in_names), strict=True)
            if not is_zero(c)
        ]

    avals = (*known_avals, *chosen(given, closed.out_avals))
    return recorded(fun, avals, closed.jaxpr.debug_name, flags)


def _of_the_first(ct: Any, names: Names) -> Any:
    """Return a cotangent in the first shard along axes, zeros in the others."""
    for name in names:
        index = bind(axis_index_p, axis_name=(name,))
        ct = select(eq(index, 0), ct, full(ct.aval, 0))
    return ct


def _summed(ct: Any, names: Names) -> Any:
    return bind(psum_p, ct, axis_name=names, axis_index_groups=None) if names else ct


def _batch(prim: Primitive) -> Any:
    def batch(
        axis: Axis,
        operands: Sequence[Any],
        batched: Flags,
        *,
        jaxpr: ClosedGraph,
        mesh_axes: Axes,
        in_names: Layout,
        out_names: Layout,
        **params: Any,
    ) -> Any:
        if any(name == axis.name for name, _ in mesh_axes):  # hidden by an axis of the program
            axis = Axis(int(axis))
        d = batch_graph(jaxpr, batched, axis)
        outs = bind(
            prim,
            *d.consts,
            # The mapped axis comes after those of the shards.
            *(
                moveaxis(x, 0, len(names)) if f else x
                for x, f, names in zip(operands, batched, in_names, strict=True)
            ),
            jaxpr=d.graph,
            mesh_axes=mesh_axes,
            in_names=((),) * len(d.consts) + in_names,
            out_names=out_names,
            **params,
        )
        done = [
            moveaxis(o, len(names), 0) if f else o
            for o, f, names in zip(outs, d.flags, out_names, strict=True)
        ]
        return done, d.flags

    return batch


JVP, LINEARIZE, TRANSPOSE, BATCH = map(RuleOf, (_jvp, _linearize, _transpose, _batch))
