"""Special functions under their names in `scipy.special`.

All promote integers to floats and broadcast.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import comb as choose
from math import log, pi, sqrt
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


# ---- error functions and the normal distribution -----------------------------------------------


def erf(x: Any) -> Array:
    """Error function."""
    return lax.erf(*inexact_operands("erf", x))


def erfc(x: Any) -> Array:
    """``1 - erf(x)``, accurate where it is small."""
    return lax.erfc(*inexact_operands("erfc", x))


def erfinv(x: Any) -> Array:
    """Inverse of `erf`."""
    return lax.erf_inv(*inexact_operands("erfinv", x))


def ndtr(x: Any) -> Array:
    """Distribution function of the standard normal distribution."""
    (x,) = strong_operands("ndtr", x)
    return 0.5 * lax.erfc(x * -sqrt(0.5))


def log_ndtr(x: Any, series_order: int = 3) -> Array:
    """Logarithm of `ndtr`, accurate in both tails.

    Parameters
    ----------
    x : array
    series_order : int
        Terms of the asymptotic series (DLMF 7.12.1) that serves the lower tail.
    """
    (x,) = strong_operands("log_ndtr", x)
    order = index(series_order)
    if order < 0:
        raise ValueError(f"log_ndtr: series_order must not be negative, got {order}.")
    return _log_ndtr(x, order)


@partial(custom_jvp, nondiff_argnums=(1,))
def _log_ndtr(x: Any, order: int) -> Array:
    # Where erfc still has all its digits, and the series already has them.
    low = -20.0 if finfo(x.dtype).bits == 64 else -10.0
    tail = jnp.minimum(x, low)
    square = jnp.square(tail)
    series, term = 1.0, 1.0
    for k in range(1, order + 1):
        term = term * (1 - 2 * k) / square
        series = series + term
    below = -0.5 * square - jnp.log(-tail) - 0.5 * log(2 * pi) + jnp.log(series)
    above = jnp.log1p(-ndtr(-jnp.maximum(x, 0.0)))
    middle = jnp.log(ndtr(jnp.clip(x, low, 0.0)))
    return jnp.where(x > 0, above, jnp.where(x > low, middle, below))


@_log_ndtr.defjvp
def _log_ndtr_jvp(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    """Density over distribution, by their logarithms."""
    (x,), (t,) = primals, tangents
    out = _log_ndtr(x, order)
    return out, t * jnp.exp(-0.5 * jnp.square(x) - 0.5 * log(2 * pi) - out)


# Rational functions of Wichura's algorithm AS 241 (Applied Statistics 37, 1988), lowest power
# first: the centre, the near tail, the far tail. Relative error below 1e-15.
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)  # fmt: skip
_NEAR = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
_FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    """Quotient of two polynomials, by Horner's rule."""

    def polynomial(terms: tuple[float, ...]) -> Any:
        total: Any = 0.0
        for c in reversed(terms):
            total = total * x + c
        return total

    return polynomial(coefficients[0]) / polynomial(coefficients[1])


def ndtri(p: Any) -> Array:
    """Inverse of `ndtr`; infinite at 0 and 1, NaN outside (Wichura's AS 241)."""
    return _ndtri(*strong_operands("ndtri", p))


@custom_jvp
def _ndtri(p: Any) -> Array:
    q = p - 0.5
    centre = q * _ratio(_CENTRE, 0.180625 - jnp.square(jnp.clip(q, -0.425, 0.425)))
    edge = jnp.minimum(p, 1 - p)
    inside = (edge > 0) & (edge < 1)
    r = jnp.sqrt(-jnp.log(jnp.where(inside, edge, 0.5)))
    tail = jnp.where(r <= 5, _ratio(_NEAR, r - 1.6), _ratio(_FAR, r - 5.0))
    tail = jnp.where(inside, tail, jnp.where(edge == 0, np.inf, np.nan))
    return jnp.where(jnp.abs(q) <= 0.425, centre, jnp.where(q < 0, -tail, tail))


@custom_jvp
def _ndtri_slope(p: Any, y: Any) -> Array:
    """One over the density at a quantile: Mills's ratio, well conditioned, over the tail."""
    edge = jnp.minimum(p, 1 - p)
    slope = sqrt(pi / 2) * erfcx(jnp.abs(y) * sqrt(0.5)) / edge
    return jnp.where(edge == 0, np.inf, slope)


_ndtri.defjvps(lambda t, out, p: t * _ndtri_slope(p, out))
# Of p alone, as `y` is its quantile.
_ndtri_slope.defjvps(lambda t, out, p, y: t * (y * jnp.square(out)), None)


# ---- logarithms and entropies ------------------------------------------------------------------


def expit(x: Any) -> Array:
    """Logistic function ``1 / (1 + exp(-x))``."""
    return lax.logistic(*inexact_operands("expit", x))


@custom_jvp
def logit(x: Any) -> Array:
    """Inverse of `expit`: ``log(x / (1 - x))``."""
    (x,) = inexact_operands("logit", x)
    return jnp.log(x / (1 - x))


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


@custom_jvp
def _relative(p: Any, q: Any) -> Array:
    return p * jnp.log(p / q)


_relative.defjvps(lambda t, out, p, q: t * (jnp.log(p / q) + 1), lambda t, out, p, q: -t * (p / q))


def rel_entr(p: Any, q: Any) -> Array:
    """``p log(p / q)``: 0 where ``p`` is 0 and ``q`` is not negative, else inf where undefined."""
    p, q = inexact_operands("rel_entr", p, q)
    both = (p > 0) & (q > 0)
    value = _relative(jnp.where(both, p, 1.0), jnp.where(both, q, 1.0))
    return jnp.where(both, value, jnp.where((p == 0) & (q >= 0), 0.0, np.inf))


def kl_div(p: Any, q: Any) -> Array:
    """``p log(p / q) - p + q``, the term of a Kullback-Leibler divergence."""
    p, q = inexact_operands("kl_div", p, q)
    return rel_entr(p, q) - p + q


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
