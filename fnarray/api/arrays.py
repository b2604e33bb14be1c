"""Arrays and the devices they live on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import tree
from ..core.array import Array, ArrayElsewhere, ArrayImpl, asarray
from ..core.keep import forget_all
from ..core.trace import Tracer
from ..runtime.device import Device, devices, platform_of
from ..runtime.mesh import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    current_mesh,
    put,
)


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Return a tree with every leaf an `Array`; tracers stay as they are.

    Parameters
    ----------
    x : pytree of array-likes
    device : Device or Sharding, or a tree of them that is a prefix of ``x``, optional
        Where the arrays are to be. All devices share the host's memory: nothing moves.
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
    if isinstance(device, PartitionSpec):
        device = _named(device)
    if device is None or isinstance(device, Device | Sharding):
        where = [device] * len(leaves)
    else:
        where = tree.broadcast_prefix(device, x, is_leaf=lambda d: d is None)
    return spec.unflatten([_put(leaf, d) for leaf, d in zip(leaves, where, strict=True)])


def _put(x: Any, where: Any) -> Any:
    if where is None and isinstance(x, ArrayElsewhere):
        return x
    sharding = SingleDeviceSharding(where) if isinstance(where, Device) else where
    if isinstance(sharding, Sharding) and (there := platform_of(sharding.device_set)):
        return x if isinstance(x, Tracer) else there.put(x, sharding)
    if isinstance(where, Device) and where.platform == "gpu":
        from ..runtime import gpu  # asked for by whoever has one

        return gpu.put(x if isinstance(x, ArrayElsewhere) else asarray(x), where)
    if isinstance(x, ArrayElsewhere):
        return put(x.on_host(), where)
    if isinstance(x, Array) and not isinstance(x, ArrayImpl):
        return x
    return put(asarray(x), where)


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


def _on_rows(leaves: Sequence[Any], devices: Sequence[Device]) -> ArrayImpl:
    rows = [asarray(leaf) for leaf in leaves]
    if len({row.aval.update(weak_type=False) for row in rows}) != 1:
        got = ", ".join(row.aval.str_short() for row in rows)
        raise ValueError(f"device_put_sharded: shards must have one shape and dtype, got {got}.")
    data = np.stack([row._data for row in rows])
    sharding = NamedSharding(Mesh(list(devices), ("_device_put",)), PartitionSpec("_device_put"))
    return put(ArrayImpl(data, rows[0].aval.update(shape=data.shape)), sharding)


# ---- arrays of parts -----------------------------------------------------------------------------


def reshard(x: Any, out_shardings: Any) -> Any:
    """Return a tree of arrays cut otherwise; what is being traced stays as it is.

    Parameters
    ----------
    x : pytree of arrays
    out_shardings : Sharding or PartitionSpec, or a tree of them
        A `PartitionSpec` is one on the mesh about the program (`set_mesh`).
    """
    return device_put(x, _named(out_shardings))


def _named(where: Any) -> Any:
    """Return shardings for specs, on the mesh about the program."""

    def name(spec: Any) -> Any:
        if not isinstance(spec, PartitionSpec):
            return spec
        mesh = current_mesh()
        if mesh is None:
            raise ValueError(
                f"{spec} names axes of a mesh, and there is none about the program. Enter one: "
                "with set_mesh(mesh), or give a NamedSharding."
            )
        return NamedSharding(mesh, spec)

    return tree.map(name, where, is_leaf=lambda s: isinstance(s, PartitionSpec | Sharding))


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Any,
    data_callback: Callable[[Any], Any],
    dtype: Any = None,
) -> Array:
    """Return an array whose parts a function makes.

    Parameters
    ----------
    shape : sequence of int
    sharding : Sharding
    data_callback : callable
        From the index of a part, a tuple of slices, to its elements.
    dtype : dtype-like, optional
        That of the parts by default.

    Raises
    ------
    ValueError
        A part has another shape than its index.
    """
    shape = tuple(shape)
    if there := platform_of(sharding.device_set):
        return there.from_callback(shape, sharding, data_callback, dtype)
    whole: np.ndarray | None = None
    done: set[Any] = set()
    for index in sharding.devices_indices_map(shape).values():
        key = tuple((s.start, s.stop) for s in index)
        if key in done:
            continue
        done.add(key)
        part = np.asarray(data_callback(index))
        if whole is None:
            whole = np.empty(shape, part.dtype if dtype is None else np.dtype(dtype))
        if part.shape != whole[index].shape:
            raise ValueError(
                f"make_array_from_callback: the part at {index} must have shape "
                f"{whole[index].shape}, got {part.shape}."
            )
        whole[index] = part
    return put(asarray(np.empty(shape) if whole is None else whole), sharding)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """Return an array of the parts that devices have, in the order of the sharding's devices.

    Raises
    ------
    ValueError
        There are not as many parts as devices.
    """
    where = sharding.devices_indices_map(tuple(shape))
    if len(arrays) != len(where):
        raise ValueError(
            f"make_array_from_single_device_arrays: there must be a part for each of {len(where)} "
            f"devices, got {len(arrays)}."
        )
    by_device = {next(iter(x.devices())): x for x in arrays}
    parts = by_device if by_device.keys() == where.keys() else dict(zip(where, arrays, strict=True))
    found = {_bounds(index): parts[device] for device, index in where.items()}
    return make_array_from_callback(shape, sharding, lambda index: found[_bounds(index)], dtype)


def _bounds(index: Any) -> tuple[Any, ...]:
    return tuple((s.start, s.stop) for s in index)


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int] | None = None
) -> Any:
    """Return arrays of what this process has of them: all, as it is the only one."""

    def whole(x: Any) -> Array:
        x = asarray(np.asarray(x))
        if global_shape is not None and tuple(global_shape) != x.shape:
            raise ValueError(
                "make_array_from_process_local_data: the only process has all of an array, got "
                f"shape {x.shape} for {tuple(global_shape)}."
            )
        return put(x, sharding)

    return tree.map(whole, local_data)


def copy_to_host_async(x: Any) -> Any:
    """Return a tree; its arrays are in the host's memory already."""
    return x


def device_get(x: Any) -> Any:
    """Return a tree with every array as a NumPy array; other leaves stay as they are."""
    return tree.map(lambda leaf: np.asarray(leaf) if hasattr(leaf, "__array__") else leaf, x)


def block_until_ready(x: Any) -> Any:
    """Wait for every leaf that can be waited for; return the tree."""
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
    return "cpu"


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
