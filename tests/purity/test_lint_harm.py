"""Which effects are worth a finding where JAX traces: pairs of programs, one goes wrong."""

from __future__ import annotations

import pytest

from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import parse, read

HEAD = "import itertools, jax, jax.numpy as jnp\nfrom functools import partial\n"
BOX = """
class Box:
    def __init__(self, scale):
        self.scale = scale
        self.limits = [0.0, scale]
        self.table = {}
    @partial(jax.jit, static_argnums=0)
    def run(self, x):
        return x * self.scale * self.limits[0]
"""
_THREAD = """
import threading
class Context({base}):
    def __init__(self):
        self.scale = 2.0
context = Context()
def change(scale): context.scale = scale
@jax.jit
def f(x): return x * context.scale
"""
_LATE = """
class Rule:
    def __init__(self):
        self.forward = None
    def define(self, forward):
        self.forward = forward
    @partial(jax.jit, static_argnums=0)
    def run(self, x):
        return self.forward(x)
"""
_FORCED = """
class Box: pass
box = Box()
@jax.jit
def f(x):
    object.__setattr__(box, 'last', {value})
    return x
"""
_COUNTED = """
class Name:
    def __init__(self, number): self.number = number
class Counter:
    def __init__(self): self.count = 0
counter = Counter()
@jax.jit
def f(x):
    counter.count += 1
    return {result}
"""
_OWN = """
class Box:
    def put(self, v): self.v = v
def f(x):
    box = Box()
    def g(y):
        box.put(y)
        return y
    out = jax.make_jaxpr(g)(x)
{after}    return out
"""
_CARRIED = """
def f(x):
    def body(i, c):
        c[1] = i
        return c
    return jax.lax.fori_loop(0, 3, body, {start})
"""
_PUT = """
import contextlib
@contextlib.contextmanager
def scaled(box, value):
    inner = box.inner
    old = inner.scale
    try:
        inner.scale = value
        yield
    {end}
class Box:
    def __init__(self): self.inner = Inner()
class Inner:
    def __init__(self): self.scale = 1.0
BOX = Box()
@jax.jit
def f(x):
    with scaled(BOX, x): return x
"""
_STACK = """
class Queue:
    _active = []
    @classmethod
    def push(cls, one): cls._active.append(one)
    @classmethod
    def leave(cls): return cls._active.{pop}
@jax.jit
def f(x):
    Queue.push('here')
    y = x * 2
    Queue.leave()
    return y
"""
_TIMED = """
import time
def timed(f):
    def run(*args):
        start = time.perf_counter()
        return f(*args), time.perf_counter() - start
    return run
{order}def f(x): return x
"""
_LAZY = """
class Op:
    @property
    def held(self):
        if not hasattr(self, '_held'): self._held = {{}}
        return self._held
OP = Op()
@jax.jit
def f(x):
    op = {made}
    op.held['a'] = x
    return x
"""
_ASKED = """
class Box:
    def __init__(self): self.scale = 1.0
    def grow(self): self.scale = 2.0
    @partial(jax.jit, static_argnums=0)
    def run(self, x):
        {how}
        return x
"""
_ASKING = """
import time
from inspect import signature
from elsewhere import h
TABLE = {{}}
def g(x): return time.time()
@jax.jit
def f(x): return x if {how} else -x
"""
_HELD = """
import threading, types
class Holder:
    def __init__(self): self.data = {base}()
holder = Holder()
@jax.jit
def f(x): return x * holder.data.scale
"""
_LATER = """
def f(x, functions, later):
    for one in functions:
        g = jax.jit(jax.vmap(one))
        {then}
    return later
"""
_LOOPED = """
def f(x):
    for n in {cases}:
        x = jax.jit(lambda y: y * n)(x)
    return x
"""
_FOUND = """
def make(rule):
    found = None
    @jax.jit
    def f(x):
        nonlocal found
        if found is None: found = {value}
        return rule(x)
    return f
"""
_AGAIN = """
def f(key):
    {call}([jax.random.normal(key)], [jax.random.normal(key)])
"""
#: What is harmless, and the same with one change that makes it wrong: the codes found there.
LAWS = {
    "what a thread keeps for itself": (
        _THREAD.format(base="threading.local"), _THREAD.format(base="object"), ["FNA204"],
    ),
    "a rule that is given later": (
        _LATE, _LATE + "def swap(rule, forward): rule.forward = forward\n", ["FNA204"],
    ),
    "a write that goes around its class": (
        _FORCED.format(value="'f'"), _FORCED.format(value="jnp.sum(x)"), ["FNA105"],
    ),
    "a counter that makes names": (
        _COUNTED.format(result="x, Name(counter.count)"),
        _COUNTED.format(result="x * counter.count"),
        ["FNA105"],  # the read of what is written beside it is the same cause
    ),
    "a field that constructors alone bind": (
        BOX,
        BOX + "\n    def grow(self): self.scale = 2.0\n",
        ["FNA204"],
    ),
    "a field that another file's code binds": (
        BOX, BOX + "\ndef warm(box): box.scale = 2.0\n", ["FNA204"],
    ),
    "a field that setattr binds": (
        BOX, BOX + "\ndef warm(box): setattr(box, 'scale', 2.0)\n", ["FNA204"],
    ),
    "a field that a class below binds": (
        BOX + "\nclass Red(Box):\n    def other(self): self.colour = 1\n",
        BOX + "\nclass Red(Box):\n    def other(self): self.scale = 1\n",
        ["FNA204"],
    ),
    "a list in a field": (
        BOX, BOX + "\n    def widen(self): self.limits.append(1.0)\n", ["FNA201"],
    ),
    "a table of a module": (
        "TABLE = {'a': 1.0}\n@jax.jit\ndef f(x): return x * TABLE['a']\n",
        ("TABLE = {'a': 1.0}\n@jax.jit\ndef f(x): return x * TABLE['a']\n"
        "def put(v): TABLE['a'] = v\n"),
        ["FNA201"],
    ),
    "a registry, asked by type": (
        ("MAKERS = {}\ndef register(kind, make): MAKERS[kind] = make\n"
        "@jax.jit\ndef f(x): return MAKERS[type(x)](x)\n"),
        ("MAKERS = {}\ndef register(kind, make): MAKERS[kind] = make\n"
        "@jax.jit\ndef f(x): return MAKERS['plain'](x)\n"),
        ["FNA201"],
    ),
    "a cache of what is not traced": (
        ("CACHE = {}\n@jax.jit\ndef f(x):\n    key = x.shape\n    if key not in CACHE:\n"
        "        CACHE[key] = x.dtype\n    return x.astype(CACHE[key])\n"),
        ("CACHE = {}\n@jax.jit\ndef f(x):\n    key = x.shape\n    if key not in CACHE:\n"
        "        CACHE[key] = jnp.sum(x)\n    return x * CACHE[key]\n"),
        ["FNA103"],
    ),
    "what is put back": (
        ("import thing\n@jax.jit\ndef f(x):\n    old = thing.mode\n    thing.mode = x.ndim\n"
        "    y = g(x)\n    thing.mode = old\n    return y\ndef g(x): return x\n"),
        ("import thing\n@jax.jit\ndef f(x):\n    thing.mode = 'on'\n    return g(x)\n"
        "def g(x): return x\n"),
        ["FNA105"],
    ),
    "a stack of contexts": (
        ("STACK = []\nclass Here:\n    def __enter__(self): STACK.append(self)\n"
        "    def __exit__(self, *e): STACK.pop()\n@jax.jit\ndef f(x):\n    with Here():\n"
        "        return x * len(STACK)\n"),
        ("STACK = []\nclass Here:\n    def __enter__(self): STACK.append(self)\n"
        "    def __exit__(self, *e): pass\n@jax.jit\ndef f(x):\n    with Here():\n"
        "        return x * len(STACK)\n"),
        ["FNA103", "FNA201"],
    ),
    "a dictionary that was handed in": (
        "@jax.jit\ndef f(d):\n    d['a'] = d['a'] + 1\n    return d\n",
        "@jax.jit\ndef f(d):\n    d['a'] = d['a'] + 1\n",
        ["FNA104"],
    ),
    "a shape that is printed": (
        "@jax.jit\ndef f(x):\n    print('shape', x.shape)\n    return x\n",
        "@jax.jit\ndef f(x):\n    print('value', x)\n    return x\n",
        ["FNA311"],
    ),
    "output of a trace that is not kept": (
        "def f(x):\n    print('calling')\n    return x\nprint(jax.grad(f)(1.0))\n",
        "def f(x):\n    print('calling')\n    return x\nprint(jax.jit(f)(1.0))\n",
        ["FNA311"],
    ),
    "a trace that the call alone uses": (
        ("class Box:\n    def fit(self, x):\n        self.scale = x\n"
        "        return jax.jit(lambda y: y * self.scale)(x)\n"),
        ("class Box:\n    def fit(self, x):\n        self.scale = x\n"
        "        return jax.jit(lambda y: y * self.scale)\n"),
        ["FNA204"],
    ),
    "an identity that is compared": (
        "@jax.jit\ndef f(x, y):\n    seen = {id(x): x}\n    return x if id(y) in seen else y\n",
        "@jax.jit\ndef f(x, y):\n    return x + id(y) % 7\n",
        ["FNA304"],
    ),
    "what is handed out is known while tracing": (
        ("def make():\n    tree = None\n    @jax.jit\n    def f(x):\n        nonlocal tree\n"
        "        tree = jax.tree.structure(x)\n        return x\n    return f\n"),
        ("def make():\n    tree = None\n    @jax.jit\n    def f(x):\n        nonlocal tree\n"
        "        tree = x + 1\n        return x\n    return f\n"),
        ["FNA102"],
    ),
    "who asks whether it is traced": (
        ("LOG = []\n@jax.jit\ndef f(x):\n    if not isinstance(x, jax.core.Tracer):\n"
        "        LOG.append(x)\n    return x\n"),
        "LOG = []\n@jax.jit\ndef f(x):\n    if x.ndim:\n        LOG.append(x)\n    return x\n",
        ["FNA103"],
    ),
    "a number that names": (
        ("numbers = itertools.count()\nclass Named:\n    def __init__(self, n): self.n = n\n"
        "@jax.jit\ndef f(x):\n    one = Named(next(numbers))\n    return x\n"),
        "numbers = itertools.count()\n@jax.jit\ndef f(x):\n    return x * next(numbers)\n",
        ["FNA401"],
    ),
    "draws of one key that never meet": (
        ("def f(key):\n    x = jax.random.normal(key)\n    check(x)\n"
        "    y = jax.random.normal(key)\n    check(y)\ndef check(x): pass\n"),
        ("def f(key):\n    x = jax.random.normal(key)\n    z = x + 1\n"
        "    y = jax.random.normal(key)\n    check(y, z)\ndef check(x, y): pass\n"),
        ["FNA605"],
    ),
    "rows that are chosen in one order": (
        ("def f(key, x, y):\n    x = jax.random.choice(key, x, (3,))\n"
        "    y = jax.random.choice(key, y, (3,))\n    return x, y\n"),
        ("def f(key, x, y):\n    x = jax.random.choice(key, x, (3,))\n"
        "    y = jax.random.choice(key, y, (2,))\n    return x, y\n"),
        ["FNA605"],
    ),
    "an object that goes when its function goes": (
        _OWN.format(after=""), _OWN.format(after="    print(box.v)\n"), ["FNA105"],
    ),
    "what eval_shape leaves is read for its structure": (
        _OWN.format(after="    print(box.v)\n").replace("make_jaxpr(g)(", "eval_shape(g, "),
        _OWN.format(after="    print(box.v)\n"), ["FNA105"],
    ),
    "what is asked in an assertion": (
        _ASKED.format(how="assert self.scale"), _ASKED.format(how="x = x * self.scale"),
        ["FNA204"],
    ),
    "a name that decorators give functions": (
        ("class Op:\n    def __init__(self, f): self.__name__ = f.__name__\n"
        "    @partial(jax.jit, static_argnums=0)\n"
        "    def run(self, x): return x * len(self.__name__)\n"
        "def named(f):\n    f.__name__ = 'g'\n    return f\n"),
        ("class Op:\n    def __init__(self, f): self.label = f.__name__\n"
        "    @partial(jax.jit, static_argnums=0)\n"
        "    def run(self, x): return x * len(self.label)\n"
        "def named(f):\n    f.label = 'g'\n    return f\n"),
        ["FNA204"],
    ),
    "a field of another class": (
        BOX + "\ndef warm(box: Other): box.scale = 2.0\nclass Other: pass\n",
        BOX + "\ndef warm(box: Box): box.scale = 2.0\n", ["FNA204"],
    ),
    "a field of what is no object of the project's": (
        BOX + "\ndef warm():\n    cell = lambda: None\n    cell.scale = 2.0\n",
        BOX + "\ndef warm(cell):\n    cell.scale = 2.0\n", ["FNA204"],
    ),
    "a list that a loop carries": (
        _CARRIED.format(start="[x, 0]"), _CARRIED.format(start="x"), ["FNA106"],
    ),
    "a mapping, by the strings that are looked up in it": (
        "@jax.jit\ndef f(d, k):\n    y = d['a']\n    d[k] = y\n    return d\n",
        "@jax.jit\ndef f(d, k):\n    y = d[0]\n    d[k] = y\n    return d\n", ["FNA106"],
    ),
    "a key that has a name": (
        "KEY = 'a'\n@jax.jit\ndef f(d):\n    d[KEY] = 1.0\n    return d\n",
        "KEY = 1\n@jax.jit\ndef f(d):\n    d[KEY] = 1.0\n    return d\n", ["FNA106"],
    ),
    "what vmap leaves unmapped, above a method": (
        ("class Box:\n    @partial(jax.vmap, in_axes=(None, 0, None))\n"
        "    def run(self, x, axis): return x if axis == 1 else -x\n"),
        ("class Box:\n    @partial(jax.vmap, in_axes=(None, 0, 0))\n"
        "    def run(self, x, axis): return x if axis == 1 else -x\n"),
        ["FNA601"],
    ),
    "what vectorize leaves out": (
        ("@partial(jnp.vectorize, excluded=(1,))\ndef f(x, n):\n    return x if n > 0 else -x\n"),
        "@partial(jnp.vectorize)\ndef f(x, n):\n    return x if n > 0 else -x\n",
        ["FNA601"],
    ),
    "keywords that a partial may fill in": (
        ("def g(x, flag): return x if flag else -x\n"
        "def f(**options): return jax.jit(partial(g, **options))\n"),
        ("def g(x, flag): return x if flag else -x\n"
        "def f(**options): return jax.jit(g)\n"),
        ["FNA601"],
    ),
    "programs of cases that are written out": (
        _LOOPED.format(cases="(1, 2)"), _LOOPED.format(cases="range(2)"), ["FNA606"],
    ),
    "a module that is imported by its name": (
        ("import importlib\n@jax.jit\ndef f(x):\n    return importlib.import_module('m').g(x)\n"),
        "@jax.jit\ndef f(x):\n    return eval('x')\n", ["FNA501"],
    ),
    "a helper's log of what is not traced": (
        ("import logging\ndef pick(device): logging.info('picked %s', device)\n@jax.jit\n"
        "def f(x):\n    pick('cpu')\n    return x\n"),
        ("import logging\ndef pick(device): logging.info('picked %s', device)\n@jax.jit\n"
        "def f(x):\n    pick(x)\n    return x\n"),
        ["FNA313"],
    ),
    "the environment that a process began with": (
        "import os\n@jax.jit\ndef f(x): return x * len(os.environ.get('A', ''))\n",
        "import os\n@jax.jit\ndef f(x):\n    os.environ['A'] = '1'\n    return x\n", ["FNA315"],
    ),
    "what a class has, by a computed name": (
        ("class Box:\n    def up(self): return 1.0\n@partial(jax.jit, static_argnums=1)\n"
        "def f(x, name): return x * getattr(Box, name)(None)\n"),
        ("class Box:\n    def up(self): return 1.0\nbox = Box()\n"
        "@partial(jax.jit, static_argnums=1)\ndef f(x, name): return x * getattr(box, name)()\n"
        "def warm(): box.up = None\n"),
        ["FNA201"],
    ),
    "what a generator puts back for a with": (
        _PUT.format(end="finally:\n        box.inner.scale = old\n"),
        _PUT.format(end="finally:\n        pass\n"), ["FNA105"],
    ),
    "a stack that methods of a class fill and empty": (
        _STACK.format(pop="pop()"), _STACK.format(pop="copy()"), ["FNA103", "FNA201"],
    ),
    "a circle that is closed before anybody calls": (
        ("def make(rule):\n    later = [None]\n    @jax.jit\n    def f(x): return later[0](x)\n"
        "    later[0] = rule\n    return f\n"),
        ("def make(rule):\n    later = [None]\n    @jax.jit\n    def f(x): return later[0](x)\n"
        "    f(1.0)\n    later[0] = rule\n    return f\n"),
        ["FNA201"],
    ),
    "a variable bound from what is captured": (
        _FOUND.format(value="rule"), _FOUND.format(value="x"), ["FNA102"],
    ),
    "what is drawn again to be compared": (
        _AGAIN.format(call="assert_equal"), _AGAIN.format(call="collect"), ["FNA605"],
    ),
    "a branch for arrays of NumPy's": (
        ("@jax.jit\ndef f(x, v):\n    if hasattr(x, 'at'): return x.at[0].set(v)\n"
        "    x[0] = v\n    return x\n"),
        "@jax.jit\ndef f(x, v):\n    x[0] = v\n    return x\n", ["FNA106"],
    ),
    "what stands above the transform": (
        _TIMED.format(order="@timed\n@jax.jit\n"), _TIMED.format(order="@jax.jit\n@timed\n"),
        ["FNA302"],
    ),
    "what a thread keeps, held by an object": (
        _HELD.format(base="threading.local"), _HELD.format(base="types.SimpleNamespace"),
        ["FNA204"],
    ),
    "programs that a loop makes for later": (
        _LATER.format(then="later.append(g)"), _LATER.format(then="later = g(x)"), ["FNA606"],
    ),
    "a function by which a table is asked": (
        _ASKING.format(how="TABLE.get((g, signature(g)))"), _ASKING.format(how="h((g, 1))"),
        ["FNA302"],
    ),
    "a static method's first static argument": (
        ("class Box:\n    def __init__(self): self.w = None\n"
        "    def __call__(self, x):\n        self.w = x.shape\n        return x\n"
        "    @staticmethod\n    @partial(jax.jit, static_argnums=0)\n"
        "    def run(rule, x): return rule(x)\n"),
        ("class Box:\n    def __init__(self): self.w = None\n"
        "    def __call__(self, x):\n        self.w = x\n        return x\n"
        "    @partial(jax.jit, static_argnums=0)\n"
        "    def run(rule, x): return rule(x)\n"),
        ["FNA105"],
    ),
    "a property of an object made there": (
        _LAZY.format(made="Op()"), _LAZY.format(made="OP"), ["FNA103", "FNA201"],
    ),
    "a name rebound to a partial of itself": (
        "def f(x, flag): return x if flag else -x\nf = partial(f, flag=True)\ng = jax.jit(f)\n",
        "def f(x, flag): return x if flag + 1 else -x\ng = jax.jit(f)\n",
        ["FNA601"],
    ),
}  # fmt: skip


