"""Shape operations, gather and scatter: loop forms against evaluation, and random cases vs JAX."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fnarray
import fnarray.numpy as jnp
from fnarray import lax
from fnarray.core.array import asarray

from .cases_shape import CASES
from .form_oracle import check_forms

MODES = ("fill", "clip", "promise_in_bounds")
SCATTERS = ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max")


@pytest.mark.parametrize("case", CASES, ids=[f"{c.name}-{k}" for k, c in enumerate(CASES)])
def test_forms_of_shape_operations(case):
    """Every form, run as plain loops, gives what the evaluator gives, and stays in bounds."""
    args = case.args(next(iter(case.signatures())))
    check_forms(
        lambda *xs: (lambda out: out if isinstance(out, list | tuple) else [out])(
            case.call(lax, *xs)
        ),
        *args,
    )


_RESHAPES = [
    ((2, 3, 4), (6, 4)),
    ((6, 4), (2, 3, 4)),
    ((2, 6, 2), (4, 3, 2)),
    ((2, 1, 6), (1, 3, 4, 1)),
    ((4, 6), (6, 4)),
    ((1,), ()),
    ((), (1, 1)),
    ((5, 1, 2), (1, 5, 2, 1)),
]


@pytest.mark.parametrize(("old", "new"), _RESHAPES)
def test_reshape_index_arithmetic(old, new):
    """A reshape reads the right element in every order of the operand's axes."""
    x = np.arange(np.prod(old, dtype=int), dtype=np.float32).reshape(old)
    for order in itertools.permutations(range(len(old))):
        got = lax.reshape(x, new, order)
        np.testing.assert_array_equal(got, x.transpose(order).reshape(new))
        check_forms(lambda x, order=order: (lax.reshape(x, new, order),), x)


def test_reshape_leaves_untouched_axes_alone():
    """Axes that a reshape does not regroup are indexed by themselves: no quotients to undo."""
    from fnarray.core import symbolic
    from fnarray.ops.shape import _reshape_index

    i = tuple(symbolic.variable(name, n) for name, n in zip("ijk", (6, 4, 5), strict=True))
    got = _reshape_index(i, (2, 3, 4, 5), new_sizes=(6, 4, 5), dimensions=None)
    assert got[2:] == i[1:]


def _draw(seed):
    """Return random dimension numbers with shapes and indices that suit them."""
    rng = np.random.default_rng(seed)
    rank, depth = rng.integers(0, 4), int(rng.integers(0, 3))
    shape = [int(n) for n in rng.integers(1, 4, rank)]
    batch = [int(n) for n in rng.integers(1, 4, depth)]
    dims = [int(d) for d in rng.permutation(rank)]
    paired = min(int(rng.integers(0, 3)), rank, depth) if rng.random() < 0.5 else 0
    batching, rest = sorted(dims[:paired]), dims[paired:]
    along = [int(k) for k in rng.permutation(depth)[:paired]]
    for d, k in zip(batching, along, strict=True):
        batch[k] = shape[d]
    # Vectors of no entries and a batch: XLA drops such updates but for the last.
    few = min(len(rest), 1)
    mapped = [int(d) for d in rng.permutation(rest)[: int(rng.integers(few, len(rest) + 1))]]
    if not mapped:
        batch, batching, along = [], [], []
    collapsed = sorted(d for d in rest if rng.random() < 0.5) if mapped else []
    gone = (*collapsed, *batching)
    sizes = [1 if d in gone else int(rng.integers(1, n + 1)) for d, n in enumerate(shape)]
    windows = rank - len(gone)
    offset = sorted(int(d) for d in rng.permutation(len(batch) + windows)[:windows])
    indices = rng.integers(-2, 5, (*batch, len(mapped)))
    dtype = str(rng.choice(["int32", "int8", "uint32", "uint8"]))
    indices = (np.abs(indices) if dtype[0] == "u" else indices).astype(dtype)
    numbers = tuple(map(tuple, (offset, collapsed, mapped, batching, along)))
    x = (rng.normal(size=shape) * 5).astype(str(rng.choice(["float32", "int32", "uint8"])))
    return x, indices, numbers, tuple(sizes), MODES[seed % 3], rng


