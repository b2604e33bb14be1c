"""What members of a group send each other, so that each gets its part of what all have.

Each function is a generator that runs on one member: it yields `Send` and `Receive`, gets what it
received, and returns the member's result. Messages between two members arrive in the order in
which they were sent. Nothing here knows of networks: on workers a driver sends over Dask's comms,
and a test drives a thousand members in one thread and counts.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from ..threads.patterns import Fold, Pattern, Route

#: Up to this many bytes of all members together, values meet at one member.
SMALL = 256 * 1024
#: Bytes of a piece that is passed along the ring.
PIECE = 1024 * 1024
#: So many members at most add up a slice each, of pieces of so many bytes.
SHARED, SLICED = 8, 16 * 1024 * 1024
#: Bytes that are added up at a time: they stay in the processor's cache.
CACHED = 256 * 1024


class Send(NamedTuple):
    """Hand data to a member; it does not wait."""

    to: int
    data: Any


class Receive(NamedTuple):
    """Wait for the next data of a member, and copy it ``into`` an array, if one is given.

    What is not ``lasting`` is there until the next step is asked for, and then written over.
    """

    source: int
    lasting: bool = True
    into: np.ndarray | None = None


class Borrow(NamedTuple):
    """Wait for the next data of a member, a vector, which is there until all is done.

    What slices of it give is there until another slice is taken.
    """

    source: int
    lasting: bool = True


Exchange = Generator[Any, Any, Any]


def exchange(me: int, count: int, value: np.ndarray, pattern: Pattern) -> Exchange:
    """Return one member's part in what a group does with its values.

    Parameters
    ----------
    me, count : int
        Number of the member, and how many there are.
    value : numpy.ndarray
        Of one size for all members: it decides how messages go.
    pattern : Fold or Route
    """
    if count == 1:
        return alone(value, pattern)
    small = value.nbytes * count <= SMALL
    if isinstance(pattern, Fold):
        large = ring if count > SHARED else shared
        return (tree if small else large)(me, count, value, pattern)
    if small and not pattern.sparse:
        return tree(me, count, value, pattern)
    return direct(me, count, value, pattern)


def alone(value: np.ndarray, pattern: Pattern) -> Exchange:
    """Of one member nothing is sent."""
    yield from ()
    return pattern.combine([value])[0]


def tree(me: int, count: int, value: np.ndarray, pattern: Pattern) -> Exchange:
    """Gather all values at the first member, which computes all results and spreads them.

    A member sends one message and receives one, beside those of its children.
    """
    held = {me: value}
    step = 1
    while step < count and not me & step:
        if me + step < count:
            held.update((yield Receive(me + step)))
        step *= 2
    if me:
        yield Send(me - step, held)
        results = yield Receive(me - step)
    else:
        found = pattern.combine([held[k] for k in range(count)])
        alike = all(x is found[0] for x in found)
        results = {0: found[0]} if alike else dict(enumerate(found))
    alike = len(results) == 1 and 0 in results
    while step > 1:
        step //= 2
        child = me + step
        if child < count:
            below = range(child, min(child + step, count))
            yield Send(child, results if alike else {k: results[k] for k in below})
    return results[0 if alike else me]


def shared(me: int, count: int, value: np.ndarray, pattern: Fold) -> Exchange:
    """Add up one slice of all values on each member, in the members' order; hand the totals around.

    All work alike, and each link carries two slices. Pieces of slices are on their way while
    those before them are added up.
    """
    flat = np.ascontiguousarray(value).reshape(-1)
    total = np.empty_like(flat)
    width = -(-flat.size // count)
    step, cached = (max(1, nbytes // flat.itemsize) for nbytes in (SLICED, CACHED))
    others = [(me + k) % count for k in range(1, count)]

    def piece(member: int, j: int) -> slice:
        stop = min((member + 1) * width, flat.size)
        return slice(*(min(member * width + k * step, stop) for k in (j, j + 1)))

    pieces = range(-(-width // step))
    for j in range(len(pieces) + 2):
        if j in pieces:
            for to in others:
                yield Send(to, flat[piece(to, j)])
        if j - 1 in pieces:
            parts: dict[int, Any] = {me: flat[piece(me, j - 1)]}
            for source in reversed(others):
                parts[source] = yield Borrow(source)
            out = total[piece(me, j - 1)]
            for k in range(0, out.size, cached):
                part = slice(k, min(k + cached, out.size))
                so_far = parts[0][part]
                for member in range(1, count):
                    so_far = pattern.ufunc(so_far, parts[member][part], out=out[part])
            for to in others:
                yield Send(to, out)
        if j - 2 in pieces:
            for source in reversed(others):
                yield Receive(source, lasting=False, into=total[piece(source, j - 2)])
    return total.reshape(value.shape)


def ring(me: int, count: int, value: np.ndarray, pattern: Fold) -> Exchange:
    """Pass pieces along the members, each of which adds its own, and the totals once around.

    The order of the sum is that of the members, whatever the size of a piece: results are those
    of one process. All links work at the same time, and each carries the value twice at most.
    """
    flat = np.ascontiguousarray(value).reshape(-1)
    total = np.empty_like(flat)
    step = max(1, PIECE // flat.itemsize)
    pieces = [slice(k, k + step) for k in range(0, flat.size, step)]
    last = count - 1
    # A total comes when its piece has been around: by then others are on their way.
    late = 2 * count
    for k in range(len(pieces) + late):
        if k < len(pieces):
            part = flat[pieces[k]]
            if me:
                before = yield Receive(me - 1, lasting=False)
                out = total[pieces[k]] if me == last else None
                part = pattern.ufunc(before, part, out=out)
            yield Send((me + 1) % count, part)
        if me < last and k >= late:
            piece = pieces[k - late]
            source = me - 1 if me else last
            yield Receive(source, lasting=False, into=total[piece])
            if me < last - 1:
                yield Send(me + 1, total[piece])
    return total.reshape(value.shape)


def direct(me: int, count: int, value: np.ndarray, pattern: Route) -> Exchange:
    """Send each member its part; members begin with different ones."""
    parts: list[Any] = [None] * count
    for k in range(1, count):
        to = (me + k) % count
        if pattern.goes(me, to):
            yield Send(to, pattern.part(value, me, to))
    if pattern.goes(me, me):
        parts[me] = pattern.part(value, me, me)
    for k in range(1, count):
        source = (me - k) % count
        if pattern.goes(source, me):
            parts[source] = yield Receive(source)
    return pattern.join(parts)
