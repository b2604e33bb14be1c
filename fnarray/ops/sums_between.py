"""Exchanges between devices of which the result, or the operand, is summed: as types say it.

Each is made of a sum over devices and what is free, so that its transpose is the other one.
"""

from __future__ import annotations

from typing import Any

from ..core import hooks
from ._collective_rules import Names, size_of
from .collective import axis_index
from .dynamic import dynamic_slice, dynamic_update_slice
from .kit import calls
from .kit.canonical import canonical_axis

__all__ = ["gathered_once", "own_part"]


def gathered_once(x: Any, names: Names, axis: int, tiled: bool) -> Any:
    """Gather values as the sum of what has each device's in its place: it is the same for all."""
    d = canonical_axis("all_gather", axis, x.ndim + (not tiled))
    if not tiled:
        x = calls.reshape(x, (*x.shape[:d], 1, *x.shape[d:]))
    shape = (*x.shape[:d], x.shape[d] * size_of(names), *x.shape[d + 1 :])
    zeros = calls.full(x.aval.update(shape=shape, place=None), 0)
    whole = dynamic_update_slice(zeros, x, _starts(x, names, d, x.shape[d]))
    return hooks.cast(hooks.cast(hooks.varied(whole, names), names, "unreduced"), names, "reduced")


def _starts(x: Any, names: Names, axis: int, step: int) -> list[Any]:
    """Return where the part of each device begins, of parts along one axis."""
    at = calls.mul(axis_index(names), step)
    return [at if k == axis else calls.const(at, 0) for k in range(x.ndim)]


def own_part(x: Any, names: Names, axis: int, tiled: bool) -> Any:
    """Return each device's part of partial sums that were summed."""
    n = size_of(names)
    whole = hooks.cast(x, names, "varying")
    step = x.shape[axis] // n
    sizes = tuple(step if k == axis else m for k, m in enumerate(x.shape))
    part = dynamic_slice(whole, _starts(x, names, axis, step), sizes)
    return part if tiled else calls.reshape(part, (*x.shape[:axis], *x.shape[axis + 1 :]))
