"""What a live object is: whether it can change, and what the engine should call it."""

from __future__ import annotations

import argparse
import array
import collections
import collections.abc
import contextvars
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import logging
import numbers
import os
import pathlib
import random
import re
import sys
import sysconfig
import threading
import types
import typing
from typing import Any

_NUMBERS = (bool, int, float, complex, str, bytes, type(None))
_FROZEN = (
    frozenset, types.MappingProxyType, enum.Enum, range, slice, type(...), type(NotImplemented),
    fractions.Fraction, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta,
    datetime.tzinfo, pathlib.PurePath, re.Pattern, numbers.Number, types.GenericAlias,
    types.UnionType, typing.TypeVar, types.CodeType, property,
)  # fmt: skip
_HOLDERS = (types.SimpleNamespace, argparse.Namespace, threading.local, contextvars.ContextVar)
_FUNCTIONS = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
)  # fmt: skip

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100,PTH120 - as core.source
_PATHS = sysconfig.get_paths()
_STANDARD = tuple({_PATHS["stdlib"] + os.sep, _PATHS["platstdlib"] + os.sep})
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: Modules in C, and private ones, whose functions have a public home.
_HOMES = {
    # What Python 3.13 moved up from Path.
    "pathlib.PathBase": "pathlib.Path",
    "_operator": "operator", "_heapq": "heapq", "_bisect": "bisect", "_functools": "functools",
    "_collections": "collections", "_io": "io", "posix": "os", "nt": "os", "_random": "random",
    "_socket": "socket", "_thread": "threading", "posixpath": "os.path", "ntpath": "os.path",
    "_pickle": "pickle", "_asyncio": "asyncio", "_warnings": "warnings", "_datetime": "datetime",
    "_signal": "signal", "_pydatetime": "datetime",
}  # fmt: skip


@functools.lru_cache(maxsize=4096)
def is_user_file(file: str) -> bool:
    """Say whether a file is the user's own: not the standard library, not installed, not ours."""
    if file.startswith(_PACKAGE) or file.startswith("<frozen"):
        return False
    if any(part in file for part in _INSTALLED):
        return False
    return not file.startswith(_STANDARD)


def is_user_module(name: str, trusted: frozenset[str] = frozenset()) -> bool:
    """Say whether a module is the user's own, by where it was loaded from."""
    if name in ("__main__", "__mp_main__"):
        return True
    root = name.partition(".")[0]
    if root in trusted or root in sys.stdlib_module_names or root == "fnarray":
        return False
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if module is None:
        return True
    return is_user_file(file) if isinstance(file, str) else not _is_builtin(module)


def _is_builtin(module: Any) -> bool:
    return getattr(getattr(module, "__spec__", None), "origin", None) == "built-in"


def kind_of(obj: Any) -> str:
    """Return the engine's word for an object."""
    t = type(obj)
    if t in _NUMBERS:
        return "scalar"
    if t in _KINDS:
        return _KINDS[t]
    if isinstance(obj, type):
        return "class"
    if isinstance(obj, types.ModuleType):
        return "module"
    if isinstance(obj, _FUNCTIONS):
        return "function"
    if isinstance(obj, functools.partial):
        return "partial"
    if isinstance(obj, tuple):
        return "scalar" if all(kind_of(x) == "scalar" for x in obj) else "tuple"
    if (found := _array_kind(obj)) is not None:
        return found
    for base, kind in _BASES:
        if isinstance(obj, base):
            return kind
    if isinstance(obj, _FROZEN) or is_frozen(t):
        return "frozen"
    if hasattr(obj, "__wrapped__") and callable(obj):
        return "function"
    if callable(obj) and isinstance(getattr(obj, "__qualname__", None), str):
        return "function"  # made by Cython, or another compiler
    if isinstance(obj, _HOLDERS) or is_user_module(t.__module__):
        return "instance"
    # An object of an installed class is trusted, as its functions are.
    return "frozen"


