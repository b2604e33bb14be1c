"""Special functions under their names in `scipy.special`.

All promote integers to floats and broadcast.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb as choose
from math import log, pi
from operator import index
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..control.custom import custom_jvp
from ..core.array import Array
from ..core.dtypes import finfo
from ..core.eager import replayed
from ..nn._args import inexact_operands, strong_operands
from ..nn._normalization import log_softmax as _log_softmax
from ..nn._normalization import logsumexp
from ..nn._normalization import softmax as _softmax
from ..numpy._rules import i0_of, i1_of
from ._hosted import (
    bessel_jn,
    dawsn,
    erfcx,
    exp1,
    expi,
    expn,
    fresnel,
    hyp1f1,
    hyp2f1,
    owens_t,
    sici,
    spence,
    sph_harm_y,
    wofz,
)
from ._legendre import lpmn, lpmn_values
from ._normal import log_ndtr, ndtr, ndtri

__all__ = [
    "bernoulli",
    "bessel_jn",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "fresnel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "hyp1f1",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_ndtr",
    "log_softmax",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmn",
    "lpmn_values",
    "multigammaln",
    "ndtr",
    "ndtri",
    "owens_t",
    "poch",
    "polygamma",
    "rel_entr",
    "sici",
    "softmax",
    "spence",
    "sph_harm_y",
    "wofz",
    "xlog1py",
    "xlogy",
    "zeta",
]
__dir__ = __all__.copy


# ---- error functions ---------------------------------------------------------------------------


def erf(x: Any) -> Array:
    """Error function."""
    return lax.erf(*inexact_operands("erf", x))


def erfc(x: Any) -> Array:
    """``1 - erf(x)``, accurate where it is small."""
    return lax.erfc(*inexact_operands("erfc", x))


def erfinv(x: Any) -> Array:
    """Inverse of `erf`."""
    return lax.erf_inv(*inexact_operands("erfinv", x))


# ---- logarithms and entropies ------------------------------------------------------------------


def expit(x: Any) -> Array:
    """Logistic function ``1 / (1 + exp(-x))``."""
    return lax.logistic(*inexact_operands("expit", x))


@custom_jvp
def logit(x: Any) -> Array:
    """Inverse of `expit`: ``log(x / (1 - x))``."""
    (x,) = inexact_operands("logit", x)
    # Of the larger over the smaller of the two, whose difference is exact near 1/2; -0 becomes 0.
    size = jnp.log1p(jnp.abs(2 * x - 1) / (jnp.minimum(x, 1 - x) + 0.0))
    return jnp.where(x < 0.5, -size, size)


logit.defjvps(lambda t, out, x: t / (x * (1 - x)))


def xlogy(x: Any, y: Any) -> Array:
    """``x * log(y)``, and 0 where ``x`` is 0 and ``y`` is no NaN."""
    return _xlogy(*inexact_operands("xlogy", x, y))


@custom_jvp
def _xlogy(x: Any, y: Any) -> Array:
    taken = (x != 0) | (y != y)
    return jnp.where(taken, x * jnp.log(jnp.where(taken, y, 1.0)), 0.0)


_xlogy.defjvps(lambda t, out, x, y: t * jnp.log(y), lambda t, out, x, y: t * x / y)


def xlog1py(x: Any, y: Any) -> Array:
    """``x * log1p(y)``, and 0 where ``x`` is 0 and ``y`` is no NaN."""
    return _xlog1py(*inexact_operands("xlog1py", x, y))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Array:
    taken = (x != 0) | (y != y)
    return jnp.where(taken, x * jnp.log1p(jnp.where(taken, y, 0.0)), 0.0)


_xlog1py.defjvps(lambda t, out, x, y: t * jnp.log1p(y), lambda t, out, x, y: t * x / (1 + y))


@custom_jvp
def _xlogx(x: Any) -> Array:
    return _xlogy(x, x)


_xlogx.defjvps(lambda t, out, x: t * (jnp.log(x) + 1))


def entr(x: Any) -> Array:
    """``-x log(x)``: 0 at 0, -inf below."""
    (x,) = inexact_operands("entr", x)
    return jnp.where(x < 0, -np.inf, -_xlogx(x))


def _log_ratio(p: Array, q: Array) -> Array:
    """``log(p / q)`` of positive numbers, whose difference is exact where they are close."""
    size = jnp.log1p(jnp.abs(p - q) / jnp.minimum(p, q))
    return jnp.where(p < q, -size, size)


@custom_jvp
def _relative(p: Any, q: Any) -> Array:
    return p * _log_ratio(p, q)


_relative.defjvps(
    lambda t, out, p, q: t * (_log_ratio(p, q) + 1), lambda t, out, p, q: -t * (p / q)
)


def rel_entr(p: Any, q: Any) -> Array:
    """``p log(p / q)``: 0 where ``p`` is 0 and ``q`` is not negative, else inf where undefined."""
    p, q = inexact_operands("rel_entr", p, q)
    both = (p > 0) & (q > 0)
    value = _relative(jnp.where(both, p, 1.0), jnp.where(both, q, 1.0))
    return jnp.where(both, value, jnp.where((p == 0) & (q >= 0), 0.0, np.inf))


def kl_div(p: Any, q: Any) -> Array:
    """``p log(p / q) - p + q``, the term of a Kullback-Leibler divergence."""
    p, q = inexact_operands("kl_div", p, q)
    both = (p > 0) & (q > 0)
    value = _divergence(jnp.where(both, p, 1.0), jnp.where(both, q, 1.0))
    return jnp.where(both, value, jnp.where((p == 0) & (q >= 0), 0.0, np.inf) - p + q)


@custom_jvp
def _divergence(p: Array, q: Array) -> Array:
    # Of two that are close only a square is left: by the series of the inverse hyperbolic tangent
    # of ``v`` (DLMF 4.6.4), as log(p / q) is twice that. Halves, whose sum does not overflow.
    v = (p - q) / (p / 2 + q / 2) / 2
    square, series = v * v, 0.0
    for k in range(18 if finfo(p.dtype).bits == 64 else 8, 0, -1):
        series = series * square + 2 / (2 * k + 1)
    near = (p - q) * v + p * v * (square * series)
    return jnp.where(jnp.abs(v) < 0.3, near, p * _log_ratio(p, q) - p + q)


_divergence.defjvps(
    lambda t, out, p, q: t * _log_ratio(p, q), lambda t, out, p, q: t * ((q - p) / q)
)


def boxcox(x: Any, lmbda: Any) -> Array:
    """``(x**lmbda - 1) / lmbda``, and ``log(x)`` where ``lmbda`` is 0."""
    x, power = inexact_operands("boxcox", x, lmbda)
    return _box_cox(jnp.log(x), power)


def boxcox1p(x: Any, lmbda: Any) -> Array:
    """`boxcox` of ``1 + x``, accurate for small ``x``."""
    x, power = inexact_operands("boxcox1p", x, lmbda)
    return _box_cox(jnp.log1p(x), power)


def _box_cox(log_x: Array, power: Array) -> Array:
    safe = jnp.where(power == 0, 1.0, power)
    return jnp.where(power == 0, log_x, jnp.expm1(safe * log_x) / safe)


def softmax(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """``exp(x)`` over its sum along ``axis``, or over all elements."""
    return _softmax(x, axis)


def log_softmax(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Logarithm of `softmax`."""
    return _log_softmax(x, axis)


