"""Arrays whose blocks live on workers, and how they get there, from there, and elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import numpy as np

from ..core.array import ArrayElsewhere, ArrayImpl, Elsewhere, _Deleted, asarray
from ..core.avals import ShapedArray
from ..runtime.device import platforms
from ..runtime.placed import Shard
from ..runtime.spec import Index, Sharding, SingleDeviceSharding, place_of
from .devices import cluster_of
from .lineage import Handle, Make, Move, Node, Put
from .wire import unpacked

Box = tuple[tuple[int, int], ...]


class WorkerArray(ArrayElsewhere):
    """An array in the memory of workers; what computes it may still be under way.

    Parameters
    ----------
    handle : Handle
        Which result of which step it is.
    aval : ShapedArray
    placement : Sharding
    ranks : sequence of int
        For each device of the sharding, which of the step's devices it is.
    """

    __slots__ = ("aval", "handle", "placement", "ranks")

    _held = "handle"

    def __init__(
        self, handle: Handle, aval: ShapedArray, placement: Sharding, ranks: Sequence[int]
    ):
        self.handle, self.placement = handle, placement
        self.aval = aval.update(place=place_of(placement, aval.ndim))
        self.ranks = tuple(ranks)

    @property
    def place(self) -> Sharding:
        """Where it lies."""
        return self.placement

    def on_host(self) -> ArrayImpl:
        """Return the same elements in the client's memory."""
        out = np.empty(self.shape, self.dtype)
        seen: set[Box] = set()
        node, k = self.handle.node, self.handle.k
        places = self.placement.devices_indices_map(self.shape).values()
        for rank, index in zip(self.ranks, places, strict=True):
            box = box_of(index, self.shape)
            if box not in seen:
                seen.add(box)
                out[index] = unpacked(node.cluster.read(node, k, rank))
        return ArrayImpl(out, self.aval)

    def platform(self) -> str:
        """Return the kind of its devices."""
        return "dask"

    def elsewhere(self) -> Elsewhere:
        """Return what tells an operation that its operands lie here."""
        there: Any = platforms["dask"]
        return Elsewhere(there.evaluate, there.program)

    def block_until_ready(self) -> WorkerArray:
        """Wait until it is computed; return it."""
        self.handle.node.cluster.wait(self.handle.node)
        return self

    def is_ready(self) -> bool:
        """Return whether it is computed."""
        launch = self.handle.node.launch
        return launch is not None and launch.over.is_set()

    def shards(self) -> list[Shard]:
        """Return the parts by device, which stay where they are."""
        out: list[Shard] = []
        seen: dict[Box, int] = {}
        places = self.placement.devices_indices_map(self.shape).items()
        for rank, (device, index) in zip(self.ranks, places, strict=True):
            box = box_of(index, self.shape)
            seen[box] = replica = seen.get(box, -1) + 1
            aval = self.aval.update(shape=tuple(b - a for a, b in box))
            part = WorkerArray(
                Handle(self.handle.node, self.handle.k), aval, SingleDeviceSharding(device), [rank]
            )
            out.append(Shard(device, index, replica, part))
        return out

    def __copy__(self) -> WorkerArray:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> WorkerArray:
        return self


class DeletedWorkerArray(_Deleted, WorkerArray):  # pyright: ignore[reportIncompatibleVariableOverride]
    """An array that was deleted: its shape, its dtype and where it was are still known."""

    __slots__ = ()


WorkerArray._deleted = DeletedWorkerArray  # pyright: ignore[reportPrivateUsage]


def box_of(index: Index, shape: Sequence[int]) -> Box:
    """Return where a part begins and ends along each axis."""
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape, strict=True))


def block_of(aval: ShapedArray, sharding: Sharding) -> tuple[tuple[int, ...], str]:
    """Return shape and dtype of one device's part."""
    return tuple(sharding.shard_shape(aval.shape)), aval.dtype.name


def _numbers(sharding: Sharding) -> list[int]:
    return [d.id for d in sharding._assignment()]


def put(x: Any, sharding: Sharding) -> WorkerArray:
    """Return an array's elements on workers, cut by a sharding.

    Raises
    ------
    ValueError
        The sharding does not divide it.
    """
    if isinstance(x, WorkerArray):
        return moved(x, sharding)
    x = x.on_host() if isinstance(x, ArrayElsewhere) else asarray(x)
    cluster = cluster_of(sharding._assignment(), "device_put")
    aval = x.aval.update(place=None)
    block = block_of(aval, sharding)  # raises for one that does not divide
    indices = list(sharding.devices_indices_map(x.shape).values())
    node = Node(cluster, _numbers(sharding), Put(x._data, indices), [block])
    handle = Handle(node, 0)
    cluster.start(node)
    return WorkerArray(handle, aval, sharding, range(len(indices)))


