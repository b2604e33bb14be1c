"""Random keys in functions that move elements, and in the trees of their users."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fnarray
import fnarray.export
import fnarray.numpy as fnp
from fnarray import flatten_util
from fnarray.config import scoped

MOVES = {
    "where": lambda np_, lax, k, ks: np_.where(np_.arange(6) > 2, ks, k),
    "stack": lambda np_, lax, k, ks: np_.stack([ks, ks], 1),
    "concatenate": lambda np_, lax, k, ks: np_.concatenate([ks, ks[:2]]),
    "expand_dims": lambda np_, lax, k, ks: np_.expand_dims(ks, 0),
    "squeeze": lambda np_, lax, k, ks: np_.squeeze(ks[None]),
    "reshape": lambda np_, lax, k, ks: np_.reshape(ks, (2, 3)),
    "ravel": lambda np_, lax, k, ks: np_.ravel(ks.reshape(2, 3)),
    "broadcast_to": lambda np_, lax, k, ks: np_.broadcast_to(k, (2, 3)),
    "asarray": lambda np_, lax, k, ks: np_.asarray(k),
    "array": lambda np_, lax, k, ks: np_.array([k, k]),
    "take": lambda np_, lax, k, ks: np_.take(ks, 2),
    "moveaxis": lambda np_, lax, k, ks: np_.moveaxis(ks.reshape(2, 3), 0, 1),
    "tile": lambda np_, lax, k, ks: np_.tile(ks, 2),
    "roll": lambda np_, lax, k, ks: np_.roll(ks, 1),
    "flip": lambda np_, lax, k, ks: np_.flip(ks),
    "split": lambda np_, lax, k, ks: np_.split(ks, 2)[1],
    "append": lambda np_, lax, k, ks: np_.append(ks, ks),
    "select": lambda np_, lax, k, ks: lax.select(True, k, ks[0]),
    "index": lambda np_, lax, k, ks: lax.dynamic_index_in_dim(ks, 3, 0, False),
    "update": lambda np_, lax, k, ks: lax.dynamic_update_index_in_dim(ks, k, 2, 0),
    "broadcast": lambda np_, lax, k, ks: lax.broadcast(k, (3,)),
    "astype": lambda np_, lax, k, ks: np_.astype(ks, ks.dtype),
    "asarray of a dtype": lambda np_, lax, k, ks: np_.asarray(ks, dtype=ks.dtype),
    "zeros_like": lambda np_, lax, k, ks: np_.zeros_like(ks),
    "ones_like": lambda np_, lax, k, ks: np_.ones_like(ks, shape=(2,)),
    "empty_like": lambda np_, lax, k, ks: np_.empty_like(ks),
    "full_like": lambda np_, lax, k, ks: np_.full_like(ks, k),
    "full": lambda np_, lax, k, ks: np_.full((2, 2), k),
    "zeros": lambda np_, lax, k, ks: np_.zeros((2, 3), k.dtype).at[0].set(ks[:3]),
    "ones": lambda np_, lax, k, ks: np_.ones((), k.dtype),
    "empty": lambda np_, lax, k, ks: lax.empty((2,), k.dtype),
    "full of a dtype": lambda np_, lax, k, ks: lax.full((2, 2), 7, k.dtype),
    "full of keys": lambda np_, lax, k, ks: lax.full_like(ks, k),
    "select_n": lambda np_, lax, k, ks: lax.select_n(np_.arange(6) > 2, ks, ks[::-1]),
    "select conditions": lambda np_, lax, k, ks: np_.select([np_.arange(6) > 2], [ks], k),
    "choose": lambda np_, lax, k, ks: np_.choose(np_.arange(6) % 2, [ks, ks[::-1]], mode="clip"),
    "insert": lambda np_, lax, k, ks: np_.insert(ks, 1, k),
    "slice": lambda np_, lax, k, ks: lax.dynamic_slice(ks, (2,), (3,)),
    "atleast_2d": lambda np_, lax, k, ks: np_.atleast_2d(ks),
    "triu": lambda np_, lax, k, ks: np_.triu(ks.reshape(2, 3)),
    "reshape of lax": lambda np_, lax, k, ks: lax.reshape(ks, (3, 2)),
    "collapse": lambda np_, lax, k, ks: lax.collapse(ks.reshape(2, 3), 0, 2),
    "transpose of lax": lambda np_, lax, k, ks: lax.transpose(ks.reshape(2, 3), (1, 0)),
    "broadcast_in_dim": lambda np_, lax, k, ks: lax.broadcast_in_dim(ks, (2, 6), (1,)),
    "slice of lax": lambda np_, lax, k, ks: lax.slice(ks, (1,), (6,), (2,)),
    "split of lax": lambda np_, lax, k, ks: lax.split(ks, (2, 4))[1],
    "gather": lambda np_, lax, k, ks: lax.gather(
        ks, np_.array([[4], [0]]), lax.GatherDimensionNumbers((), (0,), (0,)), (1,)
    ),
    "unstack": lambda np_, lax, k, ks: np_.unstack(ks.reshape(2, 3), axis=-1)[2],
    "block": lambda np_, lax, k, ks: np_.block([[ks.reshape(2, 3), ks.reshape(2, 3)]]),
    "diagonal": lambda np_, lax, k, ks: np_.diagonal(ks.reshape(2, 3), 1),
    "resize": lambda np_, lax, k, ks: np_.resize(ks, (2, 4)),
    "take_along_axis": lambda np_, lax, k, ks: np_.take_along_axis(ks, np_.array([3, 1]), 0),
    "put_along_axis": lambda np_, lax, k, ks: np_.put_along_axis(
        ks, np_.array([3, 1]), ks[:2], 0, inplace=False
    ),
    "fill_diagonal": lambda np_, lax, k, ks: np_.fill_diagonal(ks.reshape(2, 3), k, inplace=False),
    "read in bounds": lambda np_, lax, k, ks: ks.at[np_.array([9, -1])].get(mode="clip"),
    "written in bounds": lambda np_, lax, k, ks: ks.at[np_.array([9, -1])].set(k, mode="drop"),
    "update slice": lambda np_, lax, k, ks: lax.dynamic_update_slice(ks, ks[:2], (3,)),
}


@pytest.mark.parametrize("name", MOVES)
def test_moving(name):
    """What moves elements moves keys as JAX does, alone and compiled."""
    move = MOVES[name]
    key = fnarray.random.key(3)
    keys = fnarray.random.split(key, 6)
    want = move(jnp, jax.lax, jax.random.key(3), jax.random.split(jax.random.key(3), 6))
    for f in (move, fnarray.jit(move, static_argnums=(0, 1))):
        got = f(fnp, fnarray.lax, key, keys)
        assert got.shape == want.shape
        words, wanted = fnarray.random.key_data(got), jax.random.key_data(want)
        np.testing.assert_array_equal(np.asarray(words), np.asarray(wanted))


def test_keys_are_not_converted():
    """To numbers, which they were in silence: keys over floats, that draw what no key draws."""
    keys = fnarray.random.split(fnarray.random.key(3), 6)
    for convert in (
        lambda: fnp.astype(keys, np.float32),
        lambda: fnp.array(keys, dtype=np.uint32),
        lambda: fnp.full_like(keys, keys[0], dtype=np.float32),
    ):
        with pytest.raises(ValueError, match=r"key<fry> cannot be converted.*key_data"):
            convert()
    assert fnp.zeros_like(keys, dtype=np.float32).dtype == np.float32


def test_keys_are_compared():
    """As a whole, with keys of their generator alone."""
    key, other = fnarray.random.key(3), fnarray.random.key(3, impl="rbg")
    keys = fnarray.random.split(key, 2)
    assert bool(fnp.array_equal(keys, fnarray.random.split(key, 2), equal_nan=True))
    assert not any(map(bool, (fnp.array_equal(keys, k) for k in (keys[:1], keys[::-1], other))))
    assert not bool(fnp.array_equal(keys, fnp.ones((2, 2))))


def test_kinds_of_keys():
    """Their dtype is found as others' are; what is known of keys equals a description of them."""
    key = fnarray.random.key(3)
    assert fnp.result_type(key) == fnp.result_type(key, key.dtype) == key.dtype
    known = fnarray.eval_shape(lambda: fnarray.random.split(key, 2))
    assert known == fnarray.ShapeDtypeStruct((2,), key.dtype)
    assert known != fnarray.ShapeDtypeStruct((3,), key.dtype)
    assert known != fnarray.ShapeDtypeStruct((2,), np.float32)
    for described in (known, fnarray.ShapeDtypeStruct((2,), key.dtype)):
        blank = fnp.zeros_like(described)
        assert blank.dtype == key.dtype
        np.testing.assert_array_equal(fnarray.random.key_data(blank), np.zeros((2, 2)))


