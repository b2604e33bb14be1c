"""Whole programs, some of several files, with the expected findings marked where they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import read

#: Name of the program, and text by file; ``# FNA...`` marks the lines of the findings.
PROGRAMS: dict[str, dict[str, str]] = {
    # Writing to a Ref is state passed, no effect: known by name, annotation or maker.
    "refs": {
        "kernels.py": """
import jax
import jax.numpy as jnp
TOTAL = jax.new_ref(jnp.zeros(3))

@jax.jit
def kernel(x_ref, o_ref, n):
    o_ref[...] = x_ref[...] + n
    o_ref[0] += 1.0
    TOTAL[...] += n
    jax.ref.addupdate(TOTAL, 0, n)

@jax.jit
def typed(r: jax.Ref, x):
    r[...] = x
    r.at[0][...] = x

@jax.jit
def inside(x):
    inner = jax.new_ref(x)
    def body(i, _):
        inner[i] += 1.0
        TOTAL[i] = 1.0
    jax.lax.fori_loop(0, 3, body, None)
    return inner[...]

@jax.jit
def wrong(x, reference, refill):
    x[0] = 1.0  # FNA106
    reference[0] = 1.0  # FNA106
    refill[0] = 1.0  # FNA106
    return x
""",
    },
    # Which implementation a call runs, the file does not say: each may be.
    "generic functions": {
        "norms.py": """
import functools
import jax
log = []

@functools.singledispatch
def norm(v): return v

@norm.register
def _(v: int):
    log.append(v)  # FNA103
    return v

@norm.register(float)
def of_float(v):
    parts = [v]
    parts.append(v)
    return parts[0]

def other(v): return v
other.register = lambda f: f

@other.register
def never(v):
    log.append(v)
    return v

@jax.jit
def f(x): return x * norm(1) + other(2)
"""
    },
    # Nor where it is registered: by a call, of a lambda, in a file that is imported for it.
    "generic functions of several files": {
        "base.py": """
import functools

@functools.singledispatch
def norm(v): return v

class Scale:
    @functools.singledispatchmethod
    def of(self, v): return v

    @of.register
    def _(self, v: int):
        seen.append(v)  # FNA103
        return v
seen = []
""",
        "handlers.py": """
import base
log = []

@base.norm.register
def of_int(v: int):
    log.append(v)  # FNA103
    return v

def of_float(v):
    log.append(v)  # FNA103
    return v

base.norm.register(float, of_float)
base.norm.register(str)(lambda v: log.append(v) or 2.0)  # FNA103
base.norm.register(bytes, len)
""",
        "unused.py": """
import base
log = []

@base.norm.register
def of_list(v: list):
    log.append(v)
    return v
""",
        "main.py": """
import jax
import base, handlers
scale = base.Scale()

@jax.jit
def f(x): return x * base.norm(1) + scale.of(2)
""",
    },
    # What a cache is given outlives the trace; so does what a bar shows.
    "caches and bars": {
        "caches.py": """
import functools
import fnarray, fnarray.numpy as jnp
import tqdm
from tqdm.auto import trange
bar = tqdm.tqdm(total=3)

@functools.lru_cache(maxsize=None)
def ones(n): return jnp.ones(n)

@functools.cache
def size(n): return 2 * n

class Grid:
    @functools.cached_property
    def points(self): return jnp.ones(3)
grid = Grid()

class Quiet(tqdm.tqdm):
    pass

class Steady(Quiet):
    def __init__(self, *args):
        super().__init__(*args, leave=False)  # FNA311
steady = Steady(range(3))

@fnarray.jit
def f(x):
    for i in trange(3):  # FNA311
        x = x + ones(3) + size(2)  # FNA103
    bar.update(1)  # FNA311
    for i in Quiet(range(3)):  # FNA311
        x = x + Steady(range(i)).n
    steady.update(1)  # FNA311
    return x + grid.points  # FNA103

def make(text, number, other: str):
    name = f"{text}-1"
    def g(x):
        return x * hash(name) * hash(number)  # FNA304
    return fnarray.jit(lambda x: g(x) * hash(other))  # FNA304
""",
    },
    # What a comprehension does, a loop does.
    "comprehensions": {
        "each.py": """
import jax
import jax.numpy as jnp
import numpy as np

@jax.jit
def f(xs, d):
    some = [x for x in (xs * 2, xs - 1) if x.sum() > 0]  # FNA601
    logs = [np.exp(v) for v in d.values()]  # FNA603
    return sum(xs * i for i in range(2000)), some, logs  # FNA607

def again(key):
    return [jax.random.normal(key) for _ in range(3)]  # FNA605

def each(key):
    first = jnp.stack([jax.random.normal(k) for k in jax.random.split(key, 3)])
    return first, [jax.random.normal(jax.random.fold_in(key, i)) for i in range(3)]
