"""Special functions agree with SciPy, and at their edges with JAX."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from jax import lax
from scipy import special

from fnarray_kernels import special as sp

from .loops import special_loop

POSITIVE = np.concatenate([np.logspace(-8, 2.5, 160), np.linspace(0.01, 12, 240)])
SIGNED = np.concatenate([POSITIVE, -np.linspace(0.013, 20.7, 300)])
WIDE = np.concatenate([[0.0, 8.0, 1e-300, 1e300], POSITIVE, np.linspace(7, 9, 40)])
EDGES = np.array([0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan, 1e300, 1.0, 2.0])
SHAPES = (1e-3, 0.3, 1.0, 2.5, 11.9, 12.1, 80.0, 1e3, 1e6)


def loop(fn, arity):
    """Return `fn` mapped over arrays by a kernel, as the emitter would call it."""
    (name,) = (n for n, value in vars(sp).items() if value is fn)
    return special_loop(name, arity)


def lgamma_near_1(x):
    """Taylor's series of log gamma at 1 (DLMF 5.7.3)."""
    e = x - 1
    return -np.euler_gamma * e + sum(special.zeta(k) / k * (-e) ** k for k in range(2, 12))


def lgamma_near_2(x):
    """The same by the recurrence."""
    return np.log1p(x - 2) + lgamma_near_1(x - 1)


def check(fn, want, args, rtol, atol=0.0):
    """The compiled reading is near `want` in float64 and float32, and the plain one equals it."""
    for dtype in (np.float64, np.float32):
        with np.errstate(over="ignore", under="ignore"):
            inputs = [np.asarray(a).astype(dtype) for a in args]
        out = np.empty(inputs[0].shape, dtype)
        loop(fn, len(args))(*inputs, out)
        exact = want(*(a.astype(np.float64) for a in inputs))
        eps = 0 if dtype == np.float64 else 4e-7
        with np.errstate(over="ignore", under="ignore"):
            target = exact.astype(dtype)
        np.testing.assert_allclose(out, target, rtol=rtol + eps, atol=atol + eps * 1e-3)
        some = range(0, len(out), 37)
        plain = [fn(*(a[i] for a in inputs)) for i in some]
        assert all(p.dtype == dtype for p in plain)
        np.testing.assert_allclose(plain, out[::37], rtol=1e-9 + eps, atol=1e-14)


@pytest.mark.parametrize(
    ("fn", "want", "x", "rtol", "atol"),
    [
        (sp.lgamma, special.gammaln, SIGNED, 3e-15, 4e-14),
        (sp.lgamma, lgamma_near_1, 1 + np.logspace(-12, -2, 60), 1e-15, 0),
        (sp.lgamma, lgamma_near_2, 2 - np.logspace(-12, -2, 60), 1e-15, 0),
        (sp.digamma, special.digamma, POSITIVE, 3e-15, 2e-16),
        (sp.digamma, special.digamma, SIGNED, 3e-14, 2e-12),
        (sp.bessel_i0e, special.i0e, WIDE, 4e-15, 0),
        (sp.bessel_i1e, special.i1e, WIDE, 4e-15, 0),
        (sp.bessel_i1e, special.i1e, -WIDE, 4e-15, 0),
    ],
)
def test_unary(fn, want, x, rtol, atol):
    """Functions of one argument keep their relative accuracy, also near the zeros of positive x."""
    check(fn, want, (x,), rtol, atol)


def grid(*columns):
    """Return all combinations of the columns, as arrays."""
    return [np.array(v) for v in zip(*itertools.product(*columns), strict=True)]


@pytest.mark.parametrize(
    ("fn", "want"), [(sp.igamma, special.gammainc), (sp.igammac, special.gammaincc)]
)
def test_incomplete_gamma(fn, want):
    """P and Q agree with SciPy around the shoulder and far from it."""
    a, ratio = grid(SHAPES, (1e-6, 0.1, 0.7, 0.97, 0.999, 1.0, 1.001, 1.02, 1.3, 3.0, 20.0))
    check(fn, want, (a, a * ratio), 2e-12, 1e-15)


def test_incomplete_gamma_of_huge_shape():
    """Above 1e8 a short expansion takes over; it meets Edgeworth's, right to 1 / a."""
    for a in (1e12, 1e14, 1e16):
        for z in (-6.0, -1.0, 0.0, 0.5, 6.0):
            x = a + z * np.sqrt(a)
            z = (x - a) / np.sqrt(a)
            slope = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
            want = special.ndtr(z) - slope * (z * z - 1) / (3 * np.sqrt(a))
            np.testing.assert_allclose(sp.igamma(a, x), want, rtol=1e-8, atol=1 / a)


