"""How often a Python loop over a ``range`` of constants runs, and so is unrolled when traced."""

from __future__ import annotations

import ast

from .index import Assigned
from .taint import Taint


def trips(taint: Taint, node: ast.expr) -> int | None:
    """Return how many iterations a ``range`` of constants has; None when it cannot be said."""
    if not (isinstance(node, ast.Call) and node.args and not node.keywords):
        return None
    if taint.callee(node.func) != "builtins.range":
        return None
    numbers = [_integer(taint, arg) for arg in node.args]
    if any(n is None for n in numbers) or len(numbers) > 3:
        return None
    try:
        return len(range(*numbers))  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None


def _integer(taint: Taint, node: ast.expr | None) -> int | None:
    if isinstance(node, ast.Name):
        found = taint.scope.lookup(node.id)
        if found is None or len(found[1]) != 1:
            return None
        first = found[1][0]
        node = first.value if isinstance(first, Assigned) and first.exact else None
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if isinstance(value, int) else None
