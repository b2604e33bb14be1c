"""Keeping BLAS to one thread while some work runs.

OpenBLAS has threads of its own, which spin in wait of each other and of the next call. Beside
other threads with as many of them as cores, a triangular solution of 100 rows took 11 ms, and
50 us on one thread.
"""

from __future__ import annotations

import sys
import threading
from functools import cache
from typing import Any


@cache
def _libraries(with_scipy: bool) -> tuple[Any, ...]:
    """Return what controls the threads of the BLAS libraries that are loaded."""
    from threadpoolctl import ThreadpoolController  # looks through all loaded libraries

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def look_again() -> None:
    """Forget which libraries are loaded: one more is."""
    _libraries.cache_clear()


class OneThread:
    """Context in which BLAS keeps to the calling thread; may be entered by several at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                # SciPy brings a library of its own, once it is imported.
                libraries = _libraries("scipy.linalg" in sys.modules)
                self._before = [(one, one.get_num_threads()) for one in libraries]
                for one, _ in self._before:
                    one.set_num_threads(1)

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                for one, count in self._before:
                    one.set_num_threads(count)


one_thread = OneThread()
