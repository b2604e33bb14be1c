"""Windows: geometry, and the selections that differentiate windowed maxima."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fnarray import lax
from fnarray.core.avals import ShapedArray
from fnarray.ops import window
from fnarray_kernels import window as kernels

rng = np.random.default_rng(4)

GEOMETRIES = [
    ((6,), (3,), (1,), ((1, 1),)),
    ((6,), (2,), (2,), ((0, 0),)),
    ((5, 6), (2, 3), (1, 2), ((1, 0), (0, 1))),
    ((2, 4, 5), (1, 2, 2), (1, 2, 1), ((0, 0), (3, 0), (0, 0))),
]


def chosen(x, prim, size, strides, pads):
    """Yield each place with the index it selects, by loops; None where all is padding."""
    places = lax.reduce_window_shape_tuple(x.shape, size, strides, pads)
    for place in np.ndindex(*places):
        best = None
        for r in itertools.product(*map(range, size)):
            at = tuple(
                p * s + k - lo for p, s, k, (lo, _) in zip(place, strides, r, pads, strict=True)
            )
            if all(0 <= i < n for i, n in zip(at, x.shape, strict=True)) and (
                best is None or not prim(x[best], x[at])
            ):
                best = at
        yield place, best


def draw(shape, nan):
    x = rng.integers(0, 5, shape).astype(np.float32)  # ties are many
    if nan:
        x.flat[::4] = np.nan
    return x


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("name", ["ge", "le"])
@pytest.mark.parametrize("nan", [False, True])
def test_selection(geometry, name, nan):
    """Each window selects by the definition: evaluated, and by the kernel."""
    shape, size, strides, pads = geometry
    x, tangents = draw(shape, nan), draw(shape, False)
    places = lax.reduce_window_shape_tuple(shape, size, strides, pads)
    source = draw(places, False)
    scattered, gathered = np.zeros(shape, np.float32), np.zeros(places, np.float32)
    prim = {"ge": np.greater_equal, "le": np.less_equal}[name]
    for place, at in chosen(x, prim, size, strides, pads):
        if at is not None:
            scattered[at] += source[place]
            gathered[place] = tangents[at]
    args = (getattr(lax, f"{name}_p"), size, strides, pads)
    got = window.select_and_scatter_add(source, x, *args)
    np.testing.assert_array_equal(np.asarray(got), scattered)
    np.testing.assert_array_equal(
        np.asarray(window.select_and_gather_add(tangents, x, *args)), gathered
    )
    for label, first, want in (("scatter", source, scattered), ("gather", tangents, gathered)):
        params = window.window_params(shape, size, strides, pads)
        if label == "scatter":
            del params["base_dilation"], params["window_dilation"]
        avals = [ShapedArray(a.shape, a.dtype) for a in (first, x)]
        face = f"select_and_{label}_add"
        prim_record = getattr(window, f"{face}_p")
        form = prim_record.form(avals, None, select_prim=args[0], **params)
        out = np.empty(want.size, np.float32)
        getattr(kernels, face)(first.reshape(-1), x.reshape(-1), out, *form.statics)
        np.testing.assert_array_equal(out.reshape(want.shape), want)


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_LOWER", "same"])
@pytest.mark.parametrize(
    "sizes", [((6,), (2,), (1,)), ((7, 5), (3, 2), (2, 2)), ((4,), (2,), (5,))]
)
def test_named_padding(padding, sizes):
    """Names stand for the pairs they stand for in JAX."""
    jax = pytest.importorskip("jax")
    want = jax.lax.padtype_to_pads(*sizes, padding)
    assert lax.padtype_to_pads(*sizes, padding) == [tuple(map(int, p)) for p in want]


@pytest.mark.parametrize("function", [lax.add, lax.max, lax.min, lax.mul])
@pytest.mark.parametrize(
    ("size", "stride", "spread"), [(1, 1, 1), (13, 1, 1), (6, 1, 3), (7, 2, 2), (50, 1, 1)]
)
def test_long_windows_are_combined_in_pairs(function, size, stride, spread):
    """Whatever their length, stride and dilation, windows have what loops over them give."""
    x = rng.uniform(0.9, 1.1, (3, 45)).astype(np.float32)
    start, ufunc = {
        lax.add: (0, np.add), lax.mul: (1, np.multiply),
        lax.max: (-np.inf, np.maximum), lax.min: (np.inf, np.minimum),
    }[function]  # fmt: skip
    got = lax.reduce_window(
        x, np.float32(start), function, (1, size), (1, stride), [(0, 0), (4, 2)],
        window_dilation=(1, spread),
    )  # fmt: skip
    wide = np.pad(x.astype(np.float64), ((0, 0), (4, 2)), constant_values=start)
    count = max(0, (wide.shape[1] - (size - 1) * spread - 1) // stride + 1)
    want = [
        wide[:, p * stride : p * stride + (size - 1) * spread + 1 : spread] for p in range(count)
    ]
    want = np.stack([ufunc.reduce(w, 1) for w in want], 1) if count else np.empty((3, 0))
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_sums_of_long_windows_are_rounded_about_once():
    """A thousand terms are added in pairs: not by one error each."""
    x = rng.uniform(0, 1, 4000).astype(np.float32)
    got = lax.reduce_window(x, np.float32(0), lax.add, (1000,), (1,), "VALID")
    want = np.convolve(x.astype(np.float64), np.ones(1000), "valid")
    off = (np.asarray(got, np.float64) - want) / np.spacing(np.float32(want.max()))
    assert np.sqrt(np.mean(off**2)) < 1  # 0.27 to 0.5, as the largest is in its binade; was 3.3
