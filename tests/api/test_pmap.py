"""``pmap``: examples on devices of their own, at the same time, and what happens when one fails."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fnarray as fa
import fnarray.numpy as fnp
from fnarray import lax
from fnarray.config import scoped
from fnarray.errors import JaxRuntimeError

from .mapped_cases import CASES, argument

X = np.arange(4.0, dtype=np.float32)
#: How long what never ends is given: no machine is so busy that what does end takes as long.
PATIENCE = 600


@pytest.fixture(autouse=True)
def eight_devices():
    """Give every test eight devices, more than there are cores."""
    with scoped("num_cpu_devices", 8):
        yield


def within_time(fun):
    """Call a function on a thread, and fail if it does not end; return its result or error."""
    outcome = []

    def run():
        with scoped("num_cpu_devices", 8), scoped("effects", "off"):
            try:
                outcome.append(fun())
            except BaseException as error:
                outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert outcome, "deadlock"
    return outcome[0]


# ---- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_jax(name, oracle):
    """What devices exchange is what JAX's devices exchange."""
    shape, make = CASES[name]
    got = fa.tree.leaves(fa.pmap(make(fa), axis_name="i")(argument(shape)))
    assert len(got) == len(oracle[name])
    for a, b in zip(got, oracle[name], strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=3e-6, atol=1e-6)


def step(x, w):
    """Return a function of an example that mixes it with the others'."""
    return fnp.sin(x * w) * lax.pmean(x, "i") + lax.psum(w * x, "i")


A = np.linspace(-1, 2, 12, dtype=np.float32).reshape(4, 3)
B = np.linspace(0.5, 1.5, 24, dtype=np.float32).reshape(2, 4, 3)
NESTED = {
    "pmap": (lambda m: m(lambda x: step(x, 2.0)), A),
    "jit of pmap": (lambda m: fa.jit(m(lambda x: step(x, 2.0))), A),
    "pmap of jit": (lambda m: m(fa.jit(lambda x: step(x, 2.0))), A),
    "vmap of pmap": (lambda m: fa.vmap(m(lambda x: step(x, 2.0))), B),
    "vmap of pmap, unmapped": (
        lambda m: fa.vmap(m(step, in_axes=(0, None)), in_axes=(None, 0)),
        A,
        np.asarray([1.0, 2.0], np.float32),
    ),
    "pmap of vmap": (lambda m: m(fa.vmap(lambda x: step(x, 2.0))), A),
    "pmap of grad": (lambda m: m(fa.grad(lambda x: step(x, 2.0).sum())), A),
    "grad of pmap": (
        lambda m: fa.grad(lambda x, w: (m(step, in_axes=(0, None))(x, w) ** 2).sum(), (0, 1)),
        A,
        np.float32(0.7),
    ),
    "grad of jit of pmap": (
        lambda m: fa.grad(lambda x: (fa.jit(m(lambda v: step(v, 2.0)))(x) ** 2).sum()),
        A,
    ),
    "hessian of pmap": (lambda m: fa.hessian(lambda x: (m(lambda v: step(v, 2.0))(x)).sum()), A),
    "jvp of pmap": (lambda m: lambda x: fa.jvp(m(lambda v: step(v, 2.0)), (x,), (x * 2,)), A),
    "grad of pmap of scan": (
        lambda m: fa.grad(
            lambda x: m(lambda v: lax.scan(lambda c, r: (lax.pmean(c * r, "i"), None), v[0], v)[0])(
                x
            ).sum()
        ),
        A,
    ),
    "scan of pmap": (
        lambda m: (
            lambda x: lax.scan(lambda c, _: (m(lambda v: step(v, 0.5))(c), None), x, length=3)
        ),
        A,
    ),
    "closure over a tracer": (
        lambda m: fa.grad(lambda w: m(lambda x: step(x, w))(A).sum()),
        np.float32(0.3),
    ),
}


