"""Folds that threads share: their neutral elements, and the words that combine accumulators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.forms import Operand, Reduce
from ..schedule.nests import Nest
from ..schedule.plan import Tree
from .trees import folded_in

#: Neutral elements by the word of a combination: of floats, and of integers.
NEUTRAL: dict[str, Any] = {
    "sc.radd": lambda d: 0, "sc.add": lambda d: 0, "+": lambda d: 0,
    "sc.rmul": lambda d: 1, "sc.mul": lambda d: 1, "*": lambda d: 1,
    "sc.maximum": lambda d: _limit(d, "min"), "sc.minimum": lambda d: _limit(d, "max"),
    "sc.and_": lambda d: True if d.kind == "b" else -1 if d.kind == "i" else _limit(d, "max"),
    "sc.or_": lambda d: 0, "sc.xor": lambda d: 0, "or": lambda d: 0, "and": lambda d: True,
}  # fmt: skip
#: Combinations that have a word of their own.
WORDS = {"sc.radd": "block_sum", "sc.maximum": "block_max", "sc.minimum": "block_min"}


def _limit(dtype: np.dtype, which: str) -> Any:
    if dtype.kind == "b":
        return which == "max"
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype), which)
    return np.inf if which == "max" else -np.inf


#: Who shares a loop's iterations, and of how many.
SHARING = {
    "": ("lane()", "lanes()"),
    "parts": ("thread()", "threads()"),
    "columns": ("(lane() // across)", "(lanes() // across)"),
    "cuts": ("(cut * (lanes() // across) + lane() // across)", "(cuts * (lanes() // across))"),
}


def word_of(fold: Reduce) -> str | None:
    """Return the word that combines two accumulators, where there is one and it is known."""
    if not isinstance(fold.combine, tuple) or len(fold.combine) != 1:
        return None
    (text,) = fold.combine
    spelled = ("{w}({{a0}}, {{x0}})", "({{a0}} {w} {{x0}})")
    return next((w for w in NEUTRAL if text in (s.format(w=w) for s in spelled)), None)


def in_parts(nest: Nest) -> bool:
    """Whether a fold may be cut into parts, whose results are combined afterwards."""
    fold = nest.fold
    assert fold is not None
    if word_of(fold) is not None:
        return True
    # Accumulators that start from a value of the user's would count it once for each part.
    started = any(isinstance(i, Operand) for i in fold.inits)
    return isinstance(fold.combine, tuple) and not started


def shareable(tree: Tree) -> bool:
    """Whether lanes may share what a loop folds."""
    return all(map(in_parts, folded_in(tree)))
