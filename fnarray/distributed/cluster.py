"""The client's side: devices that are workers, and steps that run on them until they are done.

Steps are started in order, and not waited for until a value is asked for. When a worker is lost,
what arrays still refer to is computed again from what it came from, step by step, as a whole.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NoReturn

import cloudpickle

from ..errors import WorkerLost
from ..runtime.device import Device
from .anchors import anchor
from .devices import WorkerDevice
from .lineage import DONE, FAILED, LOST, PENDING, Launch, Node
from .links import Link, check_scheduler
from .programs import Directory

#: Steps that may be under way: what is queued holds its arguments.
IN_FLIGHT = 64
#: Seconds after which it is logged who is waited for; and again each time that has doubled.
SLOW = 30.0
#: How often a step is run again because a worker was lost on it.
ATTEMPTS = 5


_log = logging.getLogger("fnarray.distributed")


class Cluster:
    """A connection to the workers of a Dask cluster; made by `connect`.

    Attributes
    ----------
    client : distributed.Client
    devices : list of WorkerDevice
    """

    def __init__(
        self, client: Any, token: str, names: Sequence[Any], timeout: float | None,
        patience: float, lineage: int, own: Sequence[Any],
    ):  # fmt: skip
        self.client = client
        self.token = token
        self.timeout = timeout
        self.patience = patience
        self.lineage = lineage
        self.directory = Directory()
        self.links = [Link(self, k, name) for k, name in enumerate(names)]
        self.devices: list[Device] = [
            WorkerDevice(k, str(name), token) for k, name in enumerate(names)
        ]
        self.closed = False
        self.loop = client.loop.asyncio_loop
        self._own = list(own)
        self._lock = threading.RLock()
        self._under_way: deque[Launch] = deque()

    # ---- state ----

    @property
    def dashboard_link(self) -> str:
        """Address of Dask's dashboard."""
        return self.client.dashboard_link

    def epochs(self, devices: Iterable[int]) -> tuple[int, ...]:
        """Return how often the workers of devices have changed."""
        return tuple(self.links[d].epoch for d in devices)

    def close(self) -> None:
        """End the connection; workers free what they hold, and a cluster made by `connect` ends."""
        if self.closed:
            return
        self.closed = True
        if not self.loop.is_closed():
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._hang_up)
        for thing in self._own:
            thing.close()

    def _hang_up(self) -> None:
        for link in self.links:
            link.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Cluster of {len(self.devices)} workers: {self.client.scheduler.address}>"

    # ---- steps ----

    def start(self, node: Node) -> Node:
        """Start a step; what it takes is made again first, where it was lost."""
        with self._lock:
            self._check_open()
            self._throttle()
            lost = [(n, k) for n, k in node.recipe.inputs if not n.available(k)]
            if lost:
                self._recover(lost)
            self.bring_up(node.devices)
            self.launched(node)
            self._anchor(node)
        return node

    def _throttle(self) -> None:
        while len(self._under_way) >= IN_FLIGHT:
            launch = self._under_way.popleft()
            self._await(launch)

    def launched(self, node: Node) -> Launch:
        """Send each device of a step its message; all that it takes is there."""
        node.recipe.prepare(node)
        node.attempts += 1
        run = f"{node.number}.{node.attempts}"
        launch = node.launch = Launch(run, node.devices)
        node.epochs = self.epochs(node.devices)
        addresses = [self.links[d].address for d in node.devices]
        group = sha256(repr(addresses).encode()).hexdigest()[:16]
        orders: list[tuple[Link, list[dict[str, Any]], int | None]] = []
        for rank, d in enumerate(node.devices):
            link, messages = self.links[d], []
            message = node.recipe.message(node, rank)
            if message is None:
                launch.waiting.discard(rank)
                continue
            if message["op"] in ("run", "move"):
                message |= {"run": run, "group": group}
                if link.knows(group):
                    messages.append({"op": "group", "name": group, "addresses": addresses})
            for digest, data in node.recipe.programs.items():
                if link.knows(digest):
                    messages.append({"op": "program", "digest": digest, "data": data})
            messages.append(message)
            link.held.update((node.key(k), node.nbytes(k)) for k in node.kept)
            orders.append((link, messages, rank))
        if not launch.waiting:
            launch.end(DONE)
        self._under_way.append(launch)
        self.loop.call_soon_threadsafe(self._send, launch, orders)
        return launch

    def _send(self, launch: Launch, orders: Sequence[Any]) -> None:
        for link, messages, rank in orders:
            link.request(messages, launch, rank)

    def replied(self, launch: Launch, rank: int, message: dict[str, Any]) -> None:
        """Take a device's answer; on the event loop."""
        launch.waiting.discard(rank)
        if "error" in message:
            error = cloudpickle.loads(message["error"])
            self.directory.failed(self.links[launch.devices[rank]])
            self._end(launch, FAILED, error)
        elif "lost" in message or "missing" in message:
            self._end(launch, LOST, why=message.get("lost") or f"no {message['missing']}")
        else:
            launch.replies[rank] = message
            if not launch.waiting:
                launch.end(DONE)
            elif "sent" in message:
                launch.sent[rank] = dict(message["sent"])
                if len(launch.sent) == 1:
                    self.loop.call_later(1.0, self._tell_finished, launch)

    def _tell_finished(self, launch: Launch) -> None:
        """Tell those that still run which messages of those that have ended will come."""
        if launch.status != PENDING:
            return
        for rank in launch.waiting:
            sent = [(k, to.get(rank, 0)) for k, to in launch.sent.items()]
            self.links[launch.devices[rank]].send(
                {"op": "finished", "run": launch.run, "sent": sent}
            )
        self.loop.call_later(2.0, self._tell_finished, launch)

    def _end(self, launch: Launch, status: str, error: Any = None, why: str = "") -> None:
        """End a launch that has failed, and release those of its devices that wait."""
        launch.end(status, error, why)
        for d in launch.devices:
            self.links[d].send({"op": "abort", "runs": [launch.run]})

    def lost(self, link: Link, launches: Iterable[Launch]) -> None:
        """Note that a worker's comm is closed; on the event loop."""
        self.directory.gone(link)
        for launch in launches:
            self._end(launch, LOST, why=f"worker {link.name} ({link.address}) was lost")

    # ---- waiting ----

    def _await(self, launch: Launch) -> None:
        """Wait until a launch is over, however it ends."""
        begun, told = time.monotonic(), SLOW
        try:
            while not launch.over.wait(min(0.5, told)):
                self._check_open()
                waited = time.monotonic() - begun
                if self.timeout is not None and waited > self.timeout:
                    raise TimeoutError(
                        f"fnarray.distributed: no answer of {self._waiting(launch)} for "
                        f"{self.timeout:g} s (step {launch.run}). A step that takes longer needs "
                        "connect(timeout=...); what workers do is in their logs, and on the "
                        f"dashboard: {self.dashboard_link}"
                    )
                if waited > told:
                    _log.warning(
                        "step %s: waiting for %s since %.0f s; %d others have answered",
                        launch.run, self._waiting(launch), waited, len(launch.replies),
                    )  # fmt: skip
                    told *= 2
        except BaseException:  # the user's interrupt too
            self.loop.call_soon_threadsafe(self._end, launch, LOST, None, "interrupted")
            raise

    def _waiting(self, launch: Launch) -> str:
        """Return who has not answered, and what he holds."""
        links = [self.links[launch.devices[r]] for r in sorted(launch.waiting)]
        return ", ".join(
            f"worker {k.name} ({k.address}, {sum(k.held.values()) / 1e6:.1f} MB)" for k in links
        )

    def wait(self, node: Node) -> None:
        """Wait until a step is done, run again as often as workers are lost.

        Raises
        ------
        Exception
            What a device raised; a note tells which.
        WorkerLost
            It cannot be done again.
        """
        while True:
            launch = node.launch
            assert launch is not None
            self._await(launch)
            if launch.status == DONE and self.epochs(node.devices) == node.epochs:
                return
            if launch.status == FAILED:
                assert launch.error is not None
                raise launch.error
            if not node.kept:
                return
            with self._lock:
                if node.launch is launch:
                    self._recover([(node, k) for k in sorted(node.kept)])

    def ask(self, number: int, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return one device's answer to a message; None where its worker is lost meanwhile."""
        launch = Launch("", [number])
        self.loop.call_soon_threadsafe(self._send, launch, [(self.links[number], [message], 0)])
        self._await(launch)
        if launch.status == FAILED:
            assert launch.error is not None
            raise launch.error
        return launch.replies[0] if launch.status == DONE else None

    def do(self, node: Node, k: int, rank: int, message: dict[str, Any]) -> dict[str, Any]:
        """Return what a device says to a message about a result, which is there by then."""
        while True:
            self.wait(node)
            found = self.ask(node.devices[rank], message)
            if found is not None:
                return found
            with self._lock:
                if not node.available(k):
                    self._recover([(node, k)])

    def read(self, node: Node, k: int, rank: int) -> dict[str, Any]:
        """Return a block of a result, as bytes."""
        return self.do(node, k, rank, {"op": "get", "key": node.key(k)})["data"]

    # ---- loss ----

    def _recover(self, targets: Sequence[tuple[Node, int]]) -> None:
        """Make results available again; the lock is held."""
        for _ in range(ATTEMPTS):
            self._check_open()
            need: dict[Node, set[int]] = {}
            work = list(targets)
            while work:
                node, k = work.pop()
                if node.available(k):
                    continue
                self._raise_failure(node)
                if node not in need:
                    work.extend(node.recipe.inputs)
                need.setdefault(node, set()).add(k)
            if not need:
                return
            order = sorted(need, key=lambda node: node.number)
            self.bring_up(sorted({d for node in order for d in node.devices}))
            for node in order:
                node.kept |= need[node]
                self.launched(node)
            for node in order:
                launch = node.launch
                assert launch is not None
                self._await(launch)
                self._raise_failure(node)
                if launch.status == DONE:
                    node.recipe.restored(node)
            self._release(order)
            if all(node.available(k) for node, k in targets):
                return
        self._give_up(targets)

    def _raise_failure(self, node: Node) -> None:
        launch = node.launch
        if launch is not None and launch.status == FAILED:
            assert launch.error is not None
            raise launch.error

    def _release(self, nodes: Iterable[Node]) -> None:
        """Free what was made again on the way alone."""
        for node in nodes:
            if not node.pinned:
                node.free([k for k in sorted(node.kept) if not node.users[k]])

    def _give_up(self, targets: Sequence[tuple[Node, int]]) -> NoReturn:
        node = targets[0][0]
        why = node.launch.why if node.launch else ""
        held = {link.name: link.held_when_lost / 1e6 for link in self.links if link.times_lost}
        raise WorkerLost(
            f"a step was run {ATTEMPTS} times, and a worker was lost each time ({why}). MB that "
            f"the lost workers held: {held}. If it needs more memory than memory_limit, use more "
            "workers or smaller blocks; the workers' logs say more. What checkpoint wrote is "
            "intact."
        )

    def bring_up(self, devices: Iterable[int]) -> None:
        """Connect devices whose workers were lost to the workers that came in their place."""
        for d in devices:
            if not self.links[d].up:
                taken = {link.address for link in self.links if link.up}
                self.links[d].connect(taken, self.patience)

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("fnarray.distributed: the connection is closed. connect() anew.")
        check_scheduler(self.client)

    def _anchor(self, node: Node) -> None:
        """Keep a second copy of a step's results, so that those before it can be forgotten."""
        if node.depth < self.lineage or len(node.devices) < 2 or not node.kept:
            return
        anchor(node)

    def free(self, devices: Sequence[int], keys: Sequence[str]) -> None:
        """Let workers free results; from any thread, in the middle of anything."""
        if self.closed or self.loop.is_closed():
            return
        with contextlib.suppress(RuntimeError):  # the loop is closing
            self.loop.call_soon_threadsafe(self._free, devices, keys)

    def _free(self, devices: Sequence[int], keys: Sequence[str]) -> None:
        for d in devices:
            self.links[d].free(keys)
