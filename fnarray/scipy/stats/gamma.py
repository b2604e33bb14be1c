"""Gamma distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special
from ._support import inside


def _scaled(name: str, x: Any, a: Any, loc: Any, scale: Any) -> tuple[Array, Array, Array]:
    x, a, loc, scale = inexact(f"gamma.{name}", x, a, loc, scale)
    return (x - loc) / scale, a, scale


def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, of shape ``a``."""
    z, a, scale = _scaled("logpdf", x, a, loc, scale)
    total = special.gammaln(a) + jnp.log(scale)
    return inside(z >= 0, z, lambda z: special.xlogy(a - 1, z) - z - total)


def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, a, loc, scale))


def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    z, a, _ = _scaled("cdf", x, a, loc, scale)
    return inside(z >= 0, z, lambda z: special.gammainc(a, z), 0)


def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`."""
    return jnp.log(cdf(x, a, loc, scale))


def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    z, a, _ = _scaled("sf", x, a, loc, scale)
    return inside(z >= 0, z, lambda z: special.gammaincc(a, z), 1)


def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`."""
    return jnp.log(sf(x, a, loc, scale))
