"""What a reporter is given."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ...findings import Finding
from ..source import SourceFile


class Report(NamedTuple):
    """Findings in order, the sources they stand in, and what was looked at."""

    findings: tuple[Finding, ...]
    sources: dict[str, SourceFile]
    root: Path
    files: int
    seconds: float = 0.0
    color: bool = False

    def statistics(self) -> list[tuple[int, str, str]]:
        """Return ``(count, code, name)``, most frequent first."""
        counts = Counter((f.code, f.name) for f in self.findings)
        return sorted(
            ((n, code, name) for (code, name), n in counts.items()),
            key=lambda row: (-row[0], row[1]),
        )

    def shown(self, finding: Finding) -> str:
        """Return the place as a person reads it: a notebook's cell and line, else file:line:col."""
        source = self.sources.get(finding.file)
        cell = source.cell(finding.line) if source else None
        if cell is None:
            return finding.where
        number, line = cell
        return f"{finding.file}:cell {number}:{line}:{finding.column}"
