"""Live checking: the corpus, and what a user sees."""

from __future__ import annotations

import functools
import linecache
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import errors, lax
from fnarray.config import effects
from fnarray.purity import assert_pure, assume_pure, check
from fnarray.purity.live import verify

log: list = []
rate = 0.1
rate = 0.2  # bound twice: a variable


def helper(x):
    log.append(x)
    return x


def step(x):
    return helper(x) * rate


def test_message_shows_path_source_caret_and_repair():
    """An error says where, by which path, shows the line with a caret, and names the repair."""
    with pytest.raises(errors.EffectError) as caught:
        verify(step, "jit")
    text = str(caught.value)
    assert "jit(step) -> helper" in text
    assert "log.append(x)" in text
    assert "^" in text
    assert "FNA103" in text
    assert "FNA203" in text
    assert "CAPITALS" in text


def test_error_is_of_every_group_found():
    """One exception for all findings answers to the class of each group."""
    with pytest.raises(errors.WriteEffectError) as caught:
        verify(step, "jit")
    assert isinstance(caught.value, errors.ReadEffectError)
    assert [f.code for f in caught.value.findings] == ["FNA103", "FNA203"]


def test_item_assignment_is_a_type_error():
    """``x[i] = v`` is a TypeError too, and shows the functional form."""

    def put(x, i):
        x[i] = 1.0
        return x

    with pytest.raises(TypeError, match=r"x\.at\[i\]\.set\(\.\.\.\)"):
        verify(put, "jit")


def test_modes():
    """ "warn" warns and goes on, "off" is silent, and both may be set by configuration."""
    with pytest.warns(errors.EffectWarning, match="FNA103"):
        verify(step, "jit", "warn")
    assert verify(step, "jit", "off").holds()
    with effects("off"):
        verify(step, "jit")


def test_columns_are_exact():
    """A finding spans the offending expression."""
    found = check(lambda x: x + log[0])[0]
    assert found.source[found.column - 1 : found.end_column - 1] == "log"


def test_two_lambdas_on_a_line():
    """Each lambda is found by its own columns."""
    good, bad = (lambda x: x + 1), (lambda x: log.append(x))
    assert check(good) == []
    assert [f.code for f in check(bad)] == ["FNA103"]


def test_suppression_names_a_code():
    """A comment silences the code that it names, on its line."""
    assert check(lambda x: log.append(x)) != []
    assert check(lambda x: log.append(x)) == []  # fnarray: ignore[FNA103]
    assert check(lambda x: log.append(x)) != []  # fnarray: ignore[FNA101]


def test_assume_pure_is_believed():
    """A helper marked pure is not entered."""

    @assume_pure
    def trusted(x):
        print(x)
        return x

    assert check(lambda x: trusted(x)) == []


def test_assert_pure():
    """``assert_pure`` passes or raises with all findings."""
    assert_pure(lambda x: x * 2)
    with pytest.raises(AssertionError, match="FNA203"):
        assert_pure(step)


def test_no_source():
    """A function without source is judged by the names in its bytecode."""
    space: dict = {"print": print, "box": []}
    exec("def f(x):\n    print(x)\n    return x\ndef g(x):\n    global k\n    k = x\n"
         "def h(x):\n    return x + 1\ndef e(x):\n    return x + box[0]\n", space)  # fmt: skip
    assert [f.code for f in check(space["f"])] == ["FNA311"]
    assert [f.code for f in check(space["g"])] == ["FNA101"]
    assert check(space["h"]) == []
    assert [f.code for f in check(space["e"])] == ["FNA201"]


def test_callables_of_every_kind():
    """Partials, methods, callable objects and transformed functions are seen through."""

    class Model:
        def step(self, x):
            print(x)
            return x

        __call__ = step

    for fun in (
        Model().step, Model(), functools.partial(Model().step), fnarray.jit(Model().step),
        functools.partial(functools.partial(Model.step, Model())),
    ):  # fmt: skip
        assert [f.code for f in check(fun)] == ["FNA311"]


