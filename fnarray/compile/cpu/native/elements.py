"""Elements that innermost loops read and write, and where these lie, by syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

from .reader import inside, nodes_of


def elements_of(loop: ast.For) -> Iterator[ast.Subscript]:
    """Return all elements of arrays in a loop."""
    return (x for x in nodes_of(loop) if isinstance(x, ast.Subscript))


def is_element(node: ast.AST, context: type[ast.expr_context]) -> TypeGuard[Any]:
    """Whether a node reads or writes an element of an array that has a name."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, context):
        return False
    return isinstance(node.value, ast.Name)


def step_of(place: ast.expr, counter: str) -> int | None:
    """Return by how much an index grows each turn, 0 or 1; None for anything else."""
    if isinstance(place, ast.Call) and len(place.args) == 1:
        place = place.args[0]
    terms, found = [place], 0
    while terms:
        term = terms.pop()
        if isinstance(term, ast.BinOp) and isinstance(term.op, ast.Add):
            terms += (term.left, term.right)
        elif isinstance(term, ast.BinOp) and isinstance(term.op, ast.Sub):
            terms.append(term.left)
            if count_of(inside(term.right), counter):
                return None
        elif isinstance(term, ast.Name) and term.id == counter:
            found += 1
        elif count_of(inside(term), counter):
            return None
    return found if found < 2 else None


def whole_rows(loop: ast.For) -> set[ast.Subscript]:
    """Return the elements of rows of few columns, all of which a loop over rows writes or reads.

    LLVM shuffles vectors of rows into vectors of columns, and back.
    """
    assert isinstance(loop.target, ast.Name)
    places: dict[tuple[str, type], list[tuple[ast.Subscript, tuple[int, int] | None]]] = {}
    for x in elements_of(loop):
        if isinstance(x.value, ast.Name):
            found = x, _row_of(x.slice, loop.target.id)
            places.setdefault((x.value.id, type(x.ctx)), []).append(found)
    every: set[ast.Subscript] = set()
    for some in places.values():
        rows = {row for _, row in some}
        width = max((row[0] for row in rows if row), default=0)
        if rows == {(width, column) for column in range(width)}:
            every.update(x for x, _ in some)
    return every


def _row_of(place: ast.expr, counter: str) -> tuple[int, int] | None:
    """Return how many columns a row has and which one is at ``u(width * counter + column)``."""
    if isinstance(place, ast.Call) and len(place.args) == 1:
        place = place.args[0]
    column: Any = 0
    if isinstance(place, ast.BinOp) and isinstance(place.op, ast.Add):
        if not isinstance(place.right, ast.Constant):
            return None
        place, column = place.left, place.right.value
    if not isinstance(place, ast.BinOp) or not isinstance(place.op, ast.Mult):
        return None
    width, by = place.left, place.right
    if not isinstance(width, ast.Constant) or not isinstance(by, ast.Name) or by.id != counter:
        return None
    return (width.value, column) if isinstance(width.value, int) else None


def count_of(nodes: Iterable[ast.AST], name: str) -> int:
    """Return how often a name is met."""
    return sum([type(x) is ast.Name and x.id == name for x in nodes])
