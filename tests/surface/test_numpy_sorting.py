"""Sorting, searching, taking and putting agree with ``jax.numpy``."""

from __future__ import annotations

import jax
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
from .numpy_oracle import VALUES, both_raise, compare, leaves, run

LIKE_NUMPY = """
jnp.sort(f)
jnp.sort(s)
jnp.sort(i, 0)
jnp.sort(b, None)
jnp.sort(c)
jnp.sort(e16)
jnp.argsort(i)
jnp.argsort(s)
jnp.argsort(f, None)
jnp.argsort(b, 1)
jnp.sort_complex(c[0])
jnp.lexsort((i[0], j[0]))
jnp.lexsort(i)
jnp.searchsorted(np.array([1, 3, 3, 5]), i)
jnp.searchsorted(np.array([1, 3, 3, 5]), i, "right")
jnp.searchsorted(np.array([1.0, 2.5]), n)
jnp.searchsorted(np.array([3, 1, 2]), 2, sorter=np.array([1, 2, 0]))
jnp.digitize(f, np.array([-1.0, 0.0, 2.0]))
jnp.digitize(i, np.array([5, 2, 0]), right=True)
jnp.where(b, f, g)
jnp.where(b, f, 0)
jnp.where(i > 0, v, 2.5)
jnp.take(f, np.array([[0, -1], [5, 2]]))
jnp.take(f, np.array([0, 2]), 1)
jnp.take(f, 1, 0)
jnp.take(f, np.array([7, -9]), 1, mode="wrap")
jnp.take(f, np.array([7, 1]), 1, mode="clip")
jnp.take_along_axis(f, np.array([[1], [2]]), 1)
jnp.take_along_axis(f, np.array([[1, 0, 0]]), 0)
jnp.take_along_axis(f, np.array([3, 1]), None)
jnp.choose(np.array([1, 0, 1]), [v, np.arange(3)])
jnp.choose(np.array([7, -1, 1]), [v, v + 1], mode="clip")
jnp.choose(np.array([7, -1, 1]), [v, v + 1], mode="wrap")
"""
LIKE_JAX = """
jnp.sort(s, descending=True)
jnp.argsort(i, descending=True)
jnp.argsort(f, dtype="int16")
jnp.take(f, np.array([6, -7, 0]))
jnp.take(i, np.array([9]))
jnp.take(u8, np.array([9]))
jnp.take(f, np.array([9]), fill_value=3)
jnp.take(f, np.array([[True], [False]]), 1)
jnp.put(f, np.array([True, False]), v[:2], inplace=False)
jnp.roll(v, True)
jnp.split(np.arange(4), 2.0)
jnp.unravel_index(np.array([True, False]), (2, 2))
jnp.take_along_axis(f, np.array([[9, -4, -1], [0, 1, 2]]), 1)
jnp.take_along_axis(f, np.array([[9, -4, -1], [0, 1, 2]]), 1, mode="clip")
jnp.take_along_axis(f, np.array([[9, 0]]), 1, fill_value=5)
jnp.put_along_axis(f, np.array([[1], [2]]), 9, 1, inplace=False)
jnp.put(f, np.array([1, -1, 99]), v[:2], inplace=False)
jnp.put(f, np.array([1, -1, 99]), v[:2], "clip", inplace=False)
jnp.put(f, np.array([1, -1, 99]), v[:2], "wrap", inplace=False)
jnp.place(f, b, v, inplace=False)
jnp.digitize(f, np.zeros(0))
"""
#: Values decide the shape: both sides see values.
CONCRETE = """
jnp.nonzero(i)
jnp.nonzero(b, size=2)
jnp.nonzero(b, size=5, fill_value=7)
jnp.nonzero(b, size=5, fill_value=(1, 2))
jnp.flatnonzero(f > 0)
jnp.flatnonzero(f > 0, size=8, fill_value=-1)
jnp.argwhere(i)
jnp.argwhere(i, size=7, fill_value=-1)
jnp.argwhere(2.0)
jnp.where(b)
jnp.where(b, size=4)
jnp.compress(np.array([True, False, True]), f, 1)
jnp.compress(np.array([0, 1]), f)
jnp.compress(np.array([0, 1, 1]), f, 1, size=3, fill_value=9)
jnp.extract(f > 0, f)
jnp.extract(b, f, size=5, fill_value=-1)
"""
ERRORS = (TypeError, ValueError, IndexError, NotImplementedError)
BAD = """
jnp.sort([1])
jnp.sort(f, 2)
jnp.sort(f, kind="mergesort")
jnp.sort(3.0)
jnp.argsort(f, 4)
jnp.lexsort(())
jnp.lexsort((v, f))
jnp.partition(v, 7)
jnp.nonzero(3)
jnp.nonzero(b, size=4, fill_value=(1, 2, 3))
jnp.where(b, f)
jnp.where(b, f, g, size=3)
jnp.where(b, v, np.zeros(5))
jnp.searchsorted(f, v)
jnp.searchsorted(v, v, "middle")
jnp.searchsorted(v, v, method="guess")
jnp.digitize(v, f)
jnp.take(f, v)
jnp.take(f, 1.5)
jnp.take(f, [1, 2])
jnp.insert(v, 1.5, 9)
jnp.insert(v, np.array([1.0]), 9)
jnp.delete(v, 1.0)
jnp.array_split(v, [1.5])
jnp.take_along_axis(f, b[:, :1], 1)
jnp.take(f, 1, 2)
jnp.take(f, 1, mode="raise")
jnp.take_along_axis(f, np.array([1]), 0)
jnp.take_along_axis(f, f, 0)
jnp.take_along_axis(f, np.zeros((3, 1), int), 1)
jnp.choose(np.array([5]), [v])
jnp.choose(np.array([0]), [v], mode="guess")
jnp.compress(b, f)
jnp.put(f, 1, 2)
jnp.place(f, v > 0, 2, inplace=False)
jnp.place(f, b, np.zeros(0), inplace=False)
jnp.put_along_axis(f, np.array([[1], [2]]), 9, 1)
"""


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.mark.parametrize("text", lines(LIKE_NUMPY))
def test_values_are_numpys_and_types_jaxs(text):
    """Values agree with NumPy; shapes, dtypes and weak types with JAX."""
    if "mode" in text and "take" not in text:
        compare(text, values="jax")
    else:
        try:
            compare(text, values="numpy")
        except jax.errors.ConcretizationTypeError:
            agree_with_values(text)


