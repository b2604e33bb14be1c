"""``json``: an array of findings, and nothing else."""

from __future__ import annotations

import json
from typing import Any, TextIO

from ..config import relative
from ._report import Report


def as_json(report: Report, out: TextIO) -> None:
    """Write one object per finding; notebooks add ``cell`` and the line inside it."""
    rows: list[dict[str, Any]] = []
    for f in report.findings:
        row = f.as_dict() | {"file": relative(f.file, report.root), "path": list(f.path)}
        source = report.sources.get(f.file)
        cell = source.cell(f.line) if source else None
        if cell is not None:
            row |= {"cell": cell[0], "cell_line": cell[1]}
        rows.append(row)
    json.dump(rows, out, indent=2, ensure_ascii=False)
    out.write("\n")
