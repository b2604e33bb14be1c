"""What names stand for in a live program: the objects that they are bound to now."""

from __future__ import annotations

import builtins
import enum
import functools
import operator
import pathlib
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..core.callables import class_of, module_name, mro_of, said_of
from ..core.keep import forget_all
from ..core.trace import Tracer
from .bindings import belongs, bound_before
from .cells import rebound
from .contents import Contents, contents_of, items_of, read_only, slots_of
from .guards import MISSING, Guards, parts_of, static
from .members import (
    FINAL_KINDS,
    attribute,
    can_be_set,
    inherited,
    is_constant,
    names_of,
    wrapped_by,
)
from .objects import (
    attribute_of,
    behind,
    instance_dict,
    is_a,
    is_array,
    is_own_file,
    is_plain,
    is_strange,
    is_trusted,
    is_user_file,
    is_user_module,
    is_wrapper,
    iterated,
    kind_of,
    makes_named_tuple,
    meant,
    module_of,
    name_of,
    positional,
    protocol_members,
    self_name,
    trusted_packages,
    watched_by,
)
from .syntax import is_final, source_of, tree_of
from .values import ABSENT, CHANGING, CONTAINERS, OUTSIDE, Function, Value, numbered


def trust(*packages: str) -> None:
    """Take the functions of further packages to be pure, as those of installed ones are."""
    trusted_packages.update(packages)
    forget_all()


def trusts() -> bool:
    """Say whether `trust` was ever called: verdicts are then those of this process alone."""
    return bool(trusted_packages)


#: Calls of these give an object, and run no code of the user's.
_NUMBERS = frozenset((bool, int, float, complex))
_REFERENCES = (weakref.ref, weakref.WeakMethod)


