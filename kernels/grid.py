"""Words for kernels that many threads run: who am I, barriers, sums over a block, atomics.

A grid is blocks of lanes; a thread is one lane of one block. The words have three readings:
CUDA's (`cuda_side`), and the two of this file, chosen by `run`. With one lane a block is a loop
over blocks and every word of a block is the identity; with more, lanes are threads of Python that
meet at a barrier, which is slow and finds missing barriers.

>>> def total(x, out, n):
...     acc = 0.0
...     i = lane()
...     while i < n:
...         acc = acc + x[i]
...         i += lanes()
...     out[0] = block_sum(acc)
>>> out = np.zeros(1)
>>> run(total, 1, 4, np.arange(10.0), out, 10)
>>> float(out[0])
45.0
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from fnarray_kernels import scalar as sc


class _Block:
    """The lanes of one block: where they meet, and what they show each other."""

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.barrier = threading.Barrier(lanes)
        self.shown: list[Any] = [None] * lanes
        self.rooms: list[np.ndarray] = []


class _Here(threading.local):
    """Which thread runs."""

    block, blocks, lane, lanes = 0, 1, 0, 1
    rooms = 0
    team: _Block | None = None


_here = _Here()
#: Atomics of lanes that are threads of Python.
_one = threading.Lock()


def run(kernel: Any, blocks: int, lanes: int, *args: Any) -> None:
    """Run a kernel on a grid, one block after the other.

    Raises
    ------
    BaseException
        The first error of a lane.
    """
    for block in range(blocks):
        if lanes == 1:
            _here.block, _here.blocks = block, blocks
            try:
                with np.errstate(all="ignore"):
                    kernel(*args)
            finally:
                _here.block, _here.blocks = 0, 1
        else:
            _together(kernel, block, blocks, lanes, args)


def _together(kernel: Any, block: int, blocks: int, lanes: int, args: Any) -> None:
    team, errors = _Block(lanes), []

    def work(lane: int) -> None:
        _here.block, _here.blocks, _here.lane, _here.lanes = block, blocks, lane, lanes
        _here.team = team
        try:
            with np.errstate(all="ignore"):
                kernel(*args)
        except threading.BrokenBarrierError:
            pass  # another lane failed, and says why
        except BaseException as error:
            errors.append(error)
            team.barrier.abort()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(lanes)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


# --- who am I -----------------------------------------------------------------------------------


def block() -> int:
    """Number of this block."""
    return _here.block


def blocks() -> int:
    """How many blocks there are."""
    return _here.blocks


def lane() -> int:
    """Number of this thread within its block."""
    return _here.lane


def lanes() -> int:
    """How many threads a block has: a power of two."""
    return _here.lanes


def thread() -> int:
    """Number of this thread within the grid."""
    return _here.block * _here.lanes + _here.lane


def threads() -> int:
    """How many threads there are."""
    return _here.blocks * _here.lanes


# --- lanes of a block ---------------------------------------------------------------------------


def sync() -> None:
    """Wait for all lanes of the block; what they wrote before can be read after."""
    if _here.team is not None:
        _here.team.barrier.wait()


def from_lane(x: Any, distance: int) -> Any:
    """Return the ``x`` of the lane so far ahead (or behind), or this one's where there is none."""
    team = _here.team
    if team is None:
        return x
    team.shown[_here.lane] = x
    team.barrier.wait()
    there = _here.lane + distance
    found = team.shown[there] if 0 <= there < team.lanes else x
    team.barrier.wait()
    return found


def from_first(x: Any) -> Any:
    """Return the ``x`` of lane 0."""
    team = _here.team
    return x if team is None else from_lane(x, -_here.lane)


def _folded(combine: Any) -> Any:
    def word(x: Any) -> Any:
        step = 1
        while step < _here.lanes:
            x = combine(x, from_lane(x, step))
            step *= 2
        return from_first(x)

    return word


def block_sum(x: Any) -> Any:
    """Return the sum over the lanes of a block, to all of them."""
    return _sum(x)


def block_max(x: Any) -> Any:
    """Return the largest of a block, to all lanes; NaN wins."""
    return _max(x)


def block_min(x: Any) -> Any:
    """Return the least of a block, to all lanes; NaN wins."""
    return _min(x)


_sum, _max, _min = _folded(lambda a, b: a + b), _folded(sc.maximum), _folded(sc.minimum)


# --- memory -------------------------------------------------------------------------------------


def part(x: Any, start: int, n: int) -> Any:
    """Return the ``n`` elements of memory from ``start`` on."""
    return x[start : start + n]


def array(x: Any, n: int) -> Any:
    """Return memory as an array of ``n`` elements, for functions that ask its length."""
    return x[:n]


def room(x: Any, n: int) -> Any:
    """Return memory that the lanes of a block share, for ``n`` numbers like ``x``."""
    team = _here.team
    if team is None:
        return np.empty(n, np.asarray(x).dtype)
    with _one:  # whoever comes first makes it; all ask for the same ones in the same order
        if _here.rooms == len(team.rooms):
            team.rooms.append(np.empty(n, np.asarray(x).dtype))
        _here.rooms += 1
        return team.rooms[_here.rooms - 1]


def share(n: int, width: int, turns: int, blocks: int = 0) -> int:
    """Return how many of ``n`` elements a lane has: ``turns``, in a block of ``width`` lanes.

    ``blocks`` says how many blocks a multiprocessor should have at once, whose registers they
    share.
    """
    return -(-n // _here.lanes)


def held(x: Any, n: int, width: int, turns: int, blocks: int = 0) -> Any:
    """Return room in registers for a lane's share of ``n`` elements like ``x``, or those of it."""
    return np.empty(share(n, width, turns), np.asarray(x).dtype)


def load4(x: Any, i: int) -> Any:
    """Return four elements from ``i``, a multiple of four, on: one access to memory."""
    return x[i : i + 4].copy()


def four(x: Any) -> Any:
    """Return room for four elements like those of ``x``, in registers."""
    return np.empty(4, x.dtype)


def store4(x: Any, i: int, values: Any) -> None:
    """Write four elements from ``i``, a multiple of four, on."""
    x[i : i + 4] = values


def atomic_add(x: Any, i: int, value: Any) -> None:
    """Add to an element that other threads add to as well."""
    with _one, np.errstate(all="ignore"):
        x[i] += value


def swap(x: Any, i: int, old: Any, new: Any) -> Any:
    """Replace an element by ``new`` if it is ``old``, bit for bit; return what it was."""
    with _one:
        seen = x[i]
        if same(seen, old):
            x[i] = new
        return seen


def same(a: Any, b: Any) -> bool:
    """Whether two numbers have the same bits."""
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


#: What emitted text may name.
WORDS = {
    f.__name__: f
    for f in (
        block, blocks, lane, lanes, thread, threads, sync, from_lane, from_first, block_sum,
        block_max, block_min, part, array, room, share, held, load4, four, store4, atomic_add, swap,
        same,
    )
}  # fmt: skip
