"""What functions of libraries look at that nobody hands them: settings of the process, and records.

They run no code of the user's, and name nothing that could be guarded: ``str(array)`` is as long as
``np.set_printoptions`` says, ``Decimal(1) / 3`` as exact as the context of the thread.
"""

from __future__ import annotations

import codecs
import copyreg
import enum
import sys
import time
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

from .contents import Check, contents_of, items_of
from .guards import bound_names, mapping_of, static
from .objects import class_of, is_a, mro_of, space_of

_VALUES: Callable[[Any], Iterable[Any]] = dict.values  # pyright: ignore
_CONTEXT: Final = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
#: A winter's day and a summer's of 2020, in seconds since 1970.
_TIMES: Final = (1_577_836_800, 1_593_561_600)


def _printing(_: Any) -> Check | None:
    """Return a comparison of how NumPy writes arrays with how it does now."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    options, kept = numpy.get_printoptions, numpy.get_printoptions()
    return lambda: options() == kept


def _decimal(_: Any) -> Check:
    """Return a comparison of the context of decimal numbers with what it is now."""
    context = sys.modules["decimal"].getcontext

    def now() -> list[Any]:
        found = context()
        return [*(getattr(found, name) for name in _CONTEXT), *found.traps.values()]

    kept = now()
    return lambda: now() == kept


def _zone(_: Any) -> Check:
    """Return a comparison of the process's time zone, in summer and winter, with what it is."""
    # Spelled out, without lists: 1.4 us in place of 2.3, at each call.
    local, names, (one, two) = time.localtime, time.tzname, _TIMES
    winter, summer = local(one), local(two)
    return lambda: local(one) == winter and local(two) == summer and time.tzname == names


def _fields(cls: Any) -> Check | None:
    """Return a comparison of the records of a dataclass's fields with what they are now."""
    fields = static(cls, "__dataclass_fields__") if is_a(cls, type) else None
    found = contents_of(fields) if is_a(fields, dict) else None
    return None if found is None else found.hold


def _members(cls: Any) -> Check | None:
    """Return a comparison of the members of an enumeration with what they are now."""
    if not is_a(cls, enum.EnumMeta):
        return None
    named, order = mapping_of(cls._member_map_), items_of(cls._member_names_)
    return lambda: named() and order()


def _parts(number: Any) -> Check | None:
    """Return a comparison of what an object that is not to be written holds."""
    found = contents_of(number)
    return found.hold if found is not None and found.some else None


def _hints(obj: Any) -> Check | None:
    """Return a comparison of annotations, those of the classes above too, with what they are."""
    if is_a(obj, type):
        spaces = [space_of(cls) for cls in mro_of(obj) if "__annotations__" in space_of(cls)]
        held = [(space, space["__annotations__"]) for space in spaces]
        same = [mapping_of(notes) for _, notes in held if is_a(notes, dict)]
        whole = lambda: all(space.get("__annotations__") is notes for space, notes in held)  # noqa: E731
        return lambda: whole() and all(check() for check in same)
    return mapping_of(obj.__annotations__) if is_a(obj, types.FunctionType) else None


def _copies(cls: Any) -> Check | None:
    """Return a comparison of how objects of a class are taken apart with how they are now."""
    how = copyreg.dispatch_table.get
    kept = how(cls)
    return lambda: how(cls) is kept


def _values(cls: Any) -> Check | None:
    """Return a comparison of the values that an enumeration is asked for with what they are now."""
    if not is_a(cls, enum.EnumMeta):
        return None
    found, members = cls._value2member_map_, cls._member_map_
    same = mapping_of(found)
    if {*map(id, _VALUES(members))} == {*map(id, _VALUES(found))}:
        return same
    held = contents_of(members)  # of values that do not hash, each is compared
    return None if held is None else lambda: same() and held.hold()


def _names(obj: Any) -> Check:
    """Return a comparison of which names the class of an object binds with those that it does."""
    return bound_names(obj if is_a(obj, type) else class_of(obj))


def _handler(name: Any) -> Check:
    """Return a comparison of what handles errors of encoding, by a name, with what does now."""

    def now() -> Any:
        try:
            return codecs.lookup_error(name)
        except LookupError:
            return None

    kept = now()
    return lambda: now() is kept


#: What may be looked at, and the check of whether it is as it was.
WATCHED: Final[dict[str, Callable[[Any], Check | None]]] = {
    "printing": _printing,
    "decimal": _decimal,
    "zone": _zone,
    "fields": _fields,
    "members": _members,
    "values": _values,
    "copies": _copies,
    "parts": _parts,
    "hints": _hints,
    "names": _names,
    "handler": _handler,
}


#: Of these, what belongs to the process, and what it is called.
SETTINGS: Final = {"printing": "numpy.get_printoptions()", "decimal": "decimal.getcontext()",
                   "zone": "time.tzname"}  # fmt: skip
