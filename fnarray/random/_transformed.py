"""Distributions that are a function of one uniform or normal number each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array, aval_of
from ..core.dtypes import finfo, float32, to_inexact, uint32
from ..ops.kit.calls import broadcast
from ..ops.kit.canonical import canonical_shape
from ..ops.random_floats import sample_erf_inv, sample_log, sample_log1p
from ._args import Shape, arguments, dtype_of, shape_of
from ._generators import random_bits
from ._samplers import exact_sampler, program_sampler
from ._uniform import both, normal, rademacher, subkeys, uniform_floats

__all__ = [
    "cauchy",
    "double_sided_maxwell",
    "exponential",
    "geometric",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "maxwell",
    "pareto",
    "rayleigh",
    "triangular",
    "truncated_normal",
    "wald",
    "weibull_min",
]


def _uniforms(
    name: str, key: Any, shape: Any, dtype: Any, low: Callable[[Any], Any] = lambda limits: 0.0
) -> Array:
    """Draw from below one, and from what a dtype's limits say on."""
    dtype = dtype_of(name, dtype)
    start = float(low(finfo(dtype)))
    return uniform_floats(key, canonical_shape(name, shape), dtype, start, 1.0)


@exact_sampler
def exponential(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw from the exponential distribution of mean 1.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float.
    """
    return lax.neg(sample_log1p(lax.neg(_uniforms("exponential", key, shape, dtype))))


@program_sampler
def cauchy(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw from the standard Cauchy distribution; parameters as for `exponential`."""
    u = _uniforms("cauchy", key, shape, dtype, lambda limits: limits.eps)
    return lax.tan(lax.mul(u.dtype.type(np.pi), lax.sub(u, u.dtype.type(0.5))))


@exact_sampler
def laplace(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw from the standard Laplace distribution; parameters as for `exponential`."""
    u = _uniforms("laplace", key, shape, dtype, lambda limits: -1.0 + float(limits.epsneg))
    return lax.mul(lax.sign(u), sample_log1p(lax.neg(lax.abs(u))))


@exact_sampler
def logistic(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw from the standard logistic distribution; parameters as for `exponential`."""
    u = _uniforms("logistic", key, shape, dtype, lambda limits: limits.tiny)
    return lax.sub(sample_log(u), sample_log1p(lax.neg(u)))


@exact_sampler
def gumbel(key: Any, shape: Shape = (), dtype: Any = None, mode: str | None = None) -> Array:
    """Draw from the standard Gumbel distribution.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : float dtype, optional
        By default the default float.
    mode : {"low", "high", "highest"}, optional
        How far into the tails samples reach: ``"low"``, the default, takes one uniform number;
        ``"high"`` two; ``"highest"``, in float32, 64 bits as one float down to 2**-64.

    Raises
    ------
    ValueError
        For a dtype that is not a float, or another mode.
    """
    dtype = dtype_of("gumbel", dtype)
    shape = canonical_shape("gumbel", shape)
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"random.gumbel: mode must be 'low', 'high' or 'highest', got {mode!r}.")
    info = finfo(dtype)
    if mode in (None, "low"):
        return -sample_log(-sample_log(uniform_floats(key, shape, dtype, float(info.tiny), 1.0)))
    if mode == "highest" and dtype == float32:
        return _widest_gumbel(key, shape)
    high, low = both(uniform_floats(key, (2, *shape), dtype, 0.0, 1.0))
    tail = high + 2.0**-info.nmant * low + float(info.tiny)
    return -sample_log(-sample_log1p(-jnp.where(high >= 0.5, high, tail)))


def _widest_gumbel(key: Any, shape: Shape) -> Array:
    """Draw from 64 bits, as the distance from the nearer end of the unit interval."""
    high, low = both(random_bits(key, 32, (2, *shape)))
    lower_half = high < np.uint32(1 << 31)
    # Two's complement of the pair: the distance from 1.
    not_high, not_low = lax.bitwise_not(high), lax.bitwise_not(low)
    carry = not_low == np.uint32(0xFFFFFFFF)
    far_high = not_high + lax.convert_element_type(carry, uint32)
    x = _fraction(
        jnp.where(lower_half, high, far_high), jnp.where(lower_half, low, not_low + np.uint32(1))
    )
    return jnp.where(lower_half, -sample_log(-sample_log1p(-x)), -sample_log(-sample_log(x)))


def _fraction(high: Array, low: Array) -> Array:
    """Return 64 bits over 2**64 as float32, cut off, by placing bits: no rounding, no overflow."""
    zeros, low_zeros = lax.clz(high), lax.clz(low)
    none = zeros == np.uint32(32)
    rest = jnp.where(
        none,
        lax.shift_left(low, low_zeros),
        lax.shift_right_logical(low, np.uint32(32) - zeros),
    )
    mantissa = lax.shift_right_logical(lax.bitwise_or(lax.shift_left(high, zeros), rest), _u(8))
    exponent = np.uint32(126) - jnp.where(none, np.uint32(32) + low_zeros, zeros)
    placed = lax.bitwise_and(lax.shift_left(exponent, _u(23)), _u((1 << 30) - (1 << 22)))
    bits = lax.bitwise_or(placed, lax.bitwise_and(mantissa, _u((1 << 23) - 1)))
    return lax.bitcast_convert_type(bits, float32)


_u = np.uint32


@program_sampler
def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Shape | None = None, dtype: Any = None
) -> Array:
    """Draw from the standard normal distribution, given that it lies between two bounds.

    Parameters
    ----------
    key : key
    lower, upper : float
        Broadcast to ``shape``; samples lie strictly between.
    shape : tuple of int, optional
        By default that of the bounds together.
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float, or bounds that do not broadcast to ``shape``.
    """
    dtype = dtype_of("truncated_normal", dtype)
    shape = shape_of("truncated_normal", shape, lower, upper)
    lower, upper = (lax.convert_element_type(x, dtype) for x in (lower, upper))
    root = np.sqrt(2).astype(dtype)
    a, b = lax.erf(lax.div(lower, root)), lax.erf(lax.div(upper, root))
    out = lax.mul(root, sample_erf_inv(uniform_floats(key, shape, dtype, a, b)))
    low = lax.nextafter(lax.stop_gradient(lower), np.array(np.inf, dtype))
    high = lax.nextafter(lax.stop_gradient(upper), np.array(-np.inf, dtype))
    return jnp.clip(out, low, high)


