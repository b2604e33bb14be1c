"""Kernels of one program are compiled at once, on threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from ...config import scoped_all, scoped_values
from ..room import has_room
from .launch import threads

T = TypeVar("T")


def share(work: Callable[[T], None], items: Sequence[T]) -> None:
    """Call ``work`` with each item, on this thread and as many others as there are cores for.

    Raises
    ------
    Exception
        The first that ``work`` raised; it is called with no other item after that.
    """
    left, errors, settings = deque(items), list[BaseException](), scoped_values()

    def take() -> None:
        try:
            with scoped_all(settings):
                while not errors and (item := _following(left)) is not None:
                    work(item)
        except BaseException as error:  # of a kernel, or an interrupt: the others stop as well
            errors.append(error)

    # They are this call's alone, and end within it: whoever forks, or ends, finds none idle.
    helpers: list[threading.Thread] = []
    try:
        for k in range(1, min(threads(), len(items))):
            if not has_room(1):
                break
            helper = threading.Thread(target=take, name=f"fnarray compiler {k}")
            helper.start()
            helpers.append(helper)
    except RuntimeError:  # no more threads: those there are do it
        pass
    except BaseException as error:
        errors.append(error)
    take()
    for helper in helpers:
        while helper.is_alive():
            try:
                helper.join()
            except BaseException as error:  # an interrupt, for which LLVM does not come back
                errors.append(error)
    if errors:
        raise errors[0]


def _following(left: deque[T]) -> T | None:
    try:
        return left.popleft()
    except IndexError:
        return None
