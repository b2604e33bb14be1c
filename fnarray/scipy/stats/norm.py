"""Normal distribution."""

from __future__ import annotations

from math import log, pi
from typing import Any

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, of mean ``loc`` and standard deviation ``scale``."""
    x, loc, scale = inexact("norm.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -0.5 * (log(2 * pi) + z * z) - jnp.log(scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    x, loc, scale = inexact("norm.cdf", x, loc, scale)
    return special.ndtr((x - loc) / scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`, exact in the lower tail."""
    x, loc, scale = inexact("norm.logcdf", x, loc, scale)
    return special.log_ndtr((x - loc) / scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    x, loc, scale = inexact("norm.sf", x, loc, scale)
    return special.ndtr((loc - x) / scale)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`, exact in the upper tail."""
    x, loc, scale = inexact("norm.logsf", x, loc, scale)
    return special.log_ndtr((loc - x) / scale)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value up to which there is probability ``q``."""
    q, loc, scale = inexact("norm.ppf", q, loc, scale)
    return special.ndtri(q) * scale + loc


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value above which there is probability ``q``."""
    q, loc, scale = inexact("norm.isf", q, loc, scale)
    return loc - special.ndtri(q) * scale
