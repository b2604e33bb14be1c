"""Callbacks under derivatives and ``vmap`` act on the values that a person would expect to see."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import debug, io_callback, lax, pure_callback
from fnarray import numpy as fnp
from fnarray.errors import MissingRuleError

ROWS = np.arange(3, dtype=np.float32)
ROWS.flags.writeable = False
X = np.float32(3)


@pytest.fixture(scope="module")
def modules(oracle):
    """Give fnarray and JAX, the oracle."""
    return fnarray, oracle


def loud_square(m):
    def square(x):
        m.debug.print("x {}", x)
        return x * x

    return square


def loud_loop(m):
    return lambda x: m.lax.fori_loop(0, 2, lambda i, c: loud_square(m)(c), x)


def loud_choice(m):
    def other(x):
        m.debug.print("other {}", x)
        return x

    return lambda x: m.lax.cond(x > 1, loud_square(m), other, x)


PROGRAMS = {
    "grad": lambda m: m.grad(loud_square(m))(X),
    "jit-grad": lambda m: m.jit(m.grad(loud_square(m)))(X),
    "grad-jit": lambda m: m.grad(m.jit(loud_square(m)))(X),
    "jvp": lambda m: m.jvp(loud_square(m), (X,), (X,)),
    "vjp": lambda m: m.vjp(loud_square(m), X)[1](X),
    "linearize": lambda m: m.linearize(loud_square(m), X)[1](X),
    "hessian": lambda m: m.hessian(loud_square(m))(X),
    "grad-loop": lambda m: m.grad(loud_loop(m))(X),
    "jit-grad-loop": lambda m: m.jit(m.grad(loud_loop(m)))(X),
    "jvp-loop": lambda m: m.jvp(loud_loop(m), (X,), (X,)),
    "grad-cond": lambda m: m.grad(loud_choice(m))(X),
    "jit-grad-cond": lambda m: m.jit(m.grad(loud_choice(m)))(X * 0),
    "vmap": lambda m: m.vmap(loud_square(m))(ROWS),
    "jit-vmap": lambda m: m.jit(m.vmap(loud_square(m)))(ROWS),
    "vmap-jit": lambda m: m.vmap(m.jit(loud_square(m)))(ROWS),
    "vmap-vmap": lambda m: m.vmap(m.vmap(loud_square(m)))(m.numpy.ones((2, 2)) * ROWS[:2]),
    "vmap-column": lambda m: m.vmap(loud_square(m), in_axes=1)(m.numpy.ones((1, 3)) * ROWS),
    "vmap-grad": lambda m: m.vmap(m.grad(loud_square(m)))(ROWS),
    "grad-vmap": lambda m: m.grad(lambda x: m.vmap(loud_square(m))(x).sum())(ROWS),
    "vmap-loop": lambda m: m.vmap(loud_loop(m))(ROWS),
    "vmap-none": lambda m: m.vmap(loud_square(m))(ROWS[:0]),
    "vmap-constant": lambda m: m.vmap(lambda x: (m.debug.print("once {}", 3), x)[1])(ROWS),
    "vmap-two": lambda m: m.vmap(lambda x, y: m.debug.print("{} {}", x, y), (0, None))(ROWS, X),
    "vmap-callback": lambda m: m.vmap(lambda x: m.debug.callback(print, "row", x))(ROWS),
    "stopped": lambda m: m.grad(
        lambda x: x * m.pure_callback(np.sin, x, m.lax.stop_gradient(x))
    )(X),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_the_lines_of_jax(modules, capsys, name):
    """The same lines, each as often, and the same results; rows may come in another order."""
    outs = []
    for m in modules:
        result = PROGRAMS[name](m)
        m.effects_barrier()
        lines = capsys.readouterr().out.splitlines()
        leaves = fnarray.tree.leaves(result)
        outs.append((sorted(lines), [(np.asarray(x).tolist(), x.dtype) for x in leaves]))
    assert outs[0] == outs[1]


def test_rows_come_in_order(capsys):
    """Of one print, and of one turn of a loop."""
    fnarray.vmap(loud_loop(fnarray))(ROWS)
    said = [line.removeprefix("x ") for line in capsys.readouterr().out.splitlines()]
    assert said == ["0.0", "1.0", "2.0", "0.0", "1.0", "4.0"]


def test_lanes_at_rest_print_nothing(capsys):
    """Under ``vmap``, a row prints in the branch it takes, and until its own loop has ended."""
    fnarray.vmap(loud_choice(fnarray))(ROWS)
    assert sorted(capsys.readouterr().out.splitlines()) == ["other 0.0", "other 1.0", "x 2.0"]

    def count(x):
        def body(c):
            debug.print("{}", c)
            return c + 1

        return lax.while_loop(lambda c: c < 3, body, x)

    for times in (1, 50):  # lanes of many rows turn in groups where nothing acts
        rows = np.tile(ROWS, times)
        assert fnarray.vmap(count)(rows).tolist() == [3] * len(rows)
        said = sorted(capsys.readouterr().out.split())
        assert said == [*["0.0"] * times, *["1.0"] * 2 * times, *["2.0"] * 3 * times]


# ---- pure_callback and io_callback ---------------------------------------------------------------

METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def called_back(m, method, seen):
    """Return a function of a callback that notes the shapes it sees."""

    def host(x, y):
        seen.append((x.shape, y.shape))
        x, y = np.asarray(x), np.asarray(y)
        return np.broadcast_to(x.T + y.T, x.T.shape).T if x.ndim >= y.ndim else x + y

    return lambda x, y: m.pure_callback(host, x, x, y, vmap_method=method)


@pytest.mark.parametrize("how", ["eager", "jit", "twice"])
@pytest.mark.parametrize("method", METHODS)
def test_vmap_methods(modules, method, how):
    """The callback sees the shapes that it sees in JAX, as often, and the results agree."""
    outs = []
    for m in modules:
        seen: list = []
        f = m.vmap(called_back(m, method, seen), in_axes=(0, None))
        if how == "jit":
            f = m.jit(f)
        if how == "twice":
            f = m.vmap(f)
            result = f(np.ones((2, 3), np.float32) * ROWS, np.ones(2, np.float32))
        else:
            result = f(ROWS, X)
        m.effects_barrier()
        outs.append((repr(result), seen))
    assert outs[0] == outs[1]


@pytest.mark.parametrize("method", METHODS)
def test_vmap_of_no_rows(method):
    """A batch of size 0 gives an empty result."""
    f = fnarray.vmap(lambda x: pure_callback(np.sin, x, x, vmap_method=method))
    assert f(ROWS[:0]).shape == (0,)


def test_vmap_without_a_method():
    """It is an error that lists the methods."""
    with pytest.raises(MissingRuleError, match=r"vmap_method: one of 'sequential', .*vectorized'"):
        fnarray.vmap(lambda x: pure_callback(np.sin, x, x))(ROWS)


def test_vmap_of_a_wrong_batch():
    """A callback that ignores the batch axis is told of it."""
    f = fnarray.vmap(lambda x: pure_callback(np.sum, x, x, vmap_method="expand_dims"))
    with pytest.raises(RuntimeError, match=r"float32\[3\], but got float32\[\](.|\n)*batch axes"):
        f(ROWS)


def test_vmap_of_io_callbacks():
    """Called once per row, in order; ordered ones are rejected, as in JAX."""
    seen = []

    def f(x, ordered):
        return io_callback(lambda a: (seen.append(float(a)), a)[1], x, x, ordered=ordered) + 1

    assert fnarray.vmap(lambda x: f(x, False))(ROWS).tolist() == [1, 2, 3]
    assert seen == [0, 1, 2]
    with pytest.raises(ValueError, match="vmap of an ordered io_callback"):
        fnarray.vmap(lambda x: f(x, True))(ROWS)


@pytest.mark.parametrize("call", [pure_callback, io_callback])
@pytest.mark.parametrize("derivative", ["grad", "jit-grad", "jvp", "loop"])
def test_callbacks_have_no_derivative(call, derivative):
    """The error names the function, its line, and the way out."""

    def f(x):
        return call(np.sin, x, x)  # this line

    loop = fnarray.grad(lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x))
    run = {
        "grad": lambda: fnarray.grad(f)(X),
        "jit-grad": lambda: fnarray.jit(fnarray.grad(f))(X),
        "jvp": lambda: fnarray.jvp(f, (X,), (X,)),
        "loop": lambda: loop(X),
    }[derivative]
    with pytest.raises(ValueError, match=r"do not support JVP.*sin(.|\n)*custom_jvp") as caught:
        run()
    assert "# this line" in str(caught.value)


def test_what_needs_no_derivative_has_none():
    """A callback on values without tangents does not stand in the way."""
    f = fnarray.grad(lambda x: x * pure_callback(lambda n: np.float32(n), X, 3) + fnp.sin(x))
    assert float(f(X)) == pytest.approx(3 + np.cos(3.0), rel=1e-6)
