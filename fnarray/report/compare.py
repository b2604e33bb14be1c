"""Two reports side by side."""

from __future__ import annotations

import os
from collections import Counter
from difflib import unified_diff
from html import escape
from pathlib import Path
from typing import Any

from .files import written
from .model import Facts, Kernel
from .words import count, number, seconds, size

Row = tuple[str, str, str, str]


class Difference:
    """What `explain.diff` returns: shown in a notebook, printed as text, saved as a page.

    Attributes
    ----------
    before, after : Facts
    """

    def __init__(self, before: Facts, after: Facts):
        self.before = before
        self.after = after

    @property
    def figures(self) -> list[Row]:
        """Name, before, after and their ratio, of each figure."""
        return _figures(self.before, self.after)

    @property
    def operations(self) -> list[tuple[str, int, int]]:
        """Operations of which there are more or fewer: name and line, before, after."""
        a, b = (Counter(f"{o.name} {o.result}" for o in f.operations) for f in self._both)
        return [(key, a[key], b[key]) for key in sorted(a.keys() | b.keys()) if a[key] != b[key]]

    @property
    def kernels(self) -> list[str]:
        """Kernels and steps that only one of the two has, after a minus or plus."""
        a, b = (Counter(map(_known_as, f.kernels)) for f in self._both)
        gone, new = (a - b).elements(), (b - a).elements()
        return [*(f"- {k}" for k in gone), *(f"+ {k}" for k in new)]

    @property
    def lines(self) -> list[str]:
        """The unified difference of the emitted text."""
        a, b = map(_emitted, self._both)
        return list(unified_diff(a, b, "before", "after", lineterm="", n=2))

    @property
    def _both(self) -> tuple[Facts, Facts]:
        return self.before, self.after

    @property
    def html(self) -> str:
        """The comparison as one page of HTML."""
        from .page import document

        names = " and ".join(dict.fromkeys(f.name for f in self._both))
        return document(names, f"<h1><code>{escape(names)}</code></h1>{_body(self)}")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all; return its path."""
        return written(Path(path), self.html, "explain.diff: the comparison")

    def text(self, width: int | None = None) -> str:
        """Return the comparison as plain text."""
        from .text import plain

        return plain(self, width)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table("", "before", "after", "ratio", box=None, pad_edge=False)
        for row in self.figures:
            table.add_row(*row)
        told = [f"{a} -> {b}  {key}" for key, a, b in self.operations]
        return Group(table, *map(Text, (*told, *self.kernels, *self.lines)))

    def __str__(self) -> str:
        return self.text(100)

    def __repr__(self) -> str:
        return f"<Difference of {self.before.name} and {self.after.name}>"

    def _repr_html_(self) -> str:
        from .page import framed

        return framed(self.html)


def _known_as(kernel: Kernel) -> str:
    return f"{kernel.name} {kernel.summary}" if not kernel.is_step else f"step {kernel.summary}"


def _emitted(facts: Facts) -> list[str]:
    kernels = [k for k in facts.kernels if not k.is_step]
    # By what they compute: a name is a hash of the text, which would differ with every line.
    texts = [line.replace(k.name, "kernel") for k in kernels for line in k.text.lines]
    return [*texts, *facts.driver.lines]


def _figures(a: Facts, b: Facts) -> list[Row]:
    rows: list[Row] = []

    def add(name: str, old: float | None, new: float | None, shown: Any) -> None:
        ratio = f"{new / old:.2f}" if old and new is not None else "–"
        before, after = ("–" if x is None else shown(x) for x in (old, new))
        rows.append((name, before, after, ratio))

    add("equations", a.equations, b.equations, str)
    add("operations in the graph", len(a.operations), len(b.operations), str)
    add("kernels and steps", len(a.kernels), len(b.kernels), str)
    add("operations", a.flops, b.flops, number)
    add("memory traffic", a.moved, b.moved, size)
    add("peak of arrays", a.peak, b.peak, size)
    add("a run", a.seconds, b.seconds, seconds)
    add("compiling", sum(s for _, s in a.stages), sum(s for _, s in b.stages), seconds)
    return rows


def _body(d: Difference) -> str:
    from .page import _table

    failed = [f for f in (d.before, d.after) if f.failure is not None]
    if failed:
        return "".join(
            f'<section class="failed"><h2>{escape(f.name)} cannot be compiled</h2><pre>'
            f"{escape(f.failure.message)}</pre></section>"
            for f in failed
            if f.failure is not None
        )
    figures = _table(
        ("", "before", "after", "ratio"), [("", tuple(map(escape, row))) for row in d.figures]
    )
    changed = [("", (escape(key), str(a), str(b))) for key, a, b in d.operations]
    graph = _table(("operation", "before", "after"), changed) if changed else "<p>The same.</p>"
    kernels = "".join(f'<div class="l {_kind(k)}">{escape(k)}</div>' for k in d.kernels)
    lines = "".join(f'<div class="l {_kind(x)}">{escape(x) or " "}</div>' for x in d.lines)
    return (
        f"<section><h2>Figures</h2>{figures}</section>"
        f"<section><h2>Graph</h2>{graph}</section>"
        f'<section><h2>Kernels</h2><div class="wide"><pre>{kernels or "The same."}</pre></div>'
        f"</section><section><h2>Emitted</h2><p>{count(len(d.lines), 'line')}</p>"
        f'<div class="wide"><pre>{lines or "The same."}</pre></div></section>'
    )


def _kind(line: str) -> str:
    return {"+": "add", "-": "del"}.get(line[:1], "")