""",
    },
    # A key that an inner function draws from is drawn from whenever that is called.
    "keys of inner functions": {
        "inner.py": """
import jax
from jax.random import normal, permutation, uniform

def twice(key):
    def sample():
        return normal(key)
    return sample() + sample()  # FNA605

def of_shapes(key):
    draw = lambda shape: normal(key, shape)
    a = draw((3,))
    return a * draw((1,))  # FNA605

def at_each_turn(key, n):
    def sample():
        return uniform(key)
    out = []
    for _ in range(n):
        out.append(sample())  # FNA605
    return out

def and_itself(key):
    def sample():
        return normal(key)
    return sample() + normal(key)  # FNA605

def once(key, flag):
    def sample():
        return normal(key)
    if flag:
        return sample()
    return sample() + 1

def rebound(key):
    total = 0
    for _ in range(3):
        key, sub = jax.random.split(key)
        def sample():
            return normal(sub)
        total += sample()
    return total

def in_one_order(key, xs, ys):
    def shuffled(a):
        return permutation(key, a)
    return [shuffled(xs), shuffled(ys)]

def of_its_own(key):
    def sample(key):
        return normal(key)
    a, b = jax.random.split(key)
    return sample(a) + sample(b)
""",
    },
    # What a static object holds is guarded; what is written into it is not.
    "static objects": {
        "objects.py": """
from functools import partial
import fnarray
from fnarray import jit

class Model:
    rate = 2.0
    def __init__(self, n):
        self.n, self.layers, self.pair, self.log = n, [1.0], ([1.0], 2.0), []
        self.rate = 3.0

    @partial(jit, static_argnums=0)
    def step(self, x):
        for layer in self.layers:
            x = x * layer
        return x * self.n * self.pair[0][0] * self.rate * self.twice()

    def twice(self):
        return 2 * self.n

    @partial(jit, static_argnames=("self",))
    def logged(self, x):
        self.log.append(x)  # FNA103
        self.n = x  # FNA105
        return x

model = Model(1.0)

@jit
def captured(x):
    return x * model.n  # FNA204
""",
    },
    # A flag that jit is given is traced, and fails; so its default decides.
    "flags": {
        "flags.py": """
import functools
import jax
import jax.numpy as jnp

def loss(x, scaled=True, other=False):
    total = jnp.sum(x)
    if not scaled:
        total = total if total > 0 else -total
    if other:
        assert total > 0
    else:
        assert total < 1  # FNA601
    return total

def kept(x, scaled=True):
    scaled = scaled and len(x) > 3
    if not scaled:
        assert jnp.sum(x) > 0  # FNA601
    return x

@functools.partial(jax.jit, static_argnames="scaled")
def chosen(x, scaled=True):
    if not scaled:
        assert jnp.sum(x) > 0  # FNA601
    return x

jax.jit(loss), jax.jit(kept)

def graded(x, scaled=True):
    if not scaled:
        assert jnp.sum(x * 2).item() > 0
    return jnp.sum(x)

jax.grad(graded)
""",
    },
    # A class's own method leads to those above it, in whatever file they are.
    "super": {
        "above.py": """
calls = []
class Root:
    @classmethod
    def build(cls, x):
        calls.append(x)  # FNA103
        return x
class Base(Root):
    def __init__(self, n):
        self.n = n
    def go(self, x):
        calls.append(x)  # FNA103
        return x * self.n
    def quiet(self, x):
        return x
""",
        "below.py": """
import fnarray
from above import Base
class Sub(Base):
    def __init__(self, n):
        super().__init__(n)
    def go(self, x):
        return [super(Sub, self).go(x) for _ in range(2)][0]
    def inner(self, x):
        def call(y):
            return super(Sub, self).quiet(y) + 1
        return call(super().quiet(x))
    @classmethod
    def build(cls, x):
        return super().build(x)

@fnarray.jit
def f(x):
    sub = Sub(2.0)
    return sub.go(x) + sub.inner(x) + Sub.build(x)
""",
    },
    "re-exports": {
        "pkg/__init__.py": "from .core import work as work\nfrom .sub import *\n",
        "pkg/core.py": """
calls = []
def work(x):
    calls.append(x)  # FNA103
    return x
class Base:
    def __init__(self): self.n = 0
    def tick(self, x):
        self.n += 1  # FNA105
        return x
""",
        "pkg/sub/__init__.py": """
from .deep import deep, compiled, RATE
__all__ = ["deep", "compiled", "RATE", "rate"]
rate = 3.0
""",
        # The function has its module's name, and hides it.
        "pkg/sub/deep.py": """
import jax
RATE = 0.5
def deep(x):
    print(x)  # FNA311
    return x
compiled = jax.jit
""",
        "pkg/use.py": """
try:
    import jax
except ImportError:
    jax = None
import pkg
from pkg import work, compiled, rate, RATE, deep as dp
from pkg.core import Base
from . import core as c

