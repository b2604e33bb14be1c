"""What extensions of ``random`` use, named as in ``jax.extend.random``."""

from __future__ import annotations

from ..ops.kit.registry import registry

__all__ = ["threefry2x32_p"]

threefry2x32_p = registry["threefry2x32"]
