"""What is kept with a function for as long as the function lives.

Graphs, programs and verdicts refer to what their function captured, and so, often, to the function
itself. Kept in a table they would keep it alive for ever; kept on it, they go when it goes.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

_ATTRIBUTE = "__fnarray__"
#: For callables that take no attributes, or whose attributes are theirs alone.
_table: weakref.WeakKeyDictionary[Any, Kept] = weakref.WeakKeyDictionary()
_all: weakref.WeakSet[Kept] = weakref.WeakSet()


class Kept(dict[Any, Any]):
    """What is kept with one function, by any hashable key."""

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

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__


def kept_with(fun: Callable[..., Any]) -> Kept:
    """Return what is kept with a function; of callables that cannot be a key, nothing is."""
    if type(fun) is types.FunctionType:
        space = fun.__dict__
        found = space.get(_ATTRIBUTE)
        if found is None or not found.belongs_to(fun):
            found = space[_ATTRIBUTE] = Kept(fun)
        return found
    try:
        found = _table.get(fun)
        return _table.setdefault(fun, Kept()) if found is None else found
    except TypeError:
        return Kept()


def forget_all() -> None:
    """Drop everything that is kept with any function."""
    for kept in list(_all):
        kept.clear()
