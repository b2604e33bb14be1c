"""Bits from a state: the two generators behind `rng_bit_generator`, and their next state.

A state is four words, a key of two and a counter of two, both with the low word first. Each block
of words is a hash of the counter plus the block's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from math import prod
from typing import Any

import numpy as np

from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import canonicalize_dtype, uint8, uint16, uint32, uint64
from ..core.large import looped
from ..core.primitive import Primitive
from ..core.trace import bind, no_trace
from ..errors import ShapeError
from .bitwise import bitwise_or, shift_left, shift_right_logical
from .convert import bitcast_convert_type
from .hashes import philox4x32
from .kit.calls import add, broadcast, convert, iota, lt, moveaxis
from .kit.canonical import Shape, as_array, canonical_shape
from .kit.declare import inlined
from .kit.registry import register
from .kit.rules import CONSTANT, NOT_LINEAR
from .random_bits import threefry2x32
from .shape import expand_dims, reshape
from .slicing import concatenate, index_in_dim, slice_in_dim, stack

__all__ = ["RandomAlgorithm", "rng_bit_generator"]

_DTYPES = uint8, uint16, uint32, uint64


class RandomAlgorithm(IntEnum):
    """Which generator `rng_bit_generator` runs; the default is Philox."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def _joined(low: Any, high: Any) -> Array:
    """Return two words as one number of 64 bits."""
    return bitwise_or(convert(low, uint64), shift_left(convert(high, uint64), convert(32, uint64)))


def _parted(wide: Any) -> tuple[Array, Array]:
    """Return the low and the high word of numbers of 64 bits."""
    return convert(wide, uint32), convert(shift_right_logical(wide, convert(32, uint64)), uint32)


def _blocks(state: Any, n: int, algorithm: RandomAlgorithm) -> Array:
    """Return the words of ``n`` blocks, a row each."""
    key_low, key_high, low, high = (index_in_dim(state, i, keepdims=False) for i in range(4))
    start = _joined(low, high)
    at = add(start, iota((n,), 0, uint64))
    if algorithm is RandomAlgorithm.RNG_THREE_FRY:
        return stack(threefry2x32(key_low, key_high, *_parted(at)), 1)
    # Philox counts with 128 bits, of which the high half starts as the key.
    upper = add(_joined(key_low, key_high), convert(lt(at, start), uint64))
    return stack(philox4x32((key_low, key_high), (*_parted(at), *_parted(upper))), 1)


def _halved_axis(shape: Shape) -> int:
    """Return the axis along which Threefry's two words of a block lie: the first that is even.

    Without one it is the longest, which gets an element more than it has.
    """
    even = (i for i, n in enumerate(shape) if n % 2 == 0)
    return next(even, max(range(len(shape)), key=shape.__getitem__, default=0))


