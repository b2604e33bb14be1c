"""Arrays and the devices they live on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..control.call import clear_graphs
from ..core import tree
from ..core.array import Array, asarray
from ..runtime import dispatch
from ..runtime.device import Device, devices


def device_put(
    x: Any,
    device: Device | None = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Return a tree with every leaf an `Array`; tracers and arrays stay as they are.

    Parameters
    ----------
    x : pytree of array-likes
    device : Device, optional
        All devices share the host's memory, so nothing moves.
    src, donate, may_alias
        Accepted for compatibility.

    Raises
    ------
    TypeError
        A leaf is no array and no number, or ``device`` is none.
    """
    if device is not None and not isinstance(device, Device):
        raise TypeError(
            f"device_put: device must be a Device of fnarray.devices() or None, got {device!r}."
        )
    return tree.map(lambda leaf: leaf if isinstance(leaf, Array) else asarray(leaf), x)


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


def effects_barrier() -> None:
    """Wait for running effects; calls return when their work is done, so there are none."""


def clear_caches() -> None:
    """Forget everything traced and compiled in this process; the disk cache stays."""
    clear_graphs()
    dispatch.executable.cache_clear()
