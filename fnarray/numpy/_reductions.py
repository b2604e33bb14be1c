"""Reductions along axes: sums, extremes, moments, and the same without NaN."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.dtypes import (
    canonicalize_dtype,
    is_bool,
    is_complex,
    is_inexact,
    to_inexact,
    to_real,
    to_single,
)
from ..core.eager import replayed
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array, canonical_axis
from ..ops.reduce import highest_of, lowest_of
from ._promote import (
    as_operand,
    broadcast_to,
    no_out,
    promote_args_inexact,
    promote_dtypes_inexact,
    wide_integer,
)
from ._select import as_condition, choose_where
from ._ufuncs import true_divide

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]

Axis = int | tuple[int, ...] | list[int] | None


# ---- machinery ---------------------------------------------------------------------------------


def canonical_axes(name: str, axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return axes, sorted and counted from the front; all of them for None.

    Raises
    ------
    ValueError
        For axes out of range or repeated.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int | np.integer) or not np.iterable(axis) else axis
    axes = tuple(map(operator.index, axes))
    found = tuple(sorted(canonical_axis(name, a, ndim) for a in axes))
    _check_unique(name, axis, found)
    return found


def _check_unique(name: str, axis: Any, found: tuple[Any, ...]) -> None:
    if len(set(found)) != len(found):
        raise ValueError(f"numpy.{name}: axis has a duplicate value, got {axis}.")


def split_axes(name: str, axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[Hashable, ...]]:
    """Return the axes of an array, as `canonical_axes`, and the names of mapped axes.

    Both may be reduced along: ``sum(x, ("batch", 0))`` adds up all of all examples.
    """
    if isinstance(axis, range):  # which could be a key of a table, as names are
        axis = tuple(axis)
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    names = tuple(a for a in given if _is_name(a))
    if not names:
        return canonical_axes(name, axis, ndim), ()
    _check_unique(name, axis, names)
    return canonical_axes(name, tuple(a for a in given if not _is_name(a)), ndim), names


def _is_name(axis: Any) -> bool:
    if hasattr(axis, "__index__") or isinstance(axis, float | complex | tuple | None):
        return False
    return isinstance(axis, Hashable)


def _keep(out: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return lax.expand_dims(out, axes) if keepdims and axes else out


def _plain(
    op: Callable[..., Array], name: str, collective: Callable[..., Array] | None = None
) -> Callable[..., Array]:
    """Reduce an array in its own dtype, and over mapped axes by a collective."""

    def reduce(a: Array, axis: Axis, keepdims: bool) -> Array:
        axes, names = split_axes(name, axis, a.ndim)
        out = _keep(op(convert(a, a.dtype), axes), axes, keepdims)
        if not names:
            return out
        if collective is None:
            raise NotImplementedError(
                f"numpy.{name}: Named reductions not implemented for jnp.{name}(), got axis={axis}."
                " Gather with lax.all_gather, and reduce along the new axis."
            )
        return collective(out, names)

    return reduce


_sum = _plain(lax.reduce_sum, "sum", lax.psum)
_prod = _plain(lax.reduce_prod, "prod")
_max = _plain(lax.reduce_max, "max", lax.pmax)
_min = _plain(lax.reduce_min, "min", lax.pmin)
_all = _plain(lax.reduce_and, "all")
_any = _plain(lax.reduce_or, "any")


def _masked(name: str, a: Array, where: Any, identity: Any) -> Array:
    """Elements where ``where`` holds, the reduction's identity elsewhere."""
    where = as_operand(name, where)
    if not is_bool(as_array(where).dtype):
        raise ValueError(f"numpy.{name}: where must be None or bool, got {as_array(where).dtype}.")
    return choose_where(where, a, convert(identity, a.dtype))


def _with_initial(name: str, out: Array, initial: Any, combine: Callable[..., Array]) -> Array:
    if initial is None:
        return out
    start = convert(as_operand(name, initial), out.dtype)
    if start.shape:
        raise ValueError(f"numpy.{name}: initial must be a scalar, got shape {start.shape}.")
    return combine(start, out)


# ---- sums and products -------------------------------------------------------------------------


@replayed
def sum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """Sum of elements along axes.

    Parameters
    ----------
    a : array_like
    axis : int or sequence of int, optional
        All by default. Names of mapped axes may be among them (``vmap(f, axis_name="batch")``).
    dtype : dtype-like, optional
        In which to add up. By default bools and narrow integers count in the default integer.
    keepdims : bool
        Leave the axes in the result, at size 1.
    initial : scalar, optional
        Added to the result.
    where : array_like of bool, optional
        Elements to take; broadcasts.
    promote_integers : bool
        Whether narrow integers widen; bools always do.

    Raises
    ------
    ValueError
        For axes out of range or repeated, a ``where`` that is not bool.
    TypeError
        For an argument that is no array.
    """
    no_out("sum", out)
    a = _accumulated("sum", a, dtype, promote_integers)
    if where is not None:
        a = _masked("sum", a, where, 0)
    return _with_initial("sum", _sum(a, axis, keepdims), initial, lax.add)


