"""Arrays on a GPU, and programs that run there.

An array of this kind holds the device's memory and reaches the host only when asked (decision
0016). Nothing of the device is imported before the first of them is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.array import Array, ArrayElsewhere, ArrayImpl, Elsewhere, asarray
from ..core.avals import ShapedArray
from ..core.graph import ClosedGraph
from ..core.hooks import span
from ..core.keep import remembered
from ..core.primitive import Primitive
from ..core.trace import bind, trace_graph
from ..errors import UnsupportedOnTarget
from .device import Device

if TYPE_CHECKING:
    from ..compile.cuda.device import DeviceArray

__all__ = ["GpuArray", "caller", "evaluate", "place_of", "put"]


class GpuArray(ArrayElsewhere):
    """An array in a GPU's memory; results may still be under way."""

    __slots__ = ("_there", "aval")

    def __init__(self, there: DeviceArray, aval: ShapedArray):
        self._there = there
        self.aval = aval

    @property
    def place(self) -> Device:
        """The device that it lies on."""
        return gpu_device(self._there.device.number)

    def on_host(self) -> ArrayImpl:
        """Return the same elements in the host's memory."""
        with span("transfer", f"{self.place} to host"):
            return ArrayImpl(self._there.on_host(), self.aval)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """What CuPy, PyTorch and Numba read: the memory, and the stream that fills it."""
        return self._there.__cuda_array_interface__

    def __copy__(self) -> GpuArray:
        return GpuArray(self._there.copy(), self.aval)

    def __deepcopy__(self, memo: dict[int, Any]) -> GpuArray:
        return self.__copy__()

    def block_until_ready(self) -> GpuArray:
        """Wait until all that was started on the device is done; return the array."""
        self._there.device.wait()
        return self

    def elsewhere(self) -> Elsewhere:
        """Return what tells an operation that its operands lie here."""
        return Elsewhere(evaluate)


def gpu_device(number: int) -> Device:
    """Return a GPU as users see it."""
    return Device(number, "gpu")


def put(x: Array, where: Device) -> GpuArray:
    """Return an array's elements on a GPU."""
    from ..compile.cuda.device import gpu

    there = gpu(where.id)  # raises for one that does not exist
    if where.id:
        raise UnsupportedOnTarget(
            f"{where}: programs run on cuda:0 only, for now. CUDA_VISIBLE_DEVICES chooses which "
            "GPU that is."
        )
    if isinstance(x, GpuArray):
        if x.place == where:
            return x
        x = x.on_host()
    with span("transfer", f"host to {where}"):
        return GpuArray(there.put(asarray(x)._data), x.aval)


def place_of(leaves: Iterable[Any], what: str) -> Device | None:
    """Return the GPU that arguments lie on; None where none lies on one.

    Raises
    ------
    ValueError
        They lie on several devices.
    """
    from .placed import PlacedArray, sharding_of

    places = {x.place: k for k, x in enumerate(leaves) if type(x) is GpuArray}
    if not places:
        return None
    for k, x in enumerate(leaves):
        if type(x) is PlacedArray:
            places[next(iter(sharding_of(x).device_set))] = k
    if len(places) > 1:
        (a, i), (b, j) = list(places.items())[:2]
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got argument {i} of {what} on "
            f"{a} and argument {j} on {b}. Bring them together with fnarray.device_put."
        )
    return next(iter(places))


def caller(graph: ClosedGraph, consts: Sequence[Any], out_spec: Any) -> Callable[..., Any]:
    """Return ``call(*leaves) -> result`` for one signature of a function, on a GPU."""
    from ..compile.cuda.device import DeviceArray, gpu
    from .dispatch import executable_on_gpu

    exe, avals, where = executable_on_gpu(graph), graph.out_avals, gpu()
    held = tuple(put(c, gpu_device(0))._there for c in consts)
    wanted = graph.in_avals[len(held) :]

    def buffer(x: Any, aval: ShapedArray) -> DeviceArray:
        if type(x) is GpuArray:
            return x._there
        data = x._data if isinstance(x, ArrayImpl) else np.asarray(x)
        return where.put(np.asarray(data, aval.dtype))

    def array(out: Any, aval: ShapedArray) -> GpuArray:
        return GpuArray(out if isinstance(out, DeviceArray) else where.put(out), aval)

    def call(*leaves: Any) -> Any:
        outs = exe.run(*held, *map(buffer, leaves, wanted))
        return out_spec.unflatten(list(map(array, outs, avals)))

    return call


@remembered(4096)
def _program(prim: Primitive, params: tuple[tuple[str, Any], ...], avals: Any) -> ClosedGraph:
    def one(*xs: Any) -> list[Any]:
        out = bind(prim, *xs, **dict(params))
        return list(out) if prim.multiple_results else [out]

    return trace_graph(one, list(avals), prim.name)


def evaluate(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run one operation on a GPU: a program of one equation."""
    place_of(args, f"lax.{prim}")
    leaves = [x if isinstance(x, Array) else asarray(x) for x in args]
    graph = _program(prim, tuple(params.items()), tuple(x.aval for x in leaves))
    outs = caller(graph, (), _Flat())(*leaves)
    return outs if prim.multiple_results else outs[0]


class _Flat:
    """The structure of a list."""

    def unflatten(self, leaves: list[Any]) -> list[Any]:
        """Return the leaves."""
        return leaves
