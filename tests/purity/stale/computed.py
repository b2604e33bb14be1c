"""Attributes and methods by names that are computed: any that the name may spell."""

from __future__ import annotations

from . import Row, rows

KNOWN = """
K = [2.0]
class C:
    scale = 1.0
    def op_a(self, x): return x * K[0]
    def op_b(self, x): return x
    @property
    def gain(self): return K[0]
    def call(self, name, x): return getattr(self, name)(x)
    def visit(self, n, x): return getattr(self, f"visit_{type(n).__name__}", self.op_b)(x)
    def visit_Node(self, x): return x * K[0]
class Node: pass
class Held:
    def __init__(self, mode): self.mode = mode
    def op_a(self, x): return x * K[0]
    def __call__(self, x): return getattr(self, self.mode)(x)
@dataclasses.dataclass(frozen=True)
class Frozen:
    mode: str = "a"
    def op_a(self, x): return x * K[0]
    def __call__(self, x): return getattr(self, "op_" + self.mode)(x)
frozen = Frozen()
def ten(x): return x * K[0]
class Bag: pass
def bag(name):
    made = Bag()
    setattr(made, name, ten)
    return made
def local():
    class Inner:
        def op_a(self, x): return x * K[0]
    return Inner()
Pair = collections.namedtuple("Pair", "first second")
pair = Pair(ten, 1.0)
import inspect
"""

ROWS: dict[str, Row] = rows(
    "a computed name",
    KNOWN,
    "K[0] = 5.0",
    "[getattr(C(), n)(1.0) for n in ('op_a',)][0]",
    "C().call('op_a', 1.0)",
    "[getattr(C(), f'op_{n}')(1.0) for n in ('a',)][0]",
    "[getattr(C(), 'op_' + n)(1.0) for n in ('a',)][0]",
    "[getattr(C(), 'op_%s' % n)(1.0) for n in ('a',)][0]",
    "[getattr(C(), 'op_{}'.format(n))(1.0) for n in ('a',)][0]",
    "getattr(C(), 'op_a' if x.ndim == 0 else 'op_b')(1.0)",
    "getattr(C(), {'k': 'op_a'}['k'])(1.0)",
    "getattr(C(), '_'.join(['op', 'a']))(1.0)",
    "getattr(C(), [n for n in dir(C()) if n.endswith('_a')][0])(1.0)",
    "[getattr(C(), n) for n in ('gain',)][0]",
    "[getattr(C, n)(None, 1.0) for n in ('op_a',)][0]",
    "C().visit(Node(), 1.0)",
    "Held('op_a')(1.0)",
    "frozen(1.0)",
    "[getattr(frozen, f'op_{n}')(1.0) for n in ('a',)][0]",
    "bag('op_a').op_a(1.0)",
    "getattr(bag('op_a'), ''.join(['op_', 'a']))(1.0)",
    "[getattr(local(), f'op_{n}')(1.0) for n in ('a',)][0]",
    "[getattr(pair, n)(1.0) for n in pair._fields[:1]][0]",
    "[operator.methodcaller(n, 1.0)(C()) for n in ('op_a',)][0]",
    "[operator.attrgetter(n)(C()) for n in ('gain',)][0]",
    "[C().__getattribute__(n)(1.0) for n in ('op_a',)][0]",
    "object.__getattribute__(C(), 'op_a')(1.0)",
    "[m(1.0) for n, m in inspect.getmembers(C(), inspect.ismethod) if n == 'op_a'][0]",
)
