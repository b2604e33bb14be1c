"""Arrays that a program keeps between its calls: temporaries, and working arrays of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

#: Bytes of a cache's line, and of the widest vector.
LINE: Final = 64

#: Bytes of each piece of memory, and the arrays that lie there: (piece, shape, dtype).
Spec = tuple[Sequence[int], Sequence[tuple[int, tuple[int, ...], np.dtype]]]


def taken(spare: list[tuple[np.ndarray, ...]], spec: Spec) -> tuple[np.ndarray, ...]:
    """Return a set of arrays for one call: one that no call is using, or a new one.

    A call that raises does not give its set back.
    """
    try:
        return spare.pop()
    except IndexError:
        slots, views = spec
        pieces = [_aligned(size) for size in slots]
        return tuple(
            pieces[slot][: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
            for slot, shape, dtype in views
        )


def _aligned(size: int) -> np.ndarray:
    """Return memory that begins with a line of the caches.

    A vector of 64 bytes that crosses lines is not handed from a store to the load that follows.
    """
    room = np.empty(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size]
