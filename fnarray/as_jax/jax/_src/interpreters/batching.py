"""``jax._src.interpreters.batching``."""

from __future__ import annotations

from fnarray.interpreters.batching import *  # noqa: F403
