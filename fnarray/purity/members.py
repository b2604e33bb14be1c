"""Attributes of live objects, found where Python would find them, by no code of the user's.

Each answer is guarded by what it was found from: the entry of the instance's dictionary or its
absence, and the descriptor in the class, never what a descriptor makes, which is new at each look.
"""

from __future__ import annotations

import abc
import enum
import functools
import re
import sys
import types
from typing import Any, Protocol

from ..config import SETTINGS, Config
from ..core.callables import answers_itself, class_of, module_name
from .bindings import bound_in_class
from .guards import MISSING, Guards, attributes_of, parts_of, static
from .objects import (
    attribute_of,
    canonical,
    instance_dict,
    is_a,
    is_strange,
    is_user_file,
    is_user_module,
    kind_of,
    module_of,
    mro_of,
    space_of,
)
from .syntax import is_final, tree_of_file
from .values import OUTSIDE, PARTIAL_METHOD, Value, numbered

_LOOK_UP = vars(type)["__getattribute__"]
_FINAL = re.compile(r"\bFinal\b")
#: What swapping the code of a function, or its defaults, changes.
_OF_FUNCTIONS = frozenset({"__code__", "__defaults__", "__kwdefaults__", "__name__", "__qualname__",
                           "__doc__", "__module__"})  # fmt: skip
#: Functions in C, whose names nobody can set.
_IN_C = frozenset({types.BuiltinFunctionType, types.MethodDescriptorType, types.MethodWrapperType,
                   types.WrapperDescriptorType})  # fmt: skip
#: Of a class that is no part of Python's own code, and of one whose attributes cannot be set
#: (``Py_TPFLAGS_HEAPTYPE``, ``Py_TPFLAGS_IMMUTABLETYPE``).
_MADE, _IMMUTABLE = 1 << 9, 1 << 8
#: What a class is called.
_CALLED = {name: vars(type)[name] for name in ("__name__", "__qualname__")}
#: From where a class inherits.
_ORDER = {name: vars(type)[name] for name in ("__mro__", "__bases__", "__base__")}
#: Descriptors in C, which look at the object alone.
_PLAIN = (types.MemberDescriptorType, types.GetSetDescriptorType)
_PROPERTIES = (property, functools.cached_property)
#: What ``isinstance`` and ``issubclass`` ask of an abstract class: the answer is of a registry.
_CHECKED = frozenset({"__instancecheck__", "__subclasscheck__"})
#: Where an error was raised, and where a generator stands.
_PLACES = frozenset({"__traceback__", "__context__", "gi_frame", "gi_running", "gi_yieldfrom",
                     "cr_frame", "cr_running", "cr_await", "ag_frame", "ag_running"})  # fmt: skip
#: Of other kinds it does not matter how often they are bound.
FINAL_KINDS = frozenset({"scalar", "ndarray", "tuple"})
#: Kinds whose attributes no assignment can change.
_FIXED = frozenset({"frozen", "tuple", "array", "scalar"})


class Describer(Protocol):
    """What looking up attributes asks of the resolver."""

    guards: Guards
    #: Classes, by identity, with what others call for their instances; None while that is asked.
    called: dict[int, tuple[type, dict[Any, Value] | None]]

    def describe(
        self, obj: Any, name: str, holder: str = "", constant: bool = False, bound: Any = None
    ) -> Value:
        """Return the value of a live object."""
        ...

    def settled(self, value: Value) -> Value:
        """Guard what an array holds that is bound for good."""
        ...

    def declares(self, obj: Any) -> bool:
        """Say whether an object is a static argument, or part of one."""
        ...

    def declare(self, value: Value) -> Value:
        """Guard what a part of a static argument holds, as its attributes are."""
        ...


def is_constant(name: str, notes: Any) -> bool:
    """Say whether a name is declared a constant: in capitals, or annotated as ``Final``."""
    if name.isupper() or (name.startswith("__") and name.endswith("__")):
        return True
    note = notes.get(name) if is_a(notes, dict) else None
    return note is not None and bool(_FINAL.search(str(note)))


