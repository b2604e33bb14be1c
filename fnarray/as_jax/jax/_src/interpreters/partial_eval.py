"""``jax._src.interpreters.partial_eval``."""

from __future__ import annotations

from fnarray.interpreters.partial_eval import *  # noqa: F403
