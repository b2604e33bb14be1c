"""``--fix`` and ``--diff``: the repairs that take no decision, made in the files.

A file is written only when it still parses and its own findings became fewer; what is not about a
finding stays as it is, byte for byte.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from ..findings import Finding
from .config import STDIN, Settings
from .linter import Examiner, conclude
from .repairs import REPAIRS, Edit, Surroundings, applied
from .source import SourceFile, parse

#: A repair may make way for the next: a key that is drawn from five times is split four times.
_ROUNDS = 50


class Repaired(NamedTuple):
    """A file, its lines after the repairs, and how many findings are gone."""

    source: SourceFile
    lines: list[str]
    fixed: int

    def diff(self) -> str:
        """Return the change as a unified diff."""
        before, after = ([f"{line}\n" for line in s] for s in (self.source.lines, self.lines))
        return "".join(difflib.unified_diff(before, after, self.source.path, self.source.path))


def repaired(
    findings: Iterable[Finding], sources: Iterable[SourceFile], settings: Settings
) -> list[Repaired]:
    """Return the files that repairs change."""
    known = {source.path: source for source in sources}
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        source = known.get(finding.file)
        fixable = source is not None and source.tree is not None and not source.cells
        if finding.code in REPAIRS and fixable and finding.file != STDIN:
            by_file.setdefault(finding.file, []).append(finding)
    found = (_repair(known[path], some, settings) for path, some in by_file.items())
    return [one for one in found if one is not None]


def _repair(source: SourceFile, findings: list[Finding], settings: Settings) -> Repaired | None:
    before = _alone(source, settings)
    now, fixed = source, 0
    for _ in range(_ROUNDS):
        made = _round(now, findings, settings)
        if made is None:
            break
        now, count = made
        fixed += count
        findings = _alone(now, settings)
    if not fixed or len(findings) > len(before):
        return None
    return Repaired(source, now.lines, fixed)


def _round(
    source: SourceFile, findings: list[Finding], settings: Settings
) -> tuple[SourceFile, int] | None:
    """Make the repairs that do not meet; return the file after them, and their number."""
    examiner = Examiner([source], settings)
    module = examiner.project.take(source)
    edits: list[Edit] = []
    count = 0
    for finding in findings:
        if finding.code in REPAIRS:
            new = REPAIRS[finding.code](Surroundings(examiner.project, module, finding))
            lines = {line for e in edits for line in range(e.line, e.end_line + 1)}
            if all(e in edits or not lines & {*range(e.line, e.end_line + 1)} for e in new):
                edits += [e for e in new if e not in edits]
                count += bool(new)
    after = parse(source.path, "\n".join([*applied(source.lines, edits), ""])) if edits else source
    return (after, count) if edits and after.tree is not None else None


def _alone(source: SourceFile, settings: Settings) -> list[Finding]:
    """Return what is found in a file by itself, silenced or not counted."""
    outcome = Examiner([source], settings).examine(source)
    return conclude([source], [outcome], settings).findings
