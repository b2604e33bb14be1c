"""Common shapes of derivative, transpose and batching rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.avals import ShapedArray
from ...core.dtypes import float0
from ...core.primitive import Missing, Primitive, RuleOf
from ...core.tangents import Undefined, Zero, is_undefined, is_zero, tangent_aval
from ...core.trace import bind
from .calls import add_any, broadcast, broadcast_in_dim, expand, full, reduce_sum, reshape

Tangents = Sequence[Any]

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
    return a if is_zero(b) else add_any(a, b)


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
        def jvp(primals: Sequence[Any], tangents: Tangents, /, **params: Any) -> tuple[Any, Any]:
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
        def jvp(primals: Sequence[Any], tangents: Tangents, /, **params: Any) -> tuple[Any, Any]:
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
    def jvp(primals: Sequence[Any], tangents: Tangents, /, **params: Any) -> tuple[Any, Any]:
        (x, y), (dx, dy) = primals, tangents
        out = bind(prim, x, y, **params)
        left = Zero(out.aval) if is_zero(dx) else bind(prim, dx, y, **params)
        right = Zero(out.aval) if is_zero(dy) else bind(prim, x, dy, **params)
        return out, add_tangents(left, right)

    return jvp


#: Derivative of a product of two operands: the sum of those with one of them replaced.
BILINEAR = RuleOf(_bilinear)


def _constant(prim: Primitive) -> Callable[..., Any]:
    def jvp(primals: Sequence[Any], tangents: Tangents, /, **params: Any) -> tuple[Any, Any]:
        out = bind(prim, *primals, **params)
        if prim.multiple_results:
            return out, [Zero(tangent_aval(o.aval)) for o in out]
        return out, Zero(tangent_aval(out.aval))

    return jvp


#: Derivative of an operation that is constant almost everywhere, or whose results are integers.
CONSTANT = RuleOf(_constant)


# ---- transpose -----------------------------------------------------------------------------------


#: Transpose of an operation that has none.
NOT_LINEAR = Missing("it is not linear")


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
    return broadcast_in_dim(x, shape, kept)


def all_spread(size: int, operands: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Give every operand the mapped axis."""
    return [x if b else spread(x, size) for x, b in zip(operands, batched, strict=True)]


def _elementwise_batch(prim: Primitive) -> Callable[..., Any]:
    def batch(size: int, xs: Sequence[Any], batched: Sequence[bool], /, **params: Any) -> Any:
        rank = max(x.ndim - b for x, b in zip(xs, batched, strict=True))

        def fit(x: Any, b: bool) -> Any:
            if b:
                missing = rank - (x.ndim - 1)
                if not missing:
                    return x
                shape = (size, *(1,) * missing, *x.shape[1:])
                return broadcast_in_dim(x, shape, (0, *range(missing + 1, rank + 1)))
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
        def batch(size: int, xs: Sequence[Any], batched: Sequence[bool], /, **params: Any) -> Any:
            moved = {k: shifts[k](v, size) if k in shifts else v for k, v in params.items()}
            outs = bind(prim, *all_spread(size, xs, batched), **moved)
            return (outs, (True,) * len(outs)) if prim.multiple_results else outs

        return batch

    return RuleOf(make)


def shifted(axes: int | tuple[int, ...], size: int = 0) -> Any:
    """Move axis numbers, one or a tuple, past a new leading axis."""
    return tuple(a + 1 for a in axes) if isinstance(axes, tuple) else axes + 1


def led_by(first: Any) -> Callable[[tuple[Any, ...], int], tuple[Any, ...]]:
    """Return a shift that puts an entry before a per-axis tuple: ``first``, or the size if None."""
    return lambda entries, size: (size if first is None else first, *entries)
