"""Which functions compiled code may call; compilers that are loaded later are told of all of them.

Nothing here, nor in any module of kernels but `numba_side`, imports Numba: it takes 0.3 s, which a
program whose kernels are lowered without it never pays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

_found: list[tuple[str, Callable[..., Any], Any]] = []
_listeners: list[Callable[[str, Callable[..., Any], Any], None]] = []


def tell(kind: str, function: Callable[..., Any], what: Any = None) -> None:
    """Note a function that compiled code may call, and how it is compiled."""
    _found.append((kind, function, what))
    for listener in _listeners:
        listener(kind, function, what)


def listen(listener: Callable[[str, Callable[..., Any], Any], None]) -> None:
    """Call ``listener(kind, function, what)`` for every function, now and later."""
    for entry in _found:
        listener(*entry)
    _listeners.append(listener)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that is its own text: loops and branches in the subset of Numba."""
    tell("text", function)
    return function


#: Functions of numbers without a branch: loops that call them may be vectors.
straights: set[str] = set()


def straight(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that is its own text, and computes the same whatever its arguments are."""
    straights.add(function.__name__)
    return compiled(function)


class Outside(NamedTuple):
    """Where a function is object code of its own: in loops too, and of arrays of integers too.

    It is compiled at leisure if it has loops that LLVM's passes improve. A ``free`` one calls such
    functions itself, and its innermost loops of a known number of turns are one vector each: no
    turn reads or writes what another one writes. A ``sized`` one is compiled for each of the sizes
    that its callers know.
    """

    loops: bool
    integers: bool
    improves: bool
    free: bool
    sized: bool


#: Functions of many lines that are object code of their own, which kernels call, where others are
#: written into each kernel.
outsides: dict[Callable[..., Any], Outside] = {}


def outside(
    *,
    loops: bool,
    integers: bool = False,
    improves: bool = False,
    free: bool = False,
    sized: bool = False,
) -> Callable[..., Any]:
    """Mark a function that is its own text, and object code of its own where `Outside` says."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        outsides[function] = Outside(loops, integers, improves, free, sized)
        return compiled(function)

    return mark
