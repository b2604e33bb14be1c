"""What members of a group send each other: results, and how many messages it takes."""

import math
from collections import Counter, deque

import numpy as np
import pytest

from fnarray.distributed import exchange
from fnarray.distributed.exchange import Borrow, Receive, Send
from fnarray.threads.patterns import Fold, Route

COUNTS = (1, 2, 3, 4, 7, 16)


def copying(member):
    """Copy what a member receives to where it wants it."""
    got = None
    try:
        while True:
            step = member.send(got)
            got = yield step
            if isinstance(step, Receive) and step.into is not None:
                step.into[...] = got
    except StopIteration as done:
        return done.value


def simulate(members):
    """Run generators against each other; return results, messages sent and received by member."""
    members = [copying(member) for member in members]
    boxes = {}
    sent, received, results = Counter(), Counter(), {}
    waiting = {k: (m, None) for k, m in enumerate(members)}
    ready = deque((k, None) for k in waiting)
    blocked = {}
    while ready:
        k, data = ready.popleft()
        member = members[k]
        try:
            step = member.send(data)
            while True:
                if isinstance(step, Send):
                    sent[k] += 1
                    received[step.to] += 1
                    boxes.setdefault((k, step.to), deque()).append(step.data)
                    if blocked.get(step.to) == k:
                        del blocked[step.to]
                        ready.append((step.to, boxes[k, step.to].popleft()))
                    step = member.send(None)
                    continue
                assert isinstance(step, Receive | Borrow)
                box = boxes.get((step.source, k))
                if not box:
                    blocked[k] = step.source
                    break
                step = member.send(box.popleft())
        except StopIteration as done:
            results[k] = done.value
    assert not blocked
    assert not any(boxes.values())
    return [results[k] for k in range(len(members))], sent, received


def values(count, shape, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for _ in range(count)]


def share(x, source, target):
    return x[target]


PATTERNS = {
    "sum": lambda n: Fold(np.add),
    "gather": lambda n: Route(np.stack),
    "exchange": lambda n: Route(np.stack, share),
    "scatter": lambda n: Route(Fold(np.add).folded, share),
    "permute": lambda n: Route(
        lambda parts: next(p for p in parts if p is not None),
        lambda v, s, t: v,
        lambda s, t: t == (s + 1) % n,
    ),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("small", [True, False])
def test_results_are_those_of_one_process(name, count, small, monkeypatch):
    """However messages go, each member gets bit for bit what one process computes."""
    if not small:
        monkeypatch.setattr(exchange, "SMALL", -1)
        monkeypatch.setattr(exchange, "PIECE", 12)
        monkeypatch.setattr(exchange, "SLICED", 12)
        monkeypatch.setattr(exchange, "CACHED", 8)
    pattern, xs = PATTERNS[name](count), values(count, (count, 5))
    found, _, _ = simulate([exchange.exchange(k, count, xs[k], pattern) for k in range(count)])
    for one, expected in zip(found, pattern.combine(xs), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("count", COUNTS)
def test_what_does_not_last_is_not_kept(count, monkeypatch):
    """Memory of a message that is used once may be written over as soon as the next step begins."""
    monkeypatch.setattr(exchange, "SMALL", -1)
    monkeypatch.setattr(exchange, "PIECE", 8)

    def spoiled(member):
        got = borrowed = None
        try:
            while True:
                step = member.send(got)
                if borrowed is not None:
                    borrowed[...] = np.nan
                if isinstance(step, Send):
                    step = Send(step.to, np.array(step.data))
                got = yield step
                borrowed = None
                if isinstance(step, Receive) and not step.lasting:
                    got = borrowed = np.array(got)
        except StopIteration as done:
            return done.value

    xs = values(count, (29,))
    expected = Fold(np.add).folded(xs)
    members = [exchange.exchange(k, count, xs[k], Fold(np.add)) for k in range(count)]
    found, _, _ = simulate([spoiled(m) for m in members])
    for one in found:
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("count", [2, 10, 100, 1000])
def test_messages_of_a_small_all_reduce(count):
    """A small all-reduce is two messages a member on average, and a logarithm of them at most."""
    xs = [np.float32(k).reshape(1) for k in range(count)]
    found, sent, received = simulate(
        [exchange.exchange(k, count, xs[k], Fold(np.add)) for k in range(count)]
    )
    assert all(x == sum(range(count)) for x in found)
    assert sum(sent.values()) == 2 * (count - 1)
    assert max(received.values()) <= math.ceil(math.log2(count))
    assert max(sent.values()) <= math.ceil(math.log2(count))


@pytest.mark.parametrize("count", [2, 3, 8])
def test_messages_of_a_large_all_reduce_of_few(count, monkeypatch):
    """A few members add up a slice each: all send and receive alike, two slices to each other."""
    monkeypatch.setattr(exchange, "SMALL", -1)
    monkeypatch.setattr(exchange, "SLICED", 8)
    pieces = 3
    xs = values(count, (6 * count,))
    _, sent, received = simulate(
        [exchange.exchange(k, count, xs[k], Fold(np.add)) for k in range(count)]
    )
    alike = dict.fromkeys(range(count), 2 * (count - 1) * pieces)
    assert (sent, received) == (alike, alike)


@pytest.mark.parametrize("count", [9, 100, 1000])
def test_messages_of_a_large_all_reduce(count, monkeypatch):
    """Of a large all-reduce each link of the ring carries each piece twice at most."""
    monkeypatch.setattr(exchange, "SMALL", -1)
    monkeypatch.setattr(exchange, "PIECE", 8)
    pieces = 3
    xs = values(count, (6,))
    _, sent, received = simulate(
        [exchange.exchange(k, count, xs[k], Fold(np.add)) for k in range(count)]
    )
    assert sum(sent.values()) == 2 * (count - 1) * pieces
    assert max(sent.values()) <= 2 * pieces
    assert max(received.values()) <= 2 * pieces
