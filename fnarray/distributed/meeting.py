"""Where shards of different processes meet: each sends what the others need, and waits for theirs.

Nobody waits for ever: a wait ends when the message comes, when the client says that the run is
over (a member was lost, or failed), or when a member has ended without having sent it.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from ..threads.patterns import Pattern
from ..threads.shards import World, here, shown
from .exchange import Borrow, Receive, Send, exchange
from .queues import Queue, lasting
from .rings import Bell
from .windows import MeetingLost
from .wire import COPIED, decoded, encoded

#: Seconds between looks at queues that ring no bell.
POLL = 0.0002


class Inbox:
    """Messages that have come from other workers, by run, meeting and sender.

    Those of the network are `put` here; those of shared memory are read by whoever waits.
    """

    def __init__(self) -> None:
        self.closed = False
        self.aborted: dict[str, str] = {}
        self.bell = Bell()
        self._arrived = threading.Condition()
        self._boxes: dict[str, dict[tuple[str, int], deque[dict[str, Any]]]] = defaultdict(dict)
        self._received: dict[str, Counter[int]] = defaultdict(Counter)
        self._sent: dict[str, dict[int, int]] = defaultdict(dict)
        self._queues: list[Queue] = []
        self._reading = False

    def add(self, queue: Queue) -> None:
        """Read a queue from now on."""
        with self._arrived:
            self._queues.append(queue)
            self._wake()

    def remove(self, queue: Queue) -> None:
        """Read a queue no more: its writer is gone."""
        with self._arrived:
            self._queues = [q for q in self._queues if q is not queue]

    def put(self, message: dict[str, Any]) -> None:
        """Take a message of another worker."""
        with self._arrived:
            run, source = message["run"], message["from"]
            if run in self.aborted:
                return
            self._boxes[run].setdefault((message["tag"], source), deque()).append(message)
            self._received[run][source] += 1
            self._wake()

    def _wake(self) -> None:
        self._arrived.notify_all()
        self.bell.ring()

    def take(self, run: str, tag: str, source: int, what: str) -> dict[str, Any]:
        """Wait for the next message of a member for one meeting."""

        def ready() -> dict[str, Any] | None:
            if box := self._boxes[run].get((tag, source)):
                return box.popleft()
            if self._received[run][source] == self._sent[run].get(source, -1):
                raise RuntimeError(
                    f"pmap: some shards wait in a collective that the others never reach "
                    f"({what}: shard {source} has ended). Collectives inside cond or "
                    "while_loop must be reached by all shards: let their predicates be the "
                    "same on all, by psum or pmax."
                )
            return None

        return self.wait(run, ready, (run, tag, source))

    def wait(self, run: str, ready: Callable[[], Any], wanted: Any = None) -> Any:
        """Return what ``ready`` does, once that is not None; or the message that is wanted.

        Meanwhile what others send is read: who waits for room may be what they wait for.
        """
        self.release()
        while True:
            with self._arrived:
                if self.closed or run in self.aborted:
                    raise MeetingLost(self.aborted.get(run, "the client has gone"))
                if (found := ready()) is not None:
                    return found
                if self._reading:
                    self._arrived.wait(0.05)
                    continue
                self._reading = True
                queues = list(self._queues)
            try:
                found, more = self._read(queues, wanted)
                if not more:
                    self.bell.wait(POLL if any(q.polled for q in queues) else 1.0)
            finally:
                with self._arrived:
                    self._reading = False
                    self._arrived.notify_all()
            if found is not None:
                return found

    def _read(self, queues: Iterable[Queue], wanted: Any) -> tuple[dict[str, Any] | None, bool]:
        """Read what has come; return the message that is wanted, and whether there was any."""
        more, me = False, threading.get_ident()
        for queue in queues:
            while queue.user in (None, me) and (message := queue.next()) is not None:
                more = True
                run, source = message["run"], message["from"]
                if (run, message["tag"], source) == wanted:
                    with self._arrived:
                        self._received[run][source] += 1
                    queue.user = me
                    return message, True
                lasting(message)
                self.put(message)
        return None, more

    def release(self) -> None:
        """Give back the memory of what this thread got last."""
        for queue in self._queues:
            if queue.user == threading.get_ident():
                queue.release()

    def finished(self, run: str, sent: dict[int, int]) -> None:
        """Note how many messages members that have ended sent here, by member."""
        with self._arrived:
            self._sent[run].update(sent)
            self._wake()

    def abort(self, runs: Iterable[str], why: str = "stopped by the client") -> None:
        """Release whoever waits for messages of these runs."""
        with self._arrived:
            for run in runs:
                self.aborted[run] = why
                self._drop(run)
            while len(self.aborted) > 10_000:
                del self.aborted[next(iter(self.aborted))]
            self._wake()

    def forget(self, run: str) -> None:
        """Free what is left of a run that is over."""
        with self._arrived:
            self._drop(run)

    def _drop(self, run: str) -> None:
        for table in (self._boxes, self._received, self._sent):
            table.pop(run, None)

    def close(self) -> None:
        """Release everybody."""
        with self._arrived:
            self.closed = True
            self._boxes.clear()
            self._queues.clear()
            self._wake()


class RemoteWorld(World):
    """The shards of one program, each in a process of its own.

    Parameters
    ----------
    session : Session
    run : str
        Of all shards' messages.
    addresses : sequence of str
        Of the workers, by rank.
    rank : int
    sizes : sequence of int
        Of the program's axes, the last runs fastest.
    """

    def __init__(
        self, session: Any, run: str, addresses: Sequence[str], rank: int, sizes: Sequence[int]
    ):
        super().__init__()
        self.session, self.run, self.addresses, self.rank = session, run, addresses, rank
        self.count = len(addresses)
        self.sent: Counter[int] = Counter()
        self._sizes = tuple(sizes)
        self._turns: Counter[Any] = Counter()
        self._pending = 0
        self._flushed = threading.Condition()
        self._lent: dict[int, list[np.ndarray]] = defaultdict(list)
        self._read: Counter[int] = Counter()

    def elsewhere(self, axes: Sequence[int]) -> bool:
        """Whether axes are of the program; those of maps inside of it are of this process."""
        return any(k < len(self._sizes) for k in axes)

    def exchange(
        self, key: tuple[Any, ...], what: tuple[Any, ...], index: int, value: Any, pattern: Pattern
    ) -> Any:
        """Meet shards in other processes."""
        names, members, _ = key
        with self.lock:
            turn = self._turns[key]
            self._turns[key] += 1
        tag = blake2b(f"{key} {turn}".encode(), digest_size=12).hexdigest()
        ranks = self._ranks(names, members)
        steps = exchange(members.index(index), len(members), np.asarray(value), pattern)
        seen, got = shown(what), None
        try:
            while True:
                step = steps.send(got)
                if type(step) is Send:
                    self.post(tag, ranks[step.to], step.data, seen)
                    got = None
                else:
                    got = self._received(tag, ranks[step.source], seen, step)
        except StopIteration as done:
            self.flush()
            return done.value

    def _ranks(self, names: Sequence[Any], members: Sequence[int]) -> list[int]:
        """Return the ranks of those that meet along axes, in their order."""
        place = {name: k for k, (name, _, _) in enumerate(here.place)}
        along = [place[n] for n in names]
        if any(k >= len(self._sizes) for k in along):
            raise NotImplementedError(
                f"a collective over {', '.join(map(str, names))}, some of which are axes of a map "
                "inside of one worker. Take it over one after the other."
            )
        at = [here.place[k][1] for k in range(len(self._sizes))]
        ranks: list[int] = []
        for member in members:
            spot = np.unravel_index(member, [self._sizes[k] for k in along])
            for k, i in zip(along, spot, strict=True):
                at[k] = int(i)
            ranks.append(int(np.ravel_multi_index(at, self._sizes)))
        return ranks

    def post(self, tag: str, to: int, data: Any, what: str) -> None:
        """Send an array, or a dict of small ones, to a member."""
        message = {"run": self.run, "tag": tag, "from": self.rank, "what": what}
        self.sent[to] += 1
        address = self.addresses[to]
        if (queue := self.session.queue_to(address)) is not None:
            inbox = self.session.inbox
            with queue.lock:
                lent = queue.write(message, data, lambda ready: inbox.wait(self.run, ready))
            if lent is not None:
                self._lent[to].append(lent)
            return
        held = isinstance(data, np.ndarray) and data.nbytes > COPIED  # see `flush`
        if held:
            with self._flushed:
                self._pending += 1
        message["data"] = encoded(data)
        self.session.send(address, message, self._one_flushed if held else None)

    def take(self, tag: str, source: int, what: str) -> Any:
        """Wait for data of a member."""
        return self._received(tag, source, what, Receive(source))

    def _received(self, tag: str, source: int, what: str, step: Receive | Borrow) -> Any:
        message = self.session.inbox.take(self.run, tag, source, what)
        if message["what"] != what:
            raise RuntimeError(
                f"pmap: shards met for different collectives: {message['what']} and {what}. All "
                "must reach the same ones in the same order."
            )
        if (window := message.get("window")) is not None:
            self._read[source] += 1
            if isinstance(step, Borrow):
                return window
            return window.array() if step.into is None else window.into(step.into)
        if step.lasting:
            lasting(message)
        found = decoded(message["data"])
        if isinstance(step, Receive) and step.into is not None:
            step.into[...] = found
        return found

    def flush(self) -> None:
        """Wait until what was sent has left, and what was lent was read: it may be used again."""
        inbox = self.session.inbox
        inbox.release()
        for source, times in self._read.items():
            self.post("read", source, np.array(times), "read")
        self._read.clear()
        for to, arrays in self._lent.items():
            times = 0
            while times < len(arrays):
                times += int(self.take("read", to, "read"))
        self._lent.clear()
        with self._flushed:
            while self._pending and not inbox.closed and self.run not in inbox.aborted:
                self._flushed.wait(1.0)  # an end that nobody tells of is looked for

    def _one_flushed(self) -> None:
        with self._flushed:
            self._pending -= 1
            if not self._pending:
                self._flushed.notify_all()
