"""Distinct elements, sets, equality of arrays, and bits agree with ``jax.numpy``."""

from __future__ import annotations

import io
from functools import partial
from types import MappingProxyType

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fnarray.numpy as fnp
from fnarray.api.jit import jit
from fnarray.core.trace import trace_graph
from fnarray.errors import ConcretizationTypeError

from ..oracle import in_one
from .numpy_oracle import both_raise, compare, leaves

NAN = np.float32("nan")
ARRAYS = {
    "ints": np.array([[3, 1, 1], [7, 3, 0]], np.int32),
    "nans": np.array([NAN, 2, NAN, 1, 2, 0], np.float32),
    "bools": np.array([True, False, True]),
    "complex": np.array([1 + 2j, 1 + 1j, 1 + 2j], np.complex64),
    "rows": np.array([[1, 2], [1, 2], [0, 1]], np.int32),
    "scalar": np.int32(3),
}
EVERYTHING = {"return_index": True, "return_inverse": True, "return_counts": True}


def same(ours, theirs) -> None:
    """Assert that two nests of arrays agree in shape, dtype and value."""
    for x, y in zip(leaves(ours), leaves(theirs), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def filled(x: np.ndarray, size: int, fill) -> np.ndarray:
    """Cut or fill an array along axis 0."""
    more = np.full((max(size - len(x), 0), *x.shape[1:]), 0, x.dtype)
    more[...] = fill
    return np.concatenate([x[:size], more])


@pytest.mark.parametrize("name", ARRAYS)
def test_unique_is_numpys_cut_or_filled(name):
    """Elements, first indices, inverse and counts are NumPy's; a size cuts or fills them."""
    x = ARRAYS[name]
    for axis in (None, 0) if name == "rows" else (None,):
        values, first, inverse, counts = np.unique(x, **EVERYTHING, axis=axis)
        integers = [y.astype(np.int32) for y in (first, inverse, counts)]
        same(fnp.unique(x, **EVERYTHING, axis=axis), [values.astype(x.dtype), *integers])
        for size, fill in ((2, None), (9, None), (9, 1)):
            how = MappingProxyType({**EVERYTHING, "axis": axis, "size": size, "fill_value": fill})
            least = values[0] if fill is None else fill
            want = [
                filled(values, size, least), filled(integers[0], size, first[0]), integers[1],
                filled(integers[2], size, 0),
            ]  # fmt: skip
            same(fnp.unique(x, **how), want)
    if x.ndim:
        same(jit(lambda x: fnp.unique(x, **how))(x), want)


def test_unique_tells_nans_apart_on_request():
    """With equal_nan=False each NaN is its own."""
    x = ARRAYS["nans"]
    same(fnp.unique(x, equal_nan=False), np.unique(x, equal_nan=False))
    assert fnp.unique(np.zeros(0, np.int32)).shape == (0,)


def test_named_results_are_those_of_the_array_api():
    """The four named forms have the fields that the standard gives them."""
    x = ARRAYS["ints"]
    everything = fnp.unique_all(x)
    assert everything._fields == ("values", "indices", "inverse_indices", "counts")
    same(tuple(everything), tuple(np.unique_all(x)) and jax.numpy.unique_all(x))
    same(tuple(fnp.unique_counts(x)), tuple(jax.numpy.unique_counts(x)))
    same(
        tuple(fnp.unique_inverse(x, size=5)),
        tuple(in_one(lambda: jax.numpy.unique_inverse(x, size=5))),
    )
    same(fnp.unique_values(x), jax.numpy.unique_values(x))
    nans = np.array([np.nan, 2.0, np.nan, 2.0], np.float32)  # each is another value
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        same(tuple(getattr(fnp, name)(nans)), tuple(getattr(jax.numpy, name)(nans)))
    same(fnp.unique_values(nans), np.unique_values(nans))


A, B = np.array([5, 2, 3, 4, 2], np.int32), np.array([4, 2, 2, 9], np.int32)


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_are_numpys_cut_or_filled(name):
    """Operations on sets are NumPy's; a size cuts or fills them, and lets them be compiled."""
    ours = getattr(fnp, name)
    for args in ((A, B), (B, A), (A, A + 10), (A, A)):
        want = getattr(np, name)(*args)
        same(ours(*args), want)
        least = 0 if name == "setdiff1d" or not want.size else want[0]
        for size in (2, 6):
            same(ours(*args, size=size), filled(want, size, least))
            same(ours(*args, size=size, fill_value=-1), filled(want, size, -1))
    same(jit(lambda a, b: ours(a, b, size=6))(*args), filled(want, 6, least))


def test_intersection_finds_first_places():
    """Indices of first occurrences in both arrays come on request."""
    for how in ({}, {"size": 4, "fill_value": -1}):
        how["return_indices"] = True
        want = in_one(partial(jax.numpy.intersect1d, A, B, **how))
        same(fnp.intersect1d(A, B, **how), want)
    same(fnp.setdiff1d(A, B, assume_unique=True), jax.numpy.setdiff1d(A, B, assume_unique=True))


@settings(max_examples=60, deadline=None)
@given(
    x=arrays(np.int32, st.integers(0, 30), elements=st.integers(-6, 6)),
    y=arrays(np.int32, st.integers(0, 30), elements=st.integers(-6, 6)),
)
def test_sets_of_any_arrays_are_pythons(x, y):
    """Sorted results are those of Python's sets; membership by both methods too."""
    a, b = set(x.tolist()), set(y.tolist())
    assert fnp.union1d(x, y).tolist() == sorted(a | b)
    assert fnp.intersect1d(x, y).tolist() == sorted(a & b)
    assert fnp.setdiff1d(x, y).tolist() == sorted(a - b)
    assert fnp.setxor1d(x, y).tolist() == sorted(a ^ b)
    for method in ("compare_all", "binary_search"):
        assert fnp.isin(x, y, method=method).tolist() == [v in b for v in x.tolist()]


@pytest.mark.parametrize(
    "text",
    """
jnp.isin(i, np.array([3, 7]))
jnp.isin(2.0, v, invert=True)
jnp.isin(n, n)
jnp.isin(i, np.arange(40))
jnp.isin(f, np.zeros(0))
jnp.array_equal(f, f)
jnp.array_equal([1, 2], [1, 2])
jnp.array_equal(n, n, equal_nan=True)
jnp.array_equal(n, n)
jnp.array_equal(f, v)
jnp.array_equiv(v, v[None])
jnp.array_equiv(f, 1)
jnp.allclose(f, f + 1e-7)
jnp.allclose(n, n)
jnp.allclose(n, n, equal_nan=True)
jnp.packbits(i)
jnp.packbits(b, 1)
jnp.packbits(b, 0, "little")
jnp.unpackbits(u8)
jnp.unpackbits(u8, count=11, bitorder="little")
jnp.unpackbits(u8[:, None], 1, -3)
jnp.unpackbits(u8[:, None], 0, 30)
""".strip().splitlines(),
)
def test_values_are_numpys_and_types_jaxs(text):
    """Values agree with NumPy; shapes, dtypes and weak types with JAX."""
    compare(text, values="numpy")


def test_arrays_of_other_shapes_are_not_equivalent():
    """Arrays that do not broadcast are not equivalent; that is no error."""
    assert not fnp.array_equiv(A, B)


@pytest.mark.parametrize(
    "text",
    """
jnp.unique(f, axis=3)
jnp.unique(np.zeros(0), size=3)
jnp.isin(f, g, method="guess")
jnp.array_equal(f, None)
jnp.packbits(f)
jnp.packbits(i, 0, "middle")
jnp.unpackbits(i)
jnp.isin([1], v)
""".strip().splitlines(),
)
def test_bad_arguments_raise_on_both_sides(text):
    """Both sides refuse."""
    assert "numpy." in both_raise(text, (TypeError, ValueError, IndexError))


def test_sizes_must_be_given_for_traced_arrays():
    """Without a size a traced set is an error that says so."""
    for function in (fnp.unique, lambda x: fnp.setdiff1d(x, A), lambda x: fnp.union1d(A, x)):
        with pytest.raises(ConcretizationTypeError, match="size"):
            trace_graph(lambda x, f=function: [f(x)], [fnp.arange(3).aval])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16])
def test_files_hold_what_was_written(dtype):
    """Saving and loading returns the array, bfloat16 included."""
    file, x = io.BytesIO(), np.arange(6).reshape(2, 3).astype(dtype)
    fnp.save(file, fnp.asarray(x))
    file.seek(0)
    back = fnp.load(file)
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(back), x)


def test_archives_hold_several_arrays():
    """Positional arrays are numbered, keywords keep their names."""
    file = io.BytesIO()
    fnp.savez(file, fnp.arange(3), y=fnp.ones(2))
    file.seek(0)
    assert sorted(fnp.load(file)) == ["arr_0", "y"]