def codes(text: str, name: str = "a.py") -> list[str]:
    """Return the codes found in a program, each once."""
    result = lint([parse(name, text)], Settings(presumed=True))
    assert not result.crashes
    return sorted({finding.code for finding in result.findings})


@pytest.mark.parametrize("name", LAWS)
def test_harmless_is_silent(name):
    """Nothing is said of an effect that cannot go wrong; one change later it can, and is."""
    harmless, harmful, expected = LAWS[name]
    assert codes(HEAD + harmless) == []
    assert codes(HEAD + harmful) == expected


def test_what_fnarray_refuses_is_said():
    """Where fnarray itself traces, the linter says what the call will say."""
    text = (HEAD + BOX).replace("jax.jit", "fnarray.jit").replace("import ", "import fnarray, ", 1)
    captured = "box = Box(2.0)\n@fnarray.jit\ndef f(x): return x * box.scale * box.limits[0]\n"
    assert codes(text) == []  # what a static object holds is guarded
    assert codes(text + captured) == ["FNA201", "FNA204"]


def test_refs_of_a_kernel_are_written_in_its_loops():
    """A kernel's Refs are there to be written, by loops and branches in it too; lists are not."""
    text = """
def kernel(x_ref, acc):
    {made}
    def body(i, c):
        {write}
        return c
    return jax.lax.fori_loop(0, 3, body, 0)
@jax.jit
def f(x, call): return call(kernel)(x)
"""
    for write in ("x_ref[i, :] += 1.0", "acc[...] = 1.0"):
        assert codes(HEAD + text.format(made="pass", write=write)) == []
    assert codes(HEAD + text.format(made="seen = []", write="seen.append(c)")) == ["FNA108"]


def test_a_change_is_seen_in_other_files(tmp_path):
    """A field is final only if no file changes it: one that imports the package may."""
    lib, user, stranger = (tmp_path / f"{name}.py" for name in ("lib", "user", "stranger"))
    lib.write_text(HEAD + BOX)
    stranger.write_text("import jax\ndef f(other): other.scale = 2.0\n")
    user.write_text("import jax, lib\ndef f(box): box.scale = 2.0\n")

    def found(*files):
        settings = Settings(root=tmp_path, presumed=True)
        return [f.code for f in lint([read(file) for file in files], settings).findings]

    assert found(lib) == found(lib, stranger) == []
    assert found(lib, user) == ["FNA204"]
