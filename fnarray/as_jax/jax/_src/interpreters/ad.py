"""``jax._src.interpreters.ad``."""

from __future__ import annotations

from fnarray.interpreters.ad import *  # noqa: F403
