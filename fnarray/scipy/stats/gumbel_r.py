"""Gumbel distribution of largest values."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from ._support import quantile


def _standard(name: str, x: Any, loc: Any, scale: Any) -> tuple[Array, Array]:
    x, loc, scale = inexact(f"gumbel_r.{name}", x, loc, scale)
    return (x - loc) / scale, scale


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, of mode ``loc``."""
    z, scale = _standard("logpdf", x, loc, scale)
    return -(z + jnp.exp(-z)) - jnp.log(scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`."""
    return -jnp.exp(-_standard("logcdf", x, loc, scale)[0])


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    return jnp.exp(logcdf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    return -jnp.expm1(logcdf(x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`."""
    return jnp.log(sf(x, loc, scale))


def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value up to which there is probability ``p``."""
    p, loc, scale = inexact("gumbel_r.ppf", p, loc, scale)
    return quantile(p, lambda p: loc - scale * jnp.log(-jnp.log(p)))
