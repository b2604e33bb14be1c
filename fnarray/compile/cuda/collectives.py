"""What shards tell each other, from device to device.

The host's threads meet; elements do not leave the devices. Each device takes the values of all
shards that meet, one below the other, and computes what its own shards get: by the operation's rule
for examples of a mapped axis, which is arithmetic on such rows, compiled as any program is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.axes import Axis
from ...core.graph import ClosedGraph
from ...core.trace import trace_graph
from ...threads import shards
from ...threads.patterns import Here
from ..ir import Node
from .device import DeviceArray, Gpu
from .recording import NotRecorded, recording

Run = Callable[..., Sequence[Any]]


def exchanged(
    node: Node, compiled: Callable[[ClosedGraph, int], Run], by_host: Run, where: Gpu
) -> Run:
    """Return what a collective is, for the shards on a device.

    Parameters
    ----------
    compiled : callable
        Gives what runs a graph on a GPU of a number.
    by_host : callable
        The same by the host's memory, for shards that are of several processes.
    where : Gpu
    """
    params = node.eqn.params
    names, groups = params["axis_name"], params.get("axis_index_groups")
    others = tuple(v for k, v in params.items() if k not in ("axis_name", "axis_index_groups"))
    runs: dict[tuple[int, int, tuple[int, ...]], Run] = {}

    def results(device: Gpu, count: int, targets: Sequence[int], *stacks: DeviceArray) -> Any:
        key = device.number, count, tuple(targets)
        if key not in runs:
            graph = _rows(node, count, targets)
            held = [device.put(np.asarray(c)) for c in graph.consts]
            runs[key] = partial(compiled(graph, device.number), *held)
        outs = runs[key](*stacks)
        if len(outs) < len(targets):  # one result, for all; each may write over its own
            return [outs[0], *(outs[0].copy() for _ in targets[1:])]
        return outs

    def combine(values: Sequence[DeviceArray]) -> Sequence[DeviceArray]:
        there: dict[Gpu, list[int]] = {}
        for k, x in enumerate(values):
            there.setdefault(x.device, []).append(k)
        found: dict[int, DeviceArray] = {}
        for device, targets in there.items():
            stack = device.empty((len(values), *values[0].shape), values[0].dtype)
            for k, x in enumerate(values):
                device.bring(stack.rows(k), x)
            found.update(zip(targets, results(device, len(values), targets, stack), strict=True))
        return [found[k] for k in range(len(values))]

    def call(*arrays: Any) -> Sequence[Any]:
        if recording():
            raise NotRecorded
        if not arrays:  # the shard's number
            place, count = shards.position(names)
            return results(where, count, (place,))
        if not shards.all_here(names):
            return by_host(*arrays)
        (x,) = (x if isinstance(x, DeviceArray) else where.put(x) for x in arrays)
        what = node.eqn.primitive.name, names, x.shape, *others
        return (shards.meet(names, groups, what, x, Here(combine)),)

    return call


def _rows(node: Node, count: int, targets: Sequence[int]) -> ClosedGraph:
    """Return the program from the values of all who meet to the results of some of them."""
    prim, params = node.eqn.primitive, node.eqn.params
    rule = prim.collective
    assert rule is not None
    # Of several axes the last runs fastest, so that together they are one, and so is a group.
    axis = Axis(count, params["axis_name"][0])
    own = {"axis_name": (axis.name,), "axis_index_groups": None}
    params = {**params, **{k: v for k, v in own.items() if k in params}}

    def rows(*stacks: Any) -> list[Any]:
        out, differs = rule(axis, stacks, [True] * len(stacks), **params)
        return [out[k] for k in targets] if differs else [out]

    avals = [a.aval.update(shape=(count, *a.aval.shape)) for a in node.ins]
    return trace_graph(rows, avals, prim.name)
