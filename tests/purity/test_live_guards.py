"""What is rebound is seen by the next call: in memory, through transforms, through the disk."""

from __future__ import annotations

import dataclasses
import functools
import gc
import subprocess
import sys
import textwrap
import types
import weakref
from typing import Final

import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.control import tracing
from fnarray.control.admission import admit
from fnarray.purity.live import verify

SCALE = 2.0
weights = jnp.float32(2.0)
final: Final = 2.0
TABLE = types.MappingProxyType(inner := {"k": 2.0})


def helper(x):
    return x * 2


def deep(x):
    return helper(x)


@dataclasses.dataclass(frozen=True)
class Settings:
    scale: float = 2.0


@dataclasses.dataclass(frozen=True)
class Larger:
    scale: float = 3.0


class Model:
    RATE = 2.0
    rate = 2.0

    def double(self, x):
        return x * 2


class OfClass:
    """A property of a class, as libraries write it."""

    def __init__(self, fun):
        self.fun = fun

    def __get__(self, obj, owner=None):
        return self.fun(owner)


class Factor:
    value = 2.0

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        return self.value


class Inherits(Model):
    factor = Factor()
    width = OfClass(lambda cls: cls.rate)

    def scaled(self, x):
        return x * super().rate


settings = Settings()
model = Model()
heir = Inherits()
X = jnp.float32(1.0)
replacing = types.ModuleType("math")
replacing.floor = lambda x: 3
ROW = jnp.ones(2)

#: A function, and how to rebind what it reads so that its result triples in place of doubling.
READS = {
    "constant": (lambda x: x * SCALE, {"SCALE": 3.0}),
    "Final": (lambda x: x * final, {"final": 3.0}),
    "array": (lambda x: x * weights, {"weights": jnp.float32(3.0)}),
    "function": (lambda x: helper(x), {"helper": lambda x: x * 3}),
    "function of a function": (lambda x: deep(x), {"helper": lambda x: x * 3}),
    "frozen object": (lambda x: x * settings.scale, {"settings": Settings(3.0)}),
    "class": (lambda x: x * Settings().scale, {"Settings": Larger}),
    "class constant": (lambda x: x * Model.RATE, (Model, "RATE", 3.0)),
    "attribute of a class": (lambda x: x * model.rate, (Model, "rate", 3.0)),
    "the same, inherited": (lambda x: x * heir.rate, (Model, "rate", 3.0)),
    "descriptor of a class": (lambda x: x * Inherits.width, (Model, "rate", 3.0)),
    "descriptor of an object": (lambda x: x * heir.factor, (Factor, "value", 3.0)),
    "what a descriptor is asked by": (
        lambda x: x * heir.factor,
        (Factor, "__get__", lambda self, obj, owner: 3.0),
    ),
    "module by its name": (lambda x: x * sys.modules[__name__].SCALE, {"SCALE": 3.0}),
    "another in its place": (
        lambda x: x * sys.modules["math"].floor(2.5),
        (sys.modules, "math", replacing),
    ),
    "the same, by super": (lambda x: heir.scaled(x), (Model, "rate", 3.0)),
    "method": (lambda x: model.double(x), (Model, "double", lambda self, x: x * 3)),
    "read-only mapping": (lambda x: x * TABLE["k"], (inner, "k", 3.0)),
    "builtin": (lambda x: x * len("ab"), {"len": lambda _: 3}),
}

