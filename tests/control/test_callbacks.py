"""Compiled programs call Python when and as often as the same program op by op, and as JAX does."""

from __future__ import annotations

import bdb
import functools
import io
import os
import pickle
import subprocess
import sys
import traceback

import numpy as np
import pytest

import fnarray
from fnarray import debug, io_callback, lax, pure_callback
from fnarray import numpy as fnp
from fnarray.config import effects
from fnarray.errors import JaxRuntimeError, UnsupportedOnTarget
from fnarray.purity import check

ONES = np.ones(3, np.float32)
ROWS = np.arange(4, dtype=np.float32)
S = np.float32(1.5)


class Fnarray:
    """The names that programs below use; `Jax` has the same ones of JAX."""

    lax, np, debug, jit = lax, fnp, debug, fnarray.jit
    pure_callback, io_callback = staticmethod(pure_callback), staticmethod(io_callback)
    make_jaxpr, barrier = fnarray.make_jaxpr, staticmethod(lambda: None)


@pytest.fixture(scope="module")
def oracle():
    """Give JAX under the names of `Fnarray`."""
    import jax
    import jax.numpy
    from jax.experimental import io_callback

    class Jax:
        lax, np, debug, jit = jax.lax, jax.numpy, jax.debug, jax.jit
        make_jaxpr, barrier = jax.make_jaxpr, staticmethod(jax.effects_barrier)

    Jax.pure_callback, Jax.io_callback = staticmethod(jax.pure_callback), staticmethod(io_callback)
    return Jax


# ---- purity --------------------------------------------------------------------------------------

COUNTS: list = []


def lambda_in_io(x):
    return io_callback(lambda a: (COUNTS.append(a), a)[1], x, x)


def inner_function(x):
    def note(a):
        COUNTS.append(a)
        print(a)

    debug.callback(note, x)


def two_steps(x):
    def note(a):
        COUNTS.append(a)

    debug.callback(ordered=True)(note, x)
    debug.print(ordered=True)("x {}", x)


def bound_method(x):
    debug.callback(COUNTS.append, x)


def partly_applied(x):
    def note(k, a):
        COUNTS.append((k, a))

    debug.callback(functools.partial(note, "k"), x)


def random_on_the_host(x):
    return pure_callback(lambda a: np.float32(np.random.rand()), x, x)  # noqa: NPY002


def calls_it_too(x):
    def note(a):
        COUNTS.append(a)

    debug.callback(note, x)
    note(x)


def reads_for_print(x):
    debug.print("{} {}", COUNTS, x)


PURE = (
    lambda_in_io, inner_function, two_steps, bound_method, partly_applied, random_on_the_host,
)  # fmt: skip


@pytest.mark.parametrize("function", PURE, ids=lambda f: f.__name__)
def test_what_runs_on_the_host_may_be_impure(function):
    """The checker does not look into what is handed to a callback."""
    assert check(function) == []


@pytest.mark.parametrize("function", [calls_it_too, reads_for_print], ids=lambda f: f.__name__)
def test_what_runs_while_tracing_may_not(function):
    """Calling the same function directly, or reading a list for it, is found as ever."""
    (finding,) = check(function)
    assert "COUNTS" in finding.message


# ---- what is printed -----------------------------------------------------------------------------


def straight(m, x):
    m.debug.print("x {}", x, ordered=True)
    m.debug.print("x {}", x, ordered=True)
    y = m.np.sin(x) * 2
    m.debug.print("{y} after {0:.3f}", x, y=y, ordered=True)
    m.debug.print("no fields", ordered=True)
    return y + 1


def counted(m, x):
    def body(i, c):
        m.debug.print("turn {} of {c}", i, c=c, ordered=True)
        return c * 2

    return m.lax.fori_loop(0, 3, body, x)


def until(m, x):
    def body(c):
        m.debug.print("body {}", c, ordered=True)
        return c + 1

    return m.lax.while_loop(lambda c: c < 4, body, x)


def branches_in_scan(m, x):
    def body(c, row):
        def big():
            m.debug.print("big {}", row, ordered=True)
            return row

        def small():
            m.debug.print("small {}", row, ordered=True)
            return -row

        return c + m.lax.cond(row > 1.5, big, small), c

    return m.lax.scan(body, x, m.np.asarray(ROWS), reverse=True)


def nested_loops(m, x):
    def inner(j, c):
        m.debug.print("{}", c, ordered=True)
        return c + 1

    return m.lax.fori_loop(0, 2, lambda i, c: m.lax.fori_loop(0, i + 1, inner, c * 10), x)


def chosen(m, x):
    def say(text):
        return lambda: m.debug.print(text, ordered=True)

    for k in (2, -1, 7, 1):
        m.lax.switch(m.np.int32(k) + m.np.int32(x * 0), [say("zero"), say("one"), say("two")])
    return x


def nested_calls(m, x):
    @m.jit
    def loud(y):
        m.debug.print("in {}", y, ordered=True)

    loud(x)
    loud(x)  # equal, and yet to be printed twice
    return x


