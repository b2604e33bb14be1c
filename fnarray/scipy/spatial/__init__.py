"""Geometry, as ``jax.scipy.spatial`` has it."""

from __future__ import annotations

from . import transform as transform

__all__ = ["transform"]
