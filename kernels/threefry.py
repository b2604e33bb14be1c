"""Threefry-2x32: a counter-based generator, one block of two words at a time.

Twenty rounds of add, rotate, xor, with a key word mixed in after every fourth (Salmon, Moraes,
Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). No state: any element of
a random array is computed from its position alone, so a loop over positions vectorises.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels._ir import convert, scalar

ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
PARITY = 0x1BD11BDA


def _block(k0, k1, x0, x1):
    """Return the two words that the key ``(k0, k1)`` makes of the counter ``(x0, x1)``."""
    keys = k0, k1, k0 ^ k1 ^ PARITY
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for r in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ (x1 << r | x1 >> (32 - r))
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + (group + 1)
    return x0, x1


@scalar(only=np.uint32)
def mixed(k0, k1, x0, x1):
    """Exclusive or of the two words of a block: 32 bits."""
    a, b = _block(k0, k1, x0, x1)
    return a ^ b


@scalar(only=np.uint32, result=np.uint64)
def joined(k0, k1, x0, x1):
    """Both words of a block, the first in the high half: 64 bits."""
    a, b = _block(k0, k1, x0, x1)
    return convert(a, np.uint64) << 32 | convert(b, np.uint64)
