"""What turns random bits into floats, in the roundings of XLA, so that samples agree with JAX.

`vmath` has more accurate logarithms and inverse error function. These are other ones on purpose:
the same polynomials as XLA's, added up in the same order, which agree with it bit for bit.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels._ir import bitcast, const, convert, fabs, fma, scalar, select, sqrt

# Moshier, Cephes: logf.c, and the rational function of log1p in unity.c.
LOG = (
    (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1),
    (-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1),
    (2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
LN2 = 0.693359375, -2.12194440e-4
LOG1P_OVER = (
    4.5270000862445199635215e-5, 4.9854102823193375972212e-1, 6.5787325942061044846969e0,
    2.9911919328553073277375e1, 6.0949667980987787057556e1, 5.7112963590585538103336e1,
    2.0039553499201281259648e1,
)  # fmt: skip
LOG1P_UNDER = (
    1.0, 1.5062909083469192043167e1, 8.3047565967967209469434e1, 2.2176239823732856465394e2,
    3.0909872225312059774938e2, 2.1642788614495947685003e2, 6.0118660497603843919306e1,
)  # fmt: skip
# Giles, "Approximating the erfinv function", GPU Computing Gems Jade, 2011: table 5.
CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


@scalar
def multiply_add(x, y, z):
    """``x * y + z`` with one rounding."""
    return fma(x, y, z)


def _horner(x, coefficients):
    y = const(coefficients[0], x)
    for c in coefficients[1:]:
        y = fma(y, x, const(c, x))
    return y


@scalar(only=np.float32)
def log(x):
    """Natural logarithm of a normal number; -inf at 0, NaN below."""
    bits = bitcast(x, np.int32)
    exponent = convert((bits >> 23) - 126, np.float32)
    m = bitcast((bits & 0x7FFFFF) | 0x3F000000, np.float32)
    small = m < 0.707106781186547524
    exponent = select(small, exponent - 1.0, exponent)
    m = select(small, m + m - 1.0, m - 1.0)
    square = m * m
    cube = square * m
    high, middle, low = (_horner(m, c) for c in LOG)
    y = fma(fma(fma(high, cube, middle), cube, low), cube, exponent * LN2[1])
    y = fma(square, const(-0.5, x), m) + y + exponent * LN2[0]
    edge = select(x == 0.0, const(-np.inf, x), select(x > 0.0, x, const(np.nan, x)))
    return select((x > 0.0) & (x < np.inf), y, edge)


@scalar(only=np.float32)
def log1p(x):
    """``log(1 + x)``, accurate for small ``x``."""
    square = x * x
    y = x * square * (_horner(x, LOG1P_OVER) / _horner(x, LOG1P_UNDER))
    return select(fabs(x) < 0.41421356237309510, x + (square * -0.5 + y), log(1.0 + x))


@scalar(only=np.float32)
def erf_inv(x):
    """Inverse error function; its tails have the error of ``1 - x * x``, up to 87 ULP."""
    w = -log1p(x * -x)
    near = w < 5.0
    v = select(near, w - 2.5, sqrt(w) - 3.0)
    y = None
    for centre, tail in zip(CENTRE, TAIL, strict=True):
        term = select(near, const(centre, x), const(tail, x))
        y = term if y is None else fma(y, v, term)
    return x * select(fabs(x) == 1.0, const(np.inf, x), y)
