"""Geometric distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special
from ._support import inside


def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """Logarithm of the probability that the first success is the ``k``-th trial."""
    k, p, loc = inexact("geom.logpmf", k, p, loc)
    x = k - loc
    return inside(x > 0, x, lambda x: special.xlog1py(x - 1, -p) + jnp.log(p), safe=1)


def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """Probability."""
    return jnp.exp(logpmf(k, p, loc))
