"""Where in the user's code something happened."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100,PTH120 - import time


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's code: file, line number, and the function it is in."""

    file: str
    line: int
    function: str

    def text(self) -> str:
        """Return the source line, stripped, or an empty string where it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"


UNKNOWN = Source("<unknown>", 0, "<unknown>")


def user_source() -> Source:
    """Return the innermost line on the stack that is not this package's own."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if not name.startswith(PACKAGE) and "optree" not in name:
            return Source(name, frame.f_lineno, code.co_qualname)
        frame = frame.f_back
    return UNKNOWN
