"""What names stand for in a live program: the objects that they are bound to now."""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import inspect
import re
import sys
import types
from collections.abc import Iterator
from typing import Any, cast

from ..core.keep import forget_all
from ..core.trace import Tracer
from .cells import rebound
from .guards import Guards
from .objects import canonical, is_user_file, is_user_module, kind_of, name_of
from .syntax import node_of, tree_of
from .values import CHANGING, OUTSIDE, Function, Value

_FINAL = re.compile(r"\bFinal\b")
#: Packages that are not entered although they are the user's own; changed by `trust`.
_trusted: frozenset[str] = frozenset()


def trust(*packages: str) -> None:
    """Take the functions of further packages to be pure, as those of installed ones are."""
    global _trusted
    _trusted |= set(packages)
    forget_all()


def trusts() -> bool:
    """Say whether `trust` was ever called: verdicts are then those of this process alone."""
    return bool(_trusted)


class LiveResolver:
    """Answers the engine's questions from objects, and notes in `guards` what it looked up."""

    def __init__(self) -> None:
        self.guards = Guards()
        self._functions: dict[int, Function] = {}

    # --- the engine's questions ---

    def lookup(self, function: Function, name: str) -> Value | None:
        """Return what a cell, global or builtin is bound to."""
        fun: types.FunctionType = function.module
        code = fun.__code__
        if name in code.co_freevars and fun.__closure__:
            cell = fun.__closure__[code.co_freevars.index(name)]
            try:
                obj = cell.cell_contents
            except ValueError:
                return None
            if not isinstance(obj, Tracer):  # it is of this trace, and gone with it
                self.guards.add_cell(cell, name)
            value = self.describe(obj, name, "cell")
            if value.kind not in ("function", "class", "module", "partial"):
                value.rebound = _rebound(fun, name)
            return value
        namespace = fun.__globals__
        self.guards.add_name(namespace, name)
        if name in namespace:
            obj = namespace[name]
            constant = _is_constant(name, namespace.get("__annotations__"))
            value = self.describe(obj, name, "global", constant)
            if value.kind == "scalar" and not constant:
                value.constant = _imported_constant(fun, name)
            return value
        if hasattr(builtins, name):
            return self.describe(getattr(builtins, name), name, "global", True)
        return None

    def attribute(self, value: Value, name: str) -> Value | None:
        """Return the attribute of an object from outside, running no code of the user's."""
        obj = value.obj
        if not _is_present(obj):
            obj = _module_named(value.ref)
            if obj is None:
                return None
        spelled = f"{value.name}.{name}" if value.name else name
        if name == "__class__":
            return self.describe(type(obj), type(obj).__name__, "attribute", True)
        if isinstance(obj, types.ModuleType):
            return self._of_module(obj, name, spelled)
        if name.startswith("__") and not name.endswith("__"):
            owner = obj if isinstance(obj, type) else type(obj)
            private = [f"_{c.__name__.lstrip('_')}{name}" for c in owner.__mro__]
            name = next((p for p in private if _static(obj, p) is not _NOTHING), name)
        found = _static(obj, name)
        if found is _NOTHING:
            return None
        if isinstance(obj, type):
            return self._of_class(obj, name, found, spelled, value)
        return self._of_instance(obj, name, found, spelled, value)

    def items(self, value: Value) -> Iterator[Value] | None:
        """Return the elements of a tuple or frozen set, or the values of a read-only mapping."""
        parts = value.obj
        if isinstance(parts, types.MappingProxyType):
            self.guards.add_items(parts, value.name)
            parts = tuple(parts.values())
        if isinstance(parts, (tuple, frozenset)):
            return (self.describe(x, value.name, value.holder, value.constant) for x in parts)
        return None

    def item(self, value: Value, index: Any) -> Value | None:
        """Return what a list or dict holds now; no code of the user's runs."""
        if type(value.obj) in _PLAIN:
            try:
                return self.describe(value.obj[index], value.name, value.holder)
            except (LookupError, TypeError):
                return None
        return None

    def follow(self, value: Value) -> tuple[Function, Value | None] | None:
        """Return the body behind a callable of the user's code."""
        return self._follow(value.obj, value) if _is_present(value.obj) else None

    # --- objects ---

    def describe(
        self, obj: Any, name: str, holder: str = "", constant: bool = False, bound: Any = None
    ) -> Value:
        """Return the value of a live object."""
        if isinstance(obj, (staticmethod, classmethod)):
            obj = obj.__func__
        while _is_wrapper(obj):
            obj = obj.__wrapped__
        kind = kind_of(obj)
        ref = name_of(obj) if kind in ("function", "class", "module") else ""
        if kind == "function" and not ref and isinstance(obj, _BOUND):
            # A method of a list, say, kept under a name of its own: ``push = log.append``.
            receiver = self.describe(obj.__self__, name, holder)
            if receiver.kind in CHANGING or receiver.kind == "instance":
                return Value("member", OUTSIDE, name=f"{name}.{obj.__name__}", bound=receiver)
        value = Value(kind, OUTSIDE, name=name, ref=ref, obj=obj, holder=holder, constant=constant,
                      bound=bound)  # fmt: skip
        if kind == "partial":
            held = cast("functools.partial[Any]", obj)
            value.bound = self.describe(
                held.func, getattr(held.func, "__name__", name), holder, True
            )
            value.fields = {
                ("item", i): self.describe(a, name, "", True) for i, a in enumerate(held.args)
            }
            value.fields |= {k: self.describe(v, k, "", True) for k, v in held.keywords.items()}
        elif kind == "property":
            getter = getattr(obj, "fget", None) or getattr(obj, "func", None)
            if isinstance(getter, types.FunctionType) and is_user_file(getter.__code__.co_filename):
                value.function = self.function(getter)
        return value

    def function(self, fun: types.FunctionType) -> Function:
        """Return the syntax of a function, with the objects of its defaults."""
        kept = self._functions.get(id(fun))
        if kept is None:
            node, lines = node_of(fun)
            defaults = dict(
                zip(reversed(_positional(fun)), reversed(fun.__defaults__ or ()), strict=False)
            )
            defaults |= fun.__kwdefaults__ or {}
            values = {k: self.describe(v, k, "default") for k, v in defaults.items()}
            kept = Function(node, fun.__code__.co_filename, fun, name=fun.__name__,
                            defaults=values, lines=lines)  # fmt: skip
            self._functions[id(fun)] = kept
        return kept

    def _follow(self, obj: Any, value: Value) -> tuple[Function, Value | None] | None:
        receiver = value.bound if value.kind == "function" else None
        for _ in range(20):
            if getattr(obj, "__fnarray_pure__", False) is True:
                return None
            if isinstance(obj, types.MethodType):
                receiver = self.describe(obj.__self__, _self_name(obj), "receiver")
                obj = obj.__func__
            elif isinstance(obj, types.FunctionType):
                if is_user_file(obj.__code__.co_filename) and not _is_trusted(obj.__module__):
                    return self.function(obj), receiver
                # A wrapper of the standard library, such as contextmanager's.
                obj = getattr(obj, "__wrapped__", None)
            elif isinstance(obj, type):
                init = obj.__dict__.get("__init__") or getattr(obj, "__post_init__", None)
                init = obj.__init__ if init is None else init
                if not isinstance(init, types.FunctionType):
                    return None
                if not is_user_file(init.__code__.co_filename):
                    return None
                if init.__code__.co_filename.startswith("<"):  # made by dataclass: no source
                    return None
                return self.function(init), None
            elif hasattr(obj, "__wrapped__"):
                obj = obj.__wrapped__
            else:
                method = _static(type(obj), "__call__")
                if not isinstance(method, types.FunctionType):
                    return None
                if not is_user_file(method.__code__.co_filename):
                    return None
                return self.function(method), value.but(name=value.name or "self")
        return None

    def _of_module(self, module: types.ModuleType, name: str, spelled: str) -> Value | None:
        space = vars(module)
        try:
            obj = space[name] if name in space else getattr(module, name)
        except Exception:  # a module's own __getattr__ may raise anything: nothing is known then
            return None
        user = is_user_module(module.__name__, _trusted)
        if user or not callable(obj):
            # The functions of installed packages are what they are.
            self.guards.add_name(space, name)
        constant = not user or _is_constant(name, space.get("__annotations__"))
        value = self.describe(obj, spelled, "global", constant)
        if not user and value.kind not in ("module",):
            value.ref = canonical(f"{module.__name__}.{name}")
        return value

    def _of_class(
        self, cls: type, name: str, found: Any, spelled: str, value: Value
    ) -> Value | None:
        if isinstance(found, classmethod):
            return self.describe(found, spelled, "attribute", True, bound=value)
        if isinstance(found, (staticmethod, types.FunctionType)):
            self._guard_method(cls, name)
        if isinstance(found, (staticmethod, types.FunctionType, property)):
            holder = "static" if isinstance(found, staticmethod) else "attribute"
            return self.describe(found, spelled, holder, True)
        if isinstance(found, types.MemberDescriptorType) or name in getattr(cls, "_fields", ()):
            return None  # a slot or a named tuple's field: what it reads is in the instance
        user = is_user_module(cls.__module__, _trusted)
        try:
            obj = getattr(cls, name)
        except AttributeError:
            return None
        constant = (
            not user
            or _is_constant(name, getattr(cls, "__annotations__", None))
            or name in getattr(cls, "__dataclass_fields__", ())  # the default of a field
        )
        self.guards.add_attribute(cls, name, obj)
        made = self.describe(obj, spelled, "attribute", constant)
        if not user:
            made.ref = canonical(f"{cls.__module__}.{cls.__qualname__}.{name}")
        return made

    def _of_instance(
        self, obj: Any, name: str, found: Any, spelled: str, value: Value
    ) -> Value | None:
        own = name in getattr(obj, "__dict__", {})
        if not own:
            if isinstance(found, (property,)) or type(found).__name__ == "cached_property":
                made = self.describe(found, spelled, "attribute", True, bound=value)
                if made.function is not None:
                    return made
            if isinstance(found, (staticmethod, types.FunctionType)):
                self._guard_method(type(obj), name)
            if isinstance(found, types.FunctionType):
                return self.describe(found, spelled, "attribute", True, bound=value)
            if isinstance(found, classmethod):
                owner = self.describe(type(obj), type(obj).__name__, "attribute", True)
                return self.describe(found, spelled, "attribute", True, bound=owner)
            if isinstance(found, staticmethod):
                return self.describe(found, spelled, "attribute", True)
        try:
            inner = obj.__dict__[name] if own else getattr(obj, name)
        except Exception:  # a descriptor of the user's may raise anything: nothing is known then
            return None
        frozen = value.kind in ("frozen", "tuple", "array", "scalar", "function")
        constant = frozen or (
            not own and _is_constant(name, getattr(type(obj), "__annotations__", None))
        )
        made = self.describe(inner, spelled, "attribute", constant)
        if not frozen and (constant or made.kind in ("function", "class", "module", "partial")):
            self.guards.add_attribute(obj, name, inner)
        return made

    def _guard_method(self, cls: type, name: str) -> None:
        if is_user_module(cls.__module__, _trusted):
            self.guards.add_attribute(cls, name, getattr(cls, name))


