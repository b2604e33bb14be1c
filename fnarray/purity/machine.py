"""What a handler of calls, operators and attributes asks of the engine that runs it."""

from __future__ import annotations

import ast
from typing import Protocol

from .rules import LintRule
from .scopes import Frame
from .values import Function, Resolver, Value


class Machine(Protocol):
    """The engine, as handlers see it: it is passed to them, and they share nothing else."""

    resolver: Resolver

    def unknown(self, level: int) -> Value:
        """Return an object made during the trace of which nothing is known."""
        ...

    def report(
        self, rule: type[LintRule], frame: Frame, node: ast.AST, name: str = "", what: str = ""
    ) -> None:
        """Add a finding at a node."""

    def use(self, value: Value, frame: Frame, node: ast.AST) -> None:
        """Check that an object may be read here."""

    def use_all(self, values: list[Value], frame: Frame, node: ast.AST) -> None:
        """Read all arguments."""

    def draw(self, value: Value, frame: Frame, node: ast.AST, *, explicit: bool = False) -> None:
        """Check that an object may be iterated over."""

    def element(self, value: Value, frame: Frame) -> Value:
        """Return what iteration over an object gives."""
        ...

    def attribute(self, base: Value, attr: str, frame: Frame, node: ast.AST) -> Value:
        """Return an attribute of an object; properties run."""
        ...

    def outer(self, value: Value, frame: Frame, node: ast.AST) -> Value:
        """Note where an object from outside is named, and whether to name it is an effect."""
        ...

    def body(self, callee: Value) -> tuple[Function, Value | None] | None:
        """Return what a call of an object enters, and its receiver."""

    def call(
        self, callee: Value, args: list[Value] | None, keywords: dict[str, Value],
        frame: Frame, node: ast.AST, *, used: bool = True, level: int = 0, label: str = "",
    ) -> Value:  # fmt: skip
        """Call an object."""
        ...
