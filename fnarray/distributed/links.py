"""The client's end of the comm to one worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from distributed.comm.core import connect

from ..errors import WorkerLost
from .wire import Stream

if TYPE_CHECKING:
    from .lineage import Launch

#: Seconds that a device waits for a worker of its own name before it takes a spare one.
GRACE = 5.0
#: Seconds that a worker has to answer when a session is opened.
ANSWER = 20.0


def check_scheduler(client: Any) -> None:
    """Raise `ConnectionError` where a cluster has lost its scheduler."""
    if client.status != "running":
        raise _scheduler_lost(client)


def _scheduler_lost(client: Any) -> ConnectionError:
    where = f" at {client.scheduler.address}" if client.scheduler else ""
    return ConnectionError(
        f"fnarray.distributed: the scheduler{where} is gone (client: {client.status}). "
        "Arrays on its workers are lost with it: start a cluster, connect() anew, and restore() "
        "the last checkpoint, which is intact."
    )


class Link:
    """A device's worker: who it is, and what is sent to it and awaited of it.

    Attributes
    ----------
    epoch : int
        How often its worker was lost.
    held : dict
        Bytes of each result that the worker keeps, by key.
    """

    def __init__(self, cluster: Any, number: int, name: Any):
        self.cluster, self.number, self.name = cluster, number, name
        self.address = ""
        self.epoch = 0
        self.times_lost = 0
        self.held: dict[str, int] = {}
        self.held_when_lost = 0
        self._stream: Stream | None = None
        self._known: set[str] = set()
        self._requests: dict[int, tuple[Launch, int]] = {}
        self._numbers = count()
        self._hello = asyncio.Event()

    @property
    def up(self) -> bool:
        """Whether the worker is there."""
        return self._stream is not None

    def knows(self, thing: str) -> bool:
        """Return whether a program or group has to be sent first; from then on it has not."""
        if thing in self._known:
            return False
        self._known.add(thing)
        return True

    # ---- on the event loop ----

    def send(self, *messages: dict[str, Any]) -> None:
        """Send messages without an answer."""
        if self._stream is not None:
            self._stream.send(*messages)

    def request(self, messages: Sequence[dict[str, Any]], launch: Launch, rank: int) -> None:
        """Send messages of which the last has an answer."""
        if self._stream is None:
            self.cluster.lost(self, [launch])
            return
        number = next(self._numbers)
        self._requests[number] = launch, rank
        *before, last = messages
        self._stream.send(*before, {**last, "id": number})

    def free(self, keys: Sequence[str]) -> None:
        """Let the worker free results."""
        for key in keys:
            self.held.pop(key, None)
        self.send({"op": "free", "keys": list(keys)})

    def _receive(self, message: dict[str, Any]) -> None:
        match message.get("op"):
            case "hello":
                self._hello.set()
            case "kernel":
                self.cluster.directory.asked(message["key"], self)
            case "compiled":
                self.cluster.directory.given(message["key"], message["data"])
            case _:
                launch, rank = self._requests.pop(message["id"])
                self.cluster.replied(launch, rank, message)

    def _lost(self) -> None:
        """Note that the comm is closed, and all the worker held is gone."""
        self._stream = None  # from here on nothing is sent
        self.epoch += 1
        self.times_lost += 1
        self.held_when_lost = sum(self.held.values())
        self.held = {}
        requests, self._requests = self._requests, {}
        self.cluster.lost(self, [launch for launch, _ in requests.values()])

    def close(self) -> None:
        """Close the comm."""
        if self._stream is not None:
            self._stream.close()

    # ---- connecting, on the user's thread ----

    def connect(self, taken: set[str], patience: float) -> None:
        """Find the device's worker, or one in its place, and open a session on it.

        Raises
        ------
        WorkerLost
            There is none for ``patience`` seconds.
        """
        begun, last = time.monotonic(), ""
        while True:
            waited = time.monotonic() - begun
            for address in self._candidates(taken, waited > GRACE):
                try:
                    self.cluster.client.sync(self._open, address)
                except (OSError, TimeoutError) as error:
                    last = str(error)
                    continue
                return
            if waited > patience:
                raise WorkerLost(
                    f"device dask:{self.number} (worker {self.name!r}, last at "
                    f"{self.address or 'no address'}) cannot be reached, and no other worker came "
                    f"in its place for {patience:.0f} s. {last} Start a worker, or restore() the "
                    "last checkpoint on a mesh of those that are left."
                )
            time.sleep(0.1)

    def _candidates(self, taken: set[str], spare: bool) -> list[str]:
        """Return addresses of workers: those of the device's name, then spare ones."""
        client = self.cluster.client
        check_scheduler(client)
        try:
            workers = client.sync(client.scheduler.identity)["workers"]
        except OSError as error:
            raise _scheduler_lost(client) from error
        own = [a for a, w in workers.items() if w["name"] == self.name and a not in taken]
        names = {link.name for link in self.cluster.links}
        others = [a for a, w in workers.items() if w["name"] not in names and a not in taken]
        return own + (others if spare else [])

    async def _open(self, address: str) -> None:
        cluster = self.cluster
        comm = await connect(address, timeout=5, **cluster.client.connection_args)
        await comm.write({"op": "fnarray_session", "token": cluster.token, "reply": False})
        self._hello.clear()
        # Here, where nobody asks meanwhile: what was said to be sent to a lost worker never was.
        self._known = set()
        stream = Stream(comm, self._lost)
        self.address, self._stream = address, stream
        self._reader = asyncio.ensure_future(stream.read(self._receive))
        try:
            await asyncio.wait_for(self._hello.wait(), ANSWER)
        except TimeoutError:
            stream.close()
            raise OSError(self._silent(address)) from None

    def _silent(self, address: str) -> str:
        """Return what may keep a worker from answering."""
        why = "is fnarray installed there?"
        if self.times_lost:
            why = (
                f"it came in the place of one that was lost with {self.held_when_lost / 1e6:.1f} "
                "MB. Its log says more: a worker that takes more than memory_limit is killed."
            )
        return f"the worker at {address} does not answer for {ANSWER:.0f} s: {why}"
