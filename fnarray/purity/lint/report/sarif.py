"""``sarif``: the Static Analysis Results Interchange Format, version 2.1.0 (OASIS)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from ...findings import Finding
from ...rules import RULES, LintRule
from .._version import version
from ..config import relative
from ._report import Report

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def _rule(rule: type[LintRule]) -> dict[str, Any]:
    summary = (rule.__doc__ or rule.name).strip().splitlines()[0]
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": summary},
        "fullDescription": {"text": " ".join(rule.why.split())},
        "help": {"text": rule.repair, "markdown": _markdown(rule)},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": [rule.group]},
    }


def _markdown(rule: type[LintRule]) -> str:
    bad, good = rule.bad.strip(), rule.good.strip()
    return (
        f"{' '.join(rule.why.split())}\n\nBad:\n```python\n{bad}\n```\n\n"
        f"Good:\n```python\n{good}\n```\n"
    )


def _location(finding: Finding, root: Path) -> dict[str, Any]:
    short = relative(finding.file, root)
    outside = Path(short).is_absolute()
    artifact: dict[str, Any] = {"uri": f"file://{quote(short)}" if outside else quote(short)}
    if not outside:
        artifact["uriBaseId"] = "ROOT"
    region: dict[str, Any] = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    if finding.source:
        region["snippet"] = {"text": finding.source}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def sarif(report: Report, out: TextIO) -> None:
    """Write one run, with the rules that fired and a fingerprint that survives moved lines."""
    used = sorted({f.code for f in report.findings})
    index = {code: i for i, code in enumerate(used)}
    seen: Counter[str] = Counter()
    results: list[dict[str, object]] = []
    for f in report.findings:
        text = f"{relative(f.file, report.root)}:{f.code}:{' '.join(f.source.split())}"
        seen[text] += 1
        mark = hashlib.sha256(f"{text}:{seen[text]}".encode()).hexdigest()
        reached = f" Reached by {' -> '.join(f.path)}." if len(f.path) > 1 else ""
        results.append(
            {
                "ruleId": f.code,
                "ruleIndex": index[f.code],
                "level": "note" if f.presumed else "error",
                "message": {"text": f"{f.message}.{reached} {f.repair}"},
                "locations": [_location(f, report.root)],
                "partialFingerprints": {"fnarray/v1": mark},
            }
        )
    driver = {
        "name": "fnarray",
        "version": version(),
        "rules": [_rule(RULES[code]) for code in used],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"ROOT": {"uri": report.root.resolve().as_uri() + "/"}},
        "results": results,
    }
    json.dump({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, out, indent=2)
    out.write("\n")
