"""The threads that machine code shares loops with.

They are the system's, not Python's: they never hold the GIL, run nothing but kernels, and end with
the process. A fork leaves them behind, and the child begins anew.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from . import load, sharing
from .call import LINE, LINES, MOST, STATE, builtin, meeting
from .elf import in_process

_lock = threading.Lock()
_started = 0


def is_known() -> bool:
    """Whether this system has what the pool needs."""
    return sharing.is_known() and in_process("pthread_create") is not None


def prepare(threads: int) -> bool:
    """Have threads ready for loops that so many share; return whether there is a pool at all."""
    if threads > _started + 1:
        return _start(threads - 1)
    return True


@functools.cache
def launcher() -> Callable[..., None]:
    """Return what runs a kernel in chunks.

    Called with the ``__self__`` of a kernel, how many threads share it at most, the iterations of a
    chunk and of all, and its arguments after ``start, stop``. In place of an array there may be a
    tuple that has one for each chunk.
    """
    return builtin(sharing.LAUNCH, _part(1))


def call(frames: np.ndarray, threads: int) -> None:
    """Call routines of BLAS, one for each row: its address, then those of its arguments."""
    _share()(_part(3), frames.ctypes.data, len(frames), 1, threads)


@functools.cache
def _share() -> Any:
    kinds = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
    return ctypes.CFUNCTYPE(None, *kinds)(_part(2))


@functools.cache
def _part(which: int) -> int:
    # A chunk takes a nanosecond longer than of code that LLVM took 22 ms for, in place of 7.
    code = load.made(sharing.PARTS, sharing.TEXT, straight=True, plain=True)
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(code)(which)


def _start(count: int) -> bool:
    """Start threads until there are so many; where the system gives fewer, those do it all."""
    global _started
    if not is_known():
        return False
    create: Any = ctypes.CDLL(None).pthread_create
    create.argtypes = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
    handle = ctypes.c_ulong()
    with _lock:
        # Signals are for Python's threads.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            while _started < min(count, MOST - 1):
                if create(ctypes.addressof(handle), None, _part(0), _started + 1):
                    break
                _started += 1
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True


def _forget() -> None:
    global _lock, _started
    _lock, _started = threading.Lock(), 0
    if _part.cache_info().currsize:
        ctypes.memset(meeting(), 0, LINE * sharing.NOTED)
        ctypes.memset(meeting() + LINES * LINE, 0, STATE - LINES * LINE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
