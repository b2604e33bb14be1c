"""What runs on a worker: arrays by key, programs by content, one thread that runs them in order.

A session belongs to one client, and ends, with all it holds, when the client's comm does. Programs
come in the same order to all workers, so that those that wait for each other run at the same time.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence
from math import prod
from queue import SimpleQueue
from typing import Any

import cloudpickle
import numpy as np
import psutil
from dask.config import get as configured
from distributed import WorkerPlugin
from distributed.comm.core import connect

from ..compile.cache import store
from ..core import hooks
from ..core.array import native
from ..core.graph import ClosedGraph
from ..runtime.dispatch import executable
from ..threads.shards import here
from . import ranks
from .meeting import Inbox, MeetingLost, RemoteWorld
from .programs import Kernels, clients, loaded
from .queues import Queue
from .rings import SHARED, Offer, Ring
from .windows import readable
from .wire import Stream, dtype_named, packed, packed_error, unpacked


class Runtime(WorkerPlugin):
    """Gives a Dask worker the handlers of sessions, for as long as it lives."""

    name = "fnarray"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Install the handlers."""
        if worker.nanny:  # a process of its own
            keep_freed()
        self.worker = worker
        self.sessions: dict[str, Session] = {}
        worker.handlers["fnarray_session"] = self.session
        worker.handlers["fnarray_peer"] = self.peer

    def teardown(self, worker: Any) -> None:
        """End all sessions."""
        for session in list(self.sessions.values()):
            session.end()

    async def session(self, comm: Any, token: str) -> str:
        """Serve a client until its comm is closed."""
        stream = Stream(comm)
        session = self.sessions[token] = Session(self.worker, stream, token)
        stream.send({"op": "hello"})
        try:
            await stream.read(session.receive)
        finally:
            session.end()
            self.sessions.pop(token, None)
        return _NO_REPLY

    async def peer(self, comm: Any, token: str, offer: Sequence[Any] | None) -> str:
        """Take what another worker sends to a session, which must know its secret token."""
        session = self.sessions.get(token)
        if session is None:
            comm.abort()
            return _NO_REPLY
        queue, answer = None, None
        if ranks.world is not None and offer and len(offer) == 1:
            queue = Queue(ranks.Records(offer[0], token), polled=True)
            answer = (ranks.world.Get_rank(),)
        elif offer and len(offer) > 1 and (ring := Ring.opened(found := Offer(*offer))):
            queue = Queue(ring, process=found.process)
            lends = readable(found.process, found.address, found.secret)
            answer = (os.getpid(), session.inbox.bell.descriptor, lends)
        if queue is None:
            await comm.write(answer)
            await Stream(comm).read(session.inbox.put)
            return _NO_REPLY
        session.inbox.add(queue)
        try:
            await comm.write(answer)
            await Stream(comm).read(session.inbox.put)
        finally:
            session.inbox.remove(queue)
        return _NO_REPLY


_NO_REPLY: Any = "dont-reply"
#: Bytes of freed memory that a worker keeps, and of the largest array that is made of it.
KEPT, REUSED = 32 << 20, 16 << 20
#: Bytes that nobody counts: messages under way, compilers. With 32 MB workers were killed.
SPARE = 64_000_000


