"""Special functions: gamma and its relatives, the incomplete integrals, zeta, Bessel functions.

The first four are scalar texts, without branches; the others iterate to convergence, in float64,
and give back the dtype of their arguments. Edges (poles, infinities, arguments out of range) are
JAX's.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from fnarray_kernels._ir import (
    const,
    convert,
    f32,
    f64,
    fabs,
    floor,
    fma,
    rint,
    scalar,
    select,
    sqrt,
)
from fnarray_kernels.registry import compiled, tell
from fnarray_kernels.vmath import coefficients as c
from fnarray_kernels.vmath.exponential import exp, log, log_of, split
from fnarray_kernels.vmath.parts import INF, NAN, horner, in_double, keep_zero

_PI = math.pi
_HALF_LOG_2PI = 0.9189385332046727
# The positive zero of digamma, to twice the precision of float64.
_ROOT, _ROOT_LOW = 1.4616321449683622, 9.549995429965697e-17
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798)
# B(2k) / (2k (2k - 1)), of log gamma, and B(2k) / 2k, of digamma (DLMF 5.11.1 and 5.11.2).
_STIRLING = tuple(b / ((2 * k) * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1))
_DIGAMMA = tuple(b / (2 * k) for k, b in enumerate(_BERNOULLI, 1))
# B(2k) / (2k)!, of zeta.
_ZETA = tuple(b / math.factorial(2 * k) for k, b in enumerate(_BERNOULLI, 1))


# --- texts --------------------------------------------------------------------------------------


def _half_turn(x):
    """Return sin and cos of ``pi r``, where r is `x` less the nearest integer."""
    r = x - rint(x)
    near = fabs(r) <= 0.25
    # Beyond an eighth of a turn, the angle to the quarter turn: exact, and each takes the other.
    a = _PI * select(near, r, select(r < 0, -0.5 - r, 0.5 - r))
    z = a * a
    sine = fma(a * z, horner(z, c.SIN_64), a)
    cosine = fma(z * z, horner(z, c.COS_64), fma(z, const(-0.5, x), const(1.0, x)))
    minus = r < 0
    return (
        select(near, sine, select(minus, -cosine, cosine)),
        select(near, cosine, fabs(sine)),
    )


def _lgamma_of(y):
    """Return the logarithm of gamma for ``y >= 0``.

    A polynomial on [1.5, 2.5] (interpolated, see ``tests/kernels/fit_coefficients.py``), reached by
    the recurrence from (0, 8), Stirling's series beyond.
    """
    large = y >= 8.0
    steps = rint(select(large, const(2.0, y), y)) - 2.0
    # Exact, also next to 1 and 2, where t is all that the result keeps.
    t, high = y - (steps + 2.0), const(1.0, y)
    for i in range(6):
        high = select(steps > i, high * (t + (2.0 + i)), high)
    # steps is -2 below 0.5 and -1 below 1.5: there the recurrence runs upwards.
    high = select(steps == -1, y, select(steps == -2, y * (y + 1.0), high))
    inverse = 1.0 / y
    series = inverse * horner(inverse * inverse, _STIRLING)
    logarithm = log(select(large, y, high))
    small = fma(t, horner(t, c.LGAMMA), select(steps < 0, -logarithm, logarithm))
    big = fma(y - 0.5, logarithm - 1.0, series + (_HALF_LOG_2PI - 0.5))
    return select(y < INF, select(large, big, small), y)


@in_double
def lgamma(x):
    """Logarithm of the size of the gamma function; infinite at its poles.

    Near 1 and 2 within 4 ULP; elsewhere 1e-15 of the result or, near its negative zeros, of the
    logarithms that cancel there: by reflection below 0.
    """
    value = _lgamma_of(select(x < 0, 1.0 - x, x))
    sine, _ = _half_turn(x)
    negative = -log(fabs(sine) * (1.0 / _PI)) - value
    return select(x < 0, select(x > -INF, negative, const(INF, x)), value)


@in_double
def digamma(x):
    """Logarithmic derivative of gamma, to 4 ULP for ``x > 0``; NaN at its poles.

    A polynomial times the distance to the zero at 1.46 on [1, 2], reached by the recurrence from
    (0, 8), the asymptotic series beyond, reflection below 0.
    """
    y = select(x < 0, 1.0 - x, x)
    large = y >= 8.0
    steps = floor(select(large, const(1.0, x), y)) - 1.0
    low = y - steps
    top, under = const(0.0, x), const(1.0, x)
    for i in range(6):
        at = low + i
        top, under = (
            select(steps > i, fma(top, at, under), top),
            select(steps > i, under * at, under),
        )
    # One quotient serves all: 1/x below 1, the sum of the steps between, 1/y beyond.
    top = select(large | (steps < 0), select(large, const(1.0, x), const(-1.0, x)), top)
    quotient = top / select(large | (steps < 0), y, under)
    middle = fma((low - _ROOT) - _ROOT_LOW, horner(low - 1.5, c.DIGAMMA), quotient)
    square = quotient * quotient
    big = log(y) - (0.5 * quotient + square * horner(square, _DIGAMMA))
    value = select(y < INF, select(large, big, middle), y)
    sine, cosine = _half_turn(x)
    value = select(x < 0, value - _PI * cosine / sine, value)
    pole = (x <= 0) & (x == floor(x))
    return select(pole, const(NAN, x), value)


def _bessel(x, near, far):
    """Return the two pieces, on [0, 8] and beyond, of a Bessel function scaled by ``exp(-|x|)``."""
    size = fabs(x)
    inside = size <= 8.0
    t = select(inside, size * 0.25, 16.0 / select(inside, const(16.0, x), size)) - 1.0
    return (
        horner(select(inside, t, const(0.0, x)), near),
        horner(select(inside, const(0.0, x), t), far) / sqrt(size),
        inside,
    )


def _bessel_32(x, near, far):
    """Return what `_bessel` does of a float32, in float64: to 1e-8 of it, by float32's quotients.

    Beyond 8 only two coefficients and the root need more digits than float32 has: the root gets
    them by one step of Newton's, which takes a fifth of the time of float64's root and quotients.
    """
    size = fabs(x)
    inside = size <= 8.0
    beyond = select(inside, const(8.0, x), size)
    inverse = 1.0 / beyond
    root, square = convert(sqrt(inverse), f64), convert(beyond, f64)
    root = fma(root * 0.5, fma(-square * root, root, const(1.0, square)), root)
    t = fma(convert(inverse, f64), const(16.0, root), const(-1.0, root))
    single = convert(t, f32)
    series = horner(t, far[:2]) + convert(single * single * horner(single, far[2:]), f64)
    u = convert(select(inside, size, const(4.0, x)), f64) * 0.25 - 1.0
    return horner(u, near), select(size < INF, root * series, convert(inverse, f64)), inside


@scalar
def bessel_i0e(x):
    """Modified Bessel function of order 0 times ``exp(-|x|)``, to 16 ULP (float32: 0.55).

    Interpolated in x on [0, 8] and in 1/x beyond, after Clenshaw (NPL Mathematical Tables 5, 1962).
    """
    if x.dtype == f32:
        near, far, inside = _bessel_32(x, c.BESSEL_I0_NEAR_32, c.BESSEL_I0_FAR_32)
    else:
        near, far, inside = _bessel(x, c.BESSEL_I0_NEAR, c.BESSEL_I0_FAR)
    return convert(select(inside, near, far), x.dtype)


@scalar
def bessel_i1e(x):
    """Modified Bessel function of order 1 times ``exp(-|x|)``, as exact as order 0; odd in `x`."""
    if x.dtype == f32:
        near, far, inside = _bessel_32(x, c.BESSEL_I1_NEAR_32, c.BESSEL_I1_FAR_32)
    else:
        near, far, inside = _bessel(x, c.BESSEL_I1_NEAR, c.BESSEL_I1_FAR)
    wide = convert(x, near.dtype)
    return keep_zero(x, convert(select(inside, near * wide, select(x < 0, -far, far)), x.dtype))


def _zeta_sum(x, q):
    """Return zeta for ``x > 1`` and ``q > 0`` to 5e-10 by Euler and Maclaurin's sum (DLMF 25.11.5).

    Four terms and five corrections are as few operations as leave a float32 right to 0.51 ULP.
    """
    total = const(0.0, x)
    for k in range(4):
        total = total + exp(-x * log_of(*split(q + k)))
    end = q + 4.0
    inverse, power = 1.0 / end, exp(-x * log_of(*split(end)))
    total = total + power * (end / (x - 1.0) + 0.5)
    factor, y = power * x * inverse, inverse * inverse
    for k, number in enumerate(_ZETA[:5], 1):
        total = fma(factor, const(number, x), total)
        factor = factor * ((x + (2 * k - 1)) * (x + 2 * k) * y)
    return total


def _zeta_32(x, q):
    """Return what `_hurwitz` does, in float64, of numbers that were float32."""
    whole, half, one = floor(q), 0.5 * x, const(1.0, x)
    part, even = q - whole, (half == floor(half)) & (fabs(x) < INF)
    positive = q > 0
    above = _zeta_sum(x, select(positive, q, part))
    # The terms below zero are those of a zeta of their sizes, less its terms from 1 - q on.
    # The smallest size is exact from the next whole number: near a pole 1 - part is 0.
    below = _zeta_sum(x, select(positive, one, (whole + 1.0) - q))
    below = below - _zeta_sum(x, select(positive, one, 1.0 - q))
    value = select(positive, above, select(even, above + below, above - below))
    inside = positive | ((q != whole) & (x == floor(x)))
    inside = inside & (x > 1) & (x < INF) & (fabs(q) < INF)
    # A pole of even order has a sign.
    pole = ((q <= 0) & (q == whole) & even) | (x == 1)
    return select(pole, const(INF, x), select(inside, value, const(NAN, x)))


@scalar
def zeta_32(x, q):
    """Hurwitz zeta function of float32, to 0.51 ULP: without a branch, as vectors compute it."""
    return convert(_zeta_32(convert(x, f64), convert(q, f64)), f32)


@scalar
def polygamma_32(n, x):
    """Derivative of order `n` of digamma, of float32, to 0.51 ULP."""
    n, x = convert(n, f64), convert(x, f64)
    size = exp(_lgamma_of(n + 1.0)) * _zeta_32(n + 1.0, x)
    half = 0.5 * n
    value = select(n == 0, digamma(x), select(half == floor(half), -size, size))
    inside = (n >= 0) & (n == floor(n)) & (x == x)
    return convert(select(inside, value, const(NAN, x)), f32)


# --- iterations ---------------------------------------------------------------------------------


def _iterated(core):
    """Make `core`, which converts its arguments to float64, give back their dtype."""
    compiled(core)

    @functools.wraps(core)
    def face(*args):
        with np.errstate(all="ignore"):
            return np.result_type(*args).type(core(*args))

    tell("in double", face, core)
    return face


@compiled
def _stirling(x):
    """Return log gamma less its leading terms ``(x - 1/2) log(x) - x + log(2 pi) / 2``."""
    y = 1.0 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188))))) / x


@compiled
def _log_gap(u, ratio):
    """Return ``u - log(1 + u)``, which cancels for small `u` if computed so; `ratio` is 1 + u."""
    if abs(u) > 0.3:
        # A ratio next to 0 has lost its digits in u; one that underflows has a weight of 0.
        return u - math.log(max(ratio, 1e-300))
    r = u / (2.0 + u)
    z = r * r
    total, power, n = 0.0, 2.0 * r * z, 3.0
    while True:
        step = power / n
        if abs(step) <= 1e-17 * abs(total):
            return u * r - total
        total += step
        power *= z
        n += 2.0


@compiled
def _gamma_weight(a, x):
    """Return ``x**a exp(-x) / gamma(a + 1)``."""
    if a < 12.0:
        return math.exp(a * math.log(x) - x - math.lgamma(a + 1.0))
    gap = _log_gap((x - a) / a, x / a)
    return math.exp(-a * gap - _stirling(a)) / math.sqrt(2.0 * math.pi * a)


@compiled
def _gamma_both(a, x):
    """Return P(a, x) and Q(a, x) for finite positive arguments."""
    weight = _gamma_weight(a, x)
    if a > 1e8:
        # Two terms of Temme's expansion (DLMF 8.12.3); the next is below 1e-15.
        if weight == 0.0:
            return (0.0, 1.0) if x < a else (1.0, 0.0)
        eta = math.copysign(math.sqrt(2.0 * _log_gap((x - a) / a, x / a)), x - a)
        shift = weight * (-1 / 3 + eta * (1 / 12 - eta * (2 / 135)))
        arc = eta * math.sqrt(0.5 * a)
        return 0.5 * math.erfc(-arc) - shift, 0.5 * math.erfc(arc) + shift
    if x <= a + 1.0:
        term, total, n = 1.0, 1.0, a
        while term > 1e-17 * total:
            n += 1.0
            term *= x / n
            total += term
        return weight * total, 1.0 - weight * total
    # Lentz's method (modified) on the continued fraction DLMF 8.9.2.
    b = x + 1.0 - a
    d, c = 1.0 / b, 1e300
    h, n, step = d, 0.0, 0.0
    while abs(step - 1.0) > 5e-16 and n < 1e6:
        n += 1.0
        b += 2.0
        d = 1.0 / (b + n * (a - n) * d)
        c = b + n * (a - n) / c
        step = c * d
        h *= step
    q = weight * a * h
    return 1.0 - q, q


@_iterated
def igamma(a, x):
    """Regularised lower incomplete gamma function P(a, x), to 1e-13; NaN outside its domain.

    Series DLMF 8.11.4 up to ``a + 1``, continued fraction beyond, Temme's expansion for huge `a`.
    """
    a, x = np.float64(a), np.float64(x)
    if not (a >= 0.0 and x >= 0.0) or a == x == 0.0 or (a == math.inf and 0.0 < x < math.inf):
        return math.nan
    if x == math.inf or a == 0.0:
        return 1.0
    return 0.0 if x == 0.0 else _gamma_both(a, x)[0]


@_iterated
def igammac(a, x):
    """Regularised upper incomplete gamma function Q(a, x), as `igamma`."""
    a, x = np.float64(a), np.float64(x)
    if not (a >= 0.0 and x >= 0.0) or a == x == 0.0 or (a == math.inf and 0.0 < x < math.inf):
        return math.nan
    if x == math.inf or a == 0.0:
        return 0.0
    return 1.0 if x == 0.0 else _gamma_both(a, x)[1]


@compiled
def _log_beta(a, b):
    """Return log B(a, b) for ``a >= b``, without the cancellation of large log gammas."""
    if a < 12.0:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    rest = _stirling(a) - _stirling(a + b)
    if b < 12.0:
        ratio = -(a - 0.5) * math.log1p(b / a) - b * math.log(a + b) + b
        return math.lgamma(b) + ratio + rest
    high = -(a - 0.5) * math.log1p(b / a) + b * math.log(b / (a + b))
    return high - 0.5 * math.log(b) + 0.9189385332046727 + rest + _stirling(b)


@compiled
def _beta_weight(a, b, x):
    """Return ``x**a (1 - x)**b / B(a, b)``."""
    if a < 12.0 or b < 12.0:
        return math.exp(a * math.log(x) + b * math.log1p(-x) - _log_beta(max(a, b), min(a, b)))
    # From the peak at a / (a + b): the first-order terms cancel exactly.
    peak, rest = a / (a + b), b / (a + b)
    off = (x * b - (1.0 - x) * a) / (a + b)
    gap = a * _log_gap(off / peak, x / peak) + b * _log_gap(-off / rest, (1.0 - x) / rest)
    correction = _stirling(a + b) - _stirling(a) - _stirling(b)
    return math.exp(correction - gap) * math.sqrt(a * rest / (2.0 * math.pi))


@compiled
def _beta_fraction(a, b, x):
    """Return the continued fraction DLMF 8.17.22 by Lentz's method (modified)."""
    d = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    c, h, n, step = 1.0, d, 0.0, 0.0
    while abs(step - 1.0) > 5e-16 and n < 1e6:
        n += 1.0
        even = n * (b - n) * x / ((a + 2.0 * n - 1.0) * (a + 2.0 * n))
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        h *= c * d
        odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1.0))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        step = c * d
        h *= step
    return h


