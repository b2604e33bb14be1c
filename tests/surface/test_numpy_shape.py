"""Shapes, axes, joins, cuts, padding, and lists of indices agree with ``jax.numpy``."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fnarray.numpy as fnp
from fnarray.api.jit import jit
from fnarray.core.trace import trace_graph
from fnarray.errors import ConcretizationTypeError

from .numpy_oracle import VALUES, both_raise, compare, leaves, run

#: As in NumPy: types from JAX, values from NumPy.
LIKE_NUMPY = """
jnp.reshape(f, (3, 2))
jnp.reshape(f, (-1, 2), order="F")
jnp.reshape(2.0, 1)
jnp.reshape(f, -1)
jnp.ravel(f, "F")
jnp.resize(f, (2, 5))
jnp.resize(f, (0, 2))
jnp.squeeze(f[None, :, None])
jnp.squeeze(f[None, :, None], 2)
jnp.squeeze(f[None, :, None], (0, -2))
jnp.expand_dims(f, 1)
jnp.expand_dims(f, (0, -1))
jnp.atleast_1d(3)
jnp.atleast_2d(v)
jnp.atleast_3d(v)
jnp.atleast_3d(f)
jnp.atleast_2d(v, 2.5, f)
jnp.broadcast_to(v, (2, 3))
jnp.broadcast_to(w, (2,))
jnp.broadcast_arrays(v, f[:, :1], 1)
jnp.transpose(f)
jnp.transpose(f[None], (2, 0, 1))
jnp.permute_dims(f[None], (2, 0, 1))
jnp.matrix_transpose(f[None])
jnp.swapaxes(f[None], 0, -1)
jnp.moveaxis(f[None], 0, -1)
jnp.moveaxis(f[None], (0, 1), (-1, 0))
jnp.rollaxis(f[None], 2)
jnp.rollaxis(f[None], 0, 3)
jnp.flip(f)
jnp.flip(f, 1)
jnp.flip(f, (0, 1))
jnp.fliplr(f)
jnp.flipud(i)
jnp.rot90(f)
jnp.rot90(f, 2)
jnp.rot90(f, -1, (1, 0))
jnp.roll(f, 2)
jnp.roll(f, 2, axis=())
jnp.roll(f, -1, 1)
jnp.roll(f, (1, 2), (0, 1))
jnp.roll(f, (1, 2), (1, 1))
jnp.roll(f, 1, (0, 1))
jnp.roll(f, 100, 1)
jnp.roll(empty, 1, 0)
jnp.repeat(f, 2)
jnp.repeat(f, 3, 0)
jnp.repeat(f, np.array([1, 0, 2]), 1)
jnp.repeat(f, np.array([2]), -1)
jnp.tile(f, 2)
jnp.tile(f, (2, 1, 2))
jnp.tile(3, (2, 2))
jnp.concatenate([f, i])
jnp.concatenate([f, g], 1)
jnp.concatenate([f, v], None)
jnp.concatenate(f)
jnp.concatenate([i8, u8])
jnp.concat([f, g], axis=-1)
jnp.stack([f, g])
jnp.stack([f, i], -1)
jnp.stack([1, 2.0])
jnp.vstack([v, f])
jnp.vstack([1, 2])
jnp.hstack([f, g])
jnp.hstack([v, 2.0])
jnp.dstack([v, v])
jnp.dstack([f, g])
jnp.column_stack([v, f.T])
jnp.append(f, 2)
jnp.append(f, g, 1)
jnp.block([[f, g], [g, f]])
jnp.block([1.0, v])
jnp.block([v, f[:, :1][0]])
jnp.split(f, 3, 1)
jnp.split(f, [1], 1)
jnp.split(f, np.array([1, 1, 2]), 1)
jnp.array_split(f, 2, 1)
jnp.array_split(v, 5)
jnp.hsplit(f, 3)
jnp.vsplit(f, 2)
jnp.dsplit(f[None], 3)
jnp.unstack(f)
jnp.unstack(f, axis=1)
jnp.pad(f, 1)
jnp.pad(f, (1, 2), constant_values=5)
jnp.pad(f, ((1, 2), (0, 3)), constant_values=((1, 2), (3, 4)))
jnp.pad(f, 4, "edge")
jnp.pad(f, 7, "reflect")
jnp.pad(f, 7, "reflect", reflect_type="odd")
jnp.pad(f, 7, "symmetric")
jnp.pad(f, 5, "symmetric", reflect_type="odd")
jnp.pad(f, 7, "wrap")
jnp.pad(f, 3, "linear_ramp", end_values=(2, 5))
jnp.pad(i, 2, "maximum")
jnp.pad(f, 2, "minimum", stat_length=2)
jnp.pad(f, 2, "mean", stat_length=((1, 2), (2, 3)))
jnp.pad(i, 2, "mean")
jnp.pad(f, 2, "median")
jnp.pad(f[:1, :1], 3, "reflect")
jnp.tril_indices(3)
jnp.triu_indices(3, 1, 4)
jnp.tril_indices_from(f, -1)
jnp.triu_indices_from(f)
jnp.ix_(np.array([1, 0]), np.array([2]))
jnp.unravel_index(np.array([1, 5, 3]), (2, 3))
jnp.ravel_multi_index((np.array([1, 5]), np.array([-1, 2])), (2, 3), mode="wrap")
jnp.ravel_multi_index((np.array([1, 5]), np.array([-1, 2])), (2, 3), "clip", "F")
jnp.ravel_multi_index((np.array([1, 0]), np.array([1, 2])), (2, 3))
jnp.delete(f, 1)
jnp.delete(f, -1, 1)
jnp.delete(f, slice(0, 2), 1)
jnp.delete(f, np.array([0, 0, 2]), 1)
jnp.delete(v, np.array([True, False, True]))
jnp.insert(f, 1, 9)
jnp.insert(f, 1, v[:2], 1)
jnp.insert(v, np.array([2, 0]), np.array([8, 9]))
jnp.insert(v, np.array([1]), np.array([8, 9]))
jnp.insert(f, slice(0, 2), 7, 1)
jnp.insert(f, -1, 7, 1)
jnp.trim_zeros(np.array([0, 0, 1, 0, 2, 0]))
jnp.trim_zeros(np.array([0, 0, 1, 0, 2, 0]), "f")
jnp.trim_zeros(np.zeros(3))
jnp.r_[v, 0, 1]
jnp.r_[0:5:2, 7]
jnp.r_[0:1:5j]
jnp.r_["0,2", v, v]
jnp.r_["1,2,0", v, v]
jnp.r_[[1, 2], 3]
jnp.c_[v, v]
jnp.c_["0,2", v, v]
jnp.c_["1", v, v]
jnp.c_[f, g]
"""
#: As in JAX alone.
LIKE_JAX = """
jnp.concatenate([f, g], dtype="int32")
jnp.repeat(f, np.array([1, 0, 2]), 1, total_repeat_length=6)
jnp.repeat(f, np.array([1, 0, 2]), 1, total_repeat_length=2)
jnp.repeat(f, 2, 0, total_repeat_length=5)
jnp.repeat(f, np.array([1, 2, 0]), 1, total_repeat_length=6)
jnp.repeat(f, np.array([0, 1, 0]), 1, total_repeat_length=4)
jnp.unravel_index(np.array([-1, 99, -99]), (2, 3))
jnp.unravel_index(4, (2, 3))
jnp.fill_diagonal(f, 5, inplace=False)
jnp.fill_diagonal(f[:, :2], v[:2], inplace=False)
jnp.fill_diagonal(jnp.zeros((2, 2, 2)), 3, inplace=False)
jnp.apply_along_axis(lambda r: r[::-1], 1, f)
jnp.apply_along_axis(lambda r: r.sum(), 0, f)
jnp.apply_along_axis(lambda r: r[:, None] * r, 1, f)
jnp.apply_over_axes(jnp.sum, f, (0, 1))
jnp.mask_indices(3, jnp.triu, size=6)
"""
#: Both sides raise one of these.
ERRORS = (TypeError, ValueError, IndexError, NotImplementedError)
BAD = """
jnp.reshape(f, (4, 2))
jnp.reshape(f, (-1, -1))
jnp.reshape(f, (4, -1))
jnp.reshape([1, 2], (2, 1))
jnp.squeeze(f, 0)
jnp.squeeze(f, 5)
jnp.expand_dims(f, (0, 0))
jnp.expand_dims(f, 7)
jnp.broadcast_to(v, (2, 2))
jnp.broadcast_arrays(v, v[:2])
jnp.broadcast_shapes((2,), (3,))
jnp.transpose(f, (0, 0))
jnp.transpose(f, (0,))
jnp.matrix_transpose(v)
jnp.swapaxes(f, 0, 2)
jnp.moveaxis(f, (0, 1), 0)
jnp.moveaxis(f, 3, 0)
jnp.rollaxis(f, 0, 5)
jnp.flip(f, 2)
jnp.rot90(v)
jnp.rot90(f, 1, (0, 0))
jnp.roll(f, 1, 2)
jnp.roll(f, (1, 2), (0, 1, 0))
jnp.repeat(f, np.array([1, 2]), 1)
jnp.repeat(f, [1, 2, 3], 1)
jnp.repeat(f, -1)
jnp.concatenate([])
jnp.concatenate([1.0, 2.0])
jnp.concatenate([f, v])
jnp.concatenate([f, f.T])
jnp.concatenate([f, g], 2)
jnp.concatenate(3.0)
jnp.stack([f, v])
jnp.stack([])
jnp.stack([f, g], 3)
jnp.stack("ab")
jnp.vstack(3.0)
jnp.block([])
jnp.block([[1, 2], 3])
jnp.block((1, 2))
jnp.split(f, 2, 1)
jnp.split(f, 2, 4)
jnp.vsplit(3.0, 1)
jnp.unstack(3.0)
jnp.pad(f, -1)
jnp.pad(f, 1.5)
jnp.pad(f, ((1, 2), (1, 2), (1, 2)))
jnp.pad(f, 1, "edge", constant_values=3)
jnp.pad([1], 1)
jnp.pad(empty, 1, "edge")
jnp.tril_indices_from(v)
jnp.ix_(f)
jnp.ravel_multi_index((2, 3), (2, 3))
jnp.fill_diagonal(f, 5)
jnp.fill_diagonal(v, 5, inplace=False)
jnp.r_["x", v]
"""


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.mark.parametrize("text", lines(LIKE_NUMPY))
def test_values_are_numpys_and_types_jaxs(text):
    """Values agree with NumPy; shapes, dtypes and weak types with JAX."""
    plain = run(text, fnp)
    try:
        compare(text, values="numpy")
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        # Results whose shape depends on values: JAX gives types only with values.
        for ours, theirs in zip(leaves(plain), leaves(run(text, jax.numpy)), strict=True):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-6)


@pytest.mark.parametrize("text", lines(LIKE_JAX))
def test_agrees_with_jax(text):
    """Values and types agree with JAX."""
    compare(text)


@pytest.mark.parametrize("text", lines(BAD))
def test_bad_arguments_raise_on_both_sides(text):
    """Both sides refuse; our message names the function."""
    message = both_raise(text, ERRORS)
    assert "numpy." in message or "lax." in message or "broadcasting" in message


#: Traced arguments: what may be known only at run time.
TRACED = """
jnp.roll(f, i[0, 0], 1)
jnp.roll(f, i[0, :2], (0, 1))
jnp.repeat(f, abs(j[0]) % 3, 1, total_repeat_length=5)
jnp.pad(f, 2, constant_values=v[0])
jnp.pad(f, 2, constant_values=((v[0], 1), [2, v[1]]))
jnp.pad(f, 1, constant_values=[[v[0], v[1]]])
jnp.pad(f, 3, "reflect", reflect_type="odd")
jnp.unravel_index(abs(j[0]), (2, 3))
jnp.ravel_multi_index((i[0], j[0]), (2, 3), mode="wrap")
jnp.delete(f, abs(j[0, :1]), 1, assume_unique_indices=True)
jnp.insert(v, abs(j[0, :2]) - 1, 9.0)
jnp.fill_diagonal(f, v, inplace=False)
jnp.block([[f, g], [g, f]])
jnp.apply_along_axis(lambda r: r[::-1] * 2, 0, f)
"""


def under(transform, text: str, namespace):
    """Run an expression with its arrays as arguments of a transformed function."""
    names = [k for k in ("f", "g", "v", "i", "j", "b") if f"{k}" in text]
    function = eval(f"lambda jnp, np: lambda {', '.join(names)}: {text}")(namespace, np)
    return transform(function)(*(VALUES[k] for k in names))


@pytest.mark.parametrize("text", lines(TRACED))
def test_compiled_results_are_those_of_jax(text):
    """What is traced and compiled gives JAX's values."""
    ours, theirs = under(jit, text, fnp), under(jax.jit, text, jax.numpy)
    for x, y in zip(leaves(ours), leaves(theirs), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: fnp.repeat(x, x),
        lambda x: fnp.delete(x, x),
        lambda x: fnp.trim_zeros(x),
        lambda x: fnp.ravel_multi_index((x, x), (3, 3)),
        lambda x: fnp.split(x, x[:1]),
    ],
)
def test_traced_sizes_are_refused_with_advice(function):
    """A result whose shape would depend on a traced value is an error that says what to do."""
    aval = fnp.arange(3).aval
    with pytest.raises(ConcretizationTypeError, match=r"numpy\.\w+: .* must be concrete"):
        trace_graph(lambda x: [function(x)], [aval])


