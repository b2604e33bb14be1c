"""Derivatives and ends where a formula's own lose digits, or are no numbers, against mpmath's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import fnarray
import fnarray.numpy
from fnarray.scipy import special, stats


def _quantile(p: Any) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1) if p > 1e-9 else _far_quantile(p)


def _far_quantile(p: Any) -> Any:
    def off(y: Any) -> Any:
        return mpmath.log(mpmath.erfc(-y / mpmath.sqrt(2)) / 2) - mpmath.log(p)

    return mpmath.findroot(off, -mpmath.sqrt(-2 * mpmath.log(p)))


def _quantile_slope(p: Any) -> Any:
    return mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(_quantile(p) ** 2 / 2)


def _sinc(order: int) -> Callable[[Any], Any]:
    """Return the integral of ``cos(pi x t)`` over ``t`` from 0 to 1, derived under the integral."""

    def slope(x: Any) -> Any:
        def inside(t: Any) -> Any:
            turned = mpmath.pi * x * t + order * mpmath.pi / 2
            return (mpmath.pi * t) ** order * mpmath.cos(turned)

        return mpmath.quad(inside, [0, 1])

    return slope


#: Function, order of the derivative, what it is, where.
SLOPES = {
    "sinc": (fnarray.numpy.sinc, 1, _sinc(1), [1e-38, 1e-10, 1e-3, 0.3, 0.99, 1.01, -0.4]),
    "sinc:twice": (fnarray.numpy.sinc, 2, _sinc(2), [0, 1e-38, 1e-3, 0.3, 1.01, -0.4]),
    "arcsin:twice": (
        fnarray.numpy.arcsin,
        2,
        lambda x: x / (1 - x * x) ** 1.5,
        [0, 1e-30, 1e-9, 0.0014, 0.3, 0.6, 0.99, -0.3],
    ),
    "digamma": (
        special.digamma,
        1,
        lambda x: mpmath.psi(1, x),
        [-1.6e-16, -7.8e-18, -1e-10, -0.3, -1.0000001, -12.999492, -624.99896],
    ),
    "ndtri": (special.ndtri, 1, _quantile_slope, [1.5e-28, 1.5e-10, 1e-3, 0.07, 0.3, 0.5, 0.97]),
    "ndtri:twice": (
        special.ndtri,
        2,
        lambda p: _quantile(p) * _quantile_slope(p) ** 2,
        [1.5e-10, 1e-3, 0.07, 0.3, 0.97],
    ),
    "expon.logcdf": (
        stats.expon.logcdf,
        2,
        lambda x: -mpmath.exp(-x) / mpmath.expm1(-x) ** 2,
        [1e-3, 0.5, 3, 80, 200, 1e10],
    ),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_keep_digits(name):
    """In single precision to ten units in the last place, near poles, zeros and ends."""
    f, order, wanted, points = SLOPES[name]
    for _ in range(order):
        f = fnarray.grad(f)
    x = np.float32(points)
    with mpmath.workdps(60):
        want = np.float32([float(wanted(mpmath.mpf(float(p)))) for p in x])
    np.testing.assert_allclose(fnarray.jit(fnarray.vmap(f))(x), want, rtol=1.2e-6)
    np.testing.assert_allclose(fnarray.vmap(f)(x), want, rtol=1.2e-6)


def test_slopes_at_ends():
    """They are infinite where a function becomes so, and NaN outside of its domain."""
    slope = fnarray.vmap(fnarray.grad(special.ndtri))(np.float32([0, 1, -0.1, 1.1, np.nan]))
    np.testing.assert_array_equal(slope, [np.inf, np.inf, np.nan, np.nan, np.nan])
    slope = fnarray.vmap(fnarray.grad(special.gamma))(np.float32([36, 88, 1e10, np.inf]))
    np.testing.assert_array_equal(slope, np.inf)
    twice = fnarray.vmap(fnarray.grad(fnarray.grad(stats.expon.logcdf)))
    np.testing.assert_array_equal(twice(np.float32([104, 1e10, np.inf])), 0)


def test_slopes_of_beta_do_not_cancel(x64):
    """Of a large argument beside a small one, where digammas are one number."""
    pairs = [(4.9e17, 7.9e10), (7.5e9, 3.0), (10.0, 1e-6), (8.0, 1e4), (9.0, -0.5), (2.0, 1e4)]
    got = [fnarray.grad(special.betaln)(a, b) for a, b in pairs]
    with mpmath.workdps(60):
        want = [float(mpmath.psi(0, a) - mpmath.psi(0, mpmath.mpf(a) + b)) for a, b in pairs]
    np.testing.assert_allclose(got, want, rtol=1e-14)
    outside = fnarray.grad(special.betaln, (0, 1))(0.5, -3.25)
    want = _digammas(0.5, -3.25)
    np.testing.assert_allclose(outside, want, rtol=1e-12)


def _digammas(a: float, b: float) -> tuple[float, float]:
    """Slopes of the logarithm of beta by their definition."""
    total = mpmath.psi(0, a + b)
    return float(mpmath.psi(0, a) - total), float(mpmath.psi(0, b) - total)


def test_complex_functions_near_the_ends_of_the_range():
    """Sizes beyond the largest number have logarithms, and subnormal numbers a `sinc`."""
    large = np.float32(3e38) * np.complex64([1 + 1j, -1 + 1j, 0.5 - 1j])
    small = np.complex64([1e-45j, -1e-45, 1e-39 + 1e-40j, 0])
    for run in (lambda f: f, fnarray.jit):
        got = run(fnarray.numpy.log1p)(large)
        np.testing.assert_allclose(got, np.log(large.astype(complex)), rtol=2e-7)
        np.testing.assert_array_equal(run(fnarray.numpy.sinc)(small), 1)


def test_exponents_beyond_int32():
    """They are as far as any: the result is infinite, or 0."""
    x, n = np.float32([127, 1, -3]), np.uint32([2**32 - 1, 2**31, 3])
    for run in (lambda f: f, fnarray.jit):
        np.testing.assert_array_equal(run(fnarray.numpy.ldexp)(x, n), [np.inf, np.inf, -24])
        small = run(fnarray.numpy.ldexp)(x, np.int32([-(2**31), -1, 2**31 - 1]))
        np.testing.assert_array_equal(small, [0, 0.5, -np.inf])
