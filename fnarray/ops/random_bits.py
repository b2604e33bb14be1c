"""Random bits from keys: Threefry-2x32 over counters, in the two orders that JAX counts in.

A key is two uint32 words, in the last axis. Leading axes of keys are batches. Each operation is
evaluated by NumPy in one go, and lowers to elementwise hashing of index arithmetic, which fuses
into whatever consumes the bits.

The *partitionable* order hashes the 64-bit position of each element. The *original* order hashes
32-bit words of the first half of the bits with those of the second, which is one hash for two
words but ties every element to the size of the array.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..config import config
from ..core.array import Array, ArrayImpl
from ..core.avals import ShapedArray
from ..core.dtypes import uint8, uint16, uint32, uint64
from ..core.forms import Map
from ..core.primitive import Primitive
from ..core.trace import bind, state
from ..errors import ShapeError
from .bitwise import shift_right_logical
from .kit.calls import add, convert, lt, mul, select
from .kit.canonical import as_array
from .kit.checks import broadcast_avals
from .kit.declare import inlined
from .kit.registry import register
from .kit.rules import CONSTANT, ELEMENTWISE_BATCH, NOT_LINEAR, one_more_axis
from .shape import broadcast_in_dim, expand_dims, iota_p, reshape, squeeze
from .slicing import concatenate, slice_in_dim

__all__ = ["threefry2x32"]

Shape = tuple[int, ...]
UINT = {8: uint8, 16: uint16, 32: uint32, 64: uint64}
_WORD = 1 << 32
# One hash is twenty rounds of three instructions and five key additions.
_COST = 75

# --- the hash -----------------------------------------------------------------------------------


_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)


def hash_words(key: tuple[Any, Any], x0: Any, x1: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the two words that Threefry-2x32 makes of each counter ``(x0, x1)`` under a key.

    Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3 (SC 2011).
    """
    k0, k1 = (np.asarray(k, uint32) for k in key)
    keys = k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA)
    a = np.asarray(x0 + k0, uint32)
    b = np.asarray(x1 + k1, uint32)
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = (np.array(np.broadcast_to(v, shape)) for v in (a, b))
    high = np.empty_like(b)
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            np.add(a, b, out=a)
            np.left_shift(b, np.uint32(r), out=high)
            np.right_shift(b, np.uint32(32 - r), out=b)
            np.bitwise_or(b, high, out=b)
            np.bitwise_xor(b, a, out=b)
        np.add(a, keys[(group + 1) % 3], out=a)
        np.add(b, keys[(group + 2) % 3] + np.uint32(group + 1), out=b)
    return a, b


def hash_ints(k0: int, k1: int, a: int, b: int) -> tuple[int, int]:
    """`hash_words` of one block in Python integers: five times faster than NumPy for one."""
    keys, low = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA), _WORD - 1
    a, b = (a + k0) & low, (b + k1) & low
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            a = (a + b) & low
            b = ((b << r | b >> 32 - r) ^ a) & low
        a = (a + keys[(group + 1) % 3]) & low
        b = (b + keys[(group + 2) % 3] + group + 1) & low
    return a, b


#: Blocks up to which Python's integers are faster than NumPy's arrays.
_FEW = 4


