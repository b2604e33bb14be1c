"""Derivatives of the incomplete gamma function by its first argument."""

from __future__ import annotations

import math

import numpy as np

from fnarray_kernels.registry import compiled


@compiled
def _digamma(x):
    """Digamma for ``x > 0``: shifted above 10, then the asymptotic series (DLMF 5.11.2)."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    tail = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132)))))
    return shift + math.log(x) - 0.5 / x - tail


@compiled
def _series(a, x):
    """dP/da over ``x**a exp(-x) / gamma(a)`` by the power series, for x up to a + 1."""
    term, total, slope, d_total = 1.0, 1.0, 0.0, 0.0
    for n in range(1, 20000):
        term *= x / (a + n)
        slope -= 1.0 / (a + n)
        total += term
        d_total += term * slope
        if abs(term * slope) <= 1e-17 * abs(d_total):
            break
    return (total * (math.log(x) - _digamma(a + 1.0)) + d_total) / a


@compiled
def _fraction(a, x):
    """dP/da over ``x**a exp(-x) / gamma(a)`` by Lentz's method on Q's fraction, for larger x."""
    b = x + 1.0 - a
    d = 1.0 / b
    dd = d * d
    c, dc = 1e300, 0.0
    h, dh = d, dd
    for n in range(1, 20000):
        numer, d_numer = n * (a - n), float(n)
        b += 2.0
        d_denom = -1.0 + d_numer * d + numer * dd
        d = 1.0 / (b + numer * d)
        dd = -d_denom * d * d
        dc = -1.0 + d_numer / c - numer * dc / (c * c)
        c = b + numer / c
        step = c * d
        d_step = dc * d + c * dd
        dh = dh * step + h * d_step
        h *= step
        if abs(step - 1.0) <= 1e-16 and abs(h * d_step) <= 1e-16 * abs(dh):
            break
    return -(dh + h * (math.log(x) - _digamma(a)))


@compiled
def _scaled_slope(a, x):
    if not (0.0 < a < math.inf and 0.0 < x < math.inf):
        return math.nan
    return _series(a, x) if x <= a + 1.0 else _fraction(a, x)


@compiled
def igamma_grad_a(a, x):
    """Derivative of the regularised P(a, x) by ``a``, in float64 whatever the operands."""
    a, x = np.float64(a), np.float64(x)
    if not (a > 0.0 and 0.0 <= x < math.inf):
        return math.nan
    if x == 0.0:
        return 0.0
    factor = math.exp(a * math.log(x) - x - math.lgamma(a))
    return factor * _scaled_slope(a, x) if factor > 0.0 else 0.0


@compiled
def random_gamma_grad(a, x):
    """``-(dP/da) / (dP/dx)``: derivative of a gamma sample by its shape, its quantile fixed."""
    a, x = np.float64(a), np.float64(x)
    if x == 0.0 and a > 0.0:
        return 0.0
    return -x * _scaled_slope(a, x)
