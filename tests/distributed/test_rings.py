"""Queues in shared memory: messages come as they were sent, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from fnarray.distributed import exchange, rings
from fnarray.distributed.meeting import Inbox, MeetingLost, RemoteWorld
from fnarray.distributed.queues import Queue, lasting
from fnarray.distributed.rings import Bell, Offer, Ring
from fnarray.distributed.windows import Window, readable
from fnarray.distributed.wire import decoded
from fnarray.threads.patterns import Fold, Route
from fnarray.threads.shards import here

pytestmark = pytest.mark.skipif(not rings.SHARED, reason="memory is shared on x86-64 Linux alone")


def offered(bell):
    """A queue to write, and what a reader needs to open it."""
    ring, secret = Ring.made()
    return ring, Offer(os.getpid(), ring.memory, bell.descriptor, secret, ring.address)


@pytest.fixture
def ends():
    """Both ends of a queue between two inboxes of this process."""
    writer, reader = Inbox(), Inbox()
    ring, offer = offered(writer.bell)
    there = Ring.opened(offer)
    ring.answer(os.getpid(), reader.bell.descriptor)
    reader.add(queue := Queue(there))
    return Queue(ring), writer, queue, reader


def send(queue, inbox, data, tag="t", run="1"):
    message = {"run": run, "tag": tag, "from": 0, "what": "w"}
    queue.write(message, data, lambda ready: inbox.wait(run, ready))


SIZES = [0, 1, 5_000, 16 * 1024 + 1, 1 << 20, (1 << 20) + 3, 3_000_000, 9_000_000]


def test_messages_of_all_sizes_come_in_order(ends):
    """Arrays of a few bytes, of a record, and of more than the queue, through several turns."""
    out, writer, _, reader = ends
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 255, n).astype(np.uint8) for n in rng.permutation(SIZES * 4)]
    arrays += [np.asfortranarray(rng.standard_normal((70, 80))), np.array(3.0), np.ones((2, 0))]

    def run():
        for x in arrays:
            send(out, writer, x)
        send(out, writer, {3: np.arange(3), 1: np.float32(2)})

    thread = threading.Thread(target=run)
    thread.start()
    for x in arrays:
        found = decoded(reader.take("1", "t", 0, "w")["data"])
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, x)
    found = decoded(reader.take("1", "t", 0, "w")["data"])
    assert list(found) == [3, 1]
    np.testing.assert_array_equal(found[3], np.arange(3))
    thread.join()


def test_what_is_not_waited_for_is_kept(ends):
    """Messages of other meetings are there when they are asked for, whatever came after them."""
    out, writer, _, reader = ends
    xs = [np.full(100_000, k, np.float32) for k in range(30)]
    thread = threading.Thread(
        target=lambda: [send(out, writer, x, f"t{k}") for k, x in enumerate(xs)]
    )
    thread.start()
    for k in reversed(range(30)):
        np.testing.assert_array_equal(decoded(reader.take("1", f"t{k}", 0, "w")["data"]), xs[k])
    thread.join()


def test_a_message_is_the_records_memory_until_the_next(ends):
    """What is read is not copied; a copy is what `lasting` makes of it."""
    out, writer, _, reader = ends
    for k in (1, 2, 3):
        send(out, writer, np.full(50_000, k, np.uint8))
    first = reader.take("1", "t", 0, "w")
    assert not first["data"]["data"].flags.owndata
    kept = reader.take("1", "t", 0, "w")
    lasting(kept)
    reader.take("1", "t", 0, "w")
    assert kept["data"]["data"].flags.owndata
    assert set(kept["data"]["data"]) == {2}


def test_who_waits_for_room_is_released(ends):
    """A writer whose reader has stopped ends when the run does; the queue can be used again."""
    out, writer, queue, reader = ends
    threading.Timer(0.1, writer.abort, (["1"],)).start()
    with pytest.raises(MeetingLost):
        send(out, writer, np.zeros(50_000_000, np.uint8))
    while queue.records.read() is not None:  # the part that came
        pass
    send(out, writer, np.arange(100_000), run="2")
    np.testing.assert_array_equal(
        decoded(reader.take("2", "t", 0, "w")["data"]), np.arange(100_000)
    )


def test_a_message_broken_off_is_forgotten(ends):
    """The rest of a message never comes where its writer was stopped: the next one is whole."""
    out, writer, queue, reader = ends

    def stopped(ready):
        raise MeetingLost

    with pytest.raises(MeetingLost):
        out.write({"run": "1", "tag": "t", "from": 0}, np.zeros(9_000_000, np.uint8), stopped)
    assert queue.next() is None
    send(out, writer, np.arange(200_000))
    np.testing.assert_array_equal(
        decoded(reader.take("1", "t", 0, "w")["data"]), np.arange(200_000)
    )


def test_memory_of_another_is_not_opened():
    """A descriptor that is another file, of no process, or without the secret is refused."""
    bell = Bell()
    ring, offer = offered(bell)
    assert Ring.opened(offer._replace(secret=b"x" * 32)) is None
    assert Ring.opened(offer._replace(memory=bell.descriptor)) is None
    assert Ring.opened(offer._replace(process=2**22 + 1)) is None
    assert Ring.opened(offer) is not None
    assert ring.memory >= 0


def test_nothing_is_left_of_a_killed_process():
    """The memory has no name, and ends with those who have it open, however they end."""
    code = (
        "import os, sys, time\nfrom fnarray.distributed.rings import Bell, Ring\n"
        "import numpy as np\nring, secret = Ring.made(); bell = Bell()\n"
        "ring.bell = os.dup(bell.descriptor)\nring.write(b'head', np.ones(1000, np.uint8))\n"
        "print(ring.memory, bell.descriptor, secret.hex(), ring.address, flush=True)\n"
        "time.sleep(100)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        memory, bell, secret, address = other.stdout.readline().split()
        offer = Offer(other.pid, int(memory), int(bell), bytes.fromhex(secret), int(address))
        ring = Ring.opened(offer)
        lent = Window(other.pid, offer.address, np.dtype(np.uint8), (32,))
        if lends := readable(other.pid, offer.address, offer.secret):
            assert lent.array().tobytes() == offer.secret
        own = ring.memory
        assert "memfd:fnarray (deleted)" in str(Path(f"/proc/self/fd/{own}").readlink())
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    if lends:
        with pytest.raises(MeetingLost, match="cannot be read"):
            lent.array()
    head, payload = ring.read()  # what was written is whole, and can still be read
    assert head == b"head"
    assert payload.sum() == 1000
    del payload
    ring.release()
    del ring
    assert not Path(f"/proc/self/fd/{own}").exists()


# ---- memory that is lent -------------------------------------------------------------------------


class Member:
    """What a session is to its collectives: an inbox, and queues to others."""

    def __init__(self, members, lends):
        self.inbox, self.members, self.lends = Inbox(), members, lends
        self.queues = {}

    def queue_to(self, address):
        if address not in self.queues:
            other = self.members[int(address)]
            ring, offer = offered(self.inbox.bell)
            ring.answer(os.getpid(), other.inbox.bell.descriptor)
            other.inbox.add(Queue(Ring.opened(offer), process=os.getpid()))
            can = readable(offer.process, offer.address, offer.secret)
            self.queues[address] = Queue(ring, lends=self.lends and can)
        return self.queues[address]


def together(count, lends, act):
    """What ``act(member's world, number)`` returns on threads that stand for workers."""
    members = []
    members += [Member(members, lends) for _ in range(count)]
    found, errors = [None] * count, []

    def run(k):
        world = RemoteWorld(members[k], "r", [str(j) for j in range(count)], k, [count])
        here.world, here.place = world, (("i", k, count),)
        try:
            found[k] = act(world, k)
        except BaseException as error:
            errors.append(error)
            for member in members:
                member.inbox.abort(["r"])
        finally:
            here.world, here.place = None, ()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


@pytest.mark.parametrize("lends", [True, False])
@pytest.mark.parametrize("count", [2, 3])
def test_large_values_meet_bit_for_bit(count, lends, monkeypatch):
    """Sums of several pieces, gathers, exchanges: read where they are, or through queues."""
    monkeypatch.setattr(exchange, "SLICED", 2_000_000)
    rng = np.random.default_rng(count)
    xs = [rng.standard_normal((count, 800_001)).astype(np.float32) for _ in range(count)]
    key = ("i",), range(count), ()
    for pattern in (Fold(np.add), Route(np.stack), Route(np.stack, lambda x, s, t: x[t])):

        def act(world, k, pattern=pattern):
            own = xs[k].copy()
            out = world.exchange(key, ("meets",), k, own, pattern)
            own[...] = np.nan  # from here on nobody may read it
            return np.array(out)

        for one, expected in zip(together(count, lends, act), pattern.combine(xs), strict=True):
            np.testing.assert_array_equal(one, expected)


def test_what_is_lent_is_waited_for():
    """Who lends goes on when it was read, not before; a run that is stopped waits no more."""
    read = threading.Event()

    def act(world, k):
        if k:
            time.sleep(0.1)
            read.set()
            return world.take("t", 0, "w").sum() + (world.flush() or 0)
        world.post("t", 1, np.ones(2_000_000, np.float32), "w")
        world.flush()
        return read.is_set()

    assert together(2, True, act) == [True, 2_000_000]

    def stopped(world, k):
        if k:
            world.session.members[0].inbox.abort(["r"])
            return True
        with pytest.raises(MeetingLost):
            for _ in range(2):
                world.post("t", 1, np.ones(2_000_000, np.float32), "w")
            world.flush()
        return True

    assert together(2, True, stopped) == [True, True]
