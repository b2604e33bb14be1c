"""What a rule found, and where: the one record that every front end makes and prints."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from typing import Any, NamedTuple


class Place(NamedTuple):
    """A span of source: lines count from 1, columns from 1, the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Finding(NamedTuple):
    """One effect, at one place, with the rule it breaks and the repair.

    ``path`` is how the place is reached, outermost first: ``("jit(train)", "step", "helper")``.
    ``source`` is the line of source, without its newline; it may be empty. ``presumed`` says that
    it would be wrong under a condition that the text does not show (`lint.proof`).
    """

    code: str
    name: str
    message: str
    repair: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    source: str = ""
    path: tuple[str, ...] = ()
    presumed: bool = False

    @property
    def where(self) -> str:
        """``file:line:column``."""
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def said(self) -> str:
        """The message, with its level before it if that is not the usual one."""
        return f"presumed: {self.message}" if self.presumed else self.message

    def concise(self) -> str:
        """Return the finding on one line."""
        return f"{self.where}: {self.code} [{self.name}] {self.said}. {self.repair}"

    def full(self) -> str:
        """Return the finding with its source line, a caret under the offence, path and repair."""
        lines = [f"{self.where}: {self.code} [{self.name}] {self.said}"]
        text = self.source or linecache.getline(self.file, self.line).rstrip("\n")
        if text.strip():
            indent = len(text) - len(text.lstrip())
            start = max(self.column - 1 - indent, 0)
            end = self.end_column - 1 if self.end_line == self.line else len(text)
            width = max(min(end, len(text)) - indent - start, 1)
            lines += [f"    {text.strip()}", f"    {' ' * start}{'^' * width}"]
        if len(self.path) > 1:
            lines.append(f"  reached by {' -> '.join(self.path)}")
        lines.append(f"  {self.repair}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON."""
        return self._asdict()


def in_characters(finding: Finding) -> Finding:
    """Return a finding with columns in characters, where they were in bytes of UTF-8."""
    if finding.source.isascii():
        return finding
    raw = finding.source.encode("utf-8", "surrogatepass")

    def column(offset: int) -> int:
        return len(raw[: offset - 1].decode("utf-8", "replace")) + 1

    end = finding.end_column
    end = column(end) if finding.end_line == finding.line else end
    return finding._replace(column=column(finding.column), end_column=end)


def render(findings: Iterable[Finding]) -> str:
    """Return all findings in full, a blank line between two."""
    return "\n\n".join(f.full() for f in findings)
