"""Pictures of how arrays are cut, and functions that are told of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
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
    scale : float
        Of the picture, which is as wide beside its height as the array is; 10 lines at 1.
    min_width : int
        Of a part, in characters.
    max_width : int
        Of the picture, in characters.
    use_color, color_map
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
    height, width = _room(shape, len(rows), len(columns), scale, min_width)
    widths = [max(width, *map(len, texts.values()))] * len(columns)
    if (over := max_width - 1 - len(columns)) < sum(widths):
        share, more = divmod(max(over, len(columns)), len(columns))
        widths = [share + (k < more) for k in range(len(columns))]
    line = ["─" * n for n in widths]
    picture = [_ruled("┌┬┐", line)]
    for k, row in enumerate(rows):
        if k:
            picture.append(_ruled("├┼┤", line))
        labels = [texts.get((row, column), "") for column in columns]
        shown = map(_centered, labels, widths)
        blank = [_ruled("│││", [" " * n for n in widths])]
        above = (height - 1) // 2
        picture += [*blank * above, _ruled("│││", shown), *blank * (height - 1 - above)]
    sys.stdout.write("\n".join([*picture, _ruled("└┴┘", line)]) + "\n")


def _room(
    shape: Sequence[int], rows: int, columns: int, scale: float, min_width: int
) -> tuple[int, int]:
    """Return how many lines and characters a part gets; a line is as tall as 2.5 are wide."""
    tall = int(10 * scale)
    wide = int(2.5 * tall * (shape[1] if len(shape) == 2 else 1) / max(shape[0], 1))
    height = max(tall // rows - 1, 1) if len(shape) == 2 else 1
    return height, max(wide // columns, min_width) - 2


def _centered(text: str, width: int) -> str:
    text = text[:width]
    return (" " * ((width - len(text)) // 2) + text).ljust(width)


def _ruled(marks: str, parts: Iterable[str]) -> str:
    return marks[0] + marks[1].join(parts) + marks[2]
