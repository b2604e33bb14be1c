"""Programs as bytes, known by their content, and kernels that one process compiles for all.

A program is plain data, as `export` writes it; one that holds Python functions (callbacks) is
pickled, by cloudpickle, as Dask does with functions.
"""

from __future__ import annotations

import io
import json
import logging
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from queue import Empty, SimpleQueue
from typing import Any, cast

import cloudpickle

from ..api.encoding import Unencodable, decoded_graph, encoded_graph, operation
from ..compile.cache import store
from ..control.host import ByIdentity
from ..core.graph import ClosedGraph, Eqn, Graph, Literal, Var
from ..core.primitive import Primitive
from ..ops.kit.registry import registry

#: Seconds that a worker waits for a kernel of another before it compiles it, too: no kernel is
#: worth a program that stands still because the one that was to compile it does something else.
PATIENCE = 5.0
_log = logging.getLogger("fnarray.distributed")
_DATA, _PICKLE = b"D", b"P"


def dumped(graph: ClosedGraph) -> tuple[str, bytes]:
    """Return a program's digest and bytes.

    Raises
    ------
    TypeError
        It holds something that cannot be pickled; the message names it.
    """
    try:
        data = _DATA + zlib.compress(json.dumps(encoded_graph(graph)).encode(), 1)
    except Unencodable as plain:
        try:
            data = _PICKLE + _pickled(graph)
        except Exception as error:
            raise TypeError(
                f"{graph.jaxpr.debug_name} cannot be sent to workers: it holds {plain}, which "
                f"cannot be pickled: {error}. Define what it uses at the top of a module that "
                "workers can import, or pass it as an array."
            ) from error
    return sha256(data).hexdigest()[:32], data


def loaded(data: bytes) -> ClosedGraph:
    """Return the program that `dumped` was given."""
    kind, body = data[:1], data[1:]
    if kind == _PICKLE:
        return cloudpickle.loads(body)
    return decoded_graph(json.loads(zlib.decompress(body)))


class _Pickler(cloudpickle.Pickler):
    """Knows operations by name, as their rules are code of this package."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Primitive) and registry.get(obj.name) is obj:
            return operation, (obj.name,)
        if type(obj) is Var:
            return Var, (obj.aval,)
        if type(obj) is Literal:
            return Literal, (obj.val, obj.aval)
        if type(obj) is ByIdentity:
            return ByIdentity, (obj.value,)
        if type(obj) in (ClosedGraph, Graph, Eqn):
            fields = cast("Any", obj).__dataclass_fields__
            return type(obj), tuple(getattr(obj, name) for name in fields)
        return super().reducer_override(obj)


def _pickled(graph: ClosedGraph) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(graph)
    return file.getvalue()


# ---- kernels -------------------------------------------------------------------------------------


class Kernels:
    """On a worker: asks the client for kernels that are not on disk, and tells it of new ones.

    Parameters
    ----------
    send : callable
        Sends a message to the client, from any thread.
    """

    def __init__(self, send: Callable[[dict[str, Any]], None]):
        self._send = send
        self._waiting: dict[str, list[SimpleQueue[bytes | None]]] = {}
        self._promised: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False

    def get(self, key: str) -> bytes | None:
        """Return a kernel that another process has compiled; None asks this one to."""
        answer: SimpleQueue[bytes | None] = SimpleQueue()  # one each: two may ask for one kernel
        with self._lock:
            if self._closed:
                return None
            self._waiting.setdefault(key, []).append(answer)
        self._send({"op": "kernel", "key": key})
        try:
            data = answer.get(timeout=PATIENCE)
        except Empty:
            data = None
            _log.warning("kernel %s: none came for %g s; it is compiled here, too", key, PATIENCE)
            with self._lock, suppress(ValueError):
                self._waiting[key].remove(answer)
        if data is None:
            self._promised.add(key)
        return data

    def put(self, key: str, payload: bytes | None) -> None:
        """Let others have a kernel; None tells that they will not get it from here."""
        self._promised.discard(key)
        self._send({"op": "compiled", "key": key, "data": payload})

    def promised(self, key: str) -> bool:
        """Whether others may wait for a kernel that was to be compiled here."""
        return key in self._promised

    def settle(self) -> None:
        """Release those who wait for what was not compiled after all."""
        for key in list(self._promised):
            self.put(key, None)

    def answer(self, key: str, data: bytes | None) -> None:
        """Take the client's answer to the oldest request for a kernel."""
        with self._lock:
            if waiting := self._waiting.get(key):
                waiting.pop(0).put(data)

    def close(self) -> None:
        """Answer nobody any more."""
        with self._lock:
            self._closed = True
            for answer in (a for waiting in self._waiting.values() for a in waiting):
                answer.put(None)
            self._waiting.clear()


