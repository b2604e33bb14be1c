"""How the host's arrays go to a device without a wait: through memory that the device reads itself.

A copy from memory of any kind is done when the call returns only if it waits for the stream, and
with it for all that was started before. Elements are copied to memory that is locked in place, as
soon as some is free, and the device takes them from there in its own time.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from ctypes import byref, c_void_p
from typing import Any

from .libcuda import DriverError, Libcuda

#: Bytes of the smallest piece of memory and of the largest, as larger arrays are taken in parts;
#: and what all pieces have at most: beyond, the oldest copy is waited for.
LEAST, PIECE, ALL = 1 << 12, 1 << 22, 1 << 26
_NOT_READY, _NO_TIMING, _OUT_OF_MEMORY = 600, 2, 2


class Piece:
    """Locked memory, and the event that says when the device has read it."""

    __slots__ = ("address", "event", "size")

    def __init__(self, driver: Libcuda, size: int):
        self.size = size
        address, event = c_void_p(), c_void_p()
        driver.cuMemHostAlloc(byref(address), size, 0)
        driver.cuEventCreate(byref(event), _NO_TIMING)
        self.address, self.event = address.value or 0, event


class Staging:
    """The pieces of a device's stream.

    Attributes
    ----------
    held : int
        Bytes of all pieces.
    """

    def __init__(self, stream: int):
        self.held = 0
        self._stream = stream
        self._free: dict[int, list[Piece]] = {}
        self._busy: deque[Piece] = deque()
        self._lock = threading.Lock()

    def send(self, driver: Libcuda, to: int, source: int, size: int) -> bool:
        """Start the copy of so many bytes of the host's, which may change once this returns.

        False where there is no memory that can be locked: nothing has been copied then.
        """
        with self._lock:
            for at in range(0, size, PIECE):
                n = min(size - at, PIECE)
                piece = self._piece(driver, n)
                if piece is None:
                    return False
                ctypes.memmove(piece.address, source + at, n)
                driver.cuMemcpyHtoDAsync_v2(to + at, piece.address, n, self._stream)
                driver.cuEventRecord(piece.event, self._stream)
                self._busy.append(piece)
        return True

    def _piece(self, driver: Libcuda, size: int) -> Piece | None:
        """Return a piece that nobody reads; None where none can be made, and there is none."""
        size = max(1 << (size - 1).bit_length(), LEAST)
        free = self._free.setdefault(size, [])
        while True:
            while self._busy and self._is_read(driver, self._busy[0]):
                self._back()
            if free:
                return free.pop()
            if self.held + size <= ALL:
                try:
                    made = Piece(driver, size)
                except DriverError as error:
                    if error.number != _OUT_OF_MEMORY:
                        raise
                    if not self._busy:
                        return None
                else:
                    self.held += size
                    return made
            elif not self._busy:  # what there is has other sizes
                self._give_back(driver)
                continue
            driver.cuEventSynchronize(self._busy[0].event)
            self._back()

    def _back(self) -> None:
        piece = self._busy.popleft()
        self._free.setdefault(piece.size, []).append(piece)

    def _is_read(self, driver: Libcuda, piece: Piece) -> bool:
        try:
            driver.cuEventQuery(piece.event)
        except DriverError as error:
            if error.number != _NOT_READY:
                raise
            return False
        return True

    def _give_back(self, driver: Libcuda) -> None:
        """Unlock all that is free."""
        for pieces in self._free.values():
            while pieces:
                piece: Any = pieces.pop()
                driver.cuEventDestroy_v2(piece.event)
                driver.cuMemFreeHost(piece.address)
                self.held -= piece.size