def _in_blocks(keys: np.ndarray, n: int, counters: Callable, finish: Callable, dtype: Any) -> Any:
    """Return ``finish`` of the words of ``n`` counters for each key, block by block.

    Blocks stay in the cache, yet make NumPy's overhead small: 15 ns for a hash at a million.
    """
    out = np.empty((*keys.shape[:-1], n), dtype)
    if n <= _FEW and keys.ndim == 1:
        blocks = [hash_ints(*keys.tolist(), *map(int, counters(np.uint64(i)))) for i in range(n)]
        out[...] = finish(*np.array(blocks, uint32).reshape(n, 2).T)
        return out
    k0, k1 = keys[..., :1], keys[..., 1:]
    step = max(16384 // max(prod(keys.shape[:-1]), 1), 1)
    for start in range(0, n, step):
        at = np.arange(start, min(start + step, n), dtype=np.uint64)
        out[..., start : start + step] = finish(*hash_words((k0, k1), *counters(at)))
    return out


def _xor(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a ^ b


def _join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(uint64) << np.uint64(32) | b


def _first(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a


def _counter_words(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (at >> np.uint64(32)).astype(uint32), at.astype(uint32)


def _hash_aval(result: np.dtype) -> Callable[..., ShapedArray]:
    def aval(*avals: ShapedArray) -> ShapedArray:
        if any(a.dtype != uint32 for a in avals):
            got = ", ".join(a.dtype.name for a in avals)
            raise TypeError(f"threefry2x32: arguments must be uint32, got {got}.")
        return ShapedArray(broadcast_avals("threefry2x32", avals), result)

    return aval


_mixed_p = register(
    Primitive(
        "threefry2x32_xor",
        aval=_hash_aval(uint32),
        eval=lambda k0, k1, x0, x1: _xor(*hash_words((k0, k1), x0, x1)),
        form=lambda ins, outs: Map("fk.threefry.mixed({0}, {1}, {2}, {3})", _COST),
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=ELEMENTWISE_BATCH,
    )
)

# One 64-bit result rather than two words: a Map has one result, and the hash is worth sharing.
_joined_p = register(
    Primitive(
        "threefry2x32_join",
        aval=_hash_aval(uint64),
        eval=lambda k0, k1, x0, x1: _join(*hash_words((k0, k1), x0, x1)),
        form=lambda ins, outs: Map("fk.threefry.joined({0}, {1}, {2}, {3})", _COST),
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=ELEMENTWISE_BATCH,
    )
)


def _words(joined: Any) -> tuple[Array, Array]:
    """Return the two words of each block."""
    return convert(shift_right_logical(joined, convert(32, uint64)), uint32), convert(
        joined, uint32
    )


threefry2x32_p = register(
    Primitive(
        "threefry2x32",
        aval=lambda *avals: (_hash_aval(uint32)(*avals),) * 2,
        eval=lambda k0, k1, x0, x1: hash_words((k0, k1), x0, x1),
        form=inlined(lambda *xs: _words(bind(_joined_p, *xs)), many=True),
        multiple_results=True,
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=ELEMENTWISE_BATCH,
    )
)


def threefry2x32(key1: Any, key2: Any, x1: Any, x2: Any) -> tuple[Array, Array]:
    """Hash counters under keys, elementwise: Threefry-2x32 with twenty rounds.

    Parameters
    ----------
    key1, key2, x1, x2 : uint32 arrays
        Of one rank, or rank 0.

    Returns
    -------
    tuple of two uint32 arrays

    Raises
    ------
    TypeError
        For another dtype.
    """
    return tuple(bind(threefry2x32_p, key1, key2, x1, x2))


# --- over keys ----------------------------------------------------------------------------------


def check_keys(where: str, keys: Any, words: int = 2) -> None:
    """Raise `TypeError` unless something holds keys: uint32 with a last axis of their words."""
    missing = [a for a in ("ndim", "shape", "dtype") if not hasattr(keys, a)]
    if missing:
        raise TypeError(
            f"{where}: key data must be a uint32 array, got {type(keys).__name__}. "
            "Make keys by random.key(seed)."
        )
    if keys.ndim < 1 or keys.shape[-1] != words:
        raise TypeError(
            f"{where}: key data must have a shape that ends with ({words},), got "
            f"{tuple(keys.shape)}."
        )
    if keys.dtype != uint32:
        raise TypeError(f"{where}: key data must have dtype uint32, got {keys.dtype}.")


def _key_words(keys: Any, rank: int) -> list[Array]:
    """Return the two words of keys, with axes of size 1 up to a rank behind the batch axes."""
    lead = keys.shape[:-1]
    parts = (slice_in_dim(keys, i, i + 1, axis=len(lead)) for i in (0, 1))
    if lead:
        return [reshape(p, lead + (1,) * (rank - len(lead))) for p in parts]
    return [squeeze(p, (0,)) for p in parts]


def _positions(shape: Shape, lead: int, dtype: Any = uint32) -> Array:
    """Return each element's position in an array of a shape, behind ``lead`` axes of size 1."""
    line = bind(iota_p, dtype=dtype, shape=(prod(shape),), dimension=0)
    return reshape(line, (1,) * lead + shape)


def counters(shape: Shape, lead: int = 0) -> tuple[Any, Array]:
    """Return high and low words of the positions in an array, behind ``lead`` axes of size 1."""
    if prod(shape) <= _WORD:
        return np.zeros((), uint32), _positions(shape, lead)
    return _words(_positions(shape, lead, uint64))


def _hashed(prim: Primitive, keys: Any, shape: Shape) -> Array:
    """Hash the 64-bit positions of an array of a shape under each key."""
    lead = keys.ndim - 1
    return bind(prim, *_key_words(keys, lead + len(shape)), *counters(shape, lead))


def _halves(keys: Any, n: int) -> Array:
    """Hash words ``0 .. n`` in the original order: blocks pair the first half with the second."""
    lead, h = keys.ndim - 1, (n + 1) // 2
    first = _positions((h,), lead)
    second = add(first, h)
    if n % 2:
        # An odd number of words is padded with a counter of zero.
        second = select(lt(second, n), second, broadcast_in_dim(np.uint32(0), second.shape, ()))
    return bind(_joined_p, *_key_words(keys, lead + 1), first, second)


def _original_words(keys: Any, n: int) -> Array:
    words = concatenate(_words(_halves(keys, n)), keys.ndim - 1)
    return slice_in_dim(words, 0, n, axis=keys.ndim - 1)


def _check_original(n: int) -> None:
    if n >= _WORD:
        raise ShapeError(
            f"random bits: {n} words are more than 32-bit counters tell apart. Set "
            "threefry_partitionable, or draw the array in parts."
        )


# --- random_bits --------------------------------------------------------------------------------


def _bits_aval(
    keys: ShapedArray, *, bit_width: int, shape: Shape, partitionable: bool
) -> ShapedArray:
    check_keys("random_bits", keys)
    if bit_width not in UINT:
        raise TypeError(f"random_bits: bit_width must be 8, 16, 32 or 64, got {bit_width}.")
    if not partitionable:
        _check_original(-(-bit_width * prod(shape) // 32))
    return ShapedArray(keys.shape[:-1] + shape, UINT[bit_width])


def _bits_eval(
    keys: np.ndarray, *, bit_width: int, shape: Shape, partitionable: bool
) -> np.ndarray:
    size, lead, dtype = prod(shape), keys.shape[:-1], UINT[bit_width]
    if partitionable:
        finish = _join if bit_width == 64 else _xor
        out = _in_blocks(keys, size, _counter_words, finish, dtype)
        return out.reshape(lead + shape)
    n = -(-bit_width * size // 32)
    joined = _halves_eval(keys, n)
    if bit_width == 64:
        return joined.reshape(lead + shape)
    words = np.concatenate([(joined >> np.uint64(32)).astype(uint32), joined.astype(uint32)], -1)
    if bit_width < 32:
        # The low bits of a word come first, whatever the byte order of the machine.
        words = words[..., :n].astype("<u4").view(f"<u{bit_width // 8}").astype(dtype)
    return words[..., :size].reshape(lead + shape)


def _halves_eval(keys: np.ndarray, n: int) -> np.ndarray:
    h = (n + 1) // 2

    def counters(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        second = at + np.uint64(h)
        return at.astype(uint32), np.where(second < n, second, 0).astype(uint32)

    return _in_blocks(keys, h, counters, _join, uint64)


def _random_bits(keys: Any, *, bit_width: int, shape: Shape, partitionable: bool) -> Array:
    size, lead, dtype = prod(shape), keys.shape[:-1], UINT[bit_width]
    if not size:
        return broadcast_in_dim(np.zeros((), dtype), lead + shape, ())
    if partitionable:
        bits = _hashed(_joined_p if bit_width == 64 else _mixed_p, keys, shape)
        return convert(bits, dtype)
    n = -(-bit_width * size // 32)
    if bit_width == 64:
        return reshape(_halves(keys, n), lead + shape)
    words = _original_words(keys, n)
    if bit_width < 32:
        parts, rank = 32 // bit_width, len(lead) + 2
        shifts = _positions((parts,), rank - 1)
        shifts = mul(shifts, bit_width)
        wide = broadcast_in_dim(words, (*lead, n, parts), tuple(range(rank - 1)))
        shifted = shift_right_logical(
            wide, broadcast_in_dim(shifts, wide.shape, tuple(range(rank)))
        )
        words = slice_in_dim(reshape(shifted, (*lead, n * parts)), 0, size, axis=rank - 2)
    return reshape(convert(words, dtype), lead + shape)


def without_order(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as JAX prints them: the order of counters is a setting there."""
    return {name: value for name, value in params.items() if name != "partitionable"}


random_bits_p = register(
    Primitive(
        "random_bits",
        aval=_bits_aval,
        eval=_bits_eval,
        form=inlined(_random_bits),
        print_params=without_order,
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=one_more_axis(),
    )
)


def random_bits(keys: Any, bit_width: int, shape: Shape) -> Array:
    """Return unsigned integers of ``bit_width`` uniform bits, an array of ``shape`` for each key.

    Parameters
    ----------
    keys : uint32 array (..., 2)
    bit_width : 8, 16, 32 or 64
    shape : tuple of int

    Raises
    ------
    TypeError
        For data that are no keys, or another width.
    """
    return bind(
        random_bits_p,
        keys,
        bit_width=bit_width,
        shape=shape,
        partitionable=config.threefry_partitionable,
    )


# --- random_split -------------------------------------------------------------------------------


def _split_aval(keys: ShapedArray, *, shape: Shape, partitionable: bool) -> ShapedArray:
    check_keys("random_split", keys)
    return ShapedArray((*keys.shape[:-1], *shape, 2), uint32)


def _pairs(joined: np.ndarray) -> np.ndarray:
    return np.stack([(joined >> np.uint64(32)).astype(uint32), joined.astype(uint32)], -1)


def _split_eval(keys: np.ndarray, *, shape: Shape, partitionable: bool) -> np.ndarray:
    size, out = prod(shape), (*keys.shape[:-1], *shape, 2)
    if partitionable and keys.ndim == 1 and size <= _FEW:
        k0, k1 = keys.tolist()
        return np.array([hash_ints(k0, k1, 0, i) for i in range(size)], uint32).reshape(out)
    if partitionable:
        return _pairs(_in_blocks(keys, size, _counter_words, _join, uint64)).reshape(out)
    return np.moveaxis(_pairs(_halves_eval(keys, 2 * size)), -1, -2).reshape(out)


def _random_split(keys: Any, *, shape: Shape, partitionable: bool) -> Array:
    size, lead = prod(shape), keys.shape[:-1]
    if not size:
        return broadcast_in_dim(np.zeros((), uint32), (*lead, *shape, 2), ())
    if not partitionable:
        return reshape(_original_words(keys, 2 * size), (*lead, *shape, 2))
    rank = len(lead) + len(shape)
    words = (expand_dims(w, (rank,)) for w in _words(_hashed(_joined_p, keys, shape)))
    return concatenate(tuple(words), rank)


random_split_p = register(
    Primitive(
        "random_split",
        aval=_split_aval,
        eval=_split_eval,
        form=inlined(_random_split),
        print_params=without_order,
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=one_more_axis(),
    )
)


def random_split(keys: Any, shape: Shape) -> Array:
    """Return new keys, an array of ``shape`` of them for each key."""
    return bind(random_split_p, keys, shape=shape, partitionable=config.threefry_partitionable)


# --- random_fold_in -----------------------------------------------------------------------------


def _fold_aval(keys: ShapedArray, data: ShapedArray) -> ShapedArray:
    check_keys("random_fold_in", keys)
    if data.dtype != uint32:
        raise TypeError(f"random_fold_in: data must be uint32, got {data.dtype}.")
    if data.shape != keys.shape[:-1]:
        raise ShapeError(
            f"random_fold_in: data must have the shape of the keys, got {data.shape} for keys of "
            f"shape {keys.shape[:-1]}."
        )
    return keys


def _fold_eval(keys: np.ndarray, data: np.ndarray) -> np.ndarray:
    if keys.ndim == 1:
        k0, k1 = keys.tolist()
        return np.array(hash_ints(k0, k1, 0, int(data)), uint32)
    return np.stack(hash_words((keys[..., 0], keys[..., 1]), np.uint32(0), data), -1)


def _random_fold_in(keys: Any, data: Any) -> Array:
    rank = data.ndim
    joined = bind(_joined_p, *_key_words(keys, rank), np.zeros((), uint32), data)
    return concatenate(tuple(expand_dims(w, (rank,)) for w in _words(joined)), rank)


random_fold_in_p = register(
    Primitive(
        "random_fold_in",
        aval=_fold_aval,
        eval=_fold_eval,
        form=inlined(_random_fold_in),
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=one_more_axis(),
    )
)


def random_fold_in(keys: Any, data: Any) -> Array:
    """Return the keys that integers, of the shape of the keys, turn keys into."""
    return bind(random_fold_in_p, keys, data)


# --- random_seed --------------------------------------------------------------------------------


def random_seed(seeds: Any) -> Array:
    """Return the keys that integers name: their high and low words, sign-extended if 64 bits wide.

    Narrower seeds have a high word of zero.
    """
    if type(seeds) is ArrayImpl and state.trace is None:
        known = np.asarray(seeds)
        high = known.astype(np.uint64) >> np.uint64(32) if known.itemsize == 8 else 0 * known
        return as_array(np.stack([high.astype(uint32), known.astype(uint32)], -1))
    low = convert(seeds, uint32)
    if seeds.dtype.itemsize == 8:
        high = convert(shift_right_logical(convert(seeds, uint64), convert(32, uint64)), uint32)
    else:
        high = broadcast_in_dim(np.zeros((), uint32), low.shape, ())
    return concatenate([expand_dims(w, (low.ndim,)) for w in (high, low)], low.ndim)
