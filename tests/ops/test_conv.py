"""Convolutions beyond the table: the direct kernel, and the functions built on the primitive."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.config import enable_x64
from fnarray_kernels import conv as kernels

from .cases_reduce import _CONVOLUTIONS

rng = np.random.default_rng(3)


@pytest.fixture(scope="module")
def oracle():
    return pytest.importorskip("jax").lax


def draw(shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def close(got, want):
    assert got.shape == want.shape
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("label", _CONVOLUTIONS)
def test_direct_kernel(label):
    """The loops that run inside compiled loops give what windows and BLAS give."""
    shapes, params = _CONVOLUTIONS[label]
    x, w = map(draw, shapes)
    params = MappingProxyType({"window_strides": (1, 1), **params})
    graph = fnarray.make_jaxpr(lambda x, w: lax.conv_general_dilated(x, w, **params))(x, w)
    eqn = graph.eqns[0]
    form, want = eqn.form(), eqn.primitive.eval(x, w, **eqn.params)
    out = np.empty(want.size, np.float32)
    kernels.direct(x.reshape(-1), w.reshape(-1), out, *form.statics)
    close(out.reshape(want.shape), want)


def test_convolves_inside_a_loop():
    """A compiled loop convolves natively, to the same result."""
    x, w = draw((1, 3, 8, 8)), fnarray.numpy.asarray(draw((3, 3, 3, 3)))

    def step(i, x):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME")

    close(fnarray.jit(lambda x: lax.fori_loop(0, 3, step, x))(x), step(0, step(0, step(0, x))))


@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (3, 5)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 2), (0, 1))])
@pytest.mark.parametrize("consistent", [False, True])
def test_conv_transpose(strides, padding, consistent, oracle):
    """Fractional strides give JAX's values, under both readings of explicit padding."""
    x, w = draw((2, 6, 7, 4)), draw((3, 2, 4, 5))
    params = {"strides": strides, "padding": padding, "use_consistent_padding": consistent}
    close(lax.conv_transpose(x, w, **params), oracle.conv_transpose(x, w, **params))


def test_conv_transpose_of_a_flipped_kernel(oracle):
    """``transpose_kernel`` flips the kernel and swaps its features."""
    x, w = draw((2, 6, 7, 4)), draw((3, 2, 5, 4))
    args = (x, w, (2, 2), "SAME")
    want = oracle.conv_transpose(*args, transpose_kernel=True)
    close(lax.conv_transpose(*args, transpose_kernel=True), want)


@pytest.mark.parametrize(
    ("shape", "kernel", "names"),
    [
        ((2, 4, 6, 7), (5, 24, 4, 6), None),
        ((2, 6, 7, 4), (4, 6, 24, 5), ("NHWC", "HWIO", "NHWC")),
    ],
)
def test_patches_and_local(shape, kernel, names, oracle):
    """Patches are the windows' elements, features slowest; a local kernel contracts them."""
    x, w = draw(shape), draw(kernel)
    patches = ((3, 2), (1, 2), "SAME")
    want = oracle.conv_general_dilated_patches(x, *patches, dimension_numbers=names)
    close(lax.conv_general_dilated_patches(x, *patches, dimension_numbers=names), want)
    local = ((1, 1), "VALID", (3, 2))
    want = oracle.conv_general_dilated_local(x, w, *local, dimension_numbers=names)
    close(lax.conv_general_dilated_local(x, w, *local, dimension_numbers=names), want)


def test_layouts_and_shapes(oracle):
    """Layout strings and the shape functions agree with JAX's."""
    names = ("NHWC", "WHIO", "NWHC")
    ours, theirs = (m.conv_dimension_numbers((1,) * 4, (1,) * 4, names) for m in (lax, oracle))
    assert tuple(ours) == tuple(theirs)
    for name, args in (
        ("conv_shape_tuple", ((2, 4, 6, 7), (6, 4, 3, 2), (1, 2), ((0, 0), (1, 1)))),
        ("conv_general_shape_tuple", ((2, 6, 7, 4), (2, 3, 4, 6), (1, 2), "SAME", names)),
        ("conv_transpose_shape_tuple", ((2, 6, 7, 4), (2, 3, 4, 6), (1, 2), "SAME", names)),
    ):
        assert getattr(lax, name)(*args) == tuple(map(int, getattr(oracle, name)(*args)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_about_the_width_of_vectors(dtype):
    """Products of windows have one text of columns that fit a vector, and one of all others."""
    with enable_x64(dtype == "float64"):
        x = draw((2, 3, 5, 6)).astype(dtype)
        for features in (1, 4, 5, 8, 9, 16, 17, 33):
            w = draw((features, 3, 2, 3)).astype(dtype)
            views = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))
            want = np.einsum("bihwjk,oijk->bohw", views, w)
            close(fnarray.jit(lambda x, w: lax.conv(x, w, (1, 1), "VALID"))(x, w), want)


@pytest.mark.parametrize("layout", ["NCH", "NHC"])
@pytest.mark.parametrize("terms", [48, 1000])
@pytest.mark.parametrize(("padding", "apart"), [((0, 0), 1), ((7, -3), 1), ((5, 4), 2)])
def test_long_vectors_slide_along_lines(layout, terms, padding, apart):
    """Sums of many products of a vector with lines are rounded about once, compiled and not."""
    x, w = (np.abs(draw(s)) for s in ((3, 1, 2500), (1, 1, terms)))
    wide = np.zeros((3, 2499 * apart + 1))
    wide[:, ::apart] = x[:, 0]
    wide = np.pad(wide, ((0, 0), (padding[0], max(padding[1], 0))))
    wide = wide[:, : wide.shape[1] + min(padding[1], 0)]
    want = np.stack([np.correlate(line, w[0, 0].astype(np.float64)) for line in wide])
    numbers = (layout, "OIH", layout)
    x = x if layout == "NCH" else np.moveaxis(x, 1, 2)

    def f(x, w):
        return lax.conv_general_dilated(
            x, w, (1,), [padding], lhs_dilation=(apart,), dimension_numbers=numbers
        )

    for got in (f(x, w), fnarray.jit(f)(x, w)):
        off = (np.asarray(got, np.float64).reshape(want.shape) - want) / np.spacing(
            np.float32(want.max())
        )
        assert np.sqrt(np.mean(off**2)) < 1  # 0.3 to 0.6, as the largest is in its binade; was 1.9
