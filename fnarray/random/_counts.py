"""Counts: the Poisson, binomial and multinomial distributions, by rejection."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array, aval_of
from ..core.dtypes import float32, iinfo, int32, to_inexact
from ..ops.kit.calls import broadcast
from ._args import Shape, dtype_of, shape_of
from ._samplers import program_sampler, sampler
from ._uniform import subkeys, uniform

__all__ = ["binomial", "multinomial", "poisson"]

# --- Poisson ------------------------------------------------------------------------------------


@program_sampler
def poisson(key: Any, lam: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw from the Poisson distribution.

    Parameters
    ----------
    key : key
    lam : float
        Rate, not negative; broadcast to ``shape``.
    shape : tuple of int, optional
        By default that of ``lam``.
    dtype : integer dtype, optional
        By default the default integer.

    Raises
    ------
    ValueError
        For a dtype that is no integer, or ``lam`` that does not broadcast to ``shape``.

    Notes
    -----
    Rates below 10 multiply uniform numbers (Knuth); larger ones go by transformed rejection
    (Hormann, "The transformed rejection method for generating Poisson random variables", 1993).
    """
    dtype = dtype_of("poisson", dtype, "int")
    shape = shape_of("poisson", shape, lam)
    lam = broadcast(lax.convert_element_type(lam, float32), shape)
    small = lax.bitwise_or(lam != lam, lam < 10)
    turns = min(int(iinfo(dtype).max), int(iinfo(int32).max))
    low = _knuth(key, jnp.where(small, lam, 0.0), dtype, turns)
    high = _poisson_rejection(key, jnp.where(small, 1e5, lam), dtype, turns)
    return jnp.where(lam == 0, dtype.type(0), lax.select(small, low, high))


def _knuth(key: Any, lam: Array, dtype: np.dtype, turns: int) -> Array:
    def body(state: Any) -> Any:
        i, k, key, log_product = state
        key, subkey = subkeys(key)
        k = lax.select(log_product > -lam, k + 1, k)
        return i + 1, k, key, log_product + lax.log(uniform(subkey, lam.shape, float32))

    def more(state: Any) -> Array:
        return lax.bitwise_and(jnp.any(state[3] > -lam), state[0] < turns)

    start = (
        jnp.int32(0),
        jnp.zeros(lam.shape, dtype),
        jnp.asarray(key),
        jnp.zeros(lam.shape, float32),
    )
    return lax.while_loop(more, body, start)[1] - 1


def _poisson_rejection(key: Any, lam: Array, dtype: np.dtype, turns: int) -> Array:
    log_lam = lax.log(lam)
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def propose(key: Any) -> tuple[Any, Array, Array]:
        key, u_key, v_key = subkeys(key, 3)
        u = uniform(u_key, lam.shape, lam.dtype) - 0.5
        v = uniform(v_key, lam.shape, lam.dtype)
        near = 0.5 - lax.abs(u)
        k = lax.floor((2 * a / near + b) * u + lam + 0.43)
        s = lax.log(v * inverse_alpha / (a / (near * near) + b))
        t = -lam + k * log_lam - lax.lgamma(k + 1)
        at_once = (near >= 0.07) & (v <= v_r)
        reject = (k < 0) | ((near < 0.013) & (v > near))
        return key, k, at_once | (~reject & (s <= t))

    return lax.convert_element_type(_until_all(key, lam, propose, turns), dtype)


def _until_all(key: Any, like: Array, propose: Any, turns: int) -> Array:
    """Return the last accepted proposal of each element, once all have one."""

    def body(state: Any) -> Any:
        i, kept, accepted, key = state
        key, k, accept = propose(key)
        return i + 1, lax.select(accept, k, kept), accepted | accept, key

    def more(state: Any) -> Array:
        return lax.bitwise_and(jnp.any(~state[2]), state[0] < turns)

    none = jnp.full(like.shape, -1, like.dtype), jnp.zeros(like.shape, bool)
    return lax.while_loop(more, body, (jnp.int32(0), *none, jnp.asarray(key)))[1]


# --- binomial -----------------------------------------------------------------------------------


