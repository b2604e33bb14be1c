"""What primitives that extensions declare are compiled as, named as in ``jax.interpreters.mlir``.

A lowering is a function on arrays, which is traced into the graph: `lower_fun`. There is no MLIR
here, so a rule that builds it has nothing to build with, and its primitive cannot be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.frozen import frozen
from ..core.primitive import Missing
from ..extend._primitive import Primitive

__all__ = ["LoweringRule", "LoweringRuleContext", "lower_fun", "register_lowering"]

#: A function that says how a primitive lowers.
LoweringRule = Callable[..., Any]


class LoweringRuleContext:
    """What rules that build MLIR are given; for annotations."""


@frozen
class Lowered:
    """A lowering: the function on arrays, and whether it returns several."""

    fun: Callable[..., Any]
    multiple_results: bool


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
    rule : Lowered
        What `lower_fun` returns.
    platform : str, optional
        Rules for ``"cpu"`` and those for all platforms count, the former more.
    """
    if not isinstance(prim, Primitive) or platform not in (None, "cpu"):
        return rule  # operations of fnarray's own keep their forms
    if not isinstance(rule, Lowered):
        if prim.lowering is None:
            prim.form = Missing(
                f"the lowering of '{prim}' builds MLIR, and there is none here. Give "
                "mlir.register_lowering(p, mlir.lower_fun(f)) with f a function on arrays."
            )
        return rule
    if platform is None and prim.lowered_for == "cpu":
        return rule
    prim.lowered_for = platform

    def fun(*xs: Any, **params: Any) -> Any:
        outs = rule.fun(*xs, **params)
        if rule.multiple_results and not prim.multiple_results:
            (outs,) = outs
        return outs

    prim.lower_to(fun)
    return rule
