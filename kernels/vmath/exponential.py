"""Exponentials, logarithms and powers.

Exponentials: ``x = n log 2 + r`` with ``|r| <= log(2) / 2`` (Cody and Waite, *Software Manual for
the Elementary Functions*, 1980), a polynomial in r, and n added to the exponent. Logarithms:
``x = 2**e (1 + f)`` and a series in ``s = f / (2 + f)`` (Tang, ACM TOMS 16, 1990, without tables).
"""

# pyright: reportOperatorIssue=false, reportArgumentType=false
# Operands are NumPy scalars or traced values, which no declaration tells apart.
from __future__ import annotations

import numpy as np

from fnarray_kernels._ir import bitcast, const, convert, f32, f64, fabs, fma, scalar, select, trunc
from fnarray_kernels.vmath import coefficients as c
from fnarray_kernels.vmath.parts import (
    INF,
    LN2,
    LN2_PARTS,
    LOG2_E,
    MANTISSA,
    NAN,
    clip,
    double_product,
    horner,
    integer,
    is_negative,
    keep_zero,
    nearest,
    power_of_two,
    quick_two_sum,
    scale,
    to_float,
    two_product,
    two_sum,
)

# Beyond these, exp is 0 or infinite.
_EXP_RANGE = {f64: (-746.0, 711.0), f32: (-104.5, 89.5)}
_SQRT_HALF_BITS = {f64: 0x3FE6A09E667F3BCD, f32: 0x3F3504F3}
# 2/3, 2/5 and 1/log(2), each to twice the precision of float64.
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
_TWO_FIFTHS = (0.4, -2.2204460492503132e-17)
_LOG2_E_LOW = {f64: 2.0355273740931033e-17, f32: 1.925963033500e-08}


def _reduce(x):
    """Return r and n with ``x = n log(2) + r``."""
    high, low = LN2_PARTS[x.dtype]
    k, n = nearest(x, LOG2_E)
    return fma(-k, const(low, x), fma(-k, const(high, x), x)), n


def _tail(r):
    """Return ``exp(r) - 1 - r`` for ``|r| <= log(2) / 2``."""
    return r * r * horner(r, c.EXP_64 if r.dtype == f64 else c.EXP_32)


def exp_scaled(x, shift=0, low=None, times=None):
    """Return ``exp(x + low) * 2**shift``: `low` below an ULP of `x`, `shift` a small integer.

    With `times` it is multiplied by that sum of two floats, and no more is rounded for it.
    """
    r, n = _reduce(clip(x, *_EXP_RANGE[x.dtype]))
    tail = _tail(r)
    if low is not None:
        tail = tail + fma(r + tail, low, low)
    if times is not None:
        return scale(times[0] + fma(times[0], r + tail, times[1]), n + shift)
    return scale(1.0 + (r + tail), n + shift)


@scalar
def exp(x):
    """``e**x``, within 1 ULP; subnormal results included."""
    # A product that underflows takes a processor as long as the rest: what gives 0 goes around.
    low, high = _EXP_RANGE[x.dtype]
    none = x < low + 0.5
    r, n = _reduce(select(none, const(0.0, x), select(x > high, const(high, x), x)))
    return select(none, const(0.0, x), scale(1.0 + (r + _tail(r)), n))


@scalar
def exp2(x):
    """``2**x``, within 1.25 ULP, exact at integers."""
    low, high = (-1076.0, 1025.0) if x.dtype == f64 else (-151.0, 129.0)
    x = clip(x, low, high)
    k, n = nearest(x)
    r = x - k
    return scale(1.0 + r * horner(r, c.EXP2_64 if x.dtype == f64 else c.EXP2_32), n)


def expm1_scaled(x, shift):
    """Return ``(e**x - 1) * 2**shift``, which is finite where only its double overflows."""
    limits = (-40.0, 710.0) if x.dtype == f64 else (-20.0, 88.3 - shift * LN2)
    x, (high, low) = clip(x, *limits), LN2_PARTS[x.dtype]
    k, n = nearest(x, LOG2_E)
    r, r_low = quick_two_sum(fma(-k, const(high, x), x), -k * low)
    power = power_of_two(n + shift, x.dtype)
    y, y_low = quick_two_sum(power - 2.0**shift, power * r)
    return y + fma(power, _tail(r) + r_low, y_low)


@scalar
def expm1(x):
    """``e**x - 1``, within 1.25 ULP, also near 0."""
    half = expm1_scaled(x, -1)  # of a subnormal, to one digit less
    return select(fabs(x) < np.finfo(x.dtype).eps / 4, x, half + half)


@scalar
def logistic(x):
    """``1 / (1 + e**-x)``, within 2 ULP (float32) or 1.5 ULP (float64), also where it is tiny."""
    small = exp_scaled(-fabs(x))
    top = select(x >= 0, const(1.0, x), small)
    total, lost = quick_two_sum(const(1.0, x), small)
    y = top / total
    if x.dtype == f32:
        return fma(-small, y, top)  # of the quotient's own error a part that is less than half
    # One Newton step for the rounding of the sum and the quotient; 1 / total is y or 1 - y.
    return fma(fma(-y, lost, fma(-y, total, top)), select(x >= 0, y, 1.0 - y), y)


