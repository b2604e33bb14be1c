"""Programs found without a trace: in another process, and never a stale one.

Each test runs one program twice or more in fresh processes that share a cache, with something
changed in between, and asks for the results and for what was traced.
"""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fnarray
from fnarray.api.content import Content, Unproven

pytestmark = pytest.mark.cpu

RUN = """
import json, sys
import fnarray, fnarray.control.tracing as tracing
import numpy as np
traced, trace = [], tracing.trace
def counted(fun, *args, **kwargs):
    traced.append(getattr(fun, '__name__', 'object'))
    return trace(fun, *args, **kwargs)
tracing.trace = counted
import program
results = {k: np.asarray(v()).tolist() for k, v in vars(program).items() if k.startswith("run")}
print(json.dumps([results, traced]))
"""
HEAD = """
import fnarray, numpy as np, fnarray.numpy as jnp, math, functools
from fnarray import jit, lax
from typing import Final
X = np.arange(3, dtype="float32")
"""


@pytest.fixture
def run(tmp_path):
    """Return what runs a program in a new process: its results, and the functions traced."""

    def run(program, **others):
        (tmp_path / "run.py").write_text(RUN)
        files = {"program": HEAD + textwrap.dedent(program), **others}
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        command = [sys.executable, "-B", str(tmp_path / "run.py")]
        env = {"PATH": "", "FNARRAY_CACHE_DIR": str(tmp_path / "cache")}
        # Ours is read from where the tests have it: to compile it takes each process a second.
        env |= {k: v for k, v in os.environ.items() if k == "PYTHONPYCACHEPREFIX"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


PROGRAM = """
import helpers
from helpers import scaled

SCALE = 2.0
TABLE = (1.0, (2, True), "linear")

def shifted(x, by=1.0):
    return x + by

@jit
def plain(x):
    return shifted(jnp.where(x > 1, x, -x) * SCALE) + TABLE[1][0]

@jit
def across(x):
    return scaled(x) + helpers.scaled(x) * helpers.DEPTH

def make(weight, matrix):
    def closed(x):
        return x * weight + matrix
    return closed

first, second = jit(make(2.0, jnp.ones(3))), jit(make(3.0, jnp.ones(3)))

def captures(m):
    return lambda x: m.scaled(x) + 1

third = jit(captures(helpers))

@functools.partial(jit, static_argnums=1)
def power(x, n):
    return x ** n + math.pi

def loss(p, x):
    return jnp.sum((p["w"] * x + p["b"][0]) ** 2)

@jit
def layer(x):
    wide = jnp.broadcast_to(x, (200, 3)).repeat(90, axis=1)
    return jnp.tanh(wide @ wide.T)[:2]

gradient = jit(fnarray.grad(loss))
P = {"w": X, "b": [np.float32(1), np.float32(2)]}

run_plain = lambda: plain(X)
run_across = lambda: across(X)
run_first = lambda: first(X)
run_second = lambda: second(X)
run_third = lambda: third(X)
run_two = lambda: power(X, 2)
run_three = lambda: power(X, 3)
run_gradient = lambda: gradient(P, X)["w"]
run_layer = lambda: layer(X)
run_number = lambda: plain(2.5)
"""
HELPERS = """
import fnarray.numpy as jnp
DEPTH = 4
FACTOR = 3.0
def inner(x):
    return x * FACTOR
def scaled(x):
    return inner(jnp.tanh(x))
"""
BY_NAME = {
    "plain": "run_plain", "across": "run_across", "power": "run_two", "loss": "run_gradient",
}  # fmt: skip


def test_a_second_process_traces_nothing(run):
    """Globals, helpers of another module, captured values, static arguments, a gradient."""
    first, traced = run(PROGRAM, helpers=HELPERS)
    assert len(traced) >= 10
    again, traced = run(PROGRAM, helpers=HELPERS)
    assert again == first
    assert traced == []


#: In which file what becomes what, and the results that change.
CHANGES = [
    ("program", "SCALE = 2.0", "SCALE = 5.0", {"run_plain", "run_number"}),
    ("program", '(2, True)', "(7, True)", {"run_plain", "run_number"}),
    ("program", "by=1.0", "by=3.0", {"run_plain", "run_number"}),
    ("program", "make(2.0, jnp.ones(3))", "make(2.5, jnp.ones(3))", {"run_first"}),
    ("program", "make(2.0, jnp.ones(3))", "make(2.0, jnp.zeros(3))", {"run_first"}),
    ("program", "x ** n", "x * n", {"run_two", "run_three"}),
    ("program", "** 2)", "** 3)", {"run_gradient"}),
    ("program", "fnarray.grad(loss)", "fnarray.grad(loss, argnums=0)", set()),
    ("program", "float32", "float64", set()),
    ("helpers", "DEPTH = 4", "DEPTH = 5", {"run_across"}),
    ("helpers", "FACTOR = 3.0", "FACTOR = 3", set()),
    ("helpers", "FACTOR = 3.0", "FACTOR = 8.0", {"run_across", "run_third"}),
    ("helpers", "return x * FACTOR", "return x + FACTOR", {"run_across", "run_third"}),
    ("helpers", "inner(jnp.tanh(x))", "inner(jnp.sin(x))", {"run_across", "run_third"}),
]  # fmt: skip


def test_what_changed_is_seen(run):
    """A changed constant, default, captured value, helper: the result is that of a fresh trace.

    All share one cache, so that each meets the programs of all before it.
    """
    before, _ = run(PROGRAM, helpers=HELPERS)
    for where, old, new, changed in CHANGES:
        texts = {"program": PROGRAM, "helpers": HELPERS}
        assert old in texts[where]
        texts[where] = texts[where].replace(old, new)
        after, _ = run(texts.pop("program"), **texts)
        assert {k for k in before if before[k] != after[k]} == changed, (old, new)
    back, traced = run(PROGRAM, helpers=HELPERS)
    assert (back, traced) == (before, [])


PATCHED = """
@jit
def f(x):
    return jnp.tanh(x) + fnarray.lax.exp(x)
if PATCH == 1:
    jnp.tanh = jnp.sin
if PATCH == 2:
    def mine(x):
        return x * 100
    jnp.tanh = mine
if PATCH == 3:
    fnarray.lax.exp = lambda x: x
run = lambda: f(X)
"""


def test_replaced_functions_of_the_package_are_seen(run):
    """Who puts another function in the package's place gets that one, recorded or not."""
    results = [run(f"PATCH = {k}\n{PATCHED}")[0]["run"] for k in (0, 1, 2, 3, 0)]
    assert results[0] == results[4]
    for k, tanh, exp in ((0, np.tanh, np.exp), (1, np.sin, np.exp), (2, lambda x: x * 100, np.exp),
                         (3, np.tanh, lambda x: x)):  # fmt: skip
        x = np.arange(3, dtype="float32")
        np.testing.assert_allclose(results[k], tanh(x) + exp(x), rtol=1e-6)


def test_rebinding_in_the_process_is_seen(run):
    """A process that ran a recorded program traces once a name that it depends on is rebound."""
    program = """
    SCALE: Final = 2.0
    def helper(x):
        return x + 1
    @jit
    def f(x):
        return helper(x) * SCALE
    def run():
        global SCALE, helper
        a = f(X)
        SCALE = 3.0
        b = f(X)
        helper = lambda x: x - 1
        c = f(X)
        return jnp.stack([a, b, c])
    """
    x = np.arange(3.0)
    want = [((x + 1) * 2).tolist(), ((x + 1) * 3).tolist(), ((x - 1) * 3).tolist()]
    for expected in (["f", "f", "f"], []):
        results, traced = run(program)
        assert results["run"] == want
        assert traced == expected


OBJECTS = """
    from dataclasses import dataclass

    class Base:
        SHIFT = {shift}
        def shifted(self, x):
            return x + self.SHIFT

    @dataclass(frozen=True)
    class Model(Base):
        weight: float
        inner: object
        @property
        def doubled(self):
            return 2.0 * self.weight
        def __call__(self, x):
            return self.shifted(x) * self.doubled + self.inner.of(x)
        def step(self, x):
            return self.shifted(x) * self.weight

    @dataclass(frozen=True)
    class Inner:
        weight: object
        power: int = {power}
        def of(self, x):
            return self.weight * x**self.power

    model = Model({weight}, Inner(jnp.asarray({weight})))
    run_call = lambda: jit(model)(X)
    run_method = lambda: jit(model.step)(X)
    run_inner = lambda: jit(model.inner.of)(X)
    @jit
    def held(x):
        return model.inner.of(x)
    run_held = lambda: held(X)
"""


def test_objects_are_told_by_all_that_they_hold(run):
    """Methods, objects that are called, and those captured: their state, class and bases count."""
    x = np.arange(3.0)
    for weight, shift, power in ((2.0, 1.0, 2), (3.0, 1.0, 2), (2.0, 5.0, 2), (2.0, 1.0, 3)):
        inner = weight * x**power
        want = {
            "run_call": (x + shift) * 2 * weight + inner, "run_method": (x + shift) * weight,
            "run_inner": inner, "run_held": inner,
        }  # fmt: skip
        program = OBJECTS.format(weight=weight, shift=shift, power=power)
        for expected in (4, 0):
            results, traced = run(program)
            assert results == {k: v.tolist() for k, v in want.items()}
            assert len(traced) == expected, traced


def test_objects_that_change_are_traced_again(run):
    """A process that ran a recorded method traces once the object or its class is another."""
    program = """
    from dataclasses import dataclass
    @dataclass(frozen=True)
    class Model:
        weight: float = 2.0
        SHIFT = 1.0
        def shifted(self, x):
            return x + self.SHIFT
        def step(self, x):
            return self.shifted(x) * self.weight
    model = Model()
    step = jit(model.step)
    def run():
        seen = [step(X)]
        object.__setattr__(model, "weight", 3.0)
        seen.append(step(X))
        Model.SHIFT = 2.0
        seen.append(step(X))
        Model.shifted = lambda self, x: x - self.SHIFT
        seen.append(step(X))
        return jnp.stack(seen)
    """
    x = np.arange(3.0)
    want = [(x + 1) * 2, (x + 1) * 3, (x + 2) * 3, (x - 2) * 3]
    for _ in range(2):
        results, _ = run(program)
        assert results["run"] == np.stack(want).tolist()


def test_settings_are_part_of_the_key(run):
    """Programs of another precision are other programs."""
    program = "fnarray.config.update('enable_x64', {})\nrun = lambda: jit(jnp.cos)(np.float64(0.1))"
    narrow, wide = (run(program.format(x))[0]["run"] for x in (False, True))
    assert narrow != wide
    assert wide == np.cos(0.1)
    assert run(program.format(False))[0]["run"] == narrow


def test_impure_functions_are_refused_each_time(run):
    """A function that was refused is refused in every process; nothing vouches for it."""
    program = """
    scale = 2.0
    scale = 3.0
    @jit
    def f(x):
        return x * scale
    def run():
        try:
            return f(X)
        except fnarray.errors.EffectError:
            return [7]
    """
    assert [run(program)[0]["run"] for _ in range(2)] == [[7], [7]]


def test_a_lost_kernel_is_traced_again(run, tmp_path):
    """Where the kernels of a recorded program are gone, or damaged, it is traced and compiled."""
    program = "run = lambda: jit(lambda x: jnp.cos(x) + 1)(X)"
    first = run(program)[0]
    for spoil in (lambda p: p.unlink(), lambda p: p.write_bytes(p.read_bytes()[:-7])):
        for path in (tmp_path / "cache").glob("k_*.bin"):
            spoil(path)
        results, traced = run(program)
        assert (results, traced) == (first, ["<lambda>"])
        assert run(program) == [first, []]


class Proxy:
    """Whatever is asked of it is an error."""

    def __getattribute__(self, name):
        raise RuntimeError(name)


class Holder:
    """Of it counts what it holds."""

    def __init__(self, value):
        self.value = value

    def all(self):
        return self.__dict__


class Slotted:
    """What it holds lies in no dictionary."""

    __slots__ = ("value",)


class Deciding:
    """What it holds it decides when it is asked."""

    def __getattr__(self, name):
        return name


class Listing(list):
    """A container that can change."""


def told(fun):
    content = Content()
    content.add(fun)
    return content.digest()


def test_content_tells_apart_what_differs():
    """Equal functions have one digest; type, sign of zero, order, code and capture all count."""

    def make(value):
        return lambda x: x + value

    values = [1, 1.0, True, -0.0, 0.0, "1", b"1", None, (1, 2), (2, 1), ((1,), 2), 1j,
              np.float32(1), np.float64(1), np.dtype("int32"), slice(1, 2), range(2),
              fnarray.numpy.ones(2), fnarray.numpy.zeros(2), fnarray.numpy.ones((2, 1)),
              np.sin, np.cos, len, max, fnarray.lax.exp, fnarray.numpy.exp]  # fmt: skip
    digests = [told(make(v)) for v in values]
    assert len(set(digests)) == len(digests)
    assert digests == [told(make(v)) for v in values]


@pytest.mark.parametrize(
    "value",
    [[1], {"a": 1}, {1}, np.ones(2), object(), iter(()), open, getattr, print, json.loads,
     fnarray.config, (1, [2]), np.random.default_rng(0), type("C", (), {}),
     functools.lru_cache(len), np.vectorize(math.sin), Holder([1]), Slotted(), Deciding(),
     Listing(), Holder(Holder({})), Holder(1).all],
)  # fmt: skip
def test_what_can_change_unseen_is_unproven(value):
    """What can change, or hides what it holds, looks names up or asks the world is not told."""
    with pytest.raises(Unproven):
        told(lambda x: (x, value))


def test_nothing_is_asked_of_objects():
    """An object that fails whatever is asked of it is unproven, and no error."""
    proxy = Proxy()
    with pytest.raises(Unproven):
        told(lambda x: (x, proxy))
