"""Sines, tangents and their inverses.

Arguments are reduced by multiples of pi/2: moderate ones by subtracting three parts of pi/2 whose
products are exact (Cody and Waite, 1980), huge ones by multiplying with those bits of 2/pi that
matter at their size (Payne and Hanek, SIGNUM Newsletter 18, 1983). There is no branch: the bits
are looked up, or for float32 selected, so loops keep their vector width for arguments of any size.
"""

# pyright: reportOperatorIssue=false
# Operands are NumPy scalars or traced values, which no declaration tells apart.
from __future__ import annotations

import numpy as np

from fnarray_kernels._ir import (
    bitcast,
    const,
    convert,
    copysign,
    f32,
    f64,
    fabs,
    fma,
    lookup,
    rint,
    scalar,
    select,
    sqrt,
)
from fnarray_kernels.vmath import coefficients as c
from fnarray_kernels.vmath.parts import (
    INF,
    NAN,
    horner,
    in_double,
    is_negative,
    keep_zero,
    nearest,
    power_of_two,
    quick_two_sum,
    two_product,
    two_sum,
)

_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_HALF_PI_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
_TWO_OVER_PI = np.array(c.TWO_OVER_PI)
# 2/pi less its first 0, 24, 48, 72 and 96 bits, each as a sum of two doubles.
_TWO_OVER_PI_24 = (
    (0.6366197723675814, -3.935735335036497e-17),
    (2.568255326690366e-08, -5.434184107743751e-25),
    (2.93709554037182e-16, 1.018166438749971e-32),
    (3.254380609134673e-23, 2.5184173833409495e-39),
    (1.2089614275584243e-29, -4.206390046783834e-46),
)


def _quarter_turns_single(x):
    """Reduce a float64 holding a float32: return r within pi/4 and the count of quarter turns."""
    size, (high, low) = fabs(x), (const(p, x) for p in _TWO_OVER_PI_24[0])
    for exponent, (more_high, more_low) in zip((49, 73, 97, 121), _TWO_OVER_PI_24[1:], strict=True):
        # The bits dropped are worth multiples of four quarter turns for a 24-bit argument.
        above = size >= 2.0**exponent
        high, low = select(above, more_high, high), select(above, more_low, low)
    turns, error = two_product(x, high)
    whole, n = nearest(turns)
    return ((turns - whole) + fma(x, low, error)) * _HALF_PI[0], n


def _moderate(x):
    """Return r, its rounding error and n for ``|x| < 2**20``."""
    k, n = nearest(x, 2 / np.pi)
    first, second, third = _HALF_PI_PARTS
    r, error = two_sum(fma(-k, const(first, x), x), -k * second)
    return *quick_two_sum(r, fma(-k, const(third, x), error)), n


def _huge(x):
    """Return r, its rounding error and n for ``|x| >= 2**20``."""
    exponent = ((bitcast(x, np.int64) >> 52) & 0x7FF) - 1023
    group = (exponent - 54) >> 4
    group = select(group < 0, 0, select(group > 60, 60, group))
    x = x * power_of_two(-(group << 4), f64)
    parts = [lookup(_TWO_OVER_PI, (group << 2) + i) for i in range(4)]
    a, b = two_product(x, parts[0])
    d, e = two_product(x, parts[1])
    g, h = two_product(x, parts[2])
    a, b, d = (v - 4.0 * rint(0.25 * v) for v in (a, b, d))
    total, low1 = two_sum(a, b)
    total, low2 = two_sum(total, d)
    whole, n = nearest(total)
    low, rest = two_sum(low1, low2)
    total, low3 = two_sum(total - whole, low)
    total, low4 = two_sum(total, e)
    total, low5 = two_sum(total, g)
    total, low = quick_two_sum(total, low3 + low4 + low5 + rest + fma(x, parts[3], h))
    r, error = two_product(total, const(_HALF_PI[0], x))
    return r, error + fma(total, const(_HALF_PI[1], x), low * _HALF_PI[0]), n


def _quarter_turns(x):
    """Reduce a float64: return r within pi/4, its rounding error, and the quarter turns."""
    moderate = fabs(x) < 2.0**20
    return tuple(select(moderate, a, b) for a, b in zip(_moderate(x), _huge(x), strict=True))


def _sin_cos(x):
    """Return sin(r), cos(r) and n, where `x` is r after n quarter turns; float32 gives float64."""
    if x.dtype == f32:
        r, n = _quarter_turns_single(convert(x, f64))
        z = r * r
        cosine = fma(z * z, horner(z, c.COS_32), fma(z, const(-0.5, z), const(1.0, z)))
        return fma(r * z, horner(z, c.SIN_32), r), cosine, n
    r, low, n = _quarter_turns(x)
    z = r * r
    sine = r + fma(r * z, horner(z, c.SIN_64), low * fma(z, const(-0.5, z), const(1.0, z)))
    half = 0.5 * z
    cosine, lost = quick_two_sum(const(1.0, z), -half)
    return sine, cosine + (lost + fma(z * z, horner(z, c.COS_64), -r * low)), n


