"""What a function is, by content: its code and all that it names, as one digest.

Two functions of one digest compute the same, in whatever process (decision 0018). Everything that
code can read is followed: globals, captured variables, defaults, the functions called, and what
those name. What cannot be followed to the end is `Unproven`: mutable objects, instances, code that
looks names up by text, modules that are neither the user's nor known.
"""

from __future__ import annotations

import builtins
import codecs
import dataclasses
import functools
import math
import os
import sys
import types
from collections.abc import Callable, Iterator
from opcode import opmap
from typing import Any, Final

import numpy as np

from ..core import lazy
from ..core.array import ArrayImpl
from ..core.callables import instance_dict, is_strange
from ..core.source import PACKAGE
from ..core.store import digest
from ..purity.guards import MISSING, Guards, attributes_of, parts_of, state, static


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Packages whose functions are what their versions say.
_VERSIONED: Final = frozenset({"fnarray", "numpy"})
#: Of the standard library, what is a function of its arguments alone and looks nothing up by text.
_STANDARD: Final = {
    "math": vars(math).keys(),
    "cmath": None,
    "itertools": None,
    "operator": _words(
        "add sub mul truediv floordiv mod neg pos abs pow matmul and_ or_ xor not_ eq ne lt le gt "
        "ge getitem itemgetter index truth"
    ),
    "functools": frozenset({"partial", "reduce"}),
    "builtins": _words(
        "abs all any bool bytes complex dict divmod enumerate filter float int isinstance "
        "issubclass iter len list map max min next pow range reversed round slice sorted str sum "
        "tuple zip ArithmeticError AssertionError Exception IndexError KeyError "
        "NotImplementedError OverflowError RuntimeError TypeError ValueError ZeroDivisionError "
        "NotImplemented Ellipsis"
    ),
}
_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - import time
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: What code may not do: import, or rebind or define what it could then name.
_REFUSED: Final = frozenset(
    opmap[name]
    for name in ("IMPORT_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_BUILD_CLASS", "LOAD_NAME")
)
#: What makes text: of an array, as long as NumPy is told.
_FORMATS: Final = frozenset(opmap[name] for name in opmap if name.startswith("FORMAT_"))
_WRITING: Final = _words(
    "str repr format format_map array2string array_repr array_str __str__ __repr__ __format__"
)
_LOAD_GLOBAL: Final = opmap["LOAD_GLOBAL"]
_EXTENDED_ARG: Final = opmap["EXTENDED_ARG"]
_PLAIN: Final = frozenset(
    map(id, (bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented)))
)
#: What code may ask of an object that its digest does not say.
_TOLD_BY_NAME: Final = _words(
    "__dict__ __wrapped__ __name__ __qualname__ __doc__ __module__ __annotations__ __mro__ mro "
    "__bases__ __subclasses__ __closure__ __globals__ encode decode"
)
#: What encodes or decodes text, by functions that `codecs` finds by name.
_ENCODING: Final = frozenset({"str", "bytes", "bytearray"})
_HANDLERS: Final = _words(
    "strict ignore replace xmlcharrefreplace backslashreplace namereplace surrogateescape "
    "surrogatepass"
)
#: Objects that are known by their names.
_NAMED: Final = (type, types.BuiltinFunctionType)
#: Attributes of functions that say nothing of what they compute.
_IDLE: Final = frozenset({"__wrapped__", "__fnarray__"})
#: What a class holds that says nothing of its instances, or that its fields and bases tell.
_SILENT: Final = _words(
    "__module__ __dict__ __weakref__ __doc__ __annotations__ __match_args__ "
    "__dataclass_fields__ __dataclass_params__"
)
#: Methods that `dataclass` writes, which have no source: a class's fields tell them.
_WRITTEN: Final = _words(
    "__init__ __repr__ __eq__ __hash__ __setattr__ __delattr__ __lt__ __le__ __gt__ __ge__ "
    "__replace__"
)
#: With these an object decides for itself what it holds.
_DECIDING: Final = _words("__getattribute__ __getattr__ __dict__ __class__")
#: The flag of classes that are made by class statements.
_HEAP: Final = 1 << 9
#: Larger arrays are traced with rather than read.
_MOST_BYTES: Final = 1 << 20
_NOTHING: Final = object()


