"""Binomial distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special
from ._support import inside


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """Logarithm of the probability of ``k`` successes, each of ``p``, in ``n`` trials."""
    k, n, p, loc = inexact("binom.logpmf", k, n, p, loc)
    y = k - loc

    def inner(y: Array) -> Array:
        ways = special.gammaln(n + 1) - special.gammaln(y + 1) - special.gammaln(n - y + 1)
        return ways + special.xlogy(y, p) + special.xlog1py(n - y, -p)

    return inside(jnp.logical_and(y >= 0, y <= n), y, inner, safe=0)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """Probability."""
    return jnp.exp(logpmf(k, n, p, loc))
