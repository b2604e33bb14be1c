"""What functions are called, what classes hold, bars of packages: read by closures and objects."""

from __future__ import annotations

from . import Row, rows

_DECORATED = (
    "def deco(fun):\n    def inner(): return float(len({}))\n    return inner\n"
    "def old():\n    'doc'\n"
    "new = deco(old)"
)

#: A bar as tqdm's are, in a package that is installed.
_BARS = """import sys
BARS = '''
class Bar:
    def __init__(self, iterable=None, total=None):
        self.iterable, self.total, self.n = iterable, total, 0
    def __iter__(self): return iter(self.iterable)
    def __len__(self): return len(self.iterable)
    def __bool__(self): return bool(self.total)
    def update(self, n=1): self.n += n
    def twice(self): return 2.0
'''
bars = sys.modules['bars'] = types.ModuleType('bars')
bars.__file__ = '/usr/lib/python3/site-packages/bars/__init__.py'
exec(compile(BARS, bars.__file__, 'exec', dont_inherit=True), bars.__dict__)
class Own(bars.Bar):
    k = 2.0
    def all(self): return self.total
bar, own, full = bars.Bar(total=2), Own(total=2), bars.Bar([2.0])
"""

ROWS: dict[str, Row] = {
    **{
        f"{name} of a wrapped function": Row(
            _DECORATED.format(f"fun.{name}"), "new()", f"old.{name} = 'another one, longer'"
        )
        for name in ("__name__", "__qualname__", "__module__", "__doc__")
    },
    **rows(
        "defaults",
        "def g(k=2.0): return k",
        "g.__defaults__ = (3.0,)",
        "g.__defaults__[0]",
        "float(g.__defaults__[0])",
    ),
    **rows(
        "default factory",
        "K = 2.0\n@dataclasses.dataclass\nclass D:\n"
        "    k: float = dataclasses.field(default_factory=lambda: K)",
        "global K; K = 3.0",
        "D().k",
    ),
    **rows(
        "finaliser",
        "box = [2.0]\nclass D:\n    def __del__(self): box[0] += 1",
        "box[0] = 7.0",
        "(D(), box[0])[1]",
    ),
    **rows(
        "what can be called",
        "class A: pass\na = A()",
        "A.__call__ = lambda self: 1",
        "3.0 if callable(a) else 2.0",
        "3.0 if callable(A()) else 2.0",
    ),
    **rows(
        "array of a class",
        "class A:\n    w = jnp.float32(2.0)\n    def m(self): return self.w\n"
        "class B(A): pass\na = B()",
        "A.w = jnp.float32(3.0)",
        "A.w",
        "a.m()",
        "super(B, a).w",
    ),
    **rows(
        "array of a class, shadowed",
        "class A:\n    w = jnp.float32(2.0)\na = A()",
        "a.w = jnp.float32(3.0)",
        "a.w",
    ),
    **rows(
        "enumeration of a class",
        "class E(enum.Enum):\n    A = 2.0\n    B = 3.0\nclass C: e = E.A",
        "C.e = E.B",
        "C.e.value",
        "C().e.value",
    ),
    **rows(
        "total of a bar",
        _BARS,
        "bar.total = own.total = 0",
        "float(bar.total)",
        "2.0 if bar else 3.0",
        "own.all()",
        "2.0 if own else 3.0",
    ),
    **rows(
        "what a bar shows",
        _BARS,
        "full.iterable.append(3.0)",
        "sum(full)",
        "float(len(full))",
    ),
    **rows("class of a bar", _BARS, "Own.k = 3.0", "own.k", "Own(total=1).k"),
    **rows(
        "method of a bar",
        _BARS,
        "bars.Bar.twice = lambda self: 7.0",
        "full.twice()",
        "own.twice()",
        "bars.Bar.twice(full)",
    ),
}