class Clients:
    """On a worker: those to whom its kernels go, as several clients may use one worker at a time.

    Whose program began last is asked. Another one who waits for a kernel of this worker gets it
    too: who waited for an answer that went to someone else waited for as long as `PATIENCE`.
    """

    def __init__(self) -> None:
        self._all: tuple[Kernels, ...] = ()

    def front(self, kernels: Kernels) -> None:
        """Ask this one from now on."""
        if self._all[-1:] != (kernels,):
            self._all = (*(k for k in self._all if k is not kernels), kernels)

    def remove(self, kernels: Kernels) -> None:
        """Forget one that is closed."""
        self._all = tuple(k for k in self._all if k is not kernels)

    def get(self, key: str) -> bytes | None:
        """Return a kernel of another process; None asks this one to compile it."""
        return self._all[-1].get(key) if self._all else None

    def put(self, key: str, payload: bytes) -> None:
        """Let others have a kernel."""
        for k in self._all:
            if k is self._all[-1] or k.promised(key):
                k.put(key, payload)

    def found(self, key: str, payload: bytes) -> None:
        """Hand on what was to be compiled here, and came to the disk by another process."""
        for k in self._all:
            if k.promised(key):
                k.put(key, payload)


clients = Clients()


class Directory:
    """On the client: which kernels there are, and who compiles one that others wait for."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}
        self._waiting: dict[str, tuple[Any, list[Any]]] = {}
        self.compiled: dict[str, int] = {}

    def asked(self, key: str, link: Any) -> None:
        """Answer a worker, or let it wait for the one that compiles."""
        data = self._known.get(key) or store.get(key)
        if data is not None:
            link.send({"op": "kernel", "key": key, "data": data})
        elif key in self._waiting and not self._waits(self._waiting[key][0], link):
            self._waiting[key][1].append(link)
        else:  # a worker that would wait for itself, through others or not, compiles it as well
            self._waiting.setdefault(key, (link, []))
            link.send({"op": "kernel", "key": key, "data": None})

    def _waits(self, link: Any, other: Any) -> bool:
        """Whether a worker is another one, or waits for it, through others or not."""
        reached: list[Any] = [link]
        for one in reached:
            if one is other:
                return True
            owners = [owner for owner, waiting in self._waiting.values() if one in waiting]
            reached += [owner for owner in owners if owner not in reached]
        return False

    def given(self, key: str, data: bytes | None) -> None:
        """Hand a new kernel to those that wait for it; None lets the next compile it."""
        if data is None:
            for other in self._waiting.pop(key, (None, []))[1]:
                self.asked(key, other)
            return
        self._known[key] = data
        self.compiled[key] = self.compiled.get(key, 0) + 1
        _, others = self._waiting.pop(key, (None, []))
        for link in others:
            link.send({"op": "kernel", "key": key, "data": data})

    def gone(self, link: Any) -> None:
        """Forget a worker that was lost."""
        for key, (owner, others) in self._waiting.items():
            self._waiting[key] = owner, [other for other in others if other is not link]
        self.failed(link)

    def failed(self, link: Any) -> None:
        """Let the next in turn compile what a worker was to compile."""
        for key, (owner, others) in list(self._waiting.items()):
            if owner is link:
                del self._waiting[key]
                for other in others:
                    self.asked(key, other)