@_iterated
def betainc(a, b, x):
    """Regularised incomplete beta function I(a, b; x), to 1e-12; NaN outside its domain."""
    a, b, x = np.float64(a), np.float64(b), np.float64(x)
    if not (a >= 0.0 and b >= 0.0 and 0.0 <= x <= 1.0) or (a == b and (a == 0.0 or a == math.inf)):
        return math.nan
    if x == 0.0 or x == 1.0:
        return x
    if a == 0.0 or b == math.inf:
        return 1.0
    if b == 0.0 or a == math.inf:
        return 0.0
    weight = _beta_weight(a, b, x)
    if x < (a + 1.0) / (a + b + 2.0):
        return weight * _beta_fraction(a, b, x) / a
    return 1.0 - weight * _beta_fraction(b, a, 1.0 - x) / b


@compiled
def _zeta_positive(x, q):
    """Return zeta for ``x > 1`` and ``q > 0`` by Euler and Maclaurin's sum (DLMF 25.11.5)."""
    total, n = 0.0, 0
    while n < 10 or q < 10:
        term = q**-x
        total += term
        q += 1.0
        n += 1
        if term <= 1e-18 * total:
            return total
    power = q**-x
    total += power * (q / (x - 1.0) + 0.5)
    factor, y = power * x / q, 1.0 / (q * q)
    for k in range(1, 10):
        step = factor * _ZETA[k - 1]
        total += step
        if abs(step) <= 1e-18 * abs(total):
            break
        factor *= (x + 2 * k - 1) * (x + 2 * k) * y
    return total


