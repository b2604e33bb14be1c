"""Collectives by axis name under ``vmap``, alone and under the other transforms, against JAX."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray as fa
from fnarray import lax
from fnarray.config import scoped
from fnarray.errors import MissingRuleError

from .mapped_cases import CASES, GROUPS, SIZE, SMOOTH, argument, loss

X = np.arange(4.0, dtype=np.float32)


def same(got, wanted, rtol=2e-6):
    """Compare two trees leaf by leaf: shapes, dtypes and values."""
    got, wanted = fa.tree.leaves(got), list(wanted)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_under_vmap(name, oracle):
    """What examples exchange under vmap is what JAX's devices exchange."""
    shape, make = CASES[name]
    same(fa.vmap(make(fa), axis_name="i")(argument(shape)), oracle[name])


@pytest.mark.parametrize("name", ["psum", "inner_vmap", "all_to_all_tiled", "in_scan", "in_cond"])
def test_under_jit(name, oracle):
    """Compiled, collectives under vmap are arithmetic like any other."""
    shape, make = CASES[name]
    same(fa.jit(fa.vmap(make(fa), axis_name="i"))(argument(shape)), oracle[name])


@pytest.mark.parametrize("name", SMOOTH)
def test_grad_of_vmap(name, oracle):
    """The derivative of a map is that of the map as one function of the batch."""
    got = fa.grad(loss(fa, name))(argument(CASES[name][0]))
    same([got], [oracle["gradient", name]], rtol=2e-5)


def members(k):
    """Return the group that an example belongs to."""
    return list(next(g for g in GROUPS if k in g))


#: What each example gets; JAX's vmap does not know groups.
GROUPED = {
    "psum": (
        lambda x: lax.psum(x, "i", axis_index_groups=GROUPS),
        lambda x, k: x[list(members(k))].sum(0),
    ),
    "pmean": (
        lambda x: lax.pmean(x, "i", axis_index_groups=GROUPS),
        lambda x, k: x[list(members(k))].mean(0),
    ),
    "pmax": (
        lambda x: lax.pmax(x, "i", axis_index_groups=GROUPS),
        lambda x, k: x[list(members(k))].max(0),
    ),
    "all_gather": (
        lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS, axis=1),
        lambda x, k: np.stack(x[list(members(k))], 1),
    ),
    "psum_scatter": (
        lambda x: lax.psum_scatter(x, "i", axis_index_groups=GROUPS),
        lambda x, k: x[list(members(k))].sum(0)[members(k).index(k)],
    ),
    "all_to_all": (
        lambda x: lax.all_to_all(x, "i", 0, 0, axis_index_groups=GROUPS),
        lambda x, k: x[list(members(k)), members(k).index(k)],
    ),
}


@pytest.mark.parametrize("by", ["vmap", "pmap"])
@pytest.mark.parametrize("name", GROUPED)
def test_groups(name, by):
    """Within groups, the members alone exchange values, in the group's order."""
    fun, oracle = GROUPED[name]
    x = argument((2, 3))
    with scoped("num_cpu_devices", SIZE):
        got = getattr(fa, by)(fun, axis_name="i")(x)
    np.testing.assert_allclose(got, [oracle(x, k) for k in range(SIZE)], rtol=1e-6)


def test_unequal_groups():
    """Sums may be taken within groups of different sizes."""
    groups = ((0,), (1, 3, 2))
    got = fa.vmap(lambda x: lax.psum(x, "i", axis_index_groups=groups), axis_name="i")(X)
    np.testing.assert_array_equal(got, [0, 6, 6, 6])


def test_two_names():
    """Several names at once: the last runs fastest."""
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)

    def fun(v):
        gathered = lax.all_gather(v, ("i", "j"))
        return gathered, lax.all_gather(v, ("i", "j"), tiled=True), lax.axis_index(("i", "j"))

    gathered, tiled, index = fa.vmap(fa.vmap(fun, axis_name="j"), axis_name="i")(x)
    np.testing.assert_array_equal(gathered[1, 2], x.reshape(6, 4))
    np.testing.assert_array_equal(tiled[0, 1], x.reshape(24))
    np.testing.assert_array_equal(index, np.arange(6).reshape(2, 3))


def test_numbers_stay_numbers():
    """Sums of Python numbers are Python numbers: sizes may be computed from them."""
    seen = fa.eval_shape(
        fa.vmap(lambda x: (x * lax.psum(1, "i"), x[: lax.psum(1, "i")]), axis_name="i"),
        fa.ShapeDtypeStruct((3, 5), np.float32),
    )
    assert seen[1].shape == (3, 3)


def test_result_is_not_mapped():
    """What a sum gives is the same for all, so it may leave the map unmapped."""
    assert fa.vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X).shape == ()


def test_positional_axes():
    """Integers among the names are axes of the array itself."""
    x = argument((3,))
    got = fa.vmap(lambda v: lax.psum(v, (0, "i")), axis_name="i")(x)
    np.testing.assert_allclose(got, np.full(4, x.sum()), rtol=1e-6)


def test_broadcast_from_one():
    """pbroadcast gives everybody one example's value, a NaN elsewhere notwithstanding."""
    x = np.asarray([1.0, np.nan, 3.0], np.float32)
    got = fa.vmap(lambda v: lax.pbroadcast(v, "i", 2), axis_name="i")(x)
    np.testing.assert_array_equal(got, [3, 3, 3])


def test_sizes_are_part_of_the_trace():
    """A jitted function in maps of several sizes is traced for each."""
    inner = fa.jit(lambda x: x * lax.axis_size("i"))
    mapped = fa.vmap(inner, axis_name="i")
    np.testing.assert_array_equal(mapped(X), 4 * X)
    np.testing.assert_array_equal(mapped(X[:2]), 2 * X[:2])


