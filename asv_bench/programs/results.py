"""Results of programs: the arrays in them, and whether two are the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def flat(result: Any) -> list[Any]:
    """Arrays of nested tuples, lists and dictionaries."""
    if isinstance(result, dict):
        result = [result[k] for k in sorted(result)]
    return [x for r in result for x in flat(r)] if isinstance(result, tuple | list) else [result]


def alike(results: Sequence[Any], rtol: float) -> bool:
    """Say whether arrays are close, relative to their largest entry, but for one in a thousand.

    Points at the edge of a fractal leave a turn earlier or later by a rounding.
    """
    for ours, theirs in zip(*map(flat, results), strict=True):
        a, b = (np.asarray(x, np.complex128) for x in (ours, theirs))
        far = ~(np.abs(a - b) <= rtol * np.abs(b).max(initial=0))
        if a.shape != b.shape or far.mean() > 1e-3:
            return False
    return True
