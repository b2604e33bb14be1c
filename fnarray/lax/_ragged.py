"""Products of rows with the matrix of their group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..control.scan import scan
from ..core.array import Array
from ..core.hooks import cut_as
from ..errors import ShapeError
from ..ops import bitwise, contract, cumulative, dynamic, elementwise, shape
from ..ops.convert import convert_element_type
from ..ops.fill import full
from ..ops.kit.canonical import as_array
from ..ops.select import select

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"]


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


class RaggedDotDimensionNumbers(NamedTuple):
    """Which axes `ragged_dot_general` contracts, batches, cuts into groups, and finds groups in.

    Attributes
    ----------
    dot_dimension_numbers : tuple
        As of `dot_general`.
    lhs_ragged_dimensions : sequence of one int
        The axis of the left operand that the groups cut.
    rhs_group_dimensions : sequence of int
        The axis of the right operand that has a matrix for each group, where there is one.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: None = None,
    out_sharding: Any = None,
) -> Array:
    """Contract operands of which one axis of the left is cut into groups.

    A free axis: each group meets the right operand's own part. A contracted axis: each group gives
    a result of its own, in a new leading axis. A batch axis: as `dot_general`.

    Parameters
    ----------
    lhs, rhs : array
    group_sizes : integer array
        Of the groups in its last axis; axes before it, if any, are the batch axes and those of
        ``lhs`` of the ragged one's kind before it.
    ragged_dot_dimension_numbers : RaggedDotDimensionNumbers
    precision, preferred_element_type
        As of `dot_general`.

    Raises
    ------
    ShapeError
        The axes do not fit.
    NotImplementedError
        For a ``group_offset``: slice the groups before.
    """
    lhs, rhs, sizes = map(as_array, (lhs, rhs, group_sizes))
    dot, ragged, grouped = ragged_dot_dimension_numbers
    if group_offset is not None:
        raise NotImplementedError(
            "lax.ragged_dot_general: group_offset must be None. Slice rhs instead."
        )
    if len(ragged) != 1:
        raise ShapeError(
            f"lax.ragged_dot_general: one axis of lhs must be ragged, got {tuple(ragged)}."
        )
    numbers = tuple(tuple(tuple(map(int, side)) for side in part) for part in dot)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    (axis,) = ragged
    if axis in lhs_batch:
        return contract.dot_general(lhs, rhs, numbers, **options)
    contracted = axis in lhs_contract
    if len(grouped) != (not contracted):
        raise ShapeError(
            "lax.ragged_dot_general: rhs has one axis of groups where a free axis is ragged, and "
            f"none where a contracted one is, got {tuple(grouped)}."
        )
    free = tuple(i for i in range(lhs.ndim) if i not in (*lhs_contract, *lhs_batch))
    of_kind = lhs_contract if contracted else free
    part = _parts(lhs, sizes, axis, (*lhs_batch, *of_kind[: of_kind.index(axis)]))
    groups = shape.iota("int32", sizes.shape[-1])

    def alone(_: None, g: Any) -> tuple[None, Array]:
        return None, contract.dot_general(part(g), rhs, numbers, **options)

    if contracted:
        return scan(alone, None, groups)[1]
    (at,) = grouped
    moved = [tuple(i - (i > at) for i in side) for side in (rhs_contract, rhs_batch)]
    fitting = ((lhs_contract, moved[0]), (lhs_batch, moved[1]))

    def added(total: Any, g: Any) -> tuple[Array, None]:
        own = dynamic.dynamic_index_in_dim(rhs, g, at, keepdims=False)
        one = contract.dot_general(part(g), own, fitting, **options)
        return (one if total is None else elementwise.add(total, one)), None

    first = added(None, groups[0])[0]
    return scan(added, full(first.shape, 0, first.dtype), groups)[0]


def _parts(lhs: Array, sizes: Array, axis: int, lead: tuple[int, ...]) -> Callable[[Any], Array]:
    """Return what gives the part of an operand that belongs to a group, with zeros elsewhere."""
    ends = cumulative.cumsum(sizes, sizes.ndim - 1)
    starts = elementwise.sub(ends, sizes)
    if sizes.ndim > 1 and sizes.shape[:-1] != tuple(lhs.shape[i] for i in lead):
        raise ShapeError(
            f"lax.ragged_dot_general: group_sizes of shape {sizes.shape} must have the axes "
            f"{lead} of lhs {lhs.shape} before the groups."
        )
    places = lead if sizes.ndim > 1 else ()
    row = shape.broadcasted_iota(sizes.dtype, lhs.shape, axis)
    zero = full(lhs.shape, 0, lhs.dtype)

    def part(group: Any) -> Array:
        first, end = (
            shape.broadcast_in_dim(
                dynamic.dynamic_index_in_dim(x, group, x.ndim - 1, keepdims=False),
                lhs.shape,
                places,
            )
            for x in (starts, ends)
        )
        inside = bitwise.bitwise_and(bitwise.ge(row, first), bitwise.lt(row, end))
        return select(inside, lhs, zero)

    return part
