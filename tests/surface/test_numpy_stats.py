"""Covariances, histograms, convolution, differences and interpolation agree with ``jax.numpy``."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray.numpy as fnp
from fnarray.api.jit import jit

from .numpy_oracle import VALUES, both_raise, compare, leaves, run

LIKE_NUMPY = """
jnp.cov(f)
jnp.cov(f, rowvar=False)
jnp.cov(f, g)
jnp.cov(v)
jnp.cov(i)
jnp.cov(c)
jnp.cov(f, bias=True)
jnp.cov(f, ddof=2)
jnp.cov(f, fweights=np.array([1, 2, 3]))
jnp.cov(f, aweights=np.array([0.5, 2, 3]))
jnp.cov(f, fweights=np.array([1, 2, 3]), aweights=np.array([0.5, 2, 3]))
jnp.cov(f, aweights=np.array([0.5, 2, 3]), ddof=0)
jnp.corrcoef(f[:, :3], g)
jnp.corrcoef(c)
jnp.corrcoef(v)
jnp.bincount(np.array([1, 2, 2, 5]), length=6)
jnp.convolve(v, f[0])
jnp.convolve(v, np.arange(5), "same")
jnp.convolve(i[0], j[1], "valid")
jnp.convolve(c[0], d[0])
jnp.correlate(np.arange(5), v)
jnp.correlate(v, np.arange(5), "full")
jnp.correlate(c[0], d[0], "same")
jnp.diff(f)
jnp.diff(f, 2)
jnp.diff(i, axis=0)
jnp.diff(b)
jnp.diff(v, prepend=0, append=f[0])
jnp.diff(f, 1, 0, prepend=v[None])
jnp.diff(f, 9)
jnp.diff(f, 0)
jnp.ediff1d(f)
jnp.ediff1d(i, to_begin=i[0], to_end=7)
jnp.gradient(v)
jnp.gradient(f)
jnp.gradient(f, 2.0)
jnp.gradient(f, 2.0, 0.5)
jnp.gradient(f, np.array([0.0, 1.0, 4.0]), axis=1)
jnp.gradient(f, axis=1)
jnp.trapezoid(f)
jnp.trapezoid(i, dx=0.5, axis=0)
jnp.trapezoid(f, np.array([0.0, 1.0, 4.0]))
jnp.trapezoid(f, g)
jnp.unwrap(f * 3)
jnp.unwrap(f * 3, 4.0, 0)
jnp.unwrap(i, period=5)
jnp.unwrap(i, period=4)
jnp.interp(f, np.array([-2.0, 0.5, 2.0]), v)
jnp.interp(1.5, np.array([-2.0, 0.5, 2.0]), v, left=9, right=-9)
jnp.interp(f, np.array([2.0, 0.5, 1.0]), v, period=2.5)
jnp.interp(f, np.array([-2.0, 0.5, 2.0]), c[0])
jnp.interp(3, np.arange(3), i[0])
jnp.hamming(7)
jnp.hanning(8)
jnp.blackman(7)
jnp.bartlett(6)
jnp.kaiser(7, 5.0)
jnp.hamming(1)
jnp.bartlett(0)
"""
LIKE_JAX = """
jnp.interp(f, np.array([-2.0, 0.5, 2.0]), v, left="extrapolate", right="extrapolate")
jnp.bincount(np.array([-1, 2, 9]), v, length=4)
jnp.bincount(b[0], length=3)
jnp.histogram(f, 4)
jnp.histogram(i, np.array([-7, 0, 2, 7]))
jnp.histogram(f, 3, weights=abs(g))
jnp.histogram(f, 3, (-1.0, 2.0), density=True)
jnp.histogram_bin_edges(i, 4)
jnp.histogramdd(f.T, 3)
jnp.histogramdd(f.T, [np.array([-1.0, 0.0, 2.0]), np.arange(4)], density=True)
jnp.histogram2d(v, f[0], (2, 3), weights=v)
jnp.cov(f, dtype="float16")
jnp.convolve(i8, i8)
jnp.convolve(e16, v[:2].astype("float16"))
jnp.convolve(f[0], v, preferred_element_type="float32")
"""
CONCRETE = """
jnp.bincount(np.array([1, 2, 2, 5]))
jnp.bincount(np.array([1, 2]), minlength=7)
jnp.bincount(np.zeros(0, int))
"""
ERRORS = (TypeError, ValueError, IndexError, RuntimeError)
BAD = """
jnp.cov(f[None])
jnp.cov(f, fweights=v)
jnp.cov(f, fweights=np.array([1, 2]))
jnp.cov(f, aweights=g)
jnp.bincount(v)
jnp.bincount(i)
jnp.bincount(3)
jnp.bincount(i[0], f)
jnp.histogram(f, "auto")
jnp.histogram(f, 3, weights=v)
jnp.histogramdd(v)
jnp.histogramdd(f, 3, range=[(0, 1)])
jnp.histogram2d(v, f[0, :2])
jnp.convolve(f, v)
jnp.convolve(v, empty[0:0, 0])
jnp.convolve(v, v, "everything")
jnp.correlate([1], v)
jnp.diff(3.0)
jnp.diff(v, -1)
jnp.diff(v, axis=1)
jnp.gradient(v[:1])
jnp.gradient(f, 1.0, 2.0, 3.0)
jnp.gradient(f, v[:2], axis=1)
jnp.unwrap(c)
jnp.interp(f, v, v[:2])
jnp.interp(f, v, v, left="guess")
jnp.interp(f, v, v, period=v)
"""


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.mark.parametrize("text", lines(LIKE_NUMPY))
def test_values_are_numpys_and_types_jaxs(text):
    """Values agree with NumPy; shapes, dtypes and weak types with JAX."""
    if "length=" in text or ("period" in text and "interp" in text):
        got = run(text, fnp)
        want = run(text.replace("length=6", "minlength=6"), np)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    else:
        compare(text, rtol=2e-5, atol=1e-5, values="numpy")


@pytest.mark.parametrize("text", lines(LIKE_JAX))
def test_agrees_with_jax(text):
    """Values and types agree with JAX."""
    compare(text, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("text", lines(CONCRETE))
def test_results_sized_by_values_agree_with_jax(text):
    """Counts, and their number, agree with JAX."""
    ours, theirs = run(text, fnp), run(text, jax.numpy)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


@pytest.mark.parametrize("text", lines(BAD))
def test_bad_arguments_raise_on_both_sides(text):
    """Both sides refuse; our message names the function."""
    assert "numpy." in both_raise(text, ERRORS)


TRACED = {
    "cov": lambda m, x, y: m.cov(x, y),
    "corrcoef": lambda m, x, y: m.corrcoef(x, y),
    "histogram": lambda m, x, y: m.histogram(x, 4),
    "bincount": lambda m, x, y: m.bincount(abs(x[0]).astype(int), y[0], length=4),
    "convolve": lambda m, x, y: m.convolve(x[0], y[0]),
    "diff": lambda m, x, y: m.diff(x, prepend=y),
    "gradient": lambda m, x, y: m.gradient(x),
    "trapezoid": lambda m, x, y: m.trapezoid(x, y),
    "unwrap": lambda m, x, y: m.unwrap(x * 3),
    "interp": lambda m, x, y: m.interp(x, m.sort(y[0]), y[1]),
    "kaiser": lambda m, x, y: m.kaiser(6, abs(x[0, 0])),
}


@pytest.mark.parametrize("name", TRACED)
def test_compiled_results_are_those_of_jax(name):
    """What is traced and compiled gives JAX's values."""
    function, args = TRACED[name], (VALUES["f"], VALUES["g"])
    ours = jit(lambda x, y: function(fnp, x, y))(*args)
    theirs = jax.jit(lambda x, y: function(jax.numpy, x, y))(*args)
    for x, y in zip(leaves(ours), leaves(theirs), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-5, 7), (0.4, 2.9), (-0.3, 0.8), (2, 2)])
