"""Stacks of matrices that threads share give what NumPy gives for one after another."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray as fa
from fnarray.config import enable_x64, scoped

ROWS, STACK = 60, 32


def matrices(dtype):
    """Return positive definite matrices, of which one is zero."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((STACK, ROWS, ROWS)).astype(dtype)
    x = x @ np.swapaxes(x, 1, 2) + ROWS * np.eye(ROWS, dtype=dtype)
    x[5] = 0
    return x


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_singular_matrix_spoils_itself_alone(dtype, threads):
    """All others are solved and factored, on any number of threads."""
    a, rng = matrices(dtype), np.random.default_rng(1)
    b = rng.standard_normal((STACK, ROWS, 3)).astype(dtype)
    with enable_x64(True), scoped("num_threads", threads):
        x = np.asarray(fa.jit(fa.numpy.linalg.solve)(a, b))
        factor = np.asarray(fa.jit(fa.lax.linalg.cholesky)(a))
    rtol = 1e-4 if dtype == "f4" else 1e-9
    for k in range(STACK):
        if k == 5:
            assert not np.isfinite(x[k]).any()
            assert np.isnan(factor[k][np.tril_indices(ROWS)]).all()
        else:
            np.testing.assert_allclose(x[k], np.linalg.solve(a[k], b[k]), rtol, atol=rtol)
            np.testing.assert_allclose(factor[k], np.linalg.cholesky(a[k]), rtol, atol=rtol)


def test_shards_around_go_on():
    """Of two shards, in one of which a matrix is singular, both end with their results."""
    a = np.stack([matrices("f4"), matrices("f4")])
    a[1, 5] = np.eye(ROWS)
    with scoped("num_cpu_devices", 2), scoped("num_threads", 4):
        x = np.asarray(fa.pmap(fa.numpy.linalg.inv)(a))
    assert np.argwhere(~np.isfinite(x).all((2, 3))).tolist() == [[0, 5]]
    np.testing.assert_allclose(x[1], np.linalg.inv(a[1]), 1e-4, atol=1e-4)
