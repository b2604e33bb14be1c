"""Where a program runs: of devices nothing is loaded unless something is said of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..config import config, followers
from ..core.array import ArrayElsewhere
from ..core.lazy import load
from ..threads.cores import has_driver

if TYPE_CHECKING:
    from .device import Device, Platform

if has_driver() or config.platforms:
    from . import device as device  # which sets where values are that are nowhere yet


def _limited(platforms: str | None) -> None:
    """Have devices where a program names its platforms, which may be after all was imported."""
    if platforms:
        load(".device", __package__)


followers["platforms"] = _limited


def on_gpu(place: Device) -> Callable[..., Any]:
    """Return what makes calls of programs on a GPU."""
    from . import gpu  # asked for by whoever has one

    return partial(gpu.caller, place=place)


def platform_under(leaves: Sequence[Any], place: Device | None = None) -> Platform | None:
    """Return the platform of workers, on which some arrays lie, if that is where a place is."""
    for x in leaves:
        if isinstance(x, ArrayElsewhere) and (placement := getattr(x, "placement", None)):
            from .device import platform_of  # asked for by whoever has workers

            there = placement.platform
            return there if place is None or platform_of([place]) is there else None
    return None


def place_of(options: dict[str, Any]) -> Device | None:
    """Return the device that options say a function runs on."""
    device, backend = options.get("device"), options.get("backend")
    if device is None and backend is None:
        return None
    from .device import Device, devices  # most programs name none

    if isinstance(device, Device):
        return device
    return None if backend is None else devices(backend)[0]
