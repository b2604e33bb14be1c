"""Stretches of a program that repeat: layers, steps and cells that Python's loops have written out.

Where kernels begin at the same place of each turn they are one text, compiled once and called for
each.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from ...core.frozen import frozen

#: A stretch repeats at least so many times.
_TURNS: Final = 3


@frozen
class Stretch:
    """Places that repeat: ``count`` times ``period`` of them, from ``start`` on."""

    start: int
    period: int
    count: int


def stretches(
    marks: Sequence[Hashable], costs: Sequence[float], longest: int, least: float
) -> list[Stretch]:
    """Return stretches that repeat and do not meet, in order: of those at one place the longest.

    Parameters
    ----------
    marks : sequence
        What is at each place; two that are alike are equal.
    costs : sequence of float
        What each place costs.
    longest : int
        The longest period.
    least : float
        What a stretch costs at least.
    """
    covered, periods = _longest(marks, longest)
    before = np.concatenate(([0.0], np.cumsum(costs)))
    found: list[Stretch] = []
    at = 0
    while at < len(marks):
        period, long = int(periods[at]), int(covered[at])
        if not period or before[at + long] - before[at] < least:
            at += 1
            continue
        found.append(Stretch(at, period, long // period))
        at += long // period * period
    return found


def _longest(marks: Sequence[Hashable], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each place, how far the longest stretch from there goes, and its period."""
    n = len(marks)
    names: dict[Hashable, int] = {}
    codes = np.array([names.setdefault(mark, len(names)) for mark in marks], np.int64)
    covered, periods = np.zeros(n, np.int64), np.zeros(n, np.int64)
    places = np.arange(n)
    for p in range(1, min(longest, n // _TURNS) + 1):
        here = places[: n - p]
        ends = np.where(codes[p:] != codes[:-p], here, n - p)
        alike = np.minimum.accumulate(ends[::-1])[::-1] - here
        far = np.where(alike >= (_TURNS - 1) * p, alike + p, 0)
        # Multiples of a period go as far as it does: the shortest stays.
        better = np.flatnonzero(far > covered[: n - p])
        covered[better], periods[better] = far[better], p
    return covered, periods


def turns_together(count: int, cost: float, least: float, most: float) -> int:
    """Return how many turns one kernel takes, so that its text and what is left over is short.

    Parameters
    ----------
    count : int
        How many turns there are.
    cost : float
        What a turn costs.
    least, most : float
        What a kernel costs at least and, unless one turn costs more, at most.
    """
    first = max(1, -int(-least // cost))
    last = max(first, int(most // cost))
    return min(range(first, min(last, count) + 1), key=lambda q: q + count % q, default=count)
