"""The gamma distribution, by rejection, and what is made of it."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..config import config, threefry_partitionable
from ..core import hooks
from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import finfo
from ..core.forms import Inline
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive
from ..core.trace import bind, no_trace, trace_graph
from ..ops.kit.calls import broadcast
from ..ops.kit.registry import register
from ..ops.kit.rules import NOT_LINEAR, one_more_axis, partials
from ..ops.random_bits import check_keys
from ..ops.shape import reshape
from ._args import Shape, arguments, dtype_of, shape_of
from ._generators import GENERATORS, drawing_by, random_split
from ._samplers import program_sampler, sampler
from ._transformed import exponential
from ._uniform import normal, rademacher, subkeys, uniform

__all__ = [
    "ball",
    "beta",
    "chisquare",
    "dirichlet",
    "f",
    "gamma",
    "generalized_normal",
    "loggamma",
    "random_gamma_p",
    "t",
]


def _one(key: Any, alpha: Array, log_space: bool) -> Array:
    """Draw one gamma number, or its logarithm.

    Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM TOMS, 2000). Below
    ``alpha = 1`` a draw for ``alpha + 1`` is scaled by ``u ** (1 / alpha)``.
    """
    dtype = alpha.dtype
    zero, one, two, third = (dtype.type(x) for x in (0, 1, 2, 1 / 3))
    large = alpha >= one
    d = lax.select(large, alpha, alpha + one) - third
    c = third / lax.sqrt(d)

    def rejected(state: Any) -> Array:
        _, x2, v, u = state
        squeezed = u >= one - dtype.type(0.0331) * (x2 * x2)
        bound = x2 * dtype.type(0.5) + d * ((one - v) + lax.log(v))
        return lax.bitwise_and(squeezed, lax.log(u) >= bound)

    def positive(state: Any) -> Any:
        key, subkey = subkeys(state[0])
        x = normal(subkey, (), dtype)
        return key, x, one + x * c

    def propose(state: Any) -> Any:
        key, x_key, u_key = subkeys(state[0], 3)
        start = (x_key, jnp.asarray(zero), jnp.asarray(-one))
        _, x, v = lax.while_loop(lambda s: s[2] <= zero, positive, start)
        return key, x * x, v * v * v, uniform(u_key, (), dtype)

    key, boost_key = subkeys(key)
    start = (key, *(jnp.asarray(x) for x in (zero, one, two)))
    _, _, v, _ = lax.while_loop(rejected, propose, start)
    if log_space:
        log_u = -exponential(boost_key, (), dtype)
        unboosted = lax.bitwise_or(large, log_u == zero)
        boost = lax.select(unboosted, jnp.asarray(zero), log_u * (one / alpha))
        return lax.log(d) + lax.log(v) + boost
    u = one - uniform(boost_key, (), dtype)
    return d * v * lax.select(large, jnp.asarray(one), lax.pow(u, one / alpha))


@lru_cache(maxsize=256)
def _graph(
    keys: ShapedArray, alpha: ShapedArray, log_space: bool, partitionable: bool, impl: str
) -> ClosedGraph:
    """Return the program that draws one number after the other, each from a key of its own."""

    def draw(keys: Array, alpha: Array) -> tuple[Array]:
        each = random_split(keys, (prod(alpha.shape[keys.ndim - 1 :]),))
        xs = reshape(each, (alpha.size, keys.shape[-1])), reshape(alpha, (alpha.size,))
        out = lax.map(lambda x: _one(x[0], x[1], log_space), xs)
        return (reshape(out, alpha.shape),)

    with no_trace(), threefry_partitionable(partitionable), drawing_by(impl):
        return trace_graph(draw, (keys, alpha), "random_gamma")


def _aval(keys: ShapedArray, alpha: ShapedArray, *, impl: str, **_: bool) -> ShapedArray:
    check_keys("random_gamma", keys, GENERATORS[impl].words)
    return alpha


def _eval(keys: np.ndarray, alpha: np.ndarray, **params: Any) -> np.ndarray:
    if not alpha.size:
        return alpha
    graph = _graph(*(ShapedArray(x.shape, x.dtype) for x in (keys, alpha)), **params)
    return hooks.compiled_call(graph, (keys, alpha))[0]


def _tangent(g: Any, x: Array, keys: Any, alpha: Array, *, log_space: bool, **_: Any) -> Array:
    """Follow a sample, or its logarithm, at a fixed place of the distribution."""
    if not log_space:
        return g * lax.random_gamma_grad(alpha, x)
    x = lax.exp(x)
    x = jnp.where(x == 0, finfo(x.dtype).tiny.astype(x.dtype), x)
    return g * (lax.random_gamma_grad(alpha, x) / x)


random_gamma_p = register(
    Primitive(
        "random_gamma",
        aval=_aval,
        eval=_eval,
        form=lambda ins, outs, **params: Inline(_graph(*ins, **params)),
        print_params=lambda params: {"log_space": params["log_space"]},
        jvp=partials(None, _tangent),
        transpose=NOT_LINEAR,
        batch=one_more_axis(),
    )
)


def _gammas(name: str, key: Any, a: Any, shape: Any, dtype: Any, log_space: bool) -> Array:
    dtype = dtype_of(name, dtype)
    shape = shape_of(name, shape, a)
    a = broadcast(lax.convert_element_type(a, dtype), shape)
    return bind(
        random_gamma_p,
        key,
        a,
        log_space=log_space,
        partitionable=config.threefry_partitionable,
        impl=config.default_prng_impl,
    )


@sampler
def gamma(key: Any, a: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw from the gamma distribution of scale 1.

    Parameters
    ----------
    key : key
    a : float
        Shape parameter, positive; broadcast to ``shape``.
    shape : tuple of int, optional
        By default that of the parameters together.
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float, or parameters that do not broadcast to ``shape``.
    """
    return _gammas("gamma", key, a, shape, dtype, False)


