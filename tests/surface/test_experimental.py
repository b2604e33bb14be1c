"""Taylor mode, differential equations, layouts, processes: against nested derivatives and SciPy."""

from __future__ import annotations

import math
from dataclasses import make_dataclass

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fnarray
import fnarray.numpy as jnp
from fnarray.experimental import layout, mesh_utils, multihost_utils
from fnarray.experimental.jet import jet
from fnarray.experimental.ode import odeint

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)).astype(np.float32)
X = RNG.uniform(0.2, 0.9, 3).astype(np.float32)
SERIES = [RNG.normal(size=3).astype(np.float32) for _ in range(3)]

FUNCTIONS = {
    "net": lambda x: jnp.tanh(W @ x) @ W,
    "exp": lambda x: jnp.exp(x) + jnp.expm1(x),
    "log": lambda x: jnp.log(x) + jnp.log1p(x),
    "quotient": lambda x: x / (1 + x * x),
    "powers": lambda x: x**2.5 + x**3 + x**-2 + x**10,
    "roots": lambda x: jnp.sqrt(x) + 1 / jnp.sqrt(x) + jnp.cbrt(x),
    "circular": lambda x: jnp.sin(x) * jnp.cos(x) + jnp.tan(x),
    "hyperbolic": lambda x: jnp.sinh(x) + jnp.cosh(x),
    "sigmoid": fnarray.nn.sigmoid,
    "choices": lambda x: jnp.where(x > 0.5, x * x, x) + jnp.maximum(x, 0.5) * x + abs(x - 0.5),
    "no rule": fnarray.scipy.special.erf,
    "several": lambda x: (x.sum(), x[::-1]),
    "inner": fnarray.jit(lambda x: fnarray.nn.logsumexp(x) * x),
}


