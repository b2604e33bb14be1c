"""``jax.distributed``: there is one process, which needs no initialization."""

from __future__ import annotations

from typing import Any


def is_initialized() -> bool:
    """Whether several processes were joined: never."""
    return False


def initialize(*args: Any, num_processes: int | None = None, **kwargs: Any) -> None:
    """Refuse to join processes, and accept one.

    Raises
    ------
    NotImplementedError
        For several processes, or as many as a cluster has.
    """
    count = args[1] if len(args) > 1 else num_processes
    if count != 1:
        raise NotImplementedError(
            f"jax.distributed.initialize: fnarray runs in one process, got num_processes={count}. "
            "Leave the call out, or use fnarray.distributed, whose workers are devices. See "
            "docs/how-to/run-a-jax-library.md."
        )


def shutdown() -> None:
    """Do nothing: nothing was initialized."""
