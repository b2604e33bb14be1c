"""Words that combine two accumulators, and the terms that change nothing of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..core.forms import Reduce

#: Neutral terms of a dtype by the word of a combination: of numbers, and of truths.
NEUTRAL: dict[str, Callable[[np.dtype], Any]] = {
    "sc.radd": lambda d: 0, "sc.add": lambda d: 0, "+": lambda d: 0,
    "sc.rmul": lambda d: 1, "sc.mul": lambda d: 1, "*": lambda d: 1,
    "sc.maximum": lambda d: _limit(d, "min"), "sc.minimum": lambda d: _limit(d, "max"),
    "sc.and_": lambda d: True if d.kind == "b" else -1 if d.kind == "i" else _limit(d, "max"),
    "sc.or_": lambda d: 0, "sc.xor": lambda d: 0, "or": lambda d: 0, "and": lambda d: True,
}  # fmt: skip
#: Words by which a term counts once, however often it is taken.
IDEMPOTENT: Final = frozenset(("sc.maximum", "sc.minimum", "sc.and_", "sc.or_", "or", "and"))


def _limit(dtype: np.dtype, which: str) -> Any:
    if dtype.kind == "b":
        return which == "max"
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype), which)
    return np.inf if which == "max" else -np.inf


def word_of(fold: Reduce) -> str | None:
    """Return the word that combines two accumulators, where there is one and it is known."""
    if not isinstance(fold.combine, tuple) or len(fold.combine) != 1:
        return None
    (text,) = fold.combine
    spelled = ("{w}({{a0}}, {{x0}})", "({{a0}} {w} {{x0}})")
    return next((w for w in NEUTRAL if text in (s.format(w=w) for s in spelled)), None)
