"""Clustering, as ``jax.scipy.cluster`` has it."""

from . import vq as vq

__all__ = ["vq"]