def test_a_traced_integer_can_be_deleted():
    """One index leaves one slice less, wherever it is."""
    got = jit(lambda x, k: fnp.delete(x, k, 1))(VALUES["f"], -2)
    np.testing.assert_array_equal(got, np.delete(VALUES["f"], -2, 1))


@pytest.mark.parametrize("points", [[9], [-1], [2, 1]])
def test_cuts_anywhere_follow_numpy(points):
    """Cuts out of range or out of order give empty parts, as slices do."""
    got, want = fnp.split(VALUES["f"], points, 1), np.split(VALUES["f"], points, 1)
    assert [x.shape for x in got] == [x.shape for x in want]


def test_wrapped_diagonals_and_dicts_follow_numpy():
    """Options that JAX lacks have NumPy's meaning."""
    tall = np.zeros((7, 3), np.float32)
    want = tall.copy()
    np.fill_diagonal(want, 1, wrap=True)
    assert (np.asarray(fnp.fill_diagonal(tall, 1, wrap=True, inplace=False)) == want).all()
    assert fnp.pad(tall, {1: 2, 0: (1, 3)}).shape == (11, 7)
    keep = np.array([True, False, True])
    assert [x.shape for x in fnp.ix_(keep, np.arange(3))] == [(2, 1), (1, 3)]


def test_padding_by_a_function_fills_the_vectors():
    """A callable mode gets each padded vector, the widths, the axis and the options."""

    def double(vector, widths, axis, options):
        return vector * options["by"]

    got = fnp.pad(VALUES["v"], (1, 2), double, by=2)
    np.testing.assert_allclose(got, [0, 3, -5, 1, 0, 0])


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_repetitions_of_every_length(mode, n):
    """Once or many times around the axis, on either side: as NumPy, and compiled."""
    x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    for widths in ((0, 0), (1, 0), (1, 2), (5, 3), (20, 17)):
        want = np.pad(x, (widths, (1, 0)), mode)
        np.testing.assert_array_equal(fnp.pad(x, (widths, (1, 0)), mode), want)
    compiled = jit(fnp.pad, static_argnames=("pad_width", "mode"))
    got = compiled(x, pad_width=((5, 3), (0, 1)), mode=mode)
    np.testing.assert_array_equal(got, np.pad(x, ((5, 3), (0, 1)), mode))
