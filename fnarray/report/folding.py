"""A program's operations folded into groups that fit a drawing: by loop, scope, function, line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil

from .model import Operation

#: Boxes of one drawing at most.
MOST = 80


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that are drawn as one box, and have a drawing of their own.

    Attributes
    ----------
    number : int
        Of the drawing.
    label : str
    items : tuple of int or Group
        What the drawing shows: operations by number, and groups.
    head : int
        The operation that holds these as a graph of its own; -1 for none.
    """

    number: int
    label: str
    items: tuple[int | Group, ...]
    operations: tuple[int, ...]
    head: int = -1


_BY: tuple[Callable[[Operation], str], ...] = (
    lambda op: op.place.scope,
    lambda op: op.place.function.replace(".<locals>", ""),
    lambda op: str(op.place),
)


def folded(name: str, operations: Sequence[Operation]) -> Group:
    """Return the groups of a program; the outermost one is the program."""
    return _Folding(operations).group(name, [o for o in operations if o.parent < 0], -1)


class _Folding:
    def __init__(self, operations: Sequence[Operation]):
        self.operations = operations
        self.inside: dict[int, list[Operation]] = {}
        for op in operations:
            self.inside.setdefault(op.parent, []).append(op)
        self.count = 0

    def group(self, label: str, members: Sequence[Operation], head: int) -> Group:
        number, self.count = self.count, self.count + 1
        items = self._items(members)
        numbers = sorted({k for op in members for k in (op.number, *op.body)} | {head} - {-1})
        return Group(number, label, tuple(items), tuple(numbers), head)

    def _items(self, members: Sequence[Operation]) -> list[int | Group]:
        if len(members) <= MOST:
            return [self._item(op) for op in members]
        for by in _BY:
            runs = [(key, list(run)) for key, run in groupby(members, by)]
            if 1 < len(runs) <= MOST:
                return [
                    self.group(key or "without a name", run, -1)
                    if len(run) > 1
                    else self._item(run[0])
                    for key, run in runs
                ]
        size = ceil(len(members) / ceil(len(members) / MOST))
        if ceil(len(members) / size) > MOST:
            size = ceil(len(members) / MOST)
        parts = [members[k : k + size] for k in range(0, len(members), size)]
        return [self.group(_span(part), part, -1) for part in parts]

    def _item(self, op: Operation) -> int | Group:
        if not op.body:
            return op.number
        return self.group(f"{op.name} at {op.place}", self.inside[op.number], op.number)


def _span(part: Sequence[Operation]) -> str:
    return f"operations {part[0].number + 1} to {part[-1].number + 1}"
