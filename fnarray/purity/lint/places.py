"""What places in files read from libraries: the same for whoever calls the function around them."""

from __future__ import annotations

import ast
from typing import Protocol

from ..scopes import Frame
from ..values import Value
from .index import Module

#: What a library's name stands for where nothing is known of it, or that it is a class.
_KINDS = ("", "class")


class Counter(Protocol):
    """What counts look-ups, and knows the project's classes."""

    budget: int

    def defines(self, ref: str) -> bool:
        """Say whether a qualified name is that of a class in the project."""
        ...


class Places:
    """Remembers what attributes such as ``jnp.sum`` stand for, by the place that reads them.

    A function is gone through four times on average, for its callers: half of the attributes
    that it reads are a library's, of which nobody has to ask again.
    """

    def __init__(self, resolver: Counter) -> None:
        self._resolver = resolver
        self._known: dict[ast.AST, tuple[str, Value]] = {}

    def recall(self, node: ast.AST, frame: Frame) -> Value | None:
        """Return what a place reads, if that is known; it counts as a look-up, as the first did."""
        known = self._known.get(node)
        if known is None or known[0] in frame.env or self._resolver.budget <= 0:
            return None
        self._resolver.budget -= 1
        value = known[1]
        return value if value.origin is None else value.read_at((frame, node))

    def remember(self, node: ast.Attribute, frame: Frame, base: Value, value: Value) -> None:
        """Keep what a place reads if it is a library's, under a name that only its file binds."""
        if value.ref != f"{base.ref}.{node.attr}" or value.kind not in _KINDS:
            return  # what a property gives, say, which others may give otherwise
        if value.others or value.fields or value.home is not None or not value.constant:
            return
        if value.origin is not None and value.origin[1] is not node:
            return
        if self._resolver.defines(value.ref):
            return
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in frame.env:
            module: Module = frame.function.module.module
            found = module.scopes[frame.function.node].lookup(root.id)
            if found is not None and found[0].parent is None:
                self._known[node] = root.id, value
