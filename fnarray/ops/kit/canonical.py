"""Canonical metadata: what a user may pass as a shape, an axis or an array, made exact."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...core.trace import as_array as as_array
from ...errors import ShapeError

Shape = tuple[int, ...]


def canonical_ints(name: str, what: str, values: Any) -> Shape:
    """Return a sequence of integers (or one) as a tuple of ``int``.

    Raises
    ------
    TypeError
        For values that are not concrete integers.
    """
    one = hasattr(values, "__index__") and getattr(values, "ndim", 0) == 0
    sizes: Any = (values,) if one else values
    try:
        return tuple(map(operator.index, sizes))
    except TypeError as error:
        got = f"({', '.join(map(str, sizes))})" if type(values) in (tuple, list) else values
        # People search for JAX's words.
        law = "Shapes must be 1D sequences of concrete values of integer type. "
        raise ShapeError(
            f"lax.{name}: {what} must be a sequence of concrete integers, got {got}. "
            f"{law * (what == 'shape')}Take it from x.shape, or mark the argument it depends on "
            "static (static_argnums, static_argnames)."
        ) from error


def canonical_shape(name: str, shape: Any) -> Shape:
    """Return a shape as a tuple of ``int``; shapes are concrete and not negative."""
    sizes = canonical_ints(name, "shape", shape)
    if any(n < 0 for n in sizes):
        raise ShapeError(f"lax.{name}: shape must not have negative sizes, got {sizes}.")
    return sizes


def canonical_axis(name: str, axis: int, ndim: int) -> int:
    """Return an axis counted from the front.

    Raises
    ------
    numpy.exceptions.AxisError
        An `IndexError` and `ValueError`, for an axis out of range.
    """
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(
            f"lax.{name}: axis {axis} is out of bounds for array of dimension {ndim}."
        )
    return axis % ndim
