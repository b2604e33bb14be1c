"""Modules of ``jax.experimental`` that few programs know; run under fnarray and under JAX."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import (
    buffer_callback,
    compute_on,
    custom_partitioning,
    rnn,
    scheduling_groups,
    serialize_executable,
    shard_alike,
    topologies,
    xla_metadata,
)
from jax.experimental import random as stateful
from jax.experimental.compilation_cache import compilation_cache

OURS = jax.__name__ == "fnarray"


def lstms():
    keys = jax.random.split(jax.random.key(0), 4)
    lengths = jnp.full(2, 5, jnp.int32)
    for bidirectional in (False, True):
        sizes, states = (3, 4, 2), (4 if bidirectional else 2, 2, 4)
        weights = rnn.init_lstm_weight(keys[0], *sizes, bidirectional)
        parts = rnn.unpack_lstm_weights(weights, *sizes, bidirectional)
        x = jax.random.normal(keys[1], (2, 5, 3))
        h, c = (jax.random.normal(key, states) for key in keys[2:])
        yield rnn.get_num_params_in_lstm(*sizes, bidirectional), weights, parts
        yield rnn.lstm_ref(x, h, c, *parts, lengths, *sizes, 0.0, bidirectional)
    count = rnn.get_num_params_in_lstm(2, 2, 1, False)
    yield rnn.swap_lstm_gates(jnp.arange(float(count)), 2, 2, 1, False)


def generators():
    rng = stateful.stateful_rng(42)
    yield rng.uniform(), rng.normal(size=3), rng.integers(0, 10, 4), rng.random((2, 2))
    drawn = jax.jit(rng.uniform)
    yield drawn(), drawn(), jax.random.key_data(rng.key((2,)))
    yield [child.integers(5) for child in rng.spawn(2)]
    yield jax.vmap(lambda one, x: x + one.uniform())(rng.split(3), jnp.zeros(3))
    yield rng.normal(jnp.arange(3.0), 2.0)


def callbacks():
    def write(context, out, x, *, times):
        np.asarray(out)[...] = times * np.asarray(x)

    struct = jax.ShapeDtypeStruct((3,), jnp.float32)
    f = buffer_callback.buffer_callback(write, struct, vmap_method="expand_dims")
    yield jax.jit(lambda x: f(x, times=2))(jnp.arange(3.0))
    yield jax.vmap(lambda x: f(x, times=3))(jnp.arange(6.0).reshape(2, 3))


def executables():
    f = jax.jit(lambda x, *, y: {"product": x @ y, "sum": y.sum()})
    x, y = jnp.ones((2, 3)), jnp.arange(6.0).reshape(3, 2)
    parts = serialize_executable.serialize(f.lower(x, y=y).compile())
    yield serialize_executable.deserialize_and_load(*parts)(x, y=y)


def words():
    @jax.jit
    def f(x):
        with compute_on.compute_on("device_host"):
            y = 2 * x
        with xla_metadata.set_xla_metadata(a=1):
            z = y + 1
        return scheduling_groups.scheduling_group("g")(lambda v: 3 * v)(z)

    yield f(2.0), shard_alike.shard_alike({"a": jnp.ones(3)}, {"a": jnp.zeros(3)})
    for wrong in (
        lambda: compute_on.compute_on("nowhere").__enter__(),
        lambda: shard_alike.shard_alike(jnp.ones(3), jnp.zeros(2)),
        lambda: shard_alike.shard_alike([x := jnp.ones(3)], (x,)),
        lambda: stateful.stateful_rng(0).split(3).uniform(),
    ):
        try:
            wrong()
        except ValueError:
            yield 1
        else:
            yield 0
    folder = f"{sys.argv[1]}-cache"
    compilation_cache.set_cache_dir(folder)
    if OURS:
        assert jax.config.cache_dir == folder
    compilation_cache.reset_cache()


def ours():
    """What JAX does on other backends alone."""
    sizes = (3, 4, 1)
    x, zeros = jax.random.normal(jax.random.key(1), (2, 5, 3)), jnp.zeros((2, 2, 4))
    weights = rnn.init_lstm_weight(jax.random.key(2), *sizes, True)
    y, h, c = rnn.lstm(x, zeros, zeros, weights, jnp.array([5, 3]), *sizes, 0.0, True)
    first = x[1:, :3], zeros[:, 1:], zeros[:, 1:], weights, jnp.array([3])
    alone = rnn.lstm(*first, *sizes, 0.0, True)
    np.testing.assert_allclose(y[1, :3], alone[0][0], rtol=1e-6)
    np.testing.assert_array_equal(y[1, 3:], 0)
    np.testing.assert_allclose(h[:, 1], alone[1][:, 0], rtol=1e-6)
    np.testing.assert_allclose(c[:, 1], alone[2][:, 0], rtol=1e-6)

    @custom_partitioning.custom_partitioning
    def double(x, scale=2):
        return scale * x

    try:
        double(2.0)
        raise AssertionError("it has no rules yet")
    except AttributeError:
        pass
    double.def_partition(infer_sharding_from_operands=None, partition=lambda *a: a)
    assert jax.jit(lambda x: double(x, scale=3))(2.0) == 6


def attached():
    topology = topologies.get_attached_topology()
    mesh = topologies.make_mesh(topology, (1,), ("x",))
    yield len(topology.devices), mesh.shape["x"], str(mesh.axis_types)
    try:
        topologies.get_topology_desc("none", "cpu")
    except NotImplementedError:
        yield 1


parts = attached, lstms, generators, callbacks, executables, words
named = {}
for part in parts:
    for path, leaf in jax.tree_util.tree_leaves_with_path(list(part())):
        named[part.__name__ + jax.tree_util.keystr(path)] = np.asarray(leaf)
if OURS:
    ours()
np.savez(sys.argv[1], **named)