@pytest.mark.parametrize("name", NESTED)
def test_any_order_of_transforms(name):
    """A pmap in any stack of transforms gives what a vmap in its place does."""
    make, *args = NESTED[name]
    got = make(lambda f, **kw: fa.pmap(f, axis_name="i", **kw))(*args)
    wanted = make(lambda f, **kw: fa.vmap(f, axis_name="i", **kw))(*args)
    for a, b in zip(fa.tree.leaves(got), fa.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_nested():
    """A pmap in a pmap runs on the product of their devices; collectives reach across both."""
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)

    def inner(v):
        index = lax.axis_index(("i", "j"))
        return lax.psum(v, ("i", "j")), lax.psum(v, "i"), lax.psum(v, "j"), index

    both, rows, columns, index = fa.pmap(fa.pmap(inner, axis_name="j"), axis_name="i")(x)
    np.testing.assert_array_equal(both, np.full((2, 3), 15))
    np.testing.assert_array_equal(rows, np.tile(x.sum(0), (2, 1)))
    np.testing.assert_array_equal(columns, np.repeat(x.sum(1, keepdims=True), 3, 1))
    np.testing.assert_array_equal(index, np.arange(6).reshape(2, 3))


def test_axes_and_trees():
    """Axes are mapped as under vmap: trees, None, axes other than the first, keywords."""
    w = {"a": np.ones((3, 2), np.float32), "b": X}
    x = np.arange(8.0, dtype=np.float32).reshape(2, 4)

    def fun(w, x, *, scale):
        return {"y": w["a"] @ x + scale, "z": w["b"]}

    axes = {"in_axes": ({"a": None, "b": 0}, 1), "out_axes": {"y": 1, "z": None}}
    got = fa.pmap(fun, **axes)(w, x, scale=X)
    np.testing.assert_array_equal(got["y"], np.tile(x.sum(0) + X, (3, 1)))
    assert got["z"] == 0


def test_static_arguments():
    """Static arguments arrive as their values; each is traced apart."""
    f = fa.pmap(lambda x, n: x * n if n > 2 else x, static_broadcasted_argnums=1)
    np.testing.assert_array_equal(f(X, 3), 3 * X)
    np.testing.assert_array_equal(f(X, 1), X)
    with pytest.raises(ValueError, match=r"non-hashable static.*\[3\]"):
        f(X, [3])
    with pytest.raises(ValueError, match="only 1 positional"):
        f(X)


def test_placement():
    """Results are said to lie row by row on the devices."""
    y = fa.pmap(lambda x: x + 1, axis_name="i")(X)
    assert y.devices() == set(fa.devices()[:4])
    assert y.sharding.shard_shape(y.shape) == (1,)
    shards = y.addressable_shards
    assert [s.device for s in shards] == fa.devices()[:4]
    assert [float(s.data[0]) for s in shards] == [1, 2, 3, 4]
    assert repr(y) == "Array([1., 2., 3., 4.], dtype=float32)"
    chosen = fa.pmap(lambda x: x, devices=fa.devices()[4:])(X)
    assert chosen.devices() == set(fa.devices()[4:])


def test_arguments_are_not_copied():
    """Rows of a NumPy argument are views while the call lasts, and results never are."""
    x = np.zeros((4, 100_000), np.float32)
    y = fa.pmap(lambda v: v)(x)
    x[:] = 1
    assert not np.asarray(y).any()


# ---- how often, how fast -------------------------------------------------------------------------


def test_traced_once():
    """One trace serves all devices and all later calls; another shape is another trace."""
    count = []

    def f(x):
        count.append(1)
        return x * 2

    mapped = fa.pmap(f, axis_name="i")
    with scoped("effects", "off"):
        for _ in range(3):
            mapped(X)
        assert len(count) == 1
        mapped(X[:2])
    assert len(count) == 2


