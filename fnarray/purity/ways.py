"""Where control goes: the one interpreter of branches, loops and handlers, for any kind of state.

What a name stands for, how surely it is traced, how often a key was drawn from: each is a `Domain`,
which says what holds where ways meet. What a statement does to the state is the caller's.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

V = TypeVar("V")
W = TypeVar("W")


class State(Generic[V]):
    """What holds at one place: a value for each name, and the ways that jumped from here.

    ``again`` and ``left`` are what ``continue`` and ``break`` of the loop around take along.
    """

    __slots__ = ("again", "env", "left")

    def __init__(self) -> None:
        self.env: dict[str, V] = {}
        self.again: list[dict[str, V]] = []
        self.left: list[dict[str, V]] = []


class Domain(NamedTuple, Generic[V]):
    """What one kind of analysis makes of control.

    Attributes
    ----------
    join : callable
        What holds where several ways meet.
    turns : int
        How often the body of a loop is run, at most.
    skips : bool
        Whether a loop is taken to be run no time at all, too.
    undone : bool
        Whether a handler starts from before its ``try``, as if nothing of it was done.
    """

    join: Callable[[list[dict[str, V]]], dict[str, V]]
    turns: int = 2
    skips: bool = True
    undone: bool = False


def either(
    state: State[V], domain: Domain[V], run: Callable[[W], bool], ways: Sequence[W], *,
    none: bool = False,
) -> bool:  # fmt: skip
    """Run alternatives from the same state, and join what they leave.

    Parameters
    ----------
    state, domain
        Where control is, and what is followed.
    run
        Runs one way; says whether control can leave at its end.
    ways
        The alternatives.
    none
        Whether it may be that none of them is taken.

    Returns
    -------
    bool
        Whether control goes on after them.
    """
    before = state.env
    ends = [dict(before)] if none else []
    for way in ways:
        state.env = dict(before)
        if run(way):
            ends.append(state.env)
    state.env = domain.join(ends) if ends else before
    return bool(ends)


def loop(
    state: State[V], domain: Domain[V], turn: Callable[[], bool],
    settled: Callable[[dict[str, V], dict[str, V]], bool] = operator.eq,
) -> None:  # fmt: skip
    """Run the turns of a loop: all that the domain has, or until one is `settled`.

    That is one which changed nothing, from what held before it to what holds after.
    """
    around = state.again, state.left
    head, state.left = state.env, []
    for _ in range(domain.turns):
        state.env, state.again = dict(head), []
        ended = turn()
        ends = [state.env, *state.again] if ended else state.again
        if not ends:  # whatever it does, it is left
            break
        before, head = head, domain.join([head, *ends] if domain.skips else ends)
        if settled(before, head):
            break
    state.env = domain.join([head, *state.left]) if state.left else head
    state.again, state.left = around


def jump(state: State[V], node: ast.Break | ast.Continue) -> bool:
    """Take what holds to the end of the loop around, or to its next turn; control ends here."""
    (state.left if isinstance(node, ast.Break) else state.again).append(state.env)
    return False


def attempt(
    state: State[V], domain: Domain[V], run: Callable[[list[ast.stmt]], bool], node: Any,
    handle: Callable[[ast.ExceptHandler], bool],
) -> bool:  # fmt: skip
    """Run a ``try``, of which any handler may go on from what is done until then."""
    before = dict(state.env)
    ended = run(node.body)
    raised = before if domain.undone else domain.join([before, state.env])
    ended = ended and run(node.orelse)
    ends = [state.env] if ended else []
    for handler in node.handlers:
        state.env = dict(raised)
        if handle(handler):
            ends.append(state.env)
    state.env = domain.join(ends) if ends else raised
    return run(node.finalbody) and bool(ends)


def is_whole(node: ast.Match) -> bool:
    """Say whether one of the cases is taken for certain: the last one asks nothing."""
    last = node.cases[-1]
    bare = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
    return bare and last.guard is None