# ---- the gamma family --------------------------------------------------------------------------


def gammaln(x: Any) -> Array:
    """Logarithm of ``|gamma(x)|``."""
    return lax.lgamma(*inexact_operands("gammaln", x))


def loggamma(x: Any) -> Array:
    """`gammaln` for positive ``x``; NaN below zero, where the logarithm is complex."""
    (x,) = inexact_operands("loggamma", x)
    return jnp.where(x < 0, np.nan, lax.lgamma(x))


@replayed
def gammasgn(x: Any) -> Array:
    """Sign of gamma: 1 for positive ``x``, alternating between the poles, NaN at them."""
    # It is flat: slopes that are numbers, zeros, would make NaN of an infinite gamma.
    x = lax.stop_gradient(*inexact_operands("gammasgn", x))
    whole = lax.floor(x)
    odd = jnp.remainder(whole, 2.0) != 0
    sign = jnp.where((x < 0) & odd, -1.0, 1.0)
    sign = jnp.where((x < 0) & ((whole == x) | jnp.isinf(x)), np.nan, sign)
    return jnp.where(x == 0, jnp.copysign(1.0, x), jnp.where(jnp.isnan(x), x, sign))


def gamma(x: Any) -> Array:
    """Gamma function; infinite at 0 with its sign, NaN at the negative integers."""
    (x,) = strong_operands("gamma", x)
    return gammasgn(x) * jnp.exp(lax.lgamma(x))