def _words(state: Any, shape: Shape, algorithm: RandomAlgorithm) -> tuple[Array, int]:
    """Return words in a shape, and how many blocks they took."""
    if algorithm is not RandomAlgorithm.RNG_THREE_FRY:
        n = -(-prod(shape) // 4)
        line = reshape(_blocks(state, n, algorithm), (4 * n,))
        return reshape(slice_in_dim(line, 0, prod(shape)), shape), n
    full = shape or (1,)
    axis = _halved_axis(full)
    half = -(-full[axis] // 2)
    blocks = (*full[:axis], half, *full[axis + 1 :])
    n = prod(blocks)
    pairs = moveaxis(reshape(_blocks(state, n, algorithm), (*blocks, 2)), len(blocks), axis + 1)
    both = reshape(pairs, (*full[:axis], 2 * half, *full[axis + 1 :]))
    return reshape(slice_in_dim(both, 0, full[axis], axis=axis), shape), n


def _after(state: Any, blocks: int) -> Array:
    """Return the state whose counter is so many blocks on."""
    low, high = (index_in_dim(state, i, keepdims=False) for i in (2, 3))
    counter = _parted(add(_joined(low, high), convert(np.uint32(blocks), uint64)))
    ends = [expand_dims(word, (0,)) for word in counter]
    return concatenate([slice_in_dim(state, 0, 2), *ends], 0)


def _rng_bit_generator(
    state: Any, *, shape: Shape, dtype: np.dtype, algorithm: RandomAlgorithm
) -> tuple[Array, Array]:
    if not prod(shape):
        return state, broadcast(as_array(np.zeros((), dtype)), shape)
    if dtype != uint64:
        words, n = _words(state, shape, algorithm)
        return _after(state, n), convert(words, dtype)
    pairs, n = _words(state, (2 * prod(shape),), algorithm)
    low, high = (slice_in_dim(pairs, i, None, stride=2) for i in (0, 1))
    return _after(state, n), reshape(_joined(low, high), shape)


def _aval(
    state: ShapedArray, *, shape: Shape, dtype: np.dtype, algorithm: RandomAlgorithm
) -> tuple[ShapedArray, ShapedArray]:
    if (state.shape, state.dtype) != ((4,), uint32):
        raise TypeError(
            "rng_bit_generator: the key must be four words of uint32, or two of uint64, got "
            f"{state.str_short()}. random.key_data of a key of impl='rbg' is one."
        )
    return state, ShapedArray(shape, dtype)


def _eval(state: np.ndarray, **params: Any) -> tuple[np.ndarray, ...]:
    with no_trace():
        return tuple(np.asarray(out) for out in _rng_bit_generator(as_array(state), **params))


looped.add(_eval)


def _batch(
    size: int,
    operands: Sequence[Any],
    batched: Sequence[bool],
    *,
    shape: Shape,
    dtype: np.dtype,
    algorithm: RandomAlgorithm,
) -> Any:
    """Draw all from the first of several states, as JAX does: only its state moves on."""
    (states,) = operands
    first = index_in_dim(states, 0, keepdims=False)
    moved, bits = bind(
        rng_bit_generator_p, first, shape=(size, *shape), dtype=dtype, algorithm=algorithm
    )
    others = slice_in_dim(states, 1, size)
    return (concatenate([expand_dims(moved, (0,)), others], 0), bits), (True, True)


rng_bit_generator_p = register(
    Primitive(
        "rng_bit_generator",
        aval=_aval,
        eval=_eval,
        form=inlined(_rng_bit_generator, many=True),
        multiple_results=True,
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=_batch,
    )
)


def rng_bit_generator(
    key: Any,
    shape: Any,
    dtype: Any = uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """Draw uniform bits from a state, and return the next state with them.

    Under ``vmap`` over states all bits are drawn from the first of them, as in JAX.

    Parameters
    ----------
    key : array of 4 uint32 or 2 uint64
        The state.
    shape : tuple of int
    dtype : unsigned integer dtype
    algorithm : RandomAlgorithm
        Philox-4x32 by default.
    out_sharding
        For compatibility: arrays live on one device.

    Returns
    -------
    state, bits

    Raises
    ------
    TypeError
        For another dtype, or a key of another shape.
    """
    dtype = canonicalize_dtype(dtype)
    if dtype not in _DTYPES:
        raise TypeError(f"rng_bit_generator: dtype must be an unsigned integer, got {dtype}.")
    shape = canonical_shape("rng_bit_generator", shape)
    if prod(shape) >= 1 << 32:
        raise ShapeError(
            f"rng_bit_generator: an array of shape {shape} is more than 32-bit counters tell "
            "apart. Draw it in parts."
        )
    wide = aval_of(key).dtype == uint64 and aval_of(key).shape == (2,)
    state = reshape(bitcast_convert_type(key, uint32), (4,)) if wide else key
    which = RandomAlgorithm(algorithm)
    state, bits = bind(rng_bit_generator_p, state, shape=shape, dtype=dtype, algorithm=which)
    return bitcast_convert_type(reshape(state, (2, 2)), uint64) if wide else state, bits
