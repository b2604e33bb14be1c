"""What a call of a class runs besides what it is given: for nodes of a tree, fields, defaults."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

from ..core.callables import class_of, said_of
from ..core.tree_nodes import node_functions
from .guards import static
from .known import effect_of
from .members import Describer
from .objects import is_a, is_user_file, is_user_module, module_of, name_of
from .values import CHANGING, OUTSIDE, Value


def called_for(resolver: Describer, cls: type) -> dict[Any, Value] | None:
    """Return what a class's instances get besides what a call of it is given, by its use.

    "called" is what others call for them; "made" and "default" stand for an argument that is left
    out, by its place and name: what is called for it, and what changes.
    The first takes a node of a tree apart, and makes one; the second makes the defaults of a
    dataclass's fields, whatever can be called: a function, a partial, a class, an object's method.
    None while that is being asked: a class is met again where what makes it is a method of its own.
    """
    if id(cls) not in resolver.called:
        resolver.called[id(cls)] = cls, None
        resolver.called[id(cls)] = cls, _called_for(resolver, cls) or None
    return resolver.called[id(cls)][1]


def _called_for(resolver: Describer, cls: type) -> dict[Any, Value]:
    nodes = (*node_functions(cls), static(cls, "tree_flatten"), static(cls, "tree_unflatten"))
    found: dict[Any, Value] = {}
    for one in nodes:
        if (value := _called(resolver, one)) is not None:
            found["called", len(found)] = value
    fields = static(cls, "__dataclass_fields__")
    given = [f for f in fields.values() if is_a(f, dataclasses.Field)] if is_a(fields, dict) else []
    by_place = [f.name for f in given if f.init and not f.kw_only]
    for field in given:
        value = _called(resolver, field.default_factory)
        if value is None and (ref := _effect_by_name(field.default_factory)):
            value = Value("function", OUTSIDE, name=ref, ref=ref, constant=True)
        if value is not None:
            place = by_place.index(field.name) if field.name in by_place else len(fields)
            found["made", (place, field.name)] = value
    names, defaults = static(cls, "_fields"), static(cls, "_field_defaults")
    if is_a(names, tuple) and is_a(defaults, dict):  # of a named tuple
        for place in ((i, name) for i, name in enumerate(names) if name in defaults):
            spelled = f"{cls.__name__}.{place[1]}"
            value = resolver.describe(defaults[place[1]], spelled, "attribute", True)
            value = resolver.settled(value)
            if value.kind in CHANGING or value.kind == "instance":
                found["default", place] = value
    return found


def _effect_by_name(obj: Any) -> str:
    """Return the name of a function that is known for its effect, as ``time.time`` is; or ""."""
    named = is_a(obj, (types.FunctionType, types.BuiltinFunctionType, types.MethodType))
    ref = name_of(obj) if named else ""
    return ref if ref and effect_of(ref) else ""


def _called(resolver: Describer, obj: Any) -> Value | None:
    """Return what a call of an object enters, if that is of the user's."""
    if is_a(obj, classmethod):
        obj = obj.__func__
    if is_a(obj, functools.partial):
        return resolver.describe(obj, "a partial", "attribute", True)
    if is_a(obj, types.FunctionType):
        users = is_user_file(obj.__code__.co_filename)
        return resolver.describe(obj, obj.__name__, "attribute", True) if users else None
    if is_a(obj, types.MethodType):
        held = resolver.describe(obj.__self__, "self", "attribute", True)
        inner: Any = obj.__func__
        return resolver.describe(inner, said_of(inner, "__name__"), "attribute", True, bound=held)
    if is_a(obj, types.BuiltinMethodType):  # ``LAYERS.copy``
        value = resolver.describe(obj, obj.__name__, "attribute", True)
        return value if value.kind == "member" else None
    if is_a(obj, type):
        users = is_user_module(module_of(obj))
        return resolver.describe(obj, obj.__name__, "attribute", True) if users else None
    method = static(class_of(obj), "__call__")
    if is_a(method, types.FunctionType) and is_user_file(method.__code__.co_filename):
        resolver.guards.add_static(class_of(obj), "__call__", method)
        held = resolver.describe(obj, class_of(obj).__name__, "attribute", True)
        return resolver.describe(method, "__call__", "attribute", True, bound=held)
    return None
