"""Native sorting kernels, which only loops reach, against NumPy; and sorting inside a loop."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import lax
from fnarray.config import enable_x64
from fnarray_kernels import sort as kernels

rng = np.random.default_rng(5)


def draw(shape, dtype):
    """Few distinct values, so that there are ties; NaN and both zeros among floats."""
    x = np.asarray(rng.integers(0, 20, shape)).astype(dtype)
    if x.dtype.kind == "f":
        x.flat[:: max(x.size // 5, 1)] = np.nan
        x.flat[1 :: max(x.size // 7, 1)] = -0.0
    return x


def same(a, b):
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]))


@pytest.mark.parametrize("n", [1, 5, 12, 13, 40, 97])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "float64"])
def test_kernel_sorts_as_numpy(dtype, n):
    """Lanes along the middle axis are sorted, stably, NaN last."""
    x = draw((2, n, 3), dtype)
    out = np.empty(x.size, dtype)
    kernels.sort_1(x.reshape(-1), out, 2, n, 3, 1)
    same(out.reshape(x.shape), np.sort(x, axis=1, kind="stable"))


@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_kernel_sorts_by_several_keys(num_keys):
    """Ties in one key are broken by the next, then by position, as by `numpy.lexsort`."""
    x, y = draw((50,), "int32") % 3, draw((50,), "float32")
    z = np.arange(50, dtype="int64")[::-1].copy()
    order = np.lexsort((x, y, z)[:num_keys][::-1])
    outs = [np.empty_like(a) for a in (x, y, z)]
    kernels.sort_3(x, y, z, *outs, 1, 50, 1, num_keys)
    for got, a in zip(outs, (x, y, z), strict=True):
        same(got, a[order])


@pytest.mark.parametrize("kernel", [kernels.top_k, kernels.top_few])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32"])
@pytest.mark.parametrize("k", [1, 4, 17])
def test_kernel_selects_the_largest(dtype, k, kernel):
    """The kernels give what the NumPy evaluation gives, positions included."""
    x = draw((2, 17, 3), dtype)
    want = lax.top_k(x, k, axis=1)
    values, index = np.empty(6 * k, dtype), np.empty(6 * k, "int32")
    kernel(x.reshape(-1), values, index, 2, 17, 3, k)
    same(values.reshape(2, k, 3), np.asarray(want[0]))
    same(index.reshape(2, k, 3), np.asarray(want[1]))


@pytest.mark.parametrize("order", ["random", "rising", "falling", "special"])
@pytest.mark.parametrize("k", [1, 7, 90])
def test_compiled_selection(order, k):
    """Compiled, the largest are those of a stable sort: ties, zeros of either sign, NaN first."""
    x = np.random.default_rng(k).integers(-40, 40, (20, 1000)).astype("float32")
    if order == "special":
        x = np.where(x > 30, np.float32(np.nan), np.where(x < 0, np.float32(-0.0), x * 0))
    elif order != "random":
        x = np.sort(x, axis=1)[:, :: 1 if order == "rising" else -1]
    x = np.ascontiguousarray(x)
    # Zeros of negative sign come after those of positive, NaN before all.
    keys = np.where(np.isnan(x), np.inf, np.where((x == 0) & np.signbit(x), np.float32(-0.5), x))
    want = np.argsort(-keys, axis=1, kind="stable")[:, :k]
    values, index = fnarray.jit(lambda x: lax.top_k(x, k))(x)
    np.testing.assert_array_equal(index, want)
    same(np.asarray(values), np.take_along_axis(x, want, 1))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int64", "uint64", "float64"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 5), (31, 3), (33, 16), (64, 2), (200, 17)])
def test_compiled_selection_is_that_of_numpy(dtype, n, k):
    """Whole blocks and parts, along either axis, the ends of each range, infinities, NaN."""
    x = np.random.default_rng(n).integers(0, 1 << 62, (3, n)).astype(dtype)
    if dtype == "float64":
        x = x * np.random.default_rng(k).choice(
            [1, -1, 0, np.inf, -np.inf, np.nan, -np.nan], x.shape
        )
    else:
        x[0, n // 2], x[1, -1] = np.iinfo(dtype).max, np.iinfo(dtype).min
    with fnarray.enable_x64(True):
        for a, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
            # What evaluates outside of programs orders by integers as well.
            want = lax.top_k(a, k, axis=axis)
            got = fnarray.jit(lambda a, axis=axis: lax.top_k(a, k, axis=axis))(a)
            for x1, x2 in zip(got, want, strict=True):
                same(np.asarray(x1), np.asarray(x2))


def test_sorts_inside_a_loop():
    """A compiled loop sorts natively, to the same result."""
    x = draw((6, 30), "float32")

    @fnarray.jit
    def rows(x):
        return lax.fori_loop(
            0, 6, lambda i, a: a.at[i].set(lax.sort(lax.dynamic_index_in_dim(a, i, 0, False))), x
        )

    same(np.asarray(rows(x)), np.sort(x, axis=1, kind="stable"))


@pytest.mark.parametrize("n", [10, 200, 3000])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "float16"])
def test_large_keys_stay_stable(dtype, n):
    """Values move with their keys, in order of position among ties."""
    key = draw((n,), dtype)
    _, order = lax.sort_key_val(key, np.arange(n, dtype="int32"))
    same(np.asarray(order), np.argsort(key, kind="stable"))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [4, 60])
def test_rows_are_ordered_on_their_own(size, axis):
    """Short and long: NaN of either sign are alike and last, zeros are alike, ties keep order."""
    key = draw((size, 5), "float32")
    key.flat[3::4] *= -1
    _, order = lax.sort_key_val(key, np.indices(key.shape, "int32")[axis], dimension=axis)
    same(np.asarray(order), np.argsort(key, axis=axis, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int8, np.float16])
@pytest.mark.parametrize("shape", [(300,), (1001,), (3, 1000), (400, 10), (300, 11)])
def test_orders_of_ties_are_those_of_places(dtype, shape):
    """Short keys, long ones and short lines: ties, zeros of both signs and NaN stay in order."""
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[x == 1] = -0.0
        x[x == 2] = np.nan
        x[::2] = -x[::2]
    with enable_x64(True):
        got = fnarray.jit(fnarray.numpy.argsort)(x)
    np.testing.assert_array_equal(got, np.argsort(x, axis=-1, kind="stable"))
