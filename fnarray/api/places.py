"""Where the mapped axis is in arguments and results of ``pmap``, and blocks in ``shard_map``'s."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ..control.signature import fun_text
from ..runtime.mesh import PartitionSpec


def row(name: Hashable, fun: Callable[..., Any], place: int | None, ndim: int) -> Any:
    """Return how an array with the mapped axis at a place is cut, and the place."""
    if place is None:
        return PartitionSpec(), None
    place = checked_place(place, ndim + 1, fun)
    return PartitionSpec(*[None] * place, name), place


def checked_place(place: int, ndim: int, fun: Callable[..., Any]) -> int:
    """Return a place as a positive number; raise `ValueError` for one that a result has not."""
    if not -ndim <= place < ndim:
        raise ValueError(
            f"pmap out_axes: axis {place} is out of bounds for array of dimension {ndim}, a "
            f"result of {fun_text(fun)}."
        )
    return place % ndim


def block(f: Callable[..., Any], spec: PartitionSpec, ndim: int) -> Any:
    """Return how an array of blocks is cut, and no axis that they have in addition."""
    if len(spec) > ndim:
        raise ValueError(
            f"shard_map out_specs: {spec} is for results of rank at least {len(spec)}, but "
            f"{fun_text(f)} returned one of rank {ndim}."
        )
    return spec, None
