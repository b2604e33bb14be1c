"""Folds of masked terms turn where the mask lets terms pass: it bounds a place, and so the loop.

``max(where((k >= i) & (k < j), x, 0))`` runs from ``i`` to ``j``. What the mask leaves out is a
constant, which a fold takes once, or not at all where it is neutral.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ...core.forms import Iota, Map, Operand, Reduce, Reindex
from ...core.frozen import frozen
from ...core.graph import Atom, Literal
from ...core.symbolic import bounds, leaves
from ..ir import Node
from ..neutral import IDEMPOTENT, NEUTRAL, word_of
from ..schedule.access import Indices, broadcast_index
from ..schedule.nests import Nest, jumps
from ..schedule.plan import Tree
from .values import Values

#: Comparisons, each with its negation and with what it is with its operands exchanged.
COMPARED: Final = {
    "({0} < {1})": ("<", ">=", ">"),
    "({0} <= {1})": ("<=", ">", ">="),
    "({0} > {1})": (">", "<=", "<"),
    "({0} >= {1})": (">=", "<", "<="),
}
SELECT: Final = "({2} if {0} else {1})"
#: Of numbers that lie along memory vectors are read: ranges are whole blocks of so many, and no
#: shorter loop is worth their tests.
BLOCK, LEAST = 32, 128

#: An operand at an index.
At = tuple[Atom, Indices]


@frozen
class Masked:
    """The range of a fold's loop.

    Attributes
    ----------
    low, high : str
        Its ends: names, or what the whole loop's are.
    misses : str
        The test that terms are outside.
    left_out : Literal or None
        What is to be folded once for all terms outside, if they are no neutral ones.
    chosen : tuple of At, optional
        The masked value, and what it is within the range; None where the mask is still asked.
    """

    low: str
    high: str
    misses: str
    left_out: Literal | None
    chosen: tuple[At, At] | None


def masked(values: Values, tree: Tree, nest: Any, counter: Any, at: Indices) -> Masked | None:
    """Return the range in which a mask lets the terms of a fold pass, if one bounds them.

    Parameters
    ----------
    counter : index
        The tree's.
    at : tuple of index
        Where the fold reads its operand, in the counters of all loops.
    """
    if not _folds_one(tree, nest):
        return None
    fold, operand = nest.fold, nest.node.ins[0]
    node, at = _maker(values, operand, at)
    if node is None or not isinstance(node.form, Map) or node.form.template != SELECT:
        return None
    which, *cases = _operands(node, at)
    constants = [_constant(values, x) for x in cases]
    number = 0 if constants[0] is not None else 1
    constant, apart = constants[number], jumps(nest, tree.depth)
    if constant is None or not (_once(fold) or _is_neutral(fold, constant)):
        return None
    if not apart and tree.extent < LEAST:
        return None
    ends = _Ends(values, counter)
    whole = ends.take(which, passing=number == 0)
    if not ends.low and not ends.high:
        return None
    low, high = ends.of(tree.extent, 1 if apart else BLOCK)
    last = values.number(tree.extent)
    tests = (f"{low} > 0" * bool(ends.low), f"{high} < {last}" * bool(ends.high))
    return Masked(
        low,
        high,
        misses=" or ".join(filter(None, tests)),
        left_out=None if _is_neutral(fold, constant) else constant,
        chosen=((node.out, at), cases[1 - number]) if apart and whole else None,
    )


def _once(fold: Reduce) -> bool:
    """Whether a term counts once, however often it is taken."""
    return word_of(fold) in IDEMPOTENT


def _is_neutral(fold: Reduce, number: Literal) -> bool:
    """Whether to fold a number changes nothing."""
    (start,), word = fold.inits, word_of(fold)
    if word in IDEMPOTENT and not isinstance(start, Operand) and start == number.val:
        return True
    return word is not None and number.val == NEUTRAL[word](number.aval.dtype)


def _folds_one(tree: Tree, nest: Any) -> bool:
    """Whether a loop does nothing but fold one number's terms."""
    if not isinstance(nest, Nest) or nest.fold is None or len(tree.extents) > 1:
        return False
    fold = nest.fold
    plain = isinstance(fold.combine, tuple) and len(fold.combine) == 1 and fold.valid is None
    alone = not nest.in_memory and nest.abreast is None and fold.terms == ("{0}",)
    return plain and alone and nest.loops[tree.depth].reduced


def _operands(node: Node, at: Indices) -> list[At]:
    return [(a, broadcast_index(a.aval.shape, at)) for a in node.ins]


