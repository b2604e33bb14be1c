"""The live checker runs nothing of the user's, whatever an object answers for by itself."""

# ruff: noqa: E501 - a program is on a line

from __future__ import annotations

import functools
import itertools
import sys
import types

import numpy as np
import pytest

import fnarray
from fnarray.purity import check


class Ran(BaseException):
    """Code of the object's ran."""


def ran(*args, **kwargs):
    """Say that this ran."""
    raise Ran


class Says:
    """A descriptor that must not be asked."""

    __get__ = ran


def answering(*names: str, of: type = object, meta: type = type, **more) -> type:
    """Return a class whose special methods all raise."""
    return meta("Hostile", (of,), {**dict.fromkeys(names, ran), **more})


PROTOCOLS = (
    "__eq__", "__hash__", "__bool__", "__repr__", "__len__", "__iter__", "__getitem__",
    "__contains__", "__index__", "__array__", "__reduce_ex__", "__copy__", "__deepcopy__",
    "__format__", "__dir__", "__add__", "__call__",
)  # fmt: skip
NAMES = (
    "__wrapped__", "__name__", "__doc__", "__module__", "__signature__", "__code__", "__self__",
    "__func__", "__fnarray_pure__", "__dataclass_fields__", "__dataclass_params__", "shape",
    "dtype", "__annotations__", "tree_flatten", "_fields", "__slots__",
)  # fmt: skip
Meta = type("Meta", (type,), dict.fromkeys(
    ("__getattr__", "__instancecheck__", "__subclasscheck__", "__len__", "__bool__", "__eq__",
     "__hash__", "__iter__", "__contains__", "__repr__"), ran))  # fmt: skip
Blind = type("Blind", (type,), {"__getattribute__": ran})
CONTAINER = ("__getitem__", "__iter__", "__len__", "__contains__", "__eq__", "__hash__")
_no_module = answering()
_no_module.__module__ = 5  # type: ignore[assignment]

OBJECTS = {
    "getattr": answering("__getattr__")(),
    "getattribute": answering("__getattribute__")(),
    "class": answering(__class__=property(ran))(),
    "dict": answering(__dict__=property(ran))(),
    "module": answering(__module__=property(ran))(),
    "module that is a number": _no_module(),
    "protocols": answering(*PROTOCOLS)(),
    "descriptors": answering(**{n: Says() for n in NAMES if n != "__slots__"})(),
    "metaclass": answering(meta=Meta)(),
    "class of a metaclass": answering(meta=Meta),
    "blind metaclass": answering(meta=Blind)(),
    "class of a blind metaclass": answering(meta=Blind),
    "dictionary": answering(*CONTAINER, "keys", "values", "items", "get", of=dict)(a=1),
    "list": answering(*CONTAINER, of=list)([1]),
    "tuple": answering(*CONTAINER, of=tuple)((1, 2)),
    "set": answering("__iter__", "__len__", of=set)({1}),
    "frozen set": answering("__iter__", "__len__", "__hash__", of=frozenset)({1}),
    "float": answering("__eq__", "__hash__", "__float__", of=float)(2.0),
    "text": answering("__eq__", "__hash__", of=str)("a"),
    "array": np.ones(2).view(
        answering("__eq__", "__getitem__", "tobytes", of=np.ndarray,
                  **dict.fromkeys(("flags", "shape", "nbytes", "dtype", "base"), property(ran)))
    ),
    "partial": answering("__getattr__", of=functools.partial)(lambda k, x: x * k, 2.0),
    "slots": answering("__getattr__", __slots__=("a",))(),
    "package": answering("__getattr__", of=types.ModuleType)("hostile_package"),
}  # fmt: skip
CAPTURED = (
    "def f(x): return x if o is None else x * 2",
    "def f(x): return x * (1 if isinstance(o, int) else 2)",
    "def g(x, p): return x * 2\ndef f(x): return g(x, o)",
    "def f(x):\n    t = (o, 1)\n    d = {'a': o}\n    return x * 2",
    "def make(*p, **k):\n    def f(x): return x if p[0] is None else x * 2\n    return f\nf = make(o)",
    "def f(x, p=o): return x if p is None else x * 2",
    "f = functools.partial(lambda p, x: x * 2, o)",
    "def f(x): return x * o.a + getattr(o, 'k', 2.0) * hasattr(o, 'n')",
    "def f(x): return o(x)",
    "def f(x): return x * o[0] * len(o) + o",
    "class K:\n    q = o\ndef f(x): return x if K.q is None else x * 2",
    "M = types.MappingProxyType({'a': o})\ndef f(x): return x if M['a'] is None else x * 2",
    "T = (o, 2.0)\ndef f(x): return x * T[1]",
    "def make():\n    held = [o, 2.0]\n    def f(x): return x * held[1]\n    return f\nf = make()",
)
_numbers = itertools.count()


@pytest.mark.parametrize("name", OBJECTS)
def test_nothing_of_the_object_runs(name, tmp_path):
    """A verdict, accepted or refused, from what is in the object and its class alone."""
    for source in CAPTURED:
        made = types.ModuleType(f"hostile_{next(_numbers)}")
        path = tmp_path / f"{made.__name__}.py"
        path.write_text(source)
        made.__dict__.update(__file__=str(path), o=OBJECTS[name], functools=functools, types=types)
        sys.modules[made.__name__] = made
        try:
            exec(compile(source, path, "exec"), made.__dict__)
            check(made.f)
        finally:
            del sys.modules[made.__name__]


@pytest.mark.parametrize(
    "cls",
    [
        answering("__getattr__", __call__=lambda self, x: x * 2),
        answering("__getattribute__", __call__=lambda self, x: x * 2),
        answering(__class__=property(ran), __call__=lambda self, x: x * 2),
        answering(__call__=lambda self, x: x * 2, **{n: Says() for n in NAMES[:9]}),
        answering(meta=Meta, __call__=lambda self, x: x * 2),
    ],
    ids=["getattr", "getattribute", "class", "descriptors", "metaclass"],
)
def test_a_hostile_callable_is_compiled(cls):
    """Of a callable object nothing runs but its ``__call__``."""
    assert float(fnarray.jit(cls())(1.5)) == 3.0