@program_sampler
def lognormal(key: Any, sigma: Any = 1.0, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw exponentials of normal numbers of mean 0.

    Parameters
    ----------
    key : key
    sigma : float
        Standard deviation of the logarithm; broadcast to ``shape``.
    shape : tuple of int, optional
        By default that of ``sigma``.
    dtype : float or complex dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For another dtype, or ``sigma`` that does not broadcast to ``shape`` or convert to it.
    """
    dtype, shape, sigma = arguments("lognormal", dtype, shape, sigma, kind="inexact")
    return lax.exp(lax.mul(normal(key, shape, dtype), sigma))


@program_sampler
def pareto(key: Any, b: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw from the Pareto distribution of scale 1.

    Parameters
    ----------
    key : key
    b : float
        Shape parameter, positive; broadcast to ``shape``.
    shape : tuple of int, optional
        By default that of the parameters together.
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float, or a parameter that does not broadcast to ``shape`` or
        promote to the dtype.
    """
    dtype, shape, b = arguments("pareto", dtype, shape, b)
    return lax.exp(lax.div(exponential(key, shape, dtype), b))


@exact_sampler
def rayleigh(key: Any, scale: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw from the Rayleigh distribution of a scale; see `pareto` for the other parameters."""
    dtype, shape, scale = arguments("rayleigh", dtype, shape, scale)
    u = uniform_floats(key, shape, dtype, 0.0, 1.0)
    return lax.mul(scale, lax.sqrt(lax.mul(sample_log(u), dtype.type(-2))))


@program_sampler
def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Shape = (), dtype: Any = None
) -> Array:
    """Draw from the Weibull distribution.

    Parameters
    ----------
    key : key
    scale, concentration : float
        Broadcast with ``shape``.
    shape : tuple of int
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float.
    """
    u = _uniforms("weibull_min", key, shape, dtype)
    return jnp.power(-sample_log1p(-u), 1.0 / concentration) * scale


@exact_sampler
def wald(key: Any, mean: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw from the Wald (inverse Gaussian) distribution of a mean and scale 1.

    See `pareto` for the other parameters.

    Notes
    -----
    Michael, Schucany, Haas: Generating random variates using transformations with multiple roots
    (The American Statistician, 1976).
    """
    dtype, shape, mean = arguments("wald", dtype, shape, mean)
    normal_key, uniform_key = subkeys(key)
    y = lax.integer_pow(normal(normal_key, shape, dtype), 2)
    z = uniform_floats(uniform_key, shape, dtype, 0.0, 1.0)
    square = lax.integer_pow(mean, 2)
    root = lax.sqrt(4 * mean * y + square * lax.integer_pow(y, 2))
    x = mean + square * y / 2 - mean / 2 * root
    return lax.select(z <= mean / (mean + x), x, square / x)


@exact_sampler
def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Shape | None = None, dtype: Any = None
) -> Array:
    """Draw from the triangular distribution on ``[left, right]`` with its peak at ``mode``.

    See `pareto` for the other parameters.
    """
    dtype, shape, left, mode, right = arguments("triangular", dtype, shape, left, mode, right)
    u = uniform_floats(key, shape, dtype, 0.0, 1.0)
    rising = left + lax.sqrt(u * (right - left) * (mode - left))
    falling = right - lax.sqrt((1 - u) * (right - left) * (right - mode))
    return lax.select(u < (mode - left) / (right - left), rising, falling)


@program_sampler
def geometric(key: Any, p: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw the number of trials up to the first success.

    Parameters
    ----------
    key : key
    p : float
        Probability of success; broadcast to ``shape``.
    shape : tuple of int, optional
        By default that of ``p``.
    dtype : integer dtype, optional
        By default the default integer.

    Raises
    ------
    ValueError
        For a dtype that is no integer, or ``p`` that does not broadcast to ``shape``.
    """
    dtype = dtype_of("geometric", dtype, "int")
    shape = shape_of("geometric", shape, p)
    p = lax.convert_element_type(p, to_inexact(aval_of(p).dtype))
    u = uniform_floats(key, shape, p.dtype, 0.0, 1.0)
    u = jnp.where(u == 0, 1, u)
    failures = lax.floor(lax.div(sample_log(u), broadcast(lax.log1p(-p), shape)))
    return lax.convert_element_type(failures + 1, dtype)


@program_sampler
def maxwell(key: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw lengths of standard normal vectors in space; parameters as for `exponential`."""
    dtype = dtype_of("maxwell", dtype)
    vectors = normal(key, (*canonical_shape("maxwell", shape), 3), dtype)
    return jnp.sqrt(jnp.sum(vectors * vectors, axis=-1))


@program_sampler
def double_sided_maxwell(
    key: Any, loc: Any, scale: Any, shape: Shape = (), dtype: Any = None
) -> Array:
    """Draw from the Maxwell distribution with a random sign, scaled and moved.

    Parameters
    ----------
    key : key
    loc, scale : float
    shape : tuple of int
        Comes before the shape of ``loc`` and ``scale`` together; repeats it if empty.
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float.
    """
    dtype = dtype_of("double_sided_maxwell", dtype)
    inner = lax.broadcast_shapes(jnp.shape(loc), jnp.shape(scale))
    shape = (canonical_shape("double_sided_maxwell", shape) or inner) + inner
    size_key, sign_key = subkeys(key)
    return rademacher(sign_key, shape, dtype) * maxwell(size_key, shape, dtype) * scale + loc
