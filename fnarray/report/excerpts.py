"""The parts of the user's files that a program came from."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator

from .model import Excerpt, Place

#: Lines of source that a report holds at most, and lines around one that is in no function.
MOST, AROUND = 3000, 3


def excerpts_of(places: Iterable[Place]) -> tuple[Excerpt, ...]:
    """Return the functions that places lie in, in the order in which the files are met."""
    by_file: dict[str, list[int]] = {}
    for place in places:
        if place.line:
            by_file.setdefault(place.file, []).append(place.line)
    found: list[Excerpt] = []
    room = MOST
    for file, wanted in by_file.items():
        lines = [line.rstrip("\n") for line in linecache.getlines(file)]
        for first, last in _joined(_ranges(lines, sorted(set(wanted)))):
            part = tuple(lines[first - 1 : min(last, first + room)])
            room -= len(part)
            if part:
                found.append(Excerpt(file, first, part))
    return tuple(found)


def _ranges(lines: list[str], wanted: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last lines of the outermost functions around lines."""
    try:
        top = ast.parse("\n".join(lines)).body
    except SyntaxError:  # a notebook's cell with magics
        top = []
    functions = [
        (min([n.lineno, *(d.lineno for d in n.decorator_list)]), n.end_lineno or n.lineno)
        for n in top
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    for line in wanted:
        if line <= len(lines):
            around = (max(line - AROUND, 1), min(line + AROUND, len(lines)))
            yield next((f for f in functions if f[0] <= line <= f[1]), around)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in order, those that touch as one."""
    out: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = out[-1][0], max(out[-1][1], last)
        else:
            out.append((first, last))
    return out
