"""Quotients by known numbers, as products with their inverses.

``x * (1 / c)`` is off by a unit in the last place for a third of all ``x``. With an inverse that is
the sum of two numbers, ``fma(x, high, x * low)`` is rounded as ``x / c`` is, except where that is
closer to halfway between two numbers than the sum is exact (Brisebarre, Muller and Raina 2004). Of
short divisors there is no such ``x``, of the others there are few candidates, which are tried.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np


@functools.cache
def inverse_of(number: float, dtype: np.dtype) -> tuple[Any, ...]:
    """Return the number that is the inverse, or the two of one sign whose sum it is.

    None at all where not every quotient would be rounded as a division rounds it. Where ``x * low``
    is no normal number, for quotients below ``2 ** p`` times the least, the last bit may differ.
    """
    p, least = np.finfo(dtype).nmant + 1, np.finfo(dtype).minexp
    fraction, exponent = math.frexp(abs(number))
    if not math.isfinite(number) or number == 0 or abs(exponent) > -least // 4:
        return ()
    mantissa = int(math.ldexp(fraction, 53))
    zeros = (mantissa & -mantissa).bit_length() - 1
    odd = mantissa >> zeros
    scale, more = p + odd.bit_length() - 1, 2 * p + 2
    high, rest = divmod(1 << scale, odd)
    low = _rounded((rest << more) // odd | 1, p) if rest else 0
    if not all(
        _rounded((x * high << more) + _rounded(x * low, p), p)
        == _rounded((x << scale + more) // odd | 1, p)
        for x in _near_halves(odd, p)
    ):
        return ()
    scale += exponent - 53 + zeros
    parts = (high, -scale), (low, -scale - more)
    return tuple(dtype.type(math.copysign(math.ldexp(*x), number)) for x in parts if x[0])


def _near_halves(odd: int, p: int) -> set[int]:
    """Return all integers of ``p`` bits whose quotients are within ``2 ** -(2 * p - 2)`` of a half.

    A half is an odd ``m`` of ``p + 1`` bits, and ``x * 2 ** k`` is ``odd * m + c`` there, with an
    odd ``c`` of up to 8: ``m`` is known modulo ``2 ** k``.
    """
    found: set[int] = set()
    bits = odd.bit_length()
    if bits < p - 3:  # c would be less than 1
        return found
    for k in (bits, bits + 1):
        inverse = pow(odd, -1, 1 << k)
        for c in range(-9, 10, 2):
            first = (1 << p) + (-c * inverse - (1 << p)) % (1 << k)
            every = range(first, 2 << p, 1 << k)
            found.update(x for m in every if ((x := odd * m + c >> k) >> p - 1) == 1)
    return found


def _rounded(x: int, p: int) -> int:
    """Round to ``p`` bits, and to an even one halfway."""
    drop = max(x.bit_length() - p, 0)
    half = (1 << drop >> 1) - 1 + (x >> drop & 1) if drop else 0
    return x + half >> drop << drop
