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


_hurry = _Hurry()


def library(name: str) -> Any:
    """Return a module by its whole name.

    Raises
    ------
    NotLoaded
        It has not been imported, and this is no time for it.
    """
    if _hurry.on and name not in sys.modules:
        raise NotLoaded(name)
    return import_module(name)


@contextmanager
def loaded_alone() -> Generator[None, None, None]:
    """Let `library` return only, on this thread, what has been imported: SciPy takes 0.3 s."""
    before, _hurry.on = _hurry.on, True
    try:
        yield
    finally:
        _hurry.on = before
