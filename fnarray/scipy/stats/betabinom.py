"""Beta-binomial distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special
from ._support import inside


def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Array:
    """Logarithm of the probability of ``k`` of ``n``, whose own is of a beta distribution."""
    k, n, a, b, loc = inexact("betabinom.logpmf", k, n, a, b, loc)
    y = jnp.floor(k) - loc

    def inner(y: Array) -> Array:
        ways = -jnp.log1p(n) - special.betaln(n - y + 1, y + 1)
        return ways + special.betaln(y + a, n - y + b) - special.betaln(a, b)

    return inside(jnp.logical_and(y >= 0, y <= n), y, inner, safe=0)


def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Array:
    """Probability."""
    return jnp.exp(logpmf(k, n, a, b, loc))
