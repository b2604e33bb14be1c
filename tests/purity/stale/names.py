"""Names that are bound anew, and objects of installed classes."""

# ruff: noqa: E501 - a row is a program on a line
from __future__ import annotations

from . import Row, rows


def _name(name: str, setup: str, reads: str, *changes: str) -> dict[str, Row]:
    return {f"{name}: {change}": Row(setup, reads, change) for change in changes}


_MODULE = "import sys\ncfg = types.ModuleType('cfg_of_row'); sys.modules['cfg_of_row'] = cfg; cfg.K = 2.0; cfg.k = 2.0\ncfg.g = lambda: 2.0\n"

ROWS: dict[str, Row] = {
    **{
        name: row
        for change in (
            "cfg.K = 3.0; cfg.g = lambda: 3.0",
            "sys.modules['cfg_of_row'] = types.SimpleNamespace(K=3.0, g=lambda: 3.0)",
            "new = sys.modules['cfg_of_row'] = types.ModuleType('new'); new.K = 3.0; new.g = lambda: 3.0",
            "cfg = types.ModuleType('n'); cfg.K = 3.0; cfg.g = lambda: 3.0; sys.modules.update(cfg_of_row=cfg)",
        )
        for name, row in rows(
            f"module by its name <- {change[:40]}",
            _MODULE + "name = NAME = 'cfg_of_row'",
            change,
            "sys.modules['cfg_of_row'].K",
            "sys.modules['cfg_of_row'].g()",
            "sys.modules[NAME].K",
            "sys.modules[name].g()",
        ).items()
    },
    **_name("number", "k = 2.0", "k", "k = 3.0", "globals()['k'] = 3.0", "globals().update(k=3.0)"),
    **_name("constant", "K = 2.0", "K", "K = 3.0"),
    **_name("string", "k = 'aa'", "len(k)", "k = 'aaa'"),
    **_name("tuple", "k = (2.0, 1)", "k[0]", "k = (3.0, 1)"),
    **_name("flag", "k = True", "2 if k else 1", "k = False"),
    **_name("array", "k = jnp.float32(2.0)", "k", "k = jnp.float32(3.0)"),
    **_name("numpy array", "k = np.float32([2.0])", "k[0]", "k = np.float32([3.0])"),
    **_name("numpy scalar", "k = np.float32(2.0)", "k", "k = np.float32(3.0)"),
    **_name("dtype", "k = np.dtype('f4')", "k.itemsize", "k = np.dtype('f2')"),
    **_name("alias", "a = 2.0\nk = a", "k", "k = 3.0"),
    **_name(
        "in a branch", "k = 2.0\ndef f(x):\n    return x * k if x.ndim == 0 else x", "", "k = 3.0"
    ),
    **_name("in an f-string", "k = 2", "len(f'{k}') * k", "k = 3"),
    **_name(
        "in a loop",
        "k = 2\ndef f(x):\n    return lax.fori_loop(0, 2, lambda i, c: c * k, x)",
        "",
        "k = 3",
    ),
    **_name(
        "in grad",
        "k = 2.0\ndef f(x):\n    return fnarray.grad(lambda y: y * y * k)(x)",
        "",
        "k = 3.0",
    ),
    **_name(
        "in vmap",
        "k = 2.0\ndef f(x):\n    return fnarray.vmap(lambda y: y * k)(x[None])",
        "",
        "k = 3.0",
    ),
    **_name(
        "in an inner jit",
        "k = 2.0\n@fnarray.jit\ndef g(x): return x * k\ndef f(x): return g(x) + 1",
        "",
        "k = 3.0",
    ),
    **_name(
        "in a helper",
        "k = 2.0\ndef g(): return k\ndef h(): return g()",
        "h()",
        "k = 3.0",
        "g = lambda: 3.0",
        "h = lambda: 3.0",
    ),
    **_name("in a lambda", "k = 2.0\ng = lambda: k", "g()", "k = 3.0", "g = lambda: 3.0"),
    **_name("in a comprehension", "k = 2.0", "[k for _ in range(1)][0]", "k = 3.0"),
    **_name(
        "in a default",
        "k = 2.0\ndef f(x):\n    g = lambda y=k: y\n    return x * g()",
        "",
        "k = 3.0",
    ),
    **_name(
        "in a class",
        "k = 2.0\ndef f(x):\n    class L:\n        v = k\n    return x * L.v",
        "",
        "k = 3.0",
    ),
    **_name("in a generator", "k = 2.0\ndef g():\n    yield k", "next(g())", "k = 3.0"),
    **_name(
        "in a method",
        "k = 2.0\nclass O:\n    def m(self): return k\no = O()",
        "o.m()",
        "k = 3.0",
        "o = type('O', (), {'m': lambda s: 3.0})()",
    ),
    **_name(
        "in a property",
        "k = 2.0\nclass O:\n    @property\n    def p(self): return k\no = O()",
        "o.p",
        "k = 3.0",
    ),
    **_name(
        "in a decorator",
        "k = 2.0\ndef d(g): return lambda: g() * k\n@d\ndef g(): return 1.0",
        "g()",
        "k = 3.0",
    ),
    **_name(
        "in sorted's key",
        "k = 2.0",
        "sorted([1.0, 2.0], key=lambda v: v * (k - 2.5))[0] + 1",
        "k = 3.0",
    ),
    **_name(
        "in partial",
        "k = 2.0\ndef h(a): return a * k\ng = functools.partial(h, 1.0)",
        "g()",
        "k = 3.0",
        "g = lambda: 3.0",
    ),
    **_name(
        "in a context",
        "import contextlib\nk = 2.0\n@contextlib.contextmanager\ndef c():\n    yield k\n"
        "def f(x):\n    with c() as s:\n        return x * s",
        "",
        "k = 3.0",
    ),
    **_name("by globals()", "k = 2.0", "globals()['k']", "k = 3.0"),
    **_name("by vars of a module", _MODULE, "vars(cfg)['k']", "cfg.k = 3.0"),
    **_name(
        "module",
        _MODULE,
        "cfg.K",
        "cfg.K = 3.0",
        "vars(cfg)['K'] = 3.0",
        "cfg = types.SimpleNamespace(K=3.0)",
    ),
    **_name("lower-case module attribute", _MODULE, "cfg.k", "cfg.k = 3.0"),
    **_name("function of a module", _MODULE, "cfg.g()", "cfg.g = lambda: 3.0"),
    **_name("absent module attribute", _MODULE, "getattr(cfg, 'Z', 2.0)", "cfg.Z = 3.0"),
    **_name(
        "imported inside",
        _MODULE + "def f(x):\n    from cfg_of_row import k\n    return x * k",
        "",
        "cfg.k = 3.0",
    ),
    **_name(
        "module imported inside",
        _MODULE + "def f(x):\n    import cfg_of_row as c\n    return x * c.K",
        "",
        "cfg.K = 3.0",
    ),
    **_name("builtin", "", "len('ab')", "globals()['len'] = lambda _: 3"),
    **_name(
        "cell",
        "def make():\n    k = 2.0\n    def put(v):\n        nonlocal k\n        k = v\n    return (lambda x: x * k), put\n"
        "f, put = make()",
        "",
        "put(3.0)",
        "f.__closure__[0].cell_contents = 3.0",
    ),
    **_name(
        "quiet cell",
        "def make():\n    k = 2.0\n    return lambda x: x * k\nf = make()",
        "",
        "f.__closure__[0].cell_contents = 3.0",
    ),
    **_name(
        "cell of a helper",
        "def make():\n    k = 2.0\n    def g(): return k\n    return lambda x: x * g()\nf = make()",
        "",
        "f.__closure__[0].cell_contents.__closure__[0].cell_contents = 3.0",
        "f.__closure__[0].cell_contents = lambda: 3.0",
    ),
    **rows("ctypes", "c = ctypes.c_double(2.0)", "c.value = 3.0", "c.value"),
    **rows("ctypes array", "c = (ctypes.c_double * 1)(2.0)", "c[0] = 3.0", "c[0]", "sum(c)"),
    **rows(
        "ctypes structure",
        "class S(ctypes.Structure):\n    _fields_ = [('k', ctypes.c_double)]\nc = S(2.0)",
        "c.k = 3.0",
        "c.k",
    ),
    **rows(
        "multiprocessing.Value", "c = multiprocessing.Value('d', 2.0)", "c.value = 3.0", "c.value"
    ),
    **rows(
        "multiprocessing.Array",
        "c = multiprocessing.Array('d', [2.0])",
        "c[0] = 3.0",
        "c[0]",
        "sum(c)",
    ),
    **rows(
        "raw shared value",
        "from multiprocessing.sharedctypes import RawValue\nc = RawValue('d', 2.0)",
        "c.value = 3.0",
        "c.value",
    ),
    **rows(
        "sparse matrix",
        "import scipy.sparse\nm = scipy.sparse.csr_matrix([[2.0]])",
        "m.data[0] = 3.0",
        "m[0, 0]",
        "m.sum()",
        "m.toarray()[0, 0]",
        "m.data[0]",
        "(m @ np.ones(1))[0]",
    ),
    **rows(
        "polynomial", "p = np.poly1d([2.0])", "p.coeffs[0] = 3.0", "p(1.0)", "p.coeffs[0]", "p[0]"
    ),
    **rows(
        "interpolation",
        "import scipy.interpolate\np = scipy.interpolate.CubicSpline([0.0, 1.0], [2.0, 2.0])",
        "p.c[...] = 3.0",
        "float(p(0.0))",
    ),
    **rows(
        "flags",
        "import optparse\no = optparse.Values({'k': 2.0})",
        "o.k = 3.0",
        "o.k",
        "getattr(o, 'k')",
        "vars(o)['k']",
    ),
    **rows("argparse", "import argparse\na = argparse.Namespace(k=2.0)", "a.k = 3.0", "a.k"),
    **rows(
        "configparser",
        "import configparser\nc = configparser.ConfigParser(); c.read_dict({'a': {'k': '2'}})",
        "c['a']['k'] = '3'",
        "float(c['a']['k'])",
        "c.getfloat('a', 'k')",
    ),
    **rows(
        "data frame",
        "import pandas\nd = pandas.DataFrame({'k': [2.0]})",
        "d.loc[0, 'k'] = 3.0",
        "d['k'][0]",
        "d.k.sum()",
        "d.values[0, 0]",
    ),
    **rows(
        "deque of a library", "import queue\nq = queue.Queue(); q.put(1)", "q.put(2)", "q.qsize()"
    ),
    **rows(
        "string template",
        "import string\nt = string.Template('aa')",
        "t.template = 'aaa'",
        "len(t.template)",
        "len(t.substitute())",
    ),
    **rows("iterator", "it = iter([2.0, 3.0])", "next(it)", "next(it)"),
    **rows("generator of numbers", "r = np.random.default_rng(0)", "r.random()", "r.random()"),
    **rows("vectorize", "k = 2.0\ng = np.vectorize(lambda a: a * k)", "k = 3.0", "float(g(1.0))"),
    **rows("reduce", "k = 2.0", "k = 3.0", "functools.reduce(lambda a, b: a + b * k, [0.0, 1.0])"),
    **rows(
        "closure of a library",
        "class H:\n    table = {'k': 2.0}\ng = operator.itemgetter('k')",
        "H.table['k'] = 3.0",
        "g(H.table)",
    ),
    **rows(
        "cmp_to_key",
        "k = 1.0\nkey = functools.cmp_to_key(lambda a, b: (a - b) * k)",
        "k = -1.0",
        "sorted([2.0, 3.0], key=key)[0]",
    ),
}