@pytest.mark.parametrize("text", lines(LIKE_JAX))
def test_agrees_with_jax(text):
    """Values and types agree with JAX."""
    compare(text)


def agree_with_values(text: str) -> None:
    for ours, theirs in zip(
        leaves(run(text, fnp)), leaves(in_one(lambda: run(text, jax.numpy))), strict=True
    ):  # fmt: skip
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)


@pytest.mark.parametrize("text", lines(CONCRETE))
def test_results_sized_by_values_agree_with_jax(text):
    """Values, and the shapes that depend on them, agree with JAX."""
    agree_with_values(text)


@pytest.mark.parametrize("text", lines(BAD))
def test_bad_arguments_raise_on_both_sides(text):
    """Both sides refuse."""
    assert both_raise(text, ERRORS)


INTEGERS = ("take(x, 1.5)", "choose(x, [x])", "delete(x, 1.0)", "insert(x, 1.5, 2)",
            "ravel_multi_index((x, x), (4, 4), 'clip')")  # fmt: skip


@pytest.mark.parametrize("call", INTEGERS)
def test_indices_that_are_no_integers_are_bad_values(call):
    """The error is JAX's `ValueError`, and says where: nothing is rounded silently."""
    with pytest.raises(ValueError, match=r"(?s)integer.* at "):
        eval(f"m.{call}", {"m": fnp, "x": fnp.arange(3.0)})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_partition_puts_one_element_where_sorting_does(axis):
    """Element kth is the sorted one; none before it is larger, none after it smaller."""
    x = VALUES["f"]
    got = np.asarray(fnp.partition(x, 1, axis))
    place = np.asarray(fnp.argpartition(x, 1, axis))
    want = np.take(np.sort(x, axis), [1], axis)
    np.testing.assert_array_equal(np.take(got, [1], axis), want)
    np.testing.assert_array_equal(np.take_along_axis(x, place, axis), got)


