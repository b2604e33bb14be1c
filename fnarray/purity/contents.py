"""What an object holds, all the way down, and whether it still holds the same.

Containers are compared by the identity of their items, memory by its bytes. Nothing of the user's
runs: items come from the built-in methods, attributes from the instance's dictionary and slots.
"""

from __future__ import annotations

import array
import collections
import collections.abc
import ctypes
import functools
import gc
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from operator import is_
from typing import Any

from ..config import config
from ..core.trace import Tracer
from .guards import attributes_of, mapping_of, parts_of
from .objects import (
    base_of,
    class_of,
    flags_of,
    instance_dict,
    is_a,
    is_array,
    is_strange,
    kind_of,
    module_of,
    mro_of,
    plain,
    space_of,
)

Check = Callable[[], bool]
_C_DATA: Any = (ctypes._SimpleCData, ctypes.Array, ctypes.Structure, ctypes.Union)  # pyright: ignore[reportPrivateUsage]
_C_POINTERS: Any = (ctypes._Pointer, types.GeneratorType)  # pyright: ignore[reportPrivateUsage]

#: Objects in one snapshot: a call compares them all.
MOST = 2000
_FIXED = (
    bool, int, float, complex, str, bytes, type(None), type(...), range, type, types.ModuleType,
    types.BuiltinFunctionType, types.CodeType, property,
)  # fmt: skip
#: Objects in C that stay as they are, or whose state tells nothing of a value.
_STILL: Any = (
    types.MemberDescriptorType, types.GetSetDescriptorType, types.CellType, re.Match, BaseException,
)  # fmt: skip
_SEQUENCES = (list, collections.deque)
# Of a subclass, too, what the built-in class would give: no code of the user's.
_KEYS: Callable[[Any], Iterator[Any]] = dict.__iter__  # pyright: ignore
_VALUES: Callable[[Any], Iterable[Any]] = dict.values  # pyright: ignore
_ITEMS: Callable[[Any], Iterator[Any]] = tuple.__iter__  # pyright: ignore
_MEMBERS: Callable[[Any], Iterator[Any]] = frozenset.__iter__  # pyright: ignore
_OF_SET: Callable[[Any], Iterator[Any]] = set.__iter__  # pyright: ignore
_SIZE: Callable[[Any], int] = set.__len__  # pyright: ignore


class Contents:
    """The contents of one object as they were.

    Attributes
    ----------
    hold : callable
        Says whether they still are.
    some : bool
        Whether there is anything in it that could change.
    functions : list
        The functions in it, which whoever has the object may call.
    """

    __slots__ = ("_checks", "functions", "hold", "some")

    def __init__(self, checks: list[Check], functions: list[types.FunctionType]) -> None:
        self._checks = checks
        self.functions = functions
        self.some = bool(checks)
        self.hold: Check = checks[0] if len(checks) == 1 else self._all

    def _all(self) -> bool:
        return all(check() for check in self._checks)


class Unseen(Exception):
    """Something changes, or may, without a way to tell."""


def contents_of(obj: Any) -> Contents | None:
    """Return the contents of an object; None where a change could go unseen.

    An object that holds tracers belongs to the trace in progress: it has nothing to be checked,
    and is not kept.
    """
    try:
        return _taken(obj)
    except Unseen:
        return None


def memory_of(obj: Any) -> Check | None:
    """Return a comparison of an array with what it is now: shape, dtype and every byte.

    None for an array that is larger than ``config.captured_array_limit``, or holds objects.
    """
    own = plain(obj)
    if own.nbytes > config.captured_array_limit or own.dtype.hasobject:
        return None
    shape, dtype, kept = own.shape, own.dtype, bytearray(own.tobytes())
    # Compares memory with memory, and copies nothing: 0.02 us a kilobyte.
    equals = kept.__eq__

    def same(now: Any) -> bool:
        seen = now if now.flags.c_contiguous else now.tobytes()
        return equals(seen) is True and now.shape == shape and now.dtype is dtype

    if dtype.names is not None:  # which anybody may set
        said = repr(dtype)
        return lambda: same(now := plain(obj)) and repr(now.dtype) == said
    if own is not obj:  # of a subclass: looked at anew each time
        return lambda: same(plain(obj))
    if own.flags.c_contiguous:
        return lambda: equals(obj) is True and obj.shape == shape and obj.dtype is dtype
    return lambda: same(obj)