def test_incomplete_beta():
    """I(a, b; x) agrees with SciPy over shapes and arguments, near the peak too."""
    a, b, x = grid(SHAPES, SHAPES, (1e-8, 0.01, 0.3, 0.5, 0.9, 0.999))
    peak = np.clip(a / (a + b) * 1.001, 0, 1)
    args = [np.concatenate([a, a]), np.concatenate([b, b]), np.concatenate([x, peak])]
    check(sp.betainc, special.betainc, args, 2e-9, 1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lgamma_has_its_zeros(dtype):
    """At 1 and 2 the result is 0, not a rounding of it."""
    x, out = np.array([1, 2], dtype), np.empty(2, dtype)
    loop(sp.lgamma, 1)(x, out)
    assert (out == 0).all()
    assert all(sp.lgamma(v) == 0 for v in x)


def test_zeta_and_polygamma():
    """Hurwitz zeta and the polygammas agree with SciPy, for negative arguments too."""
    x, q = grid((1.0001, 1.5, 2, 3, 7.5, 20, 60, 150), (1e-3, 0.5, 1, 3.3, 9.9, 10.1, 100, 1e4))
    check(sp.zeta, special.zeta, (x, q), 2e-12)
    n, x = grid(range(0, 12), (0.01, 0.7, 1.3, 5.5, 30.0, 1e3))
    check(sp.polygamma, special.polygamma, (n, x), 1e-12)


def test_zeta_and_polygamma_of_float32():
    """What vectors compute of float32 is SciPy's within an ULP; below zero a sum and SciPy's."""
    x, q = grid((1.0001, 1.5, 2, 3, 7.5, 20, 38.5), (1e-2, 0.5, 1, 3.3, 9.9, 13.85, 100, 1e4))
    below = grid(range(2, 12), (-0.25, -0.5, -1.7, -3.1, -20.4))
    n, y = grid(range(0, 12), (0.01, 0.7, 1.3, 5.5, 30.0, 1e3, -0.3, -2.6))
    x, q = np.float32(np.append(x, below[0])), np.float32(np.append(q, below[1]))
    n, y = np.float32(n), np.float32(y)

    def zeta(x, q):
        first, steps = np.float64(q), max(0, int(np.ceil(-q)))
        return sum((first + k) ** -x for k in range(steps)) + special.zeta(x, first + steps)

    want = [zeta(float(a), float(b)) for a, b in zip(x, q, strict=True)]
    out = np.empty_like(x)
    loop(sp.zeta_32, 2)(x, q, out)
    with np.errstate(over="ignore"):
        want = np.float32(want)
    np.testing.assert_allclose(out, want, rtol=1.2e-7)
    signed = [
        special.digamma(b) if a == 0 else (-1) ** (a + 1) * special.gamma(a + 1) * zeta(a + 1, b)
        for a, b in zip(np.float64(n), np.float64(y), strict=True)
    ]
    out = np.empty_like(y)
    loop(sp.polygamma_32, 2)(n, y, out)
    np.testing.assert_allclose(out, np.float32(signed), rtol=1.2e-7)


@pytest.mark.parametrize(
    ("fn", "want", "arity"),
    [
        (sp.lgamma, lax.lgamma, 1),
        (sp.digamma, lax.digamma, 1),
        (sp.bessel_i0e, lax.bessel_i0e, 1),
        (sp.bessel_i1e, lax.bessel_i1e, 1),
        (sp.igamma, lax.igamma, 2),
        (sp.igammac, lax.igammac, 2),
        (sp.betainc, lax.betainc, 3),
        (sp.zeta, lax.zeta, 2),
        (sp.polygamma, lax.polygamma, 2),
        (sp.zeta_32, lax.zeta, 2),
        (sp.polygamma_32, lax.polygamma, 2),
    ],
)
def test_edges_are_those_of_lax(fn, want, arity):
    """Poles, infinities, NaN and arguments out of range give what lax gives."""
    edges = EDGES if arity == 1 else EDGES[EDGES != 1e300]  # lax iterates there without end
    columns = [edges, edges, (0.0, 0.5, 1.0, -0.1, 1.1, np.nan)][:arity]
    single = fn in (sp.zeta_32, sp.polygamma_32)
    args = [a.astype(np.float32 if single else np.float64) for a in grid(*columns)]
    out = np.empty_like(args[0])
    loop(fn, arity)(*args, out)
    with jax.enable_x64(True):
        expected = np.asarray(want(*args))
    for i, row in enumerate(zip(*args, strict=True)):
        np.testing.assert_allclose(
            out[i], expected[i], rtol=3e-6 if single else 1e-9, atol=1e-15, err_msg=str(row)
        )