def _turned(x, sine, cosine, n):
    """Return the sine after n quarter turns, as the dtype of `x`."""
    y = select((n & 1) == 0, sine, cosine)
    return convert(select((n & 2) == 0, y, -y), x.dtype)


@scalar
def sin(x):
    """Sine, within 1 ULP for arguments of any size; NaN at infinities."""
    return keep_zero(x, _turned(x, *_sin_cos(x)))


@scalar
def cos(x):
    """Cosine, within 1 ULP for arguments of any size; NaN at infinities."""
    sine, cosine, n = _sin_cos(x)
    return _turned(x, sine, cosine, n + 1)


@scalar
def tan(x):
    """Tangent, within 2.5 ULP for arguments of any size; NaN at infinities."""
    sine, cosine, n = _sin_cos(x)
    even = (n & 1) == 0
    return keep_zero(x, convert(select(even, sine, -cosine) / select(even, cosine, sine), x.dtype))


def _asin_tail(z):
    """Return ``asin(r) / r - 1`` at ``z = r**2 <= 1/4``."""
    return z * horner(z, c.ASIN_64)


def _far(x):
    """Return ``2 asin(root)``, as a sum, with ``root = sqrt((1 - |x|) / 2)``: the angle to 1."""
    z = fma(fabs(x), const(-0.5, x), const(0.5, x))
    root = sqrt(z)
    lost = select(root > 0, fma(-root, root, z) / (root + root), const(0.0, x))
    return 2.0 * root, 2.0 * fma(root, _asin_tail(z), lost)


@in_double
def asin(x):
    """Arcsine, within 1 ULP; NaN outside [-1, 1]."""
    near = fabs(x) <= 0.5
    z = select(near, x * x, 0.0)
    high, low = _far(x)
    far = _HALF_PI[0] - high
    far = far + (((_HALF_PI[0] - far) - high) + (_HALF_PI[1] - low))
    return keep_zero(x, select(near, fma(x, _asin_tail(z), x), copysign(far, x)))


@in_double
def acos(x):
    """Arccosine, within 1 ULP; NaN outside [-1, 1]."""
    near = fabs(x) <= 0.5
    z = select(near, x * x, 0.0)
    middle = _HALF_PI[0] - (x - (_HALF_PI[1] - x * _asin_tail(z)))
    high, low = _far(x)
    opposite = 2.0 * _HALF_PI[0] - high
    opposite = opposite + (((2.0 * _HALF_PI[0] - opposite) - high) + (2.0 * _HALF_PI[1] - low))
    return select(near, middle, select(x > 0, high + low, opposite))


def _arc(top, bottom):
    """Return ``atan(top / bottom)`` of non-negative numbers, not both 0 nor both infinite.

    The angle is measured from the nearest of 0, pi/4 and pi/2 (Moshier's choice in Cephes, 1989),
    all three through one quotient.
    """
    low = top <= bottom * 0.41421356237309503
    high = top >= bottom * 2.414213562373095
    over = select(low, top, select(high, -bottom, top - bottom))
    under = select(low, bottom, select(high, top, top + bottom))
    t = over / under
    eighths = select(low, 0.0, select(high, 2.0, const(1.0, t)))
    z = t * t
    base = eighths * (0.5 * _HALF_PI[0])
    return base + (t + fma(t * z, horner(z, c.ATAN_64), eighths * (0.5 * _HALF_PI[1])))


@in_double
def atan(x):
    """Arctangent, within 2 ULP."""
    return keep_zero(x, copysign(_arc(fabs(x), const(1.0, x)), x))


@in_double
def atan2(y, x):
    """Angle of the point (x, y), within 2 ULP, with the special cases of C99."""
    top, bottom = fabs(y), fabs(x)
    both = (top == INF) & (bottom == INF)
    top, bottom = select(both, 1.0, top), select(both, 1.0, bottom)
    large = select(top > bottom, top, bottom)
    # Powers of two keep sums finite and quotients of subnormals exact.
    factor = select(large > 2.0**1000, 2.0**-3, select(large < 2.0**-900, 2.0**110, const(1.0, x)))
    angle = _arc(top * factor, bottom * factor)
    angle = select(large == 0, 0.0, angle)
    turned = 2.0 * _HALF_PI[0] - (angle - 2.0 * _HALF_PI[1])
    angle = copysign(select(is_negative(x), turned, angle), y)
    return select((x != x) | (y != y), const(NAN, x), angle)


__all__ = ["acos", "asin", "atan", "atan2", "cos", "sin", "tan"]
