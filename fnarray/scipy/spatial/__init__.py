"""Geometry, as ``jax.scipy.spatial`` has it."""

from . import transform as transform

__all__ = ["transform"]
