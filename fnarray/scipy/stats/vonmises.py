"""Von Mises distribution."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...nn._args import inexact
from .. import special


def logpdf(x: Any, kappa: Any) -> Array:
    """Logarithm of the density at the angle ``x``, of concentration ``kappa``."""
    x, kappa = inexact("vonmises.logpdf", x, kappa)
    return jnp.where(
        kappa >= 0, kappa * (jnp.cos(x) - 1) - jnp.log(2 * pi * special.i0e(kappa)), np.nan
    )


def pdf(x: Any, kappa: Any) -> Array:
    """Density."""
    return jnp.exp(logpdf(x, kappa))
