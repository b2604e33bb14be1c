"""Matrix products on the pool's threads.

OpenBLAS has threads of its own, which keep spinning for some time after a product in the hope of
the next; with as many kernels' threads as cores they take turns with those, and a training step of
alternating products and kernels ran three times slower than its parts. So a product is cut into one
block of rows or columns for each of our threads, and BLAS works on one thread in each.
"""

from __future__ import annotations

import numpy as np

from ...threads.onethread import one_thread
from ..target import Limits, weighed
from .launch import threads, together

_FLOATS = frozenset("fdFD")


def matmul(limits: Limits, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Multiply matrices, or stacks of them, of one dtype; as `numpy.matmul`."""
    *stack, rows, _ = lhs.shape
    columns = rhs.shape[-1]
    work = weighed(lhs.size * columns, lhs.dtype)
    plain = lhs.dtype.char in _FLOATS and len(stack) == rhs.ndim - 2 <= 1
    if work <= limits.serial or not plain:
        return np.matmul(lhs, rhs)
    count = max(1, min(threads(), work // limits.share))
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

    with one_thread:
        together(block, count)
    return out
