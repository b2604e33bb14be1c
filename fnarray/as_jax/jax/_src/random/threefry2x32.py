"""``jax._src.random.threefry2x32``: the default generator, on bare words."""

from __future__ import annotations

from typing import Any

from fnarray.core.array import Array
from fnarray.ops.random_bits import random_bits, random_fold_in, random_seed, random_split


def threefry_seed(seed: Any) -> Array:
    """Return the words of a seed."""
    return random_seed(seed)


def threefry_split(key: Any, shape: Any) -> Array:
    """Return the words of new keys, an array of a shape of them."""
    return random_split(key, tuple(shape))


def threefry_fold_in(key: Any, data: Any) -> Array:
    """Return the words that a number turns words into."""
    return random_fold_in(key, data)


def threefry_random_bits(key: Any, bit_width: int, shape: Any) -> Array:
    """Return unsigned integers of uniform bits."""
    return random_bits(key, bit_width, tuple(shape))
