"""Roots, lengths, and powers whose exponent a program gives as a number that is half of an integer.

`pow` takes a logarithm and an exponential; those powers take products, square roots and one
division, 5 to 15 % of its time. What is rounded on the way is carried along (Dekker, *Numer. Math.*
18, 1971), or computed in float64 for float32, so that the last rounding is nearly all of the error.
"""

# pyright: reportOperatorIssue=false, reportArgumentType=false
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


#: The function of each exponent that has one; 1 and 2 need none.
BY_EXPONENT = {
    -3.0: "pow_m3", -2.5: "pow_m5_2", -2.0: "pow_m2", -1.5: "pow_m3_2", -1.0: "pow_m1",
    -0.5: "pow_m1_2", 0.5: "pow_1_2", 1.5: "pow_3_2", 2.5: "pow_5_2", 3.0: "pow_3", 4.0: "pow_4",
}  # fmt: skip


def _product(a, b):
    """Return the product of two sums of two floats; the second of each may be None, for 0."""
    high, low = two_product(a[0], b[0])
    for large, small in ((a[0], b[1]), (b[0], a[1])):
        low = low if small is None else fma(large, small, low)
    return high, low


def _root(a):
    """Return the square root of a sum of two floats, as one."""
    high = sqrt(a[0])
    rest = fma(-high, high, a[0])
    return high, 0.5 * (rest if a[1] is None else rest + a[1]) / high


def _inverse(a):
    """Return one over a sum of two floats, as such a sum."""
    high = 1.0 / a[0]
    rest = fma(-high, a[0], const(1.0, a[0]))
    return high, high * (rest if a[1] is None else fma(-high, a[1], rest))


def _power(x, exponent):
    """Return a power as a sum of two floats, the second of which is NaN where the first is all."""
    size = abs(exponent)
    # From -1 on the inverse is infinite where the power is. It is not the square root's.
    base = _inverse((x, None)) if exponent <= -1 else (x, None)
    factors = [base] * int(size)
    if size % 1:
        factors.append(_inverse(_root(base)) if exponent == -0.5 else _root(base))
    power = factors[0]
    for factor in factors[1:]:
        power = _product(power, factor)
    return power


def _power_in_double(x, exponent):
    """Return a power of a float32, which no power of it leaves the range of."""
    power = sqrt(x) if exponent % 1 else None
    for _ in range(int(abs(exponent))):
        power = x if power is None else power * x
    return power if exponent > 0 else 1.0 / power


def _function(exponent, name):
    def power(x):
        if exponent % 1:  # C99: minus infinity has such powers, and those of -0 have no sign
            x = select(x == -INF, const(INF, x), x + 0.0)
        if exponent == 0.5:
            return sqrt(x)
        if exponent == -1:
            return 1.0 / x
        if x.dtype == f32:
            return convert(_power_in_double(convert(x, f64), exponent), f32)
        high, low = _power(x, exponent)
        return select((fabs(high) < INF) & (high != 0.0), high + low, high)

    power.__name__ = power.__qualname__ = name
    power.__doc__ = (
        f"``x ** {exponent:g}``, within 0.51 ULP, and 1.5 ULP beside float64's smallest normal "
        "numbers; special cases as in C99."
    )
    return scalar(power)


pow_m3, pow_m5_2, pow_m2, pow_m3_2, pow_m1, pow_m1_2, pow_1_2, pow_3_2, pow_5_2, pow_3, pow_4 = (
    _function(exponent, name) for exponent, name in BY_EXPONENT.items()
)

__all__ = [
    "cbrt", "hypot", "pow_1_2", "pow_3", "pow_3_2", "pow_4", "pow_5_2", "pow_m1", "pow_m1_2",
    "pow_m2", "pow_m3", "pow_m3_2", "pow_m5_2", "rsqrt",
]  # fmt: skip
