"""What primitives that extensions declare are compiled as, named as in ``jax.interpreters.mlir``.

A lowering is a function on arrays, which is traced into the graph: `lower_fun` makes one, and a
rule ``rule(ctx, *operands, **params)`` is one, if it is written with what is here. There is no
MLIR, so a rule that builds operations of it has nothing to build them with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..control.callback import io_callback, pure_callback
from ..core.array import aval_of
from ..core.avals import ShapeDtypeStruct
from ..core.frozen import frozen
from ..core.lazy import absent
from ..errors import MissingRuleError
from ..extend._primitive import Primitive
from ..ops.kit.canonical import as_array

__all__ = [
    "LoweringRule",
    "LoweringRuleContext",
    "emit_python_callback",
    "ir_constant",
    "lower_fun",
    "register_lowering",
]
__dir__ = __all__.copy

#: A function that says how a primitive lowers.
LoweringRule = Callable[..., Any]


class _ModuleContext:
    """What a rule is told of the program around it."""

    def add_keepalive(self, keepalive: Any) -> None:
        """Keep nothing: the graph holds the functions that it calls."""


class LoweringRuleContext:
    """What a rule is told: the primitive, and what its operands and results are.

    Attributes
    ----------
    primitive : Primitive
    avals_in, avals_out : sequence of ShapedArray
    """

    def __init__(self, primitive: Any, avals_in: Sequence[Any], avals_out: Sequence[Any]):
        self.primitive = primitive
        self.avals_in = avals_in
        self.avals_out = avals_out
        self.module_context = _ModuleContext()
        self.name_stack = self.tokens_in = None


@frozen
class Lowered:
    """A lowering: the function on arrays, and whether it returns several."""

    fun: Callable[..., Any]
    multiple_results: bool

    def __call__(self, ctx: LoweringRuleContext, *operands: Any, **params: Any) -> list[Any]:
        """Return a list of results, as rules do."""
        outs = self.fun(*operands, **params)
        return list(outs) if self.multiple_results else [outs]


def ir_constant(val: Any, **settings: Any) -> Any:
    """Return a value that a rule computes with."""
    return as_array(np.asarray(val))


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Sequence[Any]],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[Any], Any, None]:
    """Call a Python function from a rule.

    Parameters
    ----------
    callback : callable
        Of NumPy arrays; returns a sequence of results.
    token
        Handed back: effects are in the order of the program.
    operands : sequence of arrays
    operand_avals, result_avals : sequence of ShapedArray
    has_side_effect : bool
        Whether each call counts, or calls may be merged and dropped.

    Returns
    -------
    results, token, keepalive
        The last is None.
    """
    specs = [ShapeDtypeStruct(a.shape, a.dtype) for a in result_avals]

    def run(*arrays: Any) -> list[Any]:
        return list(callback(*map(np.asarray, arrays)))

    call = io_callback if has_side_effect else pure_callback
    return list(call(run, specs, *operands)), token, None


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Lowered:
    """Return the lowering that traces a function on arrays into the graph.

    Parameters
    ----------
    fun : callable
        Takes the operands, and the params by name.
    multiple_results : bool
        Whether it returns a list.
    """
    return Lowered(fun, multiple_results)


def register_lowering(
    prim: Primitive, rule: Any, platform: str | None = None, *args: Any, **kwargs: Any
) -> Any:
    """Set what a primitive is compiled as; return the rule.

    Parameters
    ----------
    prim : Primitive
        Of `extend.core`.
    rule : callable
        What `lower_fun` returns, or ``rule(ctx, *operands, **params)``, which returns a list.
    platform : str, optional
        Rules for ``"cpu"`` and those for all platforms count, the former more.
    """
    if not issubclass(type(prim), Primitive) or platform not in (None, "cpu"):
        return rule  # operations of fnarray's own keep their forms
    if platform is None and prim.lowered_for == "cpu":
        return rule
    prim.lowered_for = platform

    def fun(*xs: Any, **params: Any) -> Any:
        ins = list(map(aval_of, xs))
        avals = prim.aval(*ins, **params)
        many = prim.multiple_results
        outs = _ruled(rule, LoweringRuleContext(prim, ins, avals if many else [avals]), xs, params)
        return outs if many else outs[0]

    prim.lower_to(fun)
    return rule


def _ruled(rule: Any, ctx: LoweringRuleContext, operands: Any, params: Any) -> Any:
    try:
        return rule(ctx, *operands, **params)
    except AttributeError as error:
        raise MissingRuleError(
            "jit",
            str(ctx.primitive),
            f"its lowering asks for what builds MLIR, and there is none here: {error}. Give "
            "mlir.register_lowering(p, mlir.lower_fun(f)) with f a function on arrays.",
        ) from error


__getattr__ = absent(
    __name__,
    {
        "it builds MLIR, and programs are graphs of operations here: give register_lowering a "
        "function on arrays, by lower_fun": """
            AxisContext ConstantHandler DEVICE_TO_DEVICE_TYPE LoweringParameters LoweringResult
            Mesh MeshAxisName ModuleContext RECV_FROM_HOST_TYPE SEND_TO_HOST_TYPE SPMDAxisContext
            ShapePolyLoweringState ShardingContext Token TokenSet Value aval_to_ir_type
            aval_to_ir_types core_call_lowering dense_int_array dense_int_elements
            dtype_to_ir_type flatten_ir_types flatten_ir_values i32_attr i64_attr ir_attribute
            ir_constants ir_tree_registry ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun
            lower_jaxpr_to_module lowerable_effects make_ir_context merge_mlir_modules
            module_to_bytecode module_to_string register_constant_handler shape_tensor token_type
            unflatten_ir_values_like_types
        """,
    },
)