def names_of(obj: Any) -> set[str]:
    """Return the names of what an object, and the classes of the user's over it, have."""
    cls = obj if is_a(obj, type) else class_of(obj)
    spaces = [space_of(c) for c in mro_of(cls) if is_user_module(module_of(c))]
    own = instance_dict(obj) if spaces and not is_a(obj, type) else None
    found = {name for space in (*spaces, own or {}) for name in space if type(name) is str}
    if tuple in mro_of(cls):  # a named tuple's own tables, which its fields cannot be called
        found = {name for name in found if not name.startswith("_")}
    return found


def wrapped_by(obj: Any) -> Any:
    """Return the function that an object, no plain function, stands for; None if it does not.

    An object of the user's own class stands for itself: its ``__call__`` may do anything.
    """
    if is_a(obj, (types.FunctionType, type, types.ModuleType)) or not callable(obj):
        return None
    inner = attribute_of(obj, "__wrapped__")
    if not callable(inner) or attribute_of(obj, "__fnarray_pure__") is True:
        return None
    call = static(type(obj), "__call__")
    own = is_a(call, types.FunctionType) and is_user_file(call.__code__.co_filename)
    return None if own else inner


def attribute(resolver: Describer, obj: Any, name: str, value: Value) -> Value | None:
    """Return the attribute of an object; None where nobody knows it."""
    spelled = f"{value.name}.{name}" if value.name else name
    if name == "__class__":
        if is_user_module(module_of(class_of(obj))):
            resolver.guards.add_class(obj)
        return resolver.describe(
            type(obj), vars(type)["__name__"].__get__(type(obj)), "attribute", True
        )
    if is_a(obj, types.ModuleType) and not _has_own(obj, name):
        return _of_module(resolver, obj, name, spelled)
    if name.startswith("__") and not name.endswith("__"):
        owner = obj if is_a(obj, type) else class_of(obj)
        private = [f"_{c.__name__.lstrip('_')}{name}" for c in mro_of(owner)]
        name = next((p for p in private if attribute_of(obj, p, MISSING) is not MISSING), name)
    if is_strange(obj if is_a(obj, type) else class_of(obj)):
        return _opaque(spelled)
    if is_a(obj, type):
        return _of_class(resolver, obj, name, spelled, value)
    return _of_instance(resolver, obj, name, spelled, value)


def _has_own(module: types.ModuleType, name: str) -> bool:
    """Say whether a module is an object of a class of the user's, which has the attribute."""
    cls = class_of(module)
    if cls is types.ModuleType or not is_user_module(module_of(cls)):
        return False
    return name not in (instance_dict(module) or {}) and static(cls, name) is not MISSING


def _of_module(
    resolver: Describer, module: types.ModuleType, name: str, spelled: str
) -> Value | None:
    space = instance_dict(module) or {}
    user = is_user_module(module_name(module))
    if name not in space and ("__getattr__" not in space or user):
        resolver.guards.add_name(space, name)
        if "__getattr__" not in space:
            return None
        answer = _of_module(resolver, module, "__getattr__", f"{spelled}.__getattr__")
        return Value("answer", OUTSIDE, name=spelled, bound=answer, obj=name)
    try:
        # A library that brings names on first use binds them then: before they are guarded.
        obj = space[name] if name in space else getattr(module, name)
    except Exception:  # a library's own __getattr__ may raise anything: nothing is known then
        resolver.guards.add_name(space, name)
        return None
    resolver.guards.add_of_module(module, name)
    constant = not user or is_constant(name, space.get("__annotations__"))
    found = resolver.describe(obj, spelled, "global", constant)
    if not constant and found.kind in FINAL_KINDS:
        found.constant = is_final(space, name, found.kind)
    found = resolver.settled(found)
    if not user and found.kind != "module":
        found.ref = canonical(f"{module_name(module)}.{name}")
    return found


