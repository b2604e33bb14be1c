"""What a turn of a loop waits for comes last: the turn before it.

A recurrence takes as long as the operations between what is carried in and what is carried out. So
of several numbers the largest is taken of what is at hand first, of what is carried at the end; and
what is done to the larger one of two is done to both before. Smith and Waterman's scores, ``max(max
(0, match), max(up, left) - 1)``, wait for two maxima and a difference; as ``max(max(max(0, match),
up - 1), left - 1)`` for one of each, and take .6 of the time.

Results are the same, to the sign of zero: maxima are associative, and a rounded sum with a finite
number, or product with a positive one, keeps the order of what it is computed of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ..core.forms import Map
from ..core.graph import Atom, Literal, Var
from .ir import Block, Node

_CHOICES: Final = frozenset(("sc.maximum({0}, {1})", "sc.minimum({0}, {1})"))
#: What keeps the order of its first operand, by what the other one has to be.
_SUMS: Final = frozenset(("({0} + {1})", "({0} - {1})"))
_PRODUCT: Final = "({0} * {1})"
#: Elements of a value from which on its loop does not wait: it computes all the time.
_FEW: Final = 16


@dataclass(frozen=True, slots=True)
class _Choice:
    """A value as the larger, or smaller, one of what is at hand and of what is waited for."""

    template: str
    free: Atom
    waiting: Atom


def waiting_last(body: Block, carried: tuple[Var, ...]) -> Block:
    """Return a loop's body whose choices take last what depends on what is carried.

    Values that nothing reads any more are left in it.
    """
    if not any(isinstance(n.form, Map) and n.form.template in _CHOICES for n in body.nodes):
        return body
    waits: set[Atom] = set(carried)
    choices: dict[Atom, _Choice] = {}
    nodes: list[Node] = []
    shorter = False
    for node in body.nodes:
        dependent = [j for j, a in enumerate(node.ins) if a in waits]
        if dependent:
            waits.update(node.outs)
        if len(dependent) != 1 or len(node.ins) != 2 or not _is_plain(node):
            nodes.append(node)
            continue
        (j,) = dependent
        own, other = node.ins[j], node.ins[1 - j]
        known, template = choices.get(own), node.form.template
        if template in _CHOICES:
            if known is not None and known.template == template:
                free = Var(node.out.aval)
                nodes.append(node.taking((known.free, other), (free,)))
                node = node.taking((known.waiting, free))
                own, other, shorter = known.waiting, free, True
            choices[node.out] = _Choice(template, other, own)
        elif known is not None and _keeps_order(template, j, other):
            ends = Var(node.out.aval), Var(node.out.aval)
            for atom, end in zip((known.free, known.waiting), ends, strict=True):
                operands = (atom, other) if j == 0 else (other, atom)
                nodes.append(node.taking(operands, (end,)))
            choices[node.out] = _Choice(known.template, *ends)
            waits.add(ends[1])
        nodes.append(node)
    return replace(body, nodes=tuple(nodes)) if shorter else body


def _is_plain(node: Node) -> bool:
    """Whether a node is a map of few elements, of numbers of its own shape and type."""
    aval = node.out.aval
    return (
        isinstance(node.form, Map)
        and aval.size <= _FEW
        and aval.dtype.kind in "iuf"
        and all(
            a.aval.dtype == aval.dtype and (isinstance(a, Literal) or a.aval.shape == aval.shape)
            for a in node.ins
        )
    )


def _keeps_order(template: str, place: int, other: Atom) -> bool:
    """Whether an operation keeps the order of its operand at ``place``, as ``other`` is.

    An infinite number does not: the sum with another infinity is none. Nor do integers, which wrap.
    """
    if not isinstance(other, Literal) or other.aval.dtype.kind != "f":
        return False
    number = float(other.val)
    if template == _PRODUCT:
        return 0 < number < np.inf
    return template in _SUMS and np.isfinite(number) and (place == 0 or "+" in template)
