"""The table of distributions of integers: standard forms by name; `_forms` says what they mean."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from .. import special
from ._forms import discrete, on, plain, positive

__all__: list[str] = []

UDD = "Johnson, Kemp & Kotz, Univariate Discrete Distributions (2005), chapter"


def _bernoulli_cdf(k: Array, p: Array) -> Array:
    below = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(jnp.logical_and(p >= 0, p <= 1), below, np.nan)


def _bernoulli_ppf(q: Array, p: Array) -> Array:
    value = jnp.where(q <= 1 - p, 0.0, 1.0).astype(q.dtype)
    ok = jnp.logical_and(jnp.logical_and(p >= 0, p <= 1), jnp.logical_and(q >= 0, q <= 1))
    return jnp.where(ok, value, np.nan)


bernoulli = discrete(
    "bernoulli p",
    "Bernoulli distribution, of ``loc + 1`` with probability ``p`` and ``loc`` with the rest",
    "p**y * (1 - p)**(1 - y) for y in {0, 1}",
    f"{UDD} 3",
    logpmf=on(
        lambda y, p: jnp.logical_or(y == 0, y == 1),
        lambda y, p: special.xlogy(y, p) + special.xlog1py(1 - y, -p),
        safe=0,
    ),
    cdf=plain(_bernoulli_cdf),
    ppf=plain(_bernoulli_ppf),
)


def _up_to_n(y: Array, n: Array, *_: Array) -> Array:
    return jnp.logical_and(y >= 0, y <= n)


def _binom_logpmf(y: Array, n: Array, p: Array) -> Array:
    ways = -jnp.log1p(n) - special.betaln(n - y + 1, y + 1)
    return ways + special.xlogy(y, p) + special.xlog1py(n - y, -p)


binom = discrete(
    "binom n p",
    "binomial distribution, of successes in ``n`` trials, each of probability ``p``",
    "comb(n, y) * p**y * (1 - p)**(n - y) for 0 <= y <= n",
    f"{UDD} 3",
    logpmf=on(_up_to_n, _binom_logpmf, safe=0),
)


def _betabinom_logpmf(y: Array, n: Array, a: Array, b: Array) -> Array:
    ways = -jnp.log1p(n) - special.betaln(n - y + 1, y + 1)
    return ways + special.betaln(y + a, n - y + b) - special.betaln(a, b)


betabinom = discrete(
    "betabinom n a b",
    "beta-binomial distribution, of successes in ``n`` trials, whose probability is beta",
    "comb(n, y) * beta(y + a, n - y + b) / beta(a, b) for 0 <= y <= n",
    f"{UDD} 6.2.2",
    of=lambda k, *rest: (jnp.floor(k), *rest),
    logpmf=on(_up_to_n, _betabinom_logpmf, safe=0),
)


def _nbinom_logpmf(y: Array, n: Array, p: Array) -> Array:
    ways = -jnp.log(y + n) - special.betaln(n, y + 1)
    return ways + special.xlogy(n, p) + special.xlog1py(y, -p)


nbinom = discrete(
    "nbinom n p",
    "negative binomial distribution, of failures before the ``n``-th success of probability ``p``",
    "comb(y + n - 1, y) * p**n * (1 - p)**y for y >= 0",
    f"{UDD} 5",
    logpmf=on(positive, _nbinom_logpmf),
)

geom = discrete(
    "geom p",
    "geometric distribution, of the first trial that succeeds, each with probability ``p``",
    "(1 - p)**(y - 1) * p for y >= 1",
    f"{UDD} 5",
    logpmf=on(lambda y, p: y > 0, lambda y, p: special.xlog1py(y - 1, -p) + jnp.log(p), safe=1),
)

#: Terms of the sum that serves means up to `_SMALL`: eleven standard deviations beyond it.
_TERMS, _SMALL = 160, 60.0


def _counts(y: Array, *_: Array) -> Array:
    return (y >= 0) & (jnp.round(y) == y)


def _poisson_logpmf(y: Array, mu: Array) -> Array:
    return special.xlogy(y, mu) - special.gammaln(y + 1) - mu


def _poisson_entropy(mu: Array, loc: Any = 0) -> Array:
    """Entropy by its sum for small means, by the asymptotic series for others.

    Evans, Boersma, Blachman & Jagers, The Entropy of a Poisson Distribution (1988).
    """
    mu = jnp.broadcast_to(mu, np.broadcast_shapes(mu.shape, loc.shape))
    few = jnp.minimum(mu, _SMALL)[..., None]
    terms = _poisson_logpmf(jnp.arange(_TERMS, dtype=mu.dtype), few)
    exact = -jnp.sum(jnp.where(few == 0, 0, jnp.exp(terms) * terms), -1)
    many = jnp.maximum(mu, _SMALL)
    r = 1 / many
    tail = r * (1 / 12 + r * (1 / 24 + r * (19 / 360)))
    series = 0.5 * jnp.log(2 * pi * np.e * many) - tail
    value = jnp.where(mu > _SMALL, series, exact)
    return jnp.where(mu >= 0, value, np.nan)


poisson = discrete(
    "poisson mu",
    "Poisson distribution, of mean ``loc + mu``",
    "mu**y * exp(-mu) / y! for whole y >= 0",
    f"{UDD} 4",
    logpmf=on(_counts, _poisson_logpmf),
    cdf=on(positive, lambda y, mu: special.gammaincc(jnp.floor(y) + 1, mu), 0, safe=1),
    entropy=plain(_poisson_entropy),
)
