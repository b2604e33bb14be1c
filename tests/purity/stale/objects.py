"""Objects of the user's classes, of installed ones, and what makes up a class or a function."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows

_V = """
class V:
    def __init__(self): self.s = 2.0
    def __add__(self, o): return self.s + o
    def __radd__(self, o): return self.s + o
    def __sub__(self, o): return self.s - o
    def __mul__(self, o): return self.s * o
    def __rmul__(self, o): return self.s * o
    def __matmul__(self, o): return self.s * o
    def __truediv__(self, o): return self.s / o
    def __pow__(self, o): return self.s ** o
    def __mod__(self, o): return self.s + 0
    def __neg__(self): return -self.s
    def __pos__(self): return self.s
    def __abs__(self): return self.s
    def __invert__(self): return self.s
    def __getitem__(self, k):
        if k > 1: raise IndexError
        return self.s
    def __iter__(self): return iter([self.s])
    def __reversed__(self): return iter([self.s])
    def __len__(self): return int(self.s)
    def __bool__(self): return self.s > 2.5
    def __float__(self): return self.s
    def __int__(self): return int(self.s)
    def __index__(self): return int(self.s)
    def __round__(self, n=0): return self.s
    def __complex__(self): return complex(self.s)
    def __eq__(self, o): return self.s == o
    def __lt__(self, o): return self.s < o
    def __ge__(self, o): return self.s >= o
    def __hash__(self): return int(self.s)
    def __contains__(self, o): return self.s == o
    def __array__(self, dtype=None, copy=None): return np.array(self.s, np.float32)
    def __str__(self): return "a" * int(self.s)
    def __repr__(self): return "a" * int(self.s)
    def __format__(self, spec): return "a" * int(self.s)
    def __bytes__(self): return b"a" * int(self.s)
    def __enter__(self): return self.s
    def __exit__(self, *a): return None
    def __call__(self, y): return self.s * y
    def keys(self): return ["k"]
v = V()
"""
_C = """
class B:
    rate = 2.0
    RATE = 2.0
    def __init__(self): self.k = 2.0
    def m(self): return 2.0
    def deep(self): return self.m()
    @property
    def p(self): return 2.0
    @classmethod
    def c(cls): return 2.0
    @staticmethod
    def s(): return 2.0
    @functools.cached_property
    def q(self): return 2.0
    @functools.lru_cache
    def l(self): return 2.0
    part = functools.partialmethod(lambda self, n: n, 2.0)
    def __call__(self): return 2.0
    def __getitem__(self, i): return 2.0
    def __len__(self): return 2
    def __add__(self, o): return 2.0
class D(B):
    def up(self): return super().m()
    def up2(self): return super(D, self).m()
    def prop(self): return super().p
    def called(self): return super().__call__()
o = D()
"""
_SUPER = """
class B:
    def forward(self): return self.k
    def __call__(self): return self.k
    @property
    def gain(self): return self.k
class C(B): pass
class D(C):
    def __init__(self): self.k = 2.0
    def forward(self): return super().forward()
    def old(self): return super(D, self).forward()
    def __call__(self): return super().__call__()
    def prop(self): return super().gain
    def named(self): return B.forward(self)
    def held(self):
        up = super()
        return up.forward()
o = D()
"""
_DATA = """
@dataclasses.dataclass
class P:
    k: float = 2.0
    def twice(self): return self.k
p = P()
"""
_GET = """
class G:
    def __init__(self): self.d = {'k': 2.0}
    def __getattr__(self, name): return self.__dict__['d'][name]
