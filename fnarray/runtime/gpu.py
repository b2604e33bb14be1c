"""Arrays on a GPU, and programs that run there.

An array of this kind holds the device's memory and reaches the host only when asked (decision
0016). Nothing of the device is imported before the first of them is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import config
from ..core.array import Array, ArrayElsewhere, ArrayImpl, Elsewhere, _Deleted, asarray
from ..core.avals import ShapedArray
from ..core.dtypes import canonicalize_dtype
from ..core.graph import ClosedGraph
from ..core.hooks import span
from ..core.keep import remembered
from ..core.primitive import Primitive
from ..core.trace import bind, trace_graph
from .device import Device, default_device

if TYPE_CHECKING:
    from ..compile.cuda.device import DeviceArray

__all__ = ["GpuArray", "borrowed", "caller", "evaluate", "place_of", "put"]


class GpuArray(ArrayElsewhere):
    """An array in a GPU's memory; results may still be under way."""

    __slots__ = ("_known_as", "_there", "aval")

    _held = "_there"

    def __init__(self, there: DeviceArray, aval: ShapedArray, known: Any = None):
        self._there = there
        self.aval = aval
        self._known_as = known or _known(aval, there.device.number)

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

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: Any = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the memory as DLPack's capsule, for a reader on a stream."""
        from ..compile.cuda.exchange import CUDA, capsule_of

        if dl_device is not None and dl_device[0] != CUDA:
            if copy is False:
                raise BufferError(f"an array on {self.place} is not the host's without a copy")
            return self.on_host().__dlpack__(max_version=max_version)
        return capsule_of(self._there.copy() if copy else self._there, stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's kind of device, and its number."""
        from ..compile.cuda.exchange import CUDA

        return CUDA, self._there.device.number

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


class DeletedGpuArray(_Deleted, GpuArray):  # pyright: ignore[reportIncompatibleVariableOverride]
    """An array that was deleted: its shape and dtype are still known."""

    __slots__ = ()


GpuArray._deleted = DeletedGpuArray  # pyright: ignore[reportPrivateUsage]
GpuArray._handed = GpuArray._there  # type: ignore[attr-defined]  # pyright: ignore[reportPrivateUsage]


@remembered(4096)
def _known(aval: ShapedArray, number: int) -> object:
    """Return what compiled functions know arrays by that are alike and on one device."""
    return object()


def gpu_device(number: int) -> Device:
    """Return a GPU as users see it."""
    return Device(number, "gpu")


def put(x: Array, where: Device) -> GpuArray:
    """Return an array's elements on a GPU."""
    from ..compile.cuda.device import gpu

    there = gpu(where.id)  # raises for one that does not exist
    if isinstance(x, GpuArray):
        if x.place == where:
            return x
        with span("transfer", f"{x.place} to {where}"):
            return GpuArray(there.take(x._there), x.aval)
    with span("transfer", f"host to {where}"):
        return GpuArray(there.put(asarray(x)._data), x.aval)


def borrowed(x: Any, *, copy: bool = True) -> GpuArray | None:
    """Return another library's array on a GPU; None where it lies on none.

    Parameters
    ----------
    copy : bool
        False promises that nobody writes to it again.
    """
    from ..compile.cuda import exchange

    kind, _ = x.__dlpack_device__() if hasattr(x, "__dlpack_device__") else (None, 0)
    if kind in (exchange.CUDA, exchange.MANAGED):
        there = exchange.from_capsule(x)
    elif kind is None and hasattr(x, "__cuda_array_interface__"):
        there = exchange.from_interface(x)
    else:
        return None
    dtype = canonicalize_dtype(there.dtype)
    if dtype != there.dtype:
        raise TypeError(
            f"an array of {there.dtype} on {gpu_device(there.device.number)} would be {dtype}: "
            "convert it in the library that it comes from, or set enable_x64."
        )
    own = copy or there.pointer % 16 != 0  # kernels read four elements at once
    return GpuArray(there.copy() if own else there, ShapedArray(there.shape, dtype))


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


def caller(
    graph: ClosedGraph, consts: Sequence[Any], out_spec: Any, place: Device
) -> Callable[..., Any]:
    """Return ``call(*leaves) -> result`` for one signature of a function, on a GPU."""
    from ..compile.cuda.device import DeviceArray, gpu
    from .dispatch import check_finite, executable_on_gpu

    where = gpu(place.id)
    exe, avals = executable_on_gpu(graph, place.id), graph.out_avals
    held = tuple(put(c, place)._there for c in consts)
    wanted = graph.in_avals[len(held) :]

    def buffer(x: Any, aval: ShapedArray) -> DeviceArray:
        if type(x) is GpuArray:
            return x._there if x._there.device is where else where.take(x._there)
        data = x._data if isinstance(x, ArrayImpl) else np.asarray(x)
        return where.put(np.asarray(data, aval.dtype))

    known = [_known(a, place.id) for a in avals]
    checked = config.debug_nans or config.debug_infs

    def computed(*data: DeviceArray) -> Sequence[Any]:
        outs = exe.run(*held, *data)
        if checked:
            given = [x.on_host() for x in (*held, *data)]
            check_finite(graph, given, [x.on_host() for x in outs if isinstance(x, DeviceArray)])
        return outs

    def array(out: Any, aval: ShapedArray, known: object) -> GpuArray:
        return GpuArray(out if type(out) is DeviceArray else where.put(out), aval, known)

    def direct(*data: DeviceArray) -> Any:
        return out_spec.unflatten(list(map(array, computed(*data), avals, known)))

    def direct_to_one(*data: DeviceArray) -> GpuArray:
        (out,) = exe.run(*held, *data)
        return array(out, avals[0], known[0])

    alone = len(avals) == 1 and out_spec.is_leaf() and not checked
    run = direct_to_one if alone else direct

    def call(*leaves: Any) -> Any:
        return run(*map(buffer, leaves, wanted))

    call.direct = run  # type: ignore[attr-defined] - for arguments that all lie there
    return call


@remembered(4096)
def _program(prim: Primitive, params: tuple[tuple[str, Any], ...], avals: Any) -> ClosedGraph:
    def one(*xs: Any) -> list[Any]:
        out = bind(prim, *xs, **dict(params))
        return list(out) if prim.multiple_results else [out]

    return trace_graph(one, list(avals), prim.name)


def evaluate(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run one operation on a GPU: a program of one equation."""
    place = place_of(args, f"lax.{prim}") or default_device()
    leaves = [x if isinstance(x, Array) else asarray(x) for x in args]
    graph = _program(prim, tuple(params.items()), tuple(x.aval for x in leaves))
    outs = caller(graph, (), _Flat(), place)(*leaves)
    return outs if prim.multiple_results else outs[0]


class _ByDefault:
    """GPUs as the place of values that are nowhere yet."""

    evaluate = staticmethod(evaluate)

    @staticmethod
    def put(x: Array) -> GpuArray:
        """Return an array of the host's on the default device."""
        return put(x, default_device())


BY_DEFAULT = _ByDefault()


class _Flat:
    """The structure of a list."""

    def is_leaf(self) -> bool:
        """Return False."""
        return False

    def unflatten(self, leaves: list[Any]) -> list[Any]:
        """Return the leaves."""
        return leaves
