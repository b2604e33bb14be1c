"""Running one kernel's iterations on several cores.

Kernels release the GIL and take ``(start, stop)``. Those that are machine code of ours are shared
out by machine code (`native.pool`); threads of Python's run Numba's, and library calls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Final

import numpy as np

from ...config import config
from ...core.lines import rows
from ...threads.cores import available_cores
from ...threads.shards import here
from ..target import Limits

#: Chunks for each thread: one that is held up leaves some to the others.
_FINER: Final = 4
#: Where a finished task says so, with its error if it had one.
_Done = SimpleQueue[BaseException | None]


class _Pool:
    """Threads that wait for chunks."""

    def __init__(self, size: int):
        self.size = size
        self.tasks: SimpleQueue[tuple[Callable[..., None], tuple[Any, ...], _Done]]
        self.tasks = SimpleQueue()
        for k in range(size):
            threading.Thread(target=self._work, name=f"fnarray-{k}", daemon=True).start()

    def _work(self) -> None:
        while True:
            work, args, done = self.tasks.get()
            try:
                work(*args)
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
    """Return how many threads a parallel kernel uses: the setting, or the available cores.

    Shards that run at the same time divide them among each other.
    """
    return max(1, (config.num_threads or _cores) // here.sharing)


def cores() -> int:
    """Return how many threads share loops inside of a kernel, and have them ready."""
    from .native import pool  # which few programs need

    count = threads()
    return count if pool.prepare(count) else 1


def _workers(count: int) -> _Pool:
    global _pool
    with _lock:
        if _pool is None or _pool.size < count:
            _pool = _Pool(count)
        return _pool


def launch(
    limits: Limits,
    kernel: Callable[..., None],
    extent: int,
    arrays: Sequence[np.ndarray],
    scratch: Sequence[tuple[int, Any]],
    scalars: Sequence[Any],
    folds: Sequence[tuple[int, Callable[..., None]]] = (),
) -> None:
    """Run ``kernel(start, stop, *arrays, *scratch, *scalars)`` over ``range(extent)``.

    Parameters
    ----------
    scratch : sequence of (length, dtype)
        Working arrays: each chunk has its own.
    folds : sequence of (position, combine)
        Arrays that hold folded results: each chunk gets its own, and ``combine(total, part, n)``
        adds one to another.
    """
    count = min(threads(), extent)
    if count == 1 and not folds:
        kernel(0, extent, *arrays, *(x for n, d in scratch for x in rows(1, n, d)), *scalars)
        return
    chunks = limits.chunks if folds else count if scratch else _FINER * count
    step = max(-(-extent // max(chunks, 1)), 1)
    if step > limits.grain:
        step = -(-step // limits.grain) * limits.grain
    chunks = -(-extent // step)
    own: list[Any] = list(arrays)
    for position, _ in folds:
        total = arrays[position]
        own[position] = (total, *(np.empty_like(total) for _ in range(chunks - 1)))
    own += [tuple(rows(chunks, n, d)) for n, d in scratch]
    from .native import pool

    spec = getattr(kernel, "__self__", None)
    if type(spec) is bytes and pool.prepare(count):
        pool.launcher()(spec, count, step, extent, *own, *scalars)
    else:
        _launch(kernel, count, step, extent, own, scalars)
    for position, combine in folds:
        _add_up(own[position], combine)


def _add_up(parts: Sequence[np.ndarray], combine: Callable[..., None]) -> None:
    """Add parts to the first of them, in pairs.

    Eight in a row leave a float32 sum of a million uniform numbers off by 0.71 ULP (root of mean
    square), in pairs by 0.40; JAX's is by 0.44.
    """
    apart = 1
    while apart < len(parts):
        for k in range(0, len(parts) - apart, 2 * apart):
            combine(parts[k], parts[k + apart], parts[k].size)
        apart *= 2


def _launch(
    kernel: Callable[..., None],
    count: int,
    step: int,
    extent: int,
    arrays: Sequence[Any],
    scalars: Sequence[Any],
) -> None:
    """Run chunks of a kernel that is no machine code of ours, on threads of Python's."""

    def work(first: int) -> None:
        for k in range(first, -(-extent // step), count):
            own: list[Any] = [a[k] if isinstance(a, tuple) else a for a in arrays]
            kernel(k * step, min((k + 1) * step, extent), *own, *scalars)

    together(work, count)


def together(work: Callable[[int], None], count: int) -> None:
    """Run ``work(0) ... work(count - 1)`` at the same time; raise the first error."""
    if count <= 1:
        work(0)
        return
    pool = _workers(count - 1)
    done: _Done = SimpleQueue()
    for k in range(1, count):
        pool.tasks.put((work, (k,), done))
    error: BaseException | None = None
    try:
        work(0)
    finally:
        for _ in range(1, count):
            error = done.get() or error
    if error is not None:
        raise error