def _handles_errors(name: str) -> bool:
    """Say whether a text names a function of the user's that handles errors of encoding."""
    try:
        return name not in _HANDLERS and codecs.lookup_error(name) is not None
    except (LookupError, ValueError):  # ValueError: text with a null character
        return False


class Unproven(Exception):
    """Something that a function may read cannot be told by content."""


class Content:
    """The digest of a function and of values, in the making.

    Attributes
    ----------
    guards : Guards
        Of the names that were followed.
    """

    def __init__(self) -> None:
        self.guards = Guards()
        self._hash = digest()
        self._words: list[tuple[object, ...]] = []  # said and not yet hashed
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is given twice
        self._files: set[str] = set()
        self._objects: list[Any] = []
        self._names: set[str] = set()  # that any code asks for
        self._texts: set[str] = set()  # that any code spells
        self._modules: set[str] = set()  # that any code names
        self._writes = False  # whether any code makes text, of arrays for all that is known
        # Modules that were looked into for the names of one function.
        self._entered: set[tuple[int, int]] = set()

    def digest(self) -> str:
        """Return the digest of all that was added; of objects, guard what the code asks for."""
        if asked := _TOLD_BY_NAME & self._names:
            raise Unproven(f"code that asks for {', '.join(sorted(asked))}")
        for obj in self._objects:
            self._guard(obj)
        if not _ENCODING.isdisjoint(self._names) and any(map(_handles_errors, self._texts)):
            raise Unproven("code that names what handles errors of encoding")
        if self._writes and "numpy" in self._modules:
            from ..purity.watched import SETTINGS, WATCHED  # few functions ask for it

            if (printing := WATCHED["printing"](np)) is not None:
                self.guards.add_contents(WATCHED, SETTINGS["printing"], printing)
        return self._hashed().hexdigest()

    def _say(self, *words: object) -> None:
        self._words.append(words)

    def _hashed(self) -> Any:
        """Return the hash of all that was said."""
        # The repr of lists of text and numbers is injective; joined text is not.
        self._hash.update(repr(self._words).encode())
        self._words.clear()
        return self._hash

    def add(self, obj: Any) -> None:
        """Add a value.

        Raises
        ------
        Unproven
            It cannot be told by content.
        """
        kind = type(obj)
        if id(kind) in _PLAIN:  # by identity: a metaclass may say what the hash is
            self._words.append((kind.__name__, obj))
            return
        if is_strange(kind):  # its metaclass would be asked who it is
            raise Unproven("an instance of a class whose metaclass answers for it")
        if not self._is_new(obj):
            return
        # Types are asked, never the object, whose attributes may be code of the user's.
        for told, method in _METHODS:
            if issubclass(kind, told):
                method(self, obj)
                return
        if issubclass(kind, _NAMED) or kind.__module__.partition(".")[0] in _VERSIONED:
            self._named(obj)
        else:
            self._instance(obj)

    def _is_new(self, obj: Any) -> bool:
        number = self._seen.setdefault(id(obj), len(self._seen))
        if number < len(self._kept):
            self._say("seen", number)
            return False
        self._kept.append(obj)
        return True

    def _tuple(self, obj: tuple[Any, ...]) -> None:
        if type(obj) is not tuple:
            raise Unproven(f"an instance of {type(obj).__qualname__}")
        self._say("tuple", len(obj))
        for x in obj:
            self.add(x)

    def _slice(self, obj: slice) -> None:
        self._say("slice")
        self._tuple((obj.start, obj.stop, obj.step))

    def _range(self, obj: range) -> None:
        self._say("range", obj.start, obj.stop, obj.step)

    def _partial(self, obj: functools.partial[Any]) -> None:
        if type(obj) is not functools.partial or vars(obj):
            raise Unproven("a partial with more to it")
        self.guards.add_contents(obj, "partial", parts_of(obj))
        self._say("partial", sorted(obj.keywords))
        for x in (obj.func, *obj.args, *(obj.keywords[k] for k in sorted(obj.keywords))):
            self.add(x)

    def _dtype(self, obj: np.dtype) -> None:
        if obj.names is not None or obj.metadata or obj.subdtype:
            raise Unproven("a dtype with parts")
        self._say("dtype", obj.name, obj.str)

    def _scalar(self, obj: np.generic) -> None:
        if type(obj).__module__ != "numpy":
            raise Unproven("a number of a class of the user's")
        self._dtype(obj.dtype)
        self._say("scalar", obj.tobytes())

    def _array(self, obj: ArrayImpl) -> None:
        if obj.nbytes > _MOST_BYTES:
            raise Unproven("a large array")
        self._say("array", obj.shape, obj.dtype.name, obj.weak_type)
        self._hashed().update(obj.tobytes())

    # ---- functions ----

    def _function(self, fun: types.FunctionType) -> None:
        code = fun.__code__
        ours = code.co_filename.startswith(PACKAGE)
        if ours and _at_home(fun):
            self._named(fun)
            return
        if getattr(fun, "__fnarray_pure__", False) or vars(fun).keys() - _IDLE:
            raise Unproven(f"{fun.__qualname__}, which has attributes")
        self.guards.add_function(fun)
        attributes = sorted({name for inner in _codes(code) for name in inner.co_names})
        self._names.update(attributes)
        consts = (const for inner in _codes(code) for const in inner.co_consts)
        self._texts.update(const for const in consts if type(const) is str)
        self._kept.append(attributes)  # as ids of lists are remembered
        self._seen[id(attributes)] = len(self._seen)
        if ours:
            # What it names is the package's; what it captured is its maker's.
            self._say("ours", code.co_filename[len(PACKAGE) :], code.co_qualname)
        else:
            self._file(code.co_filename)
            self._code(code)
            self._globals(fun, attributes)
        for name, cell in zip(code.co_freevars, fun.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                raise Unproven(f"the variable {name}, which is not assigned yet") from None
            self.guards.add_cell(cell, name)
            self._say("cell", name)
            self._value(value, attributes)
        self.add(fun.__defaults__)
        for name, value in sorted((fun.__kwdefaults__ or {}).items()):
            self._say("default", name)
            self.add(value)

    # ---- objects ----

    def _method(self, obj: types.MethodType) -> None:
        self._say("method")
        self.add(obj.__self__)
        self.add(obj.__func__)

    def _instance(self, obj: Any) -> None:
        self._class(type(obj))
        held = state(obj)
        if not all(type(name) is str for name in held):
            raise Unproven("an object with attributes that have no names")
        self._say("instance", sorted(held))
        self._objects.append(obj)
        for name in sorted(held):
            self.add(held[name])

    def _class(self, cls: type) -> None:
        """Add a class of the user's: its bases, methods, and other attributes."""
        # Asked first: a built-in class may be known already, by its name in the code.
        if type(cls) is not type or not cls.__flags__ & _HEAP:
            raise Unproven(f"an instance of {cls.__qualname__}")
        if not self._is_new(cls):
            return
        self._file(str(getattr(sys.modules.get(cls.__module__), "__file__", None)))
        space = vars(cls)
        self._say("class", cls.__qualname__, len(cls.__bases__), sorted(space))
        for base in cls.__bases__:
            if base is not object:
                self._class(base)
        if not _DECIDING.isdisjoint(space.keys() - _SILENT):
            raise Unproven(f"{cls.__qualname__}, which decides what its instances hold")
        fields = space.get("__dataclass_fields__", {})
        for name, field in fields.items():
            if type(field) is not dataclasses.Field:
                raise Unproven(f"{cls.__qualname__}, whose fields are not those of a dataclass")
            self._say(name, field.init, field.compare, field.hash, field.kw_only)
            for value in (field.default, field.default_factory):
                self._say("none") if value is dataclasses.MISSING else self.add(value)
        for name in sorted(space.keys() - _SILENT):
            if fields and name in _WRITTEN and _is_written(space[name]):
                self._code(space[name].__code__)  # what ``exec`` makes has no file either
            else:
                self._entry(name, space[name])

    def _entry(self, name: str, value: Any) -> None:
        self._say("entry", name, type(value).__name__)
        if type(value) is property:
            for part in (value.fget, value.fset, value.fdel):
                self.add(part)
        else:
            self.add(value.__func__ if type(value) in (staticmethod, classmethod) else value)

    def _guard(self, obj: Any) -> None:
        cls, held = type(obj), instance_dict(obj)
        self.guards.add_static(cls, "__getattribute__", static(cls, "__getattribute__"))
        self.guards.add_class(obj)
        self.guards.add_names(cls)  # Python may ask for any special method
        if held is not None:
            # All of it, and that there is no more, or another: who is given the object may ask
            # for more than the code names, and an attribute set on it hides one of its class.
            self.guards.add_contents(obj, cls.__qualname__, attributes_of(obj, held))
        special = {n for c in cls.__mro__[:-1] for n in vars(c) if n[:2] == "__"} - _SILENT
        for name in self._names | special | {"tree_flatten"}:  # asked for by the package itself
            found = static(cls, name)
            if found is not MISSING:
                self.guards.add_static(cls, name, found)

    # ---- code ----

    def _file(self, path: str) -> None:
        """Add the text of a file: the verdict of purity depends on more of it than one function."""
        if path in self._files:
            return
        self._files.add(path)
        if path.startswith(_LIBRARY) or any(part in path for part in _INSTALLED):
            raise Unproven(f"a function of {path}")
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - at every start
                self._say("file", digest(file.read()).digest())
        except OSError:
            raise Unproven(f"a function without a source file ({path})") from None

    def _code(self, code: types.CodeType) -> None:
        if not _REFUSED.isdisjoint(code.co_code[::2]):
            raise Unproven(f"{code.co_qualname}, which imports, or defines a global or a class")
        texts = any(isinstance(x, str) and "%" in x for x in code.co_consts)
        self._writes |= texts or not _FORMATS.isdisjoint(code.co_code[::2])
        self._writes |= not _WRITING.isdisjoint(code.co_names)
        self._say(
            "code", code.co_code, code.co_exceptiontable, code.co_flags, code.co_names,
            code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount,
            code.co_posonlyargcount, code.co_kwonlyargcount, len(code.co_consts),
        )  # fmt: skip
        for const in code.co_consts:
            self._const(const)

    def _const(self, const: Any) -> None:
        if isinstance(const, types.CodeType):
            self._code(const)
        elif isinstance(const, tuple):
            self._say("tuple", len(const))
            for x in const:
                self._const(x)
        elif isinstance(const, frozenset):
            self._say("frozenset", sorted((type(x).__name__, repr(x)) for x in const))
        else:
            self.add(const)

    # ---- names ----

    def _globals(self, fun: types.FunctionType, attributes: list[str]) -> None:
        space = fun.__globals__
        for name in sorted({name for code in _codes(fun.__code__) for name in _read(code)}):
            self.guards.add_name(space, name)
            if name in space:
                self._say("global", name)
                self._value(space[name], attributes)
            elif hasattr(builtins, name):
                self._say("builtin", name)
                self.add(getattr(builtins, name))
            else:
                raise Unproven(f"the global {name}, which is not defined")

    def _value(self, obj: Any, attributes: list[str]) -> None:
        """Add what a name stands for, and of a module the attributes that the code may ask for."""
        if not issubclass(type(obj), types.ModuleType):
            self.add(obj)
            return
        space = state(obj)
        module = space["__name__"]
        self._say("module", module)
        self._modules.add(module)
        if (id(obj), id(attributes)) in self._entered:
            return
        self._entered.add((id(obj), id(attributes)))
        root = module.partition(".")[0]
        if root in _VERSIONED:
            self._versioned(obj, attributes)
            return
        plain = type(obj) is types.ModuleType and "__getattr__" not in space
        if root not in _STANDARD and not (plain and sys.modules.get(module) is obj):
            raise Unproven(f"the module {module}")
        for name in attributes:
            if name in space:
                self.guards.add_of_module(obj, name)
                self._say("attribute", name)
                self._value(space[name], attributes)

    def _versioned(self, module: types.ModuleType, attributes: list[str]) -> None:
        """Add what of a known package is not as its sources say, and nothing where all is.

        Of a surface that imports on demand, names nobody asked for yet are as they were written.
        """
        space = state(module)
        package = space["__name__"]
        for name in attributes:
            value = space.get(name, _NOTHING)
            if value is _NOTHING:
                continue
            self.guards.add_of_module(module, name)
            if isinstance(value, types.ModuleType):
                if lazy.is_own(package, name, value):
                    self._versioned(value, attributes)
                else:
                    self._say("attribute", name)
                    self._value(value, attributes)
            elif not lazy.is_own(package, name, value) and not (
                _at_home(value) and getattr(value, "__name__", None) == name
            ):
                self._say("attribute", name)
                self.add(value)

    def _named(self, obj: Any) -> None:
        """Add an object of a known package, or of the standard library, by its name."""
        module = _module_of(obj)
        name = getattr(obj, "__qualname__", getattr(obj, "__name__", ""))
        if not _at_home(obj):
            raise Unproven(f"an instance of {type(obj).__qualname__}")
        if module.partition(".")[0] in _VERSIONED and not module.startswith("numpy.random"):
            self._say("named", module, name)
            return
        allowed = _STANDARD.get(module, ())
        if allowed is not None and name not in allowed:
            raise Unproven(f"{module}.{name}")
        self._say("named", module, name)


_METHODS: Final[list[tuple[Any, Callable[[Content, Any], None]]]] = [
    (types.FunctionType, Content._function),
    (types.MethodType, Content._method),
    (tuple, Content._tuple),
    (ArrayImpl, Content._array),
    (np.dtype, Content._dtype),
    (np.generic, Content._scalar),
    (functools.partial, Content._partial),
    (slice, Content._slice),
    (range, Content._range),
]


def tell(kind: type, parts: Callable[[Any], tuple[Any, ...]]) -> None:
    """Say by which parts an object of a type is told."""
    _METHODS.append((kind, lambda content, obj: content.add((kind.__name__, *parts(obj)))))


def _is_written(method: Any) -> bool:
    """Say whether `dataclass` wrote a method."""
    files = "<string>", _LIBRARY + "dataclasses.py"
    return type(method) is types.FunctionType and method.__code__.co_filename in files


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield code and the code within it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _read(code: types.CodeType) -> Iterator[str]:
    """Yield the globals and builtins that code reads."""
    ops, args = code.co_code[::2], code.co_code[1::2]
    at = ops.find(_LOAD_GLOBAL)
    while at >= 0:
        arg, before, shift = args[at], at - 1, 8
        while before >= 0 and ops[before] == _EXTENDED_ARG:
            arg |= args[before] << shift
            before, shift = before - 1, shift + 8
        yield code.co_names[arg >> 1]
        at = ops.find(_LOAD_GLOBAL, at + 1)


def _module_of(obj: Any) -> str:
    module = getattr(obj, "__module__", None)
    if isinstance(module, str):
        return {"_operator": "operator", "_functools": "functools"}.get(module, module)
    return "numpy" if isinstance(obj, np.ufunc) else "builtins"


def _at_home(obj: Any) -> bool:
    """Say whether an object is what its own name stands for."""
    found: Any = sys.modules.get(_module_of(obj))
    for part in str(getattr(obj, "__qualname__", getattr(obj, "__name__", "?"))).split("."):
        found = getattr(found, part, None)
    return found is obj
