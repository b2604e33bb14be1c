"""Queues of records between workers that are processes of MPI."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Records that may be under way to one worker: what is queued is held twice.
UNDER_WAY = 8
#: The communicator of this process and its library, if it is a worker of `mpi`.
world: Any = None
library: Any = None


class Records:
    """Records from, or to, one process of MPI; see `queues.Records`.

    Parameters
    ----------
    rank : int
        Of the other process.
    token : str
        Of the session, which tells its messages from those of others.
    """

    def __init__(self, rank: int, token: str):
        self._rank, self._tag = rank, int(token[:4], 16) % 32_000
        self._sent: list[tuple[Any, np.ndarray]] = []

    def write(self, head: bytes, payload: np.ndarray) -> bool:
        """Append a record; return whether there was room."""
        self._sent = [each for each in self._sent if not each[0].Test()]
        if len(self._sent) >= UNDER_WAY:
            return False
        size = np.frombuffer(len(head).to_bytes(8, "little") + head, np.uint8)
        record = np.concatenate([size, payload])
        self._sent.append((world.Isend(record, self._rank, self._tag), record))
        return True

    def read(self) -> tuple[bytes, np.ndarray] | None:
        """Return the next record; None if there is none."""
        status = library.Status()
        message = world.Improbe(self._rank, self._tag, status)
        if message is None:
            return None
        record = np.empty(status.Get_count(), np.uint8)
        message.Recv(record)
        start = 8 + int.from_bytes(record[:8].tobytes(), "little")
        payload = record[start:]
        return record[8:start].tobytes(), payload

    def release(self) -> None:
        """Nothing is held."""
