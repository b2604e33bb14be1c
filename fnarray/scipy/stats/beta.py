"""Beta distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special
from ._support import inside


def _scaled(
    name: str, x: Any, a: Any, b: Any, loc: Any, scale: Any
) -> tuple[Array, Array, Array, Array]:
    x, a, b, loc, scale = inexact(f"beta.{name}", x, a, b, loc, scale)
    return (x - loc) / scale, a, b, scale


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, of shapes ``a`` and ``b``."""
    z, a, b, scale = _scaled("logpdf", x, a, b, loc, scale)
    total = special.betaln(a, b) + jnp.log(scale)
    return inside(
        jnp.logical_and(z >= 0, z <= 1),
        z,
        lambda z: special.xlog1py(b - 1, -z) + special.xlogy(a - 1, z) - total,
    )


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    z, a, b, _ = _scaled("cdf", x, a, b, loc, scale)
    return special.betainc(a, b, jnp.clip(z, 0, 1))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`."""
    return jnp.log(cdf(x, a, b, loc, scale))


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    z, a, b, _ = _scaled("sf", x, a, b, loc, scale)
    return special.betainc(b, a, jnp.clip(1 - z, 0, 1))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`."""
    return jnp.log(sf(x, a, b, loc, scale))