@compiled
def _hurwitz(x, q):
    floor = np.floor(q)
    if x == 1.0:
        return math.inf
    # A pole of even order has a sign.
    if q <= 0.0 and q == floor and x % 2.0 == 0.0:
        return math.inf
    if not (1.0 < x < math.inf) or not (abs(q) < math.inf):
        return math.nan
    if q > 0.0:
        return _zeta_positive(x, q)
    if q == floor or x != np.floor(x):
        return math.nan
    # The terms below zero are those of a zeta of their sizes, less its terms from 1 - q on.
    below = _zeta_positive(x, floor + 1.0 - q) - _zeta_positive(x, 1.0 - q)
    above = _zeta_positive(x, q - floor)
    return above + below if x % 2.0 == 0.0 else above - below


@_iterated
def zeta(x, q):
    """Hurwitz zeta function, the sum of ``(q + k)**-x``, to 1e-14; infinite at its poles."""
    return _hurwitz(np.float64(x), np.float64(q))


@compiled
def _digamma_of(x):
    """Return digamma in float64, as the text above would."""
    if x <= 0.0 and x == np.floor(x):
        return math.nan
    return digamma(x)


@_iterated
def polygamma(n, x):
    """Derivative of order `n` of digamma: ``(-1)**(n + 1) n! zeta(n + 1, x)``, to 1e-13."""
    n, x = np.float64(n), np.float64(x)
    if not (n >= 0.0 and n == np.floor(n)) or x != x:
        return math.nan
    if n == 0.0:
        return _digamma_of(x)
    size = math.exp(math.lgamma(n + 1.0)) * _hurwitz(n + 1.0, x)
    return size if n % 2.0 == 1.0 else -size


__all__ = [
    "bessel_i0e", "bessel_i1e", "betainc", "digamma", "igamma", "igammac", "lgamma", "polygamma",
    "polygamma_32", "zeta", "zeta_32",
]  # fmt: skip
