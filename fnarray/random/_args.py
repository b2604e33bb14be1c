"""What random functions accept: shapes, dtypes, parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array, aval_of
from ..core.dtypes import (
    canonicalize_dtype,
    is_float,
    is_inexact,
    is_integer,
    is_unsigned,
    promote_types,
)
from ..errors import TypePromotionError
from ..ops.kit.calls import broadcast
from ..ops.kit.canonical import canonical_shape

Shape = tuple[int, ...]

_KINDS = {
    "float": (is_float, float, "a float"),
    "inexact": (is_inexact, float, "a float or complex"),
    "int": (is_integer, int, "an int"),
    "uint": (is_unsigned, None, "an unsigned int"),
}


def dtype_of(name: str, dtype: Any, kind: str = "float") -> np.dtype:
    """Return the canonical dtype asked for, or the default of its kind.

    Raises
    ------
    ValueError
        For a dtype of another kind.
    """
    accepts, default, words = _KINDS[kind]
    if isinstance(dtype, Array):
        raise ValueError(f"random.{name}: dtype must be a dtype, got an array. Use x.dtype.")
    found = canonicalize_dtype(default or np.uint64 if dtype is None else dtype)
    if not accepts(found):
        raise ValueError(f"dtype argument to `{name}` must be {words} dtype, got {found}")
    return found


def shape_of(name: str, shape: Any, *params: Any) -> Shape:
    """Return the shape asked for, or that of the parameters together.

    Raises
    ------
    ValueError
        The parameters do not broadcast to the shape.
    TypeError
        The shape is no sequence of concrete sizes.
    """
    shapes = [aval_of(p).shape for p in params]
    if shape is None:
        return lax.broadcast_shapes(*shapes) if shapes else ()
    return check_shape(name, canonical_shape(name, shape), *shapes)


def check_shape(
    name: str, shape: Shape, *shapes: Shape, error: type[Exception] = ValueError
) -> Shape:
    """Return a shape; raise an error unless others broadcast to it."""
    if shapes:
        try:
            joined = np.broadcast_shapes(shape, *shapes)
        except ValueError:
            joined = None
        if joined != shape:
            raise error(
                f"random.{name}: parameters must broadcast to the shape argument {shape}, got "
                f"parameters of shapes {', '.join(map(str, shapes))}."
            )
    return shape


def param(name: str, x: Any, dtype: Any, shape: Shape | None = None) -> Array:
    """Return a parameter in the dtype of the samples, and in their shape if it is given.

    Raises
    ------
    TypePromotionError
        Values would be lost: the parameter's dtype does not promote to the samples'.
    """
    aval = aval_of(x)
    if not aval.weak_type and promote_types(aval.dtype, dtype) != dtype:
        raise TypePromotionError(
            f"random.{name}: cannot safely cast a parameter of type {aval.dtype} to {dtype}. "
            "Convert it with astype, or ask for samples of a wider dtype."
        )
    x = lax.convert_element_type(x, dtype)
    return x if shape is None else broadcast(x, shape)


def arguments(
    name: str, dtype: Any, shape: Any, *params: Any, kind: str = "float"
) -> tuple[Any, Shape, *tuple[Any, ...]]:
    """Return the dtype, the shape, and parameters in both: what most samplers begin with."""
    dtype = dtype_of(name, dtype, kind)
    shape = shape_of(name, shape, *params)
    return dtype, shape, *(param(name, x, dtype, shape) for x in params)
