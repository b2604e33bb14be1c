"""Devices, named as in ``jax.extend.backend``."""

from __future__ import annotations

from typing import Any

from ..api.arrays import clear_caches as clear_backends
from ..api.arrays import default_backend
from ..runtime.device import default_device, devices

__all__ = ["Client", "backends", "clear_backends", "get_backend", "get_default_device"]


class Client:
    """The devices of one platform.

    Attributes
    ----------
    platform : str
    platform_version : str
    """

    platform_version = "fnarray"

    def __init__(self, platform: str):
        self.platform = platform

    def devices(self) -> list[Any]:
        """Return them."""
        return list(devices(self.platform))

    local_devices = devices

    def device_count(self) -> int:
        """Say how many there are."""
        return len(self.devices())

    local_device_count = device_count

    def process_index(self) -> int:
        """Return 0: there is one process."""
        return 0


def get_backend(platform: str | None = None) -> Client:
    """Return a platform's devices, the default platform's if it is not named."""
    return Client(platform or default_backend())


def backends() -> dict[str, Client]:
    """Return the platforms that there are."""
    return {name: Client(name) for name in {"cpu", default_backend()}}


def get_default_device() -> Any:
    """Return the device that arrays are on."""
    return default_device()
