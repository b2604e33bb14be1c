"""Work that Python's collector of cycles lets be: what it makes lives until it is done."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

_lock = threading.Lock()
#: How many threads are at it, and whether the collector is theirs to set going again.
_state = [0, False]
#: Whether somebody froze objects: to count them takes a walk over them, so that it is asked once.
_frozen = [False]


@contextmanager
def uncollected() -> Generator[None, None, None]:
    """Keep the collector from running, for all threads, while no code of the user's is.

    It would go through all objects of the process once for each quarter more of them: 22 ms of the
    75 in which a program of 3,000 operations is scheduled and emitted.
    """
    with _lock:
        if not _state[0]:
            _state[1] = gc.isenabled()
            gc.disable()
        _state[0] += 1
    try:
        yield
    finally:
        with _lock:
            _state[0] = max(_state[0] - 1, 0)
            if not _state[0] and _state[1]:
                gc.enable()


@contextmanager
def importing() -> Generator[None, None, None]:
    """Keep the collector from running, and count all there is as old: what modules make stays.

    Where a program was found on disk, a look at what was imported on the way took 4 of 16 ms. Each
    module is imported once, so that what others drop meanwhile is found by a later full collection.
    """
    with uncollected():
        yield
        count_as_old()


def count_as_old() -> None:
    """Count all there is as old: the collector looks at it when it looks at everything.

    For what is made once and stays: inside of `uncollected`, before the collector goes through it;
    nothing happens where another thread, or whoever called, is in there as well.
    """
    if _state != [1, True] or _frozen[0]:
        return
    _frozen[0] = gc.get_freeze_count() > 0
    if not _frozen[0]:  # or the user's would be thawed
        gc.freeze()
        gc.unfreeze()  # among the oldest, whatever they were


def _alone() -> None:
    """Set the collector going in a child that was forked while another thread was at it."""
    global _lock
    _lock = threading.Lock()
    if _state[0] and _state[1]:
        gc.enable()
    _state[0] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)
