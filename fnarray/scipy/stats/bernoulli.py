"""Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special
from ._support import inside


def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """Logarithm of the probability of ``k``: ``p`` of ``loc + 1``, the rest of ``loc``."""
    k, p, loc = inexact("bernoulli.logpmf", k, p, loc)
    x = k - loc
    ok = jnp.logical_or(x == 0, x == 1)
    return inside(ok, x, lambda x: special.xlogy(x, p) + special.xlog1py(1 - x, -p), safe=0)


def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """Probability."""
    return jnp.exp(logpmf(k, p, loc))


def cdf(k: Any, p: Any) -> Array:
    """Probability of values up to ``k``; NaN for a ``p`` that is no probability."""
    k, p = inexact("bernoulli.cdf", k, p)
    below = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(jnp.logical_and(p >= 0, p <= 1), below, np.nan)


def ppf(q: Any, p: Any) -> Array:
    """Smallest value up to which there is probability ``q``."""
    q, p = inexact("bernoulli.ppf", q, p)
    value = jnp.where(q <= 1 - p, 0.0, 1.0).astype(q.dtype)
    ok = jnp.logical_and(jnp.logical_and(p >= 0, p <= 1), jnp.logical_and(q >= 0, q <= 1))
    return jnp.where(ok, value, np.nan)
