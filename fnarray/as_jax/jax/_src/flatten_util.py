"""``jax._src.flatten_util``."""

from __future__ import annotations

from fnarray.flatten_util import ravel_pytree as ravel_pytree
