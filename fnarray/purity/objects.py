"""What a live object is: whether it can change, and what the engine should call it."""

from __future__ import annotations

import array
import collections
import collections.abc
import contextvars
import datetime
import enum
import functools
import gc
import io
import mmap
import numbers
import os
import pathlib
import queue
import re
import sys
import threading
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ..core.callables import attribute_of as attribute_of
from ..core.callables import class_of as class_of
from ..core.callables import instance_dict as instance_dict
from ..core.callables import is_a as _is_a
from ..core.callables import is_strange as is_strange
from ..core.callables import module_name
from ..core.callables import module_of as module_of
from ..core.callables import mro_of as mro_of
from ..core.callables import space_of as space_of
from .guards import static

#: It narrows nothing here: of a user's object all that is known is what was asked.
is_a: Callable[[Any, type | tuple[type, ...]], bool] = _is_a

# Of a subclass, too, what a tuple would give: no code of the user's.
_ITEMS: Callable[[Any], Iterator[Any]] = tuple.__iter__  # pyright: ignore
_NUMBERS = (bool, int, float, complex, str, bytes, type(None))
_FROZEN = (
    frozenset, types.MappingProxyType, enum.Enum, range, slice, type(...), type(NotImplemented),
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, pathlib.PurePath,
    re.Pattern, numbers.Number, types.GenericAlias, types.UnionType, typing.TypeVar,
    types.CodeType, property,
)  # fmt: skip
_HOLDERS = (types.SimpleNamespace, threading.local)
_PLAIN = (list, dict, tuple, set, collections.OrderedDict, collections.deque)
_ALIAS: Any = type(typing.ClassVar[int])
_FUNCTIONS = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
)  # fmt: skip

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100,PTH120 - as core.source
_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - as above
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: Modules in C, and private ones, whose functions have a public home.
_HOMES = {
    # What Python 3.13 moved up from Path.
    "pathlib.PathBase": "pathlib.Path",
    "_operator": "operator", "_heapq": "heapq", "_bisect": "bisect", "_functools": "functools",
    "_collections": "collections", "_io": "io", "posix": "os", "nt": "os", "_random": "random",
    "_socket": "socket", "_thread": "threading", "posixpath": "os.path", "ntpath": "os.path",
    "_pickle": "pickle", "_asyncio": "asyncio", "_warnings": "warnings", "_datetime": "datetime",
    "_signal": "signal", "_pydatetime": "datetime", "fnarray.config.Config": "fnarray.config",
}  # fmt: skip


@functools.lru_cache(maxsize=4096)
def is_user_file(file: str) -> bool:
    """Say whether a file is the user's own: not the standard library, not installed, not ours."""
    if file.startswith(_PACKAGE) or file.startswith("<frozen"):
        return False
    if any(part in file for part in _INSTALLED):
        return False
    return not file.startswith(_STANDARD)


def is_own_file(file: str) -> bool:
    """Say whether a file is one of this package's."""
    return file.startswith(_PACKAGE)


#: Packages that are not entered although they are the user's own; changed by `trust`.
trusted_packages: set[str] = set()


def is_trusted(module: str | None) -> bool:
    """Say whether a module is of a package that the user trusts."""
    return bool(trusted_packages) and (module or "").partition(".")[0] in trusted_packages


def is_user_module(name: str) -> bool:
    """Say whether a module is the user's own, by where it was loaded from."""
    if name in ("__main__", "__mp_main__"):
        return True
    root = name.partition(".")[0]
    if root in trusted_packages or root in sys.stdlib_module_names or root == "fnarray":
        return False
    module = sys.modules.get(name)
    if module is None:
        return True
    space = instance_dict(module) or {}
    file = space.get("__file__")
    origin: Any = getattr(space.get("__spec__"), "origin", None)
    return is_user_file(file) if type(file) is str else origin != "built-in"


#: What Cython calls its functions, whose class is of a module that is in no file.
_COMPILED = ("cython_function_or_method", "fused_cython_function")


#: Whose classes are Refs.
_REFS = ("fnarray.core.ref", "fnarray.core.ref_views", "fnarray.random._key_refs")


