"""Types of one's own as operands, named as in ``jax.experimental.hijax``: none are taken here.

What libraries derive from while they are imported is here, and refuses when it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tangents import Zero as Zero
from ..core.tangents import is_undefined as is_undefined_primal
from ..errors import MissingRuleError
from ..ops.kit.rules import instantiate as instantiate_zeros

__all__ = [
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]

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
