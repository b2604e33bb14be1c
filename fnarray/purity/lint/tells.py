"""What an expression tells by its text, and by what its names are bound to."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence


def is_identity(node: ast.expr, names: Mapping[str, Sequence[object]]) -> bool:
    """Say whether a key is ``id(obj)``, or a name bound to it."""
    match node:
        case ast.Call(func=ast.Name(id="id")):
            return True
        case ast.Name(id=name):
            value = getattr(names.get(name, [None])[-1], "value", None)
            return isinstance(value, ast.Call) and is_identity(value, names)
        case _:
            return False


def is_off(node: ast.expr, names: Mapping[str, Sequence[object]]) -> bool:
    """Say whether a test never holds: ``False``, or a module's flag that is bound to it once."""
    match node:
        case ast.Constant(value=value):
            return not value
        case ast.Name(id=name) if name.isupper():
            found = names.get(name, ())
            value = getattr(found[0], "value", None) if len(found) == 1 else None
            return isinstance(value, ast.Constant) and value.value is False
        case ast.BoolOp(op=ast.And(), values=parts):
            return any(is_off(part, names) for part in parts)
        case _:
            return False


def is_true(node: ast.expr) -> bool:
    """Say whether a keyword is given anything but a constant that is false."""
    return not (isinstance(node, ast.Constant) and not node.value)
