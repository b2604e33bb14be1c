"""Running one kernel's iterations on several cores.

Kernels release the GIL and take ``(start, stop)``; the pool's threads are made at the first
parallel call, and anew after a fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..config import config

#: Chunks begin at multiples of this many iterations, so that no two threads write one cache line.
GRAIN = 64


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


class _Pool:
    """Threads that wait for chunks."""

    def __init__(self, size: int):
        self.size = size
        self.tasks: SimpleQueue[tuple[Callable[..., None], tuple[Any, ...], SimpleQueue]]
        self.tasks = SimpleQueue()
        for k in range(size):
            threading.Thread(target=self._work, name=f"fnarray-{k}", daemon=True).start()

    def _work(self) -> None:
        while True:
            kernel, args, done = self.tasks.get()
            try:
                kernel(*args)
            except BaseException as error:
                done.put(error)
            else:
                done.put(None)


_pool: _Pool | None = None
_lock = threading.Lock()
_cores = available_cores()


def _forget() -> None:
    global _pool, _lock
    _pool = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


def threads() -> int:
    """Return how many threads a parallel kernel uses: the setting, or the available cores."""
    return config.num_threads or _cores


def _workers(count: int) -> _Pool:
    global _pool
    with _lock:
        if _pool is None or _pool.size < count:
            _pool = _Pool(count)
        return _pool


def launch(
    kernel: Callable[..., None],
    extent: int,
    arrays: Sequence[np.ndarray],
    scratch: Sequence[tuple[int, Any]],
    scalars: Sequence[Any],
) -> None:
    """Run ``kernel(start, stop, *arrays, *scratch, *scalars)`` over ``range(extent)``.

    Parameters
    ----------
    scratch : sequence of (length, dtype)
        Working arrays, allocated anew for each chunk.
    """
    count = threads()
    if count <= 1 or extent < 2:
        kernel(0, extent, *arrays, *(np.empty(n, d) for n, d in scratch), *scalars)
        return
    step = -(-extent // count)
    if step > GRAIN:
        step = -(-step // GRAIN) * GRAIN
    starts = range(0, extent, step)
    pool = _workers(len(starts) - 1)
    done: SimpleQueue = SimpleQueue()

    def args(start: int) -> tuple[Any, ...]:
        own = (np.empty(n, d) for n, d in scratch)
        return (start, min(start + step, extent), *arrays, *own, *scalars)

    for start in starts[1:]:
        pool.tasks.put((kernel, args(start), done))
    error = None
    try:
        kernel(*args(0))
    finally:
        for _ in starts[1:]:
            error = done.get() or error
    if error is not None:
        raise error
