"""Frozen values: dataclasses with slots that cost an import next to nothing.

`dataclasses` compiles six functions for each class, half a millisecond, and a first call has a
hundred classes. Here one is compiled, ``__init__``, when the first value is made; what else a value
does is said once for all.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def frozen(cls: type[T], /) -> type[T]: ...
@overload
def frozen(*, eq: bool = True, weak: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def frozen(cls: Any = None, /, *, eq: bool = True, weak: bool = False) -> Any:
    """Make a class a frozen dataclass with slots; its bases are none.

    Parameters
    ----------
    eq : bool
        Whether values are equal where their fields are; otherwise they are known by identity.
    weak : bool
        Whether weak references to values can be had.
    """
    return partial(_made, eq=eq, weak=weak) if cls is None else _made(cls, eq, weak)


def _made(cls: Any, eq: bool, weak: bool) -> Any:
    cls = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    cls.__dataclass_params__.frozen, cls.__dataclass_params__.eq = True, eq
    fields = dataclasses.fields(cls)
    names = tuple(f.name for f in fields)
    held = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
    space: dict[str, Any] = cls.__dict__.copy()
    for name in (*names, "__dict__", "__weakref__"):
        space.pop(name, None)
    names = (*names, "__weakref__") if weak else names
    space |= {"__slots__": tuple(n for n in names if n not in held)}
    space |= {k: v for k, v in _methods(fields, eq).items() if k not in space}
    made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__init__ = _first(made, fields)
    return made


def _first(cls: Any, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    def first(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _init(cls, fields)
        cls.__init__(self, *args, **kwargs)

    return first


class _Signature:
    """What `inspect.signature` asks a class for."""

    def __get__(self, obj: Any, cls: Any) -> inspect.Signature:
        signature = inspect.signature(_init(cls, dataclasses.fields(cls)))
        return signature.replace(parameters=tuple(signature.parameters.values())[1:])


def _methods(fields: tuple[dataclasses.Field[Any], ...], eq: bool) -> dict[str, Any]:
    shown = [f.name for f in fields if f.repr]

    def shown_as(self: Any) -> str:
        text = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({text})"

    methods = {
        "__repr__": shown_as, "__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete,
        "__getstate__": _state, "__setstate__": _set_state, "__signature__": _Signature(),
    }  # fmt: skip
    compared = [f.name for f in fields if f.compare]
    if not eq:
        return methods
    get: Callable[[Any], Any] = attrgetter(*compared) if compared else _nothing

    def equals(self: Any, other: Any) -> Any:
        return get(self) == get(other) if type(other) is type(self) else NotImplemented

    def hashed(self: Any) -> int:
        return hash(get(self))

    return methods | {"__eq__": equals, "__hash__": hashed}


def _nothing(self: Any) -> tuple[()]:
    return ()


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def _init(cls: Any, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """Compile ``__init__``; slots are set by their descriptors, as fast as can be."""
    space: dict[str, Any] = {}
    params: list[str] = ["self"]
    lines: list[str] = []
    for f in fields:
        name, value = f.name, f.name
        space[f"set_{name}"] = getattr(cls, name).__set__
        if f.default is not dataclasses.MISSING:
            space[f"default_{name}"] = f.default
            name = f"{name}=default_{name}"
        elif f.default_factory is not dataclasses.MISSING:
            space["missing"], space[f"make_{name}"] = dataclasses.MISSING, f.default_factory
            value, name = f"make_{name}() if {name} is missing else {name}", f"{name}=missing"
        params.append(name)
        lines.append(f"  set_{f.name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    exec(f"def __init__({', '.join(params)}):\n" + "\n".join(lines or ["  pass"]), space)
    init = space["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = {f.name: f.type for f in fields} | {"return": None}
    return init
