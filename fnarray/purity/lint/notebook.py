"""Writing suppression comments back into the cells of a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from .source import SourceFile
from .suppress import add_ignores


def rewrite(source: SourceFile, wanted: Iterable[tuple[int, str]]) -> bool:
    """Write the comments into the notebook's cells, leaving everything else as it is."""
    path = Path(source.path)
    text = path.read_text(encoding="utf-8")
    book = json.loads(text)
    if "cells" not in book:
        return False  # format 3; nbconvert brings it up to date
    by_cell: dict[int, list[tuple[int, str]]] = {}
    for line, code in wanted:
        place = source.cell(line)
        if place is not None:
            by_cell.setdefault(place[0], []).append((place[1], code))
    for number, places in by_cell.items():
        cell = book["cells"][number - 1]
        joined = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        changed = "\n".join(add_ignores(joined.split("\n"), places))
        as_list = isinstance(cell["source"], list)
        cell["source"] = changed.splitlines(keepends=True) if as_list else changed
    indent = next((len(line) - len(line.lstrip()) for line in text.splitlines()[1:2]), 1) or None
    dumped = json.dumps(book, indent=indent, ensure_ascii=False)
    path.write_text(dumped + "\n" * text.endswith("\n"), encoding="utf-8")
    return True
