"""Shards: copies of one program that run at the same time, and the places where they meet.

Each shard has a thread of its own for as long as it runs, since it may wait for any other one. The
threads are kept for the next call. All shards of an outermost call, those of calls inside of it
included, make a *world*. It counts the threads that are not waiting: when none is left and a
meeting is incomplete, it never will be, and the world fails in place of waiting for ever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from itertools import product
from math import prod
from queue import SimpleQueue
from typing import Any

from ..config import scoped_all, scoped_values
from ..core.axes import Axes
from .patterns import Here, Pattern

Coordinates = dict[Hashable, int]


class Stopped(Exception):
    """Ends a shard that waits for one that has failed."""


class _Meeting:
    """The shards that have come to one collective so far, and what they brought."""

    def __init__(self, what: Any, lock: threading.Lock):
        self.what = what
        self.values: dict[int, Any] = {}
        self.done = threading.Condition(lock)
        self.results: Sequence[Any] | None = None


class World:
    """What the shards of one outermost call share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.meetings: dict[Any, _Meeting] = {}
        self.active = 1  # threads that neither wait nor have ended
        self.error: BaseException | None = None

    def elsewhere(self, axes: Sequence[int]) -> bool:
        """Whether shards along some of the outermost call's axes are in other processes."""
        return False

    def exchange(
        self, key: tuple[Any, ...], what: tuple[Any, ...], index: int, value: Any, pattern: Pattern
    ) -> Any:
        """Meet shards of other processes: ``key`` is axes' names, members, and other places."""
        raise AssertionError("all shards of this program are here")

    def fail(self, error: BaseException) -> None:
        """Note the first error, and release everybody who waits; the lock is held."""
        if self.error is None:
            self.error = error
        for meeting in self.meetings.values():
            meeting.done.notify_all()

    def rest(self) -> None:
        """Take one thread out of the count; the lock is held."""
        self.active -= 1
        if self.active == 0 and self.meetings and self.error is None:
            waiting = "; ".join(
                f"{m.what[0]} over {', '.join(map(str, names))}: shards "
                f"{', '.join(map(str, sorted(m.values)))} wait"
                for (names, *_), m in self.meetings.items()
            )
            self.fail(
                RuntimeError(
                    "pmap: some shards wait in a collective that the others never reach "
                    f"({waiting}). Collectives inside cond or while_loop must be reached by all "
                    "shards: let their predicates be the same on all, by psum or pmax."
                )
            )


class _Here(threading.local):
    """Which shard this thread runs: its place along each mapped axis, outermost first."""

    world: World | None = None
    place: tuple[tuple[Hashable, int, int], ...] = ()
    #: How many shards the machine's cores are divided among.
    sharing: int = 1


here = _Here()


# ---- meeting -------------------------------------------------------------------------------------


def _find(names: Sequence[Hashable]) -> list[int]:
    found: list[int] = []
    for name in names:
        for k in reversed(range(len(here.place))):
            if here.place[k][0] == name:
                found.append(k)
                break
        else:
            raise NameError(f"unbound axis name: {name}")
    return found


def position(names: Sequence[Hashable]) -> tuple[int, int]:
    """Return this shard's number along axes, row by row, and how many there are."""
    index, count = 0, 1
    for k in _find(names):
        _, i, size = here.place[k]
        index, count = index * size + i, count * size
    return index, count


def all_here(names: Sequence[Hashable]) -> bool:
    """Whether all shards along axes are of this process."""
    assert here.world is not None
    return not here.world.elsewhere(_find(names))


def meet(
    names: Sequence[Hashable],
    groups: Sequence[Sequence[int]] | None,
    what: tuple[Any, ...],
    value: Any,
    pattern: Pattern | Here,
) -> Any:
    """Wait for the shards along axes; return this shard's part of what they have together.

    Parameters
    ----------
    names : sequence of hashable
    groups : sequence of sequences of int, optional
        Which shards, by their numbers along the axes, meet; by default all.
    what : tuple
        What the meeting is for, which must be the same for all; its name first.
    value : object
        What this shard brings.
    pattern : Fold, Route or Here
        What is done with the values, in the shards' order.

    Raises
    ------
    NameError
        No axis of that name is bound.
    RuntimeError
        Others came for something else, or never will come.
    """
    world, found = here.world, _find(names)
    assert world is not None
    index, count = position(names)
    members: Sequence[int] = range(count)
    if groups is not None:
        members = next(group for group in groups if index in group)
    others = tuple((k, i) for k, (_, i, _) in enumerate(here.place) if k not in found)
    key = tuple(names), tuple(members), others
    if world.elsewhere(found):
        assert not isinstance(pattern, Here), "who brings it asks `all_here`"
        return world.exchange(key, what, index, value, pattern)
    with world.lock:
        if world.error is not None:
            raise Stopped
        meeting = world.meetings.get(key)
        if meeting is None:
            meeting = world.meetings[key] = _Meeting(what, world.lock)
        if meeting.what != what:
            error = RuntimeError(
                f"pmap: shards met for different collectives: {shown(meeting.what)} and "
                f"{shown(what)}. All must reach the same ones in the same order."
            )
            world.fail(error)
            raise error
        meeting.values[index] = value
        if len(meeting.values) < len(members):
            _wait(world, meeting)
            assert meeting.results is not None
            return meeting.results[members.index(index)]
        del world.meetings[key]
    # The others wait, so their values stay as they are.
    try:
        meeting.results = pattern.combine([meeting.values[k] for k in members])
    except BaseException as error:
        with world.lock:
            world.fail(error)
            meeting.done.notify_all()
        raise
    with world.lock:
        world.active += len(members) - 1
        meeting.done.notify_all()
    return meeting.results[members.index(index)]


