"""Cauchy distribution."""

from __future__ import annotations

from math import pi
from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact


def _standard(name: str, x: Any, loc: Any, scale: Any) -> tuple[Array, Array]:
    x, loc, scale = inexact(f"cauchy.{name}", x, loc, scale)
    return (x - loc) / scale, scale


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, of median ``loc``."""
    z, scale = _standard("logpdf", x, loc, scale)
    return -(jnp.log(pi * scale) + jnp.log1p(z * z))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``, exact in the lower tail."""
    z, _ = _standard("cdf", x, loc, scale)
    return jnp.arctan2(1, -z) / pi


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`."""
    return jnp.log(cdf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``, exact in the upper tail."""
    z, _ = _standard("sf", x, loc, scale)
    return jnp.arctan2(1, z) / pi


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`."""
    return jnp.log(sf(x, loc, scale))


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value up to which there is probability ``q``."""
    q, loc, scale = inexact("cauchy.ppf", q, loc, scale)
    return loc + scale * jnp.tan(pi * (q - 0.5))


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value above which there is probability ``q``."""
    q, loc, scale = inexact("cauchy.isf", q, loc, scale)
    return loc + scale * jnp.tan(pi * (0.5 - q))
