"""Pictures of how arrays are cut, and functions that are told of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..core.source import user_source
from ..core.trace import Tracer, bind
from ..ops.kit.canonical import as_array
from ..ops.placing import inspect_p
from ..runtime.placed import sharding_of
from ..runtime.spec import Sharding

__all__ = ["inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"]


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Call a function with the sharding of an array; of what is traced, once it is compiled.

    Parameters
    ----------
    value : array
    callback : callable
        Its result is ignored.
    """
    value = as_array(value)
    if isinstance(value, Tracer):
        bind(inspect_p, value, callback=callback)
    else:
        callback(sharding_of(value))


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print which devices have which part of an array of rank 1 or 2; see `visualize_sharding`."""
    shape = as_array(arr).shape

    def show(sharding: Sharding) -> None:
        visualize_sharding(shape, sharding, **kwargs)

    inspect_array_sharding(arr, callback=show)


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Print which devices have which part of arrays of a shape.

    Parameters
    ----------
    shape : sequence of int
        Of one or two axes.
    sharding : Sharding
    min_width, max_width : int
        Of the picture, in characters.
    use_color, scale, color_map
        Accepted for compatibility: lines and numbers say it.

    Raises
    ------
    ValueError
        For arrays of another rank.
    """
    if not 1 <= len(shape) <= 2:
        raise ValueError(
            f"visualize_sharding only works for shapes with 1 and 2 dimensions, got {tuple(shape)},"
            f" at {user_source()}."
        )
    cells: dict[tuple[int, int], list[int]] = {}
    kind = ""
    for device, index in sharding.devices_indices_map(shape).items():
        at = [s.start or 0 for s in index]
        row, column = at if len(at) == 2 else (0, at[0])
        cells.setdefault((row, column), []).append(device.id)
        kind = device.platform.upper()
    rows, columns = (sorted(set(places)) for places in zip(*cells, strict=True))
    texts = {at: f"{kind} {','.join(map(str, sorted(ids)))}" for at, ids in cells.items()}
    width = max(map(len, texts.values())) + 2
    width = max(width, (min_width - 1) // len(columns) - 1)
    width = min(width, max(1, (max_width - 1) // len(columns) - 1))
    line = ["─" * width] * len(columns)
    picture = [_ruled("┌┬┐", line)]
    for k, row in enumerate(rows):
        if k:
            picture.append(_ruled("├┼┤", line))
        shown = [texts.get((row, column), "").center(width)[:width] for column in columns]
        picture.append(_ruled("│││", shown))
    sys.stdout.write("\n".join([*picture, _ruled("└┴┘", line)]) + "\n")


def _ruled(marks: str, parts: Sequence[str]) -> str:
    return marks[0] + marks[1].join(parts) + marks[2]
