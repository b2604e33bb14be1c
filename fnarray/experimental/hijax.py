"""Operations, and types, of one's own, named as in ``jax.experimental.hijax``.

Operations on arrays, with rules for their derivatives, are functions with such rules. Types of
one's own are no operands here: what libraries derive from while they are imported is here, and
refuses when it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control.custom import custom_jvp, custom_vjp
from ..core import tree
from ..core.source import user_source
from ..core.tangents import SymbolicZero
from ..core.tangents import Zero as Zero
from ..core.tangents import is_undefined as is_undefined_primal
from ..errors import MissingRuleError
from ..ops.kit.rules import instantiate as instantiate_zeros

__all__ = [
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrim",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "VJPHiPrimitive",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]
__dir__ = __all__.copy

_WHY = "values of hijax types are no operands here; pass the arrays in them, as pytrees."


class AbstractValue:
    """What is known of a value of a type of one's own."""


class HiType(AbstractValue):
    """A type of one's own."""


class MutableHiType(HiType):
    """A type of one's own whose values change."""


class AvalQDD:
    """A type and what may change of it."""

    def __init__(self, aval: Any, qdd: Any):
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD(AvalQDD):
    """A type and what may change of it, while it is traced."""


class HiPrimitive:
    """An operation on values of types of one's own."""

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: Any, **params: Any) -> Any:
        """Refuse."""
        raise MissingRuleError("bind", self.name, _WHY)


class VJPHiPrimitive:
    """An operation on arrays whose derivatives are given beside it; to be derived from.

    A subclass sets `in_avals`, `out_aval` and `params` and then calls this ``__init__``. It has a
    method ``expand(*args)``, which computes the results; and may have ``jvp(primals, tangents)``,
    or ``vjp_fwd(nonzero, *args)`` with ``vjp_bwd_retval(residuals, ct)``, as `custom_jvp` and
    `custom_vjp` take them. Where both are, the way back is the transpose of ``jvp``. On batches
    these run for all examples at once: ``batch`` and ``batch_dim_rule`` are not asked.

    Attributes
    ----------
    in_avals : tuple of pytrees of ShapedArray
    out_aval : pytree of ShapedArray
    params : dict
        What is known of the operation; each is an attribute too.

    Raises
    ------
    AttributeError
        A subclass has not set one of them.
    MissingRuleError
        When differentiated, or expanded: the method that says how is not there.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(
                    f"{type(self).__name__}: set `self.{name}` before super().__init__()."
                )
        vars(self).update(self.params)
        self.in_tree = tree.structure(self.in_avals)
        self.check(*self.in_avals)

    def check(self, *in_avals: Any) -> None:
        """Raise for operands that will not do; to be overridden."""

    def _missing(self, rule: str, methods: str) -> MissingRuleError:
        return MissingRuleError(rule, type(self).__name__, f"its class has no method {methods}")

    def expand(self, *args: Any) -> Any:
        """Return the results; to be overridden."""
        raise self._missing("expansion", "expand")

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """Return results and their tangents; to be overridden."""
        raise self._missing("jvp", "jvp")

    def vjp_fwd(self, nonzero: Any, /, *args: Any) -> Any:
        """Return results and residuals; to be overridden."""
        raise self._missing("vjp", "vjp_fwd")

    def vjp_bwd_retval(self, residuals: Any, ct: Any, /) -> Any:
        """Return a cotangent for each operand, None for zeros; to be overridden."""
        raise self._missing("vjp", "vjp_bwd_retval")

    def _has(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(VJPHiPrimitive, name)

    def __call__(self, *args: Any) -> Any:
        """Compute the results for operands of the structure of `in_avals`.

        Raises
        ------
        TypeError
            They are of another structure.
        """
        if tree.structure(args) != self.in_tree:
            raise TypeError(
                f"{type(self).__name__}: operands must have the structure of its in_avals, "
                f"{self.in_tree}, got {tree.structure(args)}, at {user_source()}."
            )
        if self._has("jvp"):
            forward = custom_jvp(self._expanded)
            forward.defjvp(self._pushed)
            return forward(*args)
        both = custom_vjp(self._expanded)
        both.defvjp(self._forward, self._back, symbolic_zeros=True)
        return both(*args)

    # The methods read attributes, which are params and do not change: that is the class's promise,
    # and no effect to look for.
    def _expanded(self, *args: Any) -> Any:
        return self.expand(*args)

    def _pushed(self, primals: Any, tangents: Any) -> Any:
        return self.jvp(primals, tangents)

    def _forward(self, *args: Any) -> Any:
        nonzero = tree.map(lambda x: x.perturbed, args)
        return self.vjp_fwd(nonzero, *tree.map(lambda x: x.value, args))

    def _back(self, residuals: Any, ct: Any) -> Any:
        zeros = tree.map(
            lambda c: instantiate_zeros(Zero(c.aval)) if isinstance(c, SymbolicZero) else c, ct
        )
        return tuple(self.vjp_bwd_retval(residuals, zeros))

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"


HiPrim = VJPHiPrimitive


class _Property:
    """A property or method that values of a type have while they are traced, which none are."""

    def __init__(self, fget: Callable[..., Any]):
        self.fget = fget


aval_property = _Property
aval_method = _Property


class _Allowed:
    """Effects that loops and branches may have."""

    def __init__(self) -> None:
        self.kinds: set[type] = set()

    def add_type(self, kind: type) -> None:
        """Allow a kind of effects."""
        self.kinds.add(kind)


control_flow_allowed_effects = _Allowed()


def register_hitype(kind: type, typeof: Callable[[Any], Any]) -> None:
    """Take note of a type; values of it are still no operands."""
