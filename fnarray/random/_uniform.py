"""Bits, uniform numbers, integers, and what is drawn straight from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array, ArrayImpl, aval_of
from ..core.dtypes import (
    bfloat16,
    canonicalize_dtype,
    finfo,
    iinfo,
    int32,
    is_complex,
    is_float,
    is_integer,
    to_real,
)
from ..errors import ShapeError
from ..ops.kit.calls import broadcast
from ..ops.kit.canonical import as_array, canonical_shape
from ..ops.random_bits import UINT
from ..ops.random_floats import multiply_add, sample_erf_inv
from ..ops.shape import broadcast_to_rank
from ._args import Shape, check_shape, dtype_of, shape_of
from ._generators import random_bits, random_split
from ._samplers import exact_sampler

__all__ = ["bernoulli", "bits", "normal", "rademacher", "randint", "uniform"]


@exact_sampler
def bits(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw unsigned integers of uniform bits.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : unsigned integer dtype, optional
        By default uint32, or uint64 under ``enable_x64``.

    Raises
    ------
    ValueError
        For another dtype.
    """
    dtype = dtype_of("bits", dtype, "uint")
    return random_bits(key, 8 * dtype.itemsize, canonical_shape("bits", shape))


@exact_sampler
def uniform(
    key: Any, shape: Shape = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Array:
    """Draw floats uniformly from ``[minval, maxval)``.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : float dtype, optional
        By default the default float.
    minval, maxval : real
        Broadcast to ``shape``.

    Raises
    ------
    ValueError
        For a dtype that is not a float.
    ShapeError
        For bounds that do not broadcast to ``shape``.
    """
    dtype = dtype_of("uniform", dtype)
    shape = canonical_shape("uniform", shape)
    return uniform_floats(key, shape, dtype, minval, maxval)


def uniform_floats(key: Any, shape: Shape, dtype: np.dtype, low: Any, high: Any) -> Array:
    """Draw floats from ``[low, high)``: random mantissas of numbers from 1 to 2, moved there."""
    low, high = (lax.convert_element_type(x, dtype) for x in (low, high))
    check_shape("uniform", shape, low.shape, high.shape, error=ShapeError)
    low, high = (broadcast_to_rank(x, len(shape)) if x.ndim else x for x in (low, high))
    info = finfo(dtype)
    width = 8 if info.nmant < 8 else info.bits
    drawn = random_bits(key, width, shape)
    word = UINT[info.bits]
    if width != info.bits:
        drawn = lax.convert_element_type(drawn, word)
    mantissa = lax.shift_right_logical(drawn, word.type(width - info.nmant))
    one = np.ones((), dtype)
    above = lax.bitcast_convert_type(lax.bitwise_or(mantissa, one.view(word)), dtype)
    return _moved(lax.sub(above, one), low, high)


def _moved(unit: Array, low: Array, high: Array) -> Array:
    """Move numbers from ``[0, 1)`` to ``[low, high)``."""
    known = [x._data for x in (low, high) if type(x) is ArrayImpl and not x.ndim]
    span = known[1] - known[0] if len(known) == 2 else None
    if span is not None and known[0] == 0 and span == 1:
        return unit
    # XLA rounds the product in bfloat16; in other dtypes only where it is exact or added to zero.
    exact = span is not None and (known[0] == 0 or np.frexp(span)[0] == 0.5)
    width = lax.sub(high, low)
    if exact or unit.dtype == bfloat16:
        return lax.max(low, lax.add(lax.mul(unit, width), low))
    return lax.max(low, multiply_add(unit, width, low))


@exact_sampler
def normal(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw from the standard normal distribution.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : float or complex dtype, optional
        By default the default float. Complex numbers have variance 1, half in each part.

    Raises
    ------
    ValueError
        For a dtype that is neither float nor complex.

    Notes
    -----
    Inverse of the distribution function at uniform numbers.
    """
    dtype = dtype_of("normal", dtype, "inexact")
    shape = canonical_shape("normal", shape)
    if not is_complex(dtype):
        return _real_normal(key, shape, dtype)
    parts = (_real_normal(k, shape, to_real(dtype)) for k in subkeys(key))
    return lax.div(lax.complex(*parts), np.sqrt(2).astype(dtype))


def _real_normal(key: Any, shape: Shape, dtype: np.dtype) -> Array:
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype))
    u = uniform_floats(key, shape, dtype, low, np.ones((), dtype))
    return lax.mul(np.sqrt(2).astype(dtype), sample_erf_inv(u))


def both(x: Array) -> tuple[Array, Array]:
    """Return what was drawn twice at once, along the first axis."""
    return lax.index_in_dim(x, 0, keepdims=False), lax.index_in_dim(x, 1, keepdims=False)


def subkeys(key: Any, num: int = 2) -> list[Array]:
    """Split the words of a key."""
    keys = random_split(key, (num,))
    return [lax.index_in_dim(keys, i, keepdims=False) for i in range(num)]


@exact_sampler
def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: Any = None) -> Array:
    """Draw integers uniformly from ``[minval, maxval)``; all are ``minval`` where that is empty.

    Parameters
    ----------
    key : key
    shape : tuple of int
    minval, maxval : integers
        Broadcast to ``shape``. Clipped to the dtype, but that ``maxval`` may lie one above it.
    dtype : integer dtype, optional
        By default the default integer.

    Raises
    ------
    TypeError
        For a dtype that is no integer.
    ValueError
        For bounds that do not broadcast to ``shape``.

    Notes
    -----
    Each integer is twice as many random bits modulo the span: the bias is below ``2**-bits``.
    """
    dtype = canonicalize_dtype(int if dtype is None else dtype)
    if not is_integer(dtype):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    shape = canonical_shape("randint", shape)
    low, high = _bound(minval), _bound(maxval)
    check_shape("randint", shape, low.shape, high.shape)
    info = iinfo(dtype)
    if info.bits >= 32:
        return _integers(key, shape, low, high, dtype)
    # Narrow integers are drawn as int32, where one above the largest is a number too.
    low = jnp.clip(lax.convert_element_type(low, int32), int(info.min), int(info.max))
    high = jnp.clip(lax.convert_element_type(high, int32), int(info.min), int(info.max) + 1)
    return lax.convert_element_type(_integers(key, shape, low, high, int32), dtype)


def _bound(x: Any) -> Array:
    """Return a bound as an array of integers."""
    if is_integer(aval_of(x).dtype):
        return as_array(x)
    return lax.convert_element_type(x, int)


def _clipped(x: Array, dtype: np.dtype) -> Array:
    """Convert integers, with those outside the dtype at its ends."""
    to, of = iinfo(dtype), iinfo(x.dtype)
    low, high = max(int(to.min), int(of.min)), min(int(to.max), int(of.max))
    inside = lax.clamp(x.dtype.type(low), x, x.dtype.type(high))
    return lax.convert_element_type(inside, dtype)


def _integers(key: Any, shape: Shape, low: Array, high: Array, dtype: np.dtype) -> Array:
    width = iinfo(dtype).bits
    word = UINT[width]
    largest = min(int(iinfo(dtype).max), int(iinfo(high.dtype).max))
    beyond = lax.gt(high, high.dtype.type(largest))
    low, high = (broadcast(_clipped(x, dtype), shape) for x in (low, high))
    beyond = broadcast(beyond, shape)
    higher, lower = (random_bits(k, width, shape) for k in subkeys(key))
    one = np.ones((), word)
    full = lambda x: broadcast(as_array(x), shape)  # noqa: E731
    empty = lax.le(high, low)
    span = lax.select(empty, full(one), lax.convert_element_type(lax.sub(high, low), word))
    # A span of all integers wraps round to zero, which rem takes for "leave as it is".
    span = lax.select(lax.bitwise_and(beyond, lax.gt(high, low)), lax.add(span, one), span)
    factor = lax.rem(full(word.type(1 << width // 2)), span)
    factor = lax.rem(lax.mul(factor, factor), span)
    offset = lax.add(lax.mul(lax.rem(higher, span), factor), lax.rem(lower, span))
    return lax.add(low, lax.convert_element_type(lax.rem(offset, span), dtype))


@exact_sampler
def bernoulli(key: Any, p: Any = 0.5, shape: Shape | None = None, mode: str = "low") -> Array:
    """Draw booleans that are True with probability ``p``.

    Parameters
    ----------
    key : key
    p : float
        Broadcast to ``shape``.
    shape : tuple of int, optional
        By default that of ``p``.
    mode : {"low", "high"}
        Whether to resolve probabilities below the spacing of floats at 1, at twice the cost.

    Raises
    ------
    TypeError
        ``p`` is not a float.
    ValueError
        ``p`` does not broadcast to ``shape``; or another mode.
    """
    if mode not in ("high", "low"):
        raise ValueError(f"random.bernoulli: mode must be 'high' or 'low', got {mode!r}.")
    dtype = aval_of(p).dtype
    if not is_float(dtype):
        raise TypeError(f"random.bernoulli: probability `p` must have a float dtype, got {dtype}.")
    shape = shape_of("bernoulli", shape, p)
    p = broadcast(lax.convert_element_type(p, dtype), shape)
    if mode == "low":
        return lax.lt(uniform_floats(key, shape, dtype, 0.0, 1.0), p)
    first, second = both(uniform_floats(key, (2, *shape), dtype, 0.0, 1.0))
    scale = np.array(2.0 ** -finfo(dtype).nmant, dtype)
    return lax.lt(lax.mul(second, scale), lax.sub(p, first))


@exact_sampler
def rademacher(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw -1 and 1, each with probability a half.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : dtype, optional
        By default the default integer.
    """
    dtype = canonicalize_dtype(int if dtype is None else dtype)
    heads = lax.convert_element_type(bernoulli(key, 0.5, shape), dtype)
    return lax.sub(lax.mul(heads, dtype.type(2)), dtype.type(1))
