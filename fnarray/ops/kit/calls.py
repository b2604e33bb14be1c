"""Operations as rules call them: the one place below ``lax`` where operations have names.

Rules run while an equation is transformed, in whatever trace is current then: what they call is
evaluated, recorded or transformed in turn. Primitives are looked up in the registry when they are
called, so that every family can use every other's without importing it; a test calls each.

Operands are arrays of one dtype. A Python number beside an array is taken in its dtype, as weak as
it is. Names that Python has too (`abs`, `max`, `slice`, ...) are used as ``calls.abs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import hooks
from ...core.array import Array, ArrayImpl, aval_of
from ...core.avals import ShapedArray
from ...core.dtypes import int32, is_complex, python_scalar_dtypes
from ...core.trace import as_array, bind
from .registry import registry

Number = int | float | complex
Operand = Array | Number | np.generic
Shape = tuple[int, ...]


# ---- constants -----------------------------------------------------------------------------------


def const(like: Array, value: Any) -> ArrayImpl:
    """Return a scalar in the dtype of an array, as weak as it is."""
    aval = like.aval
    return ArrayImpl(np.asarray(value, aval.dtype), ShapedArray((), aval.dtype, aval.weak_type))


def full(aval: ShapedArray, value: Any) -> Array:
    """Return an array of one value."""
    scalar = ArrayImpl(np.asarray(value, aval.dtype), ShapedArray((), aval.dtype, aval.weak_type))
    whole = broadcast(scalar, aval.shape)
    return whole if aval.place is None else hooks.placed_as(whole, aval)


def iota(shape: Shape, axis: int, dtype: Any = int32) -> Array:
    """Return each element's position along an axis."""
    return bind(registry["iota"], dtype=dtype, shape=shape, dimension=axis)


# ---- elementwise ---------------------------------------------------------------------------------


def _unary(name: str, x: Array) -> Array:
    return bind(registry[name], x)


def _binary(name: str, x: Operand, y: Operand) -> Array:
    if isinstance(y, Number):
        y = const(x, y)  # type: ignore[arg-type]
    elif isinstance(x, Number):
        x = const(y, x)  # type: ignore[arg-type]
    return bind(registry[name], x, y)


def neg(x: Array) -> Array:
    """``-x``."""
    return _unary("neg", x)


def abs(x: Array) -> Array:
    """Magnitude."""
    return _unary("abs", x)


def sign(x: Array) -> Array:
    """``x / |x|``, or 0."""
    return _unary("sign", x)


def exp(x: Array) -> Array:
    """Exponential."""
    return _unary("exp", x)


def exp2(x: Array) -> Array:
    """``2 ** x``."""
    return _unary("exp2", x)


def log(x: Array) -> Array:
    """Natural logarithm."""
    return _unary("log", x)


def real(x: Array) -> Array:
    """Real part of complex elements."""
    return _unary("real", x)


def imag(x: Array) -> Array:
    """Imaginary part of complex elements."""
    return _unary("imag", x)


def conj(x: Array) -> Array:
    """Conjugate; real arrays are returned as they are."""
    return bind(registry["conj"], x, input_dtype=x.dtype) if is_complex(x.dtype) else x


def complex(re: Operand, im: Operand) -> Array:
    """Complex array of its parts."""
    return _binary("complex", re, im)


def add(x: Operand, y: Operand) -> Array:
    """``x + y``."""
    return _binary("add", x, y)


def add_any(x: Array, y: Array) -> Array:
    """``x + y`` of tangents or cotangents."""
    return bind(registry["add_any"], x, y)


def sub(x: Operand, y: Operand) -> Array:
    """``x - y``."""
    return _binary("sub", x, y)


def mul(x: Operand, y: Operand) -> Array:
    """``x * y``."""
    return _binary("mul", x, y)


def div(x: Operand, y: Operand) -> Array:
    """``x / y``."""
    return _binary("div", x, y)


def max(x: Operand, y: Operand) -> Array:
    """Return the larger."""
    return _binary("max", x, y)


def eq(x: Operand, y: Operand) -> Array:
    """Whether ``x == y``."""
    return _binary("eq", x, y)


def ne(x: Operand, y: Operand) -> Array:
    """Whether ``x != y``."""
    return _binary("ne", x, y)


def ge(x: Operand, y: Operand) -> Array:
    """Whether ``x >= y``."""
    return _binary("ge", x, y)


def gt(x: Operand, y: Operand) -> Array:
    """Whether ``x > y``."""
    return _binary("gt", x, y)


def le(x: Operand, y: Operand) -> Array:
    """Whether ``x <= y``."""
    return _binary("le", x, y)


def lt(x: Operand, y: Operand) -> Array:
    """Whether ``x < y``."""
    return _binary("lt", x, y)


def bitwise_and(x: Operand, y: Operand) -> Array:
    """``x & y``."""
    return _binary("and", x, y)


def bitwise_or(x: Operand, y: Operand) -> Array:
    """``x | y``."""
    return _binary("or", x, y)


def shift_left(x: Operand, y: Operand) -> Array:
    """``x << y``."""
    return _binary("shift_left", x, y)


def shift_right_logical(x: Operand, y: Operand) -> Array:
    """``x >> y`` of the bits, without their sign."""
    return _binary("shift_right_logical", x, y)


def select_n(which: Array, *cases: Array) -> Array:
    """Choose among cases by number, or the second where a mask holds."""
    return bind(registry["select_n"], which, *cases)


