"""Generalised normal distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special
from ._support import inside


def logpdf(x: Any, beta: Any) -> Array:
    """Logarithm of the density at ``x``, of exponent ``beta``."""
    x, beta = inexact("gennorm.logpdf", x, beta)
    return jnp.log(0.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


def pdf(x: Any, beta: Any) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, beta))


def cdf(x: Any, beta: Any) -> Array:
    """Probability of values up to ``x``."""
    x, beta = inexact("gennorm.cdf", x, beta)
    size = jnp.abs(x)
    part = inside(size > 0, size, lambda size: special.gammainc(1 / beta, size**beta), 0)
    return 0.5 * (1 + jnp.sign(x) * part)