@pytest.mark.parametrize("seed", range(36))
def test_gather_and_scatter_match_jax(seed, jax):
    """Random dimension numbers, modes and dtypes give JAX's values; forms agree with them."""
    x, indices, numbers, sizes, mode, rng = _draw(seed)
    theirs = jax.lax.GatherDimensionNumbers(*numbers)
    ours = lax.GatherDimensionNumbers(*numbers)
    want = np.asarray(jax.lax.gather(x, indices, theirs, sizes, mode=mode))
    np.testing.assert_array_equal(lax.gather(x, indices, ours, sizes, mode=mode), want)
    check_forms(lambda x, i: (lax.gather(x, i, ours, sizes, mode=mode),), x, indices)

    name = SCATTERS[seed // 3 % len(SCATTERS)]
    updates = np.round(rng.normal(size=want.shape) * 5).astype(x.dtype)
    theirs = jax.lax.ScatterDimensionNumbers(*numbers)
    ours = lax.ScatterDimensionNumbers(*numbers)
    want = getattr(jax.lax, name)(x, indices, updates, theirs, mode=mode)
    got = getattr(lax, name)(x, indices, updates, ours, mode=mode)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert got.dtype == want.dtype
    check_forms(
        lambda x, i, u: (getattr(lax, name)(x, i, u, ours, mode=mode),), x, indices, updates
    )


def _ROWS(m):
    return m.GatherDimensionNumbers((1,), (0,), (0,))


def _LINE(m):
    return m.ScatterDimensionNumbers((), (0,), (0,))


def test_fill_values():
    """Windows outside read NaN, the extreme integer, True, or the value asked for."""
    at = np.array([[1], [7]])
    for dtype, fill in (("float32", np.nan), ("int8", -128), ("uint8", 255), ("bool", True)):
        x = np.ones((3, 2), dtype)
        got = np.asarray(lax.gather(x, at, _ROWS(lax), (1, 2), mode="fill"))
        np.testing.assert_array_equal(got[1], np.full(2, fill, dtype))
    got = lax.gather(np.ones((3, 2)), at, _ROWS(lax), (1, 2), mode="fill", fill_value=4)
    np.testing.assert_array_equal(got, [[1, 1], [4, 4]])
    got = lax.gather(np.ones((3, 2)), at, _ROWS(lax), (1, 2), mode="one_hot")
    np.testing.assert_array_equal(got, [[1, 1], [0, 0]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "int8", "uint32"])
def test_repeated_places_add_up(dtype):
    """Each repeated update counts, in every dtype."""
    from .opcase import dtype_of

    x = np.zeros(4).astype(dtype_of(dtype))
    at, ones = np.array([[1], [1], [3], [1]]), np.ones(4).astype(x.dtype)
    got = lax.scatter_add(x, at, ones, _LINE(lax))
    np.testing.assert_array_equal(np.asarray(got).astype(complex), [0, 3, 0, 1])


def test_scatter_apply_applies_again_where_places_repeat():
    """A function is applied once for each occurrence of a place, elementwise or not."""
    x = np.arange(4, dtype=np.float32)
    at = np.array([[1], [1], [3], [9]])
    double = lax.scatter_apply(
        x, at, lambda v: lax.mul(v, np.float32(2)), _LINE(lax), update_shape=(4,)
    )
    np.testing.assert_array_equal(double, [0, 4, 2, 6])
    check_forms(
        lambda x: (
            lax.scatter_apply(
                x, at, lambda v: lax.add(v, np.float32(1)), _LINE(lax), update_shape=(4,)
            ),
        ),
        x,
    )
    rolled = lax.scatter_apply(
        x, at, lambda v: lax.squeeze(lax.broadcast(v, (1,)), (0,)), _LINE(lax), update_shape=(4,)
    )
    np.testing.assert_array_equal(rolled, x)


def test_index_take(jax):
    """Elements at pairs of indices, taken modulo the sizes of their axes."""
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    i, j = np.array([0, 1, -1], np.int32), np.array([2, 5, -1], np.int32)
    want = jax.lax.index_take(jax.numpy.asarray(x), (i, j), (0, 1))
    np.testing.assert_array_equal(lax.index_take(x, (i, j), (0, 1)), want)


_GOOD = {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,)}
_BAD_NUMBERS = [
    (dict(_GOOD, offset_dims=(1, 0)), (1, 4), "ascending"),
    (dict(_GOOD, offset_dims=(5,)), (1, 4), r"\[0, 2\)"),
    (dict(_GOOD, start_index_map=(0, 1)), (1, 4), "one entry"),
    (dict(_GOOD, start_index_map=(7,)), (1, 4), "map to"),
    (dict(_GOOD, collapsed_slice_dims=()), (1, 4), "every dimension"),
    (_GOOD, (2, 4), "size 1"),
    (_GOOD, (1, 5), "fit"),
    (dict(_GOOD, operand_batching_dims=(0,)), (1, 4), "batching"),
]


@pytest.mark.parametrize(("numbers", "sizes", "match"), _BAD_NUMBERS)
def test_bad_dimension_numbers(numbers, sizes, match, jax):
    """Numbers that do not fit are a `TypeError`, as in JAX, that says which and why."""
    x, at = np.ones((3, 4), np.float32), np.zeros((2, 1), np.int32)
    with pytest.raises(TypeError):
        jax.lax.gather(x, at, jax.lax.GatherDimensionNumbers(**numbers), sizes)
    with pytest.raises(TypeError, match=match):
        lax.gather(x, at, lax.GatherDimensionNumbers(**numbers), sizes)


def test_bad_operands():
    """Float indices, unknown modes, other dtypes and updates of another shape are refused."""
    x, at = asarray(np.ones((3, 4), np.float32)), np.zeros((2, 1), np.int32)
    rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(ValueError, match="integer"):
        lax.gather(x, at.astype(np.float32), _ROWS(lax), (1, 4))
    with pytest.raises(ValueError, match="'clip'"):
        lax.gather(x, at, _ROWS(lax), (1, 4), mode="wrap")
    with pytest.raises(TypeError, match="int32"):
        lax.scatter(x, at, np.ones((2, 4), np.int32), rows)
    with pytest.raises(TypeError, match="batch"):
        lax.scatter(x, at, np.ones((3, 4), np.float32), rows)
    with pytest.raises(TypeError, match="GatherDimensionNumbers"):
        lax.gather(x, at, (1, 2), (1, 4))


def test_a_number_is_updated():
    """``at[...]`` of a number that the program computes is that number, set or combined."""

    def f(x):
        y = x[0]
        total = jnp.sum(x)
        halves = y.at[()].divide(2.0) + x.at[()].get()[1].at[()].multiply(3.0) / total
        return y.at[...].set(x[2]), y, total.at[...].add(x[2]), x[1].at[()].mul(4.0), halves

    got = fnarray.jit(f)(jnp.arange(3.0))
    assert [float(v) for v in got] == [2.0, 0.0, 5.0, 4.0, 1.0]
