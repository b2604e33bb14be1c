"""Exponential distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from ._support import inside, quantile


def _above(name: str, x: Any, loc: Any, scale: Any) -> tuple[Array, Array]:
    x, loc, scale = inexact(f"expon.{name}", x, loc, scale)
    return (x - loc) / scale, scale


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, from ``loc`` on, of mean ``loc + scale``."""
    z, scale = _above("logpdf", x, loc, scale)
    return inside(z >= 0, z, lambda z: -z - jnp.log(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    z, _ = _above("cdf", x, loc, scale)
    return inside(z >= 0, z, lambda z: -jnp.expm1(-z), 0)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`."""
    z, _ = _above("logcdf", x, loc, scale)
    return inside(z >= 0, z, lambda z: jnp.log(-jnp.expm1(-z)))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    return jnp.exp(logsf(x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`."""
    z, _ = _above("logsf", x, loc, scale)
    return inside(z >= 0, z, lambda z: -z, 0)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value up to which there is probability ``q``."""
    q, loc, scale = inexact("expon.ppf", q, loc, scale)
    return quantile(q, lambda q: loc - scale * jnp.log1p(-q))
