"""Integrals of sampled functions as ``jax.scipy.integrate`` names them."""

from __future__ import annotations

from typing import Any

from .. import numpy as jnp
from ..core.array import Array

__all__ = ["trapezoid"]
__dir__ = __all__.copy


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Integrate samples along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : array
        Samples.
    x : array, optional
        Where they were taken: along ``axis``, or broadcast to ``y``.
    dx : scalar
        Their distance, where ``x`` is omitted.
    axis : int
    """
    return jnp.trapezoid(y, x, dx, axis)
