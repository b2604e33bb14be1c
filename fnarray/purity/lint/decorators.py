"""What the project's own decorators put in place of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, cast

from ..nodes import walk
from ..scopes import Frame
from ..values import CONTAINERS, Function, Value
from .index import Module, Scope
from .project import Project, Target
from .traced import Finder

_GENERIC = frozenset({"functools.singledispatch", "functools.singledispatchmethod"})
_CACHES = frozenset({"functools.lru_cache", "functools.cache", "functools.cached_property"})


class Reader(Protocol):
    """What reads functions and expressions in files."""

    finder: Finder
    project: Project

    def function(self, scope: Scope) -> Function:
        """Return the record of a function."""
        ...

    def of(self, node: ast.expr | None, scope: Scope, name: str = "") -> Value | None:
        """Return the value of an expression."""
        ...


class Decorators:
    """Finds the functions and classes that decorators replace a function by."""

    def __init__(self, resolver: Reader) -> None:
        self.resolver = resolver
        self._wrapping: dict[tuple[Scope, ast.expr], Function] = {}

    def wrappers(
        self, scope: Scope, decorators: Iterable[ast.expr] | None = None
    ) -> list[Function]:
        """Return the inner functions by which decorators of the project replace a function.

        All of its own, or those given.
        """
        found: list[Function] = []
        outer = cast("Scope", scope.parent)
        own = getattr(scope.node, "decorator_list", ())
        for decorator in own if decorators is None else decorators:
            made = isinstance(decorator, ast.Call)
            target = self.resolver.project.resolve(decorator.func if made else decorator, outer)
            finder = self.resolver.finder
            if target is None and isinstance(decorator, ast.Name):
                # ``note = logged("a")``, and then ``@note``.
                makers = [s for s, *_ in finder.functions(decorator, outer)]
            elif isinstance(target, Scope) and target.is_function:
                makers = [target]
                if made:  # a factory of decorators: what it returns is the decorator
                    makers = [s for s, *_ in finder.given_back(target)]
            else:
                continue
            for maker in makers:
                bare = _for_nobody(maker) if maker is target else ()
                factory = target if isinstance(target, Scope) else maker
                inner = (s for s, *_ in finder.given_back(maker, but=bare) if s.parent is maker)
                found += [self._wrapper(s, factory, decorator, outer) for s in inner]
        return found

    def _wrapper(self, scope: Scope, factory: Scope, decorator: ast.expr, outer: Scope) -> Function:
        """Return the function that a decorator puts around another.

        It holds the containers that its factory was given: ``@recording(history)``.
        """
        base = self.resolver.function(scope)
        if not isinstance(decorator, ast.Call) or not (decorator.args or decorator.keywords):
            return base
        key = scope, decorator
        if key not in self._wrapping:
            args = cast("Any", factory.node).args
            names = [a.arg for a in (*args.posonlyargs, *args.args)]
            pairs = [*zip(names, decorator.args, strict=False)]
            pairs += [(k.arg, k.value) for k in decorator.keywords if k.arg]
            named = [(n, e) for n, e in pairs if isinstance(e, (ast.Name, ast.Attribute))]
            given = {
                name: value.but(holder="cell", name=name)
                for name, node in named
                if (value := self.resolver.of(node, outer)) and value.kind in CONTAINERS
            }
            held = Frame.holding(self.resolver.function(factory), given) if given else None
            self._wrapping[key] = Function(
                base.node, base.file, base.module, name=base.name, frame=held,
                defaults=base.defaults, lines=base.lines,
            ) if held is not None else base  # fmt: skip
        return self._wrapping[key]

    def keeps(self, scope: Scope) -> bool:
        """Say whether a function's results outlive its calls."""
        outer = scope.parent
        if outer is None or not scope.module.mentions("cache"):
            return False
        made = (getattr(d, "func", d) for d in getattr(scope.node, "decorator_list", ()))
        return any(getattr(self._resolve(d, outer), "name", "") in _CACHES for d in made)

    def is_generic(self, scope: Scope) -> bool:
        """Say whether a function is one of several that are chosen by an argument's class."""
        outer = scope.parent
        if outer is None or not scope.module.mentions("singledispatch"):
            return False
        own = getattr(scope.node, "decorator_list", ())
        return any(getattr(self._resolve(d, outer), "name", "") in _GENERIC for d in own)

    def implementations(self, scope: Scope) -> Iterator[Function]:
        """Yield what its own file registers with a generic function: a call may run any of them."""
        if self.is_generic(scope):
            yield from self._registered(scope, scope.module)

    def registered(self, scope: Scope, here: Module) -> Iterator[Function]:
        """Yield what another file, and those it imports, register with a generic function."""
        if self.is_generic(scope):
            targets = dict.fromkeys(target for _, target in here.imports)
            near = (self.resolver.project.module(target, here) for target in targets)
            for module in (here, *near):
                if module is not None and module is not scope.module:
                    yield from self._registered(scope, module)

    def _registered(self, scope: Scope, module: Module) -> Iterator[Function]:
        for other in module.functions:
            for decorator in getattr(other.node, "decorator_list", ()):
                made = decorator.func if isinstance(decorator, ast.Call) else decorator
                if other.parent and self._registers(made, scope, other.parent):
                    yield self.resolver.function(other)
        for call in module.calls if module.mentions(".register(") else ():
            func, given = call.node.func, call.node.args[-1:]
            if isinstance(func, ast.Call):  # ``generic.register(int)(function)``
                func = func.func
            if given and self._registers(func, scope, call.scope):
                for one, *_ in self.resolver.finder.functions(given[0], call.scope):
                    yield self.resolver.function(one)

    def _registers(self, made: ast.expr, scope: Scope, outer: Scope) -> bool:
        if not isinstance(made, ast.Attribute) or made.attr != "register":
            return False
        return self._resolve(made.value, outer) is scope

    def _resolve(self, node: ast.expr, scope: Scope) -> Target | None:
        return self.resolver.project.resolve(node, scope)

    def replacing(self, scope: Scope) -> list[Scope]:
        """Return the project's classes that decorate a function: an object takes its place."""
        decorators = getattr(scope.node, "decorator_list", ())
        outer = cast("Scope", scope.parent)
        found = [
            self.resolver.project.resolve(d.func if isinstance(d, ast.Call) else d, outer)
            for d in decorators
        ]
        return [s for s in found if isinstance(s, Scope) and s.is_class]


def _for_nobody(scope: Scope) -> set[ast.AST]:
    """Return what a decorator gives where its first parameter is None: when it has no function."""
    args = cast("Any", scope.node).args
    first = next(iter((*args.posonlyargs, *args.args)), None)
    return {
        part
        for n in walk(scope.node)
        if first is not None and isinstance(n, ast.If) and _is_none(n.test, first.arg)
        for statement in n.body
        for part in walk(statement)
    }


def _is_none(test: ast.expr, name: str) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id=asked), ops=[ast.Is()],
                         comparators=[ast.Constant(value=None)]):  # fmt: skip
            return asked == name
        case _:
            return False
