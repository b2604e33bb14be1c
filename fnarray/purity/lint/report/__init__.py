"""Reporters: each turns findings into the text of one format."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from ._report import Report as Report
from .github import github
from .json_ import as_json
from .junit import junit
from .sarif import sarif
from .text import concise, full

#: Format to writer: each writes a whole document.
REPORTERS: dict[str, Callable[[Report, TextIO], None]] = {
    "full": full,
    "concise": concise,
    "json": as_json,
    "github": github,
    "sarif": sarif,
    "junit": junit,
}
