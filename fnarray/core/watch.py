"""Loops that are watched: whoever shows one is found by its number, from machine code too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from .forms import Watch

T = TypeVar("T")
#: What shows the loops of this process: called with the turns that are done, and milliseconds.
#: Numbers are made of what is shown, so that programs which differ in nothing else are one.
shows: Final[dict[int, Callable[[int, int], None]]] = {}


def tell(number: int, done: int, passed: int) -> None:
    """Show how far a loop is, unless nobody here knows it (it was traced in another process)."""
    show = shows.get(number)
    if show is not None:
        show(done, passed)


def ticking(watch: Watch | None, turns: Iterable[T], each: int = 1) -> Iterator[T]:
    """Go through what Python turns, and tell when it is time; a turn is ``each`` of the loop's."""
    if watch is None:
        yield from turns
        return
    begun = shown = time.monotonic()
    done = 0
    for turn in turns:
        now = time.monotonic()
        if done and now - shown >= watch.every / 1e3:
            shown = now
            tell(watch.number, done, int(1e3 * (now - begun)))
        yield turn
        done += each
    if shown > begun:
        tell(watch.number, done, int(1e3 * (time.monotonic() - begun)))