def kind_of(obj: Any) -> str:
    """Return the engine's word for an object.

    ``"foreign"`` is an object of an installed class, of which only its contents tell.
    """
    t = class_of(obj)
    if t is tuple:  # as below, of rows of a table
        return "scalar" if all(kind_of(x) == "scalar" for x in obj) else "tuple"
    if is_strange(t):
        return "instance"
    if t in _NUMBERS:
        return "scalar"
    if t in _KINDS:
        return _KINDS[t]
    if issubclass(t, type):
        # ``fnarray.numpy.float32`` and its kin have no instances: they make arrays when called.
        return "function" if module_of(t) == "fnarray.numpy._dtypes" else "class"
    if issubclass(t, types.ModuleType):
        return "module"
    if issubclass(t, _FUNCTIONS) or t.__name__ in _COMPILED:
        return "function"
    if issubclass(t, functools.partial):
        return "partial"
    home = module_of(class_of(obj))
    if home in _REFS or (t.__name__ == "Ref" and "jax" in home):
        return "ref"
    if issubclass(t, tuple):
        return "scalar" if all(kind_of(x) == "scalar" for x in _ITEMS(obj)) else "tuple"
    if (found := _array_kind(obj)) is not None:
        return found
    for base, kind in _BASES:
        if issubclass(t, base):
            return kind
    if issubclass(t, (*_loaded("logging", "Logger"), *_loaded("logging", "LoggerAdapter"))):
        return "logger"
    if issubclass(t, _loaded("random", "Random")):
        return "rng"
    if issubclass(t, _FROZEN) or is_frozen(class_of(obj)):
        return "instance" if issubclass(t, _TIMES) and _keeps_own_time(obj) else "frozen"
    user = is_user_module(home)
    if callable(obj) and attribute_of(obj, "__fnarray_pure__") is True:
        return "function"  # its writer says so, and it is called, not read
    if callable(obj) and not user:
        # A wrapper of a library, or a function made by Cython, or another compiler.
        named = isinstance(getattr(obj, "__qualname__", None), str)
        if attribute_of(obj, "__wrapped__") is not None or named:
            return "function"
    if user or issubclass(t, (*_HOLDERS, *_loaded("argparse", "Namespace"))):
        return "instance"
    own = home.partition(".")[0] in ("fnarray", "optree") or _is_part_of_library(obj)
    return "frozen" if own else "foreign"


def is_wrapper(obj: Any) -> bool:
    """Say whether an object taken for a function is of an installed class, and may hold things."""
    t = class_of(obj)
    home = module_of(t)
    plain = (
        issubclass(t, _FUNCTIONS) or t.__name__ in _COMPILED or home.partition(".")[0] in _CALLED
    )
    return not plain and not is_user_module(home)


#: Packages whose callable objects hold what they were compiled to.
_CALLED = ("fnarray", "optree", "numpy", "numba", "functools", "builtins")
_TIMES = (datetime.tzinfo, datetime.datetime, datetime.time)


def _keeps_own_time(obj: Any) -> bool:
    """Say whether a time, or a zone, is told by a class of the user's, which is not frozen."""
    for kind in (datetime.datetime, datetime.time):
        if is_a(obj, kind):
            obj = vars(kind)["tzinfo"].__get__(obj)
    return obj is not None and is_user_module(module_of(class_of(obj)))


def _loaded(module: str, name: str) -> tuple[type, ...]:
    """Return a class if its module is loaded, without which it has no objects: 13 ms for three."""
    found = attribute_of(sys.modules.get(module), name)
    return (found,) if isinstance(found, type) else ()


def _is_part_of_library(obj: Any) -> bool:
    """Say whether the module of an installed class holds the object itself, as it does functions.

    Such an object, ``scipy.stats.norm`` for one, is as much the library's own as its functions.
    """
    module = sys.modules.get(module_of(class_of(obj)))
    held = instance_dict(module) if module is not None else None
    return any(x is obj for x in held.values()) if held is not None else False


