"""``jax._src.interpreters.batching``."""

from __future__ import annotations

from typing import Any

from fnarray.interpreters.batching import *  # noqa: F403
from fnarray.interpreters.batching import BatchTrace, BatchTracer, moveaxis
from fnarray.numpy import arange


def is_vmappable(x: object) -> bool:
    """Return False: no types but arrays are registered to be mapped over."""
    del x
    return False


def make_iota(axis_size: int) -> Any:
    """Return the numbers of an axis' elements."""
    return arange(axis_size)


def to_elt(trace: BatchTrace, get_idx: Any, x: Any, spec: int | None) -> Any:
    """Return what a mapped function sees of an argument that is mapped over an axis."""
    del get_idx
    return x if spec is None else BatchTracer(trace, moveaxis(x, spec, 0))
