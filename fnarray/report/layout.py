"""Where the boxes of a graph are drawn: in layers, operands above what reads them.

Layers by the longest path, a point in each layer that a long line crosses, orders by barycentres
(Sugiyama, Tagawa and Toda, 1981).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

#: Heights of boxes and gaps; lines longer than so many layers are drawn straight.
HEIGHT, DOWN, ASIDE, LONG = 36.0, 30.0, 16.0, 12
_SWEEPS = 6


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes, lines and size of a drawn graph.

    Attributes
    ----------
    centres : dict
        Of each box: x of its middle, y of its top.
    lines : list of (source, target, points)
    """

    centres: dict[int, tuple[float, float]]
    lines: list[tuple[int, int, list[tuple[float, float]]]]
    width: float
    height: float


def drawn(widths: Mapping[int, float], edges: Sequence[tuple[int, int]]) -> Drawing:
    """Place boxes of given widths.

    Parameters
    ----------
    widths : mapping
        Of each box, in an order in which edges point forward.
    edges : sequence of (source, target)
    """
    layer = _layers(widths, edges)
    rows: list[list[int]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for box in widths:
        rows[layer[box]].append(box)
    sizes = dict(widths)
    above: dict[int, list[int]] = {b: [] for b in widths}
    below: dict[int, list[int]] = {b: [] for b in widths}
    ways: list[list[int]] = []
    for source, target in edges:
        way = [source]
        if layer[target] - layer[source] <= LONG:
            for k in range(layer[source] + 1, layer[target]):
                point = -len(sizes) - 1
                sizes[point] = 4.0
                above[point], below[point] = [], []
                rows[k].append(point)
                way.append(point)
        way.append(target)
        ways.append(way)
        if len(way) > 2 or layer[target] - layer[source] == 1:
            for a, b in pairwise(way):
                below[a].append(b)
                above[b].append(a)
    _order(rows, above, below)
    x = _across(rows, sizes, above, below)
    least = min((x[b] - sizes[b] / 2 for b in sizes), default=0.0) - ASIDE
    top = {b: ASIDE + k * (HEIGHT + DOWN) for k, row in enumerate(rows) for b in row}
    centres = {b: (x[b] - least, top[b]) for b in sizes}
    lines = [(w[0], w[-1], _points(w, centres)) for w in ways]
    width = max((centres[b][0] + sizes[b] / 2 for b in sizes), default=0.0) + ASIDE
    height = len(rows) * (HEIGHT + DOWN) - DOWN + 2 * ASIDE
    return Drawing({b: centres[b] for b in widths}, lines, width, height)


def _layers(widths: Mapping[int, float], edges: Sequence[tuple[int, int]]) -> dict[int, int]:
    layer = dict.fromkeys(widths, 0)
    into: dict[int, list[int]] = {b: [] for b in widths}
    for source, target in edges:
        into[target].append(source)
    for box in widths:
        layer[box] = max((layer[s] + 1 for s in into[box]), default=0)
    # What nothing is above of, arguments mostly, is drawn near to what reads it.
    nearest: dict[int, int] = {}
    for source, target in edges:
        nearest[source] = min(nearest.get(source, layer[target]), layer[target])
    for box in widths:
        if not into[box] and box in nearest:
            layer[box] = nearest[box] - 1
    return layer


def _order(
    rows: list[list[int]], above: Mapping[int, list[int]], below: Mapping[int, list[int]]
) -> None:
    """Sort each row by the mean place of its neighbours, downwards and upwards by turns."""
    place = {b: float(k) for row in rows for k, b in enumerate(row)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for row in rows if down else reversed(rows):
            means = {b: _mean([place[n] for n in near[b]], place[b]) for b in row}
            row.sort(key=means.__getitem__)
            place.update((b, float(k)) for k, b in enumerate(row))


def _across(
    rows: list[list[int]],
    sizes: Mapping[int, float],
    above: Mapping[int, list[int]],
    below: Mapping[int, list[int]],
) -> dict[int, float]:
    """Return the middles of boxes: near to their neighbours', in order, and apart."""
    x: dict[int, float] = {}
    for row in rows:
        at = 0.0
        for box in row:
            x[box] = at + sizes[box] / 2
            at += sizes[box] + ASIDE
        for box in row:
            x[box] -= at / 2
    for sweep in range(_SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            _apart(row, sizes, {b: _mean([x[n] for n in near[b]], x[b]) for b in row}, x)
    return x


def _apart(
    row: Sequence[int], sizes: Mapping[int, float], wanted: Mapping[int, float], x: dict[int, float]
) -> None:
    """Put the boxes of a row where they are wanted, as far as there is room."""
    low: dict[int, float] = {}
    at = float("-inf")
    for box in row:
        low[box] = max(wanted[box], at + sizes[box] / 2)
        at = low[box] + sizes[box] / 2 + ASIDE
    at = float("inf")
    for box in reversed(row):
        high = min(wanted[box], at - sizes[box] / 2)
        at = high - sizes[box] / 2 - ASIDE
        x[box] = (low[box] + high) / 2


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _points(
    way: Sequence[int], centres: Mapping[int, tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return the points of a line, from the foot of its source to the head of its target."""
    x, y = centres[way[0]]
    points = [(x, y + HEIGHT)]
    for point in way[1:-1]:
        x, y = centres[point]
        points += [(x, y), (x, y + HEIGHT)]
    return [*points, centres[way[-1]]]
