"""What makes classes, and what asks them: metaclasses, bodies, hooks, registries; windows on data."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows


def _each(name: str, setup: str, read: str, *changes: str) -> dict[str, Row]:
    """Return rows that read one thing, for several ways to change it."""
    return {f"{name} <- {change}": Row(setup, read, change) for change in changes}


def _whole(name: str, setup: str, *changes: str) -> dict[str, Row]:
    """Return rows whose setup makes ``f``."""
    return _each(name, setup, "", *changes)


def _meta(body: str) -> str:
    return f"class M(type):\n    {body}\nclass A(metaclass=M): pass"


_LOCAL = "L = [2.0]\n{made}\ndef f(x):\n    {body}\n    return x * {read}"


def _local(name: str, made: str, body: str, read: str = "Q.k") -> dict[str, Row]:
    """Return a row in which making a class inside of the traced function reads a list."""
    return _whole(name, _LOCAL.format(made=made, body=body, read=read), "L[0] = 3.0")


_A = "class A:\n    k = 2.0\n    def m(self): return 2.0"
_ASKED = (
    "class D:\n    k = 1.0\n    def __init__(self, f): self.f = f\n"
    "    def __get__(self, o, t): return self.k * self.f(t)\n"
    "class A:\n    rate = 2.0\n    d = D(lambda t: t.rate)\n"
    "class B(A):\n    def up(self): return super().d\na, b = A(), B()"
)
_FINAL = (
    "class A:\n    k = 2.0\n    def m(self): return self.k\nclass B(A):\n"
    "    def up(self): return super().k\n    def m(self): return super().m()\na, b = A(), B()"
)


def _reads(reads: tuple[str, ...], *changes: str) -> dict[str, Row]:
    """Return rows that read an attribute, bound once in the body of a class, in several ways."""
    return {
        name: row
        for read in reads
        for name, row in _each(f"attribute of a class: {read}", _FINAL, read, *changes).items()
    }


_B = "class B: pass\nb = B()\nclass A(abc.ABC): pass"

ROWS: dict[str, Row] = {
    **_reads(
        ("a.k", "b.k", "a.m()", "b.m()", "b.up()", "A().k", "B().up()"),
        "A.k = 3.0",
        "A.k = property(lambda self: 3.0)",
    ),
    **_reads(
        ("a.k", "b.k", "a.m()", "b.m()"),
        "a.k = b.k = 3.0",
        "vars(a)['k'] = vars(b)['k'] = 3.0",
        "a.__class__ = b.__class__ = type('C', (B,), {'k': 3.0})",
    ),
    **_reads(
        ("b.k", "b.m()"),
        "B.k = 3.0",
        "B.__getattribute__ = lambda self, name: 3.0 if name == 'k' else lambda: 3.0",
    ),
    **_reads(
        ("b.k", "b.up()", "B().up()"),
        "B.__bases__ = (type('C', (), {'k': 3.0, 'm': lambda self: 3.0}),)",
    ),
    **{
        name: row
        for read in ("a.d", "A.d", "b.d", "B.d", "b.up()", "A().d", "getattr(a, 'd')")
        for name, row in _each(
            f"descriptor: {read}",
            _ASKED,
            read,
            "D.__get__ = lambda self, o, t: 3.0",
            "D.__get__.__code__ = (lambda self, o, t: 3.0).__code__",
            "A.d = 3.0",
            "D.k = 3.0",
            "vars(A)['d'].k = 3.0",
            "A.d = type('E', (D,), {'k': 3.0})(lambda t: 1.0)",
            "vars(A)['d'].__class__ = type('E', (D,), {'k': 3.0})",
            "vars(A)['d'].f = lambda t: 1.5",
            "A.rate = 1.5",
        ).items()
    },
    **_each(
        "descriptor before the object's own",
        _ASKED + "\nvars(a)['d'] = 3.0\nD.__set__ = lambda self, o, v: None",
        "a.d",
        "del D.__set__",
        "D.k = 3.0",
    ),
    **_each(
        "descriptor behind the object's own",
        _ASKED,
        "a.d",
        "vars(a)['d'] = 3.0",
        "vars(a)['d'] = 3.0; D.__delete__ = lambda self, o: None; D.k = 3.0",
    ),
    **_each("metaclass's attribute", _meta("K = 2.0"), "A.K", "M.K = 3.0", "A.K = 3.0"),
    **_each(
        "metaclass's call",
        _meta("def __call__(c): return 2.0"),
        "A()",
        "M.__call__ = lambda c: 3.0",
    ),
    **_each(
        "metaclass's item",
        _meta("def __getitem__(c, k): return 2.0"),
        "A[0]",
        "M.__getitem__ = lambda c, k: 3.0",
    ),
    **_each(
        "metaclass's length", _meta("def __len__(c): return 2"), "len(A)", "M.__len__ = lambda c: 3"
    ),
    **_each(
        "metaclass's items",
        _meta("def __iter__(c): return iter([2.0])"),
        "sum(A)",
        "M.__iter__ = lambda c: iter([3.0])",
    ),
    **_each(
        "metaclass's property",
        _meta("p = property(lambda c: 2.0)"),
        "A.p",
        "M.p = property(lambda c: 3.0)",
    ),
    **_each(
        "metaclass's method",
        _meta("def m(c): return 2.0"),
        "A.m()",
        "M.m = lambda c: 3.0",
        "A.m = lambda: 3.0",
    ),
    **_each(
        "metaclass's test",
        _meta("def __instancecheck__(c, o): return False"),
        "isinstance(1, A) + 1",
        "M.__instancecheck__ = lambda c, o: True",
    ),
    **_each("hasattr of a class", _A, "hasattr(A, 'y') + 1", "A.y = 3.0"),
    **_each("hasattr of a module", "m = types.ModuleType('m')", "hasattr(m, 'y') + 1", "m.y = 3"),
    **_each("hasattr of a function", "def g(): pass", "hasattr(g, 'y') + 1", "g.y = 3.0"),
    **_each("names of a class", _A, "len([n for n in dir(A) if n == 'y']) + 1", "A.y = 3.0"),
    **_each("registry of a class", _B, "isinstance(b, A) + 1", "A.register(B)"),
    **_each("registry, by class", _B, "issubclass(B, A) + 1", "A.register(B)"),
    **_each("registry, of several", _B, "isinstance(b, (int, A)) + 1", "A.register(B)"),
    **_each(
        "class of an instance",
        "class A: pass\nclass C(A): pass\nb = A()",
        "isinstance(b, C) + 1",
        "b.__class__ = C",
    ),
    **_each(
        "method that was not there",
        "class A: pass\nclass B(A):\n    def m(self): return getattr(super(), 'n', lambda: 2.0)()\nb = B()",
        "b.m()",
        "A.n = lambda self: 3.0",
    ),
    **_each(
        "constructor that was not there",
        "class A:\n    def m(self): return 2.0\nclass B(A):\n    def __init__(self): super().__init__()",
        "B().m()",
        "A.__init__ = lambda self: setattr(self, 'm', lambda: 3.0)",
    ),
    **_each(
        "arguments of a partial method",
        "class A:\n    m = functools.partialmethod(lambda s, n: n, 2.0)\na = A()",
        "a.m()",
        "A.__dict__['m'].args = (3.0,)",
    ),
    **_each(
        "builtin", "import builtins", "divmod(2.0, 1.0)[0]", "builtins.divmod = lambda a, b: (3.0,)"
    ),
    **_each(
        "cell of a function",
        "def make(k): return lambda: k\ng = make(2.0)",
        "g.__closure__[0].cell_contents",
        "g.__closure__[0].cell_contents = 3.0",
    ),
    **_local("body of an inner class", "", "class Q: k = L[0]"),
    **_local(
        "decorator of an inner class",
        "def dec(c):\n    c.k = L[0]\n    return c",
        "Q = dec(type('Q', (), {}))",
    ),
    **_local("class made by a call", "", "Q = type('Q', (), {'k': L[0]})"),
    **_local(
        "hook of a base", "class O:\n    def __init_subclass__(c): c.k = L[0]", "class Q(O): pass"
    ),
    **_local(
        "metaclass of an inner class",
        "class M(type):\n    def __new__(m, *a):\n        c = super().__new__(m, *a)\n        c.k = L[0]\n        return c",
        "class Q(metaclass=M): pass",
    ),
    **_local(
        "metaclass's own constructor",
        "class M(type):\n    def __init__(c, *a): c.k = L[0]",
        "class Q(metaclass=M): pass",
    ),
    **_local(
        "namespace of an inner class",
        "class M(type):\n    @classmethod\n    def __prepare__(m, *a): return {'k': L[0]}",
        "class Q(metaclass=M): pass",
    ),
    **_local(
        "factory of a field",
        "@dataclasses.dataclass\nclass Q:\n    k: float = dataclasses.field(default_factory=lambda: L[0])",
        "q = Q()",
        "q.k",
    ),
    **_local("list in a list", "", "q = fnarray.tree.leaves([L])", "q[0]"),
    **_local("default of max", "", "q = max([], default=L[0])", "q"),
    **_local("default of next", "", "q = next(iter([]), L[0])", "q"),
    **_local("default of getattr", "", "q = getattr(x, 'absent', L[0])", "q"),
    **_whole(
        "attribute of a base",
        _A + "\ndef f(x):\n    class Q(A): pass\n    return x * Q.k",
        "A.k = 3.0",
    ),
    **_whole(
        "method of a base",
        _A + "\ndef f(x):\n    class Q(A): pass\n    return x * Q().m()",
        "A.m = lambda self: 3.0",
    ),
    **_whole(
        "method of a base by super",
        _A
        + "\ndef f(x):\n    class Q(A):\n        def m(self): return super().m()\n    return x * Q().m()",
        "A.m = lambda self: 3.0",
    ),
    **_whole(
        "derivative rule",
        "@fnarray.custom_jvp\ndef g(x): return x * 2.0\n@g.defjvp\ndef rule(p, t): return g(*p), t[0] * 2.0\n"
        "def f(x): return fnarray.grad(g)(x) * x",
        "g.defjvp(lambda p, t: (g(*p), t[0] * 3.0))",
    ),
    **_whole(
        "reverse rule",
        "@fnarray.custom_vjp\ndef g(x): return x * 2.0\ng.defvjp(lambda x: (x * 2.0, None), lambda r, c: (c * 2.0,))\n"
        "def f(x): return fnarray.grad(g)(x) * x",
        "g.defvjp(lambda x: (x * 2.0, None), lambda r, c: (c * 3.0,))",
    ),
    **_whole(
        "array in a batch rule",
        "w = np.full(1, 2.0, np.float32)\n@fnarray.custom_batching.custom_vmap\ndef g(x): return x * 2.0\n"
        "@g.def_vmap\ndef rule(n, b, x): return x * w[0], b[0]\ndef f(x): return fnarray.vmap(g)(x[None])[0]",
        "w[0] = 3.0",
        "g.def_vmap(lambda n, b, x: (x * 3.0, b[0]))",
    ),
    **_whole(
        "how a node is taken apart",
        "L = [2.0]\nclass N:\n    def __init__(self, k): self.k = k\n"
        "fnarray.tree_util.register_pytree_node(N, lambda n: ((n.k * L[0],), None), lambda a, c: N(*c))\n"
        "def f(x): return fnarray.tree.leaves(N(x))[0]",
        "L[0] = 3.0",
    ),
    **rows(
        "values of a dict", "d = {'k': 2.0}\nv = d.values()", "d['k'] = 3.0", "sum(v)", "[*v][0]"
    ),
    **rows("keys of a dict", "d = {'k': 2.0}\nv = d.keys()", "d['z'] = 3.0", "len(v)"),
    **rows("proxy", "class O: k = 2.0\no = O()\nv = weakref.proxy(o)", "O.k = 3.0", "v.k"),
    **rows(
        "read-only array of objects",
        "w = np.array([[2.0], None], object)\nw.flags.writeable = False",
        "w[0][0] = 3.0",
        "w[0][0]",
        "w.tolist()[0][0]",
    ),
    **rows(
        "array shared by processes",
        "v = multiprocessing.Array('f', [2.0])",
        "v[0] = 3.0",
        "v[0]",
        "v[:][0]",
    ),
    **rows(
        "function of NumPy's making",
        "L = [2.0]\nu = np.frompyfunc(lambda a: a * L[0], 1, 1)",
        "L[0] = 3.0",
        "u(1.0)",
    ),
    **rows(
        "text of an object",
        "class A:\n    n = 2\n    def __str__(self): return 'a' * self.n\na = A()",
        "a.n = 3",
        "len('%s %s' % (a, 1))",
        "len(','.join(map(str, [a])))",
    ),
    **rows(
        "level of a logger",
        "import logging\nlog = logging.getLogger('fnarray.stale')\nlog.setLevel(20)",
        "log.setLevel(30)",
        "log.level",
        "log.isEnabledFor(20) + 1",
    ),
    **rows(
        "variables by the stack", "import sys\nk = 2.0", "k = 3.0", "sys._getframe().f_globals['k']"
    ),
}