def nothing_else(m, x):
    m.lax.fori_loop(0, 2, lambda i, c: m.debug.print("i {}", i, ordered=True), None)
    m.lax.fori_loop(0, 2, lambda i, c: m.debug.print("i {}", i, ordered=True), None)


def kinds_of_values(m, x):
    m.debug.print("{} {} {}", {"a": x, "b": (1, 2.5)}, "text", None, ordered=True)
    m.debug.print("{x.shape} {l[1]:>5}|{0!s}", 3, x=x, l=[1, 2], ordered=True)
    m.debug.print("{}", m.np.ones(4) / 3, ordered=True)
    m.debug.print("{:d} {:e} {:5.2f}", 3, 4.0, x, ordered=True)
    m.debug.print(ordered=True)("in two steps {}", x)


def by_callback(m, x):
    def show(a, *, name, b):
        print(name, np.asarray(a), b)

    m.debug.callback(show, x, name="first", b=[x, 2], ordered=True)
    m.debug.callback(ordered=True)(show, x + 1, name="second", b=None)
    return x


PRINTING = (
    straight, counted, until, branches_in_scan, nested_loops, chosen, nested_calls, nothing_else,
    kinds_of_values, by_callback,
)  # fmt: skip


@pytest.mark.parametrize("program", PRINTING, ids=lambda f: f.__name__)
@pytest.mark.parametrize("how", ["jit", "eager"])
def test_prints_what_jax_prints(oracle, capsys, program, how):
    """The same lines in the same order, and the same result."""
    got, want = [], []
    for m, into in ((oracle, want), (Fnarray, got)):
        run = m.jit(lambda x, m=m: program(m, x)) if how == "jit" else lambda x, m=m: program(m, x)
        for x in (S, np.float32(2)):  # the second call runs from the cache
            into.append(repr(run(x)))
            m.barrier()
        into.append(capsys.readouterr().out)
        into[:] = [text.replace(", weak_type=True", "") for text in into]
    assert got == want
    assert want[-1]


def test_prints_without_ordered():
    """Unordered callbacks keep the order of the program too, among each other and with others."""
    seen = []

    @fnarray.jit
    def f(x):
        debug.callback(seen.append, x)
        y = io_callback(lambda a: (seen.append(a), a)[1], x, x + 1)
        debug.callback(seen.append, y * 2, ordered=True)
        lax.cond(x > 0, lambda: debug.callback(seen.append, x), lambda: None)
        debug.callback(seen.append, x + 5)
        return x

    f(S)
    assert [float(v) for v in seen] == [1.5, 2.5, 5.0, 1.5, 6.5]


def test_printoptions_are_those_of_the_print(capsys):
    """NumPy's options where the print is written hold when it runs."""
    with np.printoptions(precision=2):
        f = fnarray.jit(lambda x: debug.print("{}", x)).lower(ONES).compile()
    f(ONES / 3)
    assert capsys.readouterr().out == "[0.33 0.33 0.33]\n"


@pytest.mark.parametrize("loop", [False, True])
def test_callbacks_run_in_the_callers_context(capsys, loop):
    """Context variables, NumPy's settings among them, are the caller's; the loop is eager."""

    def show(x):
        print(x, np.geterr()["divide"])
        fnp.log(x - x)  # operations inside stay quiet

    def f(i, x):
        debug.callback(show, x)
        return x

    with np.printoptions(precision=2), np.errstate(divide="raise"):
        lax.fori_loop(0, 1, f, ONES / 3) if loop else f(0, ONES / 3)
    assert capsys.readouterr().out == "[0.33 0.33 0.33] raise\n"


def test_breakpoint_shows_values(capsys, monkeypatch):
    """The debugger stands at the user's line, with the values of the run; ``q`` stops it."""

    @fnarray.jit
    def f(x):
        y = x + 1
        debug.breakpoint()  # here
        return y

    monkeypatch.setattr(sys, "stdin", io.StringIO("p float(y), S\nc\nq\n"))
    assert float(f(S)) == 2.5
    out = capsys.readouterr().out
    assert "test_callbacks.py(" in out
    assert "debug.breakpoint()  # here" in out
    assert "(2.5, np.float32(1.5))" in out
    with pytest.raises(bdb.BdbQuit):
        f(S)


def test_log_goes_to_the_logger(caplog):
    """``debug.log`` makes a log record at the user's line."""
    with caplog.at_level("INFO", logger="fnarray.debug"):
        fnarray.jit(lambda x: debug.log("x {}", x))(S)
    (record,) = caplog.records
    assert record.getMessage() == "x 1.5"
    assert record.pathname == __file__


