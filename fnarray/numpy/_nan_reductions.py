"""Reductions that leave NaN out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import lax
from ..core.array import Array
from ..core.dtypes import is_inexact
from ..core.eager import replayed
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ._promote import as_operand, broadcast_to, no_out
from ._reductions import Axis, all, argmax, argmin, max, mean, min, prod, sum, var
from ._select import choose_where

__all__ = [
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _is_nan(a: Array) -> Array:
    return lax.ne(a, a)


def _without_nan(name: str, a: Any, value: Any) -> tuple[Array, bool]:
    """The array with a value in place of NaN, and whether it can hold NaN at all."""
    a = as_array(as_operand(name, a))
    if not is_inexact(a.dtype):
        return a, False
    return choose_where(_is_nan(a), convert(value, a.dtype), a), True


@replayed
def nansum(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Sum of the elements that are not NaN; see `sum`."""
    no_out("nansum", out)
    return sum(_without_nan("nansum", a, 0)[0], axis, dtype, None, keepdims, initial, where)


@replayed
def nanprod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Product of the elements that are not NaN; see `prod`."""
    no_out("nanprod", out)
    return prod(_without_nan("nanprod", a, 1)[0], axis, dtype, None, keepdims, initial, where)


def _of_numbers(
    name: str, reduce: Callable[[Array], Array], a: Any, limit: float, nothing: Any, how: Any
) -> Array:
    """Reduce an array whose NaN count as a limit, which never wins; ``nothing`` where all are."""
    filled, possible = _without_nan(name, a, limit)
    found = reduce(filled)
    if not possible or nothing is None:
        return found
    axis, keepdims = how
    missing = all(_is_nan(as_array(a)), axis, keepdims=bool(keepdims))
    return choose_where(missing, convert(nothing, found.dtype), found)


@replayed
def nanmax(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Largest element that is not NaN; NaN where all are. See `max`."""
    no_out("nanmax", out)

    def largest(a: Array) -> Array:
        return max(a, axis, None, keepdims, initial, where)

    nothing = math.nan if initial is None else None
    return _of_numbers("nanmax", largest, a, -math.inf, nothing, (axis, keepdims))


@replayed
def nanmin(
    a: Any,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Smallest element that is not NaN; NaN where all are. See `min`."""
    no_out("nanmin", out)

    def smallest(a: Array) -> Array:
        return min(a, axis, None, keepdims, initial, where)

    nothing = math.nan if initial is None else None
    return _of_numbers("nanmin", smallest, a, math.inf, nothing, (axis, keepdims))


@replayed
def nanmean(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    where: Any = None,
) -> Array:
    """Mean of the elements that are not NaN; NaN where all are. See `mean`."""
    no_out("nanmean", out)
    return mean(a, axis, dtype, None, keepdims, where=_not_nan("nanmean", a, where))


def _not_nan(name: str, a: Any, where: Any) -> Any:
    a = as_array(as_operand(name, a))
    if not is_inexact(a.dtype):
        return where
    here = lax.eq(a, a)
    if where is None:
        return here
    return lax.bitwise_and(here, broadcast_to(name, as_array(where), a.shape))


@replayed
def nanvar(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """Variance of the elements that are not NaN; see `var`."""
    no_out("nanvar", out)
    here = _not_nan("nanvar", a, where)
    return var(a, axis, dtype, None, ddof, keepdims, where=here, mean=mean)


@replayed
def nanstd(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """Standard deviation of the elements that are not NaN; see `std`."""
    no_out("nanstd", out)
    return lax.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))


@replayed
def nanargmax(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the first largest element that is not NaN; -1 where all are. See `argmax`."""
    no_out("nanargmax", out)

    def place(a: Array) -> Array:
        return argmax(a, axis, None, keepdims)

    return _of_numbers("nanargmax", place, a, -math.inf, -1, (axis, keepdims))


@replayed
def nanargmin(
    a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Index of the first smallest element that is not NaN; -1 where all are. See `argmin`."""
    no_out("nanargmin", out)

    def place(a: Array) -> Array:
        return argmin(a, axis, None, keepdims)

    return _of_numbers("nanargmin", place, a, math.inf, -1, (axis, keepdims))
