"""Wrapped Cauchy distribution."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from ._support import inside


def logpdf(x: Any, c: Any) -> Array:
    """Logarithm of the density at the angle ``x`` in [0, 2 pi], of shape ``c`` in (0, 1)."""
    x, c = inexact("wrapcauchy.logpdf", x, c)
    value = inside(
        jnp.logical_and(x >= 0, x <= 2 * pi),
        x,
        lambda x: jnp.log(1 - c * c) - log(2 * pi) - jnp.log(1 + c * c - 2 * c * jnp.cos(x)),
    )
    return jnp.where(jnp.logical_and(c > 0, c < 1), value, np.nan)


def pdf(x: Any, c: Any) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, c))
