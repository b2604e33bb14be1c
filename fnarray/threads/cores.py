"""How many cores the process may use."""

from __future__ import annotations

import os


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
