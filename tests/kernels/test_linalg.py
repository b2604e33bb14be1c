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


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_few_equations_for_many_right_hand_sides(dtype):
    """They are the kernel's, in loops too: left and right, more of them than a block has."""
    a, b = RNG.standard_normal((2, 3, 3)), RNG.standard_normal((2, 3, 150))
    a, b = (x + 1j * x[::-1] if dtype[0] == "c" else x for x in (a + 4 * np.eye(3), b))
    a, b = a.astype(dtype), b.astype(dtype)
    flags = {"lower": True, "transpose_a": True}

    def solved(a, b):
        left = lax.linalg.triangular_solve(a, b, left_side=True, **flags)
        right = lax.linalg.triangular_solve(a, b.mT, **flags)
        return left, right, jnp.linalg.solve(a, b)

    found = fnarray.jit(lambda a, b: (solved(a, b), lax.map(lambda x: solved(*x), (a, b))))
    assert "(host)" not in found.lower(a, b).as_text()
    low = np.tril(a).mT
    wants = np.linalg.solve(low, b), np.linalg.solve(low.mT, b).mT, np.linalg.solve(a, b)
    for got, want in zip([*found(a, b)[0], *found(a, b)[1]], wants * 2, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_long_matrix_of_few_numbers_is_decomposed_in_a_kernel():
    """By LAPACK, as a square one of as many numbers is: from Python it took twice the time."""
    x = RNG.standard_normal((150, 6)).astype(np.float32)
    svd = fnarray.jit(lambda x: jnp.linalg.svd(x, full_matrices=False))
    assert "(host)" not in svd.lower(x).as_text()
    u, s, vh = map(np.asarray, svd(x))
    np.testing.assert_allclose(u * s @ vh, x, atol=1e-5)
    np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), rtol=1e-5)


def test_complex_systems_are_eliminated_by_parts():
    """Rows change places; a singular system is not finite, and does not touch its neighbours."""
    a = RNG.standard_normal((5, 9, 9)) + 1j * RNG.standard_normal((5, 9, 9))
    a[1, 0, 0], a[2, :, 3], a[3] = 0, 0, np.roll(np.eye(9), 1, 0) * 1j  # exchanges; singular
    b = RNG.standard_normal((5, 9, 2)) + 1j * RNG.standard_normal((5, 9, 2))
    a, b = a.astype(np.complex64), b.astype(np.complex64)
    found = fnarray.jit(
        lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.det(a), *jnp.linalg.slogdet(a))
    )
    assert "linear_solve_complex" in found.lower(a, b).as_text()
    x, det, sign, log = map(np.asarray, found(a, b))
    good, wide = [0, 1, 3, 4], a.astype(np.complex128)
    np.testing.assert_allclose(x[good], np.linalg.solve(wide[good], b[good]), rtol=2e-5, atol=2e-6)
    assert not np.isfinite(x[2, 0]).any()
    np.testing.assert_allclose(det, np.linalg.det(wide), rtol=1e-6)
    np.testing.assert_allclose(sign[good], np.linalg.slogdet(wide)[0][good], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(log, np.linalg.slogdet(wide)[1], rtol=1e-6, atol=1e-6)
    assert sign[2] == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 20])
def test_factors_of_positive_definite_matrices(n, dtype):
    """Of lower triangles alone; NaN, and nothing else, where a matrix has none."""
    with enable_x64(dtype == "float64"):
        x = RNG.standard_normal((7, n, n))
        x = (x + 1j * RNG.standard_normal(x.shape) if dtype[0] == "c" else x).astype(dtype)
        x = x @ x.conj().swapaxes(1, 2) + 3 * np.eye(n, dtype=dtype)
        want = np.linalg.cholesky(x)
        if n:
            x[2, n - 1, n - 1], x[4, n - 1, 0] = -1, np.nan
            want[[2, 4]] = np.tril(np.full((2, n, n), np.nan, dtype))
        upper = np.triu_indices(n, 1)
        x[:, *upper] = np.nan
        run = fnarray.jit(lambda x: lax.linalg.cholesky(x, symmetrize_input=False))
        assert not n or "fk.linalg.cholesky" in run.lower(x).as_text()
        close = 200 * np.finfo(dtype).eps
        np.testing.assert_allclose(run(x), want, close, close)
        np.testing.assert_array_equal(np.asarray(run(x))[:, *upper], 0)
        np.testing.assert_allclose(run(x[:1]), want[:1], close, close)