def test_disable_jit_runs_the_function_at_each_call():
    """Under ``disable_jit`` each call runs the function, and gives what the compiled one does."""
    count = []

    def f(a, b, n, *, k):
        count.append(1)
        return a * b + n * k, fa.lax.psum(a, "i"), 3.0

    layout = {"axis_name": "i", "in_axes": (0, None, None), "out_axes": (1, None, 0)}
    mapped = fa.pmap(f, static_broadcasted_argnums=2, **layout)
    a = np.arange(12, dtype=np.float32).reshape(4, 3)
    b = a[0]
    with scoped("effects", "off"):
        compiled = mapped(a, b, 2, k=a)
        assert len(count) == 1
        with scoped("disable_jit", True):
            for n in (2, 3):
                for got, expected in zip(mapped(a, b, 2, k=a), compiled, strict=True):
                    np.testing.assert_allclose(got, expected, rtol=1e-6)
                assert len(count) == n
    np.testing.assert_allclose(compiled[0], (a * b + 2 * a).swapaxes(0, 1), rtol=1e-6)
    np.testing.assert_allclose(compiled[1], a.sum(0), rtol=1e-6)


def test_what_knows_no_example_is_the_callers_under_disable_jit():
    """Values kept of a run are no tracers of the map, as under JAX: Haiku keeps parameters so."""
    kept = []

    def f(x):
        kept.append(fa.numpy.ones(3) * 2)
        return x * kept[-1][0]

    with scoped("effects", "off"), scoped("disable_jit", True):
        fa.pmap(f)(X)
    np.testing.assert_array_equal(kept[0], [2, 2, 2])


def test_training_loop():
    """A thousand steps of descent on four devices end where descent on all the data ends."""
    rng = np.random.default_rng(0)
    x, true = rng.normal(size=(4, 32, 3)), np.asarray([1.0, -2.0, 0.5])
    y = x @ true + 0.1 * rng.normal(size=(4, 32))
    x, y = x.astype(np.float32), y.astype(np.float32)

    def loss(w, x, y):
        return ((x @ w - y) ** 2).mean()

    def update(w, x, y):
        return w - 0.1 * lax.pmean(fa.grad(loss)(w, x, y), "batch")

    stepped = fa.pmap(update, axis_name="batch")
    w = fnp.zeros((4, 3))
    for _ in range(1000):
        w = stepped(w, x, y)
    flat, target = x.reshape(-1, 3).astype(float), y.reshape(-1).astype(float)
    plain = np.zeros(3)
    for _ in range(1000):
        plain -= 0.1 * 2 * flat.T @ (flat @ plain - target) / len(flat)
    np.testing.assert_allclose(w, np.tile(plain, (4, 1)), rtol=1e-4)
    assert (np.asarray(w) == np.asarray(w[0])).all()


def test_training_loop_in_the_program():
    """The same loop inside the program: a scan whose turns meet."""
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)

    def train(x):
        def turn(w, _):
            return w - 0.1 * lax.pmean(fa.grad(lambda w: ((w - x) ** 2).mean())(w), "i"), None

        return lax.scan(turn, 5.0, length=200)[0]

    np.testing.assert_allclose(fa.pmap(train, axis_name="i")(x), np.full(4, x.mean()), atol=1e-6)


def test_devices_beyond_cores():
    """Eight devices meet a hundred times on however few cores."""
    f = fa.pmap(lambda x: lax.fori_loop(0, 100, lambda k, c: lax.pmean(c, "i") + x, x), "i")
    x = np.arange(8.0, dtype=np.float32)
    got = within_time(lambda: f(x))
    np.testing.assert_allclose(got, x + 100 * x.mean(), rtol=1e-5)


def test_clear_caches_reaches_maps():
    """A map made before ``clear_caches`` traces its function again after it."""
    traces = []

    def f(x):
        traces.append(x)
        return x + 1

    mapped = fa.pmap(f)
    with scoped("effects", "off"):
        for _ in range(3):
            mapped(X)
        assert len(traces) == 1
        fa.clear_caches()
        for _ in range(3):
            np.testing.assert_array_equal(mapped(X), X + 1)
    assert len(traces) == 2


