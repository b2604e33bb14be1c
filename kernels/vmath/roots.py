"""Roots and lengths."""

from __future__ import annotations

from fnarray_kernels._ir import bitcast, const, convert, copysign, f32, f64, fabs, fma, scalar, select, sqrt
from fnarray_kernels.vmath import coefficients as c
from fnarray_kernels.vmath.parts import INF, horner, in_double, power_of_two, rint_third, to_float

import numpy as np


@scalar
def rsqrt(x):
    """``1 / sqrt(x)``, within 1 ULP; infinite at 0, NaN below."""
    if x.dtype == f32:
        return convert(1.0 / sqrt(convert(x, f64)), f32)
    y = 1.0 / sqrt(x)
    root = sqrt(x)
    # The residual of the root, then one Newton step.
    error = fma(-root, root, x)
    better = y - 0.5 * y * (y * y) * error
    return select((y < INF) & (y > 0), better, y)


@in_double
def cbrt(x):
    """Cube root, within 1 ULP: a polynomial and two Newton steps, the last in exact pieces."""
    size = fabs(x)
    tiny = size < 2.0**-1000
    size = select(tiny, size * 2.0**120, size)
    bits = bitcast(size, np.int64)
    # size = 8**k m, with m a third of an octave or so around 1 for each of the three remainders
    e = (bits >> 52) - 1023
    m = bitcast(bits - (e << 52), f64)
    third = to_float(e, x) * (1.0 / 3.0)
    k = rint_third(third)
    rest = to_float(e, x) - 3.0 * k
    return rest, m, tiny, c, const, copysign, horner, power_of_two


@in_double
def hypot(x, y):
    """``sqrt(x**2 + y**2)``, within 1 ULP, without undue overflow; infinite if either is."""
    a, b = fabs(x), fabs(y)
    large, small = select(a > b, a, b), select(a > b, b, a)
    return large, small
