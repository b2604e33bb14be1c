"""What programs ask of arrays: dtypes, shapes as values, the shape of another."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from ..core.array import Array, aval_of
from ..core.dtypes import canonicalize_dtype, dtype_and_weak
from .fill import full
from .kit.canonical import as_array
from .shape import broadcast_in_dim

__all__ = ["broadcast_like", "dtype", "shape_as_value"]


def dtype(x: Any) -> Any:
    """Return the canonical dtype of an array, a number, or what stands for a dtype.

    Raises
    ------
    ValueError
        For None.
    TypeError
        For lists, and other values that have no dtype.
    """
    if x is None:
        raise ValueError("lax.dtype: invalid argument None. Give an array, a number or a dtype.")
    if isinstance(x, str | type | np.dtype):
        return canonicalize_dtype(x)
    try:
        return dtype_and_weak(x)[0]
    except TypeError as error:
        raise TypeError(f"lax.dtype: cannot determine the dtype of {x!r}.") from error


def shape_as_value(shape: Sequence[int]) -> Any:
    """Return a shape as an array of int32."""
    sizes = tuple(map(index, shape))
    return np.asarray(sizes, np.int32) if sizes else full((0,), 0, np.int32)


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """Broadcast an array to the shape of another, as NumPy would.

    Raises
    ------
    ValueError
        The shapes do not fit.
    """
    old, shape = aval_of(arr).shape, aval_of(like_arr).shape
    if old == shape:
        return as_array(arr)
    start = len(shape) - len(old)
    if start < 0 or any(n not in (1, m) for n, m in zip(old, shape[start:], strict=True)):
        raise ValueError(f"lax.broadcast_like: cannot broadcast shape {old} to shape {shape}.")
    if old == shape:
        return as_array(arr)
    return broadcast_in_dim(arr, shape, tuple(range(start, len(shape))))
