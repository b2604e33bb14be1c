"""Checkify finds what JAX's finds, says so in JAX's words, and names the user's line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest
from jax.experimental import checkify as jax_checkify

import fnarray
from fnarray.config import scoped
from fnarray.experimental import checkify

X = np.arange(3, dtype=np.float32)
X.flags.writeable = False
I = np.array([0, 7, 9], np.int32)  # noqa: E741
I.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Row:
    """A function of the package and its checkify, the errors to look for, and arguments."""

    name: str
    program: Callable[[Any, Any], Callable[..., Any]]
    args: tuple[Any, ...]
    errors: str = "all_checks"


def _user(jax, ck):
    def f(x):
        ck.check(x[0] > 1, "first is {v}, not {w}", v=x[0], w=x.sum())
        ck.check(jax.numpy.all(x > 0), "second {}", x)
        return x

    return f


def _scan(jax, ck):
    def turn(c, v):
        ck.check(v < 1.5, "v {}", v)
        return c + v, c / (v - 1)

    return lambda x: jax.lax.scan(turn, jax.numpy.float32(1), x)


def _while(jax, ck):
    def body(i):
        ck.check(i < 3, "i {i}", i=i)
        return i + 1

    return lambda n: jax.lax.while_loop(lambda i: i < n, body, 0)


def _while_condition(jax, ck):
    def test(i):
        ck.check(i < 3, "asked at {i}", i=i)
        return i < 5

    return lambda i: jax.lax.while_loop(test, lambda i: i + 1, i)


def _cond(jax, ck):
    def no(x):
        ck.check(False, "no {}", x)
        return x

    return lambda p, x: jax.lax.cond(p, lambda x: x / 0, no, x)


def _nested(jax, ck):
    def turn(c, v):
        inner = jax.lax.cond(v > 0.5, lambda v: jax.numpy.log(-v), lambda v: v, v)
        return jax.lax.fori_loop(0, 3, lambda i, c: c + inner, c), inner

    return jax.jit(lambda x: jax.lax.scan(turn, jax.numpy.float32(0), x))


def _grad(jax, ck):
    def f(v):
        ck.check(v < 1, "v {}", v)
        return jax.numpy.sqrt(v)

    return jax.grad(f)


def _vmap(jax, ck):
    def f(v):
        ck.check(v < 1, "v {}", v)
        return v * 2

    return jax.vmap(f)


def _remat(jax, ck):
    return jax.grad(jax.checkpoint(lambda x: jax.numpy.log(x - 5)))


def _inner(jax, ck):
    def f(x):
        ck.check(x > 0, "positive, not {}", x)
        return x

    def outer(x):
        error, out = ck.checkify(f)(x)
        ck.check_error(error)
        return out

    return outer


ROWS = (
    Row("user", _user, (X,)),
    Row("user-off", _user, (X,), "float_checks"),
    Row("div", lambda jax, ck: lambda x: x / 0, (X,)),
    Row("int-div", lambda jax, ck: lambda x: jax.lax.div(x, 0), (I,)),
    Row("floor-div", lambda jax, ck: lambda x: x // 0, (I,)),
    Row("div-off", lambda jax, ck: lambda x: x / 0, (X + 1,), "user_checks"),
    Row("log", lambda jax, ck: lambda x: jax.numpy.log(x - 1), (X,)),
    Row("inf", lambda jax, ck: lambda x: jax.numpy.sin(x / 0), (X + 1,), "nan_checks"),
    Row("index", lambda jax, ck: lambda x, i: x[i], (X, np.int32(5))),
    Row("negative", lambda jax, ck: lambda x, i: x[i], (X, np.int32(-5))),
    Row("indices", lambda jax, ck: lambda x, i: x[i], (X, I)),
    Row("set", lambda jax, ck: lambda x, i: x.at[i].set(1.0), (X, np.int32(5))),
    Row("add", lambda jax, ck: lambda x, i: x.at[i].add(1.0), (X, I)),
    Row("2d", lambda jax, ck: lambda x, i: x[i, i], (np.ones((3, 4), np.float32), np.int32(3))),
    Row(
        "slice", lambda jax, ck: lambda x, i: jax.lax.dynamic_slice(x, (i,), (2,)), (X, np.int32(2))
    ),
    Row(
        "update",
        lambda jax, ck: lambda x, i: jax.lax.dynamic_update_slice(x, x[:2], (i,)),
        (X, np.int32(-1)),
    ),
    Row("nothing", lambda jax, ck: lambda x: jax.numpy.sin(x[1:]).sum(), (X,)),
    Row("nan-in", lambda jax, ck: lambda x: x.reshape(3, 1), (X * np.nan,)),
    Row("where", lambda jax, ck: lambda x: jax.numpy.where(x > 1, x, np.nan), (X,), "nan_checks"),
    Row("first-div", lambda jax, ck: lambda x: (x / 0, jax.numpy.log(x - 5)), (X,)),
    Row("first-log", lambda jax, ck: lambda x: (jax.numpy.log(x - 5), x / 0), (X,)),
    Row("dot", lambda jax, ck: lambda x: x @ x[::-1], (np.array([0, np.inf], np.float32),)),
    Row("sum", lambda jax, ck: lambda x: x.sum(), (np.array([-np.inf, np.inf], np.float32),)),
    Row("scan", _scan, (X,)),
    Row("scan-div", _scan, (X,), "div_checks"),
    Row("while", _while, (5,)),
    Row("while-passes", _while, (3,)),
    Row("while-condition", _while_condition, (0,)),
    Row("cond-true", _cond, (True, np.float32(3))),
    Row("cond-false", _cond, (False, np.float32(3))),
    Row("nested", _nested, (X,), "nan_checks"),
    Row("grad", _grad, (np.float32(2),)),
    Row("grad-div", _grad, (np.float32(0),), "automatic_checks"),
    Row("vmap", _vmap, (X,)),
    Row("remat", _remat, (np.float32(3),)),
    Row("relu", lambda jax, ck: lambda x: jax.nn.relu(x) / 0, (X,)),
    Row("check-error", _inner, (np.float32(-1),)),
)


def _outcome(package: Any, ck: Any, row: Row, wrap: Callable[..., Any]) -> tuple[Any, list[Any]]:
    args = [package.numpy.asarray(a) for a in row.args]
    checked = ck.checkify(row.program(package, ck), errors=getattr(ck, row.errors))
    error, out = wrap(package, checked)(*args)
    text = error.get()
    return text and text.partition("\n")[0], package.tree.leaves(out)


WRAPS = {"plain": lambda package, f: f, "jit": lambda package, f: package.jit(f)}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_finds_what_jax_finds(row, wrap):
    """The first line of the message, and the result, are JAX's."""
    wanted, results = _outcome(jax, jax_checkify, row, WRAPS[wrap])
    got, outs = _outcome(fnarray, checkify, row, WRAPS[wrap])
    assert got == wanted
    for g, w in zip(outs, results, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-6)


