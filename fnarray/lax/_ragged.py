"""Products of rows with the matrix of their group."""

from __future__ import annotations

from typing import Any

from ..control.scan import scan
from ..core.array import Array
from ..core.hooks import cut_as
from ..errors import ShapeError
from ..ops import bitwise, contract, cumulative, elementwise, shape
from ..ops.convert import convert_element_type, select
from ..ops.fill import full
from ..ops.kit.canonical import as_array

__all__ = ["ragged_dot"]


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply consecutive groups of rows by a matrix each; rows beyond the last group give 0.

    Parameters
    ----------
    lhs : array of shape (m, k)
    rhs : array of shape (g, k, n)
    group_sizes : integer array of shape (g,)
        How many rows each group has, from the first row on; may be traced.
    precision, preferred_element_type
        As of `dot_general`.

    Returns
    -------
    Array
        Of shape ``(m, n)``.

    Raises
    ------
    ShapeError
        The shapes do not fit.
    NotImplementedError
        For a ``group_offset``: slice the groups before.
    """
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            ragged_dot,
            lhs,
            rhs,
            group_sizes,
            precision,
            preferred_element_type,
            group_offset,
        )
    lhs, rhs, sizes = map(as_array, (lhs, rhs, group_sizes))
    if group_offset is not None:
        raise NotImplementedError("lax.ragged_dot: group_offset must be None. Slice rhs instead.")
    fits = lhs.ndim == 2 and rhs.ndim == 3 and lhs.shape[1] == rhs.shape[1]
    if not fits or sizes.shape != rhs.shape[:1]:
        raise ShapeError(
            "lax.ragged_dot: expected shapes (m, k), (g, k, n) and (g,), got "
            f"{lhs.shape}, {rhs.shape} and {sizes.shape}."
        )
    row = shape.broadcasted_iota(sizes.dtype, (lhs.shape[0], rhs.shape[2]), 0)
    ends = cumulative.cumsum(sizes)
    starts = elementwise.sub(ends, sizes)

    def product(x: Any, y: Any) -> Array:
        numbers = (((1,), (0,)), ((), ()))
        return contract.dot_general(x, y, numbers, precision, preferred_element_type)

    def add(total: Any, group: Any) -> Any:
        matrix, start, end = group
        start, end = (shape.broadcast(x, row.shape) for x in (start, end))
        mine = bitwise.bitwise_and(bitwise.ge(row, start), bitwise.lt(row, end))
        return select(mine, product(lhs, matrix), total), None

    dtype = preferred_element_type or elementwise.mul(lhs[:0, :0], rhs[:0, 0, :0]).dtype
    zeros = convert_element_type(full(row.shape, 0), dtype)
    return scan(add, zeros, (rhs, starts, ends))[0]
