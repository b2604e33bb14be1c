"""Student's t distribution."""

from __future__ import annotations

from math import pi
from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, of ``df`` degrees of freedom."""
    x, df, loc, scale = inexact("t.logpdf", x, df, loc, scale)
    z, half = (x - loc) / scale, df / 2
    total = 0.5 * jnp.log(pi * df) + jnp.log(scale)
    total = total + special.gammaln(half) - special.gammaln(half + 0.5)
    return -total - (half + 0.5) * jnp.log1p(z * z / df)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, df, loc, scale))
