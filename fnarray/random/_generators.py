"""The generators that keys may be for: how each makes, splits and draws from the words of a key.

A function on the bare words of a key draws by the generator that is the default where it runs;
typed keys make theirs the default for as long as a function draws from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, Final

import numpy as np

from .. import lax
from ..api.batching import vmap
from ..config import config, override
from ..core.array import Array
from ..core.dtypes import uint32
from ..core.frozen import frozen
from ..ops import random_bits as fry
from ..ops.bit_generator import rng_bit_generator
from ..ops.hashes import philox2x32, philox4x32, threefry4x32
from ..ops.kit.calls import broadcast, moveaxis
from ..ops.kit.canonical import as_array
from ..ops.random_bits import UINT, counters
from ._args import Shape

Hash = Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]


@frozen
class Generator:
    """A generator: its names, the words of a key, and its functions of words.

    Attributes
    ----------
    name, tag : str
        What users call it, and what is printed of it.
    words : int
        How many uint32 a key has.
    seed : callable
        From an array of integers to keys.
    split : callable
        From a key and a shape to that array of keys.
    fold_in : callable
        From a key and a uint32 scalar to a key.
    bits : callable
        From a key, a width in bits and a shape to unsigned integers.
    ours : bool
        Whether keys are made for it by its name.
    """

    name: str
    tag: str
    words: int
    seed: Callable[[Any], Array]
    split: Callable[[Any, Shape], Array]
    fold_in: Callable[[Any, Any], Array]
    bits: Callable[[Any, int, Shape], Array]
    ours: bool = True

    def __repr__(self) -> str:
        return f"PRNGSpec({self.name!r})"


def _columns(words: Any) -> tuple[Array, ...]:
    return tuple(lax.index_in_dim(words, i, -1, keepdims=False) for i in range(words.shape[-1]))


def _rows(words: tuple[Any, ...]) -> Array:
    return lax.stack(words, -1)


def _each(f: Callable[..., Array], keys: Any, *args: Any) -> Array:
    """Apply a function of one key to each of an array of them."""
    for _ in range(keys.ndim - 1):
        f = vmap(f, (0, *(None for _ in args)))
    return f(keys, *args)


# --- hashes of counters -------------------------------------------------------------------------

_ZERO = np.zeros((), uint32)


def _hashing(
    name: str, tag: str, hash: Hash, key: int, block: int, seed: Callable[[Any, Any], Any]
) -> Generator:
    """Return the generator that hashes counters.

    Drawing counts in the first two words of a block, and deriving keys in the last two.

    Parameters
    ----------
    name, tag : str
    hash : callable
    key, block : int
        Words of a key and of a block.
    seed : callable
        From high and low words of seeds to a block.
    """
    rest = (_ZERO,) * (block - 2)

    def seeded(seeds: Any) -> Array:
        return _rows(seed(*_columns(fry.random_seed(seeds)))[:key])

    def derived(words: Any, counter: tuple[Any, ...]) -> Array:
        return _rows(hash(_columns(words), (*rest, *counter))[:key])

    def split(words: Any, shape: Shape) -> Array:
        return broadcast(derived(words, counters(shape)), (*shape, key))

    def fold_in(words: Any, data: Any) -> Array:
        return derived(words, (_ZERO, data))

    def bits(words: Any, width: int, shape: Shape) -> Array:
        high, low = counters(shape)
        out = hash(_columns(words), (high, low, *rest))
        if width == 64:
            # A block of Threefry is folded to two words first; Philox leaves words over.
            if hash is threefry4x32:
                out = lax.bitwise_xor(out[0], out[2]), lax.bitwise_xor(out[1], out[3])
            wide = [_to(word, 64) for word in out[:2]]
            return lax.bitwise_or(lax.shift_left(wide[0], fry.convert(32, UINT[64])), wide[1])
        mixed = out[0]
        for word in out[1:]:
            mixed = lax.bitwise_xor(mixed, word)
        return _to(mixed, width)

    return Generator(name, tag, key, seeded, split, fold_in, bits)


def _to(x: Any, width: int) -> Array:
    """Convert to unsigned integers of a width, 64 bits included whatever the default."""
    return fry.convert(x, UINT[width])


# --- XLA's bit generator ------------------------------------------------------------------------


def _twice(seeds: Any) -> Array:
    half = fry.random_seed(seeds)
    return lax.concatenate([half, half], half.ndim - 1)


def _draw(words: Any, width: int, shape: Shape) -> Array:
    return rng_bit_generator(words, shape, UINT[width])[1]


def _split_halves(words: Any, shape: Shape) -> Array:
    """Split the halves of a key as Threefry does."""
    both = fry.random_split(lax.reshape(words, (2, 2)), shape)
    return lax.reshape(moveaxis(both, 0, len(shape)), (*shape, 4))


def _fold_halves(words: Any, data: Any) -> Array:
    both = fry.random_fold_in(lax.reshape(words, (2, 2)), broadcast(data, (2,)))
    return lax.reshape(both, (4,))


def _split_drawn(words: Any, shape: Shape) -> Array:
    """Draw new keys: of ten rows of words, the first."""
    rows = _draw(words, 32, (10 * prod(shape), 4))
    return lax.reshape(lax.slice_in_dim(rows, None, None, 10), (*shape, 4))


def _fold_drawn(words: Any, data: Any) -> Array:
    return lax.bitwise_xor(words, _draw(_twice(data), 32, (10, 4))[-1])


# --- all of them --------------------------------------------------------------------------------

_ALL = (
    Generator(
        "threefry2x32", "fry", 2, fry.random_seed, fry.random_split, fry.random_fold_in,
        fry.random_bits,
    ),
    _hashing(
        "threefry4x32", "fry4", threefry4x32, 4, 4,
        lambda high, low: threefry4x32((high, low, _ZERO, _ZERO), (_ZERO,) * 4),
    ),
    _hashing(
        "philox2x32", "phx2", philox2x32, 1, 2,
        lambda high, low: philox2x32((_ZERO,), (high, low)),
    ),
    _hashing(
        "philox4x32", "phx4", philox4x32, 2, 4,
        lambda high, low: philox4x32((_ZERO, _ZERO), (high, low, _ZERO, _ZERO)),
    ),
    Generator("rbg", "rbg", 4, _twice, _split_halves, _fold_halves, _draw),
    Generator("unsafe_rbg", "urbg", 4, _twice, _split_drawn, _fold_drawn, _draw),
)  # fmt: skip
#: By name; those that users define go by one that is like no other.
GENERATORS: Final = {g.name: g for g in _ALL}
#: Whose operations take arrays of keys as they are.
DEFAULT: Final = "threefry2x32"


def current() -> Generator:
    """Return the generator that bare words are for, here and now."""
    return GENERATORS[config.default_prng_impl]


@contextmanager
def drawing_by(impl: str) -> Iterator[None]:
    """Let bare words be for a generator, one that users define included."""
    before = override("default_prng_impl", impl)
    try:
        yield
    finally:
        override("default_prng_impl", before)


def random_bits(keys: Any, bit_width: int, shape: Shape) -> Array:
    """Return unsigned integers of uniform bits, an array of a shape for each key."""
    generator = current()
    if generator.name == DEFAULT:
        return fry.random_bits(keys, bit_width, shape)
    return _each(lambda k: generator.bits(k, bit_width, shape), as_array(keys))


def random_split(keys: Any, shape: Shape) -> Array:
    """Return new keys, an array of a shape of them for each key."""
    generator = current()
    if generator.name == DEFAULT:
        return fry.random_split(keys, shape)
    return _each(lambda k: generator.split(k, shape), as_array(keys))


def random_fold_in(key: Any, data: Any) -> Array:
    """Return the key that a uint32 scalar turns a key into."""
    return current().fold_in(as_array(key), data)