def _of_class(
    resolver: Describer, cls: type, name: str, spelled: str, value: Value
) -> Value | None:
    found, meta = static(cls, name), type(cls)
    user = is_user_module(module_of(cls))
    if user:
        resolver.guards.add_static(cls, name, found)
        if (told := _told_by_type(resolver, cls, name, spelled)) is not None:
            return told
    elif found is not MISSING and can_be_set(cls):
        resolver.guards.add_static(cls, name, found)
    own = meta is not type and is_user_module(module_of(meta))
    if own and (found is MISSING or is_a(static(meta, name), property)):
        return _of_metaclass(resolver, cls, name, spelled, value)
    if found is MISSING or static(meta, "__getattribute__") is not _LOOK_UP:
        above = static(meta, name)
        if can_be_set(meta):
            resolver.guards.add_class(cls)
            resolver.guards.add_static(meta, name, above)
        if meta is not type and above is not MISSING:
            if name in _CHECKED and issubclass(meta, abc.ABCMeta):
                token = abc.get_cache_token()
                resolver.guards.add_contents(cls, name, lambda: abc.get_cache_token() == token)
            return _bound(resolver, above, meta, spelled, value)
    if found is MISSING:
        told = answers_itself(meta) or name == "__subclasses__"  # of what anybody may add
        return _opaque(spelled) if told else None
    if is_a(found, classmethod):
        return resolver.describe(found, spelled, "attribute", True, bound=value)
    if is_a(found, functools.partialmethod):  # of the class
        return _partial_method(resolver, found, cls, spelled, None)
    if is_a(found, (staticmethod, types.FunctionType, *_PROPERTIES)) or _binds(found):
        holder = "static" if is_a(found, staticmethod) else "attribute"
        return resolver.describe(found, spelled, holder, True)
    if is_a(found, types.MemberDescriptorType) or name in (_declared(cls, "_fields") or ()):
        return None  # a slot or a named tuple's field: what it reads is in the instance
    if static(class_of(found), "__get__") is not MISSING:
        mine = is_user_module(module_of(class_of(found))) and not _is_harmless(class_of(found))
        return _described(resolver, found, cls, spelled, None) if mine else None
    try:
        obj = found if user else getattr(cls, name)
    except AttributeError:
        return None
    constant = (
        not user
        or is_constant(name, _declared(cls, "__annotations__"))
        or name in (_declared(cls, "__dataclass_fields__") or ())  # the default of a field
        or (name == "_fields" and tuple in mro_of(cls))
    )
    made = resolver.describe(obj, spelled, "attribute", constant)
    _finally(made, cls, name)
    made = resolver.settled(made)
    if not user:
        made.ref = canonical(f"{module_of(cls)}.{cls.__qualname__}.{name}")
    return made


def can_be_set(cls: type) -> bool:
    """Say whether anybody may set the attributes of a class: it is not in C, nor one of ours."""
    flags = vars(type)["__flags__"].__get__(cls)
    return flags & (_MADE | _IMMUTABLE) == _MADE and module_of(cls).partition(".")[0] != "fnarray"


def _told_by_type(resolver: Describer, cls: type, name: str, spelled: str) -> Value | None:
    """Return what `type` itself, or an enumeration's, tells of a class; guard what it is called."""
    if name in _ORDER:
        kept = mro_of(cls)
        resolver.guards.add_contents(cls, name, lambda: mro_of(cls) is kept)
        return resolver.describe(_ORDER[name].__get__(cls), spelled, "attribute", True)
    if name == "mro":
        return _opaque(spelled)
    if name in _CALLED:
        called = _CALLED[name].__get__(cls)
        resolver.guards.add_contents(cls, name, lambda: _CALLED[name].__get__(cls) is called)
    if name == "__members__" and is_a(cls, enum.EnumMeta):
        members: Any = vars(enum.EnumMeta)[name].__get__(cls)
        return resolver.describe(members, spelled, "attribute", True)
    return None


def _finally(made: Value, cls: type, name: str) -> None:
    """Take what a class, or one above, holds for constant if its source binds that once.

    What cannot change itself is, however often it is bound: which object it is, a guard tells.
    """
    made.constant = made.constant or made.kind in ("array", "frozen")
    if not made.constant and made.kind in FINAL_KINDS:
        home = next(c for c in mro_of(cls) if name in space_of(c))
        space = instance_dict(sys.modules.get(module_of(home))) or {}
        file: Any = space.get("__file__")
        tree = tree_of_file(file, space) if is_a(file, str) else None
        path = _CALLED["__qualname__"].__get__(home)
        made.constant = tree is not None and bound_in_class(tree, path, name)