def shown(what: tuple[Any, ...]) -> str:
    """Return what a meeting is for, as messages show it."""
    return f"{what[0]}({', '.join(map(str, what[1:]))})"


def _wait(world: World, meeting: _Meeting) -> None:
    world.rest()
    try:
        while meeting.results is None and world.error is None:
            meeting.done.wait()
    except BaseException as error:  # the user's interrupt
        world.fail(error)
        raise
    if meeting.results is None:
        raise Stopped


# ---- running -------------------------------------------------------------------------------------


class _Worker(threading.Thread):
    """A thread that runs one shard at a time, for whichever call."""

    def __init__(self) -> None:
        super().__init__(name="fnarray-shard", daemon=True)
        self.tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        """Wait for work, forever."""
        while True:
            self.tasks.get()()


_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)


class _Run:
    """One call of a program on several shards."""

    def __init__(self, work: Callable[[Coordinates], None], axes: Axes, name: str):
        self.work = work
        self.axes = axes
        self.name = name
        self.settings = scoped_values()
        self.outer = here.place
        self.root = here.world is None
        self.world = here.world or World()
        self.pending = 0
        self.joining = False
        self.joined = threading.Condition(self.world.lock)
        self.sharing = here.sharing * prod(size for _, size in axes)

    def shard(self, index: int, at: tuple[int, ...]) -> None:
        """Run one shard on this thread; its error becomes the world's."""
        saved = here.world, here.place, here.sharing
        own = tuple((name, i, n) for (name, n), i in zip(self.axes, at, strict=True))
        here.world, here.place, here.sharing = self.world, self.outer + own, self.sharing
        try:
            self.work({name: i for name, i, _ in own})
        except Stopped:
            pass
        except BaseException as error:
            error.add_note(f"Raised in shard {index} of {self.name}.")
            with self.world.lock:
                self.world.fail(error)
        finally:
            here.world, here.place, here.sharing = saved

    def start(self, index: int, at: tuple[int, ...]) -> None:
        """Run one shard on another thread."""
        try:
            worker = _idle.pop()
        except IndexError:
            worker = _Worker()

        def task() -> None:
            try:
                with scoped_all(self.settings):
                    self.shard(index, at)
            except BaseException as error:  # whatever it is, nobody may wait for this shard
                with self.world.lock:
                    self.world.fail(error)
            _idle.append(worker)
            with self.world.lock:
                self.pending -= 1
                if self.pending == 0 and self.joining:
                    self.joined.notify()  # this thread's place in the count is the caller's now
                else:
                    self.world.rest()

        worker.tasks.put(task)

    def join(self) -> None:
        """Wait for the other shards, whatever happens; raise the first error."""
        interrupt: BaseException | None = None
        with self.world.lock:
            if self.pending:
                self.joining = True
                self.world.rest()
            while self.pending:
                try:
                    self.joined.wait()
                except BaseException as error:
                    if interrupt is not None:
                        raise
                    interrupt = error
                    self.world.fail(error)
        if self.world.error is not None:
            raise self.world.error if self.root else Stopped


def run_shards(work: Callable[[Coordinates], None], axes: Axes, name: str) -> None:
    """Run ``work`` once for every place on a grid, all at the same time.

    Parameters
    ----------
    work : callable
        Given the place, an index by name of axis. It may `meet` others.
    axes : tuple of (name, size)
        The last runs fastest.
    name : str
        Of the program, for messages.

    Raises
    ------
    Exception
        The first that a shard raises, which stops those that wait for it; a note tells the shard.
    """
    run = _Run(work, axes, name)
    places = list(product(*(range(size) for _, size in axes)))
    if not places:
        return
    with run.world.lock:
        run.pending = len(places) - 1
        run.world.active += len(places) - 1
    started = 1
    try:
        while started < len(places):
            run.start(started, places[started])
            started += 1
    except BaseException as error:  # no more threads
        with run.world.lock:
            run.pending -= len(places) - started
            run.world.active -= len(places) - started
            run.world.fail(error)
    run.shard(0, places[0])
    run.join()
