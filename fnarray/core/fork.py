"""What a fork waits for: threads of ours, which the child would lack, and then locks.

Python calls what is registered last first. A lock registered late would be taken before a thread
that needs it was waited for; so who takes a lock settles threads first.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_waits: list[Callable[[], None]] = []


def settle() -> None:
    """Wait for all threads that a child must not be without."""
    for wait in _waits:
        wait()


def settled_before_forks(wait: Callable[[], None]) -> None:
    """Call ``wait`` before each fork, and before any lock is taken for it."""
    _waits.append(wait)


def holding_through_forks(acquire: Callable[[], object], release: Callable[[], object]) -> None:
    """Hold a lock while the process forks, so that the child gets it free."""

    held: list[bool] = []  # empty where this was called while a fork already settled

    def before() -> None:
        settle()
        acquire()
        held.append(True)

    def after() -> None:
        if held:
            held.pop()
            release()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=settle)
