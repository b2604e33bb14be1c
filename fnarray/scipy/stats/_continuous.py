"""The table of continuous distributions: standard forms by name; `_forms` says what they mean."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...nn import log1mexp
from ...nn._args import strong_operands
from .. import special
from .._normal import bell
from ._forms import continuous, inside, log_of, on, plain, positive, unit

__all__: list[str] = []

CUD = "Johnson, Kotz & Balakrishnan, Continuous Univariate Distributions (1994, 1995), chapter"
DS = "Mardia & Jupp, Directional Statistics (2000), section"

norm = continuous(
    "norm",
    "normal distribution, of mean ``loc`` and standard deviation ``scale``",
    "exp(-z**2 / 2) / (scale * sqrt(2 * pi))",
    f"{CUD} 13",
    logpdf=lambda z: -0.5 * (log(2 * pi) + z * z),
    pdf=lambda z: (2 * pi) ** -0.5 * bell(z),
    cdf=lambda z: special.ndtr(z),
    logcdf=lambda z: special.log_ndtr(z),
    sf=lambda w: special.ndtr(w),
    logsf=lambda w: special.log_ndtr(w),
    ppf=lambda q: special.ndtri(q),
    isf=lambda q: -special.ndtri(q),
)


def _uniform_logpdf(x: Array, loc: Any = 0, scale: Any = 1) -> Array:
    # In x, as z rounds: both ends belong to it.
    ok = jnp.logical_and(x >= loc, x <= loc + scale)
    return jnp.where(ok, -jnp.log(scale), jnp.where(x != x, x, -np.inf))


uniform = continuous(
    "uniform",
    "uniform distribution, from ``loc`` to ``loc + scale``",
    "1 / scale for 0 <= z <= 1",
    f"{CUD} 26",
    logpdf=plain(_uniform_logpdf),
    cdf=lambda z: jnp.clip(strong_operands("uniform.cdf", z)[0], 0, 1),
    ppf=on(unit, lambda q: q, np.nan),
)

expon = continuous(
    "expon",
    "exponential distribution, from ``loc`` on with mean ``loc + scale``",
    "exp(-z) / scale for z >= 0",
    f"{CUD} 19",
    logpdf=on(positive, lambda z: -z),
    pdf=on(positive, lambda z: jnp.exp(-z), 0),
    cdf=on(positive, lambda z: -jnp.expm1(-z), 0),
    logcdf=on(positive, lambda z: log1mexp(z)),
    logsf=on(positive, lambda z: -z, 0),
    ppf=on(unit, lambda q: -jnp.log1p(-q), np.nan),
    tails=True,
)


def _gamma_cdf(z: Array, a: Array) -> Array:
    return special.gammainc(a, z)


def _gamma_sf(z: Array, a: Array) -> Array:
    return special.gammaincc(a, z)


_GAMMA = {
    "normalizer": lambda scale, a: special.gammaln(a) + jnp.log(scale),
    "logpdf": on(positive, lambda z, a: special.xlogy(a - 1, z) - z),
    "cdf": on(positive, _gamma_cdf, 0),
    "logcdf": on(positive, log_of(_gamma_cdf, _gamma_sf)),
    "sf": on(positive, _gamma_sf, 1),
    "logsf": on(positive, log_of(_gamma_sf, _gamma_cdf), 0),
}
gamma = continuous(
    "gamma a",
    "gamma distribution, of shape ``a``",
    "z**(a - 1) * exp(-z) / (gamma(a) * scale) for z >= 0",
    f"{CUD} 17",
    **_GAMMA,
)
chi2 = continuous(
    "chi2 df",
    "chi-squared distribution, of ``df`` degrees of freedom: gamma of half of them and twice the "
    "scale",
    "(z / 2)**(df / 2 - 1) * exp(-z / 2) / (gamma(df / 2) * 2 * scale) for z >= 0",
    f"{CUD} 18",
    of=lambda x, df, loc, scale: (x, df / 2, loc, 2 * scale),
    **_GAMMA,
)


def _beta_cdf(z: Array, a: Array, b: Array) -> Array:
    return special.betainc(a, b, jnp.clip(z, 0, 1))


def _beta_sf(z: Array, a: Array, b: Array) -> Array:
    return special.betainc(b, a, jnp.clip(1 - z, 0, 1))


beta = continuous(
    "beta a b",
    "beta distribution, of shapes ``a`` and ``b``",
    "z**(a - 1) * (1 - z)**(b - 1) / (beta(a, b) * scale) for 0 <= z <= 1",
    f"{CUD} 25",
    normalizer=lambda scale, a, b: special.betaln(a, b) + jnp.log(scale),
    logpdf=on(unit, lambda z, a, b: special.xlog1py(b - 1, -z) + special.xlogy(a - 1, z)),
    cdf=_beta_cdf,
    logcdf=log_of(_beta_cdf, _beta_sf),
    sf=_beta_sf,
    logsf=log_of(_beta_sf, _beta_cdf),
)


# The angle seen from its own side keeps the digits of a tail.
def _cauchy_cdf(z: Array) -> Array:
    return jnp.arctan2(1, -z) / pi


def _cauchy_sf(z: Array) -> Array:
    return jnp.arctan2(1, z) / pi


def _cotangent(q: Array) -> Array:
    """``cot(pi q)``, by the distance from the pole or from the zero that is nearer."""
    from_pole = jnp.where(q < 0.5, q, q - 1)
    near = jnp.abs(from_pole) < 0.25
    tangent = jnp.tan(pi * jnp.where(near, from_pole, 0.5 - q))
    return jnp.where(near, 1 / jnp.where(near, tangent, 1.0), tangent)


cauchy = continuous(
    "cauchy",
    "Cauchy distribution, of median ``loc`` and half width ``scale`` at half its height",
    "1 / (pi * scale * (1 + z**2))",
    f"{CUD} 16",
    normalizer=lambda scale: jnp.log(pi * scale),
    logpdf=lambda z: -jnp.log1p(z * z),
    pdf=lambda z: 1 / (pi * (1 + z * z)),
    cdf=_cauchy_cdf,
    logcdf=log_of(_cauchy_cdf, _cauchy_sf),
    sf=_cauchy_sf,
    logsf=log_of(_cauchy_sf, _cauchy_cdf),
    ppf=lambda q: -_cotangent(q),
    isf=lambda q: _cotangent(q),
)


def _laplace_logpdf(x: Array, loc: Any = 0, scale: Any = 1) -> Array:
    # In x, as the size of z would forget the sign of a scale: that is no density, but has slopes.
    return -jnp.abs(x - loc) / scale - jnp.log(2 * scale)


def _laplace_pdf(x: Array, loc: Any = 0, scale: Any = 1) -> Array:
    twice = jnp.where(scale > 0, 2 * scale, np.nan)
    return jnp.exp(-jnp.abs(x - loc) / scale) / twice


def _laplace_cdf(z: Array) -> Array:
    tail = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z <= 0, tail, 1 - tail)


laplace = continuous(
    "laplace",
    "Laplace distribution, of two exponentials about ``loc``",
    "exp(-abs(z)) / (2 * scale)",
    f"{CUD} 24",
    logpdf=plain(_laplace_logpdf),
    pdf=plain(_laplace_pdf),
    cdf=_laplace_cdf,
)


def _logistic_logpdf(z: Array) -> Array:
    # The density is even: the size keeps the exponential small.
    z = jnp.abs(z)
    return -z - 2 * jnp.log1p(jnp.exp(-z))


def _logistic_pdf(z: Array) -> Array:
    tail = jnp.exp(-jnp.abs(z))
    return tail / jnp.square(1 + tail)


logistic = continuous(
    "logistic",
    "logistic distribution, of mean ``loc``",
    "exp(-z) / (scale * (1 + exp(-z))**2)",
    f"{CUD} 23",
    logpdf=_logistic_logpdf,
    pdf=_logistic_pdf,
    cdf=lambda z: special.expit(z),
    sf=lambda z: special.expit(-z),
    ppf=lambda x: special.logit(x),
    isf=lambda x: -special.logit(x),
)

gumbel_r = continuous(
    "gumbel_r",
    "Gumbel distribution of largest values, of mode ``loc``",
    "exp(-(z + exp(-z))) / scale",
    f"{CUD} 22",
    logpdf=lambda z: -(z + jnp.exp(-z)),
    logcdf=lambda z: -jnp.exp(-z),
    logsf=lambda z: log1mexp(jnp.exp(-z)),
    ppf=on(unit, lambda p: -jnp.log(-jnp.log(p)), np.nan),
    tails=True,
)
gumbel_l = continuous(
    "gumbel_l",
    "Gumbel distribution of smallest values, of mode ``loc``",
    "exp(z - exp(z)) / scale",
    f"{CUD} 22",
    logpdf=lambda w: -(w + jnp.exp(-w)),
    logcdf=lambda w: log1mexp(jnp.exp(-w)),
    logsf=lambda w: -jnp.exp(-w),
    ppf=on(unit, lambda p: jnp.log(-jnp.log1p(-p)), np.nan),
    tails=True,
)


def _pareto_logcdf(z: Array, b: Array) -> Array:
    # Far out the power is exact where the product b log(z) has lost its last digits.
    depth = b * jnp.log(z)
    return jnp.where(depth < log(2), log1mexp(depth), jnp.log1p(-(z**-b)))


pareto = continuous(
    "pareto b",
    "Pareto distribution, of a power ``b`` from ``loc + scale`` on",
    "b / (scale * z**(b + 1)) for z >= 1",
    f"{CUD} 20",
    # Turned twice: the logarithm of a density of one is 0, not -0.
    normalizer=lambda scale, b: -(jnp.log(b) - jnp.log(scale)),
    logpdf=on(lambda z, b: z >= 1, lambda z, b: -((b + 1) * jnp.log(z)), safe=1),
    logcdf=on(lambda z, b: z >= 1, _pareto_logcdf, safe=1),
    logsf=on(lambda z, b: z >= 1, lambda z, b: -b * jnp.log(z), 0, safe=1),
    ppf=on(unit, lambda q, b: jnp.exp(-jnp.log1p(-q) / b), np.nan),
    tails=True,
)


def _t_normalizer(scale: Array, df: Array, half: Array) -> Array:
    return 0.5 * jnp.log(df) + jnp.log(scale) + special.betaln(half, 0.5)


t = continuous(
    "t df",
    "Student's t distribution, of ``df`` degrees of freedom",
    "(1 + z**2 / df)**(-(df + 1) / 2) / (beta(df / 2, 1 / 2) * sqrt(df) * scale)",
    f"{CUD} 28",
    of=lambda x, df, loc, scale: (x, df, df / 2, loc, scale),
    normalizer=_t_normalizer,
    logpdf=lambda z, df, half: -((half + 0.5) * jnp.log1p(z * z / df)),
)


# --- the normal distribution cut to an interval ---------------------------------------------------


def _log_difference(x: Array, y: Array) -> Array:
    """``log(exp(x) - exp(y))`` for ``x >= y``."""
    return x + jnp.log1p(-jnp.exp(y - x))


def _log_mass(a: Array, b: Array) -> Array:
    """Logarithm of the probability that a standard normal number lies in ``[a, b]``.

    An interval above zero is reflected, where the tails keep their digits.
    """
    flip = a > 0
    a, b = jnp.where(flip, -b, a), jnp.where(flip, -a, b)
    across = b > 0
    tails = _log_difference(
        special.log_ndtr(jnp.where(across, -0.5, b)), special.log_ndtr(jnp.where(across, -1.0, a))
    )
    low = special.ndtr(jnp.where(across, a, -1.0))
    high = special.ndtr(-jnp.where(across, b, 1.0))
    return jnp.where(across, jnp.log1p(-low - high), tails)


def _truncnorm_logpdf(x: Array, a: Array, b: Array, loc: Any = 0, scale: Any = 1) -> Array:
    z = (x - loc) / scale
    value = -0.5 * (z * z + log(2 * pi)) - _log_mass(a, b) - jnp.log(scale)
    value = jnp.where(jnp.logical_or(z < a, z > b), -np.inf, value)
    return jnp.where(a >= b, np.nan, value)


def _truncnorm_logcdf(z: Array, a: Array, b: Array) -> Array:
    ok = jnp.logical_and(a < b, jnp.logical_and(z > a, z < b))
    # Numbers at which nothing is singular, in the place of others.
    y, low, high = jnp.where(ok, z, 0.0), jnp.where(ok, a, -1.0), jnp.where(ok, b, 1.0)
    value = _log_mass(low, y) - _log_mass(low, high)
    # Close to one, by what is missing.
    rest = jnp.log1p(-jnp.exp(_log_mass(y, high) - _log_mass(low, high)))
    value = jnp.where(value > -0.1, rest, value)
    value = jnp.where(z <= a, -np.inf, jnp.where(z >= b, 0, value))
    return jnp.where(a >= b, np.nan, value)


truncnorm = continuous(
    "truncnorm a b",
    "truncated normal distribution, on ``loc + scale * [a, b]``",
    "exp(-z**2 / 2) / (scale * sqrt(2 * pi) * (ndtr(b) - ndtr(a))) for a <= z <= b",
    f"{CUD} 13.10",
    logpdf=plain(_truncnorm_logpdf),
    logcdf=_truncnorm_logcdf,
    logsf=lambda w, a, b: _truncnorm_logcdf(w, -b, -a),
    tails=True,
)


# --- without location and scale -------------------------------------------------------------------


def _gennorm_logpdf(x: Array, beta: Array) -> Array:
    return jnp.log(0.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


def _gennorm_cdf(x: Array, beta: Array) -> Array:
    size = jnp.abs(x)
    tail = inside(size > 0, size, lambda size: special.gammaincc(1 / beta, size**beta), 1)
    return jnp.where(x < 0, 0.5 * tail, 1 - 0.5 * tail)


gennorm = continuous(
    "gennorm beta",
    "generalised normal distribution, of exponent ``beta``",
    "beta * exp(-abs(x)**beta) / (2 * gamma(1 / beta))",
    "Nadarajah, A Generalized Normal Distribution (2005)",
    logpdf=plain(_gennorm_logpdf),
    cdf=plain(_gennorm_cdf),
)


def _vonmises_logpdf(x: Array, kappa: Array) -> Array:
    value = kappa * (jnp.cos(x) - 1) - jnp.log(2 * pi * special.i0e(kappa))
    return jnp.where(kappa >= 0, value, np.nan)


vonmises = continuous(
    "vonmises kappa",
    "von Mises distribution of angles, of concentration ``kappa``",
    "exp(kappa * cos(x)) / (2 * pi * i0(kappa))",
    f"{DS} 3.5.4",
    logpdf=plain(_vonmises_logpdf),
)


def _wrapcauchy_logpdf(x: Array, c: Array) -> Array:
    value = inside(
        jnp.logical_and(x >= 0, x <= 2 * pi),
        x,
        lambda x: jnp.log(1 - c * c) - log(2 * pi) - jnp.log(1 + c * c - 2 * c * jnp.cos(x)),
    )
    return jnp.where(jnp.logical_and(c > 0, c < 1), value, np.nan)


wrapcauchy = continuous(
    "wrapcauchy c",
    "wrapped Cauchy distribution of angles in [0, 2 pi], of shape ``c`` in (0, 1)",
    "(1 - c**2) / (2 * pi * (1 + c**2 - 2 * c * cos(x)))",
    f"{DS} 3.5.7",
    logpdf=plain(_wrapcauchy_logpdf),
)
