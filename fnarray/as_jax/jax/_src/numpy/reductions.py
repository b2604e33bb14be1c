"""``jax._src.numpy.reductions``: the public ones, and how an ``axis`` is read."""

from __future__ import annotations

from typing import Any

from fnarray.numpy import *  # noqa: F403
from fnarray.numpy import ndim
from fnarray.numpy._reductions import split_axes


def _reduction_dims(a: Any, axis: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the axes that are positions, and those with the names of mapped axes."""
    positions, names = split_axes("reductions", axis, ndim(a))
    return positions, positions + names
