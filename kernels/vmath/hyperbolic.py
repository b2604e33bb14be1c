"""Hyperbolic functions and their inverses, from exponentials and logarithms that keep low parts."""

from __future__ import annotations

from fnarray_kernels._ir import const, convert, copysign, f32, f64, fabs, fma, scalar, select, sqrt
from fnarray_kernels.vmath import coefficients as c
from fnarray_kernels.vmath.exponential import (
    exp_scaled,
    expm1,
    expm1_scaled,
    log1p_of,
    log_of,
    split,
)
from fnarray_kernels.vmath.parts import (
    INF,
    LN2,
    LOG2_E,
    NAN,
    horner,
    in_double,
    keep_zero,
    nearest,
    power_of_two,
    quick_two_sum,
)

# Of ``(exp(2 r) - 1 - 2 r) / (2 r**2)``: those of ``exp(y)`` at ``y = 2 r``, times powers of two.
_EXPM1_HALF = tuple(term * 2.0 ** (i + 1) for i, term in enumerate(c.EXP_32))


@scalar(only=f32)
def tanh_near(x):
    """Hyperbolic tangent of float32 below 1 in size, within 1 ULP: a GPU's, which has powers."""
    z = select(fabs(x) < 1.0, x * x, const(0.0, x))
    return fma(x * z, horner(z, c.TANH_32), x)


@scalar
def tanh(x):
    """Hyperbolic tangent, within 2 ULP."""
    size = fabs(x)
    if x.dtype == f32:
        # With h = expm1(2 r) / 2 and u = 2**(n - 1): top / (top + 2 u), and no choice of a formula.
        a = select(size > 9.02, const(9.02, x), size)
        k, n = nearest(a, -2.0 * LOG2_E)
        r = fma(k, const(0.5 * LN2, x), a)
        half = fma(r * r, horner(r, _EXPM1_HALF), r)
        u = power_of_two(n - 1, f32)
        top = half + (0.5 - u)
        y = top / (top + (u + u))
        # Where y is small, its own rounding errors are if it is top / 2u less what y takes of that.
        whole = top * power_of_two(-n, f32)
        y = select(a < 0.35, fma(-whole, y, whole), y)
        return copysign(y, x)
    t = expm1(-2.0 * size)
    far = size > 1.0
    top = select(far, 2.0 * (t + 1.0), -t)
    under, lost = quick_two_sum(const(2.0, x), t)
    y = top / under
    # One Newton step; 1 / under follows from the quotient.
    inverse = select(far, fma(y, const(-0.5, x), 1.0), fma(y, const(0.5, x), 0.5))
    y = fma(fma(-y, lost, fma(-y, under, top)), inverse, y)
    return keep_zero(x, copysign(select(far, 1.0 - y, y), x))


@scalar
def sinh(x):
    """Hyperbolic sine, within 2.25 ULP."""
    size = fabs(x)
    if x.dtype == f32:
        quarter = expm1_scaled(size, -2)
        half = quarter + quarter
        y = half + quarter / (half + 0.5)
        return select(size < 2.0**-12, x, copysign(y, x))
    half = exp_scaled(size, -1)
    t = expm1(select(size < 2.0, size, 2.0))
    near = 0.5 * (t + t / (t + 1.0))
    return keep_zero(x, copysign(select(size < 2.0, near, half - 0.25 / half), x))


@scalar
def cosh(x):
    """Hyperbolic cosine, within 2 ULP."""
    half = exp_scaled(fabs(x), -1)
    return half + 0.25 / half


def _log_of_sum(x, one):
    """Return ``log(x + sqrt(x**2 + one))`` of a float32 `x >= 0`: in double, to 30 bits.

    Nothing overflows there; and of the sum's own error, where it is near 1, no float32 knows.
    """
    a = convert(x, f64)
    total = a + sqrt(fma(a, a, const(one, a)))
    return convert(log_of(*split(total), terms=c.LOG_32), f32)


@scalar
def asinh(x):
    """Inverse hyperbolic sine, within 0.51 ULP (float32) or 2 ULP (float64)."""
    size = fabs(x)
    if x.dtype == f32:
        y = _log_of_sum(size, 1.0)
        # Below, the cube is under a quarter of the last bit; of infinity no logarithm is computed.
        return select((size > 2.0**-12) & (size < INF), copysign(y, x), x)
    large = size > 2.0**28
    a = select(large, 1.0, size)
    small = log1p_of(select(large, size - 1.0, a + a * a / (1.0 + sqrt(fma(a, a, const(1.0, x))))))
    y = copysign(small + select(large, LN2, 0.0 * small), x)
    return keep_zero(x, select(size < INF, y, x))


@scalar
def acosh(x):
    """Inverse hyperbolic cosine, within 0.51 ULP (float32) or 2.75 ULP (float64); NaN below 1."""
    if x.dtype == f32:
        y = _log_of_sum(select(x > 1.0, x, const(1.0, x)), -1.0)
        return select(x >= 1.0, select(x < INF, y, x), const(NAN, x))
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
