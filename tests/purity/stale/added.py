"""What classes are given later: special methods they had not, and what hides an object's fields."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows

_FROZEN = """
class Root: pass
@dataclasses.dataclass(frozen=True)
class D(Root):
    k: float = 2.0
    j: float = dataclasses.field(kw_only=True)
    t: tuple = (1.0, 2.0)
    def __getitem__(self, i): return self.t[i]
    def __index__(self): return 2
    def __repr__(self): return '2.0'
    def __add__(self, o): return self.k
    def m(self): return self.j
d = D(j=2.0)
"""
_MANAGER = """
K = 2.0
@dataclasses.dataclass(frozen=True)
class D:
    k: float = 2.0
    def __enter__(self): return K
    def __exit__(self, *a): pass
d = D()
def g():
    with d as k: return k
def s():
    with contextlib.ExitStack() as stack: return stack.enter_context(d)
"""
_GENERIC = "class C(typing.Generic[typing.TypeVar('T')]):\n    K = 2.0\n    @classmethod\n    def m(cls): return cls.K\n    def n(self): return self.K\nclass B:\n    K = 2.0\n    __class_getitem__ = classmethod(types.GenericAlias)"

ROWS: dict[str, Row] = {
    **rows("a property added", _FROZEN, "D.k = property(lambda self: 3.0); D.j = property(lambda self: 3.0)", "d.k", "d.j", "d.m()", "getattr(d, 'k')", "operator.attrgetter('j')(d)", "d + 1"),
    **rows("__bool__ added", _FROZEN, "D.__bool__ = lambda self: False", "2.0 if d else 3.0", "2.0 if bool(d) else 3.0", "3.0 if not d else 2.0", "(d and 2.0) or 3.0"),
    **rows("__bool__ added above", _FROZEN, "Root.__bool__ = lambda self: False", "2.0 if d else 3.0"),
    **rows("__len__ added", _FROZEN, "D.__len__ = lambda self: 0", "2.0 if d else 3.0"),
    **rows("__contains__ added", _FROZEN, "D.__contains__ = lambda self, v: False", "2.0 if 1.0 in d else 3.0"),
    **rows("__iter__ added", _FROZEN, "D.__iter__ = lambda self: iter((9.0,))", "sum(d)", "max(d)", "[*d][0]", "next(iter(d))"),
    **rows("__float__ added", _FROZEN, "D.__float__ = lambda self: 3.0", "float(d)"),
    **rows("__str__ added", _FROZEN, "D.__str__ = lambda self: '3.0'", "float(str(d))", "float(f'{d}')", "float('%s' % d)"),
    **rows("__format__ added", _FROZEN, "D.__format__ = lambda self, spec: '3.0'", "float(f'{d}')", "float(format(d))", "float('{}'.format(d))"),
    **rows("__eq__ replaced by text that is run", _FROZEN + "e = D(j=2.0)", "D.__eq__ = lambda self, o: False", "2.0 if d == e else 3.0", "2.0 if d in (e,) else 3.0", "2.0 if d != e else 3.0"),
    **rows("with a frozen object", _MANAGER, "D.__enter__ = lambda self: 3.0", "g()", "s()"),
    **rows("what a frozen object's __enter__ reads", _MANAGER, "K = 3.0", "g()", "s()"),
    **rows("attribute of a generic class, subscripted", _GENERIC, "C.K = B.K = 3.0", "C[int].K", "C[int].m()", "C[int]().n()", "C[int]().K", "B[int].K", "getattr(C[int], 'K')", "C[int].__origin__.K"),
}  # fmt: skip
