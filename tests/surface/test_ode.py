"""Differential equations: JAX's numbers, at any tolerance, and their derivatives."""

from __future__ import annotations

import jax
import jax.experimental.ode
import numpy as np
import pytest

import fnarray
import fnarray.experimental.ode

TIMES = np.linspace(0.0, 2.0, 5, dtype=np.float32)
START = np.array([1.0, 0.5], np.float32)


def _lotka(lib):
    def slope(y, t, a, b):
        prey = a * y[0] - b * y[0] * y[1]
        return lib.numpy.stack([prey, -y[1] + y[0] * y[1] * t / (1 + t)])

    return slope


def _solve(lib, *args, **settings):
    return lib.experimental.ode.odeint(*args, **settings)


def _tolerances(lib):
    given = _lotka(lib), lib.numpy.asarray(START), lib.numpy.asarray(TIMES), 1.0, 0.3
    loose = _solve(lib, *given, rtol=1e-3, atol=1e-3)
    return _solve(lib, *given), loose, _solve(lib, *given, hmax=0.05)


def _gradients(lib):
    def total(y0, times, a, b):
        return (_solve(lib, _lotka(lib), y0, times, a, b) ** 2).sum()

    grad = lib.grad(total, (0, 1, 2, 3))
    at = lib.numpy.asarray(START), lib.numpy.asarray(TIMES), 1.0, 0.3
    return grad(*at), lib.jit(grad)(*at)


def _trees(lib):
    def slope(y, t, p):
        return {"x": (y["v"][0],), "v": (-p["k"] * y["x"][0],)}

    def total(y, times, p):
        out = _solve(lib, slope, y, times, p)
        return (out["x"][0] ** 2).sum() + out["v"][0].sum()

    y = {"x": (lib.numpy.array([1.0, 2.0]),), "v": (lib.numpy.array([0.0, 0.1]),)}
    at = y, lib.numpy.asarray(TIMES), {"k": lib.numpy.float32(2)}
    return _solve(lib, slope, *at), lib.grad(total, (0, 1, 2))(*at)


def _lanes(lib):
    times = lib.numpy.asarray(TIMES)

    def run(y0, a):
        return _solve(lib, _lotka(lib), y0, times, a, 0.3)

    y0, a = lib.numpy.asarray(START) * np.float32([[1], [2]]), lib.numpy.array([0.5, 2.0])
    of_a = lib.vmap(lib.grad(lambda y, a: run(y, a).sum(), (0, 1)))
    return lib.vmap(run)(y0, a), of_a(y0, a)


def _again(lib):
    times = lib.numpy.asarray(TIMES[:3])

    def last(a):
        return _solve(lib, _lotka(lib), lib.numpy.asarray(START), times, a, 0.3)[-1].sum()

    return lib.grad(lib.grad(last))(1.0)


def _others(lib):
    times = lib.numpy.asarray(TIMES)
    turning = _solve(lib, lambda y, t: 1j * y, lib.numpy.array([1.0 + 0j, 2.0]), times)
    jac = lib.jacrev(lambda y, k: _solve(lib, lambda y, t, k: -k * y * t, y, times, k), (0, 1))
    free = lib.grad(lambda a: _solve(lib, lambda y, t: -a * y, 1.0, times).sum())
    return turning, jac(1.0, 2.0), free(2.0)


@pytest.mark.parametrize("program", [_tolerances, _gradients, _trees, _lanes, _again, _others])
def test_gives_what_jax_gives(program):
    """Solutions, and derivatives by all that they depend on, follow JAX's steps."""
    got, want = jax.tree.leaves(program(fnarray)), jax.tree.leaves(program(jax))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_known_times_in_a_traced_function(sign):
    """Times that a compiled function is closed over are known there, and checked."""
    odeint, times = fnarray.experimental.ode.odeint, fnarray.numpy.asarray(sign * TIMES)
    solve = fnarray.jit(lambda a: odeint(lambda y, t: -a * y, 1.0, times))
    if sign > 0:
        np.testing.assert_allclose(solve(1.0), np.exp(-TIMES), rtol=1e-5)
        return
    with pytest.raises(ValueError, match="times must ascend"):
        solve(1.0)


def test_times_ascend():
    """Times that descend are refused, and have no solution where they are traced, as in JAX."""
    y0, times = fnarray.numpy.asarray(START), fnarray.numpy.asarray(TIMES[::-1])
    with pytest.raises(ValueError, match=r"times must ascend.*-func\(y, -s\)"):
        _solve(fnarray, _lotka(fnarray), y0, times, 1.0, 0.3)
    traced = fnarray.jit(lambda t: _solve(fnarray, _lotka(fnarray), y0, t, 1.0, 0.3))(times)
    assert np.isnan(np.asarray(traced)[1:]).all()
    twice = _solve(fnarray, _lotka(fnarray), y0, fnarray.numpy.zeros(2), 1.0, 0.3)
    np.testing.assert_array_equal(twice, [START, START])
