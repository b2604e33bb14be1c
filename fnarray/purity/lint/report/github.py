"""``github``: workflow commands, which GitHub shows as annotations in a pull request."""

from __future__ import annotations

from typing import TextIO

from ..config import relative
from ._report import Report


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def github(report: Report, out: TextIO) -> None:
    """Write one line per finding: ``::error``, or ``::notice`` for what is presumed."""
    for f in report.findings:
        file = relative(f.file, report.root)
        fields = {"file": file, "line": f.line, "col": f.column, "endLine": f.end_line}
        if f.end_line == f.line:
            fields["endColumn"] = f.end_column
        fields["title"] = f"fnarray ({f.code})"
        text = ",".join(f"{k}={_property(str(v))}" for k, v in fields.items())
        place = report.shown(f).removeprefix(f.file).removeprefix(":")
        reached = f" (reached by {' -> '.join(f.path)})" if len(f.path) > 1 else ""
        message = f"{file}:{place}: {f.code} [{f.name}] {f.message}{reached}. {f.repair}"
        level = "notice" if f.presumed else "error"
        out.write(f"::{level} {text}::{_data(message)}\n")
