"""Where in the user's code something happened."""

from __future__ import annotations

import linecache
import os
import sys
import threading

from .frozen import frozen

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100,PTH120 - import time


@frozen
class Source:
    """A line of the user's code: file, number, the function it is in, and its `named_scope`."""

    file: str
    line: int
    function: str
    scope: str = ""

    def text(self) -> str:
        """Return the source line, stripped, or an empty string where it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"


UNKNOWN = Source("<unknown>", 0, "<unknown>")


class _Told(threading.local):
    source: Source | None = None
    scope: str = ""


_told = _Told()


class located:  # noqa: N801, a context manager, lighter than a generator's
    """Say where operations are from, for the duration of the block: an equation that is run again.

    None for where the stack says they are, as when a function of the user's runs within.
    """

    __slots__ = ("saved", "source")

    def __init__(self, source: Source | None):
        self.source = source

    def __enter__(self) -> None:
        self.saved, _told.source = _told.source, self.source

    def __exit__(self, *exception: object) -> None:
        _told.source = self.saved


class scoped:  # noqa: N801, as `located`
    """Label the operations of a block: labels of nested blocks are joined by slashes."""

    __slots__ = ("name", "saved")

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        self.saved = _told.scope
        _told.scope = f"{self.saved}/{self.name}" if self.saved else self.name

    def __exit__(self, *exception: object) -> None:
        _told.scope = self.saved


def is_told() -> bool:
    """Whether it is said where operations are from: a program is run again."""
    return _told.source is not None


#: Files and folders whose lines are no user's; the interpreter's own run ``python -m``.
_excluded: tuple[str, ...] = (PACKAGE, "<frozen ")


def exclude(path: str) -> None:
    """Take the lines of a file, or of a folder, for a library's and not the user's."""
    global _excluded
    if path not in _excluded:
        _excluded = (*_excluded, path)


def user_source() -> Source:
    """Return the innermost line on the stack that is no library's, or what was told."""
    if _told.source is not None:
        return _told.source
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - no public name as fast
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if not name.startswith(_excluded) and "optree" not in name:
            return Source(name, frame.f_lineno, code.co_qualname, _told.scope)
        frame = frame.f_back
    return UNKNOWN
