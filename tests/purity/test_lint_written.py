"""Further ways of writing by which an effect is meant; one cause is one finding."""

from __future__ import annotations

import pytest

from fnarray.purity.lint.config import Settings
from fnarray.purity.lint.linter import lint
from fnarray.purity.lint.source import parse

from .test_lint_customs import _MADE_FOR_LATER, _TALLY
from .test_lint_harm import HEAD, codes

_RULE = """
@jax.custom_batching.custom_vmap
def g(x): return x
@g.def_vmap
def rule(size, batched, x):
    assert {asked} > 2
    return x, batched[0]
"""
_EXPORT = """
def export(fun=None, *, name="x"):
    if fun is {first}: return lambda inner: export(inner, name=name)
    fun.__module__ = name
    return fun
@export
def apply(g, x): return g(x)
@jax.jit
def f(x): return apply(jnp.sin, x)
"""
_ASKED = """
import numpy as np
from jax.core import Tracer
def g(x):
    y = jnp.sin(x)
    if isinstance(y, Tracer): {then}
    return np.sort(y)
@jax.jit
def f(x): return g(x)
"""
_LOCAL = """
import threading
flag = threading.{kind}()
def switch(on): flag.active = on
@jax.jit
def f(x):
    switch(True)
    return x
"""
_COUNTS = """
STATS = {{}}
@partial(jax.jit, static_argnums=0)
def f(cfg, x):
    STATS.setdefault({put})
    return x
def read(): return sum(STATS.values())
"""
_ERRORS = """
errors = []
@jax.jit
def f(x):
    try: return jnp.linalg.solve(x, x)
    except ValueError:
        {then}
"""
_LOOPED = """
class Table:
    def __init__(self, rows): self.rows = rows
@jax.jit
def f(rows, x):
    table = Table(rows)
    def insert(y):
        table.rows = table.rows + y
        return table
    {how}
    return table.rows
"""
_OPTIONS = """
@partial(jax.jit, static_argnums=0)
def rollout(policy, x, **options):
    def step(carry, _):
        options["state"] = carry
        return policy(carry, **options), None
    return {last}
"""
_SEVERAL = """
def f(x, g, h):
    return {{name: jax.jit(lambda y: fun(y))(x) for name, fun in {cases}}}
"""
_COPIED = """
import copy
class Box:
    def __init__(self): self.scale = 2.0
    @partial(jax.jit, static_argnums=0)
    def run(self, x): return x * self.scale
def other(box):
    box = {made}
    box.scale = 3.0
    return box
"""
_BUILT = """
class Box:
    def {name}(self, scale): self.scale = [scale]
    @partial(jax.jit, static_argnums=0)
    def run(self, x): return x * self.scale[0]
"""
_WHICH = """
import numpy as np
def first(xp, x):
    if xp {same} jnp: return xp.sort(x)
    out = xp.zeros(3)
    out[0] = x[0]
    return out
@jax.jit
def f(x): return first(jnp, x)
"""
_ALL = """
@jax.vmap
def f(*args):
    res = args[0].v * 2
    args[0].v = res
    {last}
"""
_SAYS = """
import subprocess
def build(): subprocess.run(["make"])
{above}
def f(x):
    build()
    return x
"""
_REFS = """
@jax.jit
def f({name}, n):
    def body(i, c):
        {name}.rows[i] = c
        return c + i
    return jax.lax.fori_loop(0, n, body, 0)
"""
_SEEN = _TALLY.replace('calls["n"] += 1', "seen.append(x)").replace(
    'calls = {{"n": 0}}', "seen = []"
)

