"""Libraries that evaluation brings on first use, if whoever evaluates has the time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


class NotLoaded(BaseException):
    """An evaluation needs a module that it is not to wait for: no error, and nobody's to catch."""


class _Hurry(threading.local):
    on = False
    none = False


_hurry = _Hurry()


def library(name: str) -> Any:
    """Return a module by its whole name.

    Raises
    ------
    NotLoaded
        It has not been imported, and this is no time for it.
    """
    if _hurry.none or (_hurry.on and name not in sys.modules):
        raise NotLoaded(name)
    return sys.modules.get(name) or import_module(name)


@contextmanager
def loaded_alone() -> Generator[None, None, None]:
    """Let `library` return only, on this thread, what has been imported: SciPy takes 0.3 s."""
    before, _hurry.on = _hurry.on, True
    try:
        yield
    finally:
        _hurry.on = before


@contextmanager
def by_no_library() -> Generator[None, None, None]:
    """Let `library` return nothing on this thread, loaded or not: results do not depend on that."""
    before, _hurry.none = _hurry.none, True
    try:
        yield
    finally:
        _hurry.none = before
