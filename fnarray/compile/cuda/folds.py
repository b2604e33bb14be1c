"""Folds that threads share, and the words that combine what each of them folded."""

from __future__ import annotations

from ...core.forms import Operand
from ..neutral import word_of
from ..schedule.nests import Nest
from ..schedule.plan import Tree
from .trees import folded_in

#: Combinations that have a word of their own.
WORDS = {"sc.radd": "block_sum", "sc.maximum": "block_max", "sc.minimum": "block_min"}
#: Who shares a loop's iterations, and of how many.
SHARING = {
    "": ("lane()", "lanes()"),
    "parts": ("thread()", "threads()"),
    "columns": ("(lane() // across)", "(lanes() // across)"),
    "cuts": ("(cut * (lanes() // across) + lane() // across)", "(cuts * (lanes() // across))"),
}


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
