"""Ways of writing by which an effect is meant: pairs of programs, of which one goes wrong."""

from __future__ import annotations

import pytest

from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import read

from .test_lint_harm import HEAD, codes

_FIRST = """
class Registry:
    held = None
    @classmethod
    def get(cls):
        {test}cls.held = {value}
        return cls.held
@jax.jit
def f(x):
    Registry.get()
    return x
"""
_LOCKED = """
import threading
class Cache:
    def __init__(self): self.hits, self.lock = 0, threading.Lock()
    def note(self, x):
        {how}
        return x
cache = Cache()
@jax.jit
def f(x): return cache.note(x)
"""
_MADE = """
class Box:
    def __init__(self): {init}
    def {name}(self): self.scale = 2.0
    @partial(jax.jit, static_argnums=0)
    def run(self, x): return x * self.scale
"""
_NEW = """
class Box:
    def __init__(self): self.scale = 2.0
    @classmethod
    def restore(cls, scale, box):
        new = {made}
        new.scale = scale
        return new
    @partial(jax.jit, static_argnums=0)
    def run(self, x): return x * self.scale
"""
_EXPECTED = """
import pytest
held = []
def test_leak():
    @jax.jit
    def f(x):
        held.append(x)
        return x
    {how}
"""
_TALLY = """
def test_traces():
    calls = {{"n": 0}}
    @jax.jit
    def f(x):
        calls["n"] += 1
        return x
    f(1.0)
    {then}
"""
_STATE = """
from jax.core import Tracer
class State:
    def __init__(self): self.value = None
    def check(self, value):
        {check}
state = State()
@jax.jit
def f(x):
    state.value = x
    return x
"""
_CONTEXT = """
from contextlib import contextmanager
from contextvars import ContextVar
mesh = ContextVar("mesh")
@contextmanager
def placed(value):
    token = mesh.set(value)
    try: yield
    finally: {end}
@jax.jit
def f(x):
    with placed(2): return x * mesh.get()
"""
_SEEDED = """
import numpy as np
def noise(x, seed=None):
    if {test}: x = x + np.random.normal()
    return x
@jax.jit
def f(x, key): return noise(x, {given})
"""
_ITEM = """
def fill(table, x):
    {first}
    table[0] = x
    return table
@jax.jit
def f(x): return fill({given}, x)
"""
_PARTS = """
class Box:
    def __init__(self, n): self.shape = (n, n, 3)
    {change}
    @partial(jax.jit, static_argnums=0)
    def run(self, x): return x * self.shape[0]
"""
_PROPERTY = """
class Rule:
    def __init__(self): self._step = None
    @property
    def step(self): return self._step
    @step.setter
    def step(self, given): self._step = given
    def trace(self, x): return {how}(self.{what})(x)
    def note(self, x):
        self._last = x
        return x
"""
_OFF = """
import numpy as np
BATCHED = {value}
def f(xs):
    def one(x): return np.sort(x)
    if BATCHED: return jax.vmap(one)(xs)
    return one(xs)
"""
_LONG = """
def f(x):
    for _ in range(500): x = x + 1
    return x
made = jax.{how}(f)(1.0)
"""
_BODY = """
@jax.jit
def body(i, c):
    c[0] = c[0] + i
    return c
def f(x): return jax.lax.fori_loop(0, 3, body, {start})
"""
_KINDS = """
def f(key, kind, x):
    if kind == "a":
        x = x + jax.random.normal(key)
    if kind == "{second}":
        x = x * jax.random.uniform(key)
    return x
"""
_KEYS = """
def f(key):
    return {draws}
"""
_BACKEND = """
try: import jax.numpy as np_
except ImportError: import numpy as np_
import numpy as np
@jax.jit
def f(x): return {np}.sort(x)
"""
_TESTED = """
class Box:
    def __init__(self): self.scale = 2.0
    @partial(jax.jit, static_argnums=0)
    def run(self, x): return x * self.scale
"""
_SETS = """
import jax
from box import Box
def test_refuses(box):
    box.scale = 3.0
"""
_ANSWERS = """
class Flags:
    def __init__(self): self.values = {{}}
    {answers}
    def set(self, name, value): self.values[name] = value
    def update(self, name): self.values.clear()
flags = Flags()
@jax.jit
def f(x): return x * flags.scale
"""
_TABLE = """
TABLE = {{}}
def look(key):
    if key not in TABLE: TABLE[key] = object()
    return TABLE[key]
def forget(): {how}
@jax.jit
def f(x):
    {read}
    return x
"""
_PHASES = """
class Box:
    def __init__(self): self.scale = None
    def start(self): self.scale = 2.0
    {more}
    @partial(jax.jit, static_argnums=0)
    def run(self, x): return x * self.scale
"""
_CONFIGURED = """
class Box:
    def __init__(self): self.scale = 2.0
    @partial(jax.jit, static_argnums=0)
    def run(self, x): return x * self.scale
def main(x):
    box = Box()
    {first}
    box.scale = 3.0
    return box.run(x)
"""
_POOL = """
from queue import Queue
pool = None
@jax.jit
def f(x):
    global pool
    {test}pool = {value}
    return x
"""
_FILES = """
import functools
import numpy as np
{cached}
def table(): return np.load("a.npy")
@jax.jit
def f(x): return x * table()
"""
_FILLED = """
def fill(state, y): state["y"] = y
@jax.jit
def f(state, x):
    {how}
    return state{part}
"""
_CASES = """
RULES = {cases}
def f(x):
    for name, rule in RULES.items():
        x = jax.jit(lambda y: rule(y))(x)
    return x
"""
_MADE_FOR_LATER = """
def make(rules, x):
    held = []
    for rule in rules:
        def fun(y): return y * 2
        program = jax.jit(fun)
        {then}
    return held
"""

