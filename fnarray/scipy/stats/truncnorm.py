"""Normal distribution truncated to an interval."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special


def _log_difference(x: Array, y: Array) -> Array:
    """``log(exp(x) - exp(y))`` for ``x >= y``."""
    return x + jnp.log1p(-jnp.exp(y - x))


def _log_mass(a: Array, b: Array) -> Array:
    """Logarithm of the probability that a standard normal number lies in ``[a, b]``.

    An interval above zero is reflected, where the tails keep their digits.
    """
    flip = a > 0
    a, b = jnp.where(flip, -b, a), jnp.where(flip, -a, b)
    across = b > 0
    tails = _log_difference(
        special.log_ndtr(jnp.where(across, -0.5, b)), special.log_ndtr(jnp.where(across, -1.0, a))
    )
    low = special.ndtr(jnp.where(across, a, -1.0))
    high = special.ndtr(-jnp.where(across, b, 1.0))
    return jnp.where(across, jnp.log1p(-low - high), tails)


def _args(name: str, *args: Any) -> tuple[Array, ...]:
    x, a, b, loc, scale = inexact(f"truncnorm.{name}", *args)
    return (x - loc) / scale, a, b, scale


def _checked(value: Array, x: Array, a: Array, b: Array, low: float, high: float) -> Array:
    """Apply the values below and above the interval, and NaN where it is none."""
    value = jnp.where(x <= a, low, jnp.where(x >= b, high, value))
    return jnp.where(a >= b, np.nan, value)


def _within(x: Array, a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return numbers at which nothing is singular, in the place of others."""
    ok = jnp.logical_and(a < b, jnp.logical_and(x > a, x < b))
    return jnp.where(ok, x, 0.0), jnp.where(ok, a, -1.0), jnp.where(ok, b, 1.0)


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, on ``loc + scale * [a, b]``."""
    x, a, b, scale = _args("logpdf", x, a, b, loc, scale)
    value = -0.5 * (x * x + log(2 * pi)) - _log_mass(a, b) - jnp.log(scale)
    value = jnp.where(jnp.logical_or(x < a, x > b), -np.inf, value)
    return jnp.where(a >= b, np.nan, value)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `cdf`."""
    x, a, b, _ = _args("logcdf", x, a, b, loc, scale)
    y, low, high = _within(x, a, b)
    value = _log_mass(low, y) - _log_mass(low, high)
    # Close to one, by what is missing.
    rest = jnp.log1p(-jnp.exp(_log_mass(y, high) - _log_mass(low, high)))
    return _checked(jnp.where(value > -0.1, rest, value), x, a, b, -np.inf, 0)


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    return jnp.exp(logcdf(x, a, b, loc, scale))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of `sf`."""
    x, a, b, loc, scale = inexact("truncnorm.logsf", x, a, b, loc, scale)
    return logcdf(-x, -b, -a, -loc, scale)


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values above ``x``."""
    return jnp.exp(logsf(x, a, b, loc, scale))
