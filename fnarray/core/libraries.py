"""Libraries that evaluation brings on first use, if whoever evaluates has the time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any


class NotLoaded(BaseException):
    """An evaluation needs a module that it is not to wait for: no error, and nobody's to catch."""


def _always(name: str) -> bool:
    return True


def _never(name: str) -> bool:
    return False


class _Patience(threading.local):
    """Whether a thread waits for a module, by its name."""

    def __init__(self):
        self.waits: Callable[[str], bool] = _always


_patience = _Patience()


def library(name: str) -> Any:
    """Return a module by its whole name.

    Raises
    ------
    NotLoaded
        It has not been imported, and this is no time for it.
    """
    if not _patience.waits(name):
        raise NotLoaded(name)
    return import_module(name)  # which waits for another thread that has begun to import it


@contextmanager
def _waiting(waits: Callable[[str], bool]) -> Generator[None, None, None]:
    before, _patience.waits = _patience.waits, waits
    try:
        yield
    finally:
        _patience.waits = before


def loaded_alone() -> AbstractContextManager[None]:
    """Let `library` return only, on this thread, what has been imported: SciPy takes 0.3 s."""
    return _waiting(sys.modules.__contains__)


def by_no_library() -> AbstractContextManager[None]:
    """Let `library` return nothing on this thread, loaded or not: results do not depend on that."""
    return _waiting(_never)
