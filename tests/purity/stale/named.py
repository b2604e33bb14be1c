"""What functions are called, where that is read by way of a closure: as decorators do."""

from __future__ import annotations

from . import Row, rows

_DECORATED = (
    "def deco(fun):\n    def inner(): return float(len({}))\n    return inner\n"
    "def old():\n    'doc'\n"
    "new = deco(old)"
)

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
}