def test_keys_are_leaves_of_trees():
    """Libraries map over leaves and find keys there; transforms still carry their words."""
    key = fnarray.random.key(0)
    tree = {"key": key, "n": 1}
    assert [type(x) for x in fnarray.tree.leaves(tree)] == [type(key), int]
    shapes = fnarray.tree.map(lambda x: np.shape(x) if isinstance(x, int) else x.shape, tree)
    assert shapes == {"key": (), "n": ()}
    leaves, treedef = fnarray.tree.flatten(tree)
    assert treedef.unflatten(leaves)["key"] is key
    assert fnarray.tree.structure(key).num_leaves == 1
    assert fnarray.tree_util.tree_leaves_with_path(tree)[0][1] is key
    assert str(fnarray.typeof(fnarray.random.split(key, 3))) == "key<fry>[3]"
    again = fnarray.jit(lambda leaves: treedef.unflatten(leaves))(leaves)
    assert bool(again["key"] == key)
    rows = fnarray.tree.transpose(fnarray.tree.structure([0, 0]), None, [tree, tree])
    assert rows["n"] == [1, 1]
    assert rows["key"][0] is key


def test_equal_compares_keys():
    """`equal` and `not_equal` say of keys what ``==`` and ``!=`` do, compiled too."""
    keys = fnarray.random.split(fnarray.random.key(3), 4)
    other = fnp.roll(keys, 1).at[2].set(keys[2])
    for f in (fnp.equal, fnarray.jit(fnp.equal), lambda a, b: ~fnp.not_equal(a, b)):
        np.testing.assert_array_equal(f(keys, other), [False, False, True, False])


