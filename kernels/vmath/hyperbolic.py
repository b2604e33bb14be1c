"""Hyperbolic functions and their inverses, from exponentials and logarithms that keep low parts."""

from __future__ import annotations

from fnarray_kernels._ir import const, copysign, f32, fabs, fma, scalar, select, sqrt
from fnarray_kernels.vmath import coefficients as c
from fnarray_kernels.vmath.exponential import exp_scaled, expm1, log1p_of
from fnarray_kernels.vmath.parts import (
    INF,
    LN2,
    NAN,
    horner,
    in_double,
    keep_zero,
    quick_two_sum,
)


def _tanh_near(x):
    z = select(fabs(x) < 1.0, x * x, const(0.0, x))
    return fma(x * z, horner(z, c.TANH_32), x)


@scalar(only=f32)
def tanh_near(x):
    """Hyperbolic tangent of float32 below 1 in size, within 1 ULP."""
    return _tanh_near(x)


@scalar
def tanh(x):
    """Hyperbolic tangent, within 1.25 ULP (float32) or 2 ULP (float64)."""
    size = fabs(x)
    if x.dtype == f32:
        near = _tanh_near(x)
        far = 1.0 - 2.0 / (exp_scaled(size + size) + 1.0)
        return keep_zero(x, select(size < 1.0, near, copysign(far, x)))
    t = expm1(-2.0 * size)
    far = size > 1.0
    top = select(far, 2.0 * (t + 1.0), -t)
    under, lost = quick_two_sum(const(2.0, x), t)
    y = top / under
    # One Newton step; 1 / under follows from the quotient.
    inverse = select(far, fma(y, const(-0.5, x), 1.0), fma(y, const(0.5, x), 0.5))
    y = fma(fma(-y, lost, fma(-y, under, top)), inverse, y)
    return keep_zero(x, copysign(select(far, 1.0 - y, y), x))


@in_double
def sinh(x):
    """Hyperbolic sine, within 2.25 ULP."""
    size = fabs(x)
    half = exp_scaled(size, -1)
    t = expm1(select(size < 2.0, size, 2.0))
    near = 0.5 * (t + t / (t + 1.0))
    return keep_zero(x, copysign(select(size < 2.0, near, half - 0.25 / half), x))


@in_double
def cosh(x):
    """Hyperbolic cosine, within 2 ULP."""
    half = exp_scaled(fabs(x), -1)
    return half + 0.25 / half


@in_double
def asinh(x):
    """Inverse hyperbolic sine, within 2 ULP."""
    size = fabs(x)
    large = size > 2.0**28
    a = select(large, 1.0, size)
    small = log1p_of(select(large, size - 1.0, a + a * a / (1.0 + sqrt(fma(a, a, const(1.0, x))))))
    y = copysign(small + select(large, LN2, 0.0 * small), x)
    return keep_zero(x, select(size < INF, y, x))


@in_double
def acosh(x):
    """Inverse hyperbolic cosine, within 2.75 ULP; NaN below 1."""
    large = x > 2.0**28
    t = select(large, 1.0, x) - 1.0
    y = log1p_of(select(large, x - 1.0, t + sqrt(t * (t + 2.0))))
    y = y + select(large, LN2, 0.0 * t)
    return select(x >= 1.0, select(x < INF, y, x), const(NAN, x))


@in_double
def atanh(x):
    """Inverse hyperbolic tangent, within 2 ULP; infinite at -1 and 1, NaN outside."""
    size = fabs(x)
    inside = size < 1.0
    a = select(inside, size, 0.5)
    y = 0.5 * log1p_of((a + a) / (1.0 - a))
    y = select(inside, y, select(size == 1.0, const(INF, x), const(NAN, x)))
    return keep_zero(x, copysign(y, x))


__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]
