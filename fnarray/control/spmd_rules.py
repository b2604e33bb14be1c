"""How a program on several devices is transformed: into transformed programs on them.

As a map from whole arrays to whole arrays it is linear algebra: to hand an operand to all shards is
to repeat it, and the transpose of that is a sum over shards; to take the first shard's result is a
selection, and the transpose of that gives the others zeros.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ..core.avals import NO_SUMS, ShapedArray, place
from ..core.axes import Axes, AxisTrace
from ..core.graph import ClosedGraph
from ..core.keep import remembered
from ..core.primitive import Primitive, RuleOf
from ..core.tangents import Undefined, Zero, chosen, is_zero
from ..core.trace import bind, tracing
from ..ops.collective import psum_p
from ..ops.kit.calls import moveaxis
from ..ops.kit.rules import instantiate as made
from ..ops.placing import cast, of_the_first, placed_as
from ..transforms.batch import Axis
from ..transforms.graphs import Derived, Flags, recorded
from ..transforms.transpose import backward
from ._bodies import Holding, Places

Names = tuple[Hashable, ...]
Layout = tuple[Names, ...]


def _put(params: dict[str, Any], ins: Layout, outs: Layout) -> dict[str, Any]:
    return {**params, "in_names": ins, "out_names": outs}


def _own(params: dict[str, Any]) -> Names:
    """Return the place of what each shard computes and keeps: along all axes."""
    return tuple(name for name, _ in params["mesh_axes"])


def _transposed_of(
    closed: ClosedGraph, linear: Flags, given: Flags, params: dict[str, Any]
) -> Derived:
    names = params["mesh_axes"], params["in_names"], params["out_names"], params["checked"]
    return _transposed(closed, linear, given, *names)


@remembered(1024)
def _transposed(
    closed: ClosedGraph,
    linear: Flags,
    given: Flags,
    mesh_axes: Axes,
    in_names: Layout,
    out_names: Layout,
    checked: bool,
) -> Derived:
    """Return a shard's graph ``(known inputs, cotangents) -> cotangents of linear inputs``.

    Where types say what varies, a result that does not is one value, whose cotangent all shards
    get; and what an operand that does not is repeated by, its cotangent is summed by (`pvary`).
    Outside a value is whole: partial sums become that on the way out, and are made on the way in.
    """
    flags: list[bool] = []
    of_results = [a.of_cotangents() for a in closed.out_avals]
    known_avals = [a for a, f in zip(closed.in_avals, linear, strict=True) if not f]

    def others(names: Names) -> Names:
        if checked:
            return ()
        return tuple(name for name, _ in mesh_axes if name not in names)

    def fun(*args: Any) -> list[Any]:
        known, cts = iter(args[: len(known_avals)]), iter(args[len(known_avals) :])
        operands = [
            Undefined(a) if f else next(known) for a, f in zip(closed.in_avals, linear, strict=True)
        ]
        own = [
            placed_as(of_the_first(next(cts), others(names)), a) if f else Zero(a)
            for a, f, names in zip(of_results, given, out_names, strict=True)
        ]
        found = chosen(linear, backward(closed.jaxpr, closed.consts, operands, own))
        flags.extend(not is_zero(c) for c in found)
        return [
            cast(_summed(made(c), others(names)), sorted(c.aval.sums[0], key=str), "invarying")
            for c, names in zip(found, chosen(linear, in_names), strict=True)
            if not is_zero(c)
        ]

    avals = (*known_avals, *map(_whole, chosen(given, of_results)))
    return recorded(fun, avals, closed.jaxpr.debug_name, flags)


def _whole(aval: ShapedArray) -> ShapedArray:
    """Return the aval of a value that all devices have, where it was, or is, to be summed."""
    if aval.sums == NO_SUMS:
        return aval
    return aval.update(place=place((), aval.cuts, aval.vma))


def _summed(ct: Any, names: Names) -> Any:
    return bind(psum_p, ct, axis_name=names, axis_index_groups=None) if names else ct


def _bound(params: dict[str, Any]) -> AbstractContextManager[Any]:
    """Bind the axes, which rules of `custom_vjp` functions in a program may name."""
    return tracing(AxisTrace(params["name"], params["mesh_axes"], params["checked"]))


FAMILY = Holding(
    places=Places(lambda params: (params["in_names"], params["out_names"]), _put, _own, made=()),
    transposed=_transposed_of,
    around=_bound,
)


def _batch(prim: Primitive) -> Any:
    of_shards = FAMILY.batch(prim)

    def batch(axis: Axis, operands: Sequence[Any], batched: Flags, **params: Any) -> Any:
        if any(name == axis.name for name, _ in params["mesh_axes"]):
            axis = Axis(int(axis))  # hidden by an axis of the program
        # The mapped axis comes after those of the shards.
        moved = [
            moveaxis(x, 0, len(names)) if f else x
            for x, f, names in zip(operands, batched, params["in_names"], strict=True)
        ]
        outs, flags = of_shards(axis, moved, batched, **params)
        done = [
            moveaxis(o, len(names), 0) if f else o
            for o, f, names in zip(outs, flags, params["out_names"], strict=True)
        ]
        return done, flags

    return batch


BATCH = RuleOf(_batch)
