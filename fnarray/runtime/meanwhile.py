"""A first call that does not wait: the program is evaluated while it is compiled on a thread."""

from __future__ import annotations

import logging  # noqa: F401 - see the end
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..config import scoped_all, scoped_values
from ..core.fork import settled_before_forks
from ..core.graph import ClosedGraph, Graph
from ..core.libraries import NotLoaded, loaded_alone
from ..core.quiet import quietly
from .stepwise import called_graph, stepwise

Run = Callable[..., tuple[np.ndarray, ...]]

#: Seconds that the first evaluation has for itself: beside a thread that runs Python each operation
#: waits for its turn, and one of 13 ms took 150.
ALONE: Final = 0.05


def can_evaluate(graph: Graph) -> bool:
    """Whether a program may run op by op: it has no effects, which must happen once, and no loops.

    A loop's turns by NumPy soon take longer than its compilation.
    """
    return all(
        can_evaluate(inner.jaxpr)
        if (inner := called_graph(eqn))
        else eqn.primitive.quiet and not eqn.primitive.effects
        for eqn in graph.eqns
    )


def evaluate(
    graph: ClosedGraph, args: Sequence[np.ndarray], needless: Callable[[], bool]
) -> tuple[np.ndarray, ...] | None:
    """Run a program op by op; return fresh arrays, as its compiled form does.

    None where it turns out to be needless, or takes a library that has not been imported: SciPy
    takes 0.3 s, a transform with what all of them share 0.1 to compile.
    """
    try:
        with loaded_alone():
            outs = quietly(_results, graph, args, needless)
    except NotLoaded:
        return None
    return (
        None
        if outs is None
        else tuple(
            np.array(x, aval.dtype, order="C")
            for x, aval in zip(outs, graph.out_avals, strict=True)
        )
    )


def _results(
    graph: ClosedGraph, args: Sequence[np.ndarray], needless: Callable[[], bool]
) -> list[np.ndarray] | None:
    steps = stepwise(graph, args)
    while not needless():
        try:
            next(steps)
        except StopIteration as done:
            return done.value
    return None


class Meanwhile:
    """A program that is evaluated for as long as it is being compiled.

    Attributes
    ----------
    run : callable
        As `Executable.run`; read it at each call. An error of the compilation is raised by the
        next call; calls after that compile, and wait.
    """

    def __init__(self, graph: ClosedGraph, load: Callable[[], Run]):
        self._graph = graph
        self._load = load
        self.run: Run = self._evaluate
        self._answered = threading.Event()
        self._compiled = False
        own = scoped_values()
        # No daemon: LLVM must not be at work when the process ends, so the end waits for it.
        self._thread = threading.Thread(target=self._compile, args=(own,), name="fnarray compiler")
        _pending.add(self)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the program is compiled, or cannot be."""
        self._answered.set()
        self._thread.join()

    def _compile(self, settings: list[tuple[str, Any]]) -> None:
        self._answered.wait(ALONE)
        try:
            with scoped_all(settings):
                self.run = self._load()
            self._compiled = True
        except BaseException as error:  # the caller is elsewhere: the next call raises it
            self.run = self._failed(error)
        finally:
            _pending.discard(self)

    def _failed(self, error: BaseException) -> Run:
        def run(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
            self.run = self._wait
            raise error

        return run

    def _wait(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        self.run = self._load()
        return self.run(*arrays)

    def _evaluate(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        # Beside a thread that runs Python an operation may take 5 ms: once that is done, what it
        # made is faster than the rest.
        try:
            outs = evaluate(self._graph, arrays, lambda: self._compiled)
        finally:
            self._answered.set()
        if outs is None:
            self._thread.join()
            return self.run(*arrays)
        return outs


_pending: weakref.WeakSet[Meanwhile] = weakref.WeakSet()


def wait() -> None:
    """Wait for all that is being compiled."""
    for each in list(_pending):
        each.wait()


# A child has no such thread, and would inherit its locks.
settled_before_forks(wait)
# Numba uses logging on such a thread, whose own hooks take a lock: imported while a fork waits they
# would give back what they had not taken. These come later, and are called first.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait)