_KINDS: dict[type, str] = {
    list: "list", dict: "dict", set: "set", bytearray: "bytearray",
    collections.deque: "deque", collections.defaultdict: "dict", collections.OrderedDict: "dict",
    types.GeneratorType: "generator", types.CoroutineType: "generator",
    property: "property", functools.cached_property: "property",
}  # fmt: skip
_BASES: tuple[tuple[Any, str], ...] = (
    # Before lists: an array of Python's own counts as a sequence.
    ((io.StringIO, io.BytesIO, array.array, memoryview, mmap.mmap), "container"),
    ((list, collections.abc.MutableSequence), "list"),
    ((dict, collections.abc.MutableMapping), "dict"),
    ((set, collections.abc.MutableSet), "set"),
    (weakref.finalize, "container"),
    ((contextvars.ContextVar, queue.Queue, queue.SimpleQueue), "container"),
    ((type(threading.Lock()), type(threading.RLock())), "container"),
    # Windows on what somebody else may change: ``d.values()``, a proxy.
    ((collections.abc.MappingView, *weakref.ProxyTypes), "container"),
    (io.IOBase, "file"),
    (collections.abc.Iterator, "iterator"),
)


def _array_kind(obj: Any) -> str | None:
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if is_array(obj):
            return "ndarray" if is_writable(obj) else "frozen"
        if is_a(obj, numpy.void):
            return "ndarray"  # a record looks into the array that it was taken from
        if is_a(obj, numpy.generic):
            return "frozen" if is_user_module(module_of(class_of(obj))) else "scalar"
        if is_a(obj, numpy.nditer):
            return "iterator"
        if is_a(obj, (numpy.random.Generator, numpy.random.RandomState)):
            return "rng"
        if is_a(obj, numpy.ufunc):
            # Of ``frompyfunc``: the function that it calls is out of sight.
            return "instance" if obj.__name__.endswith("(vectorized)") else "function"
    for base in mro_of(class_of(obj)):
        named = base.__name__ in ("Array", "ArrayImpl", "Tracer")
        if named and module_of(base).partition(".")[0] in ("fnarray", "jax", "jaxlib"):
            return "array"
    return None


#: Memory that Python code can write, behind an array that it made no array of.
_MEMORY = (bytearray, memoryview, array.array, mmap.mmap)


def is_writable(array: Any) -> bool:
    """Say whether an array can be written: itself, or as another view of its memory."""
    while not flags_of(array).writeable:
        base = base_of(array)
        if is_a(base, _MEMORY):
            return True
        # An array that nobody but its view knows, such as one that was reshaped, is out of reach:
        # the references are the view's, the variable's here, and the call's.
        if type(base) is not type(array) or sys.getrefcount(base) <= 3:
            return False
        array = base
    return True


def is_array(obj: Any) -> bool:
    """Say whether an object is a NumPy array."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and is_a(obj, numpy.ndarray)


def flags_of(array: Any) -> Any:
    """Return the flags of an array, whatever its class calls by that name."""
    return sys.modules["numpy"].ndarray.flags.__get__(array)


def base_of(array: Any) -> Any:
    """Return whose memory an array looks into, whatever its class calls by that name."""
    return sys.modules["numpy"].ndarray.base.__get__(array)


def plain(array: Any) -> Any:
    """Return an array as NumPy's own class has it: no method of a subclass runs."""
    own = sys.modules["numpy"].ndarray
    return array if type(array) is own else own.view(array, own)


def is_frozen(cls: type) -> bool:
    """Say whether instances of a class cannot be assigned to."""
    params = static(cls, "__dataclass_params__")
    if module_of(class_of(params)) == "dataclasses":
        return bool(params.frozen)
    assign: Any = static(cls, "__setattr__")
    if issubclass(cls, (tuple, str, bytes, int, float, frozenset)):
        return True
    if assign is object.__setattr__:
        # A class in the user's code with no slots and no dictionary has nothing to assign.
        return False
    return is_a(assign, types.FunctionType) and "frozen" in assign.__name__


def protocol_members(cls: type) -> list[str]:
    """Return the attributes that a `typing.Protocol` asks for, and none of any other class."""
    bare, found = space_of(_Bare), list[str]()
    for one in mro_of(cls):
        space = space_of(one)
        if space.get("_is_protocol") is True:
            found += [n for n in (*space, *space.get("__annotations__", ())) if n not in bare]
    return found


