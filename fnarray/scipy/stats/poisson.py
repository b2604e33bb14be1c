"""Poisson distribution."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special
from ._support import inside


def logpmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """Logarithm of the probability of ``k``, of mean ``loc + mu``."""
    k, mu, loc = inexact("poisson.logpmf", k, mu, loc)
    x = k - loc
    return inside(x >= 0, x, lambda x: special.xlogy(x, mu) - special.gammaln(x + 1) - mu)


def pmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """Probability."""
    return jnp.exp(logpmf(k, mu, loc))


def cdf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """Probability of values up to ``k``."""
    k, mu, loc = inexact("poisson.cdf", k, mu, loc)
    x = jnp.floor(k - loc)
    return inside(x >= 0, x, lambda x: special.gammaincc(x + 1, mu), 0)


#: Terms of the sum that serves means up to `_SMALL`: eleven standard deviations beyond it.
_TERMS, _SMALL = 160, 60.0


def entropy(mu: Any, loc: Any = 0) -> Array:
    """Entropy in nats: by its sum for small means, by the asymptotic series for others.

    Evans, Boersma, Blachman & Jagers, The Entropy of a Poisson Distribution (1988).
    """
    mu, _ = inexact("poisson.entropy", mu, loc)
    shape = np.broadcast_shapes(mu.shape, np.shape(loc))
    mu = jnp.broadcast_to(mu, shape)
    few = jnp.minimum(mu, _SMALL)[..., None]
    k = jnp.arange(_TERMS, dtype=mu.dtype)
    terms = logpmf(k, few)
    exact = -jnp.sum(jnp.where(few == 0, 0, jnp.exp(terms) * terms), -1)
    many = jnp.maximum(mu, _SMALL)
    r = 1 / many
    tail = r * (1 / 12 + r * (1 / 24 + r * (19 / 360)))
    series = 0.5 * jnp.log(2 * pi * np.e * many) - tail
    value = jnp.where(mu > _SMALL, series, exact)
    return jnp.where(mu >= 0, value, np.nan)
