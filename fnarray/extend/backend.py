"""Devices, named as in ``jax.extend.backend``."""

from __future__ import annotations

from typing import Any

from ..api.arrays import clear_caches as clear_backends
from ..api.arrays import default_backend
from ..runtime.device import Client, default_device

__all__ = ["Client", "backends", "clear_backends", "get_backend", "get_default_device"]
__dir__ = __all__.copy


def get_backend(platform: str | None = None) -> Client:
    """Return a platform's devices, the default platform's if it is not named."""
    return Client(platform or default_backend())


def backends() -> dict[str, Client]:
    """Return the platforms that there are."""
    return {name: Client(name) for name in {"cpu", default_backend()}}


def get_default_device() -> Any:
    """Return the device that arrays are on."""
    return default_device()
