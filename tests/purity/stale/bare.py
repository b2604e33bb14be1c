"""Objects that hold nothing of their own yet, and objects that are given another dictionary."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows

_BARE = """
class O:
    def k(self): return 2.0
    def m(self): return self.k()
o = O()
pair = (O(), o)
@dataclasses.dataclass(frozen=True)
class Outer:
    inner: O
    def k(self): return self.inner.k()
outer = Outer(o)
"""
_FROZEN = """
@dataclasses.dataclass(frozen=True)
class D:
    k: float
    def m(self): return self.k
d = D(2.0)
"""

ROWS: dict[str, Row] = {
    **rows("method set on a bare object", _BARE, "o.k = lambda: 3.0", "o.k()", "o.m()", "pair[1].k()", "outer.k()", "O.m(o)", "functools.partial(lambda p: p.k(), o)()", "(lambda p=o: p.k())()", "operator.methodcaller('k')(o)"),
    **rows("method set on an object that a function captured", _BARE + "def make(p): return lambda: p.k()\nget = make(o)", "o.k = lambda: 3.0", "get()"),
    **rows("a bare object's dictionary replaced", _BARE, "o.__dict__ = {'k': lambda: 3.0}", "o.k()", "o.m()", "outer.k()"),
    **rows("a frozen object's dictionary replaced", _FROZEN, "object.__setattr__(d, '__dict__', {'k': 3.0})", "d.k", "d.m()", "dataclasses.replace(d).k", "dataclasses.astuple(d)[0]"),
    **rows("a member's dictionary replaced", "class E(enum.Enum):\n    A = 2.0", "object.__setattr__(E.A, '__dict__', {**vars(E.A), '_value_': 3.0})", "E.A.value", "E.A._value_"),
    "method of a bare callable": Row("class O:\n    def k(self): return 2.0\n    def __call__(self, x): return x * self.k()\nf = O()", "", "f.k = lambda: 3.0"),
    "method of a frozen object": Row(_FROZEN.replace("def m(self): return self.k", "def m(self, x): return x * self.k") + "f = d.m", "", "object.__setattr__(d, '__dict__', {'k': 3.0})"),
}  # fmt: skip
