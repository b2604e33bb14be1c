"""Orthogonal factors of small matrices beside LAPACK's, in compiled programs."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray import numpy as jnp
from fnarray.config import enable_x64

RNG = np.random.default_rng(4)
SHAPES = ((1, 1), (3, 3), (8, 8), (5, 3), (3, 5), (12, 4), (20, 20), (2, 1), (1, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_orthogonal_factors(dtype):
    """Of any shape, reduced and complete, of zeros, and with a column of zeros."""
    with enable_x64(dtype in ("float64", "complex128")):
        for shape in SHAPES:
            x = RNG.standard_normal((4, *shape))
            x = (x + 1j * RNG.standard_normal(x.shape) if dtype[0] == "c" else x).astype(dtype)
            x[1], x[2, :, 0] = 0, 0
            found = fnarray.jit(lambda x: (*jnp.linalg.qr(x), *jnp.linalg.qr(x, mode="complete")))
            lines = found.lower(x).as_text()
            assert "fk.linalg.qr" in lines
            wants = [(*np.linalg.qr(a), *np.linalg.qr(a, "complete")) for a in x]
            for got, want in zip(found(x), zip(*wants, strict=True), strict=True):
                np.testing.assert_allclose(got, np.stack(want), atol=200 * np.finfo(dtype).eps)


def test_orthogonal_factors_of_extremes():
    """Squares of entries need not be finite, or other than zero; what is no number stays so."""
    qr = fnarray.jit(jnp.linalg.qr)
    with enable_x64(True):
        x = np.array([[1.0, 2.0], [3.0, 0.5]])
        for scale in (1e300, 1e-300):
            q, r = qr(x * scale)
            np.testing.assert_allclose(np.asarray(q) @ np.asarray(r), x * scale, rtol=1e-14)
        assert np.isnan(qr(np.array([[np.nan, 1], [1, 2]]))[1]).any()


def test_loops_hold_orthogonal_factors():
    """Lyapunov's exponents by QR: a loop that is one kernel."""
    a = RNG.standard_normal((6, 6)).astype(np.float32)

    def exponents(a):
        def step(q, _):
            q, r = jnp.linalg.qr(a @ q)
            return q, jnp.log(jnp.abs(jnp.diagonal(r)))

        return lax.scan(step, jnp.eye(6), None, length=300)[1].mean(0)

    compiled = fnarray.jit(exponents)
    assert "(host)" not in compiled.lower(a).as_text()
    want = np.sort(np.log(np.abs(np.linalg.eigvals(a))))[::-1]
    np.testing.assert_allclose(compiled(a).sum(), want.sum(), rtol=1e-4)


@pytest.mark.parametrize("shape", [(2000, 2), (500, 8), (9, 450), (130, 31)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_orthogonal_factors_of_long_matrices(shape, dtype):
    """Sums over many rows lose no more than LAPACK's: entries that are all of one sign as well."""
    x = RNG.uniform(0.5, 1.5, shape)
    x = (x + 1j * RNG.uniform(0, 1, shape) if dtype[0] == "c" else x).astype(dtype)
    factor = fnarray.jit(jnp.linalg.qr)
    assert "fk.linalg.qr" in factor.lower(x).as_text()
    q, r = (np.asarray(y, np.complex128) for y in factor(x))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(q.conj().T @ q, np.eye(q.shape[1]), atol=6 * eps)
    np.testing.assert_allclose(q @ r, x, atol=4 * eps * np.linalg.norm(x, axis=0).max())