BAD_FORMATS = (
    (lambda: debug.print("{} {}", 1), IndexError, "index"),
    (lambda: debug.print("{a}", b=1), KeyError, "a"),
    (lambda: debug.print("{}", 1, 2), ValueError, r"unused positional arguments \[2\]"),
    (lambda: debug.print("1.5", x=1), ValueError, "f-string"),
    (lambda: debug.print(3), TypeError, "format must be a string, got 3"),
    (lambda: debug.print(None, 1), TypeError, "two steps"),
    (lambda: debug.callback(3, 1), TypeError, "callable, got 3"),
    (lambda: debug.callback(ordered=True, x=1), TypeError, "two steps"),
    (lambda: pure_callback(3, S, S), TypeError, "callable, got 3"),
    (lambda: pure_callback(np.sin, 1.0, S), TypeError, "must have a shape and a dtype, got 1.0"),
    (lambda: pure_callback(np.sin, {"a": S, "b": "c"}, S), TypeError, r"\['b'\].*got 'c'"),
    (lambda: pure_callback(np.sin, S, [S, "s"]), TypeError, r"'s'.*at \[0\]\[1\]"),
    (lambda: pure_callback(np.sin, np.ones(2), S), ValueError, "64-bit dtype float64"),
    (lambda: pure_callback(np.sin, S, S, vmap_method="fast"), ValueError, "'sequential'.*'fast'"),
)


@pytest.mark.parametrize(("call", "error", "text"), BAD_FORMATS)
@pytest.mark.parametrize("jit", [False, True])
def test_rejects(call, error, text, jit):
    """Arguments that do not fit are rejected where they are written, not when the program runs."""
    with pytest.raises(error, match=text):
        fnarray.jit(call).lower() if jit else call()


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
    y = m.pure_callback(lambda a: np.asarray(a).T, np.empty((3, 2), np.float32), m.np.stack([x, x]))
    return y, m.pure_callback(lambda a: a, np.empty((0, 2), np.float32), y[:0])


def jit_inside(m, x):
    return m.pure_callback(m.jit(lambda a: m.np.cumsum(a)), x, x)


COMPUTING = (
    tree_result, in_a_loop, io_result, as_a_condition, nothing_promised, strided_and_empty,
    jit_inside,
)  # fmt: skip


@pytest.mark.parametrize("program", COMPUTING, ids=lambda f: f.__name__)
def test_computes_what_jax_computes(oracle, program):
    """Results and dtypes are JAX's, eagerly and compiled."""
    want = repr(oracle.jit(lambda x: program(oracle, x))(ONES))
    assert repr(fnarray.jit(lambda x: program(Fnarray, x))(ONES)) == want
    assert repr(program(Fnarray, fnp.asarray(ONES))) == want


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


def test_a_rebound_function_is_the_new_one():
    """Rebinding a name is seen by the next call; what a callback reads, it reads at run time."""
    said = []
    scale = [2]

    def old(x):
        said.append(float(x) * scale[0])

    def new(x):
        said.append("new")

    show = old

    @fnarray.jit
    def f(x):
        debug.callback(show, x)
        return x

    with effects("error"):
        f(S)
        scale[0] = 3
        f(S)
        show = new
        f(S)
    assert said == [3.0, 4.5, "new"]


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
    """With type, traceback into the callback, and the line that called it; then all goes on."""

    def fails(x):
        raise LookupError(f"no {x}")

    def f(x):
        if call == "debug":
            debug.callback(fails, x)
        else:
            x = (pure_callback if call == "pure" else io_callback)(fails, x, x)
        return x

    for run in (f, fnarray.jit(f), lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x)):
        with pytest.raises(LookupError, match=r"no 1\.5") as caught:
            run(S)
        assert traceback.extract_tb(caught.tb)[-1].name == "fails"
        assert "Raised by the callback" in caught.value.__notes__[0]
        assert "test_callbacks.py" in caught.value.__notes__[0]
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

SPELLED = (straight, counted, branches_in_scan, nested_calls, kinds_of_values)


@pytest.mark.parametrize("program", SPELLED, ids=lambda f: f.__name__)
def test_print_is_spelled_as_in_jax(oracle, program):
    """Printed graphs agree."""
    texts = [str(m.make_jaxpr(lambda x, m=m: program(m, x))(S)) for m in (oracle, Fnarray)]
    if program is not kinds_of_values:
        assert texts[1] == texts[0]
    else:
        assert texts[1].count("debug_print[") == texts[0].count("debug_print[")


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
    texts = [str(m.make_jaxpr(lambda x, m=m: call(m, x))(S)) for m in (oracle, Fnarray)]
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
            capture_output=True, text=True, check=True, env=dict(os.environ), timeout=120,
        ).stdout.splitlines()
        for words in (("first", "2"), ("second", "3"))
    ]  # fmt: skip
    (said, (values, compiled)), (said_then, (values_then, compiled_then)) = (
        (lines[0], lines[1].rsplit(" ", 1)) for lines in outs
    )
    assert (said, said_then) == ("first 0.0", "second 0.0")
    assert (values, values_then) == ("[3.0, 3.0, 3.0]", "[4.0, 4.0, 4.0]")
    assert (int(compiled) > 0, int(compiled_then)) == (True, 0)
