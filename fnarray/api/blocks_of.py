"""Where the mapped axis is in arguments and results of ``pmap``, and blocks in ``shard_map``'s."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..control.signature import fun_text
from ..core.source import user_source
from ..runtime.spec import PartitionSpec


def row(name: Hashable, fun: Callable[..., Any], place: int | None, shape: Sequence[int]) -> Any:
    """Return how an array with the mapped axis at a place is cut, and the place."""
    if place is None:
        return PartitionSpec(), None
    place = checked_place(place, len(shape) + 1, fun)
    return PartitionSpec(*[None] * place, name), place


def checked_place(place: int, ndim: int, fun: Callable[..., Any]) -> int:
    """Return a place as a positive number; raise `ValueError` for one that a result has not."""
    if not -ndim <= place < ndim:
        raise ValueError(
            f"pmap out_axes: axis {place} is out of bounds for array of dimension {ndim}, a "
            f"result of {fun_text(fun)}."
        )
    return place % ndim


def block(f: Callable[..., Any], spec: PartitionSpec, shape: Sequence[int]) -> Any:
    """Return how an array of blocks is cut, and no axis that they have in addition."""
    if len(spec) > len(shape):
        raise ValueError(
            f"shard_map out_specs: {spec} is for results of rank at least {len(spec)}, but "
            f"{fun_text(f)} returned one of shape {tuple(shape)}, at {user_source()}."
        )
    return spec, None
