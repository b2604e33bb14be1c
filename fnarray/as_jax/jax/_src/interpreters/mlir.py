"""``jax._src.interpreters.mlir``."""

from __future__ import annotations

from fnarray.interpreters.mlir import *  # noqa: F403
