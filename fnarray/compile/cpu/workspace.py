"""Arrays that a program keeps between its calls: temporaries, and working arrays of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from ...core.lines import aligned

_BYTE: Final = np.dtype(np.uint8)

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
        pieces = [aligned((size,), _BYTE, size, k) for k, size in enumerate(slots)]
        return tuple(
            pieces[slot][: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
            for slot, shape, dtype in views
        )
