"""Compiled programs print, and call Python, when and as often as JAX's do."""

from __future__ import annotations

import bdb
import functools
import io
import sys

import numpy as np
import pytest

import fnarray
from fnarray import debug, io_callback, lax, pure_callback
from fnarray import numpy as fnp
from fnarray.config import effects
from fnarray.purity import check

ONES = np.ones(3, np.float32)
ROWS = np.arange(4, dtype=np.float32)
ONES.flags.writeable = ROWS.flags.writeable = False
S = np.float32(1.5)

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


# ---- what is printed -----------------------------------------------------------------------------


def straight(m, x):
    m.debug.print("x {}", x, ordered=True)
    m.debug.print("x {}", x, ordered=True)
    y = m.numpy.sin(x) * 2
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

    return m.lax.scan(body, x, m.numpy.asarray(ROWS), reverse=True)


def nested_loops(m, x):
    def inner(j, c):
        m.debug.print("{}", c, ordered=True)
        return c + 1

    return m.lax.fori_loop(0, 2, lambda i, c: m.lax.fori_loop(0, i + 1, inner, c * 10), x)


def chosen(m, x):
    def say(text):
        return lambda: m.debug.print(text, ordered=True)

    for k in (2, -1, 7, 1):
        m.lax.switch(m.numpy.int32(k) + m.numpy.int32(x * 0), [say("zero"), say("one"), say("two")])
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
    m.debug.print("{}", m.numpy.ones(4) / 3, ordered=True)
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
    for m, into in ((oracle, want), (fnarray, got)):
        run = functools.partial(program, m)
        if how == "jit":
            run = m.jit(run)
        for x in (S, np.float32(2)):  # the second call runs from the cache
            into.append(repr(run(x)))
            m.effects_barrier()
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


# ---- as text -------------------------------------------------------------------------------------

SPELLED = (straight, counted, branches_in_scan, nested_calls, kinds_of_values)


@pytest.mark.parametrize("program", SPELLED, ids=lambda f: f.__name__)
def test_print_is_spelled_as_in_jax(oracle, program):
    """Printed graphs agree."""
    texts = [str(m.make_jaxpr(functools.partial(program, m))(S)) for m in (oracle, fnarray)]
    if program is not kinds_of_values:
        assert texts[1] == texts[0]
    else:
        assert texts[1].count("debug_print[") == texts[0].count("debug_print[")
