"""``jax._src.state.types``."""

from __future__ import annotations


class AbstractRef:
    """What is known of a Ref while it is traced, as some libraries tell them from arrays."""