@pytest.mark.parametrize("bins", [3, 10, 17])
def test_values_on_edges_count_in_the_bin_that_begins_there(low, high, bins):
    """Edges over a given range are NumPy's to the last digit, and so are counts.

    JAX computes edges in float32, off by a digit or two: a value that lies on an edge may count
    in the bin before.
    """
    edges = np.histogram_bin_edges([], bins, (low, high)).astype(np.float32)
    x = np.concatenate([edges, np.linspace(low - 1, high + 1, 7, dtype=np.float32)])
    wanted = np.histogram(x, bins, (low, high))
    for got in (
        fnp.histogram(x, bins, (low, high)),
        jit(fnp.histogram, static_argnums=(1, 2))(x, bins, (low, high)),
    ):
        np.testing.assert_array_equal(got[0], wanted[0])
        np.testing.assert_array_equal(got[1], wanted[1])
    plane = fnp.histogram2d(x, x[::-1], bins, ((low, high), (low, high)))[0]
    np.testing.assert_array_equal(plane, np.histogram2d(x, x[::-1], [edges, edges])[0])


def test_edges_of_a_traced_range():
    """A range may be traced; its edges are computed with it."""
    ours = jit(lambda x, high: fnp.histogram(x, 4, (0.0, high)))(np.arange(5.0), 4.0)
    np.testing.assert_array_equal(ours[0], [1, 1, 1, 2])


def many(dtype):
    """Return more numbers than are looked for one by one: on edges, outside, and no numbers."""
    x = np.random.default_rng(0).normal(size=70_000).astype(dtype)
    x[::7] = np.round(x[::7] * 4) / 4
    x[:3] = np.nan, np.inf, -np.inf
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "edges",
    [
        np.linspace(-2, 2, 17),
        np.linspace(-1, 3, 41),
        np.array([-2, -0.3, 0, 1.7]),
        np.nextafter(np.float32(1), np.float32(2)) ** np.arange(9),
        np.array([-3e38, 0, 3e38]),
        np.array([-1, 1, 1, 2]),
    ],
    ids=["on numbers", "outside", "uneven", "close", "wide", "empty"],
)
def test_many_numbers_are_counted_as_they_are_looked_for(dtype, edges):
    """Counts follow from the edges as they are, whether they are at one distance or not."""
    x, edges = many(dtype), edges.astype(dtype)
    weights = np.random.default_rng(1).integers(1, 9, x.size).astype(dtype)
    bins = np.searchsorted(edges, x, side="right") - 1
    bins[x == edges[-1]] = len(edges) - 2
    inside = (bins >= 0) & (bins < len(edges) - 1)
    for given in (None, weights):
        mass = None if given is None else given[inside]
        want = np.bincount(bins[inside], mass, len(edges) - 1)
        counts, _ = fnp.histogram(x, edges, weights=given)
        np.testing.assert_array_equal(counts, want)


def test_counts_do_not_stop_at_the_precision_of_their_type():
    """A bin of more numbers than single precision counts one by one has all of them."""
    counts, _ = fnp.histogram(fnp.zeros((1 << 24) + 4096), 1, (-1.0, 1.0))
    assert int(counts[0]) == (1 << 24) + 4096


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_counts_of_short_numbers_do_not_stop(wrap):
    """float16 counts one by one as far as 2,048; a bin of more numbers has all of them."""
    counts, _ = wrap(lambda x: fnp.histogram(x, 2, (-1.0, 1.0)))(fnp.ones(3000, "float16"))
    assert counts.dtype == np.float16
    assert counts.tolist() == [0, 3000]
