"""Guards: what an accepted function read from outside, and whether it is still the same.

An accepted read is of something that cannot change, found through a name that can be rebound. The
guard looks the name up again; identity decides. The check is a function compiled to live in the
guarded namespace, over the guarded closure cells: a name costs it what it costs any function, a
few nanoseconds.
"""

from __future__ import annotations

import builtins
import collections
import itertools
import keyword
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from operator import is_
from typing import Any

from ..core.callables import class_of, instance_dict, mro_of, space_of
from ..core.lazy import Surface, is_handed_out


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


#: What a name is bound to that is bound to nothing.
MISSING: Any = _Missing()
#: Caches are filled when they are looked at, too: pandas took two looks.
_LOOKS = 4
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
        # (A weak reference to an object is one object for as long as the object lives.)
        self._entries: dict[tuple[str, int, str], tuple[Any, Any]] = {}
        self.holds: Callable[[], bool] = always

    def _add(self, kind: str, holder: Any, name: str, value: Any) -> None:
        key = kind, id(holder.ref if type(holder) is _Weak else holder), name
        if key not in self._entries:
            self._entries[key] = holder, value
            self.holds = self._looked_up

    def add_name(self, namespace: dict[str, Any], name: str) -> None:
        """Guard a name of a namespace, or its absence from it: the builtin that it then is."""
        value = namespace.get(name, MISSING)
        built = value is MISSING and "__builtins__" in namespace and name in vars(builtins)
        self._add("name", namespace, name, getattr(builtins, name) if built else value)

    def add_cell(self, cell: types.CellType, name: str) -> None:
        """Guard a variable of an enclosing function."""
        # An empty cell: the trace itself will fail, and say so.
        with suppress(ValueError):
            self._add("cell", cell, name, cell.cell_contents)

    def add_attribute(self, holder: Any, name: str, value: Any) -> None:
        """Guard an attribute that a plain look-up gives, running no code of the user's."""
        self._add("attribute", _alive(holder), name, value)

    def add_of_module(self, module: types.ModuleType, name: str) -> None:
        """Guard what a module binds a name to, or that it does not, by the quickest look-up."""
        space = state(module)
        if isinstance(module, Surface):
            if not is_handed_out(module):
                return  # it says itself when a name of it is rebound
            getattr(module, name, None)  # now, so that its loading is no change
        if type(module) is types.ModuleType and name in space and "__getattr__" not in space:
            # Python's quick look-up, of 4 ns, is for modules that do not answer themselves.
            self.add_attribute(module, name, space[name])
        else:
            self.add_name(space, name)

    def add_function(self, fun: types.FunctionType) -> None:
        """Guard what autoreload swaps; defaults only where a call may leave an argument out."""
        self.add_attribute(fun, "__code__", fun.__code__)
        if fun.__defaults__ is not None:
            self.add_attribute(fun, "__defaults__", fun.__defaults__)
        if fun.__kwdefaults__ is not None:
            self.add_attribute(fun, "__kwdefaults__", fun.__kwdefaults__)
            self.add_contents(fun, "__kwdefaults__", mapping_of(fun.__kwdefaults__))

    def add_static(self, cls: type, name: str, found: Any) -> None:
        """Guard what a class binds a name to: the descriptor itself, not what it makes."""
        path, value = _looked_up_as(cls, name, found)
        self._add(path, cls, name, value)

    def add_names(self, cls: type) -> None:
        """Guard which names a class, and those above it, bind: one more may hide what was found."""
        self.add_contents(cls, cls.__qualname__, bound_names(cls))

    def add_state(self, obj: Any, name: str, value: Any) -> None:
        """Guard an entry of an instance's dictionary, or its absence; and the instance's class."""
        self._add("state", _alive(obj), name, value)
        self.add_class(obj)

    def add_class(self, obj: Any) -> None:
        """Guard which class an instance is of."""
        self._add("class", _alive(obj), "__class__", type(obj))

    def add_contents(
        self, obj: Any, name: str, hold: Callable[[], bool], *, trusted: bool = False
    ) -> None:
        """Guard what an object holds; of trusted code, unless the trace itself changes it."""
        self._add("trusted" if trusted else "contents", obj, name, hold)

    def settle(self, contents_of: Callable[[Any], Any]) -> None:
        """After the trace: what trusted code changed as it ran is its own, such as a cache.

        What its objects hold now is what must stay, as far as `contents_of` can tell.
        """
        changed = [k for k, v in self._entries.items() if k[0] == "trusted" and not v[1]()]
        for key in changed:
            holder, _ = self._entries.pop(key)
            for _ in range(_LOOKS):
                found = contents_of(holder)
                if found is not None and found.some and found.hold():
                    self._entries[key] = holder, found.hold
                    break
        if changed:
            self.holds = self._looked_up if self._entries else always

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

    def entries(self) -> list[tuple[str, Any, str, Any]]:
        """Return what is guarded: kind, holder, name, and what the name is bound to."""
        return [
            (kind, holder.ref() if type(holder) is _Weak else holder, name, value)
            for (kind, _, name), (holder, value) in self._entries.items()
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
        rest: list[tuple[str, Any, str, Any]] = []
        for (kind, number, name), (holder, value) in self._entries.items():
            if kind == "name" and _is_plain(name, value):
                parts.setdefault(number, _Check(holder)).add(kind, holder, name, value)
            else:
                rest.append((kind, holder, name, value))
        # What is no name may be looked up from anywhere: one function less to call.
        home = next(iter(parts.values()), None) or parts.setdefault(0, _Check({}))
        for check in parts.values():
            if check is not home:
                home.ask(check.made())
        for entry in rest:
            home.add(*entry)
        self.holds = home.made() if self._entries else always
        return self.holds


class _Weak:
    """A holder that is not kept alive: called, it gives the object, or None."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any) -> None:
        self.ref = ref


def _alive(holder: Any) -> Any:
    """Return a holder that guards may keep: classes, modules, functions; of others, a reference."""
    if issubclass(type(holder), (type, types.ModuleType, types.FunctionType)):
        return holder
    try:
        return _Weak(weakref.ref(holder))
    except TypeError:
        return holder


#: Descriptors that a class gives as they are.
_ITSELF = (types.FunctionType, property, types.WrapperDescriptorType, types.MethodDescriptorType)


def static(cls: type, name: str) -> Any:
    """Return what a class, or one it inherits from, binds a name to."""
    for c in mro_of(cls):
        space = space_of(c)
        if name in space:
            return space[name]
    return MISSING


def _looked_up_as(cls: type, name: str, found: Any) -> tuple[str, Any]:
    """Return the cheapest look-up of a class's attribute that runs no code of the user's."""
    kind, meta = class_of(found), class_of(static(type(cls), name))
    plain = type(cls).__getattribute__ is type.__getattribute__ and found is not MISSING
    # What a metaclass has goes before the class's own where it can be assigned to.
    if plain and all(static(meta, put) is MISSING for put in ("__set__", "__delete__")):
        if any(kind is one for one in _ITSELF) or static(kind, "__get__") is MISSING:
            return "attribute", found
        if type(found) is staticmethod:
            return "attribute", found.__func__
    return "static", found


def _now(kind: str, holder: Any, name: str, value: Any) -> Any:
    """Return what a guarded name stands for now."""
    if type(holder) is _Weak:
        holder = holder.ref()
    match kind:
        case "contents" | "trusted":
            return value if value() else MISSING
        case "name":
            found = holder.get(name, MISSING)
            asked = found is MISSING and value is not MISSING
            return getattr(builtins, name, MISSING) if asked else found
        case "static":
            return static(holder, name)
        case "class":
            return class_of(holder)
        case "state":
            return state(holder).get(name, MISSING)
        case "cell":
            try:
                return holder.cell_contents
            except ValueError:  # emptied
                return MISSING
        case _:
            return getattr(holder, name, MISSING)


_NOTHING: dict[str, Any] = {}


def state(obj: Any) -> dict[str, Any]:
    """Return an object's dictionary of attributes, empty where it has none."""
    found = instance_dict(obj)
    return _NOTHING if found is None else found


def _is_plain(name: str, value: Any) -> bool:
    """Say whether a function in a namespace can read a name as its own global."""
    own = name.startswith(_OWN) or keyword.iskeyword(name)
    return value is not MISSING and name.isidentifier() and not own


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
        if kind == "name" and holder is self.space and _is_plain(name, value):
            text = name
        elif kind == "name":
            text = f"{self._hold(holder.get)}({name!r}, {self._hold(MISSING)})"
        elif kind == "cell":
            text = f"{_OWN}_cell{len(self.cells)}"
            self.cells.append(holder)
        elif kind in ("contents", "trusted"):
            self.ask(value)
            return
        else:
            owner = self._hold(holder.ref) + "()" if type(holder) is _Weak else (
                self._hold(holder))  # fmt: skip
            text = self._attribute(kind, owner, name)
        self.tests.append(f"{text} is {self._hold(value)}")

    def ask(self, check: Callable[[], bool]) -> None:
        """Take another check for a part of this one."""
        self.tests.append(f"{self._hold(check)}()")

    def _attribute(self, kind: str, owner: str, name: str) -> str:
        if kind == "static":
            return f"{self._hold(static)}({owner}, {name!r})"
        if kind == "class":
            return f"{self._hold(type)}({owner})"
        if kind == "state":
            return f"{self._hold(state)}({owner}).get({name!r}, {self._hold(MISSING)})"
        plain = name.isidentifier() and not keyword.iskeyword(name)
        return f"{owner}.{name}" if plain else f"{self._hold(getattr)}({owner}, {name!r})"

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


# Of a subclass, too, what the built-in class would give: no code of the user's.
_KEYS: Callable[[Any], Iterator[Any]] = dict.__iter__  # pyright: ignore
_VALUES: Callable[[Any], Iterable[Any]] = dict.values  # pyright: ignore
_ORDER: Callable[[Any], Iterator[Any]] = collections.OrderedDict.__iter__  # pyright: ignore
_LENGTH: Callable[[Any], int] = dict.__len__  # pyright: ignore


def bound_names(cls: type) -> Callable[[], bool]:
    """Return a comparison of the names in a class, and in those above it, with what they are now.

    It takes as long, 0.5 us, as it does to look for one name that is not there.
    """
    mro = mro_of(cls)
    spaces = [space_of(c) for c in mro[:-1]]
    names = [*itertools.chain.from_iterable(spaces)]
    return lambda: mro_of(cls) is mro and [*itertools.chain.from_iterable(spaces)] == names


def parts_of(one: Any) -> Callable[[], bool]:
    """Return a comparison of a ``partial``, or ``partialmethod``, with what it is now.

    Its ``keywords`` can be written.
    """
    func, args, named, same = one.func, one.args, one.keywords, mapping_of(one.keywords)
    return lambda: one.func is func and one.args is args and one.keywords is named and same()


def mapping_of(one: dict[Any, Any]) -> Callable[[], bool]:
    """Return a comparison of a dictionary's keys and values with what they are now."""
    if issubclass(type(one), collections.OrderedDict):  # of which the order is apart
        order, same = tuple(_ORDER(one)), _mapping_of(one)
        return lambda: same() and all(map(is_, _ORDER(one), order))
    return _mapping_of(one)


def attributes_of(obj: Any, space: dict[str, Any]) -> Callable[[], bool]:
    """Return a comparison of an object's dictionary with what it is now; it can be replaced."""
    same = mapping_of(space)
    return lambda: instance_dict(obj) is space and same()


def _mapping_of(one: dict[Any, Any]) -> Callable[[], bool]:
    keys: tuple[Any, ...] = tuple(_KEYS(one))
    values: tuple[Any, ...] = tuple(_VALUES(one))
    count, of = len(keys), _VALUES
    return lambda: (
        _LENGTH(one) == count and all(map(is_, of(one), values)) and all(map(is_, _KEYS(one), keys))
    )
