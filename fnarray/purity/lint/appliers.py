"""Functions of the project that hand a parameter of theirs to a transform.

``def compiled(f): return jax.jit(f)`` is as much a transform as `jit`: what it is given is traced.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from ..transforms import Transform
from .index import Assigned, Defined, Import, Module, Scope, parameters
from .project import Project


class Use(NamedTuple):
    """A transform applied in a module: decorator or call, with its keywords."""

    transform: Transform
    node: ast.AST
    keywords: tuple[ast.keyword, ...]
    scope: Scope


class Applied(NamedTuple):
    """A parameter that is handed to a transform, with the keywords that go with it."""

    transform: Transform
    parameter: str
    keywords: tuple[ast.keyword, ...]


class Appliers:
    """Answers what a function of the project does with its parameters.

    ``asked`` says what the calls of a module apply.
    """

    def __init__(self, asked: Callable[[Module], Mapping[ast.Call, Use]]) -> None:
        self._asked = asked
        self._found: dict[Module, dict[Scope, list[Applied]]] = {}

    def of(self, function: Scope) -> list[Applied]:
        """Return the parameters of a function that it hands to transforms."""
        found = self._found.get(function.module)
        if found is None:
            found = self._found[function.module] = {}
            for owner, applied in self._sites(function.module):
                found.setdefault(owner, []).append(applied)
            for owner, applied in [*_handing_on(function.module, found)] if found else ():
                found.setdefault(owner, []).append(applied)
        return found.get(function, [])

    def _sites(self, module: Module) -> Iterator[tuple[Scope, Applied]]:
        for call, (transform, _, keywords, scope) in self._asked(module).items():
            # What traces at once, or for a look at the program, is a matter of the call's own.
            if not transform.decorates or transform.now:
                continue
            if transform.staged and not transform.compiled:
                continue
            for node in slots(call, transform):
                owner = _owner(scope, node.id) if isinstance(node, ast.Name) else None
                if owner is not None and isinstance(node, ast.Name):
                    yield owner, Applied(transform, node.id, keywords)


def _handing_on(
    module: Module, known: dict[Scope, list[Applied]]
) -> Iterator[tuple[Scope, Applied]]:
    """Yield the functions of a module that hand a parameter to one which does."""
    for site in module.calls:
        func = site.node.func
        found = site.scope.lookup(func.id) if isinstance(func, ast.Name) else None
        for binding in found[1] if found is not None else ():
            for one in known.get(binding.scope, ()) if isinstance(binding, Defined) else ():
                node = given(site.node, cast("Defined", binding).scope, one.parameter)
                owner = _owner(site.scope, node.id) if isinstance(node, ast.Name) else None
                if owner is not None and isinstance(node, ast.Name):
                    yield owner, one._replace(parameter=node.id)


def slots(call: ast.Call, transform: Transform) -> Iterator[ast.expr]:
    """Yield the arguments of a call that are the functions its transform takes."""
    starred = any(isinstance(a, ast.Starred) for a in call.args)
    for position, names in transform.slots:
        node = next((k.value for k in call.keywords if k.arg in names), None)
        if node is None and not starred and position is not None and position < len(call.args):
            node = call.args[position]
        if node is not None:
            yield node


def given(call: ast.Call, function: Scope, parameter: str) -> ast.expr | None:
    """Return what a call gives a function of the project for a parameter."""
    named = next((k.value for k in call.keywords if k.arg == parameter), None)
    if named is not None:
        return named
    position = positions(function).get(parameter, len(call.args))
    before = call.args[: position + 1]
    if position < len(before) and not any(isinstance(a, ast.Starred) for a in before):
        return before[position]
    return None


def positions(function: Scope) -> dict[str, int]:
    """Return where a function takes its positional parameters."""
    args: ast.arguments = getattr(function.node, "args")  # noqa: B009 - of functions alone
    return {a.arg: i for i, a in enumerate((*args.posonlyargs, *args.args))}


def may_hand(call: ast.Call, scope: Scope) -> bool:
    """Say whether an argument of a call may be a function: few calls have one.

    To ask the project what each callee is took a twelfth of the time that finding takes.
    """
    for node in call.args:
        if _may_be_function(node, scope):
            return True
    return any(_may_be_function(keyword.value, scope) for keyword in call.keywords)


def _may_be_function(node: ast.expr, scope: Scope) -> bool:
    kind = type(node)
    if kind is ast.Name:
        found = scope.lookup(cast("ast.Name", node).id)
        if found is None:
            return bool(scope.module.stars)
        for binding in found[1]:
            if type(binding) is not Assigned or type(binding.value) is ast.Call:
                return True
        return False
    if kind is ast.Call:
        return isinstance(cast("ast.Call", node).func, (ast.Name, ast.Call))
    root: Any = node
    while type(root) is ast.Attribute:
        root = root.value
    return type(root) is ast.Name or kind in _FUNCTIONS


_FUNCTIONS = frozenset({ast.Lambda, ast.IfExp, ast.Subscript})


def may_be_own(func: ast.expr, scope: Scope, project: Project) -> bool:
    """Say whether a callee may be a function of the project that is no method."""
    root: Any = func
    while isinstance(root, ast.Attribute):
        root = root.value
    found = scope.lookup(root.id) if isinstance(root, ast.Name) else None
    if found is None:
        return bool(scope.module.stars) and root is func
    if root is func and not any(isinstance(b, Import) for b in found[1]):
        return True
    roots = {b.target.partition(".")[0] for b in found[1] if isinstance(b, Import)}
    own = scope.module.package in roots
    return own or any(project.module(name, scope.module) is not None for name in roots)


def _owner(scope: Scope | None, name: str) -> Scope | None:
    """Return the function that a variable is a parameter of; None where it is bound otherwise."""
    while scope is not None:
        if scope.is_function and any(a.arg == name for a in parameters(scope.node.args)):  # type: ignore[union-attr]
            return scope
        if not scope.is_class and name in scope.names:
            return None
        scope = scope.parent
    return None
