"""Random order and choice: permutations, samples from an array, categories."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log, prod
from typing import Any

from .. import lax
from .. import numpy as jnp
from ..core.array import Array, aval_of
from ..core.dtypes import is_integer, to_inexact
from ..core.trace import Tracer
from ..errors import ConcretizationTypeError
from ..ops.kit.canonical import as_array, canonical_axis, canonical_shape
from ._args import Shape, check_shape
from ._generators import random_bits
from ._samplers import exact_sampler
from ._transformed import gumbel
from ._uniform import randint, subkeys, uniform

__all__ = ["categorical", "choice", "permutation"]


def _size(where: str, x: Any) -> int:
    """Return an integer scalar that says a size."""
    if not is_integer(aval_of(x).dtype):
        raise TypeError(
            f"random.{where}: x must be an integer or an array of at least one axis, got "
            f"{aval_of(x).str_short()}."
        )
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            f"random.{where}: the number of elements must be known while tracing, got {x!r}, "
            f"{x.where_from()}. Mark the argument it depends on static."
        )
    return int(x)


def _numbers(n: int) -> Array:
    return lax.iota(int, n)


def _along(name: str, axis: int, x: Array) -> int:
    return canonical_axis(name, axis, x.ndim or 1)


@exact_sampler
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """Return an array with its elements along an axis in random order.

    Parameters
    ----------
    key : key
    x : int or array
        An integer stands for the numbers below it.
    axis : int
    independent : bool
        Whether each line along the axis has an order of its own.

    Raises
    ------
    TypeError
        ``x`` is a scalar that is no integer.
    ConcretizationTypeError
        ``x`` is a traced scalar.

    Notes
    -----
    Sorts by random 32-bit numbers, as often as makes it unlikely that two elements were tied in
    every round.
    """
    x = as_array(x)
    axis = _along("permutation", axis, x)
    if not x.ndim:
        return _shuffled(key, _numbers(_size("permutation", x)), 0)
    if independent or x.ndim == 1:
        return _shuffled(key, x, axis)
    return jnp.take(x, _shuffled(key, _numbers(x.shape[axis]), 0), axis)


def _shuffled(key: Any, x: Array, axis: int) -> Array:
    rounds = ceil(3 * log(max(1, x.size)) / log(0xFFFFFFFF))
    for _ in range(rounds):
        key, subkey = subkeys(key)
        _, x = lax.sort_key_val(random_bits(subkey, 32, x.shape), x, axis)
    return x


@exact_sampler
def choice(
    key: Any,
    a: Any,
    shape: Shape = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Draw elements of an array.

    Parameters
    ----------
    key : key
    a : int or array
        An integer stands for the numbers below it.
    shape : tuple of int
        Of the draws; it takes the place of ``axis`` in the result.
    replace : bool
        Whether an element may be drawn again.
    p : vector of float, optional
        Probabilities of the elements along ``axis``; by default equal.
    axis : int
        Along which to draw.
    mode : str, optional
        As for `gumbel`, for draws without replacement by ``p``.

    Raises
    ------
    TypeError
        ``shape`` is no sequence; ``a`` is a scalar that is no integer.
    ValueError
        There is nothing to draw from; more draws without replacement than elements; ``p`` of
        another shape.
    """
    if not isinstance(shape, Sequence):
        raise TypeError(f"random.choice: shape must be a sequence, got {shape}.")
    shape = canonical_shape("choice", shape)
    a = as_array(a)
    if a.ndim:
        axis = _along("choice", axis, a)
        n = a.shape[axis]
    else:
        axis, n = 0, _size("choice", a)
    draws = prod(shape)
    outer, inner = a.shape[:axis], a.shape[axis + 1 :]
    if not draws:
        return jnp.zeros(shape, a.dtype)
    if n <= 0:
        raise ValueError("random.choice: a must be greater than 0 unless no samples are taken.")
    if not replace and draws > n:
        raise ValueError(
            f"random.choice: cannot take a larger sample (size {draws}) than population (size "
            f"{n}) when replace=False."
        )
    if p is None and not replace:
        mixed = permutation(key, a if a.ndim else n, axis)
        out = lax.slice_in_dim(mixed, 0, draws, axis=axis)
    else:
        at = randint(key, shape, 0, n) if p is None else _weighted(key, shape, n, replace, p, mode)
        out = jnp.take(a, at, axis) if a.ndim else at
    return jnp.reshape(out, outer + shape + inner)


def _weighted(key: Any, shape: Shape, n: int, replace: bool, p: Any, mode: str | None) -> Array:
    """Draw positions by their probabilities."""
    p = lax.convert_element_type(p, to_inexact(aval_of(p).dtype))
    if p.shape != (n,):
        raise ValueError(
            "random.choice: p must be None or a 1D vector with the same size as a.shape[axis], "
            f"got shape {p.shape} for size {n}."
        )
    if replace:
        heights = lax.cumsum(p)
        level = heights[-1] * (1 - uniform(key, shape, heights.dtype))
        at = jnp.searchsorted(heights, level)
    else:
        # The largest of log p + Gumbel noise are a sample without replacement (Vieira 2014).
        at = lax.top_k(gumbel(key, (n,), p.dtype, mode) + jnp.log(p), prod(shape))[1]
    return lax.convert_element_type(at, int)


@exact_sampler
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
) -> Array:
    """Draw categories by the logarithms of their unnormalised probabilities.

    Parameters
    ----------
    key : key
    logits : array of float
    axis : int
        That runs over the categories.
    shape : tuple of int, optional
        Of the result; must end with the shape of ``logits`` less ``axis``, up to broadcasting.
        By default that shape.
    replace : bool
        Whether draws along the leading axes of ``shape`` may repeat.
    mode : str, optional
        As for `gumbel`.

    Raises
    ------
    ValueError
        ``shape`` does not fit; more draws without replacement than categories.

    Notes
    -----
    The largest of logits plus Gumbel noise.
    """
    logits = as_array(logits)
    axis = canonical_axis("categorical", axis, logits.ndim)
    batch = logits.shape[:axis] + logits.shape[axis + 1 :]
    sizes: Shape = batch if shape is None else canonical_shape("categorical", shape)
    check_shape("categorical", sizes, batch)
    lead = sizes[: len(sizes) - len(batch)]
    n = logits.shape[axis]
    if replace:
        rest = sizes[len(lead) :]
        full = (*lead, *rest[:axis], n, *rest[axis:])
        noisy = gumbel(key, full, logits.dtype, mode) + logits
        return jnp.argmax(noisy, len(lead) + axis)
    count = prod(lead)
    if count > n:
        raise ValueError(
            f"random.categorical: number of samples without replacement ({count}) cannot exceed "
            f"number of categories ({n})."
        )
    noisy = gumbel(key, logits.shape, logits.dtype, mode) + logits
    at = lax.top_k(jnp.moveaxis(noisy, axis, -1), count)[1]
    return jnp.reshape(jnp.moveaxis(at, -1, 0), sizes)