def _of_metaclass(
    resolver: Describer, cls: type, name: str, spelled: str, value: Value
) -> Value | None:
    """Return what a metaclass of the user's has by a name, bound to the class."""
    meta = type(cls)
    found = static(meta, name)
    resolver.guards.add_class(cls)
    resolver.guards.add_static(meta, name, found)
    if found is MISSING:
        return _opaque(spelled) if answers_itself(meta) else None
    made = _bound(resolver, found, meta, spelled, value)
    if made is not None:
        return made
    if static(class_of(found), "__get__") is not MISSING:
        return _opaque(spelled) if is_user_module(module_of(class_of(found))) else None
    constant = is_constant(name, _declared(meta, "__annotations__"))
    return resolver.settled(resolver.describe(found, spelled, "attribute", constant))


def _of_instance(
    resolver: Describer, obj: Any, name: str, spelled: str, value: Value
) -> Value | None:
    cls = class_of(obj)
    if name == "__closure__" and is_a(obj, types.FunctionType):
        return _opaque(spelled)  # of cells, which anybody may set
    guards = resolver.guards
    if cls is Config and name in SETTINGS:
        guards.add_attribute(obj, name, setting := getattr(obj, name))
        return resolver.describe(setting, spelled, "attribute", True)
    if is_user_module(module_of(cls)):
        guards.add_static(cls, "__getattribute__", static(cls, "__getattribute__"))
    if name in _PLACES or (value.keeps and name == "cache_info"):
        return _opaque(spelled)
    if is_a(obj, types.FunctionType):
        if name in _OF_FUNCTIONS:
            guards.add_attribute(obj, name, held := getattr(obj, name))
            return resolver.settled(resolver.describe(held, spelled, "attribute", True))
        if name == "__wrapped__" and name not in obj.__dict__:
            return value  # of what stands for a function: it was looked behind before
    space = instance_dict(obj)
    user = is_user_module(module_of(cls))
    found = static(cls, name)
    first = is_a(found, property) or _decides(resolver, found)
    if space is not None and name in space and not first:
        return _own(resolver, obj, name, space[name], spelled, value)
    if name == "__dict__" or found is MISSING:
        _guard_absence(guards, obj, name, found)
        return _opaque(spelled) if user and answers_itself(cls) else None
    if user:
        guards.add_static(cls, name, found)
        if space is not None and not first:
            guards.add_state(obj, name, MISSING)
    elif can_be_set(cls):
        guards.add_static(cls, name, found)
    made = _bound(resolver, found, cls, spelled, value)
    if made is not None:
        return made
    if user and is_a(found, _PROPERTIES):
        return _opaque(spelled)
    if is_a(found, _PLAIN):
        return _slot(resolver, obj, found, spelled, value)
    if binds := static(class_of(found), "__get__") is not MISSING:
        if not _is_harmless(class_of(found)) and (
            user or is_user_module(module_of(class_of(found)))
        ):
            return _described(resolver, found, cls, spelled, value)
        try:
            found = getattr(obj, name)
        except Exception:  # a library's descriptor may raise anything: nothing is known then
            return None
        if user and space:  # such as an enumeration's ``value``: it looks at what the object holds
            guards.add_contents(obj, name, attributes_of(obj, space))
    static_too = resolver.declares(obj)
    constant = _is_fixed(value) or is_constant(name, _declared(cls, "__annotations__"))
    made = resolver.describe(found, spelled, "attribute", constant or static_too)
    if user and not binds:
        _finally(made, cls, name)
    return resolver.settled(resolver.declare(made) if static_too else made)


