"""``jax._src.random``: ``jax.random``, and modules of its generators."""

from __future__ import annotations

from fnarray import random as _random


def __getattr__(name: str) -> object:
    return getattr(_random, name)
