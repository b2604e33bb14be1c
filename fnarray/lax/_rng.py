"""Random numbers from no key: each call draws others."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..control.callback import io_callback
from ..core.array import Array
from ..core.avals import ShapeDtypeStruct
from ..core.dtypes import finfo, is_float, is_integer, uint32, uint64
from ..core.eager import replayed
from ..ops.bit_generator import rng_bit_generator
from ..ops.elementwise import add, mul, rem, sub
from ..ops.kit.calls import broadcast, convert
from ..ops.kit.canonical import as_array, canonical_shape

__all__ = ["rng_uniform"]


def _state() -> np.ndarray:
    return np.frombuffer(os.urandom(16), uint32)


@replayed
def _spread(bits: Array, a: Array, b: Array) -> Array:
    """Return numbers of ``[a, b)``, one for each of some bits."""
    if is_integer(a.dtype):
        low, high = (broadcast(convert(x, bits.dtype), bits.shape) for x in (a, b))
        return convert(add(low, rem(bits, sub(high, low))), a.dtype)
    keep = finfo(a.dtype).nmant + 1
    top = convert(bits >> (8 * bits.dtype.itemsize - keep), a.dtype)
    unit = mul(top, a.dtype.type(2.0**-keep))
    return add(broadcast(a, bits.shape), mul(unit, broadcast(sub(b, a), bits.shape)))


def rng_uniform(a: Any, b: Any, shape: Any) -> Array:
    """Draw uniformly from ``[a, b)``, from no key: no two calls draw the same, compiled or not.

    For programs that use it; others draw by `fnarray.random.uniform`, which can be repeated.

    Parameters
    ----------
    a, b : scalars of one float or integer dtype
    shape : tuple of int

    Raises
    ------
    ValueError
        Bounds that are no scalars, or of two dtypes.
    TypeError
        Bounds that are neither floats nor integers.
    """
    a, b = as_array(a), as_array(b)
    if a.dtype != b.dtype or a.shape or b.shape:
        raise ValueError(
            "Arguments to rng_uniform must be scalars with identical dtypes, got "
            f"{a.aval.str_short()} and {b.aval.str_short()}."
        )
    if not (is_float(a.dtype) or is_integer(a.dtype)):
        raise TypeError(f"rng_uniform: bounds must be floats or integers, got {a.dtype}.")
    shape = canonical_shape("rng_uniform", shape)
    state = io_callback(_state, ShapeDtypeStruct((4,), uint32))
    wide = a.dtype.itemsize == 8
    bits = rng_bit_generator(state, shape, uint64 if wide else uint32)[1]
    return _spread(bits, a, b)