@replayed
def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """Product of elements along axes; parameters are as of `sum`."""
    no_out("prod", out)
    a = _accumulated("prod", a, dtype, promote_integers)
    if where is not None:
        a = _masked("prod", a, where, 1)
    return _with_initial("prod", _prod(a, axis, keepdims), initial, lax.mul)


def _accumulated(name: str, a: Any, dtype: Any, promote_integers: bool) -> Array:
    a = as_array(as_operand(name, a))
    if dtype is not None:
        return convert(a, canonicalize_dtype(dtype))
    if promote_integers or is_bool(a.dtype):
        return convert(a, wide_integer(a.dtype))
    return a


# ---- extremes ----------------------------------------------------------------------------------


@replayed
def max(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Largest element along axes; NaN where there is one.

    Parameters are as of `sum`.

    Raises
    ------
    ValueError
        For no elements, or a ``where``, without ``initial``.
    """
    return _extreme("max", _max, lax.max, lowest_of, a, axis, out, keepdims, initial, where)


@replayed
def min(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Smallest element along axes; NaN where there is one. See `max`."""
    return _extreme("min", _min, lax.min, highest_of, a, axis, out, keepdims, initial, where)


amax, amin = max, min


def _extreme(
    name: str,
    reduce: Callable[..., Array],
    combine: Callable[..., Array],
    identity: Callable[[np.dtype], Any],
    a: Any,
    axis: Axis,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Array:
    no_out(name, out)
    a = as_array(as_operand(name, a))
    if initial is None:
        if where is not None:
            raise ValueError(f"numpy.{name}: where needs initial, the result over no elements.")
        if a.size == 0 and 0 in (a.shape[i] for i in split_axes(name, axis, a.ndim)[0]):
            raise ValueError(f"numpy.{name}: no elements along axis {axis} of shape {a.shape}.")
    if where is not None:
        a = _masked(name, a, where, identity(a.dtype))
    return _with_initial(name, reduce(a, axis, keepdims), initial, combine)


@replayed
def ptp(a: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Largest less smallest element along axes; see `max`."""
    no_out("ptp", out)
    a = as_array(as_operand("ptp", a))
    return lax.sub(max(a, axis, None, keepdims), min(a, axis, None, keepdims))


# ---- truth -------------------------------------------------------------------------------------


@replayed
def all(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Whether all elements along axes are nonzero; true for none. Parameters are as of `sum`."""
    no_out("all", out)
    a = as_condition(as_operand("all", a))
    if where is not None:
        a = _masked("all", a, where, True)
    return _all(a, axis, keepdims)


@replayed
def any(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Whether any element along axes is nonzero; false for none. Parameters are as of `sum`."""
    no_out("any", out)
    a = as_condition(as_operand("any", a))
    if where is not None:
        a = _masked("any", a, where, False)
    return _any(a, axis, keepdims)


@replayed
def count_nonzero(a: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count of nonzero elements along axes, as the default integer."""
    return sum(as_condition(as_operand("count_nonzero", a)), axis, keepdims=keepdims)


# ---- moments -----------------------------------------------------------------------------------


def _number(name: str, a: Array, axis: Axis) -> int:
    """Number of elements that each result is of."""
    axes, names = split_axes(name, axis, a.ndim)
    return math.prod(a.shape[i] for i in axes) * math.prod(map(lax.axis_size, names))


def _count(a: Array, axis: Axis, where: Any, dtype: np.dtype, keepdims: bool) -> Array:
    """Number of elements that are taken for each result, in a dtype."""
    if where is None:
        return convert(float(_number("mean", a, axis)), dtype)
    taken = convert(broadcast_to("mean", as_array(where), a.shape), dtype)
    return _sum(taken, axis, keepdims)


def _work_dtype(dtype: np.dtype) -> np.dtype:
    """Dtype of moments' arithmetic: halves have too few digits to count in."""
    return to_single(to_inexact(dtype))


@replayed
def mean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Mean of elements along axes; NaN over none.

    Parameters are as of `sum`. Integers give a float.
    """
    no_out("mean", out)
    a = as_array(as_operand("mean", a))
    target = to_inexact(a.dtype) if dtype is None else canonicalize_dtype(dtype)
    if not is_inexact(target):
        a = convert(a, target)
    work = _work_dtype(target)
    a = convert(a, work)
    total = sum(a, axis, keepdims=keepdims, where=where)
    return convert(lax.div(total, _count(a, axis, where, work, keepdims)), target)


@replayed
def average(
    a: Any,
    axis: Axis = None,
    weights: Any = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """Weighted mean along axes.

    Parameters
    ----------
    a : array_like
    axis : int or sequence of int, optional
    weights : array_like, optional
        Of the shape of ``a``, or of its ``axis`` alone; equal by default.
    returned : bool
        Return also the sum of weights.
    keepdims : bool

    Returns
    -------
    Array, or pair of Array

    Raises
    ------
    ValueError
        For weights of another shape, or of one axis with no ``axis`` given.
    """
    if weights is None:
        (a,) = promote_args_inexact("average", a)
        out = mean(a, axis, keepdims=keepdims)
        if not returned:
            return out
        return out, lax.full_like(out, _number("average", a, axis))
    a, weights = as_operand("average", a), as_operand("average", weights, 1)
    a, weights = promote_dtypes_inexact(a, weights)
    axes = canonical_axes("average", axis, a.ndim)
    if weights.shape != a.shape:
        weights = _spread_weights(a, weights, axis)
    total = sum(weights, axes, keepdims=keepdims)
    out = lax.div(sum(lax.mul(a, weights), axes, keepdims=keepdims), total)
    return (out, total) if returned else out


def _spread_weights(a: Array, weights: Array, axis: Axis) -> Array:
    """Weights of some axes, in the order they are named, stretched over the others."""
    if axis is None:
        raise ValueError(
            f"numpy.average: weights of shape {weights.shape} for an array of shape {a.shape} need "
            "an axis."
        )
    named = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
    named = tuple(canonical_axis("average", i, a.ndim) for i in named)
    if weights.shape != tuple(a.shape[i] for i in named):
        raise ValueError(
            f"numpy.average: weights of shape {weights.shape} do not fit axes {named} of shape "
            f"{a.shape}."
        )
    order = sorted(range(len(named)), key=named.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(weights, order), a.shape, sorted(named))


@replayed
def var(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """Variance along axes: the mean squared distance to the mean, real for complex numbers too.

    Parameters
    ----------
    a : array_like
    axis, keepdims, where
        As of `sum`.
    dtype : dtype-like, optional
        Inexact; that of ``a`` by default.
    ddof : number
        The divisor is the count less this; where that is not positive the result is NaN.
    mean : array_like, optional
        The mean along the axes, kept at size 1, where it is known.
    correction : number, optional
        Another name of ``ddof``.

    Raises
    ------
    ValueError
        For both ``ddof`` and ``correction``, or a real ``dtype`` for complex numbers.
    """
    no_out("var", out)
    if correction is not None:
        if not (isinstance(ddof, int) and ddof == 0):
            raise ValueError("numpy.var: ddof and correction are one argument; give one.")
        ddof = correction
    a = as_array(as_operand("var", a))
    target = to_inexact(a.dtype if dtype is None else canonicalize_dtype(dtype))
    if is_complex(a.dtype) and not is_complex(target):
        raise ValueError(f"numpy.var: dtype must be complex for complex numbers, got {target}.")
    work = _work_dtype(target)
    a = convert(a, work)
    if mean is None:
        center = _mean(a, axis, keepdims=True, where=where)
    else:
        center = convert(as_operand("var", mean), work)
    distance = lax.sub(a, broadcast_to("var", center, a.shape))
    if where is not None:  # before the square, whose slope at NaN is NaN
        distance = choose_where(where, distance, convert(0, work))
    if is_complex(work):
        square = lax.real(lax.mul(distance, lax.conj(distance)))
    else:
        square = lax.square(distance)
    real = to_real(work)
    divisor = lax.sub(_count(a, axis, where, real, keepdims), convert(ddof, real))
    ratio = true_divide(sum(square, axis, keepdims=keepdims), divisor)
    ratio = convert(ratio, to_real(target))
    known = where is None and isinstance(ddof, int | float)
    if known and _number("var", a, axis) > ddof:
        return ratio
    positive = lax.gt(divisor, convert(0, real))
    return choose_where(positive, ratio, convert(math.nan, ratio.dtype))


_mean = mean


@replayed
def std(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Array:
    """Standard deviation along axes: the square root of `var`, whose parameters it has."""
    no_out("std", out)
    return lax.sqrt(
        var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    )


# ---- positions ---------------------------------------------------------------------------------


@replayed
def argmax(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the first largest element along an axis; that of the first NaN if there is one.

    Parameters
    ----------
    a : array_like
    axis : int, optional
        By default the index is into the flattened array.
    keepdims : bool, optional

    Raises
    ------
    ValueError
        For no elements, or an axis out of range.
    """
    return _position("argmax", lax.argmax, a, axis, out, keepdims)


@replayed
def argmin(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the first smallest element along an axis; see `argmax`."""
    return _position("argmin", lax.argmin, a, axis, out, keepdims)


def _position(
    name: str, op: Callable[..., Array], a: Any, axis: Any, out: Any, keepdims: bool | None
) -> Array:
    no_out(name, out)
    a = as_array(as_operand(name, a))
    rank = a.ndim
    if axis is None:
        a, along = lax.reshape(a, (a.size,)), 0
    else:
        along = canonical_axis(name, axis, rank)
    if a.shape[along] == 0:
        raise ValueError(f"numpy.{name}: no elements along axis {axis} of shape {a.shape}.")
    found = op(a, along, canonicalize_dtype(int))
    if not keepdims:
        return found
    return lax.expand_dims(found, range(rank) if axis is None else (along,))
