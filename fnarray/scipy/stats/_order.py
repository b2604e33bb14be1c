"""Statistics of samples: modes, ranks, the standard error of the mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...core.array import Array
from ...core.dtypes import canonicalize_dtype, to_inexact
from ...core.eager import replayed
from ...numpy._promote import as_operand, promote_dtypes_inexact
from ...numpy._shape import axis_of

__all__ = ["mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """Results of `mode`."""

    mode: Array
    count: Array  # pyright: ignore[reportIncompatibleMethodOverride] - a field, as in SciPy


def _choice(name: str, setting: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        words = ", ".join(map(repr, choices))
        raise ValueError(f"scipy.stats.{name}: {setting} must be one of {words}, got {value!r}.")


def _rows(name: str, a: Any, axis: int | None) -> tuple[Array, int]:
    """Return an array with the axis in question last, and where that axis was."""
    a = jnp.asarray(as_operand(f"stats.{name}", a))
    if axis is None:
        return jnp.ravel(a), 0
    axis = axis_of(f"stats.{name}", axis, a.ndim)
    return jnp.moveaxis(a, axis, -1), axis


def _run_starts(x: Array) -> tuple[Array, Array]:
    """Of sorted lanes: where a run of equal elements begins, and the place its run began at."""
    first = jnp.ones((*x.shape[:-1], 1), bool)
    new = jnp.concatenate([first, x[..., 1:] != x[..., :-1]], -1)
    places = lax.broadcasted_iota(np.int32, x.shape, x.ndim - 1)
    return new, lax.cummax(jnp.where(new, places, 0), axis=x.ndim - 1)


@replayed
def mode(
    a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Return the commonest values along an axis, the smallest of equally common ones.

    Parameters
    ----------
    a : array_like
    axis : int, optional
        All elements where None.
    nan_policy : {"propagate"}
    keepdims : bool

    Returns
    -------
    ModeResult
        The values, and how often they occur.

    Raises
    ------
    ValueError
        For another policy.
    """
    _choice("mode", "nan_policy", nan_policy, ("propagate",))
    lanes, where = _rows("mode", a, axis)
    count = canonicalize_dtype(int)
    if not lanes.shape[-1]:
        dtype = to_inexact(lanes.dtype)
        out = jnp.full(lanes.shape[:-1], np.nan, dtype), jnp.zeros(lanes.shape[:-1], dtype)
    else:
        x = jnp.sort(lanes, axis=-1)
        _, start = _run_starts(x)
        length = lax.broadcasted_iota(np.int32, x.shape, x.ndim - 1) - start + 1
        best = jnp.argmax(length, axis=-1, keepdims=True)
        out = tuple(jnp.take_along_axis(v, best, -1)[..., 0] for v in (x, length))
        out = out[0], out[1].astype(count)
    if keepdims:
        axes = tuple(range(jnp.ndim(a))) if axis is None else where
        out = tuple(jnp.expand_dims(v, axes) for v in out)
    return ModeResult(*out)


@replayed
def rankdata(
    a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Return ranks from 1 on, along an axis.

    Parameters
    ----------
    a : array_like
    method : {"average", "min", "max", "dense", "ordinal"}
        Which rank equal elements get: the mean, smallest or largest of those they take up; one
        that leaves no gaps; or their order.
    axis : int, optional
        All elements where None.
    nan_policy : {"propagate"}
        A NaN makes all ranks of its lane NaN.

    Raises
    ------
    ValueError
        For another method or policy.
    """
    _choice("rankdata", "nan_policy", nan_policy, ("propagate",))
    _choice("rankdata", "method", method, ("average", "min", "max", "dense", "ordinal"))
    lanes, where = _rows("rankdata", a, axis)
    n, last = lanes.shape[-1], lanes.ndim - 1
    order = jnp.argsort(lanes, axis=-1)
    inverse = jnp.argsort(order, axis=-1)
    new, start = _run_starts(jnp.take_along_axis(lanes, order, -1))
    if method == "ordinal":
        ranks = inverse + 1
    else:
        places = lax.broadcasted_iota(np.int32, lanes.shape, last)
        closes = jnp.concatenate([new[..., 1:], jnp.ones((*new.shape[:-1], 1), bool)], -1)
        end = lax.cummin(jnp.where(closes, places, n), axis=last, reverse=True) + 1
        runs = {
            "min": start + 1,
            "max": end,
            "dense": jnp.cumsum(new, axis=-1),
            "average": (start + 1 + end) / 2,
        }[method]
        ranks = jnp.take_along_axis(runs, inverse, -1)
    ranks = ranks.astype(canonicalize_dtype(np.float64))
    if lanes.dtype.kind == "f":
        ranks = jnp.where(jnp.isnan(lanes).any(-1, keepdims=True), np.nan, ranks)
    return ranks if axis is None else jnp.moveaxis(ranks, -1, where)


@replayed
def sem(
    a: Any,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Return standard errors of means along an axis.

    Parameters
    ----------
    a : array_like
    axis : int, optional
        All elements where None.
    ddof : int
        What to take off the number of elements in the variance.
    nan_policy : {"propagate", "omit"}
        Whether a NaN makes the result NaN, or does not count.
    keepdims : bool

    Raises
    ------
    ValueError
        For another policy.
    """
    _choice("sem", "nan_policy", nan_policy, ("propagate", "omit"))
    (a,) = promote_dtypes_inexact(as_operand("stats.sem", a))
    how: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if nan_policy == "omit":
        n = jnp.sum(~jnp.isnan(a), **how)
        return jnp.nanstd(a, ddof=ddof, **how) / jnp.sqrt(n.astype(a.dtype))
    size = a.size if axis is None else a.shape[axis]
    return jnp.std(a, ddof=ddof, **how) / np.sqrt(size).astype(a.dtype)