@sampler
def loggamma(key: Any, a: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw logarithms of gamma numbers, which do not underflow for small ``a``; see `gamma`."""
    return _gammas("loggamma", key, a, shape, dtype, True)


@program_sampler
def beta(key: Any, a: Any, b: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw from the beta distribution of shape parameters ``a`` and ``b``; see `gamma`."""
    dtype, shape, a, b = arguments("beta", dtype, shape, a, b)
    logs = [loggamma(k, x, shape, dtype) for k, x in zip(subkeys(key), (a, b), strict=True)]
    largest = lax.max(*logs)
    first, second = (lax.exp(x - largest) for x in logs)
    return first / (first + second)


@program_sampler
def dirichlet(key: Any, alpha: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw probability vectors from the Dirichlet distribution.

    Parameters
    ----------
    key : key
    alpha : array of float (..., n)
        Concentrations.
    shape : tuple of int, optional
        Of the batch, to which the leading axes of ``alpha`` broadcast; by default those.
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float, a scalar ``alpha``, or one that does not broadcast.
    """
    dtype = dtype_of("dirichlet", dtype)
    alpha = lax.convert_element_type(alpha, dtype)
    if not alpha.ndim:
        raise ValueError("random.dirichlet: alpha must have at least one axis, got a scalar.")
    batch = shape_of("dirichlet", shape, np.empty(alpha.shape[:-1]))
    logs = loggamma(key, alpha, batch + alpha.shape[-1:], dtype)
    weights = jnp.exp(logs - lax.stop_gradient(jnp.max(logs, axis=-1, keepdims=True)))
    return weights / jnp.sum(weights, axis=-1, keepdims=True)


@program_sampler
def chisquare(key: Any, df: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw from the chi-square distribution of ``df`` degrees of freedom; see `gamma`."""
    dtype, shape, df = arguments("chisquare", dtype, shape, df)
    half = lax.div(df, dtype.type(2))
    return lax.mul(lax.exp(loggamma(key, half, shape, dtype)), dtype.type(2))


@program_sampler
def f(key: Any, dfnum: Any, dfden: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw from the F distribution of two degrees of freedom; see `gamma`."""
    dtype, shape, dfnum, dfden = arguments("f", dtype, shape, dfnum, dfden)
    below, above = subkeys(key)
    return (chisquare(above, dfnum, shape, dtype) / dfnum) / (
        chisquare(below, dfden, shape, dtype) / dfden
    )


@program_sampler
def t(key: Any, df: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Draw from Student's t distribution of ``df`` degrees of freedom; see `gamma`."""
    dtype, shape, df = arguments("t", dtype, shape, df)
    half = lax.div(df, dtype.type(2))
    normal_key, gamma_key = subkeys(key)
    return normal(normal_key, shape, dtype) * lax.sqrt(half / gamma(gamma_key, half, shape, dtype))


@program_sampler
def generalized_normal(key: Any, p: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw from the density proportional to ``exp(-|x| ** p)``.

    Parameters
    ----------
    key : key
    p : float
        Positive.
    shape : tuple of int
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float.
    """
    dtype, shape = arguments("generalized_normal", dtype, shape)
    gamma_key, sign_key = subkeys(key)
    size = gamma(gamma_key, 1 / p, shape, dtype)
    return rademacher(sign_key, shape, dtype) * size ** (1 / p)


@program_sampler
def ball(key: Any, d: int, p: Any = 2, shape: Shape = (), dtype: Any = None) -> Array:
    """Draw points uniformly from the unit ball of the p-norm.

    Parameters
    ----------
    key : key
    d : int
        Dimension of the space, the last axis of the result.
    p : float
    shape : tuple of int
        Of the batch.
    dtype : float dtype, optional
        By default the default float.

    Raises
    ------
    ValueError
        For a dtype that is not a float.

    Notes
    -----
    Barthe, Guedon, Mendelson, Naor: A probabilistic approach to the geometry of the l_p^n-ball
    (Annals of Probability, 2005).
    """
    dtype, shape = arguments("ball", dtype, shape)
    direction_key, size_key = subkeys(key)
    g = generalized_normal(direction_key, p, (*shape, d), dtype)
    total = jnp.sum(jnp.abs(g) ** p, axis=-1) + exponential(size_key, shape, dtype)
    return g / jnp.expand_dims(total ** (1 / p), -1)
