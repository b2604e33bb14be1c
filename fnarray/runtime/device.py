"""Devices: the CPU cores that `pmap` may spread its rows over, and GPUs."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any, Protocol

from ..config import config
from ..core.frozen import frozen
from ..threads.cores import available_cores


@frozen
class Device:
    """A place where arrays live and programs run.

    Attributes
    ----------
    id : int
        Unique in the process.
    platform : str
        ``"cpu"`` or ``"gpu"``.
    device_kind : str
        What the machine calls itself.
    process_index : int
        Of the process that owns it; 0.
    """

    id: int
    platform: str = "cpu"
    process_index: int = 0

    @property
    def device_kind(self) -> str:
        """Name of the kind of hardware."""
        return self.platform

    @property
    def host_id(self) -> int:
        """The owning process."""
        return self.process_index

    @property
    def local_hardware_id(self) -> int:
        """Number of the device in its process."""
        return self.id

    @property
    def architecture(self) -> str:
        """The machine's instruction set."""
        return platform.machine()

    def __str__(self) -> str:
        return f"{'cuda' if self.platform == 'gpu' else self.platform}:{self.id}"

    def __repr__(self) -> str:
        kind = "Cuda" if self.platform == "gpu" else self.platform.capitalize()
        return f"{kind}Device(id={self.id})"


class Platform(Protocol):
    """Devices of a kind of their own, and how arrays and programs get to them.

    Whoever provides one registers it in `platforms`. Its arrays are `ArrayElsewhere`.
    """

    def devices(self) -> list[Device]:
        """Return its devices."""
        ...

    def put(self, x: Any, sharding: Any) -> Any:
        """Return an array's elements on devices, by a sharding."""
        ...

    def from_callback(self, shape: Any, sharding: Any, data_callback: Any, dtype: Any) -> Any:
        """Return an array whose parts a function makes where they are."""
        ...

    def spmd(self, t: Any, leaves: Any, mesh: Any, ins: Any, outs: Any, name: str) -> Any:
        """Run a function that was traced on one device's part on all."""
        ...

    def on_host(
        self, values: Any, jaxpr: Any, mesh: Any, in_names: Any, out_names: Any, name: str
    ) -> Any:
        """Run what is written for each device on arrays of this process."""
        ...

    def caller(self, graph: Any, consts: Any, out_spec: Any) -> Any:
        """Return a call of a program of whole arrays."""
        ...

    def evaluate(self, prim: Any, args: Any, params: Any) -> Any:
        """Run one operation where its operands lie."""
        ...


#: By the name that devices have for it; none is of this process's own.
platforms: dict[str, Platform] = {}


def platform_of(devices: Any) -> Platform | None:
    """Return the platform of some devices; None for this process's own."""
    for device in devices if platforms else ():
        if found := platforms.get(getattr(device, "platform", "")):
            return found
    return None


@cache
def _device(i: int) -> Device:
    return Device(i)


def devices(backend: str | None = None) -> list[Device]:
    """Return the devices of a platform.

    Parameters
    ----------
    backend : str, optional
        ``"cpu"``, which is also the default, ``"gpu"`` (also ``"cuda"``), or ``"dask"``: workers of
        the cluster that was connected last.

    Raises
    ------
    RuntimeError
        There is no such platform, or none of its devices.
    """
    if backend in ("gpu", "cuda"):
        from ..compile.cuda.device import count

        return [Device(i, "gpu") for i in range(count())]
    if backend in platforms:
        return platforms[backend].devices()
    if backend == "dask":
        raise RuntimeError(
            "devices('dask'): no cluster is connected. Call fnarray.distributed.connect() first."
        )
    if backend not in (None, "cpu"):
        raise RuntimeError(f"Unknown backend {backend!r}. Available backends are ['cpu', 'gpu'].")
    return [_device(i) for i in range(config.num_cpu_devices or available_cores())]
