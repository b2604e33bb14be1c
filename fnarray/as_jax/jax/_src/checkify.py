"""``jax._src.checkify``."""

from __future__ import annotations

from fnarray.experimental.checkify import *  # noqa: F403
