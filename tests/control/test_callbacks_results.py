"""Callbacks that compute or act: what they return, how often they are called, what goes wrong."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import traceback

import numpy as np
import pytest

import fnarray
from fnarray import debug, io_callback, lax, pure_callback
from fnarray import numpy as fnp
from fnarray.errors import JaxRuntimeError, UnsupportedOnTarget

ONES = np.ones(3, np.float32)
ONES.flags.writeable = False
S = np.float32(1.5)

# ---- pure_callback and io_callback ---------------------------------------------------------------


def tree_result(m, x):
    def host(a, b, *, c):
        return {"a": a + b["y"] + c, "b": (np.int32(3), np.asarray(a) > 1)}

    def like(kind):
        return np.empty((), kind)

    promised = {"a": x, "b": (like(np.int32), np.empty(3, bool))}
    return m.pure_callback(host, promised, x, {"y": x * 2}, c=S)


def in_a_loop(m, x):
    def body(i, c):
        return m.pure_callback(lambda c, i: np.asarray(c) * (np.asarray(i) + 1), c, c, i)

    return m.lax.fori_loop(0, 4, body, x)


def io_result(m, x):
    return m.io_callback(lambda a: np.asarray(a)[::-1], x, x, ordered=True) * 2


def as_a_condition(m, x):
    def go_on(c):
        return m.pure_callback(lambda c: np.asarray(c).sum() < 40, np.empty((), bool), c)

    return m.lax.while_loop(go_on, lambda c: c * 2, x)


def nothing_promised(m, x):
    return m.io_callback(lambda a: None, None, x), m.pure_callback(lambda: (), ())


def strided_and_empty(m, x):
    y = m.pure_callback(
        lambda a: np.asarray(a).T, np.empty((3, 2), np.float32), m.numpy.stack([x, x])
    )
    return y, m.pure_callback(lambda a: a, np.empty((0, 2), np.float32), y[:0])


def jit_inside(m, x):
    return m.pure_callback(m.jit(lambda a: m.numpy.cumsum(a)), x, x)


COMPUTING = (
    tree_result, in_a_loop, io_result, as_a_condition, nothing_promised, strided_and_empty,
    jit_inside,
)  # fmt: skip


@pytest.mark.parametrize("program", COMPUTING, ids=lambda f: f.__name__)
def test_computes_what_jax_computes(oracle, program):
    """Results and dtypes are JAX's, eagerly and compiled."""
    want = repr(oracle.jit(lambda x: program(oracle, x))(ONES))
    assert repr(fnarray.jit(lambda x: program(fnarray, x))(ONES)) == want
    assert repr(program(fnarray, fnp.asarray(ONES))) == want


def test_pure_callbacks_may_be_merged_and_dropped():
    """Equal calls of one function are made once, unread ones never; another function's stay."""
    calls = []

    def one(x):
        calls.append("one")
        return np.asarray(x)

    def two(x):
        calls.append("two")
        return np.asarray(x)

    @fnarray.jit
    def f(x):
        pure_callback(one, x, x + 1)
        return pure_callback(one, x, x) + pure_callback(one, x, x) + pure_callback(two, x, x)

    assert f(ONES).tolist() == [3, 3, 3]
    assert sorted(calls) == ["one", "two"]


def test_io_callbacks_are_all_made():
    """Equal and unread ones too."""
    calls = []

    @fnarray.jit
    def f(x):
        for _ in range(3):
            io_callback(lambda a: calls.append(float(a)), None, x)
        return io_callback(count, x, x) + io_callback(count, x, x)

    def count(a):
        calls.append(float(a))
        return np.float32(len(calls))

    assert (float(f(S)), calls) == (9.0, [1.5] * 5)


