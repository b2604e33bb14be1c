"""``jax._src.nn``."""

from __future__ import annotations

from fnarray.nn import *  # noqa: F403