TRACED = {
    "sort": lambda m, x, k: m.sort(x, 0),
    "argsort": lambda m, x, k: m.argsort(x, descending=True),
    "lexsort": lambda m, x, k: m.lexsort((x[0], x[1])),
    "nonzero": lambda m, x, k: m.nonzero(x > 0, size=4, fill_value=(9, 8)),
    "nonzero none": lambda m, x, k: m.nonzero(x > 0, size=0),
    "where size": lambda m, x, k: m.where(x > 99, size=3),
    "argwhere": lambda m, x, k: m.argwhere(x > 0, size=6),
    "extract": lambda m, x, k: m.extract(x > 0, x, size=5, fill_value=-1),
    "searchsorted": lambda m, x, k: m.searchsorted(m.sort(x[0]), x),
    "searchsorted right": lambda m, x, k: m.searchsorted(m.sort(k[0]), k, side="right"),
    "searchsorted all": lambda m, x, k: m.searchsorted(m.sort(k[0]), k, method="compare_all"),
    "digitize": lambda m, x, k: m.digitize(x, m.sort(x[1])[::-1]),
    "take": lambda m, x, k: m.take(x, k, 1),
    "take wrap": lambda m, x, k: m.take(x, k, 1, mode="wrap"),
    "take_along_axis": lambda m, x, k: m.take_along_axis(x, m.argsort(x, 1), 1),
    "put_along_axis": lambda m, x, k: m.put_along_axis(x, abs(k[:1]), 7.0, 0, inplace=False),
    "put": lambda m, x, k: m.put(x, k, x[0], inplace=False, mode="clip"),
    "place": lambda m, x, k: m.place(x, x > 0, x[1], inplace=False),
    "choose": lambda m, x, k: m.choose(k, [x, -x], mode="clip"),
}


@pytest.mark.parametrize("name", TRACED)
def test_compiled_results_are_those_of_jax(name):
    """What is traced and compiled gives JAX's values."""
    function, args = TRACED[name], (VALUES["f"], VALUES["j"])
    ours = jit(lambda x, k: function(fnp, x, k))(*args)
    theirs = jax.jit(lambda x, k: function(jax.numpy, x, k))(*args)
    for x, y in zip(leaves(ours), leaves(theirs), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        fnp.nonzero,
        fnp.where,
        lambda x: fnp.extract(x, x),
        lambda x: fnp.compress(x, x),
        lambda x: fnp.choose(x, [x, x]),
    ],
)
def test_traced_sizes_are_refused_with_advice(function):
    """A result whose shape would depend on a traced value is an error that says what to do."""
    aval = fnp.arange(3).aval
    with pytest.raises(ConcretizationTypeError, match=r"numpy\.\w+: .* must be concrete"):
        trace_graph(lambda x: [function(x)], [aval])


@settings(max_examples=60, deadline=None)
@given(
    keys=arrays(np.float32, st.integers(1, 40), elements=st.floats(-4, 4, width=16)),
    values=arrays(np.float32, st.integers(0, 9), elements=st.floats(-5, 5, width=16)),
    side=st.sampled_from(["left", "right"]),
)
def test_binary_search_counts_smaller_elements(keys, values, side):
    """A value's place is the number of keys before it; sorting by argsort gives sort."""
    keys = np.asarray(fnp.sort(keys))
    np.testing.assert_array_equal(keys, np.sort(keys))
    below = keys[None] < values[:, None] if side == "left" else keys[None] <= values[:, None]
    np.testing.assert_array_equal(fnp.searchsorted(keys, values, side), below.sum(1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex64"])
def test_where_of_many(dtype):
    """Many elements are chosen as NumPy chooses them, NaN, strides and broadcasting included."""
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-3, 3, (70, 90)).astype(dtype) for _ in range(2))
    if np.dtype(dtype).kind == "f":
        x[::3] = np.nan
    which = rng.random((90, 70)) < 0.5
    for args in ((which.T, x, y), (which.T, x, y[:1]), (which[:1].T, x, y), (which, x.T, y.T)):
        got = fnp.where(*args)
        np.testing.assert_array_equal(got, np.where(*args))
        assert got.dtype == dtype


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "float16"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_many_values_are_found_as_few(dtype, side):
    """Thousands that are looked for together go where NumPy puts them: equal ones, NaN and ends."""
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 7, 64, 5001):
        keys = np.sort((rng.normal(size=n) * 9).astype(dtype))
        values = (rng.normal(size=(3, 5000)) * 12).astype(dtype)
        lists = [(keys, values), (keys, np.sort(values.reshape(-1)))]
        if np.dtype(dtype).kind == "f":
            odd = values.copy()
            odd[1, ::7] = [np.nan, np.inf, -np.inf, 0.0, -0.0] * 143
            lists += [(keys, odd), (np.append(keys, np.nan).astype(dtype), odd)]
        for a, v in lists:
            wide = (x.astype(np.float32) if dtype == "float16" else x for x in (a, v))
            want = np.searchsorted(*wide, side)
            np.testing.assert_array_equal(fnp.searchsorted(a, v, side=side), want)
