"""Messages as records: what `rings.Ring`, or another queue between two workers, carries."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgpack
import numpy as np

from .windows import Window
from .wire import INLINE, dtype_named, encoded

#: Bytes of the largest record: some fit into a queue, so that both sides work at a time. What is
#: larger is lent, and read where it is, if the other side can.
RECORD = 1 << 20
_NOTHING = np.empty(0, np.uint8)


class Records(Protocol):
    """A queue of records of a head and bytes, from one worker to another."""

    def write(self, head: bytes, payload: np.ndarray) -> bool:
        """Append a record; return whether there was room."""
        ...

    def read(self) -> tuple[bytes, np.ndarray] | None:
        """Return the next record, which is there until `release`; None if there is none."""
        ...

    def release(self) -> None:
        """Give the memory of the last record back."""
        ...


class Queue:
    """Messages in a queue of records, at one of its ends.

    Attributes
    ----------
    lock : threading.Lock
        Of who writes.
    user : int or None
        The thread that still reads the last message, in the memory of the records.
    polled : bool
        Whether no bell rings when a record comes.
    lends : bool
        Whether who reads the queue can read this process's memory.
    process : int or None
        Who writes the queue, if that is another process of this machine.
    """

    def __init__(
        self, records: Records, polled: bool = False, lends: bool = False,
        process: int | None = None,
    ):  # fmt: skip
        self.records, self.polled, self.lends, self.process = records, polled, lends, process
        self.lock = threading.Lock()
        self.user: int | None = None
        self._begun: tuple[dict[str, Any], np.ndarray] | None = None
        self._filled = 0

    def write(
        self, message: dict[str, Any], data: Any, wait: Callable[[Callable[[], Any]], Any]
    ) -> np.ndarray | None:
        """Write a message with an array, or a dict of small ones; return what it lends.

        ``wait`` returns when what it is given returns something, and reads meanwhile.
        """
        payload, lent = _NOTHING, None
        if isinstance(data, np.ndarray) and data.nbytes > INLINE:
            payload = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
            message["data"] = {"array": data.dtype.name, "shape": data.shape}
            if self.lends and payload.nbytes > RECORD:
                message["data"]["at"] = payload.ctypes.data
                payload, lent = _NOTHING, payload
        else:
            message["data"] = encoded(data, inline=True)
        head: bytes = msgpack.packb({**message, "nbytes": payload.nbytes}) or b""
        for k in range(0, max(payload.nbytes, 1), RECORD):
            part = payload[k : k + RECORD]
            if not self.records.write(head, part):
                wait(lambda head=head, part=part: self.records.write(head, part) or None)
            head = b""
        return lent

    def next(self) -> dict[str, Any] | None:
        """Return the next message, whose array may lie in the records until `release`."""
        self.release()
        while (record := self.records.read()) is not None:
            head, payload = record
            if head:  # whoever wrote the message before may have been stopped in the middle
                message = msgpack.unpackb(head)
                nbytes, data = message.pop("nbytes"), message["data"]
                if self.process is not None and isinstance(data, dict) and "at" in data:
                    dtype = dtype_named(data["array"])
                    message["window"] = Window(self.process, data["at"], dtype, data["shape"])
                if nbytes == payload.nbytes:
                    if nbytes:
                        message["data"]["data"] = payload
                        message["borrowed"] = True
                    return message
                self._begun, self._filled = (message, np.empty(nbytes, np.uint8)), 0
            if self._begun is not None:
                message, whole = self._begun
                whole[self._filled : self._filled + payload.nbytes] = payload
                self._filled += payload.nbytes
                if self._filled == whole.nbytes:
                    self._begun = None
                    message["data"]["data"] = whole
                    return message
        return None

    def release(self) -> None:
        """Give the memory of the last message back."""
        self.user = None
        self.records.release()


def lasting(message: dict[str, Any]) -> None:
    """Copy what a message has in the memory of records."""
    if message.pop("borrowed", False):
        message["data"]["data"] = message["data"]["data"].copy()
