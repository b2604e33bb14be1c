"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lax
from ..core.array import Array
from ..core.dtypes import canonicalize_dtype, is_bool, is_inexact
from ..core.eager import replayed
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array, canonical_axis
from ._promote import as_operand, no_out, wide_integer
from ._select import choose_where

__all__ = [
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "nancumprod",
    "nancumsum",
]


def _running(
    name: str,
    op: Callable[..., Array],
    a: Any,
    axis: int | None,
    dtype: Any,
    out: Any,
    nan: Any = None,
) -> Array:
    no_out(name, out)
    a = as_array(as_operand(name, a))
    if axis is None:
        a, along = lax.reshape(a, (a.size,)), 0
    else:
        along = canonical_axis(name, axis, a.ndim)
    if nan is not None and is_inexact(a.dtype):
        a = choose_where(lax.ne(a, a), convert(nan, a.dtype), a)
    if dtype is not None:
        a = convert(a, canonicalize_dtype(dtype))
    elif is_bool(a.dtype):
        a = convert(a, canonicalize_dtype(int))
    if is_bool(a.dtype):
        # Running sums of bools in bool: true once one was.
        return convert(op(convert(a, canonicalize_dtype(int)), axis=along), a.dtype)
    return op(convert(a, a.dtype), axis=along)


@replayed
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Running sums along an axis.

    Parameters
    ----------
    a : array_like
    axis : int, optional
        By default the array is flattened.
    dtype : dtype-like, optional
        In which to add up; that of ``a`` by default, the default integer for bools.

    Raises
    ------
    ValueError
        For an axis out of range.
    """
    return _running("cumsum", lax.cumsum, a, axis, dtype, out)


@replayed
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Running products along an axis; see `cumsum`."""
    return _running("cumprod", lax.cumprod, a, axis, dtype, out)


@replayed
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Running sums along an axis, NaN counting as 0; see `cumsum`."""
    return _running("nancumsum", lax.cumsum, a, axis, dtype, out, nan=0)


@replayed
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Array:
    """Running products along an axis, NaN counting as 1; see `cumsum`."""
    return _running("nancumprod", lax.cumprod, a, axis, dtype, out, nan=1)


def _standard(
    name: str,
    op: Callable[..., Array],
    x: Any,
    axis: int | None,
    dtype: Any,
    first: int | None,
) -> Array:
    x = as_array(as_operand(name, x))
    if x.ndim == 0:
        raise ValueError(f"numpy.{name}: one axis or more is needed, got a scalar.")
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"numpy.{name}: an array of shape {x.shape} needs an axis.")
        axis = 0
    axis = canonical_axis(name, axis, x.ndim)
    out = _running(name, op, x, axis, dtype, None)
    if first is None:
        return out
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return lax.concatenate([lax.full(shape, first, out.dtype), out], axis)


@replayed
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """Running sums along an axis, as the array API standard has them.

    Parameters
    ----------
    x : array_like
    axis : int, optional
        May be left out for rank 1.
    dtype : dtype-like, optional
        In which to add up. By default bools and narrow integers count in the default integer.
    include_initial : bool
        Begin with 0, which makes the result longer by one.

    Raises
    ------
    ValueError
        For a scalar, or several axes and none given.
    """
    if dtype is None:
        dtype = wide_integer(as_array(as_operand("cumulative_sum", x)).dtype)
    return _standard("cumulative_sum", lax.cumsum, x, axis, dtype, 0 if include_initial else None)


@replayed
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """Running products along an axis, in the dtypes of `cumulative_sum`, which see."""
    if dtype is None:
        dtype = wide_integer(as_array(as_operand("cumulative_prod", x)).dtype)
    return _standard("cumulative_prod", lax.cumprod, x, axis, dtype, 1 if include_initial else None)