def test_called_from_many_threads():
    """Calls at the same time keep apart."""
    f = fa.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    results = {}

    def run(k):
        with scoped("num_cpu_devices", 8), scoped("effects", "off"):
            for _ in range(20):
                results[k] = f(X + k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
    assert all((np.asarray(results[k]) == 6 + 4 * k).all() for k in range(4))


def test_first_calls_from_many_threads():
    """Threads that trace one function at the same time each get their results."""

    def run(k):
        with scoped("num_cpu_devices", 8):
            return f(X + k)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            f = fa.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
            with ThreadPoolExecutor(4) as pool:
                for k, got in enumerate(pool.map(run, range(4))):
                    np.testing.assert_array_equal(got, np.full(4, 6 + 4 * k))
    finally:
        sys.setswitchinterval(interval)


# ---- failures ------------------------------------------------------------------------------------


def fail_at(where):
    """Return a callback that raises on one value."""

    def callback(v):
        if v == where:
            raise KeyError("boom")
        return v

    return callback


def test_shard_that_raises():
    """An exception surfaces with its shard; those who wait for it are released."""
    callback = fail_at(2)

    def f(x):
        y = fa.pure_callback(callback, fa.ShapeDtypeStruct((), np.float32), x)
        return lax.psum(y, "i")

    mapped = fa.pmap(f, axis_name="i")
    error = within_time(lambda: mapped(X))
    assert isinstance(error, JaxRuntimeError)
    assert isinstance(error.__cause__, KeyError)
    assert any("shard 2 of pmap(f)" in note for note in error.__notes__)
    np.testing.assert_array_equal(within_time(lambda: mapped(X + 10)), np.full(4, 46))


def test_shard_that_raises_in_a_nested_map():
    """The innermost shard is told, and the ones around it."""
    callback = fail_at(4)

    def f(x):
        return lax.psum(fa.pure_callback(callback, fa.ShapeDtypeStruct((), np.float32), x), "i")

    mapped = fa.pmap(fa.pmap(f, axis_name="j"), axis_name="i")
    error = within_time(lambda: mapped(np.arange(6.0, dtype=np.float32).reshape(2, 3)))
    assert isinstance(error, JaxRuntimeError)
    assert isinstance(error.__cause__, KeyError)
    assert any("shard 1 of pmap(f)" in note for note in error.__notes__)


@pytest.mark.parametrize(
    ("branch", "message"),
    [
        (lambda x: x, "the others never reach"),
        (lambda x: lax.pmax(x, "i"), "different collectives"),
        (lambda x: lax.psum(fnp.stack([x, x]), "i")[0], "different collectives"),
    ],
)
def test_divergent_shards(branch, message):
    """Shards that do not come to one collective fail; they do not wait for ever."""

    def f(x):
        return lax.cond(x > 1, lambda v: lax.psum(v, "i"), branch, x)

    error = within_time(lambda: fa.pmap(f, axis_name="i")(X))
    assert isinstance(error, RuntimeError)
    assert message in str(error)


def test_divergent_trip_counts():
    """A loop that one shard leaves early is reported."""

    def f(x):
        return lax.while_loop(lambda c: c < 10, lambda c: c + lax.pmax(x, "i") * 0 + x + 1, x)

    error = within_time(lambda: fa.pmap(f, axis_name="i")(X))
    assert isinstance(error, RuntimeError)


def test_nan_in_a_shard():
    """debug_nans works in shards: the setting of the caller holds on their threads."""
    x = np.asarray([1.0, -1.0], np.float32)
    with scoped("debug_nans", True), pytest.raises(FloatingPointError, match="nan") as caught:
        fa.pmap(fnp.log)(x)
    assert any("shard 1" in note for note in caught.value.__notes__)


# Every step waits for the one before: the first shard, which is the main thread's, waits in the
# collective; then the second interrupts it; then the others go on.
INTERRUPTED = """
import signal, threading
import numpy as np
import fnarray as fa
from fnarray import lax
main = threading.main_thread()
called, waiting, interrupted = (threading.Event() for _ in range(3))
def interrupt(*_):
    if not interrupted.is_set():
        interrupted.set()
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, interrupt)
wait = threading.Condition.wait
def announced(condition, timeout=None):
    if called.is_set() and threading.current_thread() is main:
        waiting.set()
    return wait(condition, timeout)
threading.Condition.wait = announced
def callback(v):
    if v == 0:
        called.set()
        return v
    if v == 1:
        waiting.wait()
        # A signal that comes between Python's last look and the lock wakes nobody: hence again.
        while not interrupted.is_set():
            signal.pthread_kill(main.ident, signal.SIGINT)
            interrupted.wait(0.1)
    interrupted.wait()
    return v
def f(x):
    return lax.psum(fa.pure_callback(callback, fa.ShapeDtypeStruct((), np.float32), x), "i")
mapped = fa.pmap(f, axis_name="i")
try:
    mapped(np.arange(3, dtype=np.float32))
except KeyboardInterrupt:
    print("interrupted")
print(float(fa.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(np.ones(3, np.float32))[0]))
"""


def test_interrupt():
    """An interrupt ends a call whose shards wait, and the next call works."""
    env = {**os.environ, "FNARRAY_NUM_CPU_DEVICES": "4", "FNARRAY_EFFECTS": "off"}
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], env=env, capture_output=True, text=True,
        timeout=PATIENCE, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["interrupted", "3.0"]


