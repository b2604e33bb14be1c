"""A baseline: findings that a project lives with for now, so that only new ones are reported.

A finding is known by file, code and the text of its line, not by line number, so that edits above
it do not make it new.  Equal lines are counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ..findings import Finding
from .config import UsageError, relative

VERSION = 1


def fingerprint(finding: Finding, root: Path) -> tuple[str, str, str]:
    """Return what stays equal while a finding only moves."""
    return relative(finding.file, root), finding.code, " ".join(finding.source.split())


def write(path: Path, findings: Iterable[Finding], root: Path) -> int:
    """Write all findings as the new baseline; return how many."""
    counts = Counter(fingerprint(f, root) for f in findings)
    entries = [
        {"file": file, "code": code, "line": line, "count": n}
        for (file, code, line), n in sorted(counts.items())
    ]
    text = json.dumps({"version": VERSION, "findings": entries}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    return sum(counts.values())


def read(path: Path) -> Counter[tuple[str, str, str]]:
    """Read a baseline.

    Raises
    ------
    UsageError
        When the file cannot be read or is no baseline of this version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise UsageError(f"{path}: baseline of version {data['version']}, expected {VERSION}.")
        known: Counter[tuple[str, str, str]] = Counter()
        for entry in data["findings"]:
            known[entry["file"], entry["code"], entry["line"]] += int(entry["count"])
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; --write-baseline makes one.") from error
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"{path}: is not a baseline of this linter; --write-baseline makes one."
        ) from error
    return known


def subtract(
    findings: Iterable[Finding], known: Counter[tuple[str, str, str]], root: Path
) -> tuple[list[Finding], Counter[tuple[str, str, str]]]:
    """Return the findings that are new, and the entries of the baseline that are gone."""
    left = Counter(known)
    new: list[Finding] = []
    for finding in findings:
        key = fingerprint(finding, root)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(finding)
    return new, +left