def test_all_findings_at_once():
    """Every effect is reported, not the first."""

    def many(x):
        print(x)
        log.append(x)
        return x * rate + np.random.normal()  # noqa: NPY002

    assert [f.code for f in check(many)] == ["FNA311", "FNA103", "FNA203", "FNA301"]


def test_rebinding_is_seen():
    """The verdict follows the binding: what was a constant array may become a writable one."""
    space = {"w": jnp.ones(3)}
    exec("def f(x):\n    return x * w\n", space)
    assert check(space["f"]) == []
    space["w"] = np.ones(3)  # where nobody sees whether it is bound again
    assert [f.code for f in check(space["f"])] == ["FNA202"]
    space = {"W": np.ones(3)}  # declared a constant
    exec("def f(x):\n    return x * W\n", space)
    assert check(space["f"]) == []


def test_variables_bound_late():
    """Functions kept from a loop of any form share its last values."""

    def by_while():
        k, kept = 0, []
        while k < 3:
            kept.append(lambda x: x * k)  # noqa: B023 - the point
            k += 1
        return kept

    by_comprehension = [lambda x: x * k for k in range(3)]  # noqa: B023 - the point
    bound = [lambda x, k=k: x * k for k in range(3)]
    for fun in (*by_while(), *by_comprehension):
        assert [f.code for f in check(fun)] == ["FNA205"]
    assert [check(fun) for fun in bound] == [[], [], []]


def test_an_array_in_a_dict_is_changed_in_place():
    """What a container holds now tells that ``m *= 0.9`` writes into it."""
    buffers = {"m": np.zeros(3)}

    def step(x):
        m = buffers["m"]
        m *= 0.9
        return x

    assert [f.code for f in check(step)] == ["FNA107"]


def test_mutual_recursion_ends():
    """Functions that call each other are entered once each."""

    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    assert check(even) == []


def test_expressions_of_generated_code(monkeypatch):
    """Sums of two thousand terms and ninety nested calls are followed to their end, and back."""
    limit = sys.getrecursionlimit()
    sum_ = "x + " * 2000 + "helper(x)"
    for text in (sum_, "jnp.sin(" * 90 + "helper(x)" + ")" * 90, "x" + ".at[0].set(rate)" * 150):
        space = {"helper": helper, "rate": [rate], "jnp": jnp}
        exec("f = lambda x: " + text, space)
        lines = len(text), None, ["f = lambda x: " + text], "<string>"
        monkeypatch.setitem(linecache.cache, "<string>", lines)
        assert len(check(space["f"])) == 1
    assert sys.getrecursionlimit() == limit


def test_loop_body_at_any_depth():
    """A body inside a body owns nothing of either."""

    def outer(x):
        def body(i, c):
            seen = []

            def inner(j, d):
                seen.append(d)
                return d

            return lax.fori_loop(0, 2, inner, c)

        return lax.fori_loop(0, 2, body, x)

    assert [f.code for f in check(outer)] == ["FNA108"]


class Pair(NamedTuple):
    """Two values."""

    left: float
    right: float


class Slotted:
    """Two values in slots."""

    __slots__ = ("left", "right")

    def __init__(self, left, right):
        self.left, self.right = left, right


@pytest.mark.parametrize("cls", [Pair, Slotted])
def test_fields_of_an_instance_made_here_are_its_own(cls):
    """A descriptor on the class is not what reading the attribute of an instance gives."""

    def swapped(x):
        def make(a):
            return cls(a, [a])

        pair = make(x)
        return pair.right[0] + pair.left

    assert check(swapped) == []


FLAG, NOTHING, SEEN = True, None, []