def _guard_absence(guards: Guards, obj: Any, name: str, found: Any) -> None:
    """Guard that an object has no attribute of its own by a name, and what answers for one."""
    cls = class_of(obj)
    if is_user_module(module_of(cls)) or is_a(obj, types.FunctionType):
        guards.add_state(obj, name, MISSING)
        guards.add_static(cls, name, found)
    if found is MISSING and can_be_set(cls):
        guards.add_class(obj)
        for special in ("__getattribute__", "__getattr__", name):
            guards.add_static(cls, special, answer := static(cls, special))
            if is_a(answer, types.FunctionType):
                guards.add_function(answer)


def _bound(resolver: Describer, found: Any, cls: type, spelled: str, value: Value) -> Value | None:
    """Return a method or property that a class holds, bound to an object; None for other things."""
    if is_a(found, classmethod):
        value = resolver.describe(cls, cls.__name__, "attribute", True)
        return resolver.describe(found, spelled, "attribute", True, bound=value)
    if is_a(found, staticmethod):
        return resolver.describe(found, spelled, "attribute", True)
    if is_a(found, types.FunctionType) or _binds(found):
        return resolver.describe(found, spelled, "attribute", True, bound=value)
    if is_a(found, functools.partialmethod):
        return _partial_method(resolver, found, cls, spelled, value)
    if is_a(found, types.DynamicClassAttribute):  # as an enumeration's ``value``
        found = property(found.fget)
    if is_a(found, _PROPERTIES):
        made = resolver.describe(found, spelled, "attribute", True, bound=value)
        return made if made.function is not None else None
    return None


def _partial_method(
    resolver: Describer, found: Any, cls: type, spelled: str, value: Value | None
) -> Value:
    """Return what a ``partialmethod`` gives: of an object, or of the class if that is None."""
    resolver.guards.add_contents(found, spelled, parts_of(found))
    method, told = found.func, is_a(found.func, (staticmethod, classmethod))
    if is_a(method, staticmethod):
        value = None
    elif told:
        value = resolver.describe(cls, _CALLED["__name__"].__get__(cls), "attribute", True)
    bound = resolver.describe(method, spelled, "attribute", True, bound=value)
    fields: dict[Any, Value] = {
        ("item", i): resolver.describe(a, spelled, "", True) for i, a in enumerate(found.args)
    }
    fields |= {k: resolver.describe(v, k, "", True) for k, v in found.keywords.items()}
    ref = PARTIAL_METHOD if value is None and not told else ""
    return Value("partial", OUTSIDE, name=spelled, ref=ref, bound=bound, fields=fields,
                 constant=True)  # fmt: skip


def _described(
    resolver: Describer, found: Any, cls: type, spelled: str, value: Value | None
) -> Value:
    """Return a descriptor of the user's as what it is asked by, for an object or for the class."""
    kind = class_of(found)
    look = static(kind, "__get__")
    entered = is_a(look, types.FunctionType) and is_user_file(look.__code__.co_filename)
    if not entered or is_strange(kind):
        return _opaque(spelled)
    resolver.guards.add_static(kind, "__get__", look)
    held = resolver.describe(found, spelled, "attribute", True)
    asked = resolver.describe(look, f"{spelled}.__get__", "attribute", True, bound=held)
    given = (
        value or Value("scalar", OUTSIDE, obj=None, constant=True),
        resolver.describe(cls, _CALLED["__name__"].__get__(cls), "attribute", True),
    )
    return Value("descriptor", OUTSIDE, name=spelled, bound=asked, fields=numbered(given))


def _decides(resolver: Describer, found: Any) -> bool:
    """Say whether a descriptor of the user's goes before what an object itself holds."""
    kind = class_of(found)
    if found is MISSING or _is_harmless(kind) or not is_user_module(module_of(kind)):
        return False
    put = {name: static(kind, name) for name in ("__set__", "__delete__")}
    for name, method in put.items():
        resolver.guards.add_static(kind, name, method)
    return any(method is not MISSING for method in put.values())


