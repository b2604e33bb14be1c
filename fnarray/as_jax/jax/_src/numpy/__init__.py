"""``jax._src.numpy``."""

from __future__ import annotations

from . import util as util