def test_equal_functions_are_not_the_same_function():
    """Functions that compare equal are kept apart; a bound method is itself."""

    class Scale:
        def __init__(self, k):
            self.k = k

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

        def __call__(self, x):
            return np.asarray(x) * np.float32(self.k)

        def method(self, x):
            return self(x)

    a, b = Scale(2), Scale(3)

    @fnarray.jit
    def f(x):
        one, two = pure_callback(a, x, x), pure_callback(b, x, x)
        return one, two, pure_callback(a.method, x, x), pure_callback(a.method, x, x)

    assert [float(y) for y in f(S)] == [3.0, 4.5, 3.0, 3.0]
    assert str(f.lower(S).as_text()).count("pure_callback (host)") == 3
    # Programs that differ in nothing else are two programs.
    apart = [fnarray.jit(lambda x, s=s: pure_callback(s, x, x)) for s in (a, b)]
    assert [float(g(S)) for g in apart] == [3.0, 4.5]


@pytest.mark.parametrize("how", ["eager", "jit"])
def test_arrays_handed_over_are_copies(how):
    """What a callback keeps does not change, and what it returns stays its own."""
    kept, own = [], np.ones(3, np.float32)

    def f(x):
        y = x.at[0].set(5)
        debug.callback(kept.append, y)
        y = lax.fori_loop(0, 3, lambda i, c: c.at[i].add(1), y)
        z = pure_callback(lambda: own, y)
        return y.at[1].set(7), z.at[0].set(9)

    x = np.zeros(3, np.float32)
    (fnarray.jit(f) if how == "jit" else f)(fnp.asarray(x))
    assert kept[0].tolist() == [5, 0, 0]
    assert own.tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="immutable"):
        kept[0][0] = 1


def test_loops_run_from_python_own_their_results():
    """After no turns, or where a value is given twice, results can still be written over."""

    @fnarray.jit
    def f(x, n):
        def body(c):
            debug.callback(lambda: None)
            return c[0] + 1, c[1], c[1]

        _, a, b = lax.while_loop(lambda c: c[0] < n, body, (0, x * 1, x * 1))
        return a.at[0].set(9), b

    for turns in (0, 2):
        a, b = f(ONES, turns)
        assert (a.tolist(), b.tolist()) == ([9, 1, 1], [1, 1, 1])
    assert ONES.tolist() == [1, 1, 1]


def test_programs_with_callbacks_are_not_pickled():
    """The error says why."""
    graph = fnarray.make_jaxpr(lambda x: pure_callback(np.sin, x, x))(S)
    with pytest.raises(TypeError, match=r"'sin'.*cannot be pickled"):
        pickle.dumps(graph.eqns[0].params["callback"])


# ---- errors --------------------------------------------------------------------------------------

WRONG_RESULTS = (
    (lambda x: np.ones(2, np.float32), S, r"float32\[\], but got float32\[2\]"),
    (lambda x: np.int32(1), S, r"float32\[\], but got int32\[\]"),
    (lambda x: 1.0, np.float16(0), r"float16\[\], but got float32\[\]"),
    (lambda x: "text", S, r"float32\[\], but got 'text'"),
    (lambda x: {"a": x, "b": 1}, {"a": S, "b": S}, r"float32\[\] at \['b'\], but got int32"),
    (lambda x: (x, x), S, r"1 arrays.*but got 2, as PyTreeDef\(\(\*, \*\)\)"),
    (lambda x: x, None, "promises 0 arrays"),
)


@pytest.mark.parametrize(("host", "promised", "text"), WRONG_RESULTS)
@pytest.mark.parametrize("call", [pure_callback, io_callback])
@pytest.mark.parametrize("jit", [False, True])
def test_broken_promises(host, promised, text, call, jit):
    """A result of another shape, dtype or structure is an error that names both, and the line."""

    def f(x):
        return call(host, promised, x), x  # this line

    with pytest.raises(JaxRuntimeError, match=text) as caught:
        (fnarray.jit(lambda x: (f(x), 0)[0]) if jit else f)(S)
        if call is pure_callback and promised is None:  # nobody reads nothing
            f(S)
    assert "# this line" in str(caught.value)