#: What is harmless, and the same with one change that makes it wrong: the codes found there.
LAWS = {
    "what a rule of a derivative says": (
        _SAYS.format(above="@jax.custom_jvp"), _SAYS.format(above="@jax.jit"), ["FNA316"],
    ),
    "a tally of what is traced": (
        _SEEN.format(then="assert len(seen) == 1"), _SEEN.format(then="return len(seen)"),
        ["FNA103"],
    ),
    "items of a tuple of Refs": (
        _REFS.format(name="table_ref"), _REFS.format(name="table"), ["FNA108"],
    ),
    "a field of a copy by the name of the original": (
        _COPIED.format(made="copy.deepcopy(box)"), _COPIED.format(made="box.inner"), ["FNA204"],
    ),
    "a field that a building method sets": (
        _BUILT.format(name="build"), _BUILT.format(name="change"), ["FNA201"],
    ),
    "which module a backend is": (
        _WHICH.format(same="is"), _WHICH.format(same="is not"), ["FNA106"],
    ),
    "an item of what all arguments are": (
        _ALL.format(last="return args[0]"), _ALL.format(last="return res"), ["FNA104"],
    ),
    "how a rule for vmap is asked": (
        _RULE.format(asked="size"), _RULE.format(asked="x"), ["FNA601"],
    ),
    "what a decorator does without a function": (
        _EXPORT.format(first="None"), _EXPORT.format(first="not None"), ["FNA105"],
    ),
    "what is done unless it is traced": (
        _ASKED.format(then="raise ValueError"), _ASKED.format(then="y = jnp.cos(y)"), ["FNA603"],
    ),
    "a flag of one thread": (
        _LOCAL.format(kind="local"), _LOCAL.format(kind="Event"), ["FNA105"],
    ),
    "counters under a key that hashes": (
        _COUNTS.format(put="cfg, dict.fromkeys('ab', 0)"), _COUNTS.format(put="cfg, x"), ["FNA103"],
    ),
    "what is done on the way to an error": (
        _ERRORS.format(then="raise errors.pop() if errors else ValueError"),
        _ERRORS.format(then="errors.append(x)"), ["FNA103"],
    ),
    "a name that is bound to what its branch gives": (
        _LOOPED.format(how="table = jax.lax.cond(x > 0, insert, lambda y: table, x)"),
        _LOOPED.format(how="jax.lax.cond(x > 0, insert, lambda y: table, x)"),
        ["FNA108"],
    ),
    "options that a loop's body alone looks at": (
        _OPTIONS.format(last="jax.lax.scan(step, x, None, 3)"),
        _OPTIONS.format(last="jax.lax.scan(step, x, None, 3), options"), ["FNA108"],
    ),
    "a text about the trace, with what is traced": (
        "@jax.jit\ndef f(x):\n    print('tracing f:', x)\n    return x\n",
        "@jax.jit\ndef f(x):\n    print('f:', x)\n    return x\n", ["FNA311"],
    ),
    "programs of cases in a comprehension": (
        _SEVERAL.format(cases="(('a', g), ('b', h))"), _SEVERAL.format(cases="g.items()"),
        ["FNA606"],
    ),
    "programs that a list of rows holds for later": (
        _MADE_FOR_LATER.format(then="held.append((program, x))"),
        _MADE_FOR_LATER.format(then="x = program(x)"), ["FNA606"],
    ),
}  # fmt: skip


def test_fields_of_one_object_are_one_finding():
    """All fields that a call sets of an object are one cause, which says how many they are."""
    source = (
        HEAD
        + """
class Box:
    def note(self, x): self.first, self.second, self.third = x, x + 1, x + 2
box = Box()
@jax.jit
def f(x):
    box.note(x)
    return x
"""
    )
    (finding,) = lint([parse("box.py", source)], Settings(presumed=True)).findings
    assert finding.message.startswith("sets 'box.first' and 2 more, attributes of an object")


def test_a_circle_of_calls_is_said_once():
    """Functions that call each other are named once in the way to a finding."""
    source = (
        HEAD
        + """
seen = []
def even(x, n): return (lambda y: odd(y, n - 1))(x) if n else x
def odd(x, n):
    seen.append(x)
    return (lambda y: even(y, n - 1))(x) if n else x
@jax.jit
def f(x): return even(x, 9)
"""
    )
    (finding,) = lint([parse("circle.py", source)], Settings(presumed=True)).findings
    assert finding.path == ("jit(f)", "even", "<lambda>", "odd")


@pytest.mark.parametrize("name", LAWS)
def test_meant_is_silent(name):
    """Nothing is said of an effect that is meant; one change later it is not, and is said."""
    meant, wrong, expected = LAWS[name]
    assert codes(HEAD + meant) == []
    assert codes(HEAD + wrong) == expected
