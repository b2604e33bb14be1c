"""``jax.experimental.scheduling_groups``: words to XLA's scheduler, which nobody here reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["scheduling_group", "xla_metadata_call"]


def xla_metadata_call(f: Callable[..., Any] | None = None, **meta: Any) -> Any:
    """Return the function itself, or what takes one."""
    return xla_metadata_call if f is None else f


def scheduling_group(name: Any) -> Any:
    """Return what gives a function back: the schedule is the compiler's."""
    return xla_metadata_call