_NOTHING: Any = object()
_PLAIN = frozenset({list, dict, collections.OrderedDict, collections.deque})
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)


def _static(obj: Any, name: str) -> Any:
    return inspect.getattr_static(obj, name, _NOTHING)


def _is_present(obj: Any) -> bool:
    return type(obj).__name__ != "Absent"


def _is_wrapper(obj: Any) -> bool:
    """Say whether an object, no plain function, stands for a function that it keeps."""
    if isinstance(obj, (types.FunctionType, type, types.ModuleType)) or not callable(obj):
        return False
    return callable(_static(obj, "__wrapped__")) and not getattr(obj, "__fnarray_pure__", False)


def _module_named(ref: str) -> Any:
    return sys.modules.get(ref)


def _self_name(method: types.MethodType) -> str:
    names = _positional(method.__func__) if isinstance(method.__func__, types.FunctionType) else []
    return names[0] if names else "self"


def _positional(fun: types.FunctionType) -> tuple[str, ...]:
    return fun.__code__.co_varnames[: fun.__code__.co_argcount]


def _is_trusted(module: str | None) -> bool:
    return bool(_trusted) and (module or "").partition(".")[0] in _trusted


def _is_constant(name: str, notes: Any) -> bool:
    if name.isupper() or (name.startswith("__") and name.endswith("__")):
        return True
    note = notes.get(name) if isinstance(notes, dict) else None
    return note is not None and bool(_FINAL.search(str(note)))


def _imported_constant(fun: types.FunctionType, name: str) -> bool:
    """Say whether a global was imported by name from a package that is not the user's."""
    lines = node_of(fun)[1]
    tree = tree_of(fun.__code__, lines) if lines else None
    for node in tree.body if tree is not None else ():
        if (
            isinstance(node, ast.ImportFrom)
            and any((a.asname or a.name) == name for a in node.names)
            and not node.level
        ):
            return not is_user_module(node.module or "", _trusted)
    return False


def _rebound(fun: types.FunctionType, name: str) -> str:
    node, lines = node_of(fun)
    tree = tree_of(fun.__code__, lines) if lines else None
    return rebound(tree, node.lineno, node.col_offset, name) if tree is not None else ""
