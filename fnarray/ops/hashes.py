"""Counter-based hashes of 32-bit words, written as operations on arrays.

Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3 (SC 2011), which has the
constants. `random_bits` has Threefry-2x32, the default, with kernels of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .bitwise import bitwise_or, bitwise_xor, mulhi, shift_left, shift_right_logical
from .kit.calls import add, mul

Words = tuple[Any, ...]

_ROUNDS = 10
_WEYL = 0x9E3779B9, 0xBB67AE85
_PARITY = np.uint32(0x1BD11BDA)
_ROTATIONS = (
    (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20),
)  # fmt: skip


def _xor(*words: Any) -> Any:
    first, *others = words
    for word in others:
        first = bitwise_xor(first, word)
    return first


def _wide(x: Any, factor: int) -> tuple[Any, Any]:
    """Return high and low word of a product."""
    by = np.uint32(factor)
    return mulhi(x, by), mul(x, by)


def philox2x32(key: Words, counter: Words) -> Words:
    """Return the two words that Philox-2x32 with ten rounds makes of a counter of two."""
    (k,), (a, b) = key, counter
    for _ in range(_ROUNDS):
        high, low = _wide(a, 0xD256D193)
        a, b = _xor(high, b, k), low
        k = add(k, np.uint32(_WEYL[0]))
    return a, b


def philox4x32(key: Words, counter: Words) -> Words:
    """Return the four words that Philox-4x32 with ten rounds makes of a counter of four."""
    (k0, k1), (a, b, c, d) = key, counter
    for _ in range(_ROUNDS):
        (high_a, low_a), (high_c, low_c) = _wide(a, 0xD2511F53), _wide(c, 0xCD9E8D57)
        a, b, c, d = _xor(high_c, b, k0), low_c, _xor(high_a, d, k1), low_a
        k0, k1 = (add(k, np.uint32(w)) for k, w in zip((k0, k1), _WEYL, strict=True))
    return a, b, c, d


def _mixed(a: Any, b: Any, by: int) -> tuple[Any, Any]:
    """Add, rotate, and exclusive-or two words."""
    total = add(a, b)
    turned = bitwise_or(shift_left(b, np.uint32(by)), shift_right_logical(b, np.uint32(32 - by)))
    return total, _xor(total, turned)


def threefry4x32(key: Words, counter: Words) -> Words:
    """Return the four words that Threefry-4x32 with twenty rounds makes of a counter of four."""
    keys = *key, _xor(*key, _PARITY)
    a, b, c, d = (add(x, k) for x, k in zip(counter, keys, strict=False))
    for i in range(20):
        first, second = _ROTATIONS[i % 8]
        if i % 2:
            (a, d), (c, b) = _mixed(a, d, first), _mixed(c, b, second)
        else:
            (a, b), (c, d) = _mixed(a, b, first), _mixed(c, d, second)
        if i % 4 == 3:
            n = i // 4 + 1
            a, b, c, d = (add(x, keys[(n + j) % 5]) for j, x in enumerate((a, b, c, d)))
            d = add(d, np.uint32(n))
    return a, b, c, d
