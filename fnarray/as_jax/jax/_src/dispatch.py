"""``jax._src.dispatch``."""

from __future__ import annotations

from fnarray import effects_barrier


def wait_for_tokens() -> None:
    """Wait until callbacks have run."""
    effects_barrier()
