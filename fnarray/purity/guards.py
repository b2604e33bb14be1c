"""Guards: what an accepted function read from outside, and whether it is still the same.

An accepted read is of something that cannot change, found through a name that can be rebound. The
guard looks the name up again; identity decides. The check is a function compiled to live in the
guarded namespace, over the guarded closure cells: a name costs it what it costs any function, a
few nanoseconds.
"""

from __future__ import annotations

import builtins
import keyword
import types
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

_MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING"})()
#: Begins the names of the check's own parameters.
_OWN = "_fna"


def always() -> bool:
    """Hold: nothing was read."""
    return True


class Guards:
    """The names that a function read from outside, with what each was bound to.

    Attributes
    ----------
    holds : callable
        Says whether all names still stand for the same objects. It is another one after guards
        are added, and after its first calls.
    """

    __slots__ = ("_entries", "holds")

    def __init__(self) -> None:
        # By kind, identity of the holder, and name; the holder is kept, so its id stays its own.
        self._entries: dict[tuple[str, int, str], tuple[Any, Any]] = {}
        self.holds: Callable[[], bool] = always

    def _add(self, kind: str, holder: Any, name: str, value: Any) -> None:
        key = kind, id(holder), name
        if key not in self._entries:
            self._entries[key] = holder, value
            self.holds = self._looked_up

    def add_name(self, namespace: dict[str, Any], name: str) -> None:
        """Guard a name of a namespace, or its absence from it."""
        self._add("name", namespace, name, namespace.get(name, _MISSING))

    def add_cell(self, cell: types.CellType, name: str) -> None:
        """Guard a variable of an enclosing function."""
        # An empty cell: the trace itself will fail, and say so.
        with suppress(ValueError):
            self._add("cell", cell, name, cell.cell_contents)

    def add_items(self, mapping: Any, name: str) -> None:
        """Guard the items of a read-only view of a mapping that may change behind it."""
        self._add("items", mapping, name, _Items(mapping))

    def add_attribute(self, holder: Any, name: str, value: Any) -> None:
        """Guard an attribute of a class, or of an object, which is not kept alive by it."""
        if not isinstance(holder, (type, types.ModuleType)):
            with suppress(TypeError):
                self._add("part", weakref.ref(holder), name, value)
                return
        self._add("attribute", holder, name, value)

    def update(self, other: Guards) -> None:
        """Guard what other guards do, too."""
        if other._entries.keys() - self._entries.keys():
            self._entries = {**other._entries, **self._entries}
            self.holds = self._looked_up

    def drop(self, names: Iterable[str]) -> None:
        """Guard some names no longer."""
        gone = set(names)
        self._entries = {k: v for k, v in self._entries.items() if k[2] not in gone}
        self.holds = self._looked_up if self._entries else always

    def __len__(self) -> int:
        return len(self._entries)

    def changed(self) -> list[str]:
        """Return the names that no longer stand for the same object."""
        return [
            name
            for (kind, _, name), (holder, value) in self._entries.items()
            if _now(kind, holder, name, value) is not value
        ]

    def _looked_up(self) -> bool:
        # The first time it is looked up, being cheaper than to compile; then compiled.
        if self.changed():
            return False
        self.holds = self._compiled
        return True

    def _compiled(self) -> bool:
        self.compile()
        return self.holds()

    def compile(self) -> Callable[[], bool]:
        """Make the fast check: the new ``holds``, a function to be kept and called."""
        parts: dict[int, _Check] = {}
        home: _Check | None = None
        for (kind, number, name), (holder, value) in self._entries.items():
            if kind == "name" and _is_plain(holder, name, value):
                check = parts.setdefault(number, _Check(holder))
            else:
                check = home = home or _Check({})
            check.add(kind, holder, name, value)
        checks = [check.made() for check in (*parts.values(), home) if check is not None]
        if len(checks) < 2:
            self.holds = checks[0] if checks else always
        elif len(checks) == 2:
            first, second = checks
            self.holds = lambda: first() and second()
        else:
            self.holds = lambda: all(check() for check in checks)
        return self.holds


class _Items:
    """The keys and values of a mapping, as they were."""

    __slots__ = ("were",)

    def __init__(self, mapping: Any) -> None:
        self.were = tuple(mapping.items())

    def hold(self, mapping: Any) -> bool:
        """Say whether a mapping has the same keys, for the same values."""
        get, were = mapping.get, self.were
        return len(mapping) == len(were) and all(get(k, _MISSING) is v for k, v in were)


def _now(kind: str, holder: Any, name: str, value: Any) -> Any:
    """Return what a guarded name stands for now."""
    if kind == "items":
        return value if value.hold(holder) else _MISSING
    if kind == "name":
        return holder.get(name, _MISSING)
    if kind == "cell":
        try:
            return holder.cell_contents
        except ValueError:  # emptied
            return _MISSING
    return getattr(holder() if kind == "part" else holder, name, _MISSING)


def _is_plain(space: dict[str, Any], name: str, value: Any) -> bool:
    """Say whether a function in the namespace can read a name as its own global."""
    found = value is not _MISSING or ("__builtins__" in space and hasattr(builtins, name))
    own = name.startswith(_OWN) or keyword.iskeyword(name)
    return found and name.isidentifier() and not own


class _Check:
    """A function in the making: comparisons, joined by ``and``, in one namespace."""

    def __init__(self, space: dict[str, Any]) -> None:
        self.space = space
        self.tests: list[str] = []
        self.held: list[Any] = []
        self.cells: list[types.CellType] = []

    def _hold(self, value: Any) -> str:
        self.held.append(value)
        return f"{_OWN}{len(self.held) - 1}"

    def add(self, kind: str, holder: Any, name: str, value: Any) -> None:
        if kind == "name" and holder is self.space:
            text = name
            value = getattr(builtins, name) if value is _MISSING else value
        elif kind == "name":
            text = f"{self._hold(holder.get)}({name!r}, {self._hold(_MISSING)})"
        elif kind == "cell":
            text = f"{_OWN}_cell{len(self.cells)}"
            self.cells.append(holder)
        elif kind == "items":
            self.tests.append(f"{self._hold(value.hold)}({self._hold(holder)})")
            return
        else:
            owner = f"{self._hold(holder)}{'()' if kind == 'part' else ''}"
            plain = name.isidentifier() and not keyword.iskeyword(name)
            text = f"{owner}.{name}" if plain else f"{self._hold(getattr)}({owner}, {name!r})"
        self.tests.append(f"{text} is {self._hold(value)}")

    def made(self) -> Callable[[], bool]:
        # Held values are parameters with defaults, and cells free variables: both are read faster
        # than an attribute. The outer function only makes the names of the cells free.
        cells = [f"{_OWN}_cell{i}" for i in range(len(self.cells))]
        source = (
            f"def _({', '.join(cells)}):\n"
            f" def holds({', '.join(f'{_OWN}{i}' for i in range(len(self.held)))}):\n"
            f"  try: return {' and '.join(self.tests)}\n"
            "  except (NameError, AttributeError): return False\n"
        )
        outer = _code_in(compile(source, "<guards>", "exec"))
        inner = _code_in(outer)
        named = dict(zip(cells, self.cells, strict=True))
        closure = tuple(named[name] for name in inner.co_freevars)
        return types.FunctionType(inner, self.space, "holds", tuple(self.held), closure or None)


def _code_in(code: types.CodeType) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType))