#: How the function is reached by the compiled program.
REACHED = {
    "jit": lambda f: fnarray.jit(f),
    "jit of jit": lambda f: fnarray.jit(fnarray.jit(f)),
    "helper": lambda f: fnarray.jit(lambda x: f(x)),
    "inner jit": lambda f: (lambda g: fnarray.jit(lambda x: g(x)))(fnarray.jit(f)),
    "grad": lambda f: fnarray.jit(lambda x: x * fnarray.grad(f)(x)),
    "jit of grad": lambda f: fnarray.jit(fnarray.grad(f)),
    "vmap": lambda f: fnarray.jit(lambda x: fnarray.vmap(f)(x * ROW)[0]),
    "fori_loop": lambda f: fnarray.jit(lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x)),
    "scan": lambda f: fnarray.jit(lambda x: lax.scan(lambda c, _: (f(c), c), x, None, 1)[0]),
    "eager scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), c), x, None, 1)[0],
    "eager map": lambda f: lambda x: lax.map(f, x * ROW)[0],
    "cond": lambda f: fnarray.jit(lambda x: lax.cond(x > 0, f, lambda y: y, x)),
    "switch": lambda f: fnarray.jit(lambda x: lax.switch(x.astype(int), [lambda y: y, f], x)),
    "while_loop": lambda f: fnarray.jit(lambda x: lax.while_loop(lambda c: c < 2, f, x)),
    "associative_scan": lambda f: fnarray.jit(
        lambda x: lax.associative_scan(lambda a, b: f(a) * b, x * ROW)[1]
    ),
    "make_jaxpr": lambda f: lambda x: _evaluated(fnarray.make_jaxpr(f)(x), x),
}


def _evaluated(graph, x):
    (eqn,) = graph.eqns
    factor = next(iter(graph.consts), None)
    return x * (factor if factor is not None else eqn.invars[1].val)


@pytest.mark.parametrize("how", REACHED)
@pytest.mark.parametrize("what", READS)
def test_rebinding_is_seen_by_the_next_call(what, how, monkeypatch):
    """Whatever was read, and through whatever transform, the new value is used; then the old."""
    fun, change = READS[what]
    if how == "make_jaxpr" and what != "constant":
        how = "jit"
    call = REACHED[how](fun)
    assert call(X) == 2.0
    assert call(X) == 2.0
    with monkeypatch.context() as patch:
        if isinstance(change, dict):
            for name, value in change.items():
                patch.setitem(globals(), name, value)
        else:
            holder, name, value = change
            (patch.setitem if isinstance(holder, dict) else patch.setattr)(holder, name, value)
        assert call(X) == 3.0
        assert call(X) == 3.0
    assert call(X) == 2.0


def test_compiled_ahead_of_time():
    """What never traces again refuses to run with an old value, and names what changed."""
    space = {"K": 2.0}
    exec("def f(x):\n    return x * K\n", space)
    compiled = fnarray.jit(space["f"]).lower(X).compile()
    assert compiled(X) == 2.0
    space["K"] = 3.0
    with pytest.raises(fnarray.errors.ReadEffectError, match="reads K, rebound"):
        compiled(X)


def test_cells_are_guarded():
    """A closure's variable that is rebound afterwards, through a helper that closes over it."""
    factor = 2.0

    def scaled(x):
        return x * factor

    jitted = fnarray.jit(lambda x: scaled(x) + 0)
    assert jitted(X) == 2.0
    factor = 3.0
    assert jitted(X) == 3.0


def test_only_what_changed_is_traced_again():
    """Other functions keep their programs, and so does this one while nothing changes."""
    with fnarray.effects("off"):
        counted = []

        def f(x):
            counted.append(1)
            return x * SCALE

        jitted = fnarray.jit(f)
        for _ in range(3):
            jitted(X)
    assert len(counted) == 1
    other = fnarray.jit(lambda x: x * SCALE)
    other(X), other(X), other(ROW)
    assert other._cache_size() == 2


def test_a_signature_seen_before_is_traced_again():
    """After a change no program of the function is used, of whatever signature."""
    space = {"K": 2.0}
    exec("def f(x):\n    return x * K\n", space)
    jitted = fnarray.jit(space["f"])
    assert jitted(X) == 2.0
    assert jitted(ROW)[0] == 2.0
    space["K"] = 3.0
    assert jitted(X) == 3.0
    assert jitted(ROW)[0] == 3.0


def test_a_branch_traced_on_its_own_first():
    """A body that has a graph of its own is no older than the program it is part of."""
    space = {"K": 2.0}
    exec("def body(c, x):\n    return c * K, c\n", space)
    body = space["body"]
    jitted = fnarray.jit(lambda x: lax.scan(body, x, None, 1)[0])
    assert jitted(X) == 2.0
    assert lax.scan(body, X, None, 1)[0] == 2.0
    space["K"] = 3.0
    assert jitted(X) == 3.0
    assert lax.scan(body, X, None, 1)[0] == 3.0


