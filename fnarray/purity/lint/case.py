"""A finding to be judged: what it rests on, and what may be said of it."""

from __future__ import annotations

from typing import NamedTuple

from ..engine.machine import Evidence
from ..findings import Finding
from ..values import OUTSIDE, Value
from .changes import Condition
from .index import Module, Scope
from .statics import StaticResolver


class Doubt(NamedTuple):
    """A finding that counts only if the project changes what it rests on."""

    finding: Finding
    condition: Condition


class Case(NamedTuple):
    """A finding, what it rests on, and the function and module it stands in."""

    finding: Finding
    evidence: Evidence
    resolver: StaticResolver

    @property
    def scope(self) -> Scope:
        """The function, as its module knows it."""
        function = self.evidence.frame.function
        around: Scope = function.module
        return around.module.scopes.get(function.node, around)

    @property
    def module(self) -> Module:
        """The module."""
        return self.scope.module


Verdict = Condition | bool


def is_traced(value: Value) -> bool:
    """Say whether what a value stands for is, or may be, a traced array."""
    return any(v.argument or (v.kind == "array" and v.level != OUTSIDE) for v in value.each())


def is_untraced(value: Value) -> bool:
    """Say whether what a value stands for is surely no traced array."""
    return all(v.level == OUTSIDE or v.kind in _UNTRACED for v in value.each())


_UNTRACED = ("function", "class", "module", "scalar", "traced", "partial")