#: What is harmless, and the same with one change that makes it wrong: the codes found there.
LAWS = {
    "what is made at its first use": (
        _FIRST.format(test="if cls.held is None: ", value="object()"),
        _FIRST.format(test="", value="jnp.ones(3)"), ["FNA105"],
    ),
    "what is done while a lock is held": (
        _LOCKED.format(how="with self.lock: self.hits += 1"),
        _LOCKED.format(how="self.hits += 1"), ["FNA105"],
    ),
    "what a method sets that constructors alone call": (
        _MADE.format(init="self._reset()", name="_reset"),
        _MADE.format(init="self.scale = 1.0", name="_reset"), ["FNA204"],
    ),
    "a field of what was made there": (
        _NEW.format(made="cls.__new__(cls)"), _NEW.format(made="box"), ["FNA204"],
    ),
    "what a test expects to be refused": (
        _EXPECTED.format(how="with pytest.raises(Exception): f(1.0)"),
        _EXPECTED.format(how="f(1.0)"), ["FNA103"],
    ),
    "a tally of traces that a test asserts": (
        _TALLY.format(then='assert calls["n"] == 1'), _TALLY.format(then='return calls["n"]'),
        ["FNA103"],
    ),
    "a state that asks whether it is given a tracer": (
        _STATE.format(check="if isinstance(value, Tracer): raise ValueError"),
        _STATE.format(check="if value is None: raise ValueError"), ["FNA105"],
    ),
    "a context that is taken back": (
        _CONTEXT.format(end="mesh.reset(token)"), _CONTEXT.format(end="print(token)"),
        ["FNA103", "FNA201", "FNA311"],
    ),
    "a way that what is handed in rules out": (
        _SEEDED.format(test="seed is None", given="key"),
        _SEEDED.format(test="seed is None", given="seed=None"), ["FNA301"],
    ),
    "a way that a call writes out": (
        _SEEDED.format(test='seed == "numpy"', given='"jax"'),
        _SEEDED.format(test='seed == "numpy"', given='"numpy"'), ["FNA301"],
    ),
    "an item of what a helper is handed": (
        _ITEM.format(first="pass", given="x"), _ITEM.format(first="table = x * 2", given="x")
        .replace("x * 2", "jnp.sin(x)"), ["FNA106"],
    ),
    "a part of a tuple that constructors bind": (
        _PARTS.format(change=""),
        _PARTS.format(change="def grow(self): self.shape = (9, 9, 3)"), ["FNA204"],
    ),
    "a property is not its setter": (
        _PROPERTY.format(how="jax.jit", what="step"),
        _PROPERTY.format(how="jax.jit", what="note"), ["FNA105"],
    ),
    "what a flag that is off would trace": (
        _OFF.format(value="False"), _OFF.format(value="True"), ["FNA603"],
    ),
    "a text about the program": (
        "@jax.jit\ndef f(x):\n    print('f is deprecated')\n    return x\n",
        "@jax.jit\ndef f(x):\n    print('step')\n    return x\n", ["FNA311"],
    ),
    "a name that scopes a function": (
        "@jax.named_call\ndef f(x, n):\n    return x if n > 2 else -x\n",
        "@jax.checkpoint\ndef f(x, n):\n    return x if n > 2 else -x\n", ["FNA601"],
    ),
    "a clock where nothing is kept": (
        "import time\ndef f(x):\n    return jax.grad(lambda y: y * time.time())(x)\n",
        "import time\n@jax.jit\ndef f(x):\n    return x * time.time()\n", ["FNA302"],
    ),
    "a long loop that somebody looks at": (
        _LONG.format(how="make_jaxpr"), _LONG.format(how="jit"), ["FNA607"],
    ),
    "a list that a compiled loop's body is handed": (
        _BODY.format(start="[x]"), _BODY.format(start="x"), ["FNA106"],
    ),
    "parts of one split": (
        _KEYS.format(draws="jax.random.split(key)[0], jax.random.split(key)[1]"),
        _KEYS.format(draws="jax.random.split(key)[1], jax.random.split(key)[1]"), ["FNA605"],
    ),
    "branches that exclude each other": (
        _KINDS.format(second="b"), _KINDS.format(second="a"), ["FNA605"],
    ),
    "the key of a comprehension": (
        _KEYS.format(draws="jax.random.normal(key), [jax.random.normal(key) for key in 'ab']"),
        _KEYS.format(draws="jax.random.normal(key), [jax.random.normal(key) for _ in 'ab']"),
        ["FNA605"],
    ),
    "another backend by the same name": (
        _BACKEND.format(np="np_"), _BACKEND.format(np="np"), ["FNA603"],
    ),
    "flags that are looked up": (
        _ANSWERS.format(answers="scale = 2.0"),
        _ANSWERS.format(answers="def __getattr__(self, name): return self.values[name]"),
        ["FNA201"],
    ),
    "a helper that says what it does": (
        "def g(x):\n    print('g')\n    return x\n@jax.jit\ndef f(x): return g(x)\n",
        "def g(x):\n    print(x)\n    return x\n@jax.jit\ndef f(x): return g(x)\n", ["FNA311"],
    ),
    "a table that forgets": (
        _TABLE.format(how="TABLE.clear()", read="look(x.shape)"),
        _TABLE.format(how="TABLE.clear()", read="for key in TABLE: x = x * TABLE[key]"), ["FNA201"],
    ),
    "a field that one method sets up": (
        _PHASES.format(more=""), _PHASES.format(more="def change(self): self.scale = 3.0"),
        ["FNA204"],
    ),
    "a field that is set before its object is used": (
        _CONFIGURED.format(first="pass"), _CONFIGURED.format(first="box.run(x)"), ["FNA204"],
    ),
    "a global that is made at its first use": (
        _POOL.format(test="if pool is None: ", value="Queue()"),
        _POOL.format(test="", value="x"), ["FNA101"],
    ),
    "a file that a cached function reads": (
        _FILES.format(cached="@functools.cache"), _FILES.format(cached=""), ["FNA312"],
    ),
    "who leaves with an error": (
        "import sys\n@jax.jit\ndef f(x):\n    if x.ndim > 2: sys.exit('too many')\n    return x\n",
        "import os\n@jax.jit\ndef f(x):\n    if x.ndim > 2: os.system('ls')\n    return x\n",
        ["FNA316"],
    ),
    "what may be left out": (
        "@jax.jit\ndef f(x, state): return state or x\n",
        "@jax.jit\ndef f(x, state): return jnp.sin(x) or x\n", ["FNA601"],
    ),
    "what a helper fills": (
        _FILLED.format(how="fill(state, x)", part=""),
        _FILLED.format(how="z = state['z']\n    state['y'] = x", part="_"),
        ["FNA104"],
    ),
    "programs of a table's cases": (
        _CASES.format(cases="{'a': jnp.sin}"), _CASES.format(cases="read()"), ["FNA606"],
    ),
    "programs that objects hold for later": (
        _MADE_FOR_LATER.format(then="held.append(Rule(program))"),
        _MADE_FOR_LATER.format(then="x = program(x)"), ["FNA606"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "found"), [("test_box.py", []), ("use_box.py", ["FNA204"])])
def test_what_tests_change_is_theirs(name, found, tmp_path):
    """A test sets fields of objects that it made; another file's objects are anybody's."""
    (tmp_path / "box.py").write_text(HEAD + _TESTED)
    (tmp_path / name).write_text(_SETS)
    sources = [read(path) for path in sorted(tmp_path.glob("*.py"))]
    result = lint(sources, Settings(root=tmp_path, presumed=True))
    assert [finding.code for finding in result.findings] == found


@pytest.mark.parametrize("name", LAWS)
def test_meant_is_silent(name):
    """Nothing is said of an effect that is meant; one change later it is not, and is said."""
    meant, wrong, expected = LAWS[name]
    assert codes(HEAD + meant) == []
    assert codes(HEAD + wrong) == expected