def read_only(array: Any) -> Check:
    """Return whether nobody may write an array, nor those that it is a view of."""
    chain = [array]
    while is_a(over := base_of(chain[-1]), class_of(array)) and not flags_of(over).writeable:
        chain.append(over)
    return lambda: not any(flags_of(one).writeable for one in chain)


def _taken(root: Any) -> Contents:
    checks: list[Check] = []
    functions: list[types.FunctionType] = []
    seen: dict[int, Any] = {}
    stack = [root]
    while stack:
        one = stack.pop()
        if is_strange(class_of(one)):
            raise Unseen
        if type(one) in _FIXED or id(one) in seen:
            continue
        if len(seen) == MOST:
            raise Unseen
        seen[id(one)] = one
        if is_a(one, Tracer):
            return Contents([], functions)
        if type(one) is types.FunctionType and one is not root:
            functions.append(one)
        stack += _look_into(one, checks)
    return Contents(checks, functions)


def _look_into(one: Any, checks: list[Check]) -> Iterable[Any]:
    """Add the checks of one object; return what it holds."""
    if is_a(one, (tuple, frozenset)):
        inner: list[Any] = [*_ITEMS(one)] if is_a(one, tuple) else [*_MEMBERS(one)]
    elif is_a(one, dict):
        inner = _mapping(one, checks)
    elif is_a(one, types.MappingProxyType):
        inner = gc.get_referents(one)  # the mapping behind it
    elif is_a(one, _SEQUENCES):
        inner = _sequence(one, checks)
    elif is_a(one, set):
        were = frozenset(map(id, _OF_SET(one)))
        checks.append(lambda: _SIZE(one) == len(were) and were.issuperset(map(id, _OF_SET(one))))
        inner = list(_OF_SET(one))
    elif is_a(one, functools.partial):
        checks.append(parts_of(one))
        inner = [one.func, *one.args, *one.keywords.values()]
    elif is_a(one, types.FunctionType):
        inner = _function(one, checks)
    elif is_a(one, types.MethodType):
        inner = [one.__self__, one.__func__]
    elif is_a(one, type):
        return []
    elif is_array(one) and plain(one).dtype == object:
        inner = _objects(one, checks)
    elif (memory := _memory(one)) is not None:
        checks.append(memory)
        inner = []
    elif _advances(one) or _is_closed(one):
        raise Unseen
    else:
        inner = _held(one)
        if inner:
            checks.append(
                lambda: len(now := _held(one)) == len(inner) and all(map(is_, now, inner))
            )
    return [*inner, *_state(one, checks)]


def _held(one: Any) -> list[Any]:
    """Return what is seen of an object of a class in C: the functions, arrays and tuples in it."""
    kinds = (types.FunctionType, tuple)
    return [x for x in gc.get_referents(one) if type(x) in kinds or is_array(x)]


def _mapping(one: dict[Any, Any], checks: list[Check]) -> list[Any]:
    checks.append(mapping_of(one))
    return [*_KEYS(one), *_VALUES(one)]


def items_of(one: Any) -> Check:
    """Return a comparison of the items of a plain container with what they are now."""
    if is_a(one, dict):
        return mapping_of(one)
    items = tuple(one)
    return lambda: len(one) == len(items) and all(map(is_, one, items))


def _sequence(one: Any, checks: list[Check]) -> list[Any]:
    base: Any = list if is_a(one, list) else collections.deque
    items = tuple(base.__iter__(one))
    checks.append(
        lambda: base.__len__(one) == len(items) and all(map(is_, base.__iter__(one), items))
    )
    return [*items]


def _objects(one: Any, checks: list[Check]) -> list[Any]:
    """Add the check of an array of objects; return them."""
    own = plain(one)
    if own.size > MOST:
        raise Unseen
    shape, items = own.shape, own.ravel().tolist()

    def same() -> bool:
        now = plain(one)
        return now.shape == shape and all(map(is_, now.ravel().tolist(), items))

    checks.append(same)
    return items


