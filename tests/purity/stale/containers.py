"""Containers: of a module, of a closure, read-only ones, and subclasses of the built-in ones."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows

_FRAME = """
def make():
    {made}
    def f(x):
        return x * ({reads})
    return f
f = make()
"""
_CELL = "f.__closure__[0].cell_contents"


def frame(kind: str, made: str, change: str, *reads: str) -> dict[str, Row]:
    """Return rows that read a local of an enclosing function, which is reached by its cell."""
    return {
        f"{kind}: {read}": Row(
            _FRAME.format(made=made, reads=read), "", change.replace("CELL", _CELL)
        )
        for read in reads
    }


_ATTR = """
class Attr(dict):
    def __getattr__(self, name): return self[name]
    def __setattr__(self, name, value): self[name] = value
"""

ROWS: dict[str, Row] = {
    **rows(
        "dict",
        "d = {'k': 2.0}",
        "d['k'] = 3.0",
        "d['k']",
        "d.get('k')",
        "sum(d.values())",
        "[v for _, v in d.items()][0]",
        "dict(d)['k']",
        "{**d}['k']",
        "d.copy()['k']",
        "(d | {})['k']",
        "operator.itemgetter('k')(d)",
        "json.loads(json.dumps(d))['k']",
        "copy.deepcopy(d)['k']",
    ),
    **rows(
        "keys",
        "d = {'k': 2.0}",
        "d['z'] = 3.0",
        "len(d)",
        "2 if 'z' in d else 1",
        "len([*d])",
        "len(list(d))",
        "len(sorted(d))",
        "sum(1 for _ in d)",
        "len(str(d))",
        "len(set(d))",
    ),
    **rows(
        "emptied",
        "d = {'k': 2.0}",
        "d.clear()",
        "2 if d else 1",
        "1 if not d else 2",
        "1 if d == {} else 2",
        "bool(d) + 1",
    ),
    **rows(
        "list",
        "L = [2.0, 1.0]",
        "L[0] = 3.0",
        "L[0]",
        "sum(L)",
        "max(L)",
        "sorted(L)[-1]",
        "L[:][0]",
        "tuple(L)[0]",
        "[*L][0]",
        "next(iter(L))",
        "L.index(1.0) + L[0]",
        "(lambda a, b: a)(*L)",
        "[a for a in L][0]",
        "jnp.array(L)[0]",
        "list(zip(L, L))[0][0]",
        "list(map(float, L))[0]",
        "functools.reduce(operator.add, L)",
        "(L + [])[0]",
        "list(reversed(L))[1]",
    ),
    **rows("set", "s = {2.0}", "s.clear(); s.add(3.0)", "sum(s)", "1 if 2.0 in s else 2", "max(s)"),
    **rows(
        "tree.map",
        "d = {'k': 2.0}",
        "d['k'] = 3.0",
        "fnarray.tree.map(lambda v: v * 2, d)['k']",
        "fnarray.tree.leaves(d)[0]",
    ),
    **rows(
        "attribute-style dict",
        _ATTR + "d = Attr(k=2.0)",
        "d.k = 3.0",
        "d.k",
        "d['k']",
        "getattr(d, 'k')",
        "d.get('k')",
        "sum(d.values())",
        "{**d}['k']",
    ),
    **rows(
        "subclass of dict",
        "class D(dict):\n    def first(self): return self['k']\nd = D(k=2.0)",
        "d['k'] = 3.0",
        "d['k']",
        "d.first()",
    ),
    **rows(
        "subclass of list",
        "class L(list):\n    def first(self): return self[0]\nv = L([2.0])",
        "v[0] = 3.0",
        "v[0]",
        "v.first()",
        "sum(v)",
        "len(v) * v[0]",
    ),
    **rows(
        "other containers",
        "d = collections.deque([2.0])",
        "d[0] = 3.0",
        "d[0]",
        "sum(d)",
        "list(d)[0]",
    ),
    **rows("OrderedDict", "d = collections.OrderedDict(k=2.0)", "d['k'] = 3.0", "d['k']"),
    **rows("defaultdict", "d = collections.defaultdict(float, k=2.0)", "d['k'] = 3.0", "d['k']"),
    **rows("Counter", "d = collections.Counter('aa')", "d['a'] = 3", "d['a']", "d.total()"),
    **rows("ChainMap", "e = {'k': 2.0}; d = collections.ChainMap(e)", "e['k'] = 3.0", "d['k']"),
    **rows("UserDict", "d = collections.UserDict(k=2.0)", "d['k'] = 3.0", "d['k']", "d.data['k']"),
    **rows(
        "WeakValueDictionary",
        "class O:\n    s = 2.0\no = O(); d = weakref.WeakValueDictionary(k=o)",
        "o.s = 3.0",
        "d['k'].s",
    ),
    **rows("ContextVar", "c = contextvars.ContextVar('c', default=2.0)", "c.set(3.0)", "c.get()"),
    **rows(
        "threading.local", "t = threading.local(); t.k = 2.0", "t.k = 3.0", "t.k", "vars(t)['k']"
    ),
    **rows(
        "SimpleNamespace",
        "n = types.SimpleNamespace(k=2.0)",
        "n.k = 3.0",
        "n.k",
        "vars(n)['k']",
        "n.__dict__['k']",
        "getattr(n, 'k')",
    ),
    **rows(
        "read-only mapping",
        "inner = {'k': 2.0}; M = types.MappingProxyType(inner)",
        "inner['k'] = 3.0",
        "M['k']",
        "M.get('k')",
        "sum(M.values())",
        "[v for _, v in M.items()][0]",
        "dict(M)['k']",
        "{**M}['k']",
        "M.copy()['k']",
        "(M | {})['k']",
        "operator.itemgetter('k')(M)",
        "2 if M == {'k': 2.0} else 1",
        "(lambda k: k)(**M)",
        "[M[k] for k in M][0]",
    ),
    **rows(
        "keys of a read-only mapping",
        "inner = {'k': 2.0}; M = types.MappingProxyType(inner)",
        "inner['z'] = 3.0",
        "len(M)",
        "2 if 'z' in M else 1",
        "M.get('z', 2.0)",
        "len(list(M))",
        "len([*M])",
        "sum(1 for _ in M)",
        "len(M.keys())",
        "bool(M.get('z')) + 1",
        "len(str(M))",
    ),
    **rows(
        "list in a read-only mapping",
        "inner = {'k': [2.0]}; M = types.MappingProxyType(inner)",
        "inner['k'][0] = 3.0",
        "M['k'][0]",
        "M.get('k')[0]",
        "[v[0] for v in M.values()][0]",
        "sum(*M.values())",
    ),
    **rows(
        "list in a tuple",
        "T = (1, [2.0])",
        "T[1][0] = 3.0",
        "T[1][0]",
        "sum(T[1])",
        "[b for _, b in [T]][0][0]",
    ),
    **rows(
        "dict in a named tuple",
        "P = collections.namedtuple('P', 'd')({'k': 2.0})",
        "P.d['k'] = 3.0",
        "P.d['k']",
        "P[0]['k']",
        "P._asdict()['d']['k']",
    ),
    **rows(
        "list in a frozen object",
        "@dataclasses.dataclass(frozen=True)\nclass F:\n    v: object\nF = F([2.0])",
        "F.v[0] = 3.0",
        "F.v[0]",
        "sum(F.v)",
        "dataclasses.asdict(F)['v'][0]",
        "dataclasses.astuple(F)[0][0]",
        "dataclasses.replace(F).v[0]",
        "copy.copy(F).v[0]",
        "copy.deepcopy(F).v[0]",
        "vars(F)['v'][0]",
    ),
    **rows(
        "list in a frozen set's object",
        "class K:\n    def __init__(self): self.v = [2.0]\nk = K()\nS = frozenset([k])",
        "k.v[0] = 3.0",
        "[e.v[0] for e in S][0]",
        "next(iter(S)).v[0]",
    ),
    **frame(
        "dict of a frame",
        "d = {'k': 2.0}",
        "CELL['k'] = 3.0",
        "d['k']",
        "d.get('k')",
        "sum(d.values())",
        "{**d}['k']",
        "dict(d)['k']",
        "(lambda k: k)(**d)",
        "[v for _, v in d.items()][0]",
    ),
    **frame(
        "keys of a frame's dict",
        "d = {'k': 2.0}",
        "CELL['z'] = 3.0",
        "len(d)",
        "2 if 'z' in d else 1",
        "d.get('z', 2.0)",
        "sum(1 for _ in d)",
    ),
    **frame(
        "list of a frame", "d = [2.0]", "CELL[0] = 3.0", "d[0]", "sum(d)", "[*d][0]", "tuple(d)[0]"
    ),
    **frame("longer list of a frame", "d = [2.0]", "CELL.append(3.0)", "sum(d)", "len(d)"),
    **frame("set of a frame", "d = {2.0}", "CELL.add(3.0)", "sum(d)", "len(d)"),
    **frame(
        "list in a frame's dict",
        "d = {'k': [2.0]}",
        "CELL['k'][0] = 3.0",
        "d['k'][0]",
        "sum(d['k'])",
    ),
    **frame(
        "array in a frame's dict",
        "d = {'k': np.full(2, 2.0, np.float32)}",
        "CELL['k'][0] = 3.0",
        "d['k'][0]",
    ),
    **frame(
        "array in a frame's list",
        "d = [np.full(2, 2.0, np.float32)]",
        "CELL[0][0] = 3.0",
        "d[0][0]",
        "d[0].sum()",
    ),
    **frame(
        "object in a frame's list",
        "d = [types.SimpleNamespace(k=2.0)]",
        "CELL[0].k = 3.0",
        "d[0].k",
    ),
    "keywords of a maker": Row(
        "def make(**kw):\n    def f(x):\n        return x * kw['s']\n    return f\nf = make(s=2.0)",
        "",
        f"{_CELL}['s'] = 3.0",
    ),
    "list in a maker's keywords": Row(
        "def make(**kw):\n    def f(x):\n        return x * kw['s'][0]\n    return f\nheld = [2.0]\nf = make(s=held)",
        "",
        "held[0] = 3.0",
    ),
    "list in a maker's arguments": Row(
        "def make(*a):\n    def f(x):\n        return x * a[0][0]\n    return f\nheld = [2.0]\nf = make(held)",
        "",
        "held[0] = 3.0",
    ),
    "function in a maker's keywords": Row(
        "def make(**kw):\n    def f(x):\n        return kw['g'](x)\n    return f\nclass H:\n    k = 2.0\n"
        "def g(x): return x * H.k\nf = make(g=g)",
        "",
        "H.k = 3.0",
    ),
    "keywords handed on": Row(
        "def op(x, scale=1.0): return x * scale\ndef make(**kw):\n    def f(x):\n        return op(x, **kw)\n"
        "    return f\nf = make(scale=2.0)",
        "",
        "[c.cell_contents for c in f.__closure__ if type(c.cell_contents) is dict][0]['scale'] = 3.0",
    ),
}
