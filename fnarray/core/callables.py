"""What is asked of a callable that a user hands in, running no code of the user's.

A callable object may answer for attributes that it does not have, and raise anything: names and
signatures come from its dictionary and its class.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard, TypeVar, cast

from .source import boundary

T = TypeVar("T")
_PLAIN = (
    types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType, type,
)  # fmt: skip
#: Descriptors in C, which look at the object alone.
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_MOST = 100


def is_a(obj: Any, classes: type[T] | tuple[type[T], ...]) -> TypeGuard[T]:
    """As ``isinstance``, by the real class: asking for ``__class__`` may run the user's code."""
    return issubclass(type(obj), classes)


def class_of(obj: Any) -> type:
    """Return an object's real class."""
    return type(obj)  # pyright: ignore[reportUnknownVariableType]


# A metaclass may answer for its classes: these ask nobody.
_MODULE: Any = vars(type)["__module__"]
_NAMES: Any = vars(types.ModuleType)["__dict__"]


#: A class and those that it inherits from, in the order of look-up.
mro_of: Callable[[type], tuple[type, ...]] = vars(type)["__mro__"].__get__
#: What a class itself binds.
space_of: Callable[[type], Mapping[str, Any]] = vars(type)["__dict__"].__get__


def module_of(cls: type) -> str:
    """Return the name of a class's module; "" where it says something else."""
    try:
        found = _MODULE.__get__(cls)
    except AttributeError:
        return ""
    return found if type(found) is str else ""


def module_name(module: types.ModuleType) -> str:
    """Return what a module is called; "" where it says something else."""
    found = (instance_dict(module) or {}).get("__name__")
    return found if type(found) is str else ""


def is_strange(cls: type) -> bool:
    """Say whether the metaclass of a class answers in Python for what any class can be asked."""
    meta = type(cls)
    if meta is type:
        return False
    asked = (space_of(c).get(name) for c in mro_of(meta) for name in _ASKED)
    return any(is_a(found, types.FunctionType) for found in asked)


_ASKED = ("__getattribute__", "__eq__", "__hash__", "__mro__")


def instance_dict(obj: Any) -> dict[str, Any] | None:
    """Return the dictionary of an object's attributes, by no code of the user's."""
    if is_a(obj, types.ModuleType):  # where its functions look, whatever a subclass says
        return _NAMES.__get__(obj)
    for cls in mro_of(class_of(obj)):
        found = space_of(cls).get("__dict__")
        if found is not None:
            return found.__get__(obj) if is_a(found, _DESCRIPTORS) else None
    return None


def attribute_of(obj: Any, name: str, default: Any = None) -> Any:
    """Return what an object, or its class, binds a name to; no descriptor runs."""
    space = instance_dict(obj)
    if space is not None and name in space:
        return space[name]
    for cls in mro_of(class_of(obj)):
        own = space_of(cls)
        if name in own:
            return own[name]
    return default


def answers_itself(cls: type) -> bool:
    """Say whether objects of a class answer in Python for attributes that they do not have."""
    for c in mro_of(cls):
        space = space_of(c)
        if "__getattr__" in space or is_a(space.get("__getattribute__"), types.FunctionType):
            return True
        if not is_a(space.get("__dict__"), (*_DESCRIPTORS, type(None))):
            return True
    return False


def is_plain(fun: Any) -> bool:
    """Say whether a callable is a function, method or class of Python's own: no object."""
    return is_a(fun, _PLAIN)


def said_of(fun: Callable[..., Any], name: str) -> Any:
    """Return what a callable is called: its ``__name__``, say; None where it has none."""
    if is_plain(fun):
        return getattr(fun, name, None)
    found = attribute_of(fun, name)
    return found.__get__(fun) if is_a(found, _DESCRIPTORS) else found


def take_name(wrapper: Any, fun: Callable[..., Any]) -> Any:
    """As ``functools.update_wrapper``: give a wrapper the names and attributes of a callable."""
    for name in functools.WRAPPER_ASSIGNMENTS:
        value = said_of(fun, name)
        if is_a(value, (str, dict, tuple)):
            setattr(wrapper, name, value)
    wrapper.__dict__.update(instance_dict(fun) or {})
    wrapper.__wrapped__ = fun
    return wrapper


class SignatureOf:
    """The signature of what is wrapped: `inspect` takes what can be bound for a builtin's."""

    def __get__(self, fun: Any, kind: type) -> Any:
        """Return it, of an instance; the class has its own."""
        if fun is None:
            raise AttributeError("__signature__")
        return inspect.signature(fun.__wrapped__)


def named_as(fun: Callable[..., Any]) -> Callable[[T], T]:
    """As ``functools.wraps``: a decorator that gives a wrapper the names of a callable.

    The wrapper is what users call: errors leave it without the package's frames.
    """
    return lambda wrapper: take_name(boundary(cast("Any", wrapper)), fun)


def unwrapped(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is behind wrappers: as ``inspect.unwrap``."""
    for _ in range(_MOST):
        holder = fun.__func__ if is_a(fun, types.MethodType) else fun
        inner = attribute_of(holder, "__wrapped__")
        if not callable(inner):
            break
        fun = inner
    return fun


def signature_of(fun: Callable[..., Any]) -> inspect.Signature:
    """Return a callable's signature; as ``inspect.signature``, and it raises what that does."""
    if is_a(fun, functools.partial):
        inner: Any = lambda: None  # noqa: E731
        inner.__signature__ = signature_of(fun.func)
        return inspect.signature(functools.partial(inner, *fun.args, **fun.keywords))
    if is_plain(fun):
        return inspect.signature(fun)
    given = attribute_of(fun, "__signature__")
    if is_a(given, inspect.Signature):
        return given
    inner = unwrapped(fun)
    if inner is not fun:
        return signature_of(inner)
    call = attribute_of(type(fun), "__call__")
    if is_a(call, types.FunctionType):
        return inspect.signature(types.MethodType(call, None))
    if answers_itself(type(fun)):
        raise ValueError(f"no signature is known of an object of {type(fun)}")
    return inspect.signature(fun)


def is_generator_function(fun: Callable[..., Any]) -> bool:
    """As ``inspect.isgeneratorfunction``; an object is none."""
    while is_a(fun, functools.partial):
        fun = fun.func
    return is_plain(fun) and inspect.isgeneratorfunction(fun)