def split(x):
    """Return f and e with ``x = 2**e (1 + f)``, ``1 + f`` between the roots of 1/2 and 2."""
    kind, bits = integer(x), MANTISSA[x.dtype]
    tiny = x < np.finfo(x.dtype).tiny
    y = bitcast(select(tiny, x * 2.0 ** (bits + 2), x), kind)
    n = (y - _SQRT_HALF_BITS[x.dtype]) >> bits
    f = bitcast(y - (n << bits), x.dtype) - 1.0
    return f, to_float(n, x) - select(tiny, bits + 2.0, const(0.0, x))


def log_of(f, e, correction=0.0, terms=None):
    """Return ``log(2**e (1 + f)) + correction``; with `terms` of its series, to as many bits."""
    high, low = LN2_PARTS[f.dtype]
    s, half = f / (2.0 + f), 0.5 * f * f
    z = s * s
    tail = z * horner(z, terms or (c.LOG_64 if f.dtype == f64 else c.LOG_32))
    small = fma(s, half + tail, fma(e, const(low, f), correction))
    return fma(e, const(high, f), f - (half - small))


def log_edges(x, y):
    """Return `y` with the values of a logarithm at and below 0 and at infinity."""
    y = select(x > 0, y, select(x == 0, const(-INF, x), const(NAN, x)))
    return select(x == INF, x, y)


@scalar
def log(x):
    """Natural logarithm, within 1 ULP; -inf at 0, NaN below."""
    return log_edges(x, log_of(*split(x)))


@scalar
def log2(x):
    """Logarithm to base 2, within 2 ULP, exact at powers of two."""
    f, e = split(x)
    y = log_of(f, const(0.0, x))
    return log_edges(x, fma(y, const(LOG2_E, x), fma(y, const(_LOG2_E_LOW[x.dtype], x), e)))


@scalar
def log1p(x):
    """``log(1 + x)``, within 1 ULP, also near 0; -inf at -1, NaN below."""
    return keep_zero(x, log_edges(1.0 + x, log1p_of(x)))


def log1p_of(x):
    """Return ``log(1 + x)`` for finite ``x > -1``."""
    u = 1.0 + x
    f, e = split(u)
    lost = select(x > 1.0, 1.0 - (u - x), x - (u - 1.0)) / u
    return log_of(select(e == 0, x, f), e, select(e == 0, const(0.0, x), lost))


def _log_double(x):
    """Return the logarithm of a positive `x` as a sum of two floats, to about 65 bits."""
    f, e = split(x)
    d = 2.0 + f
    s = f / d
    s = (s, fma(-s, f - (d - 2.0), fma(-s, d, f)) / d)
    z = double_product(s, s)
    q, q_low = quick_two_sum(const(_TWO_FIFTHS[0], x), z[0] * horner(z[0], c.LOG_7))
    p = double_product(z, (q, q_low + _TWO_FIFTHS[1]))
    r, r_low = quick_two_sum(const(_TWO_THIRDS[0], x), p[0])
    v = double_product(double_product(s, z), (r, r_low + (p[1] + _TWO_THIRDS[1])))
    head, low = quick_two_sum(2.0 * s[0], v[0])
    ln2, ln2_low = LN2_PARTS[x.dtype]
    total, error = two_sum(e * ln2, head)
    return quick_two_sum(total, error + (low + (v[1] + 2.0 * s[1]) + e * ln2_low))


def _power(x, y):
    """Return ``x ** y`` for ``x >= 0``, but for ``x == 1`` with an infinite `y`."""
    high, low = _log_double(x)
    high = select(x == 0, const(-INF, x), select(x < INF, high, x))
    t, t_low = two_product(y, high)
    t_low = select(fabs(t) < 1000.0, fma(y, low, t_low), const(0.0, x))
    t = clip(t, *_EXP_RANGE[x.dtype])
    ln2, ln2_low = LN2_PARTS[x.dtype]
    k, n = nearest(t, LOG2_E)
    r, r_low = two_sum(fma(-k, const(ln2, x), t), -k * ln2_low)
    r, r_low = quick_two_sum(r, r_low + t_low)
    return scale(1.0 + (r + (_tail(r) + fma(r, r_low, r_low))), n)


@scalar
def pow(x, y):
    """``x ** y``, within 1 ULP, with the special cases of C99 (``x ** 0`` and ``1 ** y`` are 1)."""
    if x.dtype == f32:
        a, b = convert(x, f64), convert(y, f64)
        log_a = log_edges(fabs(a), log_of(*split(fabs(a))))
        size = convert(exp_scaled(b * log_a), f32)
    else:
        size = _power(fabs(x), y)
    whole, half = y == trunc(y), 0.5 * y
    odd = whole & (half != trunc(half))
    size = select((fabs(x) == 1.0) & (y == y), const(1.0, x), size)
    size = select(is_negative(x) & odd, -size, size)
    size = select((x < 0) & (x > -INF) & ~whole, const(NAN, x), size)
    return select((y == 0) | (x == 1.0), const(1.0, x), size)


__all__ = ["exp", "exp2", "expm1", "log", "log1p", "log2", "logistic", "pow"]