def test_what_a_loop_rebinds_sends_a_test_both_ways():
    """Which way a test goes at first does not tell which way it goes in the next round."""

    def by_truth(x):
        first = FLAG
        for _ in range(3):
            if first:
                first = False
            else:
                SEEN.append(1)
        return x

    def by_none(x):
        last = NOTHING
        while True:
            if last is not None:
                SEEN.append(last)
                break
            last = 1.0
        return x

    for f in (by_truth, by_none):
        assert [one.name for one in check(f)] == ["captured-mutation"]


def test_engine_needs_only_the_standard_library():
    """The linter runs where neither NumPy nor Numba is installed."""
    folder = Path(fnarray.__file__).parent
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['numba'] = None\n"
        f"sys.path.append({str(folder)!r})\n"
        "import purity.engine.analysis, purity.rules, purity.findings, purity.known\n"
    )
    subprocess.run([sys.executable, "-S", "-c", code], check=True, cwd="/")


# ---- objects that answer for themselves ----------------------------------------------------------

EVIL = """
def refuse(what):
    asked.append(what)
    raise KeyError(what)

asked = []

class Attribute:
    def __getattr__(self, name): refuse(name)
    def __call__(self, x): return x * 2

class Look:
    def __getattribute__(self, name): refuse(name)
    def __call__(self, x): return x * 2

class Class:
    @property
    def __class__(self): refuse("__class__")
    def __call__(self, x): return x * 2

class Key:
    def __hash__(self): refuse("hash")
    def __eq__(self, other): refuse("eq")
    def __call__(self, x): return x * 2

class Meta(type):
    def __getattr__(cls, name): refuse(name)

class OfMeta(metaclass=Meta):
    def __call__(self, x): return x * 2

class Descriptor:
    def __get__(self, obj, cls=None): refuse("descriptor")

class Described:
    __name__ = __wrapped__ = __signature__ = Descriptor()
    def __call__(self, x): return x * 2

class Shown:
    def __repr__(self): refuse("repr")
    def __bool__(self): refuse("bool")
    def __len__(self): refuse("len")
    def __call__(self, x): return x * 2
"""
APPLIED = {
    "jit": fnarray.jit,
    "jit of a partial": lambda f: fnarray.jit(functools.partial(f)),
    "closure": lambda f: fnarray.jit(lambda x: f(x)),
    "lower": lambda f: lambda x: fnarray.jit(f).lower(x),
    "make_jaxpr": fnarray.make_jaxpr,
    "grad": fnarray.grad,
    "jvp": lambda f: lambda x: fnarray.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: fnarray.vjp(f, x),
    "vmap": lambda f: lambda x: fnarray.vmap(f)(x[None]),
    "checkpoint": fnarray.checkpoint,
    "eval_shape": lambda f: lambda x: fnarray.eval_shape(f, x),
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x),
    "cond": lambda f: lambda x: lax.cond(x > 0, f, f, x),
    "check": lambda f: lambda x: check(f),
}


@pytest.mark.parametrize("how", APPLIED)
@pytest.mark.parametrize(
    "name", ["Attribute", "Look", "Class", "Key", "OfMeta", "Described", "Shown"]
)
def test_nothing_of_the_users_runs(name, how, tmp_path):
    """Of an object only ``__call__`` is run: it is never asked for an attribute, or compared."""
    path = tmp_path / "evil.py"
    path.write_text(EVIL)
    space = {"__name__": "evil", "__file__": str(path)}
    exec(compile(EVIL, path, "exec"), space)
    APPLIED[how](space[name]())(jnp.float32(2.0))
    assert space["asked"] == []


class _Pair:
    """A node whose maker is a method of its own class, bound to it."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    @classmethod
    def made(cls, _, children):
        return cls(*children)


fnarray.tree_util.register_pytree_node(_Pair, lambda p: ((p.a, p.b), None), _Pair.made)


def test_what_makes_a_node_may_be_a_method_of_its_class():
    """To ask what makes it leads back to the class: it is asked once."""
    check(lambda x: _Pair(x, x).a)
