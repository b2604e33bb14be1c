"""Negative binomial distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special
from ._support import inside


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """Logarithm of the probability of ``k`` failures before the ``n``-th success."""
    k, n, p, loc = inexact("nbinom.logpmf", k, n, p, loc)
    y = k - loc

    def inner(y: Array) -> Array:
        ways = special.gammaln(y + n) - special.gammaln(n) - special.gammaln(y + 1)
        return ways + special.xlogy(n, p) + special.xlog1py(y, -p)

    return inside(y >= 0, y, inner)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """Probability."""
    return jnp.exp(logpmf(k, n, p, loc))
