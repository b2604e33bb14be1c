"""Functions that normalise along axes, and the stable sums of exponentials behind them."""

from __future__ import annotations

from operator import index
from typing import Any, Literal, overload

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import canonicalize_dtype, is_complex
from ..core.eager import replayed
from ..numpy._reductions import split_axes
from ._args import inexact_operands

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize"]

Axis = int | tuple[int, ...] | None


def _shift(x: Array, axis: Axis) -> Array:
    """Largest element along the axes, kept as axes of size 1: a constant for differentiation.

    Of what is a constant already: maxima over mapped axes have no derivative to stop.
    """
    return jnp.max(lax.stop_gradient(x), axis, initial=-np.inf, keepdims=True)


def _taken(x: Array, where: Any) -> Array:
    """Return the elements to take and, for the others, one whose exponential is 0.

    Chosen first, not as they are summed: the slope there would be 0 times that of an exponential
    that overflows, or of NaN.
    """
    return x if where is None else jnp.where(where, x, -np.inf)


@replayed
def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Array:
    """``exp(x)`` over its sum along ``axis``.

    Parameters
    ----------
    x : array
    axis : int, tuple of int or None
        None stands for all axes.
    where : array of bool, optional
        Elements to take; the others get 0.
    """
    (x,) = inexact_operands("softmax", x)
    x = _taken(x, where)
    grown = jnp.exp(x - _shift(x, axis))
    result = grown / jnp.sum(grown, axis, keepdims=True)
    return result if where is None else jnp.where(where, result, 0.0)


@replayed
def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Array:
    """Logarithm of `softmax`, without underflow; -inf where ``where`` is False."""
    (x,) = inexact_operands("log_softmax", x)
    x = _taken(x, where)
    shifted = x - _shift(x, axis)
    total = jnp.sum(jnp.exp(shifted), axis, keepdims=True)
    result = shifted - jnp.log(total)
    return result if where is None else jnp.where(where, result, -np.inf)


@overload
def logsumexp(
    a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False,
    return_sign: Literal[False] = False, where: Any = None,
) -> Array: ...  # fmt: skip


@overload
def logsumexp(
    a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False, *,
    return_sign: Literal[True], where: Any = None,
) -> tuple[Array, Array]: ...  # fmt: skip


@replayed
def logsumexp(
    a: Any,
    axis: Axis = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """``log(sum(b * exp(a)))`` along axes, without overflow.

    Parameters
    ----------
    a : array
    axis : int, tuple of int or None
        None stands for all axes.
    b : array, optional
        Weights, broadcast against ``a``.
    keepdims : bool
        Keep the axes, with size 1.
    return_sign : bool
        Return ``(log(|sum|), sign)``; without it a negative sum gives NaN.
    where : array of bool, optional
        Elements to take.

    Returns
    -------
    Array, or tuple of two
    """
    if b is None:
        (x,) = inexact_operands("logsumexp", a)
    else:
        x, b = jnp.broadcast_arrays(*inexact_operands("logsumexp", a, b))
        # A weight of zero takes its element out, also where exp overflows.
        x = jnp.where(b != 0, x, -np.inf)
    x = _taken(x, where)
    real = lax.real(x) if is_complex(x.dtype) else x
    top = _shift(real, axis)
    # -inf - -inf is NaN: elements that are all -inf are left where they are.
    top = jnp.where(jnp.isfinite(top), top, 0.0)
    terms = jnp.exp(x - lax.convert_element_type(top, x.dtype))
    if b is not None:
        terms = terms * b
    total = jnp.sum(terms, axis, keepdims=True)
    sign = lax.sign(total)
    if return_sign or not is_complex(x.dtype):
        size = jnp.log(jnp.abs(total)) + top
        if not return_sign and b is not None:
            size = jnp.where(sign < 0, np.nan, size)
    else:
        size = jnp.log(total) + top
    if not keepdims:
        axes, _ = split_axes("logsumexp", axis, x.ndim)
        size, sign = (lax.squeeze(y, axes) for y in (size, sign))
    return (size, sign) if return_sign else size


@replayed
def logmeanexp(x: Any, axis: Axis = None, where: Any = None, keepdims: bool = False) -> Array:
    """``log(mean(exp(x)))`` along axes, without overflow."""
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    counted = jnp.ones(np.shape(x), total.dtype)
    return total - jnp.log(jnp.sum(counted, axis, where=where, keepdims=keepdims))


@replayed
def standardize(
    x: Any,
    axis: Axis = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Shift and scale ``x`` to zero mean and unit variance along ``axis``.

    Parameters
    ----------
    x : array
    axis : int, tuple of int or None
    mean, variance : arrays, optional
        Used in place of those of ``x``; they broadcast against it.
    epsilon : float
        Added to the variance.
    where : array of bool, optional
        Elements that the mean and variance are taken of.
    algorithm : {"fast", "stable"}
        Variance as ``mean(x**2) - mean(x)**2``, or as ``mean((x - mean(x))**2)``, which does not
        cancel.

    Raises
    ------
    ValueError
        For another ``algorithm``.
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(
            f"nn.standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}."
        )
    (x,) = inexact_operands("standardize", x)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "stable":
            variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
        else:
            square = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
            # Rounding may leave it slightly negative.
            variance = jnp.clip(square - jnp.square(mean), 0)
    return (x - mean) * lax.rsqrt(variance + epsilon)


@replayed
def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Vectors of zeros with a one at the index that ``x`` gives.

    Parameters
    ----------
    x : array of integers
        An index outside the range gives zeros only.
    num_classes : int
        Size of the new axis.
    dtype : dtype-like, optional
        Of the result; the default float where omitted.
    axis : int
        Where the result has the new axis.
    """
    x = jnp.asarray(x)
    dtype = canonicalize_dtype(float if dtype is None else dtype)
    rank = x.ndim + 1
    axis = index(axis) + (rank if axis < 0 else 0)
    if not 0 <= axis < rank:
        raise ValueError(f"nn.one_hot: axis must be within {rank} axes of the result, got {axis}.")
    shape = [1] * rank
    shape[axis] = index(num_classes)
    classes = lax.reshape(lax.iota(x.dtype, num_classes), shape)
    return lax.convert_element_type(lax.expand_dims(x, (axis,)) == classes, dtype)
