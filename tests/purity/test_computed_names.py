"""Names of attributes that are computed: what may be meant is looked into, and nothing else."""

from __future__ import annotations

import sys
import types

import pytest

from fnarray import purity
from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import parse

HEAD = "import fnarray, fnarray.numpy as jnp\n"
#: Programs that have no effect: each defines ``f``.
HARMLESS = {
    "fields loop of frozen config": """
import dataclasses
@dataclasses.dataclass(frozen=True)
class C:
    a: float = 1.0
    b: tuple = (1, 2)
    def loud(self): print(self)
    def save(self, path): open(path, "w").write(str(self))
c = C()
def f(x):
    t = 0
    for fl in dataclasses.fields(c):
        v = getattr(c, fl.name)
        t = t + (v if isinstance(v, float) else sum(v))
    return x * t
""",
    "local object fields copied": """
class S:
    __slots__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
    def copy(self):
        new = object.__new__(S)
        for n in self.__slots__: setattr(new, n, getattr(self, n))
        return new
def f(x):
    s = S(x, 2.0).copy()
    return s.a * s.b
""",
    "visitor pure": """
class Add: pass
class Mul: pass
class V:
    def visit(self, n, x): return getattr(self, "visit_" + type(n).__name__)(x)
    def visit_Add(self, x): return x + 1
    def visit_Mul(self, x): return x * 2
    def report(self): print("done")
def f(x):
    v = V()
    return v.visit(Add(), v.visit(Mul(), x))
""",
    "flax-like setup names": """
class M:
    def __init__(self):
        for i in range(2): setattr(self, f"dense_{i}", lambda x, i=i: x * (i + 1))
    def __call__(self, x):
        for i in range(2): x = getattr(self, f"dense_{i}")(x)
        return x
def f(x):
    return M()(x)
""",
    "activation by name of jnp": """
def act(name, x): return getattr(jnp, name)(x)
def f(x):
    return act("tanh", act("sin", x))
""",
    "activation by static name": """
class Act:
    def relu(self, x): return jnp.maximum(x, 0)
    def tanh(self, x): return jnp.tanh(x)
def run(kind, x): return getattr(Act(), kind)(x)
def f(x):
    return run("relu", run("tanh", x))
""",
    "namedtuple fields": """
from typing import NamedTuple
class P(NamedTuple):
    a: float = 1.0
    b: float = 2.0
p = P()
def f(x):
    return x * sum(getattr(p, n) for n in p._fields)
""",
    "namedtuple local fields": """
from typing import NamedTuple
class P(NamedTuple):
    a: object
    b: object
def f(x):
    p = P(x, 2 * x)
    return sum(getattr(p, n) for n in P._fields)
""",
    "getattr default": """
class C:
    scale = 2.0
def f(x):
    return x * getattr(C(), "missing", 3.0)
""",
    "getattr default computed": """
class C:
    def __init__(self): self.k = 2.0
def f(x):
    c = C()
    for n in ("k", "j"): x = x * getattr(c, n, 3.0)
    return x
""",
    "class by name loop": """
class Ops:
    @staticmethod
    def a(x): return x + 1
    @staticmethod
    def b(x): return x * 2
def f(x):
    for n in ("a", "b"): x = getattr(Ops, n)(x)
    return x
""",
    "class attr by conditional": """
class K:
    LOW = 1.0
    HIGH = 2.0
def f(x):
    return x * getattr(K, "LOW" if x.ndim == 1 else "HIGH")
""",
    "eq over slots": """
class S:
    __slots__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
    def __eq__(self, o): return all(getattr(self, n) == getattr(o, n) for n in self.__slots__)
def f(x):
    return x * 2 if S(1, 2) == S(1, 2) else x
""",
    "repr in class with property": """
class S:
    def __init__(self, a): self.a = a
    @property
    def twice(self): return self.a * 2
    def tree(self): return {n: getattr(self, n) for n in ("a", "twice")}
def f(x):
    return S(x).tree()["twice"]
""",
    "update loop kwargs": """
class S:
    def __init__(self, **kw):
        for k, v in kw.items(): setattr(self, k, v)
def f(x):
    s = S(a=x, b=2.0)
    return s.a * s.b
""",
    "attrgetter over names": """
import operator
class S:
    def __init__(self, a): self.a = a
def f(x):
    for n in ("a",): x = operator.attrgetter(n)(S(x))
    return x * 1
""",
    "methodcaller over names": """
import operator
def f(x):
    for n in ("sum", "mean"): x = x * operator.methodcaller(n)(x)
    return x
""",
    "inspect getmembers of local class": """
import inspect
class C:
    def a(self, x): return x * 2
def f(x):
    for n, fn in inspect.getmembers(C(), inspect.ismethod): x = fn(x)
    return x
""",
    "object getattribute in proxy": """
class P:
    def __init__(self, k): self.k = k
    def __getattribute__(self, n): return object.__getattribute__(self, n)
def f(x):
    return x * P(2.0).k
""",
    "frozen instance by mode": """
import dataclasses
@dataclasses.dataclass(frozen=True)
class C:
    mode: str = "a"
    def op_a(self, x): return x * 2
    def op_b(self, x): return x * 3
    def show(self): print(self.mode)
    def __call__(self, x): return getattr(self, f"op_{self.mode}")(x)
c = C()
def f(x):
    return c(x)
""",
    "many handlers": """
class C:
    def h0(self, x): return x + 0
    def h1(self, x): return x + 1
    def h2(self, x): return x + 2
    def h3(self, x): return x + 3
    def h4(self, x): return x + 4
    def h5(self, x): return x + 5
    def h6(self, x): return x + 6
    def h7(self, x): return x + 7
def f(x):
    c = C()
    for i in range(8): x = getattr(c, f"h{i}")(x)
    return x
""",
    "array attributes by name": """
def f(x):
    for n in ("T", "real"): x = getattr(x, n)
    return x * getattr(x, "ndim")
""",
    "argument container by name": """
import types
def g(s, x):
    for n in ("a", "b"): x = x * getattr(s, n)
    return x
def f(x):
    return g(types.SimpleNamespace(a=1.0, b=2.0), x)
""",
    "unknown name, impure method never meant": """
class T:
    def __init__(self): self.parts = ["w", "b"]; self.w = 2.0; self.b = 3.0
    def log(self): print("x")
    def go(self, x):
        for n in self.parts: x = x * getattr(self, n)
        return x
def f(x):
    return T().go(x)
""",
    "layers by stored names, with a summary": """
class M:
    def __init__(self): self.layers = ["a", "b"]
    def a(self, x): return x + 1
    def b(self, x): return x * 2
    def summary(self): print(self.layers)
    def save(self, path, mode): open(path, mode)
    def __call__(self, x):
        for n in self.layers:
            layer = getattr(self, n)
            x = layer(x)
        return x
def f(x):
    return M()(x)
""",
    "frozen module from outside, with a summary": """
import dataclasses
@dataclasses.dataclass(frozen=True)
class M:
    layers: tuple = ("a", "b")
    def a(self, x): return x + 1
    def b(self, x, k=2): return x * k
    def summary(self): print(self.layers)
    def __call__(self, x):
        for n in self.layers: x = getattr(self, n)(x)
        return x
model = M()
def f(x):
    return model(x)
""",
}
#: Programs of which one method prints, and how it is named.
PRINTS = {
    name: f"""
class Ops:
    def loud(self, x):
        print(x)
        return x
    def go(self, name, x):
        return getattr(self, name)(x)
    def quiet(self, x):
        return x
def f(x):
    return {call}
"""
    for name, call in {
        "a loop": "[getattr(Ops(), n)(x) for n in ('quiet', 'loud')][-1]",
        "a loop over a class": "[getattr(Ops, n)(Ops(), x) for n in ('quiet', 'loud')][-1]",
        "an f-string": "getattr(Ops(), f'lou{x.ndim}'.replace('0', 'd'))(x)",
        "a conditional": "getattr(Ops(), 'loud' if x.ndim else 'quiet')(x)",
        "a parameter": "Ops().go('loud', x)",
    }.items()
}


def checked(text, folder):
    """Return the codes that the live checker finds in ``f``, and those that the linter does."""
    path = folder / "computed.py"
    path.write_text(HEAD + text + "\nprogram = fnarray.jit(f)\n")
    made = types.ModuleType(path.stem)
    made.__file__ = str(path)
    sys.modules[path.stem] = made
    exec(compile(path.read_text(), path, "exec"), made.__dict__)
    live = {one.code for one in purity.check(made.f)}
    return live, {
        one.code for one in lint([parse(str(path), path.read_text())], Settings()).findings
    }


@pytest.mark.parametrize("name", HARMLESS)
def test_what_no_name_means_is_no_finding(name, tmp_path):
    """Methods that a name cannot spell, or that a call does not fit, are not looked into."""
    live, linted = checked(HARMLESS[name], tmp_path)
    assert not live
    assert not linted


@pytest.mark.parametrize("name", PRINTS)
def test_what_a_name_may_mean_is_entered(name, tmp_path):
    """A method is found by the names of a loop, by parts of its name, or by any name."""
    live, linted = checked(PRINTS[name], tmp_path)
    assert live == linted == {"FNA311"}
