"""Generators that users define: `fnarray.extend.random`, beside JAX's."""

from __future__ import annotations

import jax
import jax.extend.random
import numpy as np
import pytest

import fnarray
import fnarray.extend.random

KEY = 13


def _defined(lib, **others):
    """A generator of arithmetic alone, whose keys have 13 words."""
    jnp = lib.numpy
    steps = np.arange(KEY, dtype=np.uint32)

    def numbers(shape):
        return jnp.arange(int(np.prod(shape)), dtype="uint32").reshape(shape)

    def bits(words, width, shape):
        mixed = numbers(shape) * jnp.uint32(2654435761) + words[0] * jnp.uint32(40503) + words[5]
        return mixed.astype(f"uint{width}")

    functions = {
        "seed": lambda s: jnp.asarray(steps) * jnp.uint32(7) + s.astype("uint32"),
        "split": lambda words, shape: words + numbers((*shape, 1)) * jnp.uint32(977),
        "random_bits": bits,
        "fold_in": lambda words, data: words ^ jnp.asarray(data).astype("uint32"),
    }
    return lib.extend.random.define_prng_impl(
        **{"key_shape": (KEY,), **functions, "name": "steps", "tag": "stp", **others}
    )


def _keys(lib, impl):
    random, key = lib.random, lib.random.key(3, impl=impl)
    moved = random.wrap_key_data(np.ones((2, KEY), np.uint32), impl=impl)
    of_all = random.split(key, (2, 2)), random.fold_in(key, 5), moved, lib.numpy.stack([key, key])
    return [random.PRNGKey(3, impl=impl), *map(random.key_data, of_all)]


def _draws(lib, impl):
    random, key = lib.random, lib.random.key(3, impl=impl)
    keys = random.split(key, 3)

    def normal(key):
        return random.normal(key, (3,))

    def turn(key, _):
        return random.split(key)[1], random.uniform(key)

    return [
        random.bits(key, (3,), "uint8"),
        random.randint(key, (3,), 0, 100),
        random.permutation(key, 5),
        random.choice(key, 5, (2,)),
        normal(key),
        lib.jit(normal)(key),
        lib.vmap(normal)(keys),
        lib.lax.scan(turn, key, None, length=3)[1],
    ]


@pytest.mark.parametrize("program", [_keys, _draws])
def test_draws_as_in_jax(program):
    """Keys and what is drawn by them are JAX's, eagerly, compiled, mapped and carried."""
    got, want = program(fnarray, _defined(fnarray)), program(jax, _defined(jax))
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(g, w, rtol=2e-6)


def test_is_like_no_other():
    """A generator is found by itself alone: not by its name, nor by another definition's."""
    impl, random = _defined(fnarray), fnarray.random
    key = random.key(3, impl=impl)
    assert str(key.dtype) == str(jax.random.key(3, impl=_defined(jax)).dtype) == "key<stp>"
    assert random.key_impl(key) == impl != _defined(fnarray)
    assert key.dtype != random.key(3, impl=_defined(fnarray)).dtype
    for lib in fnarray, jax:
        with pytest.raises(ValueError, match="unrecognized PRNG implementation"):
            lib.random.key(3, impl="steps")


def test_wrong_functions_are_named():
    """A function of another shape or dtype than it is to have is an error that names it."""
    short = _defined(fnarray, seed=lambda s: np.zeros(3, np.uint32))
    with pytest.raises(TypeError, match=r"'steps': seed is to return uint32\[13\]"):
        fnarray.random.key(0, impl=short)
    floats = _defined(fnarray, random_bits=lambda words, width, shape: np.zeros(shape))
    with pytest.raises(TypeError, match="random_bits is to return uint32"):
        fnarray.random.uniform(fnarray.random.key(0, impl=floats), (2,))
    with pytest.raises(ValueError, match="one axis"):
        _defined(fnarray, key_shape=(2, 2))


@pytest.mark.parametrize("name", ["threefry_prng_impl", "rbg_prng_impl", "unsafe_rbg_prng_impl"])
def test_seeds_and_hashes_are_jax_s(name):
    """Keys of arrays of seeds, and Threefry's hash of counters, are JAX's."""

    def words(lib):
        random = lib.extend.random
        impl = getattr(random, name)
        made = random.random_seed(np.arange(3), impl), random.seed_with_impl(impl, -5)
        pair, count = np.array([1, 2], np.uint32), np.arange(5, dtype=np.uint32)
        hashed = random.threefry_2x32(pair, count), random.threefry_2x32(pair, count[:4, None])
        return [*map(lib.random.key_data, made), *hashed]

    for g, w in zip(words(fnarray), words(jax), strict=True):
        np.testing.assert_array_equal(g, w)