def digamma(x: Any) -> Array:
    """Derivative of `gammaln`."""
    return lax.digamma(*inexact_operands("digamma", x))


def polygamma(n: Any, x: Any) -> Array:
    """Derivative of order ``n`` of `digamma`."""
    return lax.polygamma(*inexact_operands("polygamma", n, x))


def zeta(x: Any, q: Any = None) -> Array:
    """Sum of ``(k + q) ** -x`` over ``k >= 0``; Riemann's zeta function where ``q`` is omitted."""
    return lax.zeta(*inexact_operands("zeta", x, 1 if q is None else q))


def gammainc(a: Any, x: Any) -> Array:
    """Regularised lower incomplete gamma function."""
    return lax.igamma(*inexact_operands("gammainc", a, x))


def gammaincc(a: Any, x: Any) -> Array:
    """Regularised upper incomplete gamma function."""
    return lax.igammac(*inexact_operands("gammaincc", a, x))


def betaln(a: Any, b: Any) -> Array:
    """Logarithm of ``|beta(a, b)|``, without the loss of digits of a difference of `gammaln`."""
    return _betaln(*inexact_operands("betaln", a, b))


#: Of Stirling's series: what it misses from 8 on is 1e-14.
_STIRLING = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)


def _beyond_stirling(x: Array) -> Array:
    """``gammaln(x) - ((x - 1/2) log(x) - x + log(2 pi) / 2)`` for ``x`` of 8 and more."""
    # Horner's scheme with Python numbers, which leave a weak type weak.
    t = 1 / (x * x)
    total = t * _STIRLING[0]
    for c in _STIRLING[1:-1]:
        total = (total + c) * t
    return (total + _STIRLING[-1]) / x


@custom_jvp
def _betaln(a: Any, b: Any) -> Array:
    a, b = jnp.minimum(a, b), jnp.maximum(a, b)
    near = lax.lgamma(a) + (lax.lgamma(b) - lax.lgamma(a + b))
    far = (b >= 8) & (a + b >= 8)
    both = a >= 8
    # What the leading terms of the two large functions, or of all three, leave of one another.
    rest = _beyond_stirling(b) - _beyond_stirling(a + b)
    one = lax.lgamma(a) - (a + b - 0.5) * jnp.log1p(a / b) - a * (jnp.log(b) - 1)
    two = 0.5 * (log(2 * pi) - jnp.log(b)) - (a - 0.5) * jnp.log1p(b / a) - b * jnp.log1p(a / b)
    large = jnp.where(both, two + _beyond_stirling(a), one) + rest
    # An infinite argument makes the terms NaN.
    return jnp.where(far & (b < np.inf), large, near)


#: Of the same for `digamma`, in ``1 / x ** 2``.
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12, 0)


def _digamma_fall(x: Array, other: Array) -> Array:
    """``digamma(x) - digamma(x + other)``; of two large numbers by Stirling's series."""
    large = (x >= 8) & (x + other >= 8) & (x < np.inf) & (other < np.inf)
    near = lax.digamma(x) - lax.digamma(x + other)
    x, other = jnp.where(large, x, 8.0), jnp.where(large, other, 1.0)
    u, v = 1 / x, 1 / (x + other)
    # The divided difference of a polynomial, by Horner's scheme: what cancels is factored out.
    value, fall = 0.0 * u, 0.0 * u
    for c in _DIGAMMA:
        fall = fall * (u * u) + value
        value = value * (v * v) + c
    far = -jnp.log1p(other * u) - (other * u * v) * (0.5 + (u + v) * fall)
    return jnp.where(large, far, near)


def _betaln_slope(t: Any, out: Any, x: Any, other: Any) -> Array:
    return t * _digamma_fall(x, other)