def _nested(fun):
    """Return derivatives along the curve by derivatives of derivatives."""

    def along(t):
        return fun(X + sum(c * t ** (k + 1) / math.factorial(k + 1) for k, c in enumerate(SERIES)))

    out = []
    for _ in SERIES:
        along = fnarray.jacfwd(along)
        out.append(along(0.0))
    return out


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jet_is_nested_derivatives(name):
    """Derivatives of all orders along a curve are those of derivatives of derivatives."""
    fun = FUNCTIONS[name]
    value, series = jet(fun, (X,), (SERIES,))
    for got, wanted in zip(fnarray.tree.leaves(value), fnarray.tree.leaves(fun(X)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5)
    columns = list(zip(*series, strict=True)) if isinstance(series, tuple) else series
    for got, wanted in zip(columns, _nested(fun), strict=True):
        for a, b in zip(fnarray.tree.leaves(got), fnarray.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=3e-3, atol=3e-3)


def test_jet_of_several_arguments_and_at_zero():
    """Leibniz's rule, powers of 0, and traced coefficients."""
    value, series = jet(lambda a, b: a * b, (2.0, 3.0), ((1.0, 0.0), (1.0, 0.0)))
    assert [float(value), *map(float, series)] == [6.0, 5.0, 2.0]
    _, series = jet(lambda x: x**9, (0.0,), ([1.0, *[0.0] * 8],))
    assert float(series[-1]) == math.factorial(9)
    _, (first, second) = jet(jnp.sin, (2.0,), ((1.0, 0.0),), factorial_scaled=False)
    np.testing.assert_allclose((first, second), (np.cos(2.0), -np.sin(2.0) / 2), rtol=1e-6)
    assert jet(jnp.sin, (2.0,), ((),))[1] == []
    _, (first, second) = fnarray.jit(lambda x: jet(jnp.sin, (x,), ((x, x),)))(X)
    np.testing.assert_allclose(first, np.cos(X) * X, rtol=1e-5)
    np.testing.assert_allclose(second, np.cos(X) * X - np.sin(X) * X * X, rtol=1e-5)


def test_jet_refuses_series_that_do_not_fit():
    """As many series as arguments, of one length, like the arguments."""
    with pytest.raises(ValueError, match="for each argument"):
        jet(jnp.sin, (1.0,), ())
    with pytest.raises(ValueError, match="one length"):
        jet(jnp.add, (1.0, 2.0), ((1.0,), (1.0, 2.0)))
    with pytest.raises(ValueError, match="like the argument"):
        jet(jnp.sin, (1.0,), (((1.0, 2.0),),))


TIMES = np.linspace(0, 2, 5).astype(np.float32)
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def _pendulum(y, t, damping, gravity):
    angle, speed = y
    return speed, -damping * speed - gravity * jnp.sin(angle)


def _solved(gravity=9.8, angle=1.0):
    """Return SciPy's solution, much finer."""

    def slope(t, y):
        return y[1], -0.2 * y[1] - gravity * np.sin(y[0])

    return solve_ivp(
        slope, (0, 2), [angle, 0], t_eval=TIMES.astype(float), rtol=1e-10, atol=1e-10
    ).y


def test_odeint_solves_what_scipy_solves():
    """Trees of values, at the times asked for, within the tolerance."""
    start = jnp.float32(1), jnp.float32(0)
    for run in (odeint, fnarray.jit(odeint, static_argnums=0)):
        got = run(_pendulum, start, TIMES, 0.2, 9.8)
        np.testing.assert_allclose(got, _solved(), atol=1e-4)
    turning = odeint(lambda y, t: 1j * y, jnp.asarray(1 + 0j), TIMES, **CLOSE)
    np.testing.assert_allclose(turning, np.exp(1j * TIMES), atol=1e-4)
    several = fnarray.vmap(lambda a: odeint(lambda y, t: -a * y, 1.0, TIMES, **CLOSE))(X)
    np.testing.assert_allclose(several, np.exp(-np.outer(X, TIMES)), rtol=1e-4)


def test_gradients_of_solutions_are_differences():
    """With respect to the start, arguments, closures and times, by the adjoint equation."""

    def last(angle, gravity, times):
        start = angle, jnp.float32(0)
        return odeint(_pendulum, start, times, 0.2, gravity, **CLOSE)[0][-1]

    of_angle, of_gravity, of_times = fnarray.grad(last, (0, 1, 2))(1.0, 9.8, TIMES)
    e = 1e-4
    by_angle = (_solved(angle=1 + e)[0, -1] - _solved(angle=1 - e)[0, -1]) / (2 * e)
    by_gravity = (_solved(9.8 + e)[0, -1] - _solved(9.8 - e)[0, -1]) / (2 * e)
    np.testing.assert_allclose([of_angle, of_gravity], [by_angle, by_gravity], rtol=2e-3)
    np.testing.assert_allclose(of_times[-1], _solved()[1, -1], rtol=1e-3)
    np.testing.assert_allclose(of_times[1:-1], 0, atol=1e-4)

    def closed(a):
        return odeint(lambda y, t: -a * y, 1.0, TIMES, **CLOSE).sum()

    wanted = -(TIMES * np.exp(-2 * TIMES)).sum()
    np.testing.assert_allclose(fnarray.grad(closed)(2.0), wanted, rtol=1e-3)


def test_odeint_refuses_arguments_that_are_no_arrays():
    """Functions are closed over, not handed on."""
    with pytest.raises(TypeError, match="Close over"):
        odeint(lambda y, t, f: f(y), 1.0, TIMES, jnp.sin)


def test_layouts_are_row_major():
    """The layout that arrays have is accepted, another one is refused."""
    x = jnp.ones((2, 3))
    assert layout.with_layout_constraint(x, layout.Layout((0, 1))) is x
    with pytest.raises(NotImplementedError, match="Transpose"):
        layout.with_layout_constraint(x, layout.Layout((1, 0)))
    with pytest.raises(ValueError, match="no order"):
        layout.with_layout_constraint(x, layout.Layout((0,)))


def test_one_process_has_all():
    """What processes exchange is what the only one has."""
    tree = {"a": jnp.arange(3), "b": 2.0}
    assert multihost_utils.process_allgather(tree)["a"].shape == (1, 3)
    assert multihost_utils.process_allgather(tree, tiled=True)["a"].shape == (3,)
    np.testing.assert_array_equal(multihost_utils.broadcast_one_to_all(tree)["a"], [0, 1, 2])
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal(tree)
    with pytest.raises(ValueError, match="source"):
        multihost_utils.broadcast_one_to_all(tree, is_source=False)
    mesh = fnarray.sharding.Mesh(np.array(fnarray.devices()[:1]), ("x",))
    specs = {"a": fnarray.P("x"), "b": None}
    whole = multihost_utils.host_local_array_to_global_array(tree, mesh, specs)
    assert whole["a"].sharding == fnarray.NamedSharding(mesh, fnarray.P("x"))
    part = multihost_utils.global_array_to_host_local_array(whole, mesh, fnarray.P())
    assert part["b"] == 2.0


def test_grids_of_granules():
    """Blocks of a hybrid mesh are the devices of a process; a grid takes all devices or says so."""
    device = make_dataclass("Device", ["id", "process_index", "platform"], frozen=True)
    pool = [device(k, k % 2, "cpu") for k in range(8)]
    grid = mesh_utils.create_hybrid_device_mesh((2, 2), (1, 2), pool, process_is_granule=True)
    np.testing.assert_array_equal(
        [[d.id for d in row] for row in grid], [[0, 2, 1, 3], [4, 6, 5, 7]]
    )
    for call, text in {
        "slices": (lambda: mesh_utils.create_hybrid_device_mesh((2, 2), (1, 2), pool), "granule"),
        "fewer": (
            lambda: mesh_utils.create_hybrid_device_mesh((8,), (1,), pool, process_is_granule=True),
            "Number of slices 2 must equal",
        ),
        "left": (lambda: mesh_utils.create_device_mesh((3, 2), pool), "Number of devices 8 must"),
    }.values():
        with pytest.raises(ValueError, match=text):
            call()


def test_ragged_products():
    """Rows are multiplied by the matrix of their group, rows of none give 0; gradients too."""
    lhs = RNG.normal(size=(6, 3)).astype(np.float32)
    rhs = RNG.normal(size=(3, 3, 2)).astype(np.float32)
    sizes = np.array([2, 0, 3])
    wanted = np.concatenate([lhs[:2] @ rhs[0], lhs[2:5] @ rhs[2], np.zeros((1, 2))])
    for run in (fnarray.lax.ragged_dot, fnarray.jit(fnarray.lax.ragged_dot)):
        np.testing.assert_allclose(run(lhs, rhs, sizes), wanted, rtol=1e-5)
    of_rhs = fnarray.grad(lambda r: fnarray.lax.ragged_dot(lhs, r, sizes).sum())(rhs)
    np.testing.assert_allclose(of_rhs[0], np.tile(lhs[:2].sum(0)[:, None], 2), rtol=1e-5)
    np.testing.assert_array_equal(of_rhs[1], 0)
    with pytest.raises(fnarray.errors.ShapeError, match=r"\(m, k\)"):
        fnarray.lax.ragged_dot(lhs, rhs, sizes[:2])
