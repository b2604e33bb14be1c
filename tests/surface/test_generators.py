"""Generators other than the default: keys, bits and derived keys are JAX's, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import fnarray
from fnarray import lax, random
from fnarray import numpy as jnp

IMPLS = ("threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg")


def both(jax, f, impl, seed=42):
    """Return what a function of a `random` and a key gives here and in JAX."""
    return f(random, random.key(seed, impl=impl)), f(jax.random, jax.random.key(seed, impl=impl))


DRAWS = {
    "words": lambda R, k: R.key_data(k),
    "bits": lambda R, k: R.bits(k, (2, 3)),
    "one": lambda R, k: R.bits(k),
    "bytes": lambda R, k: R.bits(k, (7,), "uint8"),
    "halves": lambda R, k: R.bits(k, (5,), "uint16"),
    "split": lambda R, k: R.key_data(R.split(k, (2, 3))),
    "fold_in": lambda R, k: R.key_data(R.fold_in(k, 7)),
    "again": lambda R, k: R.bits(R.fold_in(R.split(k)[1], 3), (4,)),
    "randint": lambda R, k: R.randint(k, (9,), -5, 50),
    "permutation": lambda R, k: R.permutation(k, 10),
    "uniform": lambda R, k: R.uniform(k, (6,)),
}


@pytest.mark.parametrize("impl", IMPLS)
def test_draws_are_those_of_jax(jax, impl):
    """Whatever exact steps make of a key is JAX's."""
    for name, draw in DRAWS.items():
        got, want = both(jax, draw, impl)
        assert got.dtype == want.dtype, name
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want), name)


@pytest.mark.parametrize("impl", IMPLS)
def test_draws_compiled_mapped_and_in_loops(jax, impl):
    """Transforms keep a key's generator; ``rbg`` under vmap draws all from the first key."""

    def program(R, L, transform):
        draw = lambda k: R.bits(R.fold_in(k, 1), (3,))  # noqa: E731

        def step(k, _):
            k, use = R.split(k)
            return k, draw(use)

        def run(k):
            last, rows = L.scan(step, k, None, length=2)
            return R.key_data(last), rows, transform.vmap(draw)(R.split(k, 3))

        return transform.jit(run)(R.key(5, impl=impl))

    for got, want in zip(
        program(random, lax, fnarray), program(jax.random, jax.lax, jax), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


@pytest.mark.parametrize("impl", ["rbg", "philox2x32"])
def test_words_are_for_the_default_generator(jax, impl):
    """A key without a type belongs to the generator that is set, as in JAX."""
    with fnarray.default_prng_impl(impl), jax.default_prng_impl(impl):
        for draw in (lambda R, k: R.split(k), lambda R, k: R.bits(k, (3,))):
            got, want = draw(random, random.PRNGKey(3)), draw(jax.random, jax.random.PRNGKey(3))
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
        assert random.key(0).impl == impl
        assert random.key_impl(random.PRNGKey(0)) == impl
    with pytest.raises(TypeError, match=r"must have a shape that ends with \(2,\)"):
        random.bits(random.PRNGKey(0, impl=impl))


def test_keys_of_a_generator_are_their_own_kind():
    """Dtype, size and printed form tell the generator, and keys of two do not mix."""
    key, other = random.key(1, impl="rbg"), random.key(1, impl="unsafe_rbg")
    assert (str(key.dtype), key.itemsize, key.nbytes) == ("key<rbg>", 16, 16)
    assert str(fnarray.typeof(random.split(other, 3))) == "key<urbg>[3]"
    assert random.key_impl(key) == "rbg"
    assert random.wrap_key_data(random.key_data(key), impl="rbg") == key
    assert jnp.stack([key, key]).impl == "rbg"
    with pytest.raises(TypeError, match="'rbg' and 'unsafe_rbg' do not"):
        _ = key == other
    with pytest.raises(TypeError, match="are of one kind"):
        jnp.stack([key, other])
    with pytest.raises(ValueError, match="unrecognized PRNG implementation"):
        random.key(0, impl="mersenne")


STATES = np.array([[1, 2, 3, 4], [5, 6, 2**32 - 1, 2**32 - 1], [9, 9, 0, 0]], np.uint32)


@pytest.mark.parametrize("algorithm", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (10,), (3, 4), (4, 3), (3, 3), (2, 2, 2), (0,)])
def test_rng_bit_generator_is_that_of_jax(jax, algorithm, shape):
    """State and bits are XLA's, in every shape, over the end of the low half of the counter."""
    for state in STATES:
        for dtype in ("uint32", "uint16"):
            got, want = (
                L.rng_bit_generator(state, shape, dtype, L.RandomAlgorithm(algorithm))
                for L in (lax, jax.lax)
            )
            for a, b in zip(got, want, strict=True):
                assert (a.shape, a.dtype) == (b.shape, b.dtype)
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_rng_bit_generator_under_transforms(jax):
    """Compiled, mapped, carried by a loop, in 64 bits and from a state of two of them."""
    draw = lambda L: lambda s: L.rng_bit_generator(s, (2, 3))  # noqa: E731
    wide = np.array([3, 5], np.uint64)
    for got, want in (
        (fnarray.jit(fnarray.vmap(draw(lax)))(STATES), jax.vmap(draw(jax.lax))(STATES)),
        (
            lax.scan(lambda s, _: draw(lax)(s), STATES[0], None, length=2),
            jax.lax.scan(lambda s, _: draw(jax.lax)(s), STATES[0], None, length=2),
        ),
    ):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    with fnarray.enable_x64(True), jax.enable_x64(True):
        for state in (STATES[1], wide):
            got, want = (L.rng_bit_generator(state, (3,), "uint64") for L in (lax, jax.lax))
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    with pytest.raises(TypeError, match="four words of uint32"):
        lax.rng_bit_generator(np.zeros(3, np.uint32), (2,))
    with pytest.raises(TypeError, match="unsigned integer"):
        lax.rng_bit_generator(STATES[0], (2,), "int32")


@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "float32"])
def test_rng_uniform_draws_within_its_bounds_and_never_again(dtype):
    """Each call draws others, compiled or not, between the bounds."""
    low, high = (jnp.asarray(x, dtype) for x in (-100, 100))
    draw = fnarray.jit(lambda a, b: lax.rng_uniform(a, b, (2000,)))
    first, second = (np.asarray(draw(low, high)).astype(float) for _ in range(2))
    assert (first != second).any()
    assert first.min() >= -100
    assert first.max() < 100
    assert abs(first.mean()) < 20  # seven standard deviations
    with pytest.raises(ValueError, match="identical dtypes"):
        lax.rng_uniform(0, 1.0, (2,))
