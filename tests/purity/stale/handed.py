"""What others call of what they are handed: factories, keys, conditions, comparisons, defaults."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows

#: A class of whose field nothing but its factory is known.
_MADE = "@dataclasses.dataclass\nclass C:\n    v: object = dataclasses.field(default_factory={})"
_BASE = "BASE = {'v': 2.0}\n"
_BASED = "BASE['v'] = 5.0"
_ORDERED = "class N:\n    sign = 1\n    def __init__(self, v): self.v = v\n    def __lt__(self, o): return self.v * self.sign < o.v * self.sign\n    def __eq__(self, o): return self.v == o.v"
_TURNED = "N.sign = -1"
_LIMIT = "class P:\n    lim = 1.5\n    def __call__(self, v): return v < self.lim"
_WIDE = "P.lim = 5.0"
_NAMED = "P = collections.namedtuple('P', 'a b', defaults=(D,))"

ROWS: dict[str, Row] = {
    **rows(
        "factory of a field: a partial",
        _BASE
        + "def mk(d, s): return d['v'] * s\nhalf = functools.partial(mk, BASE)\n"
        + _MADE.format("functools.partial(half, 1.0)"),
        _BASED,
        "C().v",
    ),
    **rows(
        "factory of a field: a class",
        _BASE + "class I:\n    def __init__(self): self.v = BASE['v']\n" + _MADE.format("I"),
        _BASED,
        "C().v.v",
    ),
    **rows(
        "factory of a field: an object",
        "class M:\n    def __init__(self): self.v = 2.0\n    def __call__(self): return self.v\nmk = M()\n"
        + _MADE.format("mk"),
        "mk.v = 5.0",
        "C().v",
    ),
    **rows(
        "factory of a field: a method",
        "class M:\n    def __init__(self): self.v = 2.0\n    def get(self): return self.v\nmk = M()\n"
        + _MADE.format("mk.get"),
        "mk.v = 5.0",
        "C().v",
    ),
    **rows(
        "factory of a field: a list's method",
        "L = [2.0]\n" + _MADE.format("L.copy"),
        "L[0] = 5.0",
        "C().v[0]",
    ),
    **rows(
        "default of a named tuple: a list",
        "D = [2.0]\n" + _NAMED,
        "D[0] = 5.0",
        "P(1.0).b[0]",
        "P(1.0)[1][0]",
        "(lambda a, b: b[0])(*P(1.0))",
    ),
    **rows(
        "default of a named tuple: an array",
        "D = np.ones(1)\n" + _NAMED,
        "D[0] = 5.0",
        "P(1.0).b[0]",
    ),
    **rows(
        "condition: an object",
        _LIMIT + "\np = P()",
        _WIDE,
        "sum(itertools.takewhile(P(), (1.0, 2.0)))",
        "sum(itertools.dropwhile(P(), (1.0, 2.0)))",
        "sum(itertools.filterfalse(P(), (1.0, 2.0)))",
        "sum(filter(P(), (1.0, 2.0)))",
        "sorted((1.0, 2.0), key=P())[0]",
    ),
    **rows(
        "condition: a class",
        "T = {'lim': 1.5}\nclass P:\n    def __init__(self, v): self.v = v\n    def __bool__(self): return self.v < T['lim']",
        "T['lim'] = 5.0",
        "sum(itertools.filterfalse(P, (1.0, 2.0)))",
        "sum(filter(P, (1.0, 2.0)))",
    ),
    **rows(
        "until a sentinel: an object",
        "class R:\n    n = 2\n    def __init__(self): self.i = 0\n    def __call__(self):\n        self.i += 1\n        return self.i if self.i <= self.n else 0",
        "R.n = 4",
        "float(sum(iter(R(), 0)))",
    ),
    **rows(
        "key: a class",
        "B = {'v': 1.0}\nclass K:\n    def __init__(self, v): self.v = v * B['v']\n    def __lt__(self, o): return self.v < o.v",
        "B['v'] = -1.0",
        "sorted((1.0, 2.0), key=K)[0]",
    ),
    **rows(
        "replacement: an object",
        "import re\nclass R:\n    v = '2'\n    def __call__(self, found): return self.v",
        "R.v = '5'",
        "float(re.sub('a', R(), 'a'))",
    ),
    **rows(
        "replacement: a frozen object",
        "import re\nT = {'v': '2'}\n@dataclasses.dataclass(frozen=True)\nclass R:\n    def __call__(self, found): return T['v']\nr = R()",
        "T['v'] = '5'",
        "float(re.sub('a', r, 'a'))",
    ),
    **rows(
        "text of an object: a function",
        "class O: v = 2.0",
        "O.v = 5.0",
        "json.loads(json.dumps(O(), default=lambda o: o.v))",
    ),
    **rows(
        "what fills up",
        "D = [2.0]",
        "D[0] = 5.0",
        "list(itertools.zip_longest((), (1,), fillvalue=D))[0][0][0]",
    ),
    **rows(
        "comparison that follows from others",
        "@functools.total_ordering\n" + _ORDERED,
        _TURNED,
        "2.0 if N(1.0) >= N(2.0) else 3.0",
        "2.0 if N(1.0) > N(2.0) else 3.0",
    ),
    **rows(
        "unlike",
        "class N:\n    lim = 1.0\n    def __eq__(self, o): return self.lim == o\n    __hash__ = None",
        "N.lim = 2.0",
        "2.0 if N() != 1.0 else 3.0",
        "2.0 if 1.0 in [N()] else 3.0",
        "float([N(), 1.0].index(1.0))",
    ),
    **rows(
        "sorted in place",
        _ORDERED + "\ndef first(l, **how):\n    l.sort(**how)\n    return l[0].v",
        _TURNED,
        "first([N(1.0), N(2.0)])",
    ),
    **rows(
        "sorted in place by a key",
        "class N:\n    sign = 1\ndef first():\n    l = [1.0, 2.0]\n    l.sort(key=lambda v: v * N().sign)\n    return l[0]",
        _TURNED,
        "first()",
    ),
}
