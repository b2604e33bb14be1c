"""What a step costs the client and the scheduler, counted with up to a thousand mock workers."""

from collections import Counter

import numpy as np
import pytest

import fnarray as fa
from fnarray.distributed.cluster import Cluster
from fnarray.distributed.devices import clusters
from fnarray.distributed.lineage import Handle, Node, Put, Run
from fnarray.distributed.programs import dumped


class Loop:
    """An event loop that does all at once."""

    def is_closed(self):
        return False

    def call_soon_threadsafe(self, call, *args):
        call(*args)

    def call_later(self, delay, call, *args):
        pass


class Client:
    """A client that nobody may ask anything: whatever it is asked for is the scheduler's work."""

    status = "running"

    def __init__(self):
        self.loop = self
        self.asyncio_loop = Loop()


class Stream:
    """A worker that counts its messages and has done at once what it is told."""

    def __init__(self, link):
        self.link, self.messages = link, []

    def send(self, *messages):
        self.messages.extend(messages)
        for message in messages:
            if "id" in message:
                self.link._receive({"id": message["id"]})


def mock(count, **options):
    given = {"timeout": 10, "patience": 0, "lineage": 10**9, "own": ()} | options
    cluster = Cluster(Client(), f"mock{count}", range(count), **given)
    clusters[cluster.token] = cluster
    for link in cluster.links:
        link._stream = Stream(link)
    return cluster


def step(cluster, program, before, k=0):
    digest, data = program
    n = len(cluster.links)
    ins = [(before.node, before.k)]
    node = Node(
        cluster, range(n), Run(digest, data, "f", ins, (("i", n),)), [((4,), "float32")] * 2
    )
    handles = [Handle(node, j) for j in range(2)]
    cluster.start(node)
    return handles


@pytest.mark.parametrize("count", [2, 30, 1000])
def test_a_step_is_one_message_a_worker(count):
    """Whatever is in the program: one message to each worker, none to the scheduler."""
    cluster = mock(count)
    f = fa.make_jaxpr(lambda x: (x * 2, x.sum()))(np.ones(4, np.float32))
    program = dumped(f)
    source = Put(np.ones((count, 4), np.float32), [slice(k, k + 1) for k in range(count)])
    node = Node(cluster, range(count), source, [((1, 4), "float32")])
    state = Handle(node, 0)
    cluster.start(node)
    seen = []
    for k in range(5):
        state, _ = step(cluster, program, state, k)
        cluster.wait(state.node)
        found = Counter(m["op"] for link in cluster.links for m in link._stream.messages)
        seen.append(found)
        for link in cluster.links:
            link._stream.messages.clear()
    assert seen[0]["run"] == seen[0]["program"] == seen[0]["group"] == count
    for found in seen[1:]:
        assert found["run"] == count
        assert set(found) <= {"run", "free"}
        assert found["free"] <= 2 * count


def test_what_the_client_remembers_is_bounded():
    """A loop of any length leaves as many steps to be done again as was asked for, at most."""
    cluster = mock(2, lineage=8)
    program = dumped(fa.make_jaxpr(lambda x: (x * 2, x.sum()))(np.ones(4, np.float32)))
    source = Put(np.ones((2, 4), np.float32), [slice(0, 1), slice(1, 2)])
    node = Node(cluster, [0, 1], source, [((1, 4), "float32")])
    state = Handle(node, 0)
    cluster.start(node)
    del node, source
    for _ in range(100):
        state, _ = step(cluster, program, state)
        steps, node = 0, state.node
        while node.recipe.inputs:
            ((node, _),) = node.recipe.inputs
            steps += 1
        assert steps <= 8
    held = {key for link in cluster.links for key in link.held}
    assert len(held) < 20
