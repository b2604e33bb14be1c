"""Devices: the CPU cores that `pmap` may spread its rows over, and GPUs."""

from __future__ import annotations

import platform
from functools import cache

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


@cache
def _device(i: int) -> Device:
    return Device(i)


def devices(backend: str | None = None) -> list[Device]:
    """Return the devices of a platform.

    Parameters
    ----------
    backend : str, optional
        ``"cpu"``, which is also the default, or ``"gpu"`` (also ``"cuda"``).

    Raises
    ------
    RuntimeError
        There is no such platform, or none of its devices.
    """
    if backend in ("gpu", "cuda"):
        from ..compile.cuda.device import count

        return [Device(i, "gpu") for i in range(count())]
    if backend not in (None, "cpu"):
        raise RuntimeError(f"Unknown backend {backend!r}. Available backends are ['cpu', 'gpu'].")
    return [_device(i) for i in range(config.num_cpu_devices or available_cores())]