def _each(package, ck):
    def f(v):
        ck.check(v < 1, "v {}", v)
        return package.numpy.log(v - 1)

    return package.vmap(ck.checkify(f, errors=ck.all_checks))(package.numpy.asarray(X - 1))[0].get()


def test_each_example_has_an_error_of_its_own():
    """Under vmap of a checked function messages tell whose they are."""
    lines = [x for x in _each(fnarray, checkify).split("\n") if not x.startswith("  at ")]
    assert lines == _each(jax, jax_checkify).split("\n")


def test_the_message_names_the_users_line():
    """The second line of a message is where the operation stands, also in a loop of a program."""

    def f(x):
        return fnarray.lax.scan(lambda c, v: (c, c / v), 1.0, x)  # here

    error, _ = fnarray.jit(checkify.checkify(f, errors=checkify.div_checks))(X)
    first, second = error.get().split("\n")
    assert first == "division by zero"
    assert "test_checkify.py" in second
    assert second.endswith("# here")


def test_errors_are_thrown():
    """``throw`` raises what ``get_exception`` returns, a ValueError; or nothing."""
    error, _ = checkify.checkify(lambda x: x / 0, errors=checkify.div_checks)(
        fnarray.numpy.asarray(X)
    )
    with pytest.raises(checkify.JaxRuntimeError, match="division by zero") as raised:
        error.throw()
    assert isinstance(raised.value, ValueError)
    assert str(error.get_exception()) == str(raised.value) == error.get()
    error, _ = checkify.checkify(lambda x: x)(X)
    error.throw()
    assert error.get() is None
    assert str(error) == "Error(None)"


def test_derivatives_go_through_checks():
    """A checked function is differentiated like the one that is checked."""

    def f(x):
        checkify.check(x > 0, "positive, not {}", x)
        return fnarray.nn.softplus(x) * fnarray.numpy.sin(x)

    def checked(x):
        error, out = checkify.checkify(f, errors=checkify.all_checks)(x)
        return out, error

    got, error = fnarray.jit(fnarray.grad(checked, has_aux=True))(-0.5)
    np.testing.assert_allclose(got, fnarray.grad(lambda x: checked(x)[0])(-0.5), rtol=1e-6)
    assert error.get().startswith("positive, not -0.5")