def inherited(resolver: Describer, owner: type, value: Value, name: str) -> Value | None:
    """Return what the classes after one, in the order of an object's class, have by a name."""
    made_by: Any = value.bound.obj if value.level != OUTSIDE and value.bound is not None else None
    cls = made_by or (value.obj if is_a(value.obj, type) else class_of(value.obj))
    if not is_a(cls, type) or not any(c is owner for c in mro_of(cls)):
        return None

    def after() -> tuple[Any, Any]:
        mro = mro_of(cls)
        for c in mro[mro.index(owner) + 1 :]:
            if name in space_of(c):
                return c, space_of(c)[name]
        return None, MISSING

    home, found = after()
    above = mro_of(cls)[mro_of(cls).index(owner) + 1 :]
    between = above if found is MISSING else above[: above.index(home) + 1]
    if any(is_user_module(module_of(c)) for c in between):
        resolver.guards.add_contents(cls, f"super().{name}", lambda: after()[1] is found)
    if found is MISSING:
        return None
    spelled = f"super().{name}"
    made = _bound(resolver, found, cls, spelled, value)
    if made is not None:
        return made
    if static(class_of(found), "__get__") is not MISSING:
        mine = is_user_module(module_of(class_of(found))) and not _is_harmless(class_of(found))
        return _described(resolver, found, cls, spelled, value) if mine else None
    constant = is_constant(name, _declared(home, "__annotations__"))
    made = resolver.describe(found, spelled, "attribute", constant)
    if is_user_module(module_of(home)):
        _finally(made, home, name)
    return resolver.settled(made)


def _own(resolver: Describer, obj: Any, name: str, inner: Any, spelled: str, value: Value) -> Value:
    """Return an attribute that the object itself holds."""
    fixed = _is_fixed(value)
    # A Ref is there to be held by an object; which one it is, is guarded.
    final = fixed or is_a(obj, types.FunctionType) or kind_of(inner) == "ref"
    static_too = resolver.declares(obj)
    made = resolver.describe(inner, spelled, "attribute", final or static_too)
    made = resolver.declare(made) if static_too else made
    kept = made.constant or made.kind in ("function", "class", "module", "partial")
    if kept and not value.guarded:
        resolver.guards.add_state(obj, name, inner)
        if is_user_module(module_of(cls := class_of(obj))):
            # A property of the class, set later, would come first.
            found = static(cls, name)
            guards = resolver.guards
            guards.add_names(cls) if found is MISSING else guards.add_static(cls, name, found)
    return resolver.settled(made)


def _slot(resolver: Describer, obj: Any, slot: Any, spelled: str, value: Value) -> Value | None:
    try:
        inner = slot.__get__(obj, type(obj))
    except AttributeError:
        return None
    in_c = class_of(obj) in _IN_C or module_of(class_of(obj)) == "numpy"  # as of a ufunc
    named = in_c and slot.__name__ in _OF_FUNCTIONS
    static_too = resolver.declares(obj)
    made = resolver.describe(inner, spelled, "attribute", named or static_too or _is_fixed(value))
    made = resolver.declare(made) if static_too else made
    # An exception's cause, context and traceback change whenever it is raised.
    own = is_a(slot, types.MemberDescriptorType) and is_user_module(module_of(class_of(obj)))
    kept = made.constant and (own or is_a(obj, BaseException))
    if kept or made.kind in ("function", "class", "module", "partial"):
        kept = inner
        resolver.guards.add_contents(obj, spelled, lambda: slot.__get__(obj, type(obj)) is kept)
    return resolver.settled(made)


def _is_fixed(value: Value) -> bool:
    return value.kind in _FIXED or value.guarded


def _opaque(spelled: str) -> Value:
    """Return what only running the user's code would tell: it is as changeable as its object."""
    return Value("opaque", OUTSIDE, name=spelled, holder="attribute")


def _declared(cls: type, name: str) -> Any:
    """Return what a class says of itself, by a special name; None where it does not."""
    found = static(cls, name)
    return None if found is MISSING else found


def _is_harmless(descriptor: type) -> bool:
    """Say whether a descriptor's look-up is in C, or an enumeration's."""
    look = static(descriptor, "__get__")
    return not is_a(look, types.FunctionType) or issubclass(descriptor, types.DynamicClassAttribute)


def _binds(found: Any) -> bool:
    """Say whether what a class holds wraps a function, and binds as a method does."""
    return wrapped_by(found) is not None and static(class_of(found), "__get__") is not MISSING
