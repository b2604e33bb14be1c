"""Memory of another process of this machine, read where it lies: one copy, and it is the system's.

Linux lets a process read those of its own user; where it lets it read its children alone (Yama's
``ptrace_scope``), or none, nothing is lent, and values go through queues.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np


class MeetingLost(Exception):
    """A member is gone, or the run was stopped: the program is run again, or is over."""


class _Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


#: Bytes of one call of the system: it takes less than 2 GiB.
_MOST = 1 << 30
_call: Any = getattr(ctypes.CDLL(None, use_errno=True), "process_vm_readv", None)
if _call is not None:
    _span = ctypes.POINTER(_Span)
    _call.argtypes = (ctypes.c_int, _span, ctypes.c_ulong, _span, ctypes.c_ulong, ctypes.c_ulong)
    _call.restype = ctypes.c_ssize_t


def _read(process: int, address: int, out: np.ndarray) -> None:
    """Fill a contiguous array.

    Raises
    ------
    MeetingLost
        The process has ended, or has no such memory any more, or must not be read.
    """
    if _call is None:
        raise MeetingLost("this system reads no memory of other processes")
    done, base = 0, out.ctypes.data
    while done < out.nbytes:
        size = min(out.nbytes - done, _MOST)
        here, there = _Span(base + done, size), _Span(address + done, size)
        got = _call(process, here, 1, there, 1, 0)
        if got <= 0:
            why = os.strerror(ctypes.get_errno())
            raise MeetingLost(f"what process {process} lent cannot be read: {why}")
        done += got


def readable(process: int, address: int, expected: bytes) -> bool:
    """Return whether another process can be read, and has these bytes there."""
    out = np.empty(len(expected), np.uint8)
    try:
        _read(process, address, out)
    except MeetingLost:
        return False
    return out.tobytes() == expected


class Window:
    """An array that another process lends: it stays as it is until it is told that it was read.

    Parameters
    ----------
    process, address : int
    dtype : numpy.dtype
    shape : sequence of int
    """

    def __init__(self, process: int, address: int, dtype: np.dtype, shape: Sequence[int]):
        self._process, self._address = process, address
        self.dtype, self.shape = dtype, tuple(shape)
        self._room = np.empty(0, dtype)

    def into(self, out: np.ndarray) -> np.ndarray:
        """Read all of it into a contiguous array of its shape; return that."""
        _read(self._process, self._address, out)
        return out

    def array(self) -> np.ndarray:
        """Return a copy."""
        return self.into(np.empty(self.shape, self.dtype))

    def __getitem__(self, where: slice) -> np.ndarray:
        """Return some elements in their order, which are there until others are asked for."""
        start, stop, _ = where.indices(prod(self.shape))
        size = stop - start
        if self._room.size < size:
            self._room = np.empty(size, self.dtype)
        out = self._room[:size]
        _read(self._process, self._address + start * self.dtype.itemsize, out)
        return out