def _function(one: types.FunctionType, checks: list[Check]) -> list[Any]:
    code, defaults, named = one.__code__, one.__defaults__, one.__kwdefaults__
    checks.append(
        lambda: (
            one.__code__ is code and one.__defaults__ is defaults and one.__kwdefaults__ is named
        )
    )
    inner = [*(defaults or ()), named]
    for cell in one.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if is_a(value, Tracer):
            return [value]
        checks.append(lambda cell=cell, value=value: cell.cell_contents is value)
        inner.append(value)
    return inner


def _state(one: Any, checks: list[Check]) -> list[Any]:
    """Add the checks of an instance's attributes; return their values."""
    if is_a(one, (types.FunctionType, types.MethodType)) or is_immutable(class_of(one)):
        return []
    inner: list[Any] = []
    space = instance_dict(one)
    if space is not None:
        checks.append(attributes_of(one, space))
        inner += [*_KEYS(space), *_VALUES(space)]
    for slot in _slots(class_of(one)):
        try:
            value = slot.__get__(one)
        except AttributeError:
            continue
        checks.append(lambda slot=slot, value=value: slot.__get__(one) is value)
        inner.append(value)
    return inner


def _slots(cls: type) -> list[Any]:
    return [
        slot
        for c in mro_of(cls)
        for name, slot in space_of(c).items()
        if type(slot) is types.MemberDescriptorType and name != "__weakref__"
        and "__slots__" in space_of(c)
    ]  # fmt: skip


def slots_of(obj: Any) -> list[tuple[str, Any]]:
    """Return names and values of an object's slots."""
    found: list[tuple[str, Any]] = []
    for slot in _slots(class_of(obj)):
        with suppress(AttributeError):
            found.append((slot.__name__, slot.__get__(obj)))
    return found


def is_immutable(cls: type) -> bool:
    """Say whether a class of this package promises objects that never change: arrays, treedefs."""
    return module_of(cls).partition(".")[0] in ("fnarray", "optree")


def _memory(one: Any) -> Check | None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and is_a(one, numpy.ndarray):
        memory = memory_of(one)
        if memory is None:
            raise Unseen
        return memory
    if numpy is not None and is_a(one, numpy.void):
        if one.dtype.hasobject:
            raise Unseen
        seen = one.tobytes()
        return lambda: one.tobytes() == seen
    if is_a(one, (bytearray, array.array, memoryview)) or is_a(one, _C_DATA):
        kept = bytes(one)
        return lambda: bytes(one) == kept
    return None


def _is_closed(one: Any) -> bool:
    """Say whether an object of the standard library, or of NumPy, has a state in C that changes.

    An element of XML, a context of decimal numbers, a connection, a hash that goes on: nothing in
    Python tells what it holds. What is called, or is known to stay as it is, has none.
    """
    if type(one) is object or kind_of(one) != "foreign" or is_a(one, _STILL):
        return False
    cls = class_of(one)
    root = module_of(cls).partition(".")[0]
    if callable(one) and root != "sqlite3":  # a connection is called, and changes even so
        return False
    if root not in sys.stdlib_module_names and root != "numpy":
        return False
    if issubclass(cls, _dtypes()) or cls.__name__ in ("PyCapsule", "Struct", "SemLock"):
        return False
    if instance_dict(one) is not None or _slots(cls):
        return False
    made = (x for c in mro_of(cls) if c is not object for x in space_of(c).values())
    return not any(type(x) is types.FunctionType for x in made)


def _dtypes() -> tuple[type, ...]:
    numpy = sys.modules.get("numpy")
    return () if numpy is None else (numpy.dtype, numpy.generic)


def _advances(one: Any) -> bool:
    """Say whether an object has a state of its own that nobody can look at."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and is_a(
        one, (numpy.random.Generator, numpy.random.RandomState, numpy.random.BitGenerator)
    ):
        return True
    return is_a(one, collections.abc.Iterator) or is_a(one, _C_POINTERS)
