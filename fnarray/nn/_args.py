"""Operands of the functions written over ``lax``."""

from __future__ import annotations

from typing import Any

from .. import lax
from ..core.array import Array, aval_of
from ..core.dtypes import lattice_result_type, to_inexact
from ..ops.kit.calls import convert


def inexact_operands(name: str, *xs: Any) -> tuple[Array, ...]:
    """Return operands in their common inexact dtype, and of one rank (or rank 0).

    Raises
    ------
    TypeError
        An operand is neither an array nor a number, named by function and position.
    """
    avals = []
    for position, x in enumerate(xs):
        try:
            avals.append(aval_of(x))
        except TypeError:
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(x)} at position "
                f"{position}. Convert it with fnarray.numpy.asarray."
            ) from None
    dtype, weak = lattice_result_type([(a.dtype, a.weak_type) for a in avals])
    dtype = to_inexact(dtype)
    rank = max(a.ndim for a in avals)
    converted = (convert(x, dtype, weak) for x in xs)
    return tuple(x if x.ndim in (0, rank) else lax.broadcast_to_rank(x, rank) for x in converted)


def strong_operands(name: str, *args: Any) -> list[Array]:
    """Return operands as `inexact_operands` does, none of them weakly typed."""
    return [convert(x, x.dtype) for x in inexact_operands(name, *args)]
