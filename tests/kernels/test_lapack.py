"""LAPACK's decompositions and exponentials of matrices inside of compiled loops, beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import fnarray
from fnarray import lax
from fnarray import numpy as jnp
from fnarray.config import enable_x64
from fnarray.scipy.linalg import expm, expm_frechet, sqrtm

DTYPES = ("float32", "float64", "complex64", "complex128")


def matrices(dtype, *shape):
    """Return matrices, the last one of which is not finite."""
    rng = np.random.default_rng([14, *shape])
    x = rng.standard_normal(shape)
    x = x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x
    x = x.astype(dtype)
    x[-1, 0, 0] = np.nan
    return x


def square(x):
    """Everything that is known of square matrices."""
    eigen = lax.linalg.eig(x, compute_left_eigenvectors=True, compute_right_eigenvectors=True)
    left = lax.linalg.eig(x, compute_left_eigenvectors=True, compute_right_eigenvectors=False)
    return (
        *lax.linalg.eigh(x, symmetrize_input=False),
        *lax.linalg.eigh(x, lower=False, symmetrize_input=False),
        *eigen,
        *left,
        *jnp.linalg.eig(x),
        jnp.linalg.eigvals(x),
        *lax.linalg.schur(x),
        *lax.linalg.schur(x, compute_schur_vectors=False),
        *condensed(x),
    )


def condensed(x):
    """Forms that reflections lead to; a matrix of one row has none."""
    if x.shape[-1] < 2:
        return ()
    return (
        *lax.linalg.hessenberg(x),
        *lax.linalg.tridiagonal(x),
        *lax.linalg.tridiagonal(x, lower=False),
    )


def any_shape(x):
    """Everything that is known of others."""
    return (
        *jnp.linalg.svd(x),
        *jnp.linalg.svd(x, full_matrices=False),
        jnp.linalg.svd(x, compute_uv=False),
        jnp.linalg.pinv(x),
        *lax.linalg.qr(x[:-1], pivoting=True),
        *lax.linalg.qr(x[:-1], pivoting=True, full_matrices=False),
    )


def in_loop(f):
    """Return what computes in the turns of a loop, of which the last one counts."""

    def looped(x):
        first = f(x * 0.5)
        return lax.fori_loop(0, 2, lambda k, _: f(x * (0.5 * (k + 1))), first)

    return fnarray.jit(looped)


@pytest.mark.parametrize("dtype", DTYPES)
def test_loops_call_lapack(dtype):
    """No step of a loop is the host's; results are SciPy's, NaN for what is no number."""
    close = {"atol": 400 * np.finfo(dtype).eps, "rtol": 1e-4 if dtype[-2:] == "32" else 1e-9}
    with enable_x64(True):
        for f, shapes in ((square, [(1, 1), (5, 5), (30, 30)]), (any_shape, [(6, 4), (3, 7)])):
            looped = in_loop(f)
            for shape in shapes:
                x = matrices(dtype, 3, *shape)
                assert "(host)" not in looped.lower(x).as_text()
                for got, want in zip(looped(x), f(jnp.asarray(x)), strict=True):
                    assert got.dtype == want.dtype
                    np.testing.assert_allclose(got, want, **close)


def test_single_matrices_are_kernels_and_large_stacks_are_shared():
    """The host's step is left where threads share a stack, and to large matrices."""
    eigh = fnarray.jit(jnp.linalg.eigh)
    for shape, kernel in (((4, 4), 1), ((20, 3, 3), 1), ((999, 9, 9), 0), ((99, 99), 0)):
        lines = eigh.lower(np.ones(shape, np.float32)).as_text().splitlines()
        assert sum(x.strip().startswith("fk.lapack.") for x in lines) == kernel


def test_pairs_of_eigenvalues():
    """A pair of complex eigenvalues keeps its order, and the vectors make up the matrix."""
    x = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 2]], np.float32)
    w, v = fnarray.jit(jnp.linalg.eig)(x)
    np.testing.assert_allclose(x @ v, v * np.asarray(w)[None], atol=1e-6)
    assert w[0] == np.conj(w[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials(dtype):
    """Of norms that take each degree of the approximant, and squarings; with their derivatives."""
    wide = np.complex128 if dtype[0] == "c" else np.float64
    looped = in_loop(lambda x: (expm(x), expm_frechet(x, x @ x, compute_expm=False)))
    with enable_x64(True):
        for n in (1, 2, 5, 12):
            sizes = np.array([0, 1e-2, 0.2, 0.8, 2, 6, 1]) / np.sqrt(n)
            x = (matrices(dtype, 7, n, n) * sizes[:, None, None]).astype(dtype)
            assert "(host)" not in looped.lower(x).as_text()
            got, change = looped(x)
            for a, *both in zip(x[:-1].astype(wide), got[:-1], change[:-1], strict=True):
                wants = scipy.linalg.expm_frechet(a, a @ a)
                for found, want in zip(both, wants, strict=True):
                    # SciPy's own were up to 400 of these off what mpmath says.
                    tolerance = 2000 * np.finfo(dtype).eps * abs(want).max()
                    np.testing.assert_allclose(found, want, atol=tolerance, rtol=0)
            assert np.isnan(got[-1]).all()
            assert np.isnan(change[-1]).all()


def test_exponentials_that_need_too_many_squarings():
    """They are NaN, as those of numbers that are not finite."""
    few = fnarray.jit(lambda x: expm(x, max_squarings=2))
    for size, finite in ((10, True), (40, False), (np.inf, False)):
        assert np.isfinite(few(np.float32([[size, 0], [0, 1]]))).all() == finite


@pytest.mark.parametrize("dtype", DTYPES)
def test_square_roots(dtype):
    """Real ones of real matrices, complex ones of pairs of eigenvalues, none of what is not finite.

    A root squared is the matrix, and its eigenvalues are in the right half of the plane.
    """
    wide = np.complex128 if dtype[0] == "c" else np.float64
    looped = in_loop(sqrtm)
    with enable_x64(True):
        for n in (1, 2, 5, 20):
            x = matrices(dtype, 4, n, n)
            x[0] = x[0] @ np.conj(x[0]).T + np.eye(n)
            x[1] += np.diag(4 + 2 * np.arange(n)).astype(dtype)
            x[2] = np.triu(x[2] * 0, 1) + np.diag(np.arange(n) + 1).astype(dtype)
            assert "(host)" not in looped.lower(x).as_text()
            got = np.asarray(looped(x))
            assert got.dtype == np.result_type(dtype, np.complex64)
            assert dtype[0] == "c" or not got[0].imag.any()
            for root, a in zip(got[:-1], x[:-1].astype(wide), strict=True):
                scale = 200 * np.finfo(dtype).eps * abs(a).max()
                np.testing.assert_allclose(root @ root, a, atol=scale, rtol=0)
                want = scipy.linalg.sqrtm(a)
                np.testing.assert_allclose(root, want, atol=scale, rtol=0)
            assert np.isnan(got[-1]).all()


def test_square_roots_of_rotations_and_negative_numbers():
    """The root of a rotation turns half as far; that of minus one is i, and 0 has the root 0."""
    x = np.array([[[0, -1], [1, 0]], [[-1, 0], [0, -4]], [[0, 0], [0, 0]]], np.float32)
    h = np.sqrt(0.5)
    want = [[[h, -h], [h, h]], [[1j, 0], [0, 2j]], [[0, 0], [0, 0]]]
    np.testing.assert_allclose(fnarray.jit(sqrtm)(x), want, atol=1e-6)