def keep_freed() -> None:
    """Keep freed memory of this process for the next arrays.

    Dask lets its workers give all of it back (``MALLOC_TRIM_THRESHOLD_``): an array of 1 MB took
    0.5 ms, most of it the system's, which hands out pages of zeros; and 0.024 ms with what is kept.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # not GNU's library
        return
    mallopt(-1, KEPT)  # M_TRIM_THRESHOLD
    mallopt(-3, REUSED)  # M_MMAP_THRESHOLD


class Session:
    """One client's arrays and programs on one worker."""

    def __init__(self, worker: Any, stream: Stream, token: str):
        self.worker = worker
        self.stream = stream
        self.token = token
        self.loop = asyncio.get_running_loop()
        self.store: dict[str, np.ndarray] = {}
        self.programs: dict[str, ClosedGraph | Exception] = {}
        self.groups: dict[str, Sequence[str]] = {}
        self.inbox = Inbox()
        self.kernels = Kernels(self.reply)
        # In the client's own process kernels are in memory.
        self.shares = bool(worker.nanny) or ranks.world is not None
        if self.shares:
            store.others = clients
            clients.front(self.kernels)
        self.peers: dict[str, asyncio.Task[Stream]] = {}
        self.queues: dict[str, Queue | None] = {}
        self.readers: dict[str, asyncio.Task[None]] = {}
        self.jobs: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        threading.Thread(target=self._work, name="fnarray-session", daemon=True).start()

    # ---- messages, on the event loop ----

    def receive(self, message: dict[str, Any]) -> None:
        """Take a message of the client."""
        op = message["op"]
        if op == "abort":
            self.inbox.abort(message["runs"])
        elif op == "finished":
            self.inbox.finished(message["run"], dict(message["sent"]))
        elif op == "kernel":
            self.kernels.answer(message["key"], message["data"])
        else:
            self.jobs.put(message)

    def end(self) -> None:
        """Free everything."""
        self.inbox.close()
        self.kernels.close()
        clients.remove(self.kernels)
        self.jobs.put(None)
        for task in self.peers.values():
            task.cancel()
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().close()

    def reply(self, message: dict[str, Any]) -> None:
        """Answer the client, from any thread."""
        self.loop.call_soon_threadsafe(self.stream.send, message)

    def send(
        self, address: str, message: dict[str, Any], flushed: Callable[[], None] | None = None
    ) -> None:
        """Send to another worker of the client, from any thread."""
        asyncio.run_coroutine_threadsafe(self._send(address, message, flushed), self.loop)

    def queue_to(self, address: str) -> Queue | None:
        """Return the queue to a worker on this machine, None to others; from any thread.

        Raises
        ------
        MeetingLost
            It cannot be reached.
        """
        if address not in self.queues:
            try:
                asyncio.run_coroutine_threadsafe(self._stream_to(address), self.loop).result()
            except (OSError, asyncio.CancelledError) as error:
                raise MeetingLost(f"{address} cannot be reached: {error}") from error
        return self.queues.get(address)

    async def _send(self, address: str, message: dict[str, Any], flushed: Any) -> None:
        try:
            (await self._stream_to(address)).send(message, flushed=flushed)
        except OSError as error:
            self.inbox.abort([message["run"]], f"{address} cannot be reached: {error}")

    async def _stream_to(self, address: str) -> Stream:
        task = self.peers.get(address)
        if task is None or (task.done() and (task.exception() or task.result().closed)):
            task = self.peers[address] = asyncio.ensure_future(self._connected(address))
        return await task

    async def _connected(self, address: str) -> Stream:
        comm = await connect(address, **self.worker.connection_args)
        ring, offer = None, None
        if ranks.world is not None:
            offer = (ranks.world.Get_rank(),)
        elif SHARED:
            ring, secret = Ring.made()
            bell = self.inbox.bell.descriptor
            offer = Offer(os.getpid(), ring.memory, bell, secret, ring.address)
        await comm.write(
            {"op": "fnarray_peer", "token": self.token, "offer": offer, "reply": False}
        )
        answer, queue = await comm.read(), None
        if answer is not None and ring is not None:
            process, bell, lends = answer
            ring.answer(process, bell)
            queue = Queue(ring, lends=lends)
        elif answer is not None:
            queue = Queue(ranks.Records(answer[0], self.token))
        self.queues[address] = queue
        stream = Stream(comm, lambda: self.queues.pop(address, None))
        self.readers[address] = asyncio.ensure_future(stream.read(self.inbox.put))
        return stream

    # ---- jobs, on the session's thread ----

    def _work(self) -> None:
        jobs: dict[str, Callable[..., dict[str, Any]]] = {
            "put": self._put,
            "make": self._make,
            "adopt": self._adopt,
            "get": self._get,
            "run": self._run,
            "move": self._move,
            "free": self._free,
            "program": self._program,
            "group": self._group,
            "save": self._save,
        }
        while (job := self.jobs.get()) is not None:
            op, number = job.pop("op"), job.pop("id", None)
            try:
                self._check(job)
                found = jobs[op](**job)
            except MeetingLost as error:
                found = {"lost": str(error)}
            except _MissingInput as error:
                found = {"missing": str(error)}
            except BaseException as error:
                if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
                    error.add_note(f"The memory of {self._where()}: {self._holdings()}.")
                found = {"error": packed_error(error)}
            if number is not None and not self.inbox.closed:
                self.reply({"id": number, **found})
        self.store.clear()

    def _check(self, job: dict[str, Any]) -> None:
        if job.get("run") in self.inbox.aborted:
            raise MeetingLost("stopped before it began")

    def _check_room(self, need: int) -> None:
        """Raise `MemoryError` before a limit is passed at which the worker's nanny kills it."""
        most = self.worker.memory_manager.memory_limit
        killed_at = int((most or 0) * (configured("distributed.worker.memory.terminate") or 1))
        if not killed_at or not need:
            return
        used = psutil.Process().memory_info().rss
        if used + need + SPARE > killed_at:
            raise MemoryError(
                f"{self._where()} would need {need / 1e6:.1f} MB more than the "
                f"{used / 1e6:.1f} MB it uses, and would be killed at {killed_at / 1e6:.1f} MB; "
                f"{self._holdings()}. Use jit, which makes no arrays between operations, more "
                "workers, smaller blocks, or a larger memory_limit."
            )

    def _where(self) -> str:
        return f"worker {self.worker.name} ({self.worker.address})"

    def _holdings(self) -> str:
        held = sum(x.nbytes for x in self.store.values())
        return f"it holds {len(self.store)} arrays of {held / 1e6:.1f} MB"

    def _array(self, what: Any) -> np.ndarray:
        if isinstance(what, str):
            try:
                return self.store[what]
            except KeyError:
                raise _MissingInput(what) from None
        return unpacked(what)

    def _put(self, key: str, data: dict[str, Any]) -> dict[str, Any]:
        self.store[key] = unpacked(data)
        return {}

    def _make(self, key: str, fun: bytes, shape: Sequence[int], dtype: str | None) -> Any:
        if (known := self.store.get(key)) is not None:  # it was lost elsewhere, and is the same
            return {"dtype": known.dtype.name}
        if dtype is not None:
            self._check_room(prod(shape) * dtype_named(dtype).itemsize)
        part = cloudpickle.loads(fun)
        try:
            made = np.asarray(part())
        except BaseException as error:
            error.add_note(f"Raised by {part}, on {self._where()}.")
            raise
        wanted = made.dtype if dtype is None else dtype_named(dtype)
        if made.shape != tuple(shape):
            raise ValueError(
                f"{part} must return an array of shape {tuple(shape)}, got {made.shape}, on "
                f"{self._where()}."
            )
        self.store[key] = native(made, wanted)
        return {"dtype": wanted.name}

    def _adopt(self, key: str, future: Any) -> dict[str, Any]:
        future = tuple(future) if isinstance(future, list) else future
        made = np.asarray(self.worker.data[future])
        self.store[key] = native(made, made.dtype)
        return {}

    def _get(self, key: str) -> dict[str, Any]:
        return {"data": packed(self._array(key))}

    def _free(self, keys: Sequence[str]) -> dict[str, Any]:
        for key in keys:
            self.store.pop(key, None)
        return {}

    def _program(self, digest: str, data: bytes) -> dict[str, Any]:
        try:
            self.programs[digest] = loaded(data)
        except Exception as error:  # whatever is in a pickle: the first run of it tells
            self.programs[digest] = error
        return {}

    def _group(self, name: str, addresses: Sequence[str]) -> dict[str, Any]:
        self.groups[name] = addresses
        return {}

    def _save(self, key: str, write: bytes) -> dict[str, Any]:
        cloudpickle.loads(write)(self._array(key))
        return {}

    def _run(
        self,
        run: str,
        program: str,
        name: str,
        ins: Sequence[Any],
        outs: Sequence[str | None],
        group: str,
        rank: int,
        axes: Sequence[Sequence[Any]],
    ) -> dict[str, Any]:
        start = time.perf_counter()
        graph = self.programs[program]
        if isinstance(graph, Exception):
            graph.add_note(
                f"Reading {name} on worker {self.worker.name}: what it uses must be there, too."
            )
            raise graph
        self._free([key for key in outs if key is not None])  # what was lost elsewhere
        arrays = [self._array(x) for x in ins]
        if self.shares:
            clients.front(self.kernels)
        self._check_room(executable(graph).memory["peak_bytes"])
        addresses = self.groups[group]
        world = RemoteWorld(self, run, addresses, rank, [n for _, n in axes])
        place = np.unravel_index(rank, [n for _, n in axes])
        saved = here.world, here.place, here.sharing
        here.world = world
        here.place = tuple((a, int(i), n) for (a, n), i in zip(axes, place, strict=True))
        # Kernels are serial, as on local devices: with more cores start more workers.
        here.sharing = max(world.count, 1 << 16)
        try:
            results = hooks.compiled_call(graph, arrays)
        except MeetingLost:
            raise
        except BaseException as error:
            error.add_note(f"Raised in shard {rank} of {name}, on {self._where()}.")
            raise
        finally:
            here.world, here.place, here.sharing = saved
            self.inbox.forget(run)
            self.kernels.settle()
        for key, x in zip(outs, results, strict=True):
            if key is not None:
                self.store[key] = np.asarray(x)
        return {"sent": list(world.sent.items()), "seconds": time.perf_counter() - start}

    def _move(
        self,
        run: str,
        group: str,
        rank: int,
        sends: Sequence[tuple[int, str, Sequence[Any]]],
        makes: Sequence[tuple[str, Sequence[int], str, Sequence[tuple[int, Sequence[Any]]]]],
    ) -> dict[str, Any]:
        """Send parts of arrays to members of a group, and put arrays together of what comes."""
        addresses = self.groups[group]
        world = RemoteWorld(self, run, addresses, rank, [len(addresses)])
        self._free([key for key, *_ in makes])
        self._check_room(sum(prod(s) * dtype_named(d).itemsize for _, s, d, _ in makes))
        own: list[np.ndarray] = []
        try:
            for to, key, index in sends:
                part = self._array(key)[tuple(slice(*s) for s in index)]
                if to == rank:
                    own.append(part)
                else:
                    world.post("move", to, np.ascontiguousarray(part), "move")
            given = iter(own)
            for key, shape, dtype, parts in makes:
                whole = np.empty(tuple(shape), dtype_named(dtype))
                for source, index in parts:
                    part = next(given) if source == rank else world.take("move", source, "move")
                    whole[tuple(slice(*s) for s in index)] = part
                self.store[key] = whole
            world.flush()
        finally:
            self.inbox.forget(run)
        return {"sent": list(world.sent.items())}


class _MissingInput(Exception):
    """An array that a job takes is not here: what should have made it failed."""
