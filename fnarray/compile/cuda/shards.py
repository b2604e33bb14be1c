"""One program on several GPUs: each shard on a device of its own, as far as there are so many.

Rows go from device to device without the host, and so does what shards tell each other, by
collectives: the host's threads meet, and elements stay on the devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...core.graph import ClosedGraph
from ...threads.shards import Coordinates, run_shards
from ..ir import Node
from .device import DeviceArray, Gpu, count, gpu
from .recording import NotRecorded, recording

Run = Callable[..., Sequence[Any]]


def sharded(node: Node, compiled: Callable[[ClosedGraph, int], Run], first: Gpu) -> Run:
    """Return what runs a program on all shards.

    Parameters
    ----------
    compiled : callable
        Gives what runs a graph on a GPU of a number.
    first : Gpu
        Where operands are, and results will be.
    """
    params = node.eqn.params
    axes, graph = params["mesh_axes"], params["jaxpr"]
    there = count()
    numbers = [(first.number + k) % there for k in range(min(there, prod(n for _, n in axes)))]
    runs = {k: compiled(graph, k) for k in numbers}

    def call(*arrays: DeviceArray) -> list[DeviceArray]:
        if recording():
            raise NotRecorded
        outs = [first.empty(v.aval.shape, v.aval.dtype) for v in node.outs]

        def work(at: Coordinates) -> None:
            flat = 0
            for name, size in axes:
                flat = flat * size + at[name]
            here = gpu(numbers[flat % len(numbers)])
            rows = [
                _brought(_row(x, names, at), here)
                for x, names in zip(arrays, params["in_names"], strict=True)
            ]
            results = runs[here.number](*rows)
            for out, names, result in zip(outs, params["out_names"], results, strict=True):
                # Of a result that is the same for all along an axis, the first shard's counts.
                if all(i == 0 or n in names for n, i in at.items()):
                    first.bring(_row(out, names, at), result)

        run_shards(work, axes, params["name"])
        return outs

    return call


def _row(x: DeviceArray, names: Sequence[Any], at: Coordinates) -> DeviceArray:
    for name in names:
        x = x.rows(at[name])
    return x


def _brought(row: DeviceArray, here: Gpu) -> DeviceArray:
    """Return a row on a device, where kernels expect it: at a multiple of 16 bytes."""
    if row.device is not here:
        return here.take(row)
    return row.copy() if row.pointer % 16 else row
