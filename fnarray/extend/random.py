"""What extensions of ``random`` use, named as in ``jax.extend.random``: generators, and one's own.

A generator is given to ``random.key(seed, impl=)``; all of `fnarray.random` draws by it, compiled
and mapped as by those that are named.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .. import lax
from ..api.batching import vmap
from ..core.array import Array
from ..core.dtypes import uint32
from ..ops.kit.canonical import as_array
from ..ops.kit.registry import registry
from ..ops.random_bits import UINT
from ..ops.random_bits import threefry2x32 as _threefry2x32
from ..random._generators import GENERATORS, Generator
from ..random._keys import PRNGKeyArray, check_impl, words_of_seeds, wrap

__all__ = [
    "define_prng_impl",
    "random_seed",
    "rbg_prng_impl",
    "seed_with_impl",
    "threefry2x32_p",
    "threefry_2x32",
    "threefry_prng_impl",
    "unsafe_rbg_prng_impl",
]
__dir__ = __all__.copy

Shape = tuple[int, ...]

threefry2x32_p = registry["threefry2x32"]
threefry_prng_impl: Hashable = GENERATORS["threefry2x32"]
rbg_prng_impl: Hashable = GENERATORS["rbg"]
unsafe_rbg_prng_impl: Hashable = GENERATORS["unsafe_rbg"]

_defined = itertools.count(1)


def define_prng_impl(
    *,
    key_shape: Shape,
    seed: Callable[[Any], Any],
    split: Callable[[Any, Shape], Any],
    random_bits: Callable[[Any, int, Shape], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> Hashable:
    """Define a generator by its functions of the words of one key.

    Parameters
    ----------
    key_shape : tuple of int
        Shape of the words of a key, which are uint32: one axis.
    seed : callable
        From an integer scalar to the words of a key.
    split : callable
        From words and a shape to the words of an array of new keys, of that shape.
    random_bits : callable
        From words, a width (8, 16, 32 or 64) and a shape to unsigned integers.
    fold_in : callable
        From words and a uint32 scalar to the words of a key.
    name, tag : str
        What is printed of the generator, and of the dtype of its keys.

    Returns
    -------
    hashable
        For ``impl=`` of `fnarray.random.key`, ``PRNGKey`` and ``wrap_key_data``.

    Raises
    ------
    ValueError
        ``key_shape`` has not one axis.
    TypeError
        When keys are used: a function returns another shape or dtype than it is to.
    """
    if len(key_shape) != 1:
        raise ValueError(
            f"define_prng_impl: key_shape must have one axis, got {key_shape}. Let the functions "
            "reshape the words of a key."
        )
    size = tuple(key_shape)

    def checked(what: str, x: Any, shape: Shape, dtype: np.dtype) -> Array:
        x = as_array(x)
        if (x.shape, x.dtype) != (shape, dtype):
            raise TypeError(
                f"define_prng_impl of {name!r}: {what} is to return {dtype}{[*shape]}, but "
                f"returned {x.aval.str_short()}."
            )
        return x

    def seeded(seeds: Any) -> Array:
        def one(s: Any) -> Array:
            return checked("seed", seed(s), size, uint32)

        seeds = as_array(seeds)
        for _ in seeds.shape:
            one = vmap(one)
        return one(seeds)

    made = Generator(
        f"{name} {next(_defined)}",
        tag,
        size[0],
        seeded,
        lambda words, shape: checked("split", split(words, shape), (*shape, *size), uint32),
        lambda words, data: checked("fold_in", fold_in(words, data), size, uint32),
        lambda words, width, shape: checked(
            "random_bits", random_bits(words, width, shape), shape, UINT[width]
        ),
        ours=False,
    )
    GENERATORS[made.name] = made
    return made


def random_seed(seeds: Any, impl: Any) -> PRNGKeyArray:
    """Make keys of a generator, one of each integer in an array.

    Parameters
    ----------
    seeds : int or integer array
    impl : generator, its name, or a key dtype

    Returns
    -------
    PRNGKeyArray

    Raises
    ------
    ValueError
        No generator has the name.
    TypeError
        A seed is no integer.
    """
    impl = check_impl(impl)
    return wrap(words_of_seeds("random_seed", seeds, impl), impl)


def seed_with_impl(impl: Any, seed: Any) -> PRNGKeyArray:
    """Make a key of a generator, as `random_seed` does.

    Parameters
    ----------
    impl : generator, its name, or a key dtype
    seed : int or integer array

    Returns
    -------
    PRNGKeyArray

    Raises
    ------
    ValueError
        No generator has the name.
    TypeError
        A seed is no integer.
    """
    return random_seed(seed, impl)


def threefry_2x32(keypair: Any, count: Any) -> Array:
    """Hash an array of counters, the first half of them paired with the second.

    Parameters
    ----------
    keypair : pair of uint32 scalars, or array of two
    count : uint32 array

    Returns
    -------
    uint32 array
        Of the shape of ``count``.

    Raises
    ------
    TypeError
        An operand is not uint32.
    """
    low, high = keypair
    count = as_array(count)
    flat = lax.reshape(count, (count.size,))
    if count.size % 2:
        flat = lax.concatenate([flat, np.zeros(1, uint32)], 0)
    half = flat.size // 2
    mixed = _threefry2x32(low, high, flat[:half], flat[half:])
    return lax.reshape(lax.concatenate(mixed, 0)[: count.size], count.shape)
