"""Polynomials agree with ``jax.numpy``, which takes floats, and with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray.numpy as fnp
from fnarray.api.gradients import grad
from fnarray.api.jit import jit

from .numpy_oracle import both_raise, compare

LIKE_NUMPY = """
jnp.polyval(v, f)
jnp.polyval(i[0], 2)
jnp.polyval(v, c)
jnp.polyadd(v, i[0, :2])
jnp.polysub(i[0, :2], v)
jnp.polymul(v, f[0])
jnp.polymul(i[0, :2], j[0])
jnp.polymul(c[0], v)
jnp.polyder(v)
jnp.polyder(i[0], 2)
jnp.polyder(v, 0)
jnp.polyder(v, 5)
jnp.polyint(v)
jnp.polyint(i[0], 2)
jnp.polyint(v, 2, np.array([3, 4]))
jnp.polyint(v, 2, 5)
jnp.polyint(v, 0)
jnp.poly(v)
"""
LIKE_JAX = """
jnp.polyval(f, v)
jnp.polydiv(f[0], v[:2])
jnp.polydiv(v[:2], f[0])
jnp.poly(c[0])
jnp.poly(np.zeros(0))
"""
ERRORS = (TypeError, ValueError, IndexError)
BAD = """
jnp.polyval([1], 2)
jnp.polyval(2, 3)
jnp.polyder(v, -1)
jnp.polyint(v, -1)
jnp.polyint(v, 2, v)
jnp.polyadd([1], v)
jnp.polyfit(v, v, -1)
jnp.polyfit(f, v, 1)
jnp.polyfit(v, v[:2], 1)
jnp.polyfit(v, f[None], 1)
jnp.polyfit(v, v, 1, w=f)
jnp.polyfit(v, v, 3, cov=True)
jnp.polyfit(v[:0], v[:0], 1)
"""


@pytest.mark.parametrize("text", LIKE_NUMPY.strip().splitlines())
def test_values_are_numpys_and_types_jaxs(text):
    """Values agree with NumPy; shapes, dtypes and weak types with JAX."""
    compare(text, rtol=1e-5, atol=1e-5, values="numpy")


@pytest.mark.parametrize("text", LIKE_JAX.strip().splitlines())
def test_agrees_with_jax(text):
    """Values and types agree with JAX."""
    compare(text, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", BAD.strip().splitlines())
def test_bad_arguments_raise_on_both_sides(text):
    """Both sides refuse."""
    assert both_raise(text, ERRORS)


@pytest.mark.parametrize("n", [3, 40])
def test_short_and_long_polynomials_are_one(n):
    """Written out or as a native loop, eager or compiled, Horner's rule gives NumPy's values."""
    p, x = np.cos(np.arange(n)).astype(np.float32), np.linspace(-1, 1, 5, dtype=np.float32)
    want = np.polyval(p.astype(np.float64), x)
    np.testing.assert_allclose(fnp.polyval(p, x), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(jit(fnp.polyval)(p, x), want, rtol=1e-5, atol=1e-5)


X = np.linspace(-1, 2, 9).astype(np.float32)
Y = (3 * X**2 - X + 0.5 + 0.1 * np.cos(9 * X)).astype(np.float32)


@pytest.mark.parametrize("deg", [0, 2, 4])
@pytest.mark.parametrize("y", [Y, np.stack([Y, X], 1), Y + 1j * X], ids=["1", "2", "complex"])
def test_fits_are_numpys(deg, y):
    """Coefficients of least squares agree with NumPy in double precision; compiled too."""
    want = np.polyfit(X.astype(float), y, deg)
    np.testing.assert_allclose(fnp.polyfit(X, y, deg), want, atol=3e-5)
    if deg == 2:
        fit = jit(lambda x, y: fnp.polyfit(x, y, deg))
        np.testing.assert_allclose(fit(X, y), want, atol=3e-5)


def test_fits_tell_weights_ranks_and_covariances():
    """Weights, residuals, rank, singular values and covariances are NumPy's."""
    w = np.linspace(0.5, 2, 9).astype(np.float32)
    ours = fnp.polyfit(X, Y, 2, full=True, w=w)
    theirs = np.polyfit(X.astype(float), Y, 2, full=True, w=w)
    assert int(ours[2]) == theirs[2] == 3
    for k in (0, 1, 3):
        np.testing.assert_allclose(ours[k], theirs[k], rtol=1e-3, atol=1e-5)
    for cov in (True, "unscaled"):
        for got, want in zip(
            fnp.polyfit(X, Y, 2, cov=cov), np.polyfit(X.astype(float), Y, 2, cov=cov), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


def test_fits_without_enough_points_are_least_in_norm():
    """Where points do not determine the coefficients, the rank says so and the fit meets them."""
    x, y = X[:2], Y[:2]
    c, _, rank, _, _ = fnp.polyfit(x, y, 3, full=True)
    assert int(rank) == 2
    np.testing.assert_allclose(fnp.polyval(c, x), y, atol=1e-5)


@pytest.mark.parametrize("n", [6, 40])
def test_division_undoes_multiplication(n):
    """A product divided by a factor is the other, and leaves nothing; written out or as a loop."""
    q = np.cos(np.arange(n)).astype(np.float32)
    v = np.array([2, 0.5, -0.25], np.float32)
    u = fnp.polymul(q, v)
    for divide in (fnp.polydiv, jit(fnp.polydiv)):
        quotient, rest = divide(u, v)
        np.testing.assert_allclose(quotient, q, atol=1e-5)
        np.testing.assert_allclose(rest, 0, atol=1e-5)
    exact = fnp.polydiv(np.array([1.0, 2, 1]), np.array([1.0, 1]), trim_leading_zeros=True)
    assert [x.tolist() for x in exact] == [[1, 1], []]
    assert fnp.polymul(np.array([0, 1.0]), np.array([0, 2.0]), trim_leading_zeros=True) == 2


@pytest.mark.parametrize("deg", [1, 3, 8])
def test_fits_of_many_points(deg):
    """Coefficients are NumPy's in double precision; their covariances too."""
    x = np.linspace(-1, 1, 3000, dtype=np.float32)
    y = (np.exp(x) + np.cos(40 * x)).astype(np.float32)
    want, spread = np.polyfit(x.astype(float), y, deg, cov=True)
    got, ours = jit(lambda x, y: fnp.polyfit(x, y, deg, cov=True))(x, y)
    np.testing.assert_allclose(got, want, atol=2e-5 * np.abs(want).max())
    np.testing.assert_allclose(ours, spread, atol=1e-4 * np.abs(spread).max())


@pytest.mark.parametrize("count", [3, 9, 20])
def test_fits_have_derivatives(count):
    """By the points and by their values: those of NumPy's fits in double precision."""
    x, y = X[:count], Y[:count]
    if count > len(X):
        x = np.linspace(-1, 2, count, dtype=np.float32)
        y = np.sin(x)

    def total(x, y):
        return (fnp.polyfit(x, y, 2) * np.array([1.0, 2, 3], np.float32)).sum()

    for k, slope in enumerate(jit(grad(total, (0, 1)))(x, y)):
        for i in range(count):
            values = []
            for step in (1e-4, -1e-4):
                at = [x.astype(float), y.astype(float)]
                at[k][i] += step
                values.append((np.polyfit(*at, 2) * [1, 2, 3]).sum())
            want = (values[0] - values[1]) / 2e-4
            np.testing.assert_allclose(slope[i], want, rtol=2e-2, atol=2e-3)