@pytest.mark.parametrize("random", [fnarray.random, jax.random], ids=["fnarray", "jax"])
def test_keys_are_deleted_as_arrays_are(random):
    """Keys that were deleted, or donated, say so, and cannot be read."""
    key = random.key(1)
    assert not key.is_deleted()
    key.delete()
    assert key.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(random.key_data(key))


#: What names an axis of keys that they do not have: their words have one more.
BEYOND = {
    "vmap": lambda m, k, ks: m.vmap(lambda k: k)(k),
    "vmap of an axis": lambda m, k, ks: m.vmap(lambda k: k, in_axes=2)(ks),
    "vmap of one from the end": lambda m, k, ks: m.vmap(lambda k: k, in_axes=-3)(ks),
    "vmap to an axis": lambda m, k, ks: m.vmap(lambda k: k, out_axes=2)(ks),
    "scan": lambda m, k, ks: m.lax.scan(lambda c, k: (c, k), 0, {"of": k}),
    "map": lambda m, k, ks: m.lax.map(lambda k: k, k),
    "pmap": lambda m, k, ks: m.pmap(lambda k: k)(k),
    "associative_scan": lambda m, k, ks: m.lax.associative_scan(lambda a, b: a, k),
    "ravel_pytree": lambda m, k, ks: flatten_util.ravel_pytree({"k": k, "x": np.ones(2)}),
}


@pytest.mark.parametrize("name", BEYOND)
def test_keys_have_no_axis_of_words(name):
    """An axis that they lack is an error, as in JAX: it was that of their words, in silence."""
    key = fnarray.random.key(3)
    with pytest.raises((ValueError, TypeError, IndexError)) as raised:
        BEYOND[name](fnarray, key, fnarray.random.split(key, (3, 4)))
    assert "uint32" not in str(raised.value)


def test_axes_of_keys_are_counted_from_their_end():
    """By transforms that take and give axes: the last is the last of the keys."""
    keys = fnarray.random.split(fnarray.random.key(3), (3, 4))
    turned = fnarray.vmap(lambda k: k, in_axes=-1)(keys)
    assert bool((turned == keys.T).all())
    assert bool((fnarray.vmap(lambda k: k, out_axes=-1)(turned) == turned.T).all())
    for out_axes, want in ((-1, keys[:1].T), (1, keys[:1].T), (-2, keys[:1]), (0, keys[:1])):
        for off in (False, True):
            with fnarray.disable_jit(off):
                got = fnarray.pmap(lambda k: {"k": k, "x": 1}, out_axes={"k": out_axes, "x": 0})
                assert bool((got(keys[:1])["k"] == want).all())
    with pytest.raises(ValueError, match="axis 2 is out of bounds for array of dimension 2"):
        fnarray.pmap(lambda k: k, out_axes=2)(keys[:1])
    first = fnarray.lax.associative_scan(lambda a, b: a, keys, axis=-1)
    assert bool((first == keys[:, :1]).all())


