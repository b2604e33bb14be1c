"""Uniform distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from ._support import quantile


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Logarithm of the density at ``x``, uniform from ``loc`` to ``loc + scale``."""
    x, loc, scale = inexact("uniform.logpdf", x, loc, scale)
    ok = jnp.logical_and(x >= loc, x <= loc + scale)
    return jnp.where(ok, -jnp.log(scale), jnp.where(x != x, x, -np.inf))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Probability of values up to ``x``."""
    x, loc, scale = inexact("uniform.cdf", x, loc, scale)
    return jnp.clip((x - loc) / scale, 0, 1)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """Value up to which there is probability ``q``."""
    q, loc, scale = inexact("uniform.ppf", q, loc, scale)
    return quantile(q, lambda q: loc + scale * q)
