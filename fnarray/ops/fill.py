"""Arrays of one value."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from ..core.array import Array, aval_of, is_placed
from ..core.dtypes import canonicalize_dtype, python_scalar_dtypes
from ..core.hooks import cut_as, placed_like
from ..errors import ShapeError
from .kit.calls import convert
from .kit.moves import moving
from .shape import broadcast_in_dim

__all__ = ["empty", "full", "full_like", "zeros_like_array"]


def _sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(map(index, shape)) if np.iterable(shape) else (index(shape),)


def _check_scalar(name: str, value: Any) -> None:
    # A Python number has no dtype yet: what does not fit the default one may fit the one asked for.
    if type(value) not in python_scalar_dtypes and aval_of(value).shape:
        raise ShapeError(
            f"lax.{name}: fill_value must be a scalar, got shape {aval_of(value).shape}."
        )


@moving
def full(
    shape: int | Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: Any = None
) -> Array:
    """Array of ``shape`` whose every element is the scalar ``fill_value``.

    Parameters
    ----------
    shape : int or sequence of int
    fill_value : scalar
    dtype : dtype-like, optional
        That of ``fill_value``, weak if it is a Python scalar, where omitted.
    sharding : None
        Accepted for compatibility; arrays live on one device.

    Raises
    ------
    ShapeError
        ``fill_value`` is no scalar, or a size is negative.
    """
    _check_scalar("full", fill_value)
    if dtype is None:
        aval = aval_of(fill_value)
        value = convert(fill_value, aval.dtype, aval.weak_type)
    else:
        value = convert(fill_value, canonicalize_dtype(dtype))
    return broadcast_in_dim(value, _sizes(shape), ())


@moving
def full_like(
    x: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    sharding: Any = None,
) -> Array:
    """Array of the shape and dtype of ``x`` (or of those given), filled with one value.

    Weakly typed if ``x`` is and no ``dtype`` is given.
    """
    like = aval_of(x) if not hasattr(x, "shape") or isinstance(x, Array | np.ndarray) else x
    weak = dtype is None and getattr(like, "weak_type", False)
    element = canonicalize_dtype(like.dtype if dtype is None else dtype)
    _check_scalar("full_like", fill_value)
    sizes = _sizes(like.shape if shape is None else shape)
    out = broadcast_in_dim(convert(fill_value, element, weak), sizes, ())
    if sharding is not None:
        return cut_as(sharding, lambda: out)
    return out if shape is not None or not is_placed(x) else placed_like(out, x)


def zeros_like_array(x: Any) -> Array:
    """Zeros of the shape and dtype of ``x``."""
    return full_like(x, 0)


@moving
def empty(shape: int | Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Array:
    """Array of ``shape`` whose elements are unspecified; here they are zeros."""
    if out_sharding is not None:
        return cut_as(out_sharding, empty, shape, dtype)
    return full(shape, 0, dtype)