def from_callback(
    shape: Sequence[int], sharding: Sharding, data_callback: Callable[[Any], Any], dtype: Any = None
) -> WorkerArray:
    """Return an array each of whose parts is made on the worker that has it.

    Raises
    ------
    TypeError
        The function cannot be pickled.
    """
    shape = tuple(shape)
    cluster = cluster_of(sharding._assignment(), "make_array_from_callback")
    block = tuple(sharding.shard_shape(shape))
    try:
        pickled = cloudpickle.dumps(data_callback)
    except Exception as error:
        raise TypeError(
            f"make_array_from_callback: {data_callback!r} cannot be sent to workers: {error}. It "
            "may hold arrays, numbers and paths, and no open files, locks or connections."
        ) from error
    funs = [
        cloudpickle.dumps(_Part(pickled, index))
        for index in sharding.devices_indices_map(shape).values()
    ]
    recipe = Make(funs, block, None if dtype is None else np.dtype(dtype))
    node = Node(cluster, _numbers(sharding), recipe, [(block, "float32")])
    handle = Handle(node, 0)
    cluster.start(node)
    if dtype is None:  # the parts tell
        cluster.wait(node)
        assert node.launch is not None
        found = {reply["dtype"] for reply in node.launch.replies.values()}
        if len(found) != 1:
            raise TypeError(f"make_array_from_callback: parts are of dtypes {sorted(found)}.")
        (dtype,) = found
    aval = asarray(np.empty((0,), dtype)).aval.update(shape=shape)
    node.blocks = ((block, aval.dtype.name),)
    return WorkerArray(handle, aval, sharding, range(len(funs)))


class _Part:
    """A function of an index, called for one."""

    def __init__(self, fun: bytes, index: Index):
        self.fun = fun
        self.bounds = [(s.start, s.stop) for s in index]

    def __call__(self) -> Any:
        return cloudpickle.loads(self.fun)(tuple(slice(*b) for b in self.bounds))

    def __str__(self) -> str:
        bounds = ", ".join(":".join("" if k is None else str(k) for k in b) for b in self.bounds)
        return f"make_array_from_callback: data_callback for index [{bounds}]"


# ---- moving --------------------------------------------------------------------------------------


def moved(x: WorkerArray, sharding: Sharding) -> WorkerArray:
    """Return an array cut otherwise, or on other workers, moved from worker to worker."""
    if sharding == x.placement:
        return x
    sharding.shard_shape(x.shape)
    sources = x.placement.devices_indices_map(x.shape)
    targets = sharding.devices_indices_map(x.shape)
    cluster = cluster_of(targets, "device_put")
    node, k = x.handle.node, x.handle.k
    if cluster is not node.cluster:
        return put(x.on_host(), sharding)
    rank_of = dict(zip(sources, x.ranks, strict=True))
    if all(
        d in sources and box_of(sources[d], x.shape) == box_of(i, x.shape)
        for d, i in targets.items()
    ):
        return WorkerArray(Handle(node, k), x.aval, sharding, [rank_of[d] for d in targets])
    return sliced(x, [(0, n, 1) for n in x.shape], sharding)


def sliced(
    x: WorkerArray, bounds: Sequence[tuple[int, int, int]], sharding: Sharding
) -> WorkerArray:
    """Return a slice of an array: each worker gets its part of it from those that have it.

    Parameters
    ----------
    x : WorkerArray
    bounds : sequence of (start, limit, stride)
        Along each axis.
    sharding : Sharding
        Of the slice, on workers of the same cluster.
    """
    shape = tuple(len(range(*b)) for b in bounds)
    sources = x.placement.devices_indices_map(x.shape)
    targets = sharding.devices_indices_map(shape)
    node, k = x.handle.node, x.handle.k
    devices = sorted({d.id for d in (*sources, *targets)})
    rank = {d: r for r, d in enumerate(devices)}
    owners: dict[Box, list[Any]] = {}
    for device, index in sources.items():
        owners.setdefault(box_of(index, x.shape), []).append(device)
    sends: list[list[Any]] = [[] for _ in devices]
    makes: list[list[Any]] = [[] for _ in devices]
    dtype = x.dtype.name
    for t, (device, index) in enumerate(targets.items()):
        box = box_of(index, shape)
        parts = []
        for origin, have in owners.items():
            found = [_common(*each) for each in zip(box, origin, bounds, strict=True)]
            if any(here[0] >= here[1] for here, _ in found):
                continue
            source = device if device in have else have[t % len(have)]
            there = [there for _, there in found]
            sends[rank[source.id]].append((rank[device.id], 0, there))
            parts.append((rank[source.id], [here for here, _ in found]))
        makes[rank[device.id]].append((0, tuple(b - a for a, b in box), dtype, parts))
    recipe = Move([node.key(k)], sends, makes, [(node, k)])
    block = tuple(sharding.shard_shape(shape))
    made = Node(node.cluster, devices, recipe, [(block, dtype)])
    handle = Handle(made, 0)
    node.cluster.start(made)
    aval = x.aval.update(shape=shape)
    return WorkerArray(handle, aval, sharding, [rank[d.id] for d in targets])


def _common(
    target: tuple[int, int], origin: tuple[int, int], bound: tuple[int, int, int]
) -> tuple[tuple[int, int], tuple[int, int, int]]:
    """Return where a part of a slice and a block meet along an axis: in the part, in the block."""
    (a, b), (c, d), (start, _, stride) = target, origin, bound
    first, last = max(a, -((start - c) // stride)), min(b, -((start - d) // stride))
    there = start + first * stride - c
    return (first - a, last - a), (there, there + (last - first - 1) * stride + 1, stride)
