"""Special methods are the user's to replace, in a library's classes too: the next call sees it."""

from __future__ import annotations

import importlib
import itertools
import sys

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray.errors import EffectError

HEAD = """\
import copy, dataclasses, math, operator, os, sys
import numpy as np
import fnarray.numpy as jnp
"""
#: What a method gives, by a number ``K``, and an expression that asks for it.
NUMBER, WHOLE, TRUTH, LETTERS = "return K", "return int(K)", "return K > 2.5", "return 'a' * int(K)"
PAIR = {
    **{f"__{n}__": ("(self, o)", NUMBER, f"b {sign} 2") for n, sign in {
        "add": "+", "sub": "-", "mul": "*", "matmul": "@", "truediv": "/", "floordiv": "//",
        "mod": "%", "pow": "**", "and": "&", "or": "|", "lshift": "<<"}.items()},
    **{f"__{n}__": ("(self, o)", TRUTH, f"(1.0 if b {sign} 3 else 2.0)") for n, sign in {
        "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">="}.items()},
    "__radd__": ("(self, o)", NUMBER, "2 + b"),
    "__contains__": ("(self, o)", TRUTH, "(1.0 if 3 in b else 2.0)"),
    "__divmod__": ("(self, o)", "return (K, 1)", "divmod(b, 2)[0]"),
}  # fmt: skip
ALONE = {
    "__neg__": (NUMBER, "-b"), "__pos__": (NUMBER, "+b"), "__invert__": (NUMBER, "~b"),
    "__abs__": (NUMBER, "abs(b)"), "__float__": (NUMBER, "float(b)"), "__int__": (WHOLE, "int(b)"),
    "__len__": (WHOLE, "len(b)"), "__bool__": (TRUTH, "(1.0 if b else 2.0)"),
    "__index__": (WHOLE, "[0, 1, 2, 3][b]"), "__hash__": (WHOLE, "hash(b)"),
    "__complex__": ("return complex(K)", "complex(b).real"), "__floor__": (WHOLE, "math.floor(b)"),
    "__iter__": ("return iter([K])", "sum(b)"), "__next__": (NUMBER, "next(b)"),
    "__reversed__": ("return iter([K])", "sum(reversed(b))"),
    "__str__": (LETTERS, "len(str(b))"), "__repr__": (LETTERS, "len(repr(b))"),
    "__bytes__": ("return b'a' * int(K)", "len(bytes(b))"), "__copy__": (NUMBER, "copy.copy(b)"),
    "__dir__": ("return ['a'] * int(K)", "len(dir(b))"),
    "__fspath__": (LETTERS, "len(os.fspath(b))"),
    "__sizeof__": ("return 100 * int(K)", "sys.getsizeof(b)"),
    "__length_hint__": (WHOLE, "operator.length_hint(b)"), "__enter__": (NUMBER, "WITH"),
    "__jax_array__": ("return jnp.float32(K)", "jnp.sin(b)"),
}  # fmt: skip
OTHERS = {
    "__getitem__": ("(self, i)", NUMBER, "b[0]"),
    "__round__": ("(self, n=0)", NUMBER, "round(b)"),
    "__format__": ("(self, spec)", LETTERS, "len(f'{b}')"),
    "__call__": ("(self, y=1.0)", NUMBER, "b()"),
    "__array__": ("(self, dtype=None, copy=None)", "return np.array(K, 'f4')", "jnp.asarray(b)"),
    "__deepcopy__": ("(self, memo)", NUMBER, "copy.deepcopy(b)"),
    "__getattr__": ("(self, name)", "return K if name == 'rate' else 1 / 0", "b.rate"),
    "__instancecheck__": ("(self, o)", TRUTH, "(1.0 if isinstance(3, b) else 2.0)"),
    "__subclasscheck__": ("(self, o)", TRUTH, "(1.0 if issubclass(int, b) else 2.0)"),
}
ASKED = PAIR | {name: ("(self)", *rest) for name, rest in ALONE.items()} | OTHERS
OF_CLASSES = {"__instancecheck__", "__subclasscheck__"}
#: What is asked: an object of a class with the method, or a class whose metaclass has it. How its
#: class is decorated, what that is besides, and how one is made.
SORTS = {
    "frozen": ("@dataclasses.dataclass(frozen=True, eq=False, repr=False)\n", "", "lib.Box()"),
    "plain": ("", "", "lib.Box()"),
    "number": ("", "int", "lib.Box(1)"),
    "class": ("", "type", "lib.Box('Made', (), {})"),
}
CHANGES = {
    "class": "lib.Box.NAME = lib.Other.NAME",
    "base": "lib.Base.NAME = lib.Other.NAME",
    "bases": "lib.Box.__bases__ = lib.Box2.__bases__",
    "code": "lib.Base.NAME.__code__ = lib.Other.NAME.__code__",
    "added": "lib.Box.NAME = lib.Other.NAME",
    "object": "object.__setattr__(b, '__class__', lib.Box2)",
}
X = jnp.float32(1.5)
count = itertools.count()


def library(name: str, sort: str, change: str) -> str:
    """Return a module whose ``Box`` has a special method, from ``Base`` where it is not added."""
    parameters, body, _ = ASKED[name]
    decorator, kind, _ = SORTS[sort]
    own = kind if kind == "type" else ""
    method = f"    def {name}{parameters}: {body}\n    def __exit__(self, *how): pass\n"
    text = HEAD
    for base, number in (("Base", "2.0"), ("Other", "3.0")):
        text += f"class {base}({own}):\n{method.replace('K', number)}"
    for box, base in (("Box", "" if change == "added" else "Base"), ("Box2", "Other")):
        text += f"{decorator}class {box}({', '.join(filter(None, (base, kind)))}): pass\n"
    return text


def outcome(call) -> object:
    """Return a call's number, or what it raises."""
    try:
        return np.asarray(call(X)).item()
    except EffectError:
        return "refused"
    except Exception as error:
        return type(error).__name__


def is_stale(folder, where: str, sort: str, change: str, name: str) -> str:
    """Return what a function gave before and after a change, and what it should, if it is stale."""
    number = next(count)
    home = folder / where
    home.mkdir(exist_ok=True)
    (home / f"lib_{number}.py").write_text(library(name, sort, change))
    use, made = ASKED[name][2], SORTS[sort][2]
    body = f"return x * ({use})" if use != "WITH" else "\n    with b as k:\n        return x * k"
    text = f"{HEAD}import lib_{number} as lib\nb = {made}\ndef f(x):\n    {body}\n"
    (folder / f"user_{number}.py").write_text(text)
    importlib.invalidate_caches()
    user = importlib.import_module(f"user_{number}")
    compiled = fnarray.jit(user.f)
    before = outcome(compiled)
    if before == "refused":
        return ""
    try:
        exec(CHANGES[change].replace("NAME", name), user.__dict__)
    except TypeError:  # of objects of another layout
        return ""
    after = outcome(compiled)
    anew = outcome(user.f)
    return "" if after in ("refused", anew) else f"{name}: {before}, {after}, {anew}"


@pytest.mark.parametrize("where", ["site-packages", "project"])
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("change", CHANGES)
def test_replaced_special_methods(tmp_path, monkeypatch, where, sort, change):
    """A method replaced in its class, above it, by other bases, or with the class is seen."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / where))
    names = [n for n in ASKED if (sort == "class") >= (n in OF_CLASSES)]
    found = [is_stale(tmp_path, where, sort, change, name) for name in names]
    for name in [n for n in sys.modules if n.startswith(("lib_", "user_"))]:
        del sys.modules[name]
    assert not any(found), [one for one in found if one]
