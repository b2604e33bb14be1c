"""What the machine has: cores that the process may use, and drivers of GPUs."""

from __future__ import annotations

import os
from functools import cache


def available_cores() -> int:
    """Return how many cores the process may use: its affinity, within the cgroup's quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        cores = os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as f:  # noqa: PTH123 - read once, at start
            quota, period = f.read().split()
        if quota != "max":
            cores = min(cores, max(1, -(-int(quota) // int(period))))
    except (OSError, ValueError):
        return cores
    return cores


#: What a driver of NVIDIA's leaves on a machine: Linux's, and that of Linux within Windows.
_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")


@cache
def has_driver() -> bool:
    """Whether the machine has a driver of a GPU; nothing is loaded to know it."""
    return any(os.access(path, os.F_OK) for path in _DRIVERS)
