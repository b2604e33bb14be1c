"""Choosing between arrays: where, select, piecewise, clip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.array import Array, aval_of
from ..core.dtypes import dtype_and_weak, is_bool, is_complex
from ..core.eager import replayed
from ..ops.bitwise import ne
from ..ops.elementwise import max as lax_max
from ..ops.elementwise import min as lax_min
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import moving
from ..ops.select import select_n
from ..ops.shape import broadcast_shapes
from ._promote import broadcast_to, operands, promote_args, promote_dtypes

__all__ = ["clip", "piecewise", "select"]


def as_condition(x: Any) -> Any:
    """Return a bool array: true where ``x`` is not zero."""
    if is_bool(aval_of(x).dtype):
        return as_array(x)
    return ne(x, convert(0, aval_of(x).dtype, aval_of(x).weak_type))


def choose_where(condition: Any, x: Any, y: Any) -> Array:
    """Choose elements of ``x`` where ``condition`` holds, of ``y`` elsewhere; all broadcast."""
    condition, x, y = operands("where", condition, x, y)
    condition = as_condition(condition)
    x, y = promote_dtypes(x, y)
    shape = broadcast_shapes(condition.shape, x.shape, y.shape)
    if condition.shape:
        condition = broadcast_to("where", condition, shape)
    return select_n(condition, broadcast_to("where", y, shape), broadcast_to("where", x, shape))


@replayed
def clip(
    arr: Any,
    /,
    min: Any = None,
    max: Any = None,
) -> Array:
    """Limit elements to the range from ``min`` to ``max``.

    Parameters
    ----------
    arr : array_like
        Real.
    min, max : array_like, optional
        Bounds; None is no bound. Where ``min`` exceeds ``max`` the result is ``max``.

    Returns
    -------
    Array
        Of the promoted dtype.

    Raises
    ------
    ValueError
        For complex arguments, which have no order.
    """
    (arr,) = operands("clip", arr)
    bounds = [x for x in (min, max) if x is not None]
    if any(is_complex(dtype_and_weak(x)[0]) for x in (arr, *bounds)):
        raise ValueError(
            "numpy.clip: complex numbers have no order. Clip real and imag, or the modulus."
        )
    arr = as_array(arr)
    if min is not None:
        arr = lax_max(*promote_args("clip", min, arr))
    if max is not None:
        arr = lax_min(*promote_args("clip", max, arr))
    return arr


@moving
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """For each place, take the choice whose condition is the first to hold there.

    Parameters
    ----------
    condlist : sequence of array_like of bool
    choicelist : sequence of array_like
        As many as conditions.
    default : array_like
        Taken where none holds.

    Raises
    ------
    ValueError
        For no conditions, or another number of choices.
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            f"numpy.select: one or more conditions and as many choices are needed, got "
            f"{len(condlist)} conditions and {len(choicelist)} choices."
        )
    *choices, out = promote_dtypes(*operands("select", *choicelist, default))
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        out = choose_where(condition, choice, out)
    return out


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Evaluate a function given by pieces.

    Parameters
    ----------
    x : array_like
    condlist : sequence of array_like of bool
        Where several hold, the last decides.
    funclist : sequence of callable or scalar
        One for each condition, and perhaps one more for where none holds (0 by default). Functions
        are called on all of ``x``, with ``*args`` and ``**kw``.

    Returns
    -------
    Array
        Of the dtype of ``x``.

    Raises
    ------
    ValueError
        For too few or too many functions.
    """
    (x,) = operands("piecewise", x)
    x = as_array(x)
    if isinstance(condlist, Array | np.ndarray) and condlist.shape == x.shape:
        condlist = [condlist]
    conditions = [as_condition(as_array(c)) for c in condlist]
    funcs = list(funclist)
    if len(funcs) == len(conditions):
        funcs.append(0)
    if len(funcs) != len(conditions) + 1:
        raise ValueError(
            f"numpy.piecewise: {len(conditions)} conditions need {len(conditions)} or "
            f"{len(conditions) + 1} functions, got {len(funcs)}."
        )

    def piece(f: Callable[..., Any] | Any) -> Array:
        value = f(x, *args, **kw) if callable(f) else f
        return convert(value, x.dtype)

    *pieces, out = map(piece, funcs)
    for condition, value in zip(conditions, pieces, strict=True):
        out = choose_where(condition, value, out)
    return broadcast_to("piecewise", out, x.shape)