_KINDS: dict[type, str] = {
    list: "list", dict: "dict", set: "set", bytearray: "bytearray",
    collections.deque: "deque", collections.defaultdict: "dict", collections.OrderedDict: "dict",
    types.GeneratorType: "generator", types.CoroutineType: "generator",
    property: "property", functools.cached_property: "property",
}  # fmt: skip
_BASES: tuple[tuple[Any, str], ...] = (
    ((list, collections.abc.MutableSequence), "list"),
    ((dict, collections.abc.MutableMapping), "dict"),
    ((set, collections.abc.MutableSet), "set"),
    ((io.StringIO, io.BytesIO, array.array, memoryview), "container"),
    (io.IOBase, "file"),
    ((logging.Logger, logging.LoggerAdapter), "logger"),
    (random.Random, "rng"),
    (collections.abc.Iterator, "iterator"),
)


def _array_kind(obj: Any) -> str | None:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(obj, numpy.ndarray):
            return "ndarray" if _is_writable(obj) else "frozen"
        if isinstance(obj, numpy.generic):
            return "scalar"
        if isinstance(obj, (numpy.random.Generator, numpy.random.RandomState)):
            return "rng"
        if isinstance(obj, numpy.ufunc):
            return "function"
    for base in type(obj).__mro__:
        named = base.__name__ in ("Array", "ArrayImpl", "Tracer")
        if named and base.__module__.partition(".")[0] in ("fnarray", "jax", "jaxlib"):
            return "array"
    return None


def _is_writable(array: Any) -> bool:
    """Say whether an array can be written: itself, or as another view of its memory."""
    while not array.flags.writeable:
        base = array.base
        # An array that nobody but its view knows, such as one that was reshaped, is out of reach:
        # the references are the view's, the variable's here, and the call's.
        if type(base) is not type(array) or sys.getrefcount(base) <= 3:
            return False
        array = base
    return True


def is_frozen(cls: type) -> bool:
    """Say whether instances of a class cannot be assigned to."""
    params = getattr(cls, "__dataclass_params__", None)
    if params is not None and dataclasses.is_dataclass(cls):
        return bool(params.frozen)
    if issubclass(cls, (tuple, str, bytes, int, float, frozenset)):
        return True
    assign = cls.__setattr__
    if assign is object.__setattr__:
        # A class in the user's code with no slots and no dictionary has nothing to assign.
        return False
    name = getattr(assign, "__name__", "")
    return "frozen" in name


def name_of(obj: Any) -> str:
    """Return the qualified name of a function, class or module; "" where it has none."""
    if isinstance(obj, types.ModuleType):
        return canonical(obj.__name__)
    receiver = getattr(obj, "__self__", None)
    short = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", "")
    if not isinstance(short, str) or (not isinstance(obj, (*_FUNCTIONS, type)) and not short):
        return ""
    if receiver is not None and not isinstance(receiver, types.ModuleType):
        if isinstance(receiver, type):
            return canonical(f"{receiver.__module__}.{receiver.__qualname__}.{obj.__name__}")
        # The functions of `random` and `numpy.random` are methods of a hidden generator.
        home = type(receiver).__module__.partition(".")[0]
        if home == "random":
            return f"random.{obj.__name__}"
        if type(receiver).__module__.startswith("numpy.random"):
            return f"numpy.random.{obj.__name__}"
        return ""
    module = getattr(obj, "__module__", None)
    if module is None and (objclass := getattr(obj, "__objclass__", None)) is not None:
        return canonical(f"{objclass.__module__}.{short}")
    if module is None:
        numpy = sys.modules.get("numpy")
        module = "numpy" if numpy is not None and isinstance(obj, numpy.ufunc) else "builtins"
    return canonical(f"{module}.{short}")


def canonical(ref: str) -> str:
    """Return the public spelling of a qualified name."""
    module, dot, last = ref.rpartition(".")
    if "._" in module:
        module = ".".join(p for p in module.split(".") if not p.startswith("_"))
        ref = f"{module}.{last}"
    module = module.replace("numpy.random.mtrand", "numpy.random")
    if module in _HOMES:
        return f"{_HOMES[module]}{dot}{last}"
    if not module:
        return _HOMES.get(ref, ref)
    head, dot, rest = ref.partition(".")
    return f"{_HOMES[head]}.{rest}" if head in _HOMES else ref
