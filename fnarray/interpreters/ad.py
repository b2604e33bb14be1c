"""Derivatives of primitives that extensions declare, named as in ``jax.interpreters.ad``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.lazy import absent
from ..core.primitive import Primitive
from ..core.tangents import Undefined, Zero, is_undefined, tangent_aval
from ..core.tree_nodes import register_pytree_node
from ..extend._primitive import Rules, as_aval
from ..ops.kit.calls import add_any, full
from ..ops.kit.registry import registry
from ..ops.kit.rules import BILINEAR, LINEAR, add_tangents, instantiate, partials
from ..transforms.derivative import DerivativeTrace, JVPTracer

__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]
__dir__ = __all__.copy

Rule = Callable[..., Any]
JVPTrace = DerivativeTrace
UndefinedPrimal = Undefined
add_jaxvals = add_any
add_jaxvals_p = registry["add_any"]
is_undefined_primal = is_undefined
instantiate_zeros = instantiate
# Rules hand them out of `vmap` and `jit`: a tree without leaves there, as in JAX.
register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))


def zeros_like_aval(aval: Any) -> Any:
    """Return zeros of an aval."""
    return full(as_aval(aval), 0)


def _transposing(rule: Rule, prim: Primitive) -> Rule:
    def transpose(ct: Any, /, *operands: Any, **params: Any) -> list[Any]:
        found = rule(ct, *operands, **params)
        if found is Zero:  # the class stands for zeros of all operands
            found = [Zero(tangent_aval(x.aval)) if is_undefined(x) else None for x in operands]
        return list(found)

    return transpose


def _same(rule: Rule, prim: Primitive) -> Rule:
    return rule


def _differentiating(rule: Rule, prim: Primitive) -> Rule:
    prim.linearize = None  # the rule is the whole of what is said of derivatives
    return rule


#: ``rule(primals, tangents, **params) -> (out, tangent)``; tangents may be `Zero`.
primitive_jvps = Rules("jvp", _differentiating, _same)
#: ``rule(ct, *operands, **params) -> cotangents``; linear operands come as `UndefinedPrimal`.
primitive_transposes = Rules("transpose", _transposing, _same)


def get_primitive_transpose(prim: Primitive) -> Rule:
    """Return a primitive's transpose; raise `NotImplementedError` where it has none."""
    return prim.rule("transpose")


def deflinear2(prim: Primitive, transpose: Rule) -> None:
    """Declare that a primitive of one operand is linear: ``transpose(ct, operand, **params)``."""
    primitive_jvps[prim] = LINEAR.make(prim)
    primitive_transposes[prim] = transpose


def deflinear(prim: Primitive, transpose: Rule) -> None:
    """Declare that a primitive of one operand is linear: ``transpose(ct, **params)``."""
    deflinear2(prim, lambda ct, /, *_, **params: transpose(ct, **params))


def defjvp(prim: Primitive, *rules: Rule | None) -> None:
    """Declare partial derivatives: ``rule(tangent, *operands, **params)``, None for zero."""

    def of(rule: Rule | None) -> Rule | None:
        return rule and (lambda g, out, /, *xs, **params: rule(g, *xs, **params))

    defjvp2(prim, *map(of, rules))


def defjvp2(prim: Primitive, *rules: Rule | None) -> None:
    """Declare partial derivatives: ``rule(tangent, out, *operands, **params)``, None for zero."""
    primitive_jvps[prim] = partials(*rules).make(prim)


def defbilinear(prim: Primitive, lhs: Rule, rhs: Rule) -> None:
    """Declare that a primitive is linear in each of two operands, and its two transposes.

    ``lhs(ct, x, y, **params)`` is the cotangent of the first, ``x`` standing for its aval, and
    ``rhs(ct, x, y, **params)`` that of the second.
    """

    def transpose(ct: Any, x: Any, y: Any, /, **params: Any) -> Sequence[Any]:
        if is_undefined(x):
            return [lhs(ct, x, y, **params), None]
        return [None, rhs(ct, x, y, **params)]

    primitive_jvps[prim] = BILINEAR.make(prim)
    primitive_transposes[prim] = transpose


__getattr__ = absent(
    __name__,
    {"it takes JAX's flattened trees: use fnarray.jvp and fnarray.linearize": "jvp linearize"},
)