def test_verdicts_follow_bindings():
    """A constant that becomes a list is an effect at the next call."""
    space = {"K": 2.0}
    exec("def f(x):\n    return x * K\n", space)
    jitted = fnarray.jit(space["f"])
    jitted(X)
    space["K"] = [3.0]
    with pytest.raises(fnarray.errors.ReadEffectError, match="FNA201"):
        jitted(X)
    space["K"] = 4.0
    assert jitted(X) == 4.0


SCRIPT = """
import sys, fnarray, fnarray.numpy as jnp
from fnarray import lax
SCALE = float(sys.argv[1])
weights = jnp.float32(SCALE)

@fnarray.jit
def f(x):
    return lax.fori_loop(0, 2, lambda i, c: c * SCALE, x) + weights

print(float(f(jnp.float32(1))), fnarray.cache_info()["compiled"])
"""


def test_the_disk_cache_holds_no_stale_constant(tmp_path, cache_dir):
    """Processes that differ in a constant alone get their own results, from one cache."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def run(value):
        done = subprocess.run(
            [sys.executable, script, value], check=True, capture_output=True, text=True
        )
        return [float(word) for word in done.stdout.split()]

    assert run("2")[0] == 6.0
    assert run("3")[0] == 12.0
    again, compiled = run("2")
    assert (again, compiled) == (6.0, 0)


def test_nothing_is_kept_alive():
    """A function that refers to itself goes, with its verdict, graphs and programs."""

    def make():
        def f(n, x):
            return x if n == 0 else f(n - 1, x * SCALE)

        return f

    f = make()
    fnarray.jit(f, static_argnums=0)(2, X)
    admit(f, "grad")
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def test_objects_are_not_kept_alive_by_guards():
    """An object read through ``self`` may go while its method's guards are held."""

    class Box:
        RATE = 2.0

        def step(self, x):
            return x * self.RATE

    box = Box()
    guards = verify(box.step, "jit")
    assert len(guards)
    gone = weakref.ref(box)
    del box
    gc.collect()
    assert gone() is None
    assert not guards.holds()


# ---- what a bound method is made of --------------------------------------------------------------


class _Base:
    def __call__(self, x):
        return x * 2.0

    def scaled(self, x, k):
        return x * k


class _Bound(_Base):
    twice = functools.partialmethod(_Base.scaled, k=2.0)

    def __call__(self, x):
        return super().__call__(x) + 1.0

    def by_super(self, x):
        return super().__call__(x)

    @functools.lru_cache  # noqa: B019 - what is tested
    def size(self):
        return 3.0

    def by_cache(self, x):
        return x * self.size()

    def by_partial(self, x):
        return self.twice(x)

    def by_value(self, x):
        method = self.scaled
        return fnarray.tree.map(lambda leaf: method(leaf, 2.0), x)


BOUND = _Bound()
CALLS = {
    "object": lambda: BOUND,
    "super": lambda: BOUND.by_super,
    "lru_cache": lambda: BOUND.by_cache,
    "partialmethod": lambda: BOUND.twice,
    "called partialmethod": lambda: BOUND.by_partial,
    "method as a value": lambda: BOUND.by_value,
    "closure over the object": lambda: lambda x: BOUND(x),
    "closure over a method": lambda: (lambda m: lambda x: m(x))(BOUND.by_super),
}


@pytest.mark.parametrize("how", CALLS)
def test_bound_methods_are_traced_once(how, monkeypatch):
    """A method is made anew at each access; guarded is what it is made of."""
    traces = []
    run = tracing._run
    monkeypatch.setattr(tracing, "_run", lambda *a: traces.append(1) or run(*a))
    program = fnarray.jit(CALLS[how]())
    for _ in range(4):
        program(jnp.float32(1.5))
    assert len(traces) == 1