def select(which: Any, on_true: Operand, on_false: Operand) -> Array:
    """``on_true`` where ``which``, else ``on_false``, of which one may be a number.

    A rank-0 case is broadcast to the shape of ``which``.
    """
    if not isinstance(on_true, Array):
        on_true = const(on_false, on_true)  # type: ignore[arg-type]
    if not isinstance(on_false, Array):
        on_false = const(on_true, on_false)
    shape = which.shape or on_true.shape
    return select_n(which, broadcast(on_false, shape), broadcast(on_true, shape))


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Array:
    """Convert to a canonical dtype, weak or not; nothing where there is none to do.

    A Python scalar is converted at once, traced or not: it is a constant.
    """
    dtype = np.dtype(dtype)
    prim = registry["convert_element_type"]
    if type(x) in python_scalar_dtypes:
        data = prim.eval(np.asarray(x), new_dtype=dtype, weak_type=weak_type)
        return ArrayImpl(np.asarray(data), ShapedArray((), dtype, weak_type))
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return as_array(x)
    return bind(prim, x, new_dtype=dtype, weak_type=weak_type)


def convert_like(x: Array, like: Array) -> Array:
    """Convert to the dtype of another array; one of that dtype stays as weak as it is."""
    return x if x.dtype == like.dtype else convert(x, like.dtype)


# ---- shapes --------------------------------------------------------------------------------------


def broadcast_in_dim(x: Array, shape: Shape, axes: Sequence[int]) -> Array:
    """Lay an array's axes at given ones of a shape, and repeat it along the others."""
    prim = registry["broadcast_in_dim"]
    return bind(prim, x, shape=shape, broadcast_dimensions=tuple(axes))


def broadcast(x: Array, shape: Shape) -> Array:
    """Stretch a rank-0 array, or axes of size 1, to a shape."""
    if x.shape == shape:
        return x
    return broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))


def expand(x: Array, axis: int) -> Array:
    """Insert an axis of size 1."""
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    return broadcast_in_dim(x, shape, [i + (i >= axis) for i in range(x.ndim)])


def reshape(x: Array, shape: Sequence[int]) -> Array:
    """Return the elements in another shape, in C order."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    return bind(registry["reshape"], x, new_sizes=shape, dimensions=None)


def permute(x: Array, axes: Sequence[int]) -> Array:
    """Transpose by a permutation."""
    axes = tuple(axes)
    return x if axes == tuple(range(x.ndim)) else bind(registry["transpose"], x, permutation=axes)


def moveaxis(x: Array, source: int, target: int) -> Array:
    """Move one axis, the others keeping their order."""
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return permute(x, order)


def slice(x: Array, start: Shape, stop: Shape, strides: Shape | None = None) -> Array:
    """Return the elements between two corners, or every so many of them."""
    prim = registry["slice"]
    return bind(prim, x, start_indices=start, limit_indices=stop, strides=strides)


def pad(x: Array, value: Operand, config: Sequence[tuple[int, int, int]]) -> Array:
    """Put a value before, after and between the elements of each axis."""
    value = value if isinstance(value, Array) else const(x, value)
    return bind(registry["pad"], x, value, padding_config=tuple(config))


def rev(x: Array, axes: Sequence[int]) -> Array:
    """Reverse the elements along axes."""
    return bind(registry["rev"], x, dimensions=tuple(axes))


def concatenate(parts: Sequence[Array], axis: int) -> Array:
    """Join arrays along an axis."""
    return bind(registry["concatenate"], *parts, dimension=axis)


# ---- folds, places, systems ----------------------------------------------------------------------


def _reduce(name: str, x: Array, axes: Sequence[int]) -> Array:
    axes = tuple(axes)
    return bind(registry[name], x, axes=axes) if axes else x


def reduce_sum(x: Array, axes: Sequence[int]) -> Array:
    """Sum along axes, which are left out of the result."""
    return _reduce("reduce_sum", x, axes)


def reduce_prod(x: Array, axes: Sequence[int]) -> Array:
    """Multiply along axes."""
    return _reduce("reduce_prod", x, axes)


def reduce_max(x: Array, axes: Sequence[int]) -> Array:
    """Return the largest elements along axes."""
    return _reduce("reduce_max", x, axes)


def reduce_min(x: Array, axes: Sequence[int]) -> Array:
    """Return the smallest elements along axes."""
    return _reduce("reduce_min", x, axes)


def reduce_or(x: Array, axes: Sequence[int]) -> Array:
    """Whether any element along axes holds."""
    return _reduce("reduce_or", x, axes)


def argmax(x: Array, axis: int) -> Array:
    """Return where along an axis the largest element is, int32."""
    return bind(registry["argmax"], x, axes=(axis,), index_dtype=int32)


def cumprod(x: Array, axis: int, reverse: bool = False) -> Array:
    """Return running products along an axis."""
    return bind(registry["cumprod"], x, axis=axis, reverse=reverse)


def triangular_solve(
    a: Array,
    b: Array,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve for ``x`` a system of triangular matrices: ``a @ x = b``, or ``x @ a = b``."""
    return bind(
        registry["triangular_solve"],
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )


def scatter_add(
    x: Array,
    indices: Array,
    updates: Array,
    *,
    dimension_numbers: Any,
    indices_are_sorted: bool,
    mode: Any,
    unique_indices: bool,
    update_jaxpr: Any,
) -> Array:
    """Add windows to an array at places; the graph is that of the addition."""
    return bind(
        registry["scatter-add"],
        x,
        indices,
        updates,
        dimension_numbers=dimension_numbers,
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        unique_indices=unique_indices,
        update_consts=(),
        update_jaxpr=update_jaxpr,
    )