@program_sampler
def binomial(key: Any, n: Any, p: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw the number of successes in ``n`` trials.

    Parameters
    ----------
    key : key
    n, p : float
        Number of trials and probability of success; broadcast to ``shape``. Where one is NaN,
        ``n`` is negative or ``p`` outside [0, 1], the result is NaN.
    shape : tuple of int, optional
        By default that of the parameters together.
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float, or parameters that do not broadcast to ``shape``.

    Notes
    -----
    Sums of geometric numbers where few successes are expected, else transformed rejection
    (Hormann, "The generation of binomial random variates", 1993).
    """
    dtype = dtype_of("binomial", dtype)
    shape = shape_of("binomial", shape, n, p)
    working = to_inexact(aval_of(p).dtype)
    n, p = (broadcast(lax.convert_element_type(x, working), shape) for x in (n, p))
    mirrored = p >= 0.5
    q = jnp.where(p < 0.5, p, 1.0 - p)
    bad_n, bad_q = (n != n) | (n < 0.0), (q != q) | (q < 0.0)
    endless = jnp.isinf(n)
    q_is_nan = q != q
    q = jnp.where(bad_q, 0.01, q)
    few = bad_n | (n * q <= 10.0)
    n = lax.floor(n)
    low = _geometric_sums(key, jnp.where(few, n, 0.0), q)
    high = _binomial_rejection(key, jnp.where(few, 1e4, n), jnp.where(few, 0.5, q))
    out = lax.convert_element_type(lax.select(few, low, high), dtype)
    invalid = bad_n | bad_q
    out = jnp.where(invalid, np.array(np.nan, dtype), out)
    out = jnp.where(endless & ~invalid, np.array(np.inf, dtype), out)
    kept = ~mirrored & (p == p) | bad_n | q_is_nan | endless
    return jnp.where(kept, out, lax.convert_element_type(n, dtype) - out)


def _geometric_sums(key: Any, n: Array, p: Array) -> Array:
    """Count the geometric numbers that fit into ``n``."""
    log_failure = lax.log1p(-p)

    def body(state: Any) -> Any:
        count, total, key = state
        subkey, key = subkeys(key)
        count = lax.select(total <= n, count + 1, count)
        step = lax.ceil(lax.log(uniform(subkey, n.shape, p.dtype)) / log_failure)
        return count, total + step, key

    zero = jnp.zeros(n.shape, p.dtype)
    start = zero, zero, jnp.asarray(key)
    return lax.while_loop(lambda s: jnp.any(s[1] <= n), body, start)[0] - 1


_STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.010411265261972,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k: Array) -> Array:
    """Return ``log k!`` less Stirling's approximation of it."""
    table = jnp.asarray(np.array(_STIRLING, k.dtype))
    small = lax.clamp(k.dtype.type(0), k, k.dtype.type(9))
    square = (small + 1) * (small + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (small + 1)
    return lax.select(k <= 9, table[lax.convert_element_type(lax.floor(small), int32)], series)


def _binomial_rejection(key: Any, n: Array, p: Array) -> Array:
    deviation = lax.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = lax.floor((n + 1) * p)

    def propose(key: Any) -> tuple[Any, Array, Array]:
        key, u_key, v_key = subkeys(key, 3)
        u = uniform(u_key, n.shape, p.dtype)
        v = uniform(v_key, n.shape, p.dtype)
        u = u - 0.5
        near = 0.5 - lax.abs(u)
        at_once = (near >= 0.07) & (v <= v_r)
        k = lax.floor((2 * a / near + b) * u + c)
        reject = (k < 0) | (k > n)
        v = lax.log(v * alpha / (a / (near * near) + b))
        bound = (
            (m + 0.5) * lax.log((m + 1) / (odds * (n - m + 1)))
            + (n + 1) * lax.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * lax.log(odds * (n - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(n - m)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        return key, k, at_once | (~reject & (v <= bound))

    return _until_all(key, n, propose, int(iinfo(int32).max))


@sampler
def multinomial(
    key: Any,
    n: Any,
    p: Any,
    *,
    shape: Shape | None = None,
    dtype: Any = None,
    unroll: int | bool = 1,
) -> Array:
    """Draw how many of ``n`` trials fall into each category.

    Parameters
    ----------
    key : key
    n : float
        Number of trials, of the shape of the batch.
    p : array of float (..., categories)
        Probabilities.
    shape : tuple of int, optional
        Of the result, categories last; by default that of ``p``.
    dtype : dtype, optional
        By default the default float.
    unroll : int or bool
        As for `lax.scan`, which runs over the categories.
    """
    dtypes = jnp.promote_types(aval_of(n).dtype, aval_of(p).dtype)
    n, p = (lax.convert_element_type(x, to_inexact(dtypes)) for x in (n, p))
    sizes: Shape = p.shape if shape is None else tuple(shape)
    p = jnp.moveaxis(broadcast(p, sizes), -1, 0)
    after = lax.cumsum(p, 0, reverse=True)
    ratios = p / jnp.where(after == 0, 1, after)

    def draw(left: Array, ratio_key: Any) -> tuple[Array, Array]:
        ratio, key = ratio_key
        count = binomial(key, left, jnp.clip(ratio, 0, 1), dtype=left.dtype)
        return left - count, count

    keys = lax.reshape(jnp.stack(subkeys(key, p.shape[0])), (p.shape[0], 2))
    _, counts = lax.scan(draw, broadcast(n, sizes[:-1]), (ratios, keys), unroll=unroll)
    counts = jnp.moveaxis(counts, 0, -1)
    return lax.convert_element_type(counts, float if dtype is None else dtype)
