"""Matrix products on the pool's threads.

OpenBLAS has threads of its own, which keep spinning for some time after a product in the hope of
the next; with as many kernels' threads as cores they take turns with those, and a training step of
alternating products and kernels ran three times slower than its parts. So a product is cut into one
block of rows or columns for each of our threads, and BLAS works on one thread in each.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np

from .launch import threads, together

#: Up to this many multiplications OpenBLAS itself stays on the calling thread.
SERIAL = 1 << 18
_FLOATS = frozenset("fdFD")


@cache
def _libraries() -> tuple[Any, ...]:
    """Return what controls the threads of the BLAS libraries that are loaded."""
    from threadpoolctl import ThreadpoolController  # looks through all loaded libraries

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class _Single:
    """Keeps BLAS to one thread while any product runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._before = [one.get_num_threads() for one in _libraries()]
                for one in _libraries():
                    one.set_num_threads(1)

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                for one, count in zip(_libraries(), self._before, strict=True):
                    one.set_num_threads(count)


_single = _Single()


def matmul(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Multiply matrices, or stacks of them, of one dtype; as `numpy.matmul`."""
    *stack, rows, _ = lhs.shape
    columns = rhs.shape[-1]
    work = lhs.size * columns
    plain = lhs.dtype.char in _FLOATS and len(stack) == rhs.ndim - 2 <= 1
    if work <= SERIAL or not plain:
        return np.matmul(lhs, rhs)
    count = min(threads(), -(-work // SERIAL))
    out = np.empty((*stack, rows, columns), lhs.dtype)
    every = (slice(None),) * len(stack)

    def block(k: int) -> None:
        def part(extent: int) -> slice:
            step = -(-extent // count)
            return slice(k * step, (k + 1) * step)

        if stack and stack[0] >= count:
            some = part(stack[0])
            np.matmul(lhs[some], rhs[some], out=out[some])
        elif rows >= columns:
            some = (*every, part(rows))
            np.matmul(lhs[some], rhs, out=out[some])
        else:
            some = (*every, slice(None), part(columns))
            np.matmul(lhs, rhs[some], out=out[some])

    with _single:
        together(block, count)
    return out
