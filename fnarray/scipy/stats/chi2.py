"""Chi-squared distribution: gamma of half the degrees of freedom and twice the scale."""

from __future__ import annotations

from typing import Any

from ...core.array import Array
from ...nn._args import inexact
from . import gamma


def _as_gamma(name: str, x: Any, df: Any, loc: Any, scale: Any) -> Array:
    x, df, loc, scale = inexact(f"chi2.{name}", x, df, loc, scale)
    return getattr(gamma, name)(x, df / 2, loc, 2 * scale)


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, of ``df`` degrees of freedom."""
    return _as_gamma("logpdf", x, df, loc, scale)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return _as_gamma("pdf", x, df, loc, scale)


def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    return _as_gamma("cdf", x, df, loc, scale)


def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`."""
    return _as_gamma("logcdf", x, df, loc, scale)


def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    return _as_gamma("sf", x, df, loc, scale)


def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`."""
    return _as_gamma("logsf", x, df, loc, scale)