def test_inner_name_hides_outer():
    """Of two axes of one name, the inner one is meant."""
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    got = fa.vmap(fa.vmap(lambda v: lax.psum(v, "i"), axis_name="i"), axis_name="i")(x)
    np.testing.assert_array_equal(got, np.repeat(x.sum(1, keepdims=True), 3, 1))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: lax.psum(x, "k"),
        lambda x: lax.pmean(1, "k"),
        lambda x: lax.axis_index("k"),
        lambda x: lax.axis_size("k"),
        lambda x: lax.all_gather(x, ("i", "k")),
        lambda x: fa.jit(lambda v: lax.pmax(v, "k"))(x),
    ],
)
def test_unbound_name(fun):
    """A name that no map binds is a NameError that tells it."""
    with pytest.raises(NameError, match="unbound axis name: k"):
        fa.vmap(fun, axis_name="i")(X)
    with pytest.raises(NameError, match="unbound axis name"):
        fun(X)


@pytest.mark.parametrize(
    ("fun", "message"),
    [
        (lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), "unique"),
        (lambda x: lax.ppermute(x, "i", [(0, 7)]), "on the axis of size 4"),
        (lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]), "does not represent a permutation"),
        (lambda x: lax.all_to_all(x, "i", 0, 0), "requires the size of the mapped axis"),
        (lambda x: lax.psum_scatter(x, "i"), "must have the size 4 of the mapped axis"),
        (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1]]), "cover all indices"),
        (lambda x: lax.pbroadcast(x, "i", 4), "source must be below 4"),
    ],
)
def test_bad_arguments(fun, message):
    """Arguments that do not fit the axis are refused with its size."""
    with pytest.raises(ValueError, match=message):
        fa.vmap(fun, axis_name="i")(argument((3,)))


def test_no_derivative_of_pmax():
    """As in JAX; the error says what to do."""
    with pytest.raises(MissingRuleError, match="all_gather"):
        fa.vmap(fa.grad(lambda x: lax.pmax(x, "i")), axis_name="i")(X)


def test_axis_env(jax):
    """make_jaxpr may bind axes of its own, and then prints what JAX prints."""

    def graph(module):
        def fun(x):
            lax = module.lax
            return lax.psum(x, "i"), lax.pmax(x, "i"), lax.all_gather(x, "i"), lax.axis_index("i")

        return str(module.make_jaxpr(fun, axis_env=[("i", 4)])(X))

    assert graph(fa) == graph(jax)


def _exchanged(rows, room, begin, many, there, groups, runs):
    """Move rows one by one, as a loop: what `ragged_all_to_all` promises."""
    out = room.copy()
    for members in groups:
        for sender in members:
            for k, receiver in enumerate(members):
                for run in range(k * runs, (k + 1) * runs):
                    a, n, b = begin[sender, run], many[sender, run], there[sender, run]
                    out[receiver, b : b + n] = rows[sender, a : a + n]
    return out


@pytest.mark.parametrize(("groups", "runs"), [(None, 1), (None, 2), ([[0, 2], [1, 3]], 1)], ids=str)
def test_ragged_all_to_all(groups, runs):
    """Each example sends as many rows to each as it says; derivatives go the way back."""
    rng = np.random.RandomState(0)
    members = groups or [[0, 1, 2, 3]]
    n = len(members[0]) * runs
    rows = rng.rand(4, 12, 2).astype(np.float32)
    room = rng.rand(4, 20, 2).astype(np.float32)
    begin, many = rng.randint(0, 9, (4, n)), rng.randint(0, 4, (4, n))
    # Places that do not overlap, so that the order of arrival is nobody's business.
    there = np.zeros((4, n), int)
    for group in members:
        for k, _ in enumerate(group):
            for run in range(runs):
                there[group, k * runs + run] = np.arange(len(group)) * 4 + run * 2
    many = np.minimum(many, 2) if runs > 1 else many
    ints = [x.astype(np.int32) for x in (begin, many, there, many)]
    want = _exchanged(rows, room, begin, many, there, members, runs)
    run = fa.vmap(
        lambda *args: lax.ragged_all_to_all(*args, axis_name="i", axis_index_groups=groups),
        axis_name="i",
    )
    np.testing.assert_array_equal(run(rows, room, *ints), want)
    weights = rng.rand(*room.shape).astype(np.float32)
    slopes = fa.grad(lambda x: (run(x, room, *ints) * weights).sum())(rows)
    tangent = rng.rand(*rows.shape).astype(np.float32)
    moved = _exchanged(tangent, 0 * room, begin, many, there, members, runs)
    np.testing.assert_allclose((slopes * tangent).sum(), (moved * weights).sum(), rtol=1e-5)


def test_ragged_all_to_all_refuses():
    """Offsets of the wrong dtype, rank or number, and rows that differ."""
    x, k = np.zeros((2, 3), np.float32), np.zeros((2, 2), np.int32)
    run = fa.vmap(lambda *args: lax.ragged_all_to_all(*args, axis_name="i"), axis_name="i")
    for args, text in (
        ((x, x, x[:, :2], k, k, k), "input_offsets must be integer type"),
        ((x, x, k, k, k[:, 0], k), "output_offsets must be rank 1"),
        ((x, x, k, k, k, np.zeros((2, 4), np.int32)), "recv_sizes must have as many"),
        ((x, x.astype(int), k, k, k, k), "equal dtypes and rows"),
    ):
        with pytest.raises(ValueError, match=text):
            run(*args)
