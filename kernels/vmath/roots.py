"""Roots and lengths."""

# pyright: reportOperatorIssue=false
# Operands are NumPy scalars or traced values, which no declaration tells apart.
from __future__ import annotations

from fnarray_kernels._ir import const, convert, copysign, f32, f64, fabs, fma, scalar, select, sqrt
from fnarray_kernels.vmath import coefficients as c
from fnarray_kernels.vmath.exponential import split
from fnarray_kernels.vmath.parts import (
    INF,
    horner,
    in_double,
    nearest,
    power_of_two,
    two_product,
)

_CUBE_ROOT_OF_2 = 1.2599210498948732


@scalar
def rsqrt(x):
    """``1 / sqrt(x)``, within 1.5 ULP; infinite at 0, NaN below."""
    return 1.0 / sqrt(x)


@in_double
def cbrt(x):
    """Cube root, within 1 ULP: a quartic and two Newton steps, the second on an exact residual."""
    size = fabs(x)
    f, e = split(size)
    k, n = nearest(e, 1.0 / 3.0)
    rest = fma(k, const(-3.0, x), e)
    above, below = rest > 0, rest < 0
    v = (1.0 + f) * select(above, 2.0, select(below, 0.5, const(1.0, x)))
    step = select(above, _CUBE_ROOT_OF_2, select(below, 1.0 / _CUBE_ROOT_OF_2, const(1.0, x)))
    g = horner(1.0 + f, c.CBRT_64) * step
    square = g * g
    g = g - fma(g, square, -v) / (3.0 * square)
    square, low = two_product(g, g)
    g = g + (fma(-g, square, v) - g * low) / (3.0 * square)
    return select((size > 0) & (size < INF), copysign(g * power_of_two(n, f64), x), x)


@scalar
def hypot(x, y):
    """``sqrt(x**2 + y**2)``, within 1.25 ULP, without undue overflow; infinite if either is."""
    a, b = fabs(x), fabs(y)
    infinite = (a == INF) | (b == INF)
    if x.dtype == f32:  # whose squares do not overflow in double precision
        a, b = convert(a, f64), convert(b, f64)
        length = convert(sqrt(fma(a, a, b * b)), f32)
        return select(infinite, const(INF, x), length)
    large = select(a > b, a, b)
    huge, tiny = large > 2.0**500, large < 2.0**-400
    up = select(huge, 2.0**-600, select(tiny, 2.0**600, const(1.0, x)))
    down = select(huge, 2.0**600, select(tiny, 2.0**-600, const(1.0, x)))
    a, b = a * up, b * up
    length = sqrt(fma(a, a, b * b)) * down
    return select(infinite, const(INF, x), length)


__all__ = ["cbrt", "hypot", "rsqrt"]