_betaln.defjvps(_betaln_slope, lambda t, out, a, b: _betaln_slope(t, out, b, a))


def beta(a: Any, b: Any) -> Array:
    """``gamma(a) gamma(b) / gamma(a + b)``."""
    a, b = strong_operands("beta", a, b)
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * jnp.exp(betaln(a, b))


def betainc(a: Any, b: Any, x: Any) -> Array:
    """Regularised incomplete beta function."""
    return lax.betainc(*inexact_operands("betainc", a, b, x))


def factorial(n: Any, exact: bool = False) -> Array:
    """``gamma(n + 1)``, and 0 for negative ``n``.

    Raises
    ------
    NotImplementedError
        ``exact`` is asked for: arrays hold no integers of any size.
    """
    if exact:
        raise NotImplementedError(
            "factorial: exact=True needs integers of any size. Use math.factorial on Python ints."
        )
    (n,) = inexact_operands("factorial", n)
    return jnp.where(n < 0, 0.0, jnp.exp(lax.lgamma(n + 1)))


def poch(z: Any, m: Any) -> Array:
    """Pochhammer symbol ``gamma(z + m) / gamma(z)``; 1 where ``m`` is 0."""
    z, m = strong_operands("poch", z, m)
    sign = gammasgn(z + m) * gammasgn(z)
    return jnp.where(m == 0, 1.0, sign * jnp.exp(lax.lgamma(z + m) - lax.lgamma(z)))


def comb(N: Any, k: Any, *, repetition: bool = False) -> Array:
    """Number of ways to choose ``k`` of ``N``; 0 outside ``0 <= k <= N``.

    Parameters
    ----------
    N, k : arrays
    repetition : bool
        Whether one thing may be chosen several times.
    """
    n, k = inexact_operands("comb", N, k)
    if repetition:
        n = n + k - 1
    valid = (k >= 0) & (n >= k)
    m = jnp.where(valid, n, 0.0) + 1
    chosen = jnp.where(valid, k, 0.0)
    count = jnp.exp(-jnp.log(m) - _betaln(m - chosen, chosen + 1))
    return jnp.where(valid, count, 0.0)


def multigammaln(a: Any, d: Any) -> Array:
    """Logarithm of the multivariate gamma function of dimension ``d``, a known whole number."""
    (a,) = strong_operands("multigammaln", a)
    size = float(d)
    if size < 1 or not size.is_integer():
        raise ValueError(f"multigammaln: d must be a positive whole number, got {d}.")
    d = int(size)
    total = lax.lgamma(a)
    for j in range(1, d):
        total = total + lax.lgamma(a - j / 2)
    return total + d * (d - 1) / 4 * log(pi)


def bernoulli(n: int) -> Array:
    """Bernoulli numbers B_0 to B_n, with B_1 = -1/2; ``n`` is a Python integer.

    By the recurrence ``sum_j C(m + 1, j) B_j = 0``, in exact fractions.
    """
    count = index(n)
    if count < 0:
        raise ValueError(f"bernoulli: n must not be negative, got {count}.")
    numbers: list[Fraction] = []
    for m in range(count + 1):
        known = sum((choose(m + 1, j) * b for j, b in enumerate(numbers) if b), Fraction(0))
        numbers.append(Fraction(1) if m == 0 else -known / (m + 1))
    return jnp.asarray(np.array([_as_float(b) for b in numbers]))


def _as_float(x: Any) -> float:
    try:
        return float(x)
    except OverflowError:
        return float("inf") if x > 0 else -float("inf")


# ---- Bessel functions --------------------------------------------------------------------------


def i0e(x: Any) -> Array:
    """Modified Bessel function of order 0, times ``exp(-|x|)``."""
    return lax.bessel_i0e(*inexact_operands("i0e", x))


def i0(x: Any) -> Array:
    """Modified Bessel function of order 0."""
    return i0_of(*inexact_operands("i0", x))


def i1e(x: Any) -> Array:
    """Modified Bessel function of order 1, times ``exp(-|x|)``."""
    return lax.bessel_i1e(*inexact_operands("i1e", x))


def i1(x: Any) -> Array:
    """Modified Bessel function of order 1."""
    return i1_of(*inexact_operands("i1", x))
