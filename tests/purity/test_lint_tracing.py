"""Which functions a file traces, and the pitfalls of tracing (FNA601 to FNA608)."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.project import Project
from fnarray.purity.lint.source import parse, read
from fnarray.purity.lint.traced import Finder

HEAD = """
import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
"""

#: Ways to make a decorator that does what it does to any function.
LOG = """
def log(n):
    def wrap(f):
        def inner(x): return f(x)
        return inner
    return wrap
class Log:
    def __call__(self, f):
        def inner(x): return f(x)
        return inner
def f(x): ...
"""


def found(text: str, prefix: str = "FNA6") -> list[tuple[str, int]]:
    """Return ``(code, line)`` of the findings in a program, lines counted without the head."""
    source = parse("a.py", HEAD + textwrap.dedent(text))
    assert source.problem is None, source.problem
    shift = HEAD.count("\n")
    result = lint([source], Settings(presumed=True))
    assert not result.crashes, result.crashes
    return [(f.code, f.line - shift) for f in result.findings if f.code.startswith(prefix)]


def traced(text: str) -> set[tuple[str, str]]:
    """Return ``(transform, function)`` of everything a program traces."""
    project = Project(Settings())
    module = project.take(parse("a.py", HEAD + textwrap.dedent(text)))
    return {(t.transform.name, t.scope.name) for t in Finder(project).find(module)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@jax.jit\ndef f(x): ...", {("jit", "f")}),
        ("@jax.jit()\ndef f(x): ...", {("jit", "f")}),
        (LOG + "g = jax.jit(log(3)(f))", {("jit", "inner")}),
        (LOG + "note = log(3)\ng = jax.jit(note(f))", {("jit", "inner")}),
        (LOG + "g = jax.jit(Log()(f))", {("jit", "inner")}),
        ("class C:\n    def f(self, x): ...\ng = jax.jit(getattr(C, 'f'))", {("jit", "f")}),
        ("@jax.jit(static_argnums=0)\ndef f(x): ...", {("jit", "f")}),
        ("@partial(jax.jit, static_argnums=0)\ndef f(x): ...", {("jit", "f")}),
        ("@functools.partial(jax.jit, donate_argnums=0)\ndef f(x): ...", {("jit", "f")}),
        ("from jax import jit as compiled\n@compiled\ndef f(x): ...", {("jit", "f")}),
        ("fast = jax.jit\n@fast\ndef f(x): ...", {("jit", "f")}),
        ("def f(x): ...\ng = [jax.jit(f)]", {("jit", "f")}),
        ("import fnarray as fa\n@fa.jit\ndef f(x): ...", {("jit", "f")}),
        ("from fnarray import *\n@jit\ndef f(x): ...", {("jit", "f")}),
        ("def f(x): ...\njax.vmap(f)(3)", {("vmap", "f")}),
        ("jax.grad(lambda x: x)", {("grad", "<lambda>")}),
        ("def f(x): ...\njax.jit(jax.grad(f))", {("jit", "f"), ("grad", "f")}),
        ("def f(a, x): ...\njax.jit(partial(f, 1))", {("jit", "f")}),
        ("f = lambda x: x\njax.jit(f)", {("jit", "<lambda>")}),
        ("def f(i, c): ...\nlax.fori_loop(0, 3, f, 0)", {("fori_loop", "f")}),
        ("def f(i, c): ...\nlax.fori_loop(0, 3, body_fun=f, init_val=0)", {("fori_loop", "f")}),
        ("def c(s): ...\ndef b(s): ...\nlax.while_loop(c, b, 0)",
         {("while_loop", "c"), ("while_loop", "b")}),
        ("def a(): ...\ndef b(): ...\nlax.switch(0, [a, b])", {("switch", "a"), ("switch", "b")}),
        ("def a(x): ...\nlax.cond(True, a, lambda x: x, 1)", {("cond", "a"), ("cond", "<lambda>")}),
        ("from jax.lax import scan as s\ndef f(c, x): ...\ns(f, 0, None)", {("scan", "f")}),
        ("def make(k):\n    def f(x): ...\n    return f\njax.jit(make(1))", {("jit", "f")}),
        ("class M:\n    def __call__(self, x): ...\njax.jit(M())", {("jit", "__call__")}),
        ("class M:\n    def g(self):\n        return jax.jit(self.f)\n    def f(self, x): ...",
         {("jit", "f")}),
        ("@jax.custom_vjp\ndef f(x): ...\ndef a(x): ...\ndef b(r, g): ...\nf.defvjp(a, b)",
         {("custom_vjp", "f"), ("defvjp", "a"), ("defvjp", "b")}),
        ("from mylib import jit\n@jit\ndef f(x): ...", set()),
        ("def jit(f): return f\n@jit\ndef f(x): ...", set()),
        ("list(map(lambda x: x, [1]))", set()),
    ],
)  # fmt: skip
def test_traced_functions_are_found(text, expected):
    """Decorators, calls, aliases, partials, factories, methods and bodies; no namesakes."""
    assert traced(text) == expected


FIRING = {
    "if": ("@jax.jit\ndef f(x):\n    if x > 0:\n        return x\n", ("FNA601", 3)),
    "flag": ("@jax.jit\ndef f(x, flag):\n    if flag: return x\n    return -x\n", ("FNA601", 3)),
    "item of": ("@jax.jit\ndef f(p):\n    return 1 if p['w'] else 2\n", ("FNA601", 3)),
    "while": ("@jax.jit\ndef f(x):\n    while x < 3:\n        x = x + 1\n", ("FNA601", 3)),
    "conditional": ("@jax.jit\ndef f(x):\n    return 1 if x.sum() else 2\n", ("FNA601", 3)),
    "and": ("@jax.jit\ndef f(x):\n    return x > 0 and x < 3\n", ("FNA601", 3)),
    "not": ("@jax.jit\ndef f(x):\n    return not (x > 0)\n", ("FNA601", 3)),
    "chain": ("@jax.jit\ndef f(x):\n    return 0 < x < 3\n", ("FNA601", 3)),
    "assert": ("@jax.jit\ndef f(x):\n    assert x > 0\n", ("FNA601", 3)),
    "derived": ("@jax.jit\ndef f(x):\n    y = jnp.sin(x)\n    if y.any():\n        return 1\n",
                ("FNA601", 4)),
    "max": ("@jax.jit\ndef f(x):\n    return max(x, 0.0)\n", ("FNA601", 3)),
    "comprehension": ("@jax.jit\ndef f(x):\n    return [v for v in x if v > 0]\n", ("FNA601", 3)),
    "match": ("@jax.jit\ndef f(x):\n    match x:\n        case 0: return 1\n", ("FNA601", 3)),
    "body": ("def b(i, c):\n    if i > 2:\n        return c\nlax.fori_loop(0, 9, b, 0)\n",
             ("FNA601", 2)),
    "inner": ("@jax.jit\ndef f(x):\n    def g():\n        if x > 0: return 1\n    return g()\n",
              ("FNA601", 4)),
    "lambda": ("jax.vmap(lambda x: 1 if x > 0 else 2)\n", ("FNA601", 1)),
    "float": ("@jax.jit\ndef f(x):\n    return float(x)\n", ("FNA602", 3)),
    "int": ("@jax.jit\ndef f(x):\n    return int(jnp.sum(x))\n", ("FNA602", 3)),
    "bool": ("@jax.jit\ndef f(x):\n    return bool(x > 1)\n", ("FNA602", 3)),
    "item": ("@jax.jit\ndef f(x):\n    return x.sum().item()\n", ("FNA602", 3)),
    "range": ("@jax.jit\ndef f(n):\n    for i in range(n): pass\n", ("FNA602", 3)),
    "math": ("@jax.jit\ndef f(x):\n    return math.sin(x)\n", ("FNA602", 3)),
    "numpy": ("@jax.jit\ndef f(x):\n    return np.sin(x)\n", ("FNA603", 3)),
    "asarray": ("@jax.jit\ndef f(x):\n    return np.asarray(x + 1)\n", ("FNA603", 3)),
    "linalg": ("@jax.jit\ndef f(x):\n    return np.linalg.norm(x)\n", ("FNA603", 3)),
    "mask": ("@jax.jit\ndef f(x):\n    return x[x > 0]\n", ("FNA604", 3)),
    "named mask": ("@jax.jit\ndef f(x):\n    m = x > 0\n    return x[m]\n", ("FNA604", 4)),
    "both": ("@jax.jit\ndef f(x):\n    return x[(x > 0) & (x < 3)]\n", ("FNA604", 3)),
    "isnan": ("@jax.jit\ndef f(x):\n    return x[~jnp.isnan(x)]\n", ("FNA604", 3)),
    "nonzero": ("@jax.jit\ndef f(x):\n    return jnp.nonzero(x > 0)\n", ("FNA604", 3)),
    "unique": ("@jax.jit\ndef f(x):\n    return jnp.unique(x)\n", ("FNA604", 3)),
    "where": ("@jax.jit\ndef f(x):\n    return jnp.where(x)\n", ("FNA604", 3)),
    "second": ("@jax.jit\ndef f(x):\n    return jnp.union1d(np.ones(2), x)\n", ("FNA604", 3)),
    "repeats": ("@jax.jit\ndef f(x, n):\n    return jnp.repeat(x, repeats=n)\n", ("FNA604", 3)),
    "counts": ("@jax.jit\ndef f(x):\n    return jnp.bincount(x)\n", ("FNA604", 3)),
    "method": ("@jax.jit\ndef f(x):\n    return x.nonzero()\n", ("FNA604", 3)),
    "two draws": ("def f(k):\n    a = random.normal(k)\n    return a + random.uniform(k)\n",
                  ("FNA605", 3)),
    "split late": ("def f(k):\n    a = random.normal(k)\n    return random.split(k)\n",
                   ("FNA605", 3)),
    "draw in loop": ("def f(k):\n    for i in range(3):\n        random.normal(k)\n",
                     ("FNA605", 3)),
    "jit in loop": ("for i in range(3):\n    g = jax.jit(lambda x: x)\n    g(i)\n", ("FNA606", 2)),
    "jit decorated": ("for i in range(3):\n    @jax.jit\n    def g(x): ...\n    g(i)\n",
                      ("FNA606", 2)),
    "jit listed": ("[jax.jit(partial(print, i))(1) for i in range(3)]\n", ("FNA606", 1)),
    "unrolled": ("@jax.jit\ndef f(x):\n    for i in range(500):\n        x = x + i\n",
                 ("FNA607", 3)),
    "constant": ("N = 500\n@jax.jit\ndef f(x):\n    for i in range(N):\n        x = x + i\n",
                 ("FNA607", 4)),
    "default": ("@partial(jax.jit, static_argnums=1)\ndef f(x, s=[1]): ...\n", ("FNA608", 2)),
    "value": ("@partial(jax.jit, static_argnames='s')\ndef f(x, s): ...\nf(1, s=[2])\n",
              ("FNA608", 3)),
    "array": ("@partial(jax.jit, static_argnames='s')\ndef f(x, s): ...\nf(1, np.ones(2))\n",
              ("FNA608", 3)),
    "named array":
        ("W = np.eye(2)\n@partial(jax.jit, static_argnums=1)\ndef f(x, s): ...\nf(1, W)\n",
         ("FNA608", 4)),
    "array's default":
        ("W = np.eye(2)\n@partial(jax.jit, static_argnums=1)\ndef f(x, s=W): ...\n",
         ("FNA608", 3)),
    "through a name":
        ("def f(x, s): ...\ng = jax.jit(f, static_argnums=1)\ng(1, np.tile([1], 2))\n",
         ("FNA608", 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", FIRING)
def test_pitfall_fires(name):
    """Each pitfall is found once, on its line."""
    text, expected = FIRING[name]
    assert found(text) == [expected]


SILENT = {
    "static": "@partial(jax.jit, static_argnums=1)\ndef f(x, n):\n    if n > 3: return x\n",
    "static name": "@jax.jit(static_argnames=['n'])\ndef f(x, n):\n    if n > 3: return x\n",
    "static unknown": "@partial(jax.jit, static_argnums=K)\ndef f(x, n):\n    if n > 3: return x\n",
    "shape":
        "@jax.jit\ndef f(x):\n    if x.shape[0] > 3 and x.ndim == 2 and len(x) > 1: return x\n",
    "none": "@jax.jit\ndef f(x):\n    if x is None: return 1\n    if not x: return 2\n",
    "keys":
        "@jax.jit\ndef f(p):\n    if 'w' in p: return p['w']\n    if p['kind'] == 'a': return 1\n",
    "default": "@jax.jit\ndef f(x, train=False):\n    if train: return x\n",
    "type": "@jax.jit\ndef f(x):\n    if isinstance(x, float) or x > 0: return x\n",
    "grad": "@jax.grad\ndef f(x):\n    if x > 0: return x\n    return float(x)\n",
    "unmapped": "def f(x, n):\n    if n > 3: return x\njax.vmap(f, in_axes=(0, None))\n",
    "bound": "def f(n, x):\n    if n > 3: return x\njax.jit(partial(f, 3))\n",
    "filtered": "import equinox as eqx\n@eqx.filter_jit\ndef f(x, m):\n    if m > 2: return x\n",
    "bound static": "def f(n, m):\n    if m: return n\njax.jit(partial(f, 3), static_argnums=0)\n",
    "method": "class M:\n    @partial(jax.jit, static_argnums=(0, 1))\n    def f(self, m, x):\n"
              "        if m > 2: return x\n",
    "bound name": "def f(x, n):\n    if n > 3: return x\njax.jit(partial(f, n=3))\n",
    "rebound": "@jax.jit\ndef f(x):\n    x = x.shape\n    if x[0] > 3: return 1\n",
    "numpy static":
        "@jax.jit\ndef f(x):\n    return x * np.prod(x.shape) + np.sqrt(2.0) + np.ndim(x)\n",
    "caught": "@jax.jit\ndef f(x):\n    try:\n        return float(x)\n"
              "    except jax.errors.ConcretizationTypeError:\n        return x\n",
    "at": "@jax.jit\ndef f(x):\n    return x.at[x > 0].set(0)\n",
    "where": "@jax.jit\ndef f(x):\n    return jnp.where(x > 0, x, 0)\n",
    "not traced": "def f(x):\n    if x > 0: return float(x)\n",
    "split": "def f(k):\n    k, a = random.split(k)\n    x = random.normal(a)\n"
             "    k, a = random.split(k)\n    return x + random.normal(a)\n",
    "branches":
        "def f(k, a):\n    if a:\n        return random.normal(k)\n    return random.uniform(k)\n",
    "fold": "def f(k):\n    return [random.normal(random.fold_in(k, i)) for i in range(3)]\n",
    "indexed":
        "def f(k):\n    k = random.split(k)\n    random.normal(k[0])\n    random.normal(k[1])\n",
    "jit kept": "fs = []\nfor i in range(3):\n    fs.append(jax.jit(lambda x, i=i: x + i))\n",
    "jit once": "def f(x): ...\nfor i in range(3):\n    jax.jit(f)(i)\n",
    "jit before": "g = jax.jit(lambda x: x)\nfor i in range(3):\n    g(i)\n",
    "short": "@jax.jit\ndef f(x):\n    for i in range(5):\n        x = x + i\n    return x\n",
    "untouched": "@jax.jit\ndef f(x):\n    t = [i for i in range(500)]\n    return x\n",
    "sized": "@jax.jit\ndef f(x, **kw):\n    jnp.unique(x, size=3)\n    jnp.bincount(x, length=3)\n"
             "    jnp.repeat(x, 2)\n    jnp.unique(np.ones(2))\n    return jnp.nonzero(x, **kw)\n",
    "hashable": "@partial(jax.jit, static_argnames='s')\ndef f(x, s=(1,)): ...\nf([1], s=(2,))\n",
}  # fmt: skip


@pytest.mark.parametrize("name", SILENT)
def test_pitfall_is_silent(name):
    """What is known while tracing may decide, convert and index; keys used once are fine."""
    assert found(SILENT[name]) == []


def test_max_unrolled():
    """The length from which a loop is reported is a setting."""
    source = parse("a.py", "import jax\n@jax.jit\ndef f(x):\n    for i in range(20): x = x + 1\n")
    assert not lint([source], Settings()).findings
    assert lint([source], Settings(max_unrolled=10)).findings


def test_names_are_followed_across_files(tmp_path: Path):
    """A transform and a body may come from other modules, relative and absolute, renamed."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("from .tools import compiled as fast\n")
    (package / "tools.py").write_text("import jax\ncompiled = jax.jit\n")
    (package / "steps.py").write_text("def body(i, c):\n    if i > 2: return c\n    return i\n")
    main = package / "main.py"
    main.write_text(
        "from jax import lax\nfrom . import fast, steps\nimport pkg.steps as s\n"
        "@fast\ndef f(x):\n    assert x > 0\n    return lax.fori_loop(0, 3, s.body, x)\n"
    )
    found = lint([read(main)], Settings(root=tmp_path)).findings
    assert [(Path(f.file).name, f.code, f.line) for f in found] == [
        ("main.py", "FNA601", 6),
        ("steps.py", "FNA601", 2),
    ]
