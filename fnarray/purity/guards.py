"""Guards: what an accepted function read from outside, and whether it is still the same.

An accepted read is of something that cannot change, found through a name that can be rebound. The
guard holds the object and looks the name up again; identity decides. The check is one compiled
expression of ``is`` comparisons, a few tens of nanoseconds for each name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import CellType
from typing import Any

_MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING"})()


def _always() -> bool:
    return True


class Guards:
    """The names that a function read from outside, with what each was bound to."""

    __slots__ = ("_entries", "_seen", "_test")

    def __init__(self) -> None:
        self._entries: list[tuple[str, Any, str, Any]] = []
        self._seen: set[tuple[str, int, str]] = set()
        self._test: Callable[[], bool] | None = None

    def _add(self, kind: str, holder: Any, name: str, value: Any) -> None:
        key = kind, id(holder), name
        if key not in self._seen:
            self._seen.add(key)
            self._entries.append((kind, holder, name, value))
            self._test = None

    def add_name(self, namespace: dict[str, Any], name: str) -> None:
        """Guard a name of a namespace, or its absence from it."""
        self._add("name", namespace, name, namespace.get(name, _MISSING))

    def add_cell(self, cell: CellType, name: str) -> None:
        """Guard a variable of an enclosing function."""
        # An empty cell: the trace itself will fail, and say so.
        with suppress(ValueError):
            self._add("cell", cell, name, cell.cell_contents)

    def add_attribute(self, holder: Any, name: str, value: Any) -> None:
        """Guard an attribute of a class or an object."""
        self._add("attribute", holder, name, value)

    def holds(self) -> bool:
        """Say whether all names still stand for the same objects."""
        return (self._test or self.compiled())()

    def compiled(self) -> Callable[[], bool]:
        """Return the check as a function without arguments, to be kept and called."""
        if self._test is None:
            self._test = self._compile()
        return self._test

    def _compile(self) -> Callable[[], bool]:
        if not self._entries:
            return _always
        scope: dict[str, Any] = {"missing": _MISSING}
        tests: list[str] = []
        names: dict[int, str] = {}

        def named(value: Any, letter: str) -> str:
            name = names.setdefault(id(value), f"{letter}{len(names)}")
            scope[name] = value
            return name

        for kind, holder, key, value in self._entries:
            want = named(value, "v")
            if kind == "name":
                get = names.get(-id(holder)) or f"g{len(names)}"
                names[-id(holder)] = get
                scope[get] = holder.get
                tests.append(f"{get}({key!r}, missing) is {want}")
            elif kind == "cell":
                tests.append(f"{named(holder, 'c')}.cell_contents is {want}")
            else:
                tests.append(f"getattr({named(holder, 'o')}, {key!r}, missing) is {want}")
        # Names become parameters with defaults: a local is read faster than a global.
        params = ", ".join(f"{n}={n}" for n in scope)
        scope["getattr"] = getattr
        # A chain of `and` nests one level for each comparison in some parsers: split it in lines.
        body = "\n".join(f"    if not ({test}): return False" for test in tests)
        exec(f"def holds({params}):\n{body}\n    return True", scope)
        test: Callable[[], bool] = scope["holds"]

        def safely() -> bool:
            try:
                return test()
            except ValueError:  # a cell that was emptied
                return False

        return safely if any(kind == "cell" for kind, *_ in self._entries) else test

    def __len__(self) -> int:
        return len(self._entries)

    def changed(self) -> list[str]:
        """Return the names that no longer stand for the same object."""
        out = []
        for kind, holder, name, value in self._entries:
            if kind == "name":
                now = holder.get(name, _MISSING)
            elif kind == "cell":
                now = holder.cell_contents
            else:
                now = getattr(holder, name, _MISSING)
            if now is not value:
                out.append(name)
        return out