@pytest.mark.parametrize("call", ["pure", "io", "debug"])
def test_exceptions_reach_the_caller(call):
    """As the program's, from the callback's own, with the line that called it; all goes on."""

    def fails(x):
        raise LookupError(f"no {x}")

    def f(x):
        if call == "debug":
            debug.callback(fails, x)
        else:
            x = (pure_callback if call == "pure" else io_callback)(fails, x, x)
        return x

    for run in (f, fnarray.jit(f), lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x)):
        eager = run is f and call == "debug"  # no program is there to fail
        with pytest.raises(LookupError if eager else JaxRuntimeError, match=r"no 1\.5") as caught:
            run(S)
        cause = caught.value if eager else caught.value.__cause__
        assert type(cause) is LookupError
        assert traceback.extract_tb(cause.__traceback__)[-1].name == "fails"
        if not eager:
            assert re.search(r"fails .*called at .*test_callbacks_results\.py", str(caught.value))
    assert float(fnp.sin(S)) == pytest.approx(np.sin(1.5))


def test_reductions_cannot_call_back():
    """Its function runs inside the loop: one that calls Python is rejected by name and line."""

    def add(a, b):
        debug.print("{}", a)
        return a + b

    with pytest.raises(UnsupportedOnTarget, match=r"debug_print at .*test_callbacks.*reduction"):
        fnarray.jit(lambda x: lax.reduce(x, np.float32(0), add, (0,)))(ONES)


def test_debug_nans_repeats_no_action(capsys):
    """The search for the first NaN calls nothing again."""
    calls = []

    @fnarray.jit
    def f(x):
        debug.print("x {}", x)
        return fnp.log(x)

    @fnarray.jit
    def g(x):
        return fnp.log(io_callback(lambda a: (calls.append(1), a)[1], x, x))

    with fnarray.debug_nans(True):
        with pytest.raises(FloatingPointError, match="in log"):
            f(-S)
        with pytest.raises(FloatingPointError):
            g(-S)
    assert capsys.readouterr().out == "x -1.5\n"
    assert calls == [1]


# ---- as text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.pure_callback(np.sin, x, x),
        lambda m, x: m.pure_callback(np.sin, x, x, vmap_method="expand_dims"),
        lambda m, x: m.pure_callback(np.add, {"a": x}, x, (x, 2.0)),
        lambda m, x: m.io_callback(np.sin, x, x, ordered=True),
    ],
)
def test_callbacks_are_spelled_as_in_jax(oracle, call):
    """Printed graphs agree, names of functions included."""
    texts = [str(m.make_jaxpr(lambda x, m=m: call(m, x))(S)) for m in (oracle, fnarray)]
    assert texts[1] == texts[0]


# ---- the cache on disk ---------------------------------------------------------------------------

PROCESS = """
import sys
import fnarray, numpy as np
from fnarray import debug, lax, numpy as fnp, pure_callback

word, factor = sys.argv[1], float(sys.argv[2])

def host(x):
    return np.asarray(x) * np.float32(factor)

def show(x):
    print(word, float(x))

@fnarray.jit
def f(x):
    y = fnp.sin(x) * 2
    debug.callback(show, y.sum())
    return lax.fori_loop(0, 2, lambda i, c: pure_callback(host, c, c) + 1, y)

print(f(np.zeros(3, np.float32)).tolist(), fnarray.cache_info()["compiled"])
"""


def test_no_callback_is_found_on_the_disk(cache_dir, tmp_path):
    """Two processes with functions of the same names share kernels, and call each its own."""
    script = tmp_path / "script.py"
    script.write_text(PROCESS)
    outs = [
        subprocess.run(
            [sys.executable, script, *words],
            capture_output=True, text=True, check=True, env=dict(os.environ), timeout=600,
        ).stdout.splitlines()
        for words in (("first", "2"), ("second", "3"))
    ]  # fmt: skip
    (said, (values, compiled)), (said_then, (values_then, compiled_then)) = (
        (lines[0], lines[1].rsplit(" ", 1)) for lines in outs
    )
    assert (said, said_then) == ("first 0.0", "second 0.0")
    assert (values, values_then) == ("[3.0, 3.0, 3.0]", "[4.0, 4.0, 4.0]")
    assert (int(compiled) > 0, int(compiled_then)) == (True, 0)
