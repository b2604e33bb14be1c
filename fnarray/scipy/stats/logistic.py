"""Logistic distribution."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special


def _standard(name: str, x: Any, loc: Any, scale: Any) -> tuple[Array, Array]:
    x, loc, scale = inexact(f"logistic.{name}", x, loc, scale)
    return (x - loc) / scale, scale


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, of mean ``loc``."""
    z, scale = _standard("logpdf", x, loc, scale)
    # The density is even: the size keeps the exponential small.
    z = jnp.abs(z)
    return -z - 2 * jnp.log1p(jnp.exp(-z)) - jnp.log(scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    return special.expit(_standard("cdf", x, loc, scale)[0])


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    return special.expit(-_standard("sf", x, loc, scale)[0])


def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value up to which there is probability ``x``."""
    x, loc, scale = inexact("logistic.ppf", x, loc, scale)
    return special.logit(x) * scale + loc


def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value above which there is probability ``x``."""
    x, loc, scale = inexact("logistic.isf", x, loc, scale)
    return loc - special.logit(x) * scale
