"""Pareto distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from ._support import inside, quantile


def _scaled(name: str, x: Any, b: Any, loc: Any, scale: Any) -> tuple[Array, Array, Array]:
    x, b, loc, scale = inexact(f"pareto.{name}", x, b, loc, scale)
    return (x - loc) / scale, b, scale


def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, a power from ``loc + scale`` on."""
    z, b, scale = _scaled("logpdf", x, b, loc, scale)
    total = jnp.log(b) - jnp.log(scale)
    return inside(z >= 1, z, lambda z: total - (b + 1) * jnp.log(z), safe=1)


def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, b, loc, scale))


def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    return -jnp.expm1(logsf(x, b, loc, scale))


def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`."""
    return jnp.log(cdf(x, b, loc, scale))


def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    return jnp.exp(logsf(x, b, loc, scale))


def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`."""
    z, b, _ = _scaled("logsf", x, b, loc, scale)
    return inside(z >= 1, z, lambda z: -b * jnp.log(z), 0, safe=1)


def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value up to which there is probability ``q``."""
    q, b, loc, scale = inexact("pareto.ppf", q, b, loc, scale)
    return quantile(q, lambda q: loc + scale * jnp.exp(-jnp.log1p(-q) / b))