def _maker(values: Values, atom: Atom, at: Indices) -> tuple[Node | None, Indices]:
    """Return the node that computes an element where it is read, past changes of its place."""
    while not isinstance(atom, Literal) and atom not in values.storage:
        if values.writer.recall((atom, at)) is not None:
            break
        node = values.inlined.get(atom) or values.outer.get(atom)
        if node is None:
            break
        form = node.form
        if not isinstance(form, Reindex) or form.valid is not None or len(node.ins) != 1:
            return node, at
        atom, at = node.ins[0], form.index(at, values.reader(node))
    return None, at


def _constant(values: Values, x: At) -> Literal | None:
    """Return the number that a value is everywhere, if that is known."""
    atom = x[0]
    while not isinstance(atom, Literal):
        node = values.inlined.get(atom) or values.outer.get(atom)
        if node is None or not isinstance(node.form, Reindex) or node.form.valid is not None:
            return None
        atom = node.ins[0]
    return atom


class _Ends:
    """The bounds that a mask's comparisons give a counter."""

    def __init__(self, values: Values, counter: Any):
        self.values = values
        self.counter = counter
        self.low: list[str] = []
        self.high: list[str] = []

    def take(self, which: At, *, passing: bool) -> bool:
        """Note what a mask says where it is ``passing``; return whether that is all of it."""
        node, at = _maker(self.values, *which)
        if node is None or not isinstance(node.form, Map):
            return False
        operands, template = _operands(node, at), node.form.template
        if template == ("sc.and_({0}, {1})" if passing else "sc.or_({0}, {1})"):
            said = [self.take(x, passing=passing) for x in operands]
            return all(said)
        if template not in COMPARED:
            return False
        left, right = (self._place(x) for x in operands)
        if (left is None) == (right is None):
            return False
        bound = operands[0 if left is None else 1]
        dtype = bound[0].aval.dtype
        if dtype.kind not in "iu" or dtype == np.uint64 or self.counter_in(bound):
            return False
        sign, negated, exchanged = COMPARED[template]
        if left is None:
            sign, negated = exchanged, COMPARED[f"({{0}} {exchanged} {{1}})"][1]
        place = right if left is None else left
        assert place is not None
        self._note(sign if passing else negated, bound, place, dtype)
        return True

    def counter_in(self, bound: At) -> bool:
        """Whether a value differs from turn to turn."""
        return any(leaves(self.counter) & leaves(ix) for ix in bound[1])

    def _place(self, x: At) -> int | None:
        """Return by how much a counted place is beyond the counter, if it is one."""
        node, at = _maker(self.values, *x)
        if node is None or node.out.aval.dtype.kind not in "iu":
            return None
        form, more = node.form, 0
        if isinstance(form, Map) and form.template in ("sc.add({0}, {1})", "sc.sub({0}, {1})"):
            found = [_constant(self.values, y) for y in _operands(node, at)]
            number = found[1] or (found[0] if "add" in form.template else None)
            if number is None:
                return None
            more = int(number.val) if "add" in form.template else -int(number.val)
            counted = _operands(node, at)[0 if number is found[1] else 1]
            node, at = _maker(self.values, *counted)
        if node is None or not isinstance(node.form, Iota):
            return None
        dtype, last = np.iinfo(node.out.aval.dtype), node.out.aval.shape[node.form.dimension] - 1
        beyond = at[node.form.dimension] - self.counter
        fits = dtype.min <= more and last <= dtype.max and last + more <= dtype.max
        return beyond + more if isinstance(beyond, int) and fits else None

    def _note(self, sign: str, bound: At, place: int, dtype: np.dtype) -> None:
        number = f"i64({self.values.value(*bound)})"
        if dtype.itemsize == 8:  # one more than the largest is the smallest
            least, most = place - 1, place + bounds(self.counter)[1] + 1
            number = f"min(max({number}, {self.values.number(least)}), {self.values.number(most)})"
        more = (sign in ("<=", ">")) - place
        spelled = f"{number} {'+' if more > 0 else '-'} {abs(more)}" if more else number
        (self.high if sign in ("<", "<=") else self.low).append(spelled)

    def of(self, extent: int, block: int) -> tuple[str, str]:
        """Return the ends of the range, of whole blocks."""
        low, high = "0", self.values.number(extent)
        assign = self.values.writer.assign
        if self.low:
            first = _innermost("max", low, self.low)
            low = assign(f"{first} // {block} * {block}" if block > 1 else first, None, "low")
        if self.high:
            end = _innermost("min", high, self.high)
            if block > 1:
                end = f"min({high}, ({end} + {block - 1}) // {block} * {block})"
            high = assign(end, None, "high")
        return low, high


def _innermost(word: str, end: str, bounds: Sequence[str]) -> str:
    for bound in dict.fromkeys(bounds):
        end = f"{word}({end}, {bound})"
    return end
