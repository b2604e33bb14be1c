"""Which expressions are surely known while tracing: shapes, types, the structure of a tree."""

from __future__ import annotations

import ast

from ..nodes import walk
from .index import Scope
from .kinds import spelled
from .taint import STATIC_FUNCTIONS

_PLAIN = frozenset(
    {"shape", "dtype", "ndim", "size", "weak_type", "__name__", "__class__", "sharding"}
)


def is_static(node: ast.expr, scope: Scope, depth: int = 4) -> bool:
    """Say whether an expression is surely known while tracing."""
    if depth <= 0:
        return False
    match node:
        case ast.Constant():
            return True
        case ast.Attribute(attr=attr):
            return attr in _PLAIN
        case ast.Subscript(value=inner) | ast.FormattedValue(value=inner):
            return is_static(inner, scope, depth)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.JoinedStr(values=parts):
            return all(is_static(part, scope, depth - 1) for part in parts)
        case ast.BinOp(left=left, right=right):
            return is_static(left, scope, depth - 1) and is_static(right, scope, depth - 1)
        case ast.Call(func=ast.Name(id=name)) if name in ("len", "type", "isinstance", "callable"):
            return True
        case ast.Call(func=ast.Attribute(attr="map" | "tree_map"), args=[ast.Name(id=name), *_]):
            return _tells(name, scope, depth - 1)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in STATIC_FUNCTIONS or name.removeprefix("tree_") in STATIC_FUNCTIONS
        case ast.ListComp(elt=part) | ast.UnaryOp(operand=part):
            return is_static(part, scope, depth - 1)
        case ast.BoolOp(values=parts):
            return all(is_static(part, scope, depth - 1) for part in parts)
        case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return True
        case ast.Name(id=name):
            found = scope.lookup(name)
            if found is None or len(found[1]) != 1 or isinstance(found[0].node, ast.Module):
                return False
            value = getattr(found[1][0], "value", None)
            exact = getattr(found[1][0], "exact", False)
            if (
                not exact
                and isinstance(value, ast.Call)
                and spelled(value.func).rpartition(".")[2] in _FLATTENING
            ):
                return _is_second(name, found[0])  # ``leaves, tree = tree_flatten(x)``
            return exact and value is not None and is_static(value, found[0], depth - 1)
        case _:
            return False


_FLATTENING = frozenset({"flatten", "tree_flatten", "tree_flatten_with_path"})


def _is_second(name: str, scope: Scope) -> bool:
    return any(
        isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple)
        and [getattr(part, "id", "") for part in n.targets[0].elts][1:] == [name]
        for n in walk(scope.node)
    )  # fmt: skip


def _tells(name: str, scope: Scope, depth: int) -> bool:
    """Say whether a function returns nothing but what is known while tracing."""
    found = scope.lookup(name)
    inner = getattr(found[1][-1], "scope", None) if found is not None else None
    if inner is None or not inner.returns:
        return False
    return all(is_static(value, inner, depth) for value in inner.returns)