def test_what_is_not_checkified():
    """At once a check raises; a program that is compiled refuses it; a debug check does nothing."""
    with pytest.raises(checkify.JaxRuntimeError, match=r"bad 3.*\(`check` failed\)"):
        checkify.check(False, "bad {x}", x=np.float32(3))
    checkify.check(True, "bad")
    with pytest.raises(ValueError, match="not functionalized"):
        fnarray.jit(lambda x: (checkify.check(x > 0, "bad"), x)[1])(1.0)

    def f(x):
        checkify.debug_check(x < 0, "debug {}", x)
        return x

    assert float(fnarray.jit(f)(2.0)) == 2.0
    assert f(2.0) == 2.0
    assert checkify.checkify(f)(2.0)[0].get().startswith("debug 2.0")


def test_a_check_in_a_function_with_its_own_derivative():
    """A check inside of custom_jvp is found, at once and in a program."""
    f = fnarray.custom_jvp(lambda x: (checkify.check(x > 0, "inside {}", x), x)[1])
    f.defjvp(lambda p, t: (f(*p), t[0]))
    for g in (f, fnarray.jit(f)):
        for run in (checkify.checkify(g), fnarray.jit(checkify.checkify(g))):
            assert run(-1.0)[0].get().startswith("inside -1.0")


def _positive(x):
    checkify.check((x > 0).all(), "bad {x}", x=x.min())
    return fnarray.numpy.log(x) / (x - 1)


def test_programs_on_devices():
    """Errors have an axis of the devices, in JAX's words, whichever of the two is outside."""
    x = np.float32([[1, 3], [3, 4], [-1, 5]])
    lines = ["at mapped index 0: division by zero", "at mapped index 2: bad -1.0"]
    with scoped("num_cpu_devices", 3):
        mapped = fnarray.pmap(_positive)
        for run in (
            checkify.checkify(mapped, errors=checkify.all_checks),
            checkify.checkify(fnarray.jit(mapped), errors=checkify.all_checks),
            fnarray.pmap(checkify.checkify(_positive, errors=checkify.all_checks)),
        ):
            error, out = run(x)
            said = [line for line in error.get().splitlines() if line.startswith("at ")]
            assert len(said) == 2
            assert all(map(str.startswith, said, lines))
            assert out.shape == x.shape
        assert checkify.checkify(mapped)(x[1:2])[0].get() is None


def test_errors_have_as_many_arrays_as_jax_has():
    """For each kind of error whether there is one, its number, and what its message shows."""

    def program(ck, np_):
        def two(x):
            ck.check(x > 0, "a {}", x)
            ck.check(x > 1, "b")
            ck.check(x > 2, "c {}", 2 * x)
            return np_.log(x)

        return two

    rows = ("user_checks", "nan_checks", "all_checks", "div_checks")
    for name in rows:
        ours = checkify.checkify(program(checkify, fnarray.numpy), getattr(checkify, name))
        theirs = jax_checkify.checkify(
            program(jax_checkify, jax.numpy), getattr(jax_checkify, name)
        )
        for x in (0.5, 3.0):
            found, expected = ours(fnarray.numpy.float32(x))[0], theirs(jax.numpy.float32(x))[0]
            shapes = [leaf.shape for leaf in fnarray.tree.leaves(found)]
            assert shapes == [np.shape(leaf) for leaf in jax.tree.leaves(expected)], name
            assert (found.get() or "").partition("\n")[0] == (expected.get() or "")


BAD = {
    "array": (lambda: checkify.check(np.array([True]), "x"), TypeError, "scalar pred"),
    "number": (lambda: checkify.check(1, "x"), TypeError, "scalar pred"),
    "message": (lambda: checkify.check(True, 3), TypeError, "must be a string"),
    "value": (lambda: checkify.check(True, "{}", "a"), TypeError, "PyTrees of arrays"),
    "errors": (lambda: checkify.checkify(abs, errors=3), TypeError, "set of error types"),
    "function": (lambda: checkify.checkify(3), TypeError, "callable"),
    "error": (lambda: checkify.check_error(3), TypeError, "checkify.Error"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    """What is no check is refused."""
    call, kind, match = BAD[name]
    with pytest.raises(kind, match=match):
        call()
