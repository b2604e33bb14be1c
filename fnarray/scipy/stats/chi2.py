"""Chi-squared distribution: gamma of half the degrees of freedom and twice the scale."""

from __future__ import annotations

from typing import Any

from ...core.array import Array
from ...nn._args import inexact
from . import gamma


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, of ``df`` degrees of freedom."""
    x, df, loc, scale = inexact("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    x, df, loc, scale = inexact("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, df / 2, loc, 2 * scale)


def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    x, df, loc, scale = inexact("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, df / 2, loc, 2 * scale)


def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`."""
    x, df, loc, scale = inexact("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    x, df, loc, scale = inexact("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, df / 2, loc, 2 * scale)


def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`."""
    x, df, loc, scale = inexact("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, df / 2, loc, 2 * scale)
