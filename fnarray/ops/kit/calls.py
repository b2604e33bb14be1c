"""Operations as rules call them.

Rules run while an equation is transformed, in whatever trace is current then: what they call is
evaluated, recorded or transformed in turn. Operations are looked up in the registry by name, so
that every family can use every other's without importing it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.array import Array, ArrayImpl
from ...core.avals import ShapedArray
from ...core.trace import bind
from .registry import registry


def op(name: str, *args: Any, **params: Any) -> Any:
    """Apply the primitive of a name."""
    return bind(registry[name], *args, **params)


def const(like: Any, value: Any) -> ArrayImpl:
    """Return a scalar in the dtype of an array, as weak as it is."""
    aval = like.aval
    return ArrayImpl(np.asarray(value, aval.dtype), ShapedArray((), aval.dtype, aval.weak_type))


def full(aval: ShapedArray, value: Any) -> Any:
    """Return an array of one value."""
    scalar = ArrayImpl(np.asarray(value, aval.dtype), ShapedArray((), aval.dtype, aval.weak_type))
    return broadcast(scalar, aval.shape)


def mul(x: Any, y: Any) -> Any:
    """``x * y``, of one dtype; a Python number is taken in the other's."""
    return op("mul", x, const(x, y) if isinstance(y, int | float) else y)


def neg(x: Any) -> Any:
    """``-x``."""
    return op("neg", x)


def select(which: Any, on_true: Any, on_false: Any) -> Any:
    """``on_true`` where ``which``, else ``on_false``, which may be a Python number.

    A rank-0 case is broadcast to the shape of ``which``.
    """
    if not isinstance(on_true, Array):
        on_true = const(on_false, on_true)
    if not isinstance(on_false, Array):
        on_false = const(on_true, on_false)
    shape = which.shape or on_true.shape
    return op("select_n", which, broadcast(on_false, shape), broadcast(on_true, shape))


def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """Stretch a rank-0 array, or axes of size 1, to a shape."""
    if x.shape == shape:
        return x
    kept = tuple(range(len(shape) - x.ndim, len(shape)))
    return op("broadcast_in_dim", x, shape=shape, broadcast_dimensions=kept)


def reshape(x: Any, shape: Sequence[int]) -> Any:
    """Return the elements in another shape, in C order."""
    shape = tuple(shape)
    return x if x.shape == shape else op("reshape", x, new_sizes=shape, dimensions=None)


def expand(x: Any, axis: int) -> Any:
    """Insert an axis of size 1."""
    axes = tuple(i + (i >= axis) for i in range(x.ndim))
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    return op("broadcast_in_dim", x, shape=shape, broadcast_dimensions=axes)


def permute(x: Any, axes: Sequence[int]) -> Any:
    """Transpose by a permutation."""
    axes = tuple(axes)
    return x if axes == tuple(range(x.ndim)) else op("transpose", x, permutation=axes)


def moveaxis(x: Any, source: int, target: int) -> Any:
    """Move one axis, the others keeping their order."""
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return permute(x, order)


def reduce_sum(x: Any, axes: Sequence[int]) -> Any:
    """Sum along axes, which are left out of the result."""
    return op("reduce_sum", x, axes=tuple(axes)) if axes else x


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Convert to a dtype."""
    if x.dtype == dtype and x.aval.weak_type == weak_type:
        return x
    return op("convert_element_type", x, new_dtype=np.dtype(dtype), weak_type=weak_type)
