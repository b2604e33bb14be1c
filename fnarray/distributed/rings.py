"""Memory that two workers on one machine share: queues of records, one writes, one reads.

The memory has no name: the reader opens the writer's descriptor by its process, which the system
allows to the same user alone, and the system frees it when both have ended, however they do. That
it is the one that was meant, and of this machine, its first bytes tell, which are secret.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import secrets
import select
from typing import NamedTuple

import numpy as np

#: Bytes of a queue.
CAPACITY = 4 << 20
#: Records begin at multiples of this, so that counters and records share no line of the cache.
LINE = 64
_WRITTEN, _READ, _DATA = 8, 16, 256  # words of the first page, and where records begin
_SECRET = 32
_SKIP = 0xFFFFFFFF
_OTHERS = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC

#: Where records are seen in the order they are written in without barriers (total store order).
SHARED = hasattr(os, "memfd_create") and platform.machine() in ("x86_64", "AMD64")


class Offer(NamedTuple):
    """What a reader needs to open a queue: the process, its descriptors, and the secret.

    The secret is at an address of the process, too, for who can read its memory.
    """

    process: int
    memory: int
    bell: int
    secret: bytes
    address: int


class Bell:
    """Wakes who waits for messages, from any thread, and from processes that have opened it."""

    def __init__(self) -> None:
        self._read, self.descriptor = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)

    def ring(self) -> None:
        """Wake who waits, or will."""
        rung(self.descriptor)

    def wait(self, seconds: float) -> None:
        """Wait until it rings."""
        if self._poll.poll(seconds * 1000):
            with contextlib.suppress(BlockingIOError):  # another thread was faster
                os.read(self._read, 1 << 16)

    def __del__(self) -> None:
        os.close(self._read)
        os.close(self.descriptor)


def rung(descriptor: int) -> None:
    """Ring a bell, which may be another process's, that may have ended."""
    with contextlib.suppress(BlockingIOError, BrokenPipeError):
        os.write(descriptor, b"\0")


class Ring:
    """A queue of records from one process to another.

    Parameters
    ----------
    memory : int
        Descriptor of the shared memory, which the queue owns from now on.
    bell : int
        Descriptor of the other side's bell, owned too; negative before it is known.
    """

    def __init__(self, memory: int, bell: int = -1):
        self.memory, self.bell = memory, bell
        shared = mmap.mmap(memory, LINE * _DATA + CAPACITY)
        self._bytes = np.frombuffer(shared, np.uint8)
        self._words = memoryview(shared).cast("Q")  # aligned: read and written at once
        self._records = self._bytes[LINE * _DATA :]
        self._held = 0

    @property
    def address(self) -> int:
        """Where the secret is in this process."""
        return self._bytes.ctypes.data

    @staticmethod
    def made() -> tuple[Ring, bytes]:
        """Return a new queue, to write, and its secret."""
        memory = os.memfd_create("fnarray", os.MFD_CLOEXEC)
        os.ftruncate(memory, LINE * _DATA + CAPACITY)
        ring, secret = Ring(memory), secrets.token_bytes(_SECRET)
        ring._bytes[:_SECRET] = np.frombuffer(secret, np.uint8)
        return ring, secret

    @staticmethod
    def opened(offer: Offer) -> Ring | None:
        """Return a queue that another process of this machine offers, to read; None if it is not.

        That is on another machine, in another container, or of another user.
        """
        if not SHARED:
            return None
        root = f"/proc/{offer.process}/fd"
        try:
            memory = os.open(f"{root}/{offer.memory}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if os.pread(memory, _SECRET, 0) != offer.secret:
                raise OSError("another file")
            bell = os.open(f"{root}/{offer.bell}", _OTHERS)
        except OSError:
            os.close(memory)
            return None
        return Ring(memory, bell)

    def answer(self, process: int, bell: int) -> None:
        """Open the reader's bell, which rings where there is room again.

        Raises
        ------
        OSError
            It cannot be.
        """
        self.bell = os.open(
            f"/proc/{process}/fd/{bell}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )

    def __del__(self) -> None:
        for descriptor in (self.memory, self.bell):
            if descriptor >= 0:
                os.close(descriptor)

    # ---- writing ----

    def write(self, head: bytes, payload: np.ndarray) -> bool:
        """Append a record of a head and bytes; return whether there was room."""
        start = LINE + -(-len(head) // LINE) * LINE
        size = start + -(-payload.nbytes // LINE) * LINE
        written = self._words[_WRITTEN]
        at = written % CAPACITY
        skipped = CAPACITY - at if at + size > CAPACITY else 0
        if written + skipped + size - self._words[_READ] > CAPACITY:
            return False
        if skipped:
            self._sizes(at, _SKIP, 0)
            at = 0
        self._sizes(at, len(head), payload.nbytes)
        self._records[at + LINE : at + LINE + len(head)] = np.frombuffer(head, np.uint8)
        self._records[at + start : at + start + payload.nbytes] = payload
        self._words[_WRITTEN] = written + skipped + size
        rung(self.bell)
        return True

    def _sizes(self, at: int, head: int, payload: int) -> None:
        k = _DATA * LINE // 8 + at // 8
        self._words[k], self._words[k + 1] = head, payload

    # ---- reading ----

    def read(self) -> tuple[bytes, np.ndarray] | None:
        """Return the next record, which is there until `release`; None if there is none."""
        self.release()
        read = self._words[_READ]
        if self._words[_WRITTEN] == read:
            return None
        at = read % CAPACITY
        k = _DATA * LINE // 8 + at // 8
        skipped = 0
        if self._words[k] == _SKIP:
            skipped, at, k = CAPACITY - at, 0, _DATA * LINE // 8
        head, nbytes = self._words[k], self._words[k + 1]
        start = LINE + -(-head // LINE) * LINE
        self._held = skipped + start + -(-nbytes // LINE) * LINE
        found = self._records[at + LINE : at + LINE + head].tobytes()
        return found, self._records[at + start : at + start + nbytes]

    def release(self) -> None:
        """Give the memory of the last record back."""
        if self._held:
            self._words[_READ] += self._held
            self._held = 0
            rung(self.bell)