g = G()
"""


def _class(name: str, setup: str, reads: str, *changes: str) -> dict[str, Row]:
    return {f"{name}: {change}": Row(setup, reads, change) for change in changes}


ROWS: dict[str, Row] = {
    **rows(
        "protocol",
        _V,
        "v.s = 3.0",
        "v + 1",
        "1 + v",
        "v - 1",
        "v * 2",
        "2 * v",
        "v @ 2",
        "v / 2",
        "v ** 2",
        "v % 2",
        "-v",
        "+v",
        "abs(v)",
        "~v",
        "v[0]",
        "[a for a in v][0]",
        "list(v)[0]",
        "sum(v)",
        "max(v)",
        "len(v)",
        "2 if v else 1",
        "1 if not v else 2",
        "float(v)",
        "int(v)",
        "round(v)",
        "complex(v).real",
        "2 if v == 2.0 else 1",
        "2 if v != 2.0 else 1",
        "2 if v < 2.5 else 1",
        "2 if v >= 2.5 else 1",
        "hash(v)",
        "2 if 2.0 in v else 1",
        "np.asarray(v)",
        "jnp.asarray(v)",
        "np.sin(v)",
        "len(str(v))",
        "len(repr(v))",
        "len(f'{v}')",
        "len('{}'.format(v))",
        "len('%s' % v)",
        "len(bytes(v))",
        "v(1.0)",
        "next(reversed(v))",
        "[*v][0]",
        "(lambda a: a)(*v)",
        "range(v)[-1]",
        "[1, 2, 3, 4][v]",
        "math.sqrt(v)",
        "operator.index(v)",
        "(v and 2.0) + 0",
        "sum(map(float, v))",
        "next(iter(v))",
        "dict.fromkeys(v).popitem()[0]",
        "min([v]) + 0",
        "max([v, v], key=id) * 2",
    ),
    "protocol: with": Row(
        _V + "def f(x):\n    with v as s:\n        return x * s", "", "v.s = 3.0"
    ),
    "protocol: unpacking": Row(_V + "def f(x):\n    s, = v\n    return x * s", "", "v.s = 3.0"),
    "protocol: for": Row(
        _V + "def f(x):\n    for s in v:\n        x = x * s\n    return x", "", "v.s = 3.0"
    ),
    "protocol: in place": Row(
        _V + "def f(x):\n    y = 1.0\n    y += v\n    return x * y", "", "v.s = 3.0"
    ),
    "protocol: match": Row(
        _DATA
        + "def f(x):\n    match p:\n        case P(k=2.0): return x * 2\n        case _: return x",
        "",
        "p.k = 3.0",
    ),
    "protocol: assert": Row(
        _V
        + "def f(x):\n    try:\n        assert v\n    except AssertionError:\n        return x\n    return x * 2",
        "",
        "v.s = 3.0",
    ),
    "protocol: while": Row(
        _V + "def f(x):\n    n = 0\n    while v < 2.5 and n < 3:\n        n += 1\n    return x * n",
        "",
        "v.s = 3.0",
    ),
    **rows(
        "attribute",
        _DATA,
        "p.k = 3.0",
        "p.k",
        "p.twice()",
        "getattr(p, 'k')",
        "getattr(p, 'k', 1.0)",
        "vars(p)['k']",
        "p.__dict__['k']",
        "operator.attrgetter('k')(p)",
        "dataclasses.asdict(p)['k']",
        "dataclasses.astuple(p)[0]",
        "dataclasses.replace(p).k",
        "copy.copy(p).k",
        "copy.deepcopy(p).k",
        "getattr(p, ''.join(['k']))",
        "[p][0].k",
        "{'a': p}['a'].k",
        "(lambda q: q.k)(p)",
        "2 if p == P(2.0) else 1",
        "len(repr(p)) + p.k",
        "P.twice(p)",
        "type(p).twice(p)",
        "object.__getattribute__(p, 'k')",
        "p.__getattribute__('k')",
        "p.__getstate__()['k'] if hasattr(p, '__getstate__') else p.k",
    ),
    **rows(
        "attribute that comes later",
        _DATA,
        "p.z = 3.0",
        "getattr(p, 'z', 2.0)",
        "3.0 if hasattr(p, 'z') else 2.0",
        "len(vars(p)) + 1.0",
    ),
    **rows(
        "class attribute that comes later",
        _DATA,
        "P.z = 3.0",
        "getattr(P, 'z', 2.0)",
        "getattr(p, 'z', 2.0)",
    ),
    **rows("__getattr__", _GET, "g.d['k'] = 3.0", "g.k", "getattr(g, 'k')", "g.d['k']"),
    "__getattribute__": Row(
        "class G:\n    d = {'k': 2.0}\n    def __getattribute__(self, name): return type(self).d[name]\ng = G()",
        "g.k",
        "G.d['k'] = 3.0",
    ),
    "descriptor": Row(
        "class S:\n    v = 2.0\n    def __get__(self, o, t=None): return self.v\nclass H:\n    s = S()\nh = H()",
        "h.s",
        "vars(H)['s'].v = 3.0",
    ),
    "descriptor of a class": Row(
        "class S:\n    v = 2.0\n    def __get__(self, o, t=None): return self.v\nclass H:\n    s = S()",
        "H.s",
        "vars(H)['s'].v = 3.0",
    ),
    "metaclass property": Row(
        "class M(type):\n    v = 2.0\n    @property\n    def s(cls): return M.v\nclass H(metaclass=M): pass",
        "H.s",
        "M.v = 3.0",
    ),
    "slot": Row("class S:\n    __slots__ = ('k',)\ns = S(); s.k = 2.0", "s.k", "s.k = 3.0"),
    **rows(
        "super",
        _SUPER,
        "o.k = 3.0",
        "o.forward()",
        "o.old()",
        "o()",
        "o.prop()",
        "o.named()",
        "o.held()",
    ),
    **_class(
        "super rebound",
        _SUPER.replace("self.k\nclass C", "self.k\nclass C").replace("return self.k", "return 2.0"),
        "o.forward()",
        "B.forward = lambda self: 3.0",
        "C.forward = lambda self: 3.0",
        "D.forward = lambda self: 3.0",
        "o.forward = lambda: 3.0",
        "B.forward.__code__ = (lambda self: 3.0).__code__",
    ),
    **_class(
        "method",
        _C,
        "o.m()",
        "D.m = lambda self: 3.0",
        "B.m = lambda self: 3.0",
        "o.m = lambda: 3.0",
        "B.m.__code__ = (lambda self: 3.0).__code__",
        "del B.m; B.m = lambda self: 3.0",
    ),
    **_class(
        "method of a method",
        _C,
        "o.deep()",
        "D.m = lambda self: 3.0",
        "B.m = lambda self: 3.0",
        "B.m.__code__ = (lambda self: 3.0).__code__",
        "B.deep = lambda self: 3.0",
    ),
    **_class(
        "property",
        _C,
        "o.p",
        "B.p = property(lambda self: 3.0)",
        "D.p = property(lambda self: 3.0)",
        "D.p = 3.0",
        "B.p.fget.__code__ = (lambda self: 3.0).__code__",
    ),
    **_class(
        "classmethod",
        _C,
        "o.c()",
        "B.c = classmethod(lambda cls: 3.0)",
        "D.c = classmethod(lambda cls: 3.0)",
        "B.c.__func__.__code__ = (lambda cls: 3.0).__code__",
        "o.c = lambda: 3.0",
    ),
    **_class(
        "classmethod of the class",
        _C,
        "D.c()",
        "B.c = classmethod(lambda cls: 3.0)",
        "D.c = lambda: 3.0",
    ),
    **_class(
        "staticmethod",
        _C,
        "o.s()",
        "B.s = staticmethod(lambda: 3.0)",
        "D.s = staticmethod(lambda: 3.0)",
        "B.s.__code__ = (lambda: 3.0).__code__",
        "o.s = lambda: 3.0",
    ),
    **_class(
        "lru_cache",
        _C,
        "o.l()",
        "B.l = lambda self: 3.0",
        "B.l.__wrapped__.__code__ = (lambda self: 3.0).__code__; B.l.cache_clear()",
    ),
    **_class(
        "partialmethod",
        _C,
        "o.part()",
        "B.part = lambda self: 3.0",
        "B.part = functools.partialmethod(lambda self, n: n, 3.0)",
    ),
    **_class("call", _C, "o()", "B.__call__ = lambda self: 3.0", "D.__call__ = lambda self: 3.0"),
    **_class(
        "special methods",
        _C,
        "o[0]",
        "B.__getitem__ = lambda self, i: 3.0",
        "D.__getitem__ = lambda self, i: 3.0",
    ),
    **_class("length", _C, "len(o)", "B.__len__ = lambda self: 3", "D.__len__ = lambda self: 3"),
    **_class(
        "addition",
        _C,
        "o + 1",
        "B.__add__ = lambda self, o: 3.0",
        "D.__add__ = lambda self, o: 3.0",
    ),
    **_class("super of a class", _C, "o.up()", "B.m = lambda self: 3.0", "D.up = lambda self: 3.0"),
    **_class("super with arguments", _C, "o.up2()", "B.m = lambda self: 3.0"),
    **_class("property by super", _C, "o.prop()", "B.p = property(lambda self: 3.0)"),
    **_class("call by super", _C, "o.called()", "B.__call__ = lambda self: 3.0"),
    **_class("constant of a class", _C, "o.RATE", "B.RATE = 3.0", "D.RATE = 3.0", "o.RATE = 3.0"),
    **_class("variable of a class", _C, "D.rate", "B.rate = 3.0", "D.rate = 3.0"),
    **_class(
        "class of an object",
        _C + "class E(D):\n    def m(self): return 3.0",
        "o.m()",
        "o.__class__ = E",
    ),
    **_class(
        "bases of a class",
        _C + "class B3(B):\n    def m(self): return 3.0",
        "o.m()",
        "D.__bases__ = (B3,)",
    ),
    **_class(
        "constructor",
        _C,
        "D().k",
        "B.__init__ = lambda self: setattr(self, 'k', 3.0)",
        "D.__init__ = lambda self: setattr(self, 'k', 3.0)",
        "B.__init__.__code__ = (lambda self: setattr(self, 'k', 3.0)).__code__",
    ),
    **_class(
        "constructor of a dataclass",
        _DATA,
        "P().k",
        "P.__init__ = lambda self: setattr(self, 'k', 3.0)",
        "P.__init__.__defaults__ = (3.0,)",
        "P.k = 3.0; P.__init__ = lambda self: None",
    ),
    **_class(
        "__new__",
        "class N:\n    def __new__(cls):\n        self = object.__new__(cls)\n        self.k = 2.0\n"
        "        return self\ndef other(cls):\n    self = object.__new__(cls)\n    self.k = 3.0\n    return self",
        "N().k",
        "N.__new__ = other",
    ),
    **_class(
        "defaults",
        "def g(k=2.0): return k",
        "g()",
        "g.__defaults__ = (3.0,)",
        "g.__code__ = (lambda k=1: 3.0).__code__",
    ),
    **_class(
        "defaults by keyword",
        "def g(*, k=2.0): return k",
        "g()",
        "g.__kwdefaults__ = {'k': 3.0}",
        "g.__kwdefaults__['k'] = 3.0",
    ),
    **_class(
        "own defaults",
        "def f(x, k=2.0):\n    return x * k",
        "",
        "f.__defaults__ = (3.0,)",
        "f.__code__ = (lambda x, k: x * 3).__code__",
    ),
    **_class(
        "method defaults",
        "class O:\n    def m(self, k=2.0): return k\no = O()",
        "o.m()",
        "O.m.__defaults__ = (3.0,)",
    ),
    **_class(
        "function",
        "def g(): return 2.0",
        "g()",
        "g.__code__ = (lambda: 3.0).__code__",
        "globals()['g'] = lambda: 3.0",
    ),
    **_class(
        "attribute of a function",
        "def g(): return 1.0\ng.k = 2.0",
        "g.k",
        "g.k = 3.0",
        "g.__dict__['k'] = 3.0",
    ),
    **_class(
        "list of a function",
        "def g(): return 1.0\ng.k = [2.0]",
        "g.k[0]",
        "g.k[0] = 3.0",
        "g.k = [3.0]",
    ),
    **_class("attribute of oneself", "def f(x):\n    return x * f.k\nf.k = 2.0", "", "f.k = 3.0"),
    **_class(
        "computed attribute of a function",
        "def g(): return 1.0\ng.k = 2.0",
        "getattr(g, ''.join(['k']))",
        "g.k = 3.0",
    ),
    **_class(
        "keywords of a partial",
        "def h(x, k=1.0): return x * k\nf = functools.partial(h, k=2.0)",
        "",
        "f.keywords['k'] = 3.0",
        "f.__setstate__((h, (), {'k': 3.0}, {}))",
        "h.__code__ = (lambda x, k: x * 3).__code__",
    ),
    **_class(
        "partial inside",
        "def h(x, k=1.0): return x * k\ng = functools.partial(h, k=2.0)",
        "g(1.0)",
        "g.keywords['k'] = 3.0",
    ),
    **_class(
        "decorator with state",
        "class Dec:\n    def __init__(self, g):\n        functools.update_wrapper(self, g)\n"
        "        self.g = g\n        self.k = 2.0\n    def __call__(self, y): return self.g(y) * self.k\n"
        "@Dec\ndef g(y): return y",
        "g(1.0)",
        "g.k = 3.0",
        "g.g = lambda y: y * 3",
    ),
    **_class(
        "decorator without state",
        "class Dec:\n    def __init__(self, g):\n        self.__wrapped__ = g\n"
        "    def __call__(self, y): return self.__wrapped__(y)\n@Dec\ndef g(y): return y * 2",
        "g(1.0)",
        "g.__wrapped__ = lambda y: y * 3",
        "Dec.__call__ = lambda self, y: 3.0",
    ),
    **_class(
        "wrapper",
        "def deco(g):\n    @functools.wraps(g)\n    def w(y): return g(y) * w.k\n    w.k = 2.0\n    return w\n"
        "@deco\ndef g(y): return y",
        "g(1.0)",
        "g.k = 3.0",
        "g.__closure__[0].cell_contents.__code__ = (lambda y: 5.0).__code__",
    ),
    **_class(
        "singledispatch",
        "@functools.singledispatch\ndef g(a): return 2.0",
        "g(1)",
        "g.register(int)(lambda a: 3.0)",
    ),
    **_class(
        "frozen object by force",
        "@dataclasses.dataclass(frozen=True)\nclass F:\n    k: float\np = F(2.0)",
        "p.k",
        "object.__setattr__(p, 'k', 3.0)",
    ),
    **_class(
        "frozen slots by force",
        "@dataclasses.dataclass(frozen=True, slots=True)\nclass F:\n    k: float\np = F(2.0)",
        "p.k",
        "object.__setattr__(p, 'k', 3.0)",
    ),
    **_class(
        "tuple with attributes",
        "class T(tuple): pass\nT0 = T((1,)); T0.k = 2.0",
        "T0.k",
        "T0.k = 3.0",
    ),
    **_class(
        "number with attributes", "class T(float): pass\nt = T(1); t.k = 2.0", "t.k", "t.k = 3.0"
    ),
    **_class(
        "enum",
        "class E(enum.Enum):\n    A = 2.0\n    @property\n    def twice(self): return self.value",
        "E.A.twice",
        "E.twice = property(lambda self: 3.0)",
    ),
    **_class(
        "enum with attributes",
        "class E(enum.Enum):\n    A = 1\n    def __init__(self, n): self.k = 2.0",
        "E.A.k",
        "E.A.k = 3.0",
    ),
    **_class("lock", "L = threading.Lock()", "2.0 if L.locked() else 1.0", "L.acquire()"),
    **_class("process", "import sys", "sys.getswitchinterval()", "sys.setswitchinterval(0.01)"),
}
