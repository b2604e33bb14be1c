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
