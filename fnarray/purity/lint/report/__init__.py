"""Reporters: each turns findings into the text of one format, and is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TextIO

from ._report import Report as Report


def _later(module: str, name: str) -> Callable[[Report, TextIO], None]:
    def write(report: Report, out: TextIO) -> None:
        getattr(import_module(f".{module}", __name__), name)(report, out)

    return write


#: Format to writer: each writes a whole document.
REPORTERS: dict[str, Callable[[Report, TextIO], None]] = {
    "full": _later("text", "full"),
    "concise": _later("text", "concise"),
    "json": _later("json_", "as_json"),
    "github": _later("github", "github"),
    "sarif": _later("sarif", "sarif"),
    "junit": _later("junit", "junit"),
}