class Child(Base):
    def __init__(self):
        super().__init__()
        self.step = jax.jit(self._step)
        self.k = 2.0
        self.final = 3.0
    def _step(self, x):
        return self.tick(x) * self.final * self.k  # FNA204
    def grow(self):
        self.k = 2.0 * self.k

@jax.jit
def one(x):
    return work(x) + pkg.work(x) + c.work(x)

@compiled
def two(x):
    return x * rate + RATE

@jax.jit
def three(x):
    return dp(x)

@jax.jit
def four(x):
    c.calls.append(1)  # FNA103
    return x
""",
    },
    "imports in a circle": {
        "a.py": "from b import *\nfrom b import g\nimport jax\n@jax.jit\ndef f(x): return g(x)\n",
        "b.py": "from a import *\nfrom c import g\n",
        "c.py": "from b import *\nfrom a import f\ndef g(x):\n    print(x)  # FNA311\n",
    },
    "functions in containers": {
        "a.py": """
import jax
def one(x):
    print(x)  # FNA311
    return x
def two(x):
    print(x)
    return x
def three(x):
    print(x)  # FNA311
    return x
TABLE = {"one": one, "two": two}
g = jax.jit(TABLE["one"])
LIST = [two, three]
h = jax.jit(LIST[1])
def make(xs):
    fs = []
    for x in xs:
        def f(y):
            return y * x  # FNA205
        fs.append(f)
    return fs[0]
k = jax.jit(make([1, 2]))
late = [jax.jit(lambda x: x * i) for i in range(3)]  # FNA205
"""
    },
    "what a callback does is no effect, what a lambda does is": {
        "a.py": """
import jax
cache = {}
@jax.jit
def shown(x):
    jax.debug.callback(lambda v: print(v), x)
    return jax.pure_callback(lambda v: print(v), x, x)
@jax.jit
def cleared(x):
    (lambda: cache.clear())()  # FNA103
    return x
"""
    },
    "objects of the standard library": {
        "a.py": """
import enum, math, queue, weakref
from collections import UserList
from contextvars import ContextVar
from pathlib import Path
import jax
class Kind(enum.Enum):
    SUM = "sum"
kind = Kind.SUM
history = []
note = history.append
words = UserList([1])
here = Path("a")
tasks = queue.Queue()
context = ContextVar("context")
alive = weakref.WeakValueDictionary()
best = float("inf")
turn = 2 * math.pi
@jax.jit
def f(x):
    note(x)  # FNA103
    words.append(x)  # FNA103
    here.read_text()  # FNA312
    Path("b").read_text()  # FNA312
    tasks.put(x)  # FNA103
    alive["x"] = x  # FNA103
    return x * context.get() if kind is Kind.SUM else x  # FNA201
@jax.jit
def g(x):
    return x * best * turn * math.pi  # FNA203
def update(x):
    global best
    best = min(best, float(x))
    context.set(best)
"""
    },
    "values asked for in helpers": {
        "a.py": """
import jax, math
import jax.numpy as jnp
import numpy as np
from jax import lax
def positive(y):
    if y > 0:  # FNA601
        return y
    return -y
def careful(y):
    if isinstance(y, float) and y > 0:
        return y
    return jnp.abs(y)
def scaled(y, n):
    return np.sin(y) if n > 1 else y  # FNA603
@jax.jit
def f(x):
    def inner(y):
        while y > 0:  # FNA601
            y = y - 1
        return y
    return positive(x) + careful(x) + scaled(x, 2) + inner(x)
@jax.jit
def g(x):
    mask = (x > 0) & (x < 5)
    print_me = f"{x.sum():.2f} {x.shape}"  # FNA602
    old = "%d %s" % (x.sum(), x.shape)  # FNA602
    if any(v > 0 for v in x) or all([x.sum() > 1]):  # FNA601 FNA601
        return x[mask, 0], print_me, old  # FNA604
    return x
@jax.jit
def h(xs):
    total, _ = lax.scan(lambda c, x: (c + x, x), 0.0, xs)
    if total > 3:  # FNA601
        return total
    return lax.fori_loop(0, 3, lambda i, c: c + [1, 2, 3][i], total)  # FNA602
"""
    },
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_findings_are_those_marked(name, tmp_path):
    """Every marked line has its findings, and no other line has any."""
    marked = []
    for file, text in PROGRAMS[name].items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for number, line in enumerate(text.splitlines(), 1):
            if "  # FNA" in line:
                marked += [(file, number, c) for c in re.findall(r"FNA\d+", line.split("  # ")[1])]
    sources = [read(path) for path in sorted(tmp_path.rglob("*.py"))]
    result = lint(sources, Settings(root=tmp_path, presumed=True))
    assert not result.crashes
    found = [
        (Path(f.file).relative_to(tmp_path).as_posix(), f.line, f.code) for f in result.findings
    ]
    assert sorted(found) == sorted(marked)