def _drawn(m, key):
    return {"keys": m.random.split(key, 3), "x": m.random.uniform(key)}


ABSTRACT = {
    "eval_shape": lambda m, k: m.eval_shape(lambda k: _drawn(m, k), k),
    "of a compiled": lambda m, k: m.jit(lambda k: _drawn(m, k)).eval_shape(k),
    "again": lambda m, k: m.eval_shape(
        lambda t: t["keys"][1], m.eval_shape(lambda k: _drawn(m, k), k)
    ),
    "lower": lambda m, k: m.jit(lambda k: _drawn(m, k)).lower(k).out_info,
    "make_jaxpr": lambda m, k: m.make_jaxpr(lambda k: _drawn(m, k), return_shape=True)(k)[1],
    "in a tree": lambda m, k: m.eval_shape(lambda t: m.random.fold_in(t["a"], 1), {"a": k}),
    "of type and shape": lambda m, k: m.eval_shape(
        lambda k: m.vmap(m.random.normal)(k), m.ShapeDtypeStruct((5,), k.dtype)
    ),
}


@pytest.mark.parametrize("name", ABSTRACT)
def test_stand_ins_for_keys(name):
    """A `ShapeDtypeStruct` of keys stands for keys wherever one of numbers stands for them."""
    kinds = (m.ShapeDtypeStruct((), m.random.key(0).dtype) for m in (fnarray, jax))
    found, want = (ABSTRACT[name](m, k) for m, k in zip((fnarray, jax), kinds, strict=True))
    assert all(isinstance(x, fnarray.ShapeDtypeStruct) for x in fnarray.tree.leaves(found))
    said = [[(x.shape, str(x.dtype)) for x in jax.tree.leaves(t)] for t in (found, want)]
    assert said[0] == said[1]


def test_programs_made_for_stand_ins_take_keys():
    """Compiled ahead, and exported, sizes symbolic too."""
    key = fnarray.random.key(3)
    stand_in = fnarray.ShapeDtypeStruct((), key.dtype)
    ahead = fnarray.jit(fnarray.random.uniform).lower(stand_in).compile()
    assert ahead(key) == fnarray.random.uniform(key)
    (n,) = fnarray.export.symbolic_shape("n")
    draw = fnarray.jit(fnarray.vmap(fnarray.random.uniform))
    exported = fnarray.export.export(draw)(fnarray.ShapeDtypeStruct((n,), key.dtype))
    keys = fnarray.random.split(key, 3)
    np.testing.assert_array_equal(exported.call(keys), draw(keys))
    with pytest.raises(TypeError, match="does not have a value"):
        fnarray.jit(fnarray.random.uniform)(stand_in)


def test_parts_of_keys_are_keys():
    """Each on its device, its index without the axis of words."""
    keys = fnarray.random.split(fnarray.random.key(3), 4)
    with scoped("num_cpu_devices", 2):
        where = fnarray.NamedSharding(fnarray.make_mesh((2,), ("x",)), fnarray.P("x"))
        parts = fnarray.device_put(keys, where).addressable_shards
    assert [p.index for p in parts] == [(slice(0, 2, None),), (slice(2, 4, None),)]
    words = [np.asarray(fnarray.random.key_data(p.data)) for p in parts]
    np.testing.assert_array_equal(np.concatenate(words), fnarray.random.key_data(keys))
    assert bool((keys.addressable_data(0) == keys).all())


def test_keys_at_places_are_not_computed_with():
    """What adds at places is refused, and so are numbers put there."""
    keys = fnarray.random.split(fnarray.random.key(3), 4)
    with pytest.raises(TypeError, match=r"add does not accept dtype key<fry>"):
        keys.at[0].add(1)
    with pytest.raises(TypeError, match="key_data"):
        keys.at[0].set(1)
    with pytest.raises(TypeError, match="keys of their generator"):
        keys.at[0].set(fnarray.random.key(3, impl="rbg"))
