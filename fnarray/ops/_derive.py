"""Common shapes of derivative and batching rules, and the few operations they are made of.

Rules run while an equation is transformed, in whatever trace is current then: what they call is
evaluated, recorded or transformed in turn. Operations are looked up in the registry by name, so
that every family can use every other's without importing it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.array import Array, ArrayImpl
from ..core.avals import ShapedArray
from ..core.dtypes import float0
from ..core.primitive import Primitive, RuleOf
from ..core.tangents import Undefined, Zero, is_undefined, is_zero, tangent_aval
from ..core.trace import bind
from ._registry import registry

Tangents = Sequence[Any]

# ---- operations ----------------------------------------------------------------------------------


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


# ---- tangents and cotangents ---------------------------------------------------------------------


def instantiate(t: Any) -> Any:
    """Return a tangent as an array: zeros for a symbolic zero."""
    if not is_zero(t):
        return t
    return full(t.aval, 0) if t.aval.dtype != float0 else float0_zeros(t.aval.shape)


def float0_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Return what stands for a tangent of integers."""
    return np.zeros(shape, float0)


def add_tangents(a: Any, b: Any) -> Any:
    """Return the sum of two tangents or cotangents, either of which may be a symbolic zero."""
    if is_zero(a):
        return b
    return a if is_zero(b) else op("add_any", a, b)


def unbroadcast(ct: Any, aval: ShapedArray) -> Any:
    """Sum a cotangent over what an elementwise operand was stretched along: the dual of that."""
    if is_zero(ct) or ct.shape == aval.shape:
        return ct
    if not aval.shape:
        return reduce_sum(ct, range(ct.ndim))
    axes = tuple(i for i, (n, m) in enumerate(zip(ct.shape, aval.shape, strict=True)) if n != m)
    return reshape(reduce_sum(ct, axes), aval.shape)


# ---- jvp -----------------------------------------------------------------------------------------


def partials(*rules: Callable[..., Any] | None) -> RuleOf:
    """Derivative of an operation of one result from its partial derivatives.

    ``rules[k](g, out, *operands, **params)`` is what the tangent ``g`` of operand ``k`` contributes
    to the tangent of the result ``out``; None where it contributes nothing. Elementwise
    contributions need not have the result's shape: they are stretched to it.
    """

    def make(prim: Primitive) -> Callable[..., Any]:
        def jvp(primals: Sequence[Any], tangents: Tangents, **params: Any) -> tuple[Any, Any]:
            out = bind(prim, *primals, **params)
            total: Any = Zero(tangent_aval(out.aval))
            for rule, g in zip(rules, tangents, strict=True):
                if rule is not None and not is_zero(g):
                    part = rule(g, out, *primals, **params)
                    if not is_zero(part):
                        total = add_tangents(total, broadcast(part, out.shape))
            return out, total

        return jvp

    return RuleOf(make)


def linear_in(*positions: int) -> RuleOf:
    """Derivative of an operation that is jointly linear in some operands, whatever the others are.

    The tangent is the operation itself on the tangents; zeros among several are made arrays. No
    positions stand for all of them.
    """

    def make(prim: Primitive) -> Callable[..., Any]:
        def jvp(primals: Sequence[Any], tangents: Tangents, **params: Any) -> tuple[Any, Any]:
            out = bind(prim, *primals, **params)
            linear = positions or range(len(primals))
            if all(is_zero(tangents[k]) for k in linear):
                return out, Zero(tangent_aval(out.aval))
            operands = list(primals)
            for k in linear:
                operands[k] = instantiate(tangents[k])
            return out, bind(prim, *operands, **params)

        return jvp

    return RuleOf(make)


#: Derivative of an operation of one operand, linear in it.
LINEAR = linear_in(0)


def _bilinear(prim: Primitive) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Tangents, **params: Any) -> tuple[Any, Any]:
        (x, y), (dx, dy) = primals, tangents
        out = bind(prim, x, y, **params)
        left = Zero(out.aval) if is_zero(dx) else bind(prim, dx, y, **params)
        right = Zero(out.aval) if is_zero(dy) else bind(prim, x, dy, **params)
        return out, add_tangents(left, right)

    return jvp


