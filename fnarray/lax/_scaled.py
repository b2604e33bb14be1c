"""Products of operands that are kept narrow, with a scale for each block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.array import Array
from ..errors import ShapeError
from ..ops import contract, elementwise, shape
from ..ops.convert import convert_element_type
from ..ops.kit.canonical import as_array

__all__ = ["scaled_dot"]


def unscaled(name: str, x: Array, scale: Any, dtype: Any) -> Array:
    """Return an operand times its scales, each of which is for a block along every axis."""
    x = convert_element_type(x, dtype)
    if scale is None:
        return x
    scale = as_array(scale)
    if scale.ndim != x.ndim or any(n % s for n, s in zip(x.shape, scale.shape, strict=True) if s):
        raise ShapeError(
            f"{name}: scales of shape {scale.shape} do not divide an operand of shape {x.shape}: "
            "each axis must be a multiple of theirs."
        )
    split = [k for n, s in zip(x.shape, scale.shape, strict=True) for k in (s, n // max(s, 1))]
    each = shape.broadcast_in_dim(
        convert_element_type(scale, dtype), split, tuple(range(0, len(split), 2))
    )
    return elementwise.mul(x, shape.reshape(each, x.shape))


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: Sequence[Any] | None = None,
    preferred_element_type: Any = None,
) -> Array:
    """Contract two operands, each times its scales: `dot_general` of what they stand for.

    Parameters
    ----------
    lhs, rhs : array
    lhs_scale, rhs_scale : array, optional
        Of the operand's rank; an axis of the operand is a multiple of the scales'.
    dimension_numbers : optional
        As of `dot_general`; by default the last axis meets the one before the last, and of three
        axes the first is a batch.
    preferred_element_type : dtype, optional
        In which to multiply; by default bfloat16, as in JAX.

    Raises
    ------
    ShapeError
        Scales that do not divide their operand.
    """
    lhs, rhs = as_array(lhs), as_array(rhs)
    dtype = "bfloat16" if preferred_element_type is None else preferred_element_type
    if dimension_numbers is None:
        batch = tuple(range(lhs.ndim - 2))
        dimension_numbers = (((lhs.ndim - 1,), (rhs.ndim - 2,)), (batch, batch))
    return contract.dot_general(
        unscaled("scaled_dot", lhs, lhs_scale, dtype),
        unscaled("scaled_dot", rhs, rhs_scale, dtype),
        dimension_numbers,
        preferred_element_type=dtype,
    )
