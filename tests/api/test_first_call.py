"""``config.first_call = "evaluate"``: the first result does not wait, and is the same."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray.compile import pipeline
from fnarray.config import scoped
from fnarray.runtime import meanwhile

pytestmark = pytest.mark.cpu


@pytest.fixture(autouse=True)
def evaluating():
    """Evaluate first calls, and leave no thread behind."""
    with scoped("first_call", "evaluate"):
        yield
    meanwhile.wait()


@pytest.fixture
def gate(monkeypatch):
    """An event that compilation waits for."""
    opened = threading.Event()
    load = pipeline.Executable.load

    def later(self):
        assert opened.wait(10)
        return load(self)

    monkeypatch.setattr(pipeline.Executable, "load", later)
    yield opened
    opened.set()
    meanwhile.wait()


def program(x, y):
    z = fnp.tanh(x @ y) + fa.jit(fnp.sin)(x)
    return {"z": z, "first": z[0], "same": x, "sum": z.sum(), "seven": 7}


X = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)


def test_the_first_call_is_evaluated_and_later_ones_are_compiled(gate):
    """Both give the same, within the dtype's tolerance, in fresh arrays."""
    f = fa.jit(program)
    first = f(X, X.T)
    again = f(X, X.T)
    gate.set()
    meanwhile.wait()
    compiled = f(X, X.T)
    with scoped("first_call", "wait"):
        waited = fa.jit(lambda x, y: program(x, y))(X, X.T)
    for name, want in waited.items():
        for got in (first, again, compiled):
            assert got[name].dtype == want.dtype
            assert got[name].shape == want.shape
            np.testing.assert_allclose(got[name], want, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(compiled[name], want)
    assert not np.shares_memory(np.asarray(first["z"]), np.asarray(first["first"]))


def test_gradients_are_evaluated(gate):
    """Calls of functions with rules of their own are evaluated as well."""

    def loss(x):
        return fa.nn.relu(fnp.logaddexp(x, 0.5)).sum()

    got = fa.jit(fa.grad(loss))(X)
    gate.set()
    meanwhile.wait()
    np.testing.assert_allclose(got, fa.grad(loss)(X), rtol=1e-6)


def test_errors_of_the_compiler_are_raised_by_the_next_call(monkeypatch):
    """The first call had its result; the next tells, and the one after that tries again."""
    load, tries, answered = pipeline.Executable.load, [], threading.Event()

    def fail(self):
        tries.append(self)
        if len(tries) == 1:
            assert answered.wait(10)
            raise RuntimeError("no compiler today")
        return load(self)

    monkeypatch.setattr(pipeline.Executable, "load", fail)
    f = fa.jit(lambda x: x * 3)
    np.testing.assert_array_equal(f(X), X * 3)
    answered.set()
    meanwhile.wait()
    with pytest.raises(RuntimeError, match="no compiler today"):
        f(X)
    np.testing.assert_array_equal(f(X), X * 3)
    assert len(tries) == 2


def test_effects_happen_once():
    """A program that acts is not evaluated: its first call waits."""
    seen = []

    def f(x):
        fa.debug.callback(lambda v: seen.append(float(v)), x[0, 0])
        return x + 1

    np.testing.assert_array_equal(fa.jit(f)(X), X + 1)
    assert seen == [-1.0]
    assert not meanwhile._pending


def test_loops_wait():
    """Their turns are not evaluated."""
    f = fa.jit(lambda x: fa.lax.fori_loop(0, 3, lambda i, c: c + i, x))
    np.testing.assert_array_equal(f(X), X + 3)
    assert not meanwhile._pending


def test_compiling_ahead_waits(gate):
    """Whoever asks for a compiled program gets one."""
    gate.set()
    compiled = fa.jit(lambda x: x - 1).lower(X).compile()
    assert not meanwhile._pending
    np.testing.assert_array_equal(compiled(X), X - 1)


def test_nans_are_found_by_the_evaluator(gate):
    """Checks of results do not depend on who computes them."""
    with fa.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        fa.jit(lambda x: fnp.log(x) * 0)(X)


def test_settings_of_the_caller_hold_on_the_thread(gate):
    """What a thread has set for itself is set where its programs are compiled."""
    with fa.enable_x64(True):
        f = fa.jit(lambda x: x / 3)
        first = f(np.float64(1))
        gate.set()
        meanwhile.wait()
        assert f(np.float64(1)).dtype == first.dtype == np.float64


def test_the_end_of_the_process_waits(tmp_path):
    """A process that ends while its program is compiled ends well."""
    code = (
        "import numpy as np, fnarray as fa, fnarray.numpy as fnp\n"
        "print(fa.jit(lambda x: fnp.sum(fnp.tanh(x) * fnp.exp(x)))(np.zeros(4, np.float32)))"
    )
    env = {**os.environ, "FNARRAY_FIRST_CALL": "evaluate", "FNARRAY_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "0.0", "")


# A process of its own forks: a test worker's memory may be more than the machine can promise twice.
FORKED = """
import os, threading, time
import numpy as np
import fnarray as fa
from fnarray.compile import pipeline
gate, load = threading.Event(), pipeline.Executable.load
def later(self):
    gate.wait()
    return load(self)
pipeline.Executable.load = later
f = fa.jit(lambda x: x * 5)
x = np.ones(3)
f(x)
threading.Timer(0.05, gate.set).start()
child = os.fork()
assert (np.asarray(f(x)) == 5).all()
if child:
    _, status = os.wait()
    print("status", status)
"""


def test_a_fork_waits(tmp_path):
    """A child has no thread that compiles: it finds programs compiled."""
    env = {**os.environ, "FNARRAY_FIRST_CALL": "evaluate", "FNARRAY_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FORKED], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "status 0\n", "")


def test_no_library_is_imported_to_evaluate(tmp_path):
    """What evaluation would take from SciPy waits for the compiler, which is sooner there."""
    code = (
        "import sys, numpy as np, fnarray as fa, fnarray.numpy as fnp\n"
        "from fnarray.runtime import meanwhile\n"
        "f = fa.jit(lambda x: fnp.abs(fnp.fft.fft(x + 1))[0])\n"
        "print(f(np.zeros(8192, np.float32)), bool(meanwhile._pending), 'scipy' in sys.modules)"
    )
    env = {**os.environ, "FNARRAY_FIRST_CALL": "evaluate", "FNARRAY_CACHE_DIR": str(tmp_path)}
    env["FNARRAY_COMPILER"] = "native"  # Numba imports SciPy itself
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    want = "8192.0 False False"
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, want, "")


def test_evaluation_ends_once_the_program_is_compiled(monkeypatch):
    """What is compiled meanwhile computes the result in place of the operations that are left."""
    monkeypatch.setattr(meanwhile, "ALONE", 0.0)
    left, stepwise = [], meanwhile.stepwise

    def slowly(graph, args):
        steps = stepwise(graph, args)
        yield next(steps)
        meanwhile.wait()
        left.append(graph)
        yield next(steps)
        raise AssertionError("evaluated on")

    monkeypatch.setattr(meanwhile, "stepwise", slowly)
    got = fa.jit(lambda x: (x * 2 + 1) * 3)(X)
    np.testing.assert_allclose(got, (X * 2 + 1) * 3, rtol=1e-6)
    assert len(left) == 1


def test_the_first_evaluation_has_the_interpreter_for_itself(monkeypatch):
    """Compilation begins once the first call has answered."""
    order = []
    load, evaluate = pipeline.Executable.load, meanwhile.evaluate

    def loading(self):
        order.append("compiled")
        return load(self)

    def evaluating(*args):
        found = evaluate(*args)
        order.append("evaluated")
        return found

    monkeypatch.setattr(pipeline.Executable, "load", loading)
    monkeypatch.setattr(meanwhile, "evaluate", evaluating)
    monkeypatch.setattr(meanwhile, "ALONE", 30.0)
    fa.jit(lambda x: fnp.tanh(x) - x)(X)
    meanwhile.wait()
    assert order == ["evaluated", "compiled"]