# ---- bad input -----------------------------------------------------------------------------------


def test_more_examples_than_devices():
    """The message tells both numbers, and how to have more devices."""
    with pytest.raises(ValueError, match=r"requires 9 logical devices, but only 8 .*NUM_CPU_DEV"):
        fa.pmap(lambda x: x)(np.zeros(9))
    with pytest.raises(ValueError, match="requires 9 logical devices"):
        fa.pmap(fa.pmap(lambda x: x))(np.zeros((3, 3)))


def test_sizes_that_differ():
    """Each argument is listed with its size."""
    with pytest.raises(ValueError, match=r"(?s)inconsistent sizes.*size 2.*x.*size 3.*y"):
        fa.pmap(lambda x, y: x)(np.zeros((2, 1)), np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fa.pmap(3), TypeError, "callable"),
        (lambda: fa.pmap(lambda x: x, in_axes="a"), TypeError, "in_axes"),
        (lambda: fa.pmap(lambda x: x)(1.0), ValueError, "rank should be at least 1"),
        (lambda: fa.pmap(lambda x: x)("a"), TypeError, "argument x"),
        (lambda: fa.pmap(lambda x: x)(), ValueError, "at least one argument"),
        (lambda: fa.pmap(lambda x: x, in_axes=None)(X), ValueError, "at least one non-None"),
        (lambda: fa.pmap(lambda x: x, axis_size=3)(X), ValueError, "`axis_size` argument was 3"),
        (lambda: fa.pmap(lambda x: x, out_axes=3)(X), ValueError, "out of bounds"),
        (lambda: fa.pmap(lambda x: "a")(X), TypeError, "not a valid fnarray type"),
        (lambda: fa.pmap(lambda x: x, devices=fa.devices()[:2])(X), ValueError, "axis_size=4"),
        (lambda: fa.pmap(lambda x: x, backend="tpu"), RuntimeError, "Unknown backend"),
        (lambda: fa.pmap(lambda x: lax.psum(x, "k"))(X), NameError, "unbound axis name: k"),
    ],
)
def test_bad_input(call, error, message):
    """Errors say what was wrong, before anything runs."""
    with pytest.raises(error, match=message):
        call()


def test_default_devices():
    """Without a setting there is one device for each core that the process may use."""
    with scoped("num_cpu_devices", None):
        assert fa.local_device_count() == len(fa.devices()) <= len(os.sched_getaffinity(0))


def test_shards_run_at_the_same_time():
    """Shards that each wait until all have come do not wait in vain."""
    together = threading.Barrier(len(X))

    def wait(v):
        together.wait(PATIENCE)
        return v

    f = fa.pmap(lambda x: fa.pure_callback(wait, fa.ShapeDtypeStruct((), np.float32), x))
    np.testing.assert_array_equal(within_time(lambda: f(X)), X)
