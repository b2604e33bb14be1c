"""Minima of functions, and iterative solvers of linear equations, beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import numpy as jnp
from fnarray.config import enable_x64
from fnarray.scipy import optimize
from fnarray.scipy.sparse import linalg as sparse

RNG = np.random.default_rng(12)


# ---- minima --------------------------------------------------------------------------------------


def rosenbrock(x):
    """A curved valley, with its minimum at ones."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x):
    """Four minima, all 0."""
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


@pytest.mark.parametrize(("fun", "x0"), [(rosenbrock, np.zeros(4)), (himmelblau, np.ones(2))])
def test_minimize(fun, x0):
    """The gradient is small where the search ends, and the value SciPy's."""
    import scipy.optimize

    with enable_x64(True):
        found = optimize.minimize(fun, x0, method="BFGS", tol=1e-7)
    want = scipy.optimize.minimize(fun, x0, method="BFGS")
    assert bool(found.success)
    assert int(found.status) == 0
    assert np.abs(found.jac).max() < 1e-7
    np.testing.assert_allclose(found.fun, want.fun, atol=1e-9)
    np.testing.assert_allclose(found.x, want.x, atol=1e-4)
    assert int(found.nfev) < 2 * want.nfev


def test_minimize_within_programs():
    """It is compiled and mapped; too few steps are said so."""

    def nearest(a):
        return optimize.minimize(
            lambda x, a: ((x - a) ** 2).sum(), jnp.zeros(2), (a,), method="bfgs"
        )

    at = jnp.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(fnarray.jit(fnarray.vmap(lambda a: nearest(a).x))(at), at, atol=1e-5)
    short = optimize.minimize(rosenbrock, jnp.zeros(2), method="BFGS", options={"maxiter": 2})
    assert not bool(short.success)
    assert (int(short.status), int(short.nit)) == (1, 2)


def test_minimize_ends_where_rounding_hides_the_slope():
    """At a minimum of -67 float32 tells no gradient below 1e-5: no step gains, and it says so."""

    def eggholder(x):
        a, b = x[0], x[1] + 47
        waves = b * jnp.sin(jnp.sqrt(jnp.abs(a / 2 + b))) + a * jnp.sin(jnp.sqrt(jnp.abs(a - b)))
        return -waves

    found = optimize.minimize(eggholder, jnp.zeros(2), method="BFGS", tol=1e-9)
    assert int(found.status) >= 2
    assert int(found.nit) < 100
    np.testing.assert_allclose(found.x, [8.457, 15.651], atol=1e-2)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"method": "Powell"}, ValueError, "not recognized"),
        ({"method": "BFGS", "args": 1}, TypeError, "tuple"),
        ({"method": "BFGS", "options": {"xtol": 1}}, TypeError, "xtol"),
    ],
)
def test_minimize_errors(settings, error, text):
    """Other methods, arguments and options are refused."""
    with pytest.raises(error, match=text):
        optimize.minimize(rosenbrock, jnp.zeros(2), **settings)


# ---- linear equations ----------------------------------------------------------------------------

SQUARE = RNG.standard_normal((6, 6)).astype("f4")
MATRICES = {"cg": SQUARE @ SQUARE.T + 6 * np.eye(6, dtype="f4")}
MATRICES["bicgstab"] = MATRICES["gmres"] = SQUARE + 6 * np.eye(6, dtype="f4")
RIGHT = RNG.standard_normal(6).astype("f4")


@pytest.mark.parametrize("name", MATRICES)
def test_iterative_solvers(jax, name):
    """Solutions satisfy the equation; gradients, by both operands, are those of a direct solver."""
    solver, a = getattr(sparse, name), MATRICES[name]
    inverse = np.diag(1 / np.diag(a))
    for settings in ({}, {"M": inverse}, {"x0": RIGHT}, {"maxiter": 50}):
        x, _ = solver(a, RIGHT, tol=1e-6, **settings)
        np.testing.assert_allclose(a @ np.asarray(x), RIGHT, atol=1e-4)
    loss = lambda a, b: (solver(a, b, tol=1e-6)[0] ** 2).sum()  # noqa: E731
    direct = lambda a, b: (jnp.linalg.solve(a, b) ** 2).sum()  # noqa: E731
    got, want = (fnarray.grad(f, (0, 1))(a, RIGHT) for f in (loss, direct))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, atol=1e-4)


def test_iterative_solvers_of_trees():
    """Operators may be functions of trees."""
    b = {"a": jnp.ones(3), "b": jnp.asarray(3.0)}
    for name in MATRICES:
        x, _ = getattr(sparse, name)(lambda v: {"a": 2 * v["a"], "b": 3 * v["b"]}, b)
        np.testing.assert_allclose(x["a"], 0.5, rtol=1e-5)
        np.testing.assert_allclose(x["b"], 1.0, rtol=1e-5)


@pytest.mark.parametrize(
    ("args", "settings", "error", "text"),
    [
        ((np.ones((2, 3)), np.ones(2)), {}, ValueError, "square"),
        (("A", np.ones(2)), {}, TypeError, "function or an array"),
        ((np.eye(2), np.ones(2)), {"x0": np.ones(3)}, ValueError, "matching shapes"),
        ((np.eye(2), np.ones(2)), {"x0": [np.ones(2)]}, ValueError, "tree structure"),
    ],
)
def test_iterative_solvers_errors(args, settings, error, text):
    """Operators and starts that do not fit are refused."""
    for name in MATRICES:
        with pytest.raises(error, match=text):
            getattr(sparse, name)(*args, **settings)
