"""What a program launches, written down in place of being launched."""

from __future__ import annotations

import threading
from typing import Any, Final

#: Addresses from here on stand for arrays of a program that is recorded.
FAKE: Final = 1 << 62


class Current(threading.local):
    """Whose context the calling thread has (a `Gpu`), and what records its launches."""

    context: Any = None
    recorder: Recorder | None = None


current: Final = Current()


class NotRecorded(Exception):
    """A program that is recorded asks for something that only the device itself can give."""


class Recorder:
    """Writes down what a program launches in the calling thread, in place of launching it.

    Attributes
    ----------
    launches : list of (source, function, blocks, lanes, packer, positions of arrays, arguments)
    moves : list of (bool, int, int)
        What was allocated (or given back), in order: the address that stands for it, and bytes.
    kept : list
        Arrays that hold what is the same in each call.
    """

    def __init__(self, most: int):
        self.most = most
        self.launches: list[Any] = []
        self.moves: list[tuple[bool, int, int]] = []
        self.kept: list[Any] = []
        self._next = FAKE

    def __enter__(self) -> Recorder:
        current.recorder = self
        return self

    def __exit__(self, *exc: object) -> None:
        self.done()

    def done(self) -> Recorder:
        """Let the thread's launches be launched again."""
        current.recorder = None
        return self

    def allocate(self, size: int) -> int:
        """Return an address that stands for so many bytes."""
        address = self._next
        self._next += -(-max(size, 1) // 256) * 256
        self.moves.append((True, address, size))
        return address

    def launch(self, *launch: Any) -> None:
        """Note a launch."""
        self.launches.append(launch)
        if len(self.launches) > self.most:
            raise NotRecorded


def left() -> None:
    """Note that another library may have changed whose context the calling thread has."""
    current.context = None


def recording() -> bool:
    """Whether the calling thread's launches are written down."""
    return current.recorder is not None
