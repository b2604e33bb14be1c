"""Which variables of an enclosing function are rebound behind the back of a closure."""

from __future__ import annotations

import ast
from typing import Any

from .bindings import FUNCTIONS, Tree
from .nodes import walk
from .scopes import facts_of, walk_body

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_KEEPS = frozenset({"append", "add", "insert", "extend", "setdefault", "appendleft"})


def rebound(tree: ast.Module, line: int, column: int, name: str) -> str:
    """Say what rebinds a variable that the function at a place captures; "" if nothing does.

    A loop rebinds its variable; that matters only when the closure outlives the iteration, which
    it does when it is kept in a container, returned, or used after the loop.
    """
    places = Tree.of(tree)
    inner, parents = places.function(line, column)
    if inner is None:
        return ""
    around = parents.get(inner)
    while around is not None:
        if isinstance(around, _COMPREHENSIONS) and _binds(around, name):
            return "its loop rebinds" if _kept(inner, around, parents) else ""
        if isinstance(around, FUNCTIONS) and name in facts_of(around).bound:
            break
        around = parents.get(around)
    if around is None:
        return ""
    for other in walk(around) if name in places.reached else ():
        if not isinstance(other, FUNCTIONS) or other in (around, inner):
            continue
        if name in facts_of(other).nonlocals and _stores(other, name):
            return "another function rebinds"
    loop = parents.get(inner)
    while loop is not None and loop is not around:
        turns = isinstance(loop, (ast.For, ast.AsyncFor)) and name in _names(loop.target)
        if turns or (isinstance(loop, ast.While) and _assigns(loop, name)):
            return "its loop rebinds" if _outlives(inner, loop, around, parents) else ""
        loop = parents.get(loop)
    return ""


def _names(target: ast.AST) -> set[str]:
    return {n.id for n in walk(target) if isinstance(n, ast.Name)}


def _assigns(loop: ast.While, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for statement in loop.body
        for n in walk(statement)
    )


def _binds(comprehension: Any, name: str) -> bool:
    return any(name in _names(g.target) for g in comprehension.generators)


def _stores(function: Any, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
        for n in walk_body(function)
    )


def _kept(node: ast.AST, stop: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Say whether a value leaves the expression it stands in, other than by being called."""
    child, parent = node, parents[node]
    while parent is not stop and isinstance(parent, ast.expr | ast.keyword):
        if isinstance(parent, ast.Call):
            if parent.func is child:
                return False
            if getattr(parent.func, "attr", "") in _KEEPS:
                return True
        child, parent = parent, parents[parent]
    return parent is stop or (
        isinstance(parent, (ast.Return, ast.Expr))
        and (isinstance(parent, ast.Return) or isinstance(child, (ast.Yield, ast.YieldFrom)))
    )


def _outlives(inner: Any, loop: Any, around: Any, parents: dict[ast.AST, ast.AST]) -> bool:
    names: set[str] = set()
    if isinstance(inner, ast.Lambda):
        uses: list[ast.AST] = [inner]
    else:
        names, uses = {inner.name}, []
    for _ in range(3):
        for use in uses:
            statement: Any = use
            while not isinstance(statement, ast.stmt):
                statement = parents[statement]
            if isinstance(statement, ast.Assign) and not _called(use, parents):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        names.add(target.id)
                    elif isinstance(target, (ast.Subscript, ast.Attribute)):
                        return True
            elif _kept(use, statement, parents) and (
                not isinstance(statement, (ast.Expr, ast.Assign)) or _inside_keeper(use, parents)
            ):
                return True
        uses = [
            n for n in walk(around)
            if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)
        ]  # fmt: skip
        if any(n.lineno > (loop.end_lineno or 0) for n in uses):  # type: ignore[attr-defined]
            return True
    return False


def _called(use: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    child, parent = use, parents[use]
    while isinstance(parent, ast.expr | ast.keyword):
        if isinstance(parent, ast.Call) and parent.func is child:
            return True
        child, parent = parent, parents[parent]
    return False


def _inside_keeper(use: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    child, parent = use, parents[use]
    while isinstance(parent, ast.expr | ast.keyword):
        if isinstance(parent, ast.Call):
            if parent.func is child:
                return False
            if getattr(parent.func, "attr", "") in _KEEPS:
                return True
        if isinstance(parent, (ast.Yield, ast.YieldFrom)):
            return True
        child, parent = parent, parents[parent]
    return False
