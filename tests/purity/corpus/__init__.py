"""Realistic functions with known verdicts, and how to read them.

A case is a function made with ``jit``; what a function ``make_...`` returns; an entry of
``TRACED``.  Its expected lines carry the mark ``# !``: bare inside of the case itself, with the
names of the cases where a helper is at fault.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = tuple(sorted(p.stem for p in Path(__file__).parent.glob("*pure_*.py")))
_MARK = re.compile(r"# !((?: \w+)*)")


@dataclass(frozen=True)
class Case:
    """A function to check, and the lines that should be found; none for a pure one."""

    name: str
    function: Any
    file: str
    impure: bool
    lines: frozenset[int]


def cases(module: str) -> Iterator[Case]:
    """Yield the cases of one file of the corpus."""
    path = Path(__file__).with_name(f"{module}.py")
    loaded = importlib.import_module(f"{__name__}.{module}")
    text = path.read_text()
    marks = [(i, m[1].split()) for i, line in enumerate(text.splitlines(), 1)
             if (m := _MARK.search(line))]  # fmt: skip
    spans = {
        node.name: (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    functions: dict[str, Any] = {}
    for name, value in vars(loaded).items():
        if name.startswith("make_"):
            functions[name] = value()
        elif type(value).__name__ == "PjitFunction":
            functions[name] = value
    functions |= {k: v for k, (v, _) in getattr(loaded, "TRACED", {}).items()}
    for name, function in functions.items():
        first, last = spans.get(name, (0, -1))
        lines = {i for i, names in marks if name in names or (not names and first <= i <= last)}
        yield Case(name, function, str(path), module.startswith("impure"), frozenset(lines))
