"""Arrays and the devices they live on."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import tree
from ..core.apart import apart
from ..core.array import Array, ArrayImpl, Deletable, asarray, default
from ..core.keep import forget_all
from ..core.source import boundary
from ..core.trace import Tracer
from ..runtime.device import MEMORY_KINDS, Device, Space, default_device, devices


@boundary
def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Return a tree with every leaf an `Array`.

    Parameters
    ----------
    x : pytree of array-likes
    device : Device, Sharding, PartitionSpec or memory.Space, or a tree of the former, optional
        Where the arrays are to be; a tree is a prefix of ``x``. A `PartitionSpec` is one on the
        mesh about the program (`set_mesh`). By default what is nowhere yet goes to the default
        device. Devices of the processor share its memory: between them nothing moves.
    src, donate, may_alias
        Accepted for compatibility.

    Raises
    ------
    TypeError
        A leaf is no array and no number, or ``device`` is none.
    ValueError
        A sharding does not divide an array evenly.
    """
    leaves, spec = tree.flatten_spec(x)
    if isinstance(device, Space):
        where = [_in_memory(leaf, device) for leaf in leaves]
    elif device is None or isinstance(device, Device):
        where = [device] * len(leaves)
    else:
        from .resharding import shardings_for  # programs on one device never ask

        where = shardings_for("device_put", device, x)
    return spec.unflatten([_put(leaf, d) for leaf, d in zip(leaves, where, strict=True)])


def _in_memory(x: Any, space: Space) -> Any:
    """Return where an array is, in a memory that programs name; of traced ones nothing is said."""
    if isinstance(x, Tracer) or space is Space.Any:
        return None
    from ..runtime.spec import SingleDeviceSharding  # programs on one device never ask

    has = x.sharding if isinstance(x, Array) else SingleDeviceSharding(default_device())
    return has.with_memory_kind(MEMORY_KINDS[space is Space.Host])


def _put(x: Any, where: Any) -> Any:
    if where is None:
        return x if isinstance(x, Array) else default.put(asarray(x))
    from .resharding import moved

    return apart(moved(x, where, "device_put"), x)


def device_put_replicated(x: Any, devices: Sequence[Device]) -> Any:
    """Return a tree with a copy of every leaf for each device, stacked along a new first axis.

    Raises
    ------
    ValueError
        ``devices`` is empty.
    """
    if not devices:
        raise ValueError("device_put_replicated: `devices` must be a non-empty sequence.")
    return tree.map(lambda leaf: _on_rows([leaf] * len(devices), devices), x)


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Device]) -> Any:
    """Return a tree with the leaves of all shards, one for each device, stacked on a first axis.

    Raises
    ------
    ValueError
        There are not as many shards as devices, or they differ in structure or shapes.
    """
    if len(shards) != len(devices) or not devices:
        raise ValueError(
            f"device_put_sharded: len(shards) = {len(shards)} must equal len(devices) = "
            f"{len(devices)}, and not be 0."
        )
    return tree.map(lambda *leaves: _on_rows(leaves, devices), *shards)


def _on_rows(leaves: Sequence[Any], devices: Sequence[Device]) -> Array:
    rows = [asarray(leaf) for leaf in leaves]
    if len({row.aval.update(weak_type=False) for row in rows}) != 1:
        got = ", ".join(row.aval.str_short() for row in rows)
        raise ValueError(f"device_put_sharded: shards must have one shape and dtype, got {got}.")
    data = np.stack([row._data for row in rows])
    from ..runtime.mesh import Mesh
    from ..runtime.spec import NamedSharding, PartitionSpec
    from .resharding import moved

    sharding = NamedSharding(Mesh(list(devices), ("_device_put",)), PartitionSpec("_device_put"))
    stacked = ArrayImpl(data, rows[0].aval.update(shape=data.shape, place=None))
    return moved(stacked, sharding, "device_put")


def live_arrays(platform: str | None = None) -> list[Array]:
    """Return the arrays that exist, of all threads; a search through all of Python's objects.

    Parameters
    ----------
    platform : str, optional
        Those on devices of a platform, ``"cpu"`` or ``"gpu"``.
    """
    found = [x for x in gc.get_objects() if issubclass(type(x), Deletable)]
    return [x for x in found if not x.is_deleted() and platform in (None, x.platform())]


def copy_to_host_async(x: Any) -> Any:
    """Return a tree; its arrays are in the host's memory already."""
    return x


def device_get(x: Any) -> Any:
    """Return a tree with every array as a NumPy array; what is traced, or no array, stays."""

    def get(leaf: Any) -> Any:
        known = hasattr(leaf, "__array__") and not isinstance(leaf, Tracer)
        return np.asarray(leaf) if known else leaf

    return tree.map(get, x)


def block_until_ready(x: Any) -> Any:
    """Wait for every leaf that can be waited for; return the tree."""
    if isinstance(x, Array):  # flattening one takes 0.8 us, as long as a small program
        x.block_until_ready()
    elif type(x) is tuple or type(x) is list:
        for item in x:
            block_until_ready(item)
    else:
        for leaf in tree.leaves(x):
            if hasattr(leaf, "block_until_ready"):
                leaf.block_until_ready()
    return x


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """Devices of one process, by default this one.

    Raises
    ------
    ValueError
        There is no such process.
    """
    process = host_id if process_index is None else process_index
    if process not in (None, 0):
        raise ValueError(
            f"local_devices: unknown process_index {process}; there is one process, 0."
        )
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """Count all devices."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Count the devices of this process."""
    return len(devices(backend))


def default_backend() -> str:
    """Name of the platform that programs run on."""
    return default_device().platform


def process_index(backend: str | None = None) -> int:
    """Number of this process; there is one."""
    return devices(backend)[0].process_index


def process_count(backend: str | None = None) -> int:
    """Count the processes that share the devices."""
    return len({d.process_index for d in devices(backend)})


def process_indices(backend: str | None = None) -> list[int]:
    """Numbers of all processes."""
    return sorted({d.process_index for d in devices(backend)})


host_count, host_id, host_ids = process_count, process_index, process_indices


def effects_barrier() -> None:
    """Wait for running effects; calls return when their work is done, so there are none."""


def clear_caches() -> None:
    """Forget everything traced and compiled in this process; the disk cache stays."""
    forget_all()