class LiveResolver:
    """Answers the engine's questions from objects, and notes in `guards` what it looked up."""

    contexts: tuple[int, int] = (6, 40)
    #: As deep as anything is followed: each turn may read the next of a captured tuple's parts.
    recursion: int = 40
    presumes: bool = False
    places = None

    def __init__(self) -> None:
        self.guards = Guards()
        self.called: dict[int, tuple[type, dict[Any, Value] | None]] = {}
        self._functions: dict[int, Function] = {}
        #: What has no body to enter, such as a library's functions, by identity.
        self._closed: dict[int, Any] = {}
        #: What names of a namespace, and attributes of a module, stand for: asked for many times.
        self._names: dict[tuple[int, str], Value | None] = {}
        #: Static arguments, and objects that they hold: by identity.
        self._declared: dict[int, Any] = {}
        #: Whether an object's contents are guarded, by its identity; the object is held.
        self._held: dict[int, tuple[Any, Contents | None]] = {}

    # --- the engine's questions ---

    def lookup(self, function: Function, name: str) -> Value | None:
        """Return what a cell, global or builtin is bound to."""
        fun: types.FunctionType = function.module
        code = fun.__code__
        if name in code.co_freevars and fun.__closure__:
            return self._of_cell(fun, fun.__closure__[code.co_freevars.index(name)], name)
        namespace = fun.__globals__
        own: Any = fun.__builtins__
        if name not in namespace and own is not vars(builtins) and name in own:
            self.guards.add_name(namespace, name)
            namespace = own  # text that is run may bring its own
        key = id(namespace), name
        if key not in self._names:
            self._names[key] = self._of_namespace(namespace, name)
        return self._names[key]

    def _of_namespace(self, namespace: dict[str, Any], name: str) -> Value | None:
        self.guards.add_name(namespace, name)
        if name in namespace:
            obj = namespace[name]
            constant = is_constant(name, namespace.get("__annotations__"))
            value = self.describe(obj, name, "global", constant)
            if not constant and value.kind in FINAL_KINDS:
                value.constant = is_final(namespace, name, value.kind)
            return self.settled(value)
        if name in vars(builtins):
            key = 0, name  # of no namespace: described once
            if key not in self._names:
                self._names[key] = self.describe(getattr(builtins, name), name, "global", True)
            return self._names[key]
        return None

    def _of_cell(self, fun: types.FunctionType, cell: types.CellType, name: str) -> Value | None:
        try:
            obj = cell.cell_contents
        except ValueError:
            return None
        if not is_a(obj, Tracer):  # it is of this trace, and gone with it
            self.guards.add_cell(cell, name)
        value = self.describe(obj, name, "cell")
        if value.kind in ("function", "class", "module", "partial"):
            return value
        node, lines, above = source_of(fun)
        tree = tree_of(fun.__code__, lines) if lines else None
        if tree is None:
            return value
        at = tree, node.lineno + above, node.col_offset, name
        value.rebound = rebound(*at)
        if value.kind in ("ndarray", "tuple"):
            value.constant = bound_before(*at)
        elif value.kind in CONTAINERS and not value.rebound and belongs(*at):
            value.guarded = self.hold(obj, name)
        return self.settled(value)

    def settled(self, value: Value) -> Value:
        """Guard what an array holds that is bound for good, if it is small enough."""
        if value.constant and value.kind == "ndarray" and not value.rebound:
            value.guarded = self.hold(value.obj, value.name)
        return value

    def declares(self, obj: Any) -> bool:
        """Say whether an object is a static argument, or part of one."""
        return id(obj) in self._declared

    def declare(self, value: Value) -> Value:
        """Take what is, or is held by, a static argument for what stays, and guard that it does.

        Of an object of the user's each attribute is, as it is read; of the rest what it holds.
        """
        if value.kind == "instance" and not is_a(value.obj, threading.local):  # another in each
            self._declared[id(value.obj)] = value.obj
        elif value.kind in _HELD:
            value.guarded = self.hold(value.obj, value.name)
        return value

    def is_whole(self, value: Value) -> bool:
        """Say whether all that a static argument holds is guarded, which is read as a whole."""
        return self.declares(value.obj) and self.hold(value.obj, value.name)

    def hold(self, obj: Any, name: str, *, trusted: bool = False) -> bool:
        """Guard what an object holds, all the way down; False where that cannot be told."""
        known = self._held.get(id(obj))
        if known is None:
            found = contents_of(obj)
            known = self._held[id(obj)] = obj, found
            if found is not None and found.some:
                self.guards.add_contents(obj, name, found.hold, trusted=trusted)
        return known[1] is not None

    def _held_functions(self, obj: Any) -> dict[Any, Value] | None:
        """Return the user's functions in an object of a library, which it may call."""
        contents = self._held[id(obj)][1] if id(obj) in self._held else None
        found = [
            self.describe(f, f.__name__, "element", True)
            for f in (contents.functions if contents is not None else ())
            if is_user_file(f.__code__.co_filename)
        ]
        return {("item", i): v for i, v in enumerate(found)} or None

    def attribute(self, value: Value, name: str) -> Value | None:
        """Return the attribute of an object from outside, running no code of the user's."""
        obj = value.obj
        if not _is_present(obj):
            obj = sys.modules.get(value.ref)
            if obj is None:
                return None
            if is_user_module(value.ref):  # anybody may put another in its place
                self._add_loaded(value.ref, obj)
        if value.kind != "module" and not is_a(obj, types.ModuleType):
            return attribute(self, obj, name, value)
        key = id(obj), f"{value.name}.{name}"
        if key not in self._names:
            self._names[key] = attribute(self, obj, name, value)
        return self._names[key]

    def _add_loaded(self, name: str, module: Any) -> None:
        """Guard which module is loaded under a name."""
        look_up = sys.modules.get
        self.guards.add_contents(sys.modules, name, lambda: look_up(name) is module)

    def inherited(self, owner: Value, receiver: Value, name: str) -> Value | None:
        """Return what ``super()`` finds by a name, in a method of a class, bound to the object."""
        return inherited(self, owner.obj, receiver, name) if is_a(owner.obj, type) else None

    def is_custom(self, value: Value) -> bool:
        """Say whether an object is of a class in the user's code, whose operators are as well."""
        cls = class_of(value.obj)
        return _is_present(value.obj) and cls is not type and is_user_module(module_of(cls))

    def is_ready_made(self, value: Value) -> bool:
        """Say whether an object is of a class that is known to be a library's."""
        return value.kind == "instance" and _is_present(value.obj) and not self.is_custom(value)

    def is_own(self, value: Value, name: str) -> bool:
        """Say whether an array has an attribute of its own class, one of the user's."""
        if value.kind != "ndarray" or not self.is_custom(value):
            return False
        cls = class_of(value.obj)
        found = static(cls, name)
        self.guards.add_static(cls, name, found)
        above = next(c for c in mro_of(cls) if not is_user_module(module_of(c)))
        return name in (instance_dict(value.obj) or ()) or found is not static(above, name)

    def setter(self, value: Value, name: str) -> Value | None:
        """Return what an assignment to an attribute calls, by the class of its object."""
        cls: Any = value.bound.obj if value.level != OUTSIDE and value.bound is not None else None
        cls = cls if is_a(cls, type) else class_of(value.obj)
        found = static(cls, name)
        if is_a(found, property) and found.fset is not None:
            return self.describe(found.fset, name, "attribute", True, bound=value)
        put = static(class_of(found), "__set__")
        if is_a(put, types.FunctionType) and is_user_file(put.__code__.co_filename):
            held = self.describe(found, name, "attribute")
            method = self.describe(put, name, "attribute", True, bound=held)
            return Value("partial", name=name, bound=method, fields={("item", 0): value})
        return None

    def is_open(self, value: Value) -> bool:
        """Say whether anybody may set attributes of a function, class or module of the user's."""
        obj = value.obj
        if is_a(obj, types.FunctionType):
            return is_user_file(obj.__code__.co_filename)
        if is_a(obj, (type, types.ModuleType)):
            return is_user_module(
                module_name(obj) if is_a(obj, types.ModuleType) else module_of(obj)
            )
        return False

    def gives_its_kind(self, value: Value) -> bool:
        """Say whether operators of an object give another of its class: of paths, and flags."""
        return is_a(value.obj, (enum.Flag, pathlib.PurePath))

    def watch(self, value: Value, what: str) -> None:
        """Guard what a function of a library looks at, besides what it is given."""
        self._watch(value.obj, value.name, what)

    def _watch(self, obj: Any, name: str, what: str) -> None:
        from .watched import SETTINGS, WATCHED  # few functions ask for it

        if (same := WATCHED[what](obj)) is not None:
            setting = SETTINGS.get(what)
            holder, spelled = (WATCHED, setting) if setting else (obj, f"{name} ({what})")
            self.guards.add_contents(holder, spelled, same)

    def heed(self, value: Value, names: Iterable[str]) -> None:
        """Guard which special methods the class of a library's object has, by some names."""
        if _is_present(value.obj):
            self._heed(value.obj, names)

    def _heed(self, obj: Any, names: Iterable[str]) -> None:
        if can_be_set(cls := class_of(obj)):
            self.guards.add_class(obj)
            for name in names:
                self.guards.add_static(cls, name, found := static(cls, name))
                self._heed_code(found)

    def members(self, value: Value) -> Iterable[str]:
        """Return the attributes that ``isinstance`` looks for: of a protocol, its members."""
        return protocol_members(value.obj) if is_a(value.obj, type) else ()

    def names(self, value: Value) -> Iterable[str]:
        """Return the names of attributes that an object of the user's code has."""
        return names_of(value.obj) if _is_present(value.obj) else ()

    def parts(self, value: Value) -> Iterator[Value] | None:
        """Return what an immutable object holds, by whatever name: a tuple's items, and fields."""
        if is_a(value.obj, _HOLDING) or self.is_custom(value):
            if not is_a(value.obj, _HOLDING):  # frozen it may be, and be written even so
                self.hold(value.obj, value.name)
                if (taken := static(class_of(value.obj), "tree_flatten")) is not MISSING:
                    self.guards.add_static(class_of(value.obj), "tree_flatten", taken)
            held = [*(self.items(value) or ())]
            fields = instance_dict(value.obj) or {}
            for field, obj in (*fields.items(), *slots_of(value.obj)):
                spelled = f"{value.name}.{field}" if value.name else field
                held.append(self.settled(self.describe(obj, spelled, "attribute", True)))
            return iter(held)
        return None

    def items(self, value: Value) -> Iterator[Value] | None:
        """Return the elements of a container that is not local and is immutable, or guarded."""
        parts = behind(value.obj)
        if is_a(parts, enum.EnumMeta):
            parts = parts._member_map_
        if is_a(parts, dict):
            parts = tuple(_VALUES(parts))
        if not is_a(parts, (tuple, frozenset)) and not (value.guarded and is_plain(parts)):
            return None
        return (self._element(x, value) for x in iterated(parts))

    def item(self, value: Value, index: Any) -> Value | None:
        """Return what a container holds now at a constant index; no code of the user's runs."""
        if is_a(value.obj, enum.EnumMeta):
            self.watch(value, "members")
            member = value.obj._member_map_.get(index) if type(index) is str else None
            spelled = f"{value.name}[{index!r}]"
            return None if member is None else self.describe(member, spelled, "attribute", True)
        if value.obj is sys.modules and is_a(index, str):
            self._add_loaded(index, module := sys.modules.get(index))
            return self.describe(module, index) if is_a(module, types.ModuleType) else None
        parts = behind(value.obj)
        if is_plain(parts):
            try:
                return self._element(parts[index], value)
            except (LookupError, TypeError):
                return None
        return None

    def callables(self, value: Value, index: Any) -> list[Value]:
        """Return the functions that a container holds now, at an index or, for None, at any.

        The container itself is no constant: which functions they are, the verdict depends on.
        """
        parts = value.obj
        if not is_plain(parts):
            return []
        if index is not None:
            known = self.item(value, index)
            found = [] if known is None else [known]
        else:
            # At once: `sys.modules` may grow meanwhile.
            held = tuple(_VALUES(parts) if is_a(parts, dict) else parts)
            found = [self.describe(x, value.name, "element") for x in held if callable(x)]
        found = [v for v in found if v.kind in _CALLED]
        if found:
            self.guards.add_contents(parts, value.name, items_of(parts))
        return found

    def _element(self, obj: Any, whole: Value) -> Value:
        """Return a part of a container, which is held with the whole where that is guarded."""
        part = self.describe(obj, whole.name, whole.holder, whole.constant)
        if whole.guarded or is_a(whole.obj, types.MappingProxyType):
            part.guarded = part.constant = True
            return part
        return self.settled(part)

    def follow(self, value: Value) -> tuple[Function, Value | None] | None:
        """Return the body behind a callable of the user's code."""
        obj = value.obj
        if not _is_present(obj) or id(obj) in self._closed:
            return None
        found = self._follow(obj, value)
        if found is None:
            self._closed[id(obj)] = obj
        return found

    # --- objects ---

    def describe(
        self, obj: Any, name: str, holder: str = "", constant: bool = False, bound: Any = None
    ) -> Value:
        """Return the value of a live object."""
        cls = class_of(obj)  # whose hash a metaclass may compute
        # A table of thousands of numbers, or rows, is most of a check.
        if cls is tuple or (class_of(cls) is type and cls in _NUMBERS):
            kind = kind_of(obj) if cls is tuple else "scalar"
            return Value(kind, OUTSIDE, name=name, obj=obj, holder=holder, constant=constant,
                         bound=bound)  # fmt: skip
        if cls is types.FunctionType:
            return self._described(obj, name, holder, constant, bound)
        obj = meant(obj)
        if any(type(obj) is r for r in _REFERENCES) and (target := obj()) is not None:
            held = self.describe(target, f"{name}()", "attribute")
            # Of one object all its life: what can change is whether that still lives.
            self.guards.add_contents(obj, name, lambda: obj() is not None)
            return Value("weak", OUTSIDE, name=name, obj=obj, holder=holder, constant=True,
                         bound=held)  # fmt: skip
        if type(obj) is _GETTER:
            return Value("getter", name=" ".join(obj.__reduce__()[1]), constant=True)
        if type(obj) is _METHOD:
            method, *given = obj.__reduce__()[1]
            values = (self.describe(x, name, "element", True) for x in given)
            return Value("getter", name=method, constant=True, fields=numbered(values))
        keeps = is_a(obj, functools.cached_property)
        while (inner := wrapped_by(obj)) is not None:
            keeps = keeps or type(obj) is _CACHE
            if is_wrapper(obj):  # it may hold arguments, too
                self.hold(obj, name, trusted=True)
            obj = inner
        return self._described(obj, name, holder, constant, bound, keeps=keeps)

    def _described(
        self, obj: Any, name: str, holder: str, constant: bool, bound: Any, *, keeps: bool = False
    ) -> Value:
        """Return the value of an object that stands for no other."""
        kind, fields = kind_of(obj), None
        if kind == "foreign" or (kind == "function" and is_wrapper(obj)):
            # Of an installed class nobody knows whether its objects change: what they hold tells.
            told = self.hold(obj, name, trusted=True)
            kind = kind if kind == "function" else "frozen" if told else "instance"
            fields = self._held_functions(obj)
        elif kind in ("frozen", "class") and (what := watched_by(obj)):
            self._watch(obj, name, what)
        elif is_a(obj, types.MappingProxyType):
            kind = "frozen" if self.hold(obj, name) else "dict"
        elif kind == "frozen" and is_array(obj) and not self._hold_still(obj, name):
            kind = "ndarray"
        ref = name_of(obj) if kind in ("function", "class", "module") else ""
        if kind == "function" and not ref and is_a(obj, _BOUND):
            # A method of a list, say, kept under a name of its own: ``push = log.append``.
            receiver = self.describe(obj.__self__, name, holder)
            if receiver.kind in CHANGING or receiver.kind == "instance":
                return Value("member", OUTSIDE, name=f"{name}.{obj.__name__}", bound=receiver)
        value = Value(kind, OUTSIDE, name=name, ref=ref, obj=obj, holder=holder, constant=constant,
                      bound=bound, fields=fields, keeps=keeps)  # fmt: skip
        if kind == "partial":
            self._fill_partial(value, obj)
        elif kind == "class":
            from .makers import called_for  # which calls of no class need

            value.fields = called_for(self, obj)
        elif kind == "property":
            getter: Any = getattr(obj, "fget", None) or getattr(obj, "func", None)
            if is_a(getter, types.FunctionType) and is_user_file(getter.__code__.co_filename):
                value.function = self.function(getter)
        elif kind == "function" and is_a(obj, types.FunctionType):
            self._hold_closure(value, obj, name)
            if is_a(registry := obj.__dict__.get("registry"), types.MappingProxyType):
                self._add_implementations(value, registry)
        return value

    def _hold_still(self, array: Any, name: str) -> bool:
        """Guard a read-only array: by its contents, or, of a large one, by its being read-only."""
        if self.hold(array, name):
            return True
        if array.dtype.hasobject:  # what they hold may change
            return False
        self.guards.add_contents(array, name, read_only(array))
        return True

    def _fill_partial(self, value: Value, held: Any) -> None:
        self.guards.add_contents(held, value.name, parts_of(held))
        made = said_of(held.func, "__name__") or value.name
        value.bound = self.describe(held.func, made, value.holder, True)
        value.fields = {
            ("item", i): self.settled(self.describe(a, value.name, "", True))
            for i, a in enumerate(held.args)
        }
        value.fields |= {
            k: self.settled(self.describe(v, k, "", True)) for k, v in held.keywords.items()
        }

    def _add_implementations(self, value: Value, registry: Any) -> None:
        """Take a call of a generic function for one of any of its implementations."""
        self.hold(registry, value.name)
        value.others = tuple(
            self.describe(f, value.name, value.holder, True)
            for f in tuple(behind(registry).values())
        )

    def _hold_closure(self, value: Value, fun: types.FunctionType, name: str) -> None:
        """Guard what a function of an installed package captures: nobody enters it to see."""
        if self._heed_code(fun) and fun.__closure__:
            self.hold(fun, name, trusted=True)
            value.fields = self._held_functions(fun)

    def _heed_code(self, fun: Any) -> bool:
        """Guard the code of a function of an installed package; say whether it is one."""
        if not is_a(fun, types.FunctionType):
            return False
        file = fun.__code__.co_filename
        if is_user_file(file) or is_own_file(file):
            return False
        self.guards.add_function(fun)
        return True

    def function(self, fun: types.FunctionType) -> Function:
        """Return the syntax of a function, with the objects of its defaults."""
        kept = self._functions.get(id(fun))
        if kept is None:
            node, lines, above = source_of(fun)
            self.guards.add_function(fun)
            defaults = dict(
                zip(reversed(positional(fun)), reversed(fun.__defaults__ or ()), strict=False)
            )
            defaults |= fun.__kwdefaults__ or {}
            values = {
                k: self.settled(self.describe(v, k, "default", is_array(v)))
                for k, v in defaults.items()
            }
            kept = Function(node, fun.__code__.co_filename, fun, name=fun.__name__,
                            defaults=values, lines=lines, above=above)  # fmt: skip
            self._functions[id(fun)] = kept
        return kept

    def _follow(self, obj: Any, value: Value) -> tuple[Function, Value | None] | None:
        receiver = value.bound if value.kind == "function" else None
        for _ in range(20):
            plain = type(obj) is types.FunctionType
            mark = obj.__dict__.get(_MARK) if plain else attribute_of(obj, _MARK)
            if mark is True:
                return None
            if is_a(obj, types.MethodType):
                receiver = self.describe(obj.__self__, self_name(obj), "receiver")
                obj = obj.__func__
            elif is_a(obj, types.FunctionType):
                if makes_named_tuple(obj):
                    self.guards.add_function(obj)
                    return None
                if is_user_file(obj.__code__.co_filename) and not is_trusted(obj.__module__):
                    return self.function(obj), receiver
                # A wrapper of the standard library, such as contextmanager's.
                obj = obj.__dict__.get("__wrapped__")
            elif is_a(obj, type):
                return self._constructor(obj)
            elif (inner := wrapped_by(obj)) is not None:
                obj = inner
            else:
                return self._call_of(class_of(obj), value)
        return None

    def _constructor(self, cls: type) -> tuple[Function, Value | None] | None:
        if is_strange(cls) or (is_a(cls, enum.EnumMeta) and static(cls, "_member_map_")):
            return None  # of an enumeration a call gives a member, and makes nothing
        made: Any = static(type(cls), "__call__") if type(cls) is not type else None
        self._heed(cls, ("__call__",))
        if is_a(made, types.FunctionType) and is_user_file(made.__code__.co_filename):
            return self.function(made), self.describe(cls, cls.__name__, "receiver")
        for name in ("__init__", "__post_init__", "__new__"):
            found = static(cls, name)
            if is_a(found, staticmethod):
                found = found.__func__
            if not is_a(found, types.FunctionType):
                continue
            file = found.__code__.co_filename
            if can_be_set(cls):
                self.guards.add_static(cls, name, static(cls, name))
            if file == "<string>":  # made by dataclass: no source, but defaults
                self.guards.add_function(found)
            elif is_user_file(file):
                return self.function(found), None
        return None

    def _call_of(self, cls: type, value: Value) -> tuple[Function, Value] | None:
        self._heed(value.obj, ("__call__",))
        method = static(cls, "__call__")
        if not is_a(method, types.FunctionType):
            return None
        if not is_user_file(method.__code__.co_filename):
            return None
        self.guards.add_static(cls, "__call__", method)
        return self.function(method), value.but(name=value.name or "self")


_VALUES: Callable[[Any], Iterable[Any]] = dict.values  # pyright: ignore
_GETTER: Any = operator.attrgetter
_METHOD: Any = operator.methodcaller
_CACHE = type(functools.lru_cache(lambda: None))
_HELD = CONTAINERS | {"tuple", "frozen"}
_HOLDING = (tuple, frozenset, types.MappingProxyType)
_CALLED = frozenset({"function", "partial", "instance", "member"})
_MARK = "__fnarray_pure__"
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)


def _is_present(obj: Any) -> bool:
    return obj is not ABSENT
