"""What is kept with a function for as long as the function lives.

Graphs, programs and verdicts refer to what their function captured, and so, often, to the function
itself. Kept in a table they would keep it alive for ever; kept on it, they go when it goes.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Protocol, TypeVar

_ATTRIBUTE = "__fnarray__"
_all: weakref.WeakSet[Kept] = weakref.WeakSet()


class Table(Protocol):
    """What is kept of one kind; cleared where it is, as those who use it hold on to it."""

    def clear(self) -> object:
        """Forget all entries."""


T = TypeVar("T", bound=Table)
R = TypeVar("R")


class Kept(dict[tuple[Hashable, ...], Any]):
    """What is kept with one function: tables, by their kind and what else tells them apart."""

    __slots__ = ("__weakref__", "_owner")

    def __init__(self, owner: Any = None) -> None:
        self._owner = None if owner is None else weakref.ref(owner)
        _all.add(self)

    # A function may be pickled by value, and `functools.wraps` copies attributes: neither takes
    # along what belongs to one object.
    def __reduce__(self) -> Any:
        return Kept, ()

    def belongs_to(self, fun: Any) -> bool:
        """Say whether it was made for a function, not copied from another."""
        return self._owner is not None and self._owner() is fun

    def table(self, *kind: Hashable, make: Callable[[], T] = dict) -> T:
        """Return the table of a kind, ``make()`` at first."""
        found = self.get(kind)
        return self.setdefault(kind, make()) if found is None else found

    def forget(self) -> None:
        """Clear all tables."""
        for table in list(self.values()):
            table.clear()

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__


_Entry = tuple[weakref.ref[Any], Kept]
#: For callables that take no attributes, or whose attributes are theirs alone.
_objects: dict[int, _Entry] = {}


def kept_with(fun: Callable[..., Any]) -> Kept:
    """Return what is kept with a function; of callables that cannot be a key, nothing is."""
    if type(fun) is types.FunctionType:
        space = fun.__dict__
        found = space.get(_ATTRIBUTE)
        if found is None or not found.belongs_to(fun):
            found = space[_ATTRIBUTE] = Kept(fun)
        return found
    made: Any = fun
    if type(fun) is types.MethodType:  # made anew at each access: kept with what it is made of
        return _kept_in(
            kept_with(made.__func__).table("methods", make=dict[int, _Entry]), made.__self__
        )
    return _kept_in(_objects, fun)


def _kept_in(table: dict[int, _Entry], fun: Any) -> Kept:
    """Return what is kept with an object: by identity, as its ``__eq__`` is the user's."""
    number = id(fun)
    found = table.get(number)
    if found is not None and found[0]() is fun:
        return found[1]

    def forget(gone: weakref.ref[Any]) -> None:  # when the process ends, globals are gone as well
        last = table.get(number)
        if last is not None and last[0] is gone:
            del table[number]

    try:
        ref = weakref.ref(fun, forget)
    except TypeError:
        return Kept()
    table[number] = ref, (kept := Kept())
    return kept


_forgotten: list[Callable[[], object]] = []


def forgotten(clear: Callable[[], object]) -> None:
    """Call a function, too, whenever all is forgotten: what it clears was made of what is kept."""
    _forgotten.append(clear)


def remembered(maxsize: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Return a decorator: results, made of graphs, are remembered by arguments until forgotten."""

    def decorate(fun: Callable[..., R]) -> Callable[..., R]:
        cached = lru_cache(maxsize)(fun)
        forgotten(cached.cache_clear)
        return cached

    return decorate


def forget_all() -> None:
    """Drop everything that is kept with any function, and what was made of it."""
    for kept in list(_all):
        kept.forget()
    for clear in _forgotten:
        clear()
