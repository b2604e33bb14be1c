"""Stacks of matrices and of images: by LAPACK without Python, and shared out to threads."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.compile.cpu import lapack, library

DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(params=["stacked", "alone"])
def way(request, monkeypatch):
    """Both ways: all at once, and one after another where the library has no such routine."""
    if request.param == "alone":
        monkeypatch.setattr(lapack, "_address", lambda routine: None)
    return request.param


def stack(dtype, *shape):
    """Return matrices, one of which is not finite."""
    rng = np.random.default_rng([*map(int, shape)])
    x = rng.standard_normal(shape)
    x = x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x
    x = x.astype(dtype)
    x[(1,) * (len(shape) - 2)][0, -1] = np.nan
    return x


def close(got, want):
    """Compare to the accuracy of the dtype; NaN is equal to NaN."""
    tolerance = 500 * float(np.finfo(want.dtype).eps)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def adjoint(x):
    """Transpose and conjugate."""
    return np.conj(np.swapaxes(x, -1, -2))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("shape", [(3, 1, 1), (2, 4, 5, 5), (70, 9, 9)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh(dtype, shape, lower, way):
    """Values ascend, vectors are orthonormal and make up the matrix of one triangle."""
    x = stack(dtype, *shape)
    with fnarray.enable_x64(True):
        f = fnarray.jit(lambda x: lax.linalg.eigh(x, lower=lower, symmetrize_input=False))
        v, w = map(np.asarray, f(x))
    assert v.dtype == dtype
    half = np.tril(x, -1) if lower else np.triu(x, 1)
    whole = (half + adjoint(half) + np.real(x) * np.eye(shape[-1])).astype(dtype)
    bad = ~np.isfinite(x).all((-1, -2))
    assert np.isnan(v[bad]).all()
    assert np.isnan(w[bad]).all()
    close(w[~bad], np.linalg.eigvalsh(whole[~bad]))
    close((v * w[..., None, :] @ adjoint(v))[~bad], whole[~bad])
    close((adjoint(v) @ v)[~bad], np.broadcast_to(np.eye(shape[-1], dtype=dtype), v[~bad].shape))


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(3, 1, 1), (2, 4, 3, 6), (40, 6, 4), (5, 7, 7)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_svd(dtype, shape, full, way):
    """Values are NumPy's, with vectors and alone, and make up the matrix."""
    x = stack(dtype, *shape)
    with fnarray.enable_x64(True):
        f = fnarray.jit(lambda x: lax.linalg.svd(x, full_matrices=full))
        u, s, vh = map(np.asarray, f(x))
        alone = fnarray.jit(lambda x: lax.linalg.svd(x, compute_uv=False))(x)
    bad = ~np.isfinite(x).all((-1, -2))
    assert all(np.isnan(y[bad]).all() for y in (s, u, vh))
    want = np.linalg.svd(x[~bad], compute_uv=False)
    close(s[~bad], want)
    close(np.asarray(alone)[~bad], want)
    k = min(shape[-2:])
    close((u[..., :k] * s[..., None, :] @ vh[..., :k, :])[~bad], x[~bad])
    close(
        (adjoint(u) @ u)[~bad],
        np.broadcast_to(np.eye(u.shape[-1], dtype=dtype), u[~bad].shape[:-2] + (u.shape[-1],) * 2),
    )


def test_signs_do_not_depend_on_the_stack():
    """A matrix has the same bits in a stack and by itself."""
    x = np.random.default_rng(0).standard_normal((6, 8, 8)).astype("float32")
    x = x + x.swapaxes(1, 2)
    f = fnarray.jit(lax.linalg.eigh)
    v, w = f(x)
    for k in range(6):
        one = f(x[k])
        np.testing.assert_array_equal(v[k], one[0])
        np.testing.assert_array_equal(w[k], one[1])


@pytest.mark.parametrize("specs", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")])
def test_images_are_shared_out(specs):
    """A convolution that threads share, and its gradients, are JAX's, wherever the images are."""
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal((5, 3, 32, 32)), rng.standard_normal((16, 3, 5, 5))
    if specs[0] == "NHWC":
        x, w = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)
    x, w = x.astype("float32"), w.astype("float32")

    def results(m):
        def f(x, w):
            return m.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=specs)

        def loss(x, w):
            return m.numpy.mean(m.numpy.sin(f(x, w)))

        options = {"effects": "off"} if m is fnarray else {}
        both = m.jit(m.grad(loss, (0, 1)), **options)(x, w)
        return m.jit(f, **options)(x, w), *both

    before = fnarray.config.num_threads
    fnarray.config.update("num_threads", 3)
    try:
        found = results(fnarray)
    finally:
        fnarray.config.update("num_threads", before)
    for got, want in zip(found, results(jax), strict=True):
        size = float(np.abs(want).max())
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * size)


def test_few_images_leave_blas_one_thread(monkeypatch):
    """Products of patches too small to be shared out wake none of BLAS's threads."""
    entered = []
    real = library.one_thread

    class Watched:
        def __enter__(self):
            entered.append(True)
            real.__enter__()

        def __exit__(self, *exception):
            real.__exit__(*exception)

    monkeypatch.setattr(library, "one_thread", Watched())
    rng = np.random.default_rng(3)
    # Of complex numbers, which no processor has windows of our own for.
    x, w = stack("complex64", 2, 3, 9, 8), rng.standard_normal((4, 3, 3, 3)).astype("complex64")
    x = np.nan_to_num(x)
    found = fnarray.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"))(x, w)
    assert entered
    want = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
