"""Random keys in functions that move elements, and in the trees of their users."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fnarray
import fnarray.numpy as fnp

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