#: Derivative of a product of two operands: the sum of those with one of them replaced.
BILINEAR = RuleOf(_bilinear)


def _constant(prim: Primitive) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Tangents, **params: Any) -> tuple[Any, Any]:
        out = bind(prim, *primals, **params)
        if prim.multiple_results:
            return out, [Zero(tangent_aval(o.aval)) for o in out]
        return out, Zero(tangent_aval(out.aval))

    return jvp


#: Derivative of an operation that is constant almost everywhere, or whose results are integers.
CONSTANT = RuleOf(_constant)


# ---- transpose -----------------------------------------------------------------------------------


def transposed(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Transpose of an operation of one operand: ``rule(ct, operand_aval, **params)``."""

    def transpose(ct: Any, x: Undefined, **params: Any) -> list[Any]:
        return [rule(ct, x.aval, **params)]

    return transpose


def transposed_each(*rules: Callable[..., Any] | None) -> Callable[..., Any]:
    """Transpose of an operation linear in each of some operands, one rule for each operand.

    ``rules[k](ct, *operands, **params)`` gives the cotangent of operand ``k`` where that is the
    linear one; elementwise results are summed over what the operand was stretched along.
    """

    def transpose(ct: Any, *operands: Any, **params: Any) -> list[Any]:
        return [
            unbroadcast(rule(ct, *operands, **params), x.aval)
            if rule is not None and is_undefined(x)
            else None
            for rule, x in zip(rules, operands, strict=True)
        ]

    return transpose


# ---- batch ---------------------------------------------------------------------------------------


def spread(x: Any, size: int) -> Any:
    """Give an operand that does not depend on the mapped axis that axis, at position 0."""
    shape = (size, *x.shape)
    kept = tuple(range(1, len(shape)))
    return op("broadcast_in_dim", x, shape=shape, broadcast_dimensions=kept)


def all_spread(size: int, operands: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Give every operand the mapped axis."""
    return [x if b else spread(x, size) for x, b in zip(operands, batched, strict=True)]


def _elementwise_batch(prim: Primitive) -> Callable[..., Any]:
    def batch(size: int, xs: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
        rank = max(x.ndim - b for x, b in zip(xs, batched, strict=True))

        def fit(x: Any, b: bool) -> Any:
            if b:
                missing = rank - (x.ndim - 1)
                return reshape(x, (size, *(1,) * missing, *x.shape[1:])) if missing else x
            return expand(x, 0) if x.ndim else x

        outs = bind(prim, *map(fit, xs, batched), **params)
        return (outs, (True,) * len(outs)) if prim.multiple_results else outs

    return batch


#: Batching of an elementwise operation: the mapped axis is one more.
ELEMENTWISE_BATCH = RuleOf(_elementwise_batch)


def one_more_axis(**shifts: Callable[..., Any]) -> RuleOf:
    """Batching by changed params: every operand gets the mapped axis, params are told of it.

    ``shifts[name](value, size)`` is the param for operands with one more axis in front; params
    without a shift are kept.
    """

    def make(prim: Primitive) -> Callable[..., Any]:
        def batch(size: int, xs: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
            moved = {k: shifts[k](v, size) if k in shifts else v for k, v in params.items()}
            outs = bind(prim, *all_spread(size, xs, batched), **moved)
            return (outs, (True,) * len(outs)) if prim.multiple_results else outs

        return batch

    return RuleOf(make)


def shifted(axes: Any, size: int = 0) -> Any:
    """Move axis numbers, one or a tuple, past a new leading axis."""
    return tuple(a + 1 for a in axes) if isinstance(axes, tuple) else axes + 1


def led_by(first: Any) -> Callable[[tuple[Any, ...], int], tuple[Any, ...]]:
    """Return a shift that puts an entry before a per-axis tuple: ``first``, or the size if None."""
    return lambda entries, size: (size if first is None else first, *entries)
