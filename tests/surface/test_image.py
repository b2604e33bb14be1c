"""Resampling of images, beside JAX's."""

from __future__ import annotations

import jax
import jax.image
import numpy as np
import pytest

import fnarray
import fnarray.image

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 7, 2)).astype(np.float32)
METHODS = ["nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_resize_is_jaxs(method, antialias):
    """Larger, smaller and equal axes, floating and integer elements."""
    for x in (X, (100 * X).astype(np.int16), X.astype(np.float16)):
        for shape in ((8, 7, 2), (3, 4, 2), (10, 3, 5), (1, 1, 2)):
            got = fnarray.image.resize(x, shape, method, antialias)
            want = jax.image.resize(x, shape, method, antialias)
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            scale = float(np.abs(x).max())
            wide = 4e-3 if x.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(
                np.asarray(got, np.float64), np.asarray(want, np.float64), atol=wide * scale
            )


@pytest.mark.parametrize("method", METHODS[1:])
def test_scale_and_translate_is_jaxs(method):
    """Values and gradients, by the image, the scale and the translation, compiled."""

    def program(lib):
        def run(x, scale, shift):
            put = lib.image.scale_and_translate
            return put(x, (6, 9, 2), (0, -2), scale, shift, method, antialias=False)

        at = lib.numpy.asarray(X), lib.numpy.array([1.3, 0.8]), lib.numpy.array([0.4, -1.1])
        grads = lib.grad(lambda *a: (run(*a) ** 2).sum(), (0, 1, 2))
        return lib.jit(run)(*at), lib.jit(grads)(*at)

    got, want = jax.tree.leaves(program(fnarray)), jax.tree.leaves(program(jax))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-4, atol=2e-4)


def test_names_of_methods():
    """Each name gives JAX's method, and an unknown one is refused with those there are."""
    names = "nearest linear bilinear trilinear triangle lanczos3 lanczos5 cubic bicubic tricubic"
    for name in (*names.split(), "cubic-pytorch", "bicubic-pytorch", "area"):
        method = fnarray.image.ResizeMethod.from_string(name)
        assert method.name == jax.image.ResizeMethod.from_string(name).name
    with pytest.raises(ValueError, match=r'Unknown resize method "cubical".*lanczos3'):
        fnarray.image.resize(X, X.shape, "cubical")
    with pytest.raises(ValueError, match="number of dimensions"):
        fnarray.image.resize(X, (3, 3), "linear")
    with pytest.raises(ValueError, match="axis 2 is not among"):
        fnarray.image.scale_and_translate(X, (5, 7, 3), (0,), [1.0], [0.0], "linear")
    with pytest.raises(ValueError, match="no weights"):
        fnarray.image.scale_and_translate(X, X.shape, (0,), [1.0], [0.0], "nearest")
