"""What the vector math functions share: polynomials, powers of two, exact sums and products."""

# pyright: reportOperatorIssue=false
# Operands are NumPy scalars or traced values, which no declaration tells apart.
from __future__ import annotations

import functools

import numpy as np

from fnarray_kernels._ir import bitcast, const, convert, f32, f64, fma, scalar, select

INF, NAN = np.inf, np.nan
LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
# log(2) in two parts; products of the first with an exponent are exact.
LN2_PARTS = {
    f64: (0.6931471805598903, 5.497923018708371e-14),
    f32: (0.693145751953125, 1.4286068203094173e-06),
}
MANTISSA = {f64: 52, f32: 23}


def in_double(text):
    """Compute `text` in float64 also for float32: half an ULP of error, and one polynomial less."""

    @functools.wraps(text)
    def either(*args):
        if args[0].dtype == f32:
            return convert(text(*(convert(a, f64) for a in args)), f32)
        return text(*args)

    return scalar(either)


def integer(x):
    """Return the signed integer dtype as wide as `x`."""
    return np.dtype(f"i{x.dtype.itemsize}")


def magic(x):
    """Return 1.5 * 2**mantissa: adding it rounds to an integer, held in the low bits of the sum."""
    return const(1.5 * 2.0 ** MANTISSA[x.dtype], x)


def nearest(x, factor=1.0):
    """Return the integer nearest to ``factor * x`` as a float and as an integer.

    The product must be below 2**(mantissa - 2) in size; other arguments give garbage, not traps.
    """
    big = magic(x)
    shifted = fma(x, const(factor, x), big)
    return shifted - big, bitcast(shifted, integer(x)) - bitcast(big, integer(x))


def to_float(n, like):
    """Return the small integer `n` as a float like `like` (AVX2 cannot convert 64-bit integers)."""
    big = magic(like)
    return bitcast(n + bitcast(big, n.dtype), like.dtype) - big


def power_of_two(n, dtype):
    """Return 2**n for an integer `n` within the exponents of normal numbers."""
    return bitcast((n + (1 - np.finfo(dtype).minexp)) << MANTISSA[dtype], dtype)


def scale(x, n):
    """Return ``x * 2**n`` in two steps, so that it may overflow, or round once as it underflows."""
    half = n >> 1
    return x * power_of_two(half, x.dtype) * power_of_two(n - half, x.dtype)


def horner(x, coefficients):
    """Return the polynomial with `coefficients`, lowest degree first, at `x`."""
    total = const(coefficients[-1], x)
    for c in coefficients[-2::-1]:
        total = fma(total, x, const(c, x))
    return total


def two_sum(a, b):
    """Return ``a + b`` and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def quick_two_sum(a, b):
    """Return ``a + b`` and its rounding error, when `a` is the larger or zero (Dekker)."""
    total = a + b
    return total, b - (total - a)


def two_product(a, b):
    """Return ``a * b`` and its rounding error."""
    product = a * b
    return product, fma(a, b, -product)


def two_parts(number, like):
    """Return a constant as the sum of two floats like `like`."""
    high = float(like.dtype.type(number))
    return const(high, like), const(number - high, like)


def double_product(a, b):
    """Return the product of two sums of two floats, as a sum of two floats."""
    high, low = two_product(a[0], b[0])
    return high, low + (a[0] * b[1] + a[1] * b[0])


def is_negative(x):
    """Whether the sign bit of `x` is set."""
    return bitcast(x, integer(x)) < 0


def clip(x, low, high):
    """Return `x` moved into [low, high]; NaN stays NaN."""
    return select(x > high, const(high, x), select(x < low, const(low, x), x))


def keep_zero(x, y):
    """Return `y`, but `x` itself, with its sign, where it is zero."""
    return select(x == 0, x, y)