class _Bare(Protocol):
    """What every protocol has."""


def name_of(obj: Any) -> str:
    """Return the qualified name of a function, class or module; "" where it has none."""
    if type(obj) is types.FunctionType:  # most that are asked for
        module: Any = obj.__module__
        return canonical(f"{'builtins' if module is None else module}.{obj.__qualname__}")
    if is_a(obj, types.ModuleType):
        return canonical(module_name(obj))
    if is_strange(obj if is_a(obj, type) else class_of(obj)):
        return ""
    receiver = None if is_a(obj, type) else getattr(obj, "__self__", None)
    short = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", "")
    if not isinstance(short, str) or (not isinstance(obj, (*_FUNCTIONS, type)) and not short):
        return ""
    if receiver is not None and not isinstance(receiver, types.ModuleType):
        if isinstance(receiver, type):
            return canonical(f"{receiver.__module__}.{receiver.__qualname__}.{obj.__name__}")
        numpy = sys.modules.get("numpy")
        if numpy is not None and is_a(receiver, numpy.ufunc):
            return f"numpy.{receiver.__name__}.{obj.__name__}"
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


def makes_named_tuple(fun: types.FunctionType) -> bool:
    """Say whether a function is a named tuple's ``__new__``: it has defaults, and no source."""
    made = fun.__code__.co_filename == "<string>" and fun.__globals__.get("__name__", "")
    return type(made) is str and made.startswith("namedtuple_")


def self_name(method: types.MethodType) -> str:
    """Return what a method calls its object."""
    inner: Any = method.__func__
    names = positional(inner) if is_a(inner, types.FunctionType) else ()
    return names[0] if names else "self"


def positional(fun: types.FunctionType) -> tuple[str, ...]:
    """Return the names of the parameters of a function that may be given by place."""
    return fun.__code__.co_varnames[: fun.__code__.co_argcount]


def iterated(parts: Any) -> Iterator[Any]:
    """Return the items of a container as its built-in class gives them."""
    bases: tuple[Any, ...] = (tuple, frozenset, list, set)
    for base in bases:
        if is_a(parts, base):
            return base.__iter__(parts)
    return iter(parts)


def behind(obj: Any) -> Any:
    """Return the mapping behind a read-only view of it, and any other object itself."""
    return gc.get_referents(obj)[0] if type(obj) is types.MappingProxyType else obj


def canonical(ref: str) -> str:
    """Return the public spelling of a qualified name."""
    module, dot, last = ref.rpartition(".")
    if "._" in module:
        module = ".".join(p for p in module.split(".") if not p.startswith("_"))
        ref = f"{module}.{last}"
    if module in ("numpy.random.mtrand", "numpy.random.bit_generator"):
        module, ref = "numpy.random", f"numpy.random.{last}"
    if module in _HOMES:
        return f"{_HOMES[module]}{dot}{last}"
    if not module:
        return _HOMES.get(ref, ref)
    head, dot, rest = ref.partition(".")
    return f"{_HOMES[head]}.{rest}" if head in _HOMES else ref


def watched_by(obj: Any) -> str:
    """Return what using an object looks at besides; "" for nothing."""
    decimal = sys.modules.get("decimal")
    if decimal is not None and (obj is decimal.Decimal or is_a(obj, decimal.Decimal)):
        return "decimal"
    if obj is datetime.datetime or is_a(obj, datetime.datetime):
        return "zone"
    return "parts" if module_of(class_of(obj)) == "fractions" else ""


def meant(obj: Any) -> Any:
    """Return the function of a static or class method, and the class of ``Class[int]``."""
    if is_a(obj, (staticmethod, classmethod)):
        obj = obj.__func__
    if type(obj) is _ALIAS and is_user_module(module_of(obj.__origin__)):
        return obj.__origin__
    return obj


def is_plain(obj: Any) -> bool:
    """Say whether an object is a container of Python's own; asks no metaclass."""
    return any(type(obj) is one for one in _PLAIN)
