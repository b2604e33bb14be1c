"""Roundabout ways to what is captured: methods handed over, weak references, modules by name."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows

_O = """
class P:
    BASE = 2.0
    def base(self): return self.BASE
class O(P):
    K = 2.0
    def __init__(self): self.k = 2.0; self.held = [2.0]
    def m(self, x): return x * self.k
    def up(self, x): return x * super().base()
    def up_attr(self, x): return x * super().BASE
    def scaled(self, s, x): return x * s * self.k
    half = functools.partialmethod(scaled, 0.5)
    @classmethod
    def c(cls, x): return x * cls.K
    @staticmethod
    def s(x): return x * o.k
    @functools.cached_property
    def kept(self): return self.k
    @functools.singledispatchmethod
    def by(self, x): return 2.0
    def __call__(self, x): return x * self.k
    def __class_getitem__(cls, k): return cls.K
o = O()
"""
_SET = "o.k = 3.0"


def _whole(name: str, setup: str, change: str) -> dict[str, Row]:
    """Return a row whose setup makes ``f``."""
    return {name: Row(setup, "", change)}


ROWS: dict[str, Row] = {
    **_whole("a bound method", _O + "f = o.m", _SET),
    **_whole(
        "a bound method, its function",
        _O + "f = o.m",
        "O.m.__code__ = (lambda self, x: x * 3.0).__code__",
    ),
    **_whole("a class method", _O + "f = O.c", "O.K = 3.0"),
    **_whole("a static method", _O + "f = O.s", _SET),
    **_whole("a partial method", _O + "f = o.half", _SET),
    **_whole("a callable object", _O + "f = o", _SET),
    **_whole("a partial of a method", _O + "f = functools.partial(O.m, o)", _SET),
    **_whole("a method of super", _O + "f = o.up", "P.base = lambda self: 3.0"),
    **_whole("a class attribute of super", _O + "f = o.up_attr", "P.BASE = 3.0"),
    **_whole("a method behind a lambda", _O + "f = lambda x: o.m(x)", _SET),
    **_whole(
        "a method in a wrapper",
        _O
        + "def wrap(g):\n    @functools.wraps(g)\n    def f(x): return g(x)\n    return f\nf = wrap(o.m)",
        _SET,
    ),
    **_whole(
        "a default that is a list",
        "def f(x, k=[2.0]):\n    return x * k[0]",
        "f.__defaults__[0][0] = 3.0",
    ),
    **_whole(
        "a keyword default", "def f(x, *, k=2.0):\n    return x * k", "f.__kwdefaults__['k'] = 3.0"
    ),
    **_whole(
        "a list in a partial",
        "held = [2.0]\nf = functools.partial(lambda k, x: x * k[0], held)",
        "held[0] = 3.0",
    ),
    **_whole(
        "a cell that a sibling sets",
        "def make():\n    k = 2.0\n    def put(v):\n        nonlocal k\n        k = v\n    return (lambda x: x * k), put\nf, put = make()",
        "put(3.0)",
    ),
    **rows(
        "object",
        _O,
        _SET,
        "weakref.ref(o)().k",
        "operator.attrgetter('k')(o)",
        "vars(o)['k']",
        "operator.methodcaller('m', 1.0)(o)",
        "o.kept",
        "[p.k for p in (o,)][0]",
        "{'a': o}['a'].k",
        "(lambda q: q.k)(o)",
        "next(filter(None, [o])).k",
        "list(map(O.m, [o], [1.0]))[0]",
        "o.__getattribute__('k')",
        "object.__getattribute__(o, 'k')",
        "getattr(o, 'k', 1.0)",
        "sum(p.k for p in [o])",
        "max([o], key=lambda p: p.k).k",
    ),
    **rows("weak reference kept", _O + "r = weakref.ref(o)", _SET, "r().k"),
    **rows("class of an object", _O, "O.K = 3.0", "type(o).K", "o.__class__.K", "O['x']", "o.K"),
    **rows("class replaced", _O + "class Q(O): K = 3.0", "o.__class__ = Q", "o.K"),
    **rows(
        "dictionary of an object", _O, "o.__dict__.update(k=3.0, held=[3.0])", "o.k", "o.held[0]"
    ),
    **rows("registration", _O, "O.by.register(float)(lambda self, x: 3.0)", "o.by(1.0)"),
    **rows(
        "module by name",
        "import sys, importlib\ncfg = types.ModuleType('cfg_by_name'); sys.modules['cfg_by_name'] = cfg; cfg.K = 2.0",
        "cfg.K = 3.0",
        "importlib.import_module('cfg_by_name').K",
        "sys.modules['cfg_by_name'].K",
        "__import__('cfg_by_name').K",
        "getattr(cfg, 'K')",
        "vars(cfg)['K']",
    ),
    **rows(
        "identity",
        "a = object()\nb = a",
        "b = object()",
        "2.0 if id(a) == id(b) else 3.0",
        "{id(a): 2.0}.get(id(b), 3.0)",
        "2.0 if id(b) in (id(a),) else 3.0",
        "len({id(a), id(b)})",
    ),
    **rows(
        "list of a named tuple",
        "T = collections.namedtuple('T', 'k')\nt = T([2.0])",
        "t.k[0] = 3.0",
        "t.k[0]",
        "t[0][0]",
        "t._asdict()['k'][0]",
    ),
    **rows(
        "attribute of an enumeration's member",
        "class E(enum.Enum):\n    A = 1\nE.A.k = 2.0",
        "E.A.k = 3.0",
        "E.A.k",
        "E['A'].k",
        "E(1).k",
    ),
    **rows(
        "chained maps",
        "low = {'k': 2.0}\nm = collections.ChainMap({}, low)",
        "low['k'] = 3.0",
        "m['k']",
        "m.get('k')",
        "dict(m)['k']",
    ),
    **rows(
        "default of a dictionary",
        "d = collections.defaultdict(lambda: 2.0)",
        "d.default_factory = lambda: 3.0",
        "d['new']",
    ),
    **rows(
        "masked array",
        "w = np.ma.masked_array([2.0, 1.0], mask=[False, True])",
        "w[0] = 3.0",
        "w[0]",
        "w.sum()",
        "w.data[0]",
    ),
    **rows(
        "field of a structured array",
        "w = np.zeros(2, [('k', 'f4')]); w['k'] = 2.0",
        "w['k'] = 3.0",
        "w['k'][0]",
        "w[0]['k']",
        "w['k'].sum()",
    ),
    **rows(
        "view that repeats",
        "b = np.float32([2.0])\nw = np.broadcast_to(b, (3,))",
        "b[0] = 3.0",
        "w[0]",
        "w.sum()",
        "w[1:].mean()",
    ),
    **rows(
        "bytes seen through a window",
        "b = bytearray(b'ab')\nv = memoryview(b)",
        "b[0] = 99",
        "v[0]",
        "bytes(v)[0]",
        "v.tobytes()[0]",
    ),
    **rows(
        "function in a container",
        "fs = {'g': lambda y: y * 2.0}",
        "fs['g'] = lambda y: y * 3.0",
        "fs['g'](1.0)",
        "fs.get('g')(1.0)",
    ),
}
