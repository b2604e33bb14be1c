"""From a node of the syntax tree to a place a person can find."""

from __future__ import annotations

import ast

from ..findings import Place
from .source import SourceFile


def column_of(text: str, offset: int) -> int:
    """Return the column, counted in characters from one, of the tree's offset in UTF-8 bytes."""
    if text.isascii():
        return offset + 1
    return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace")) + 1


def place_of(source: SourceFile, node: ast.AST) -> Place:
    """Return where a node stands in its file."""
    line: int = getattr(node, "lineno", 1)
    end: int = getattr(node, "end_lineno", None) or line
    start = column_of(source.line(line), getattr(node, "col_offset", 0))
    stop = column_of(source.line(end), getattr(node, "end_col_offset", None) or start)
    return Place(source.path, line, start, end, stop)
