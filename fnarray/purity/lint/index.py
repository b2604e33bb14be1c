"""What a module binds and calls, gathered in one walk over its tree; nothing is imported."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ..bindings import bindings, bound_early, bound_once
from ..known import MUTATORS
from ..nodes import children
from .source import SourceFile
from .tells import is_identity, is_off, is_true

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

# Methods that put their arguments into a container.
_STORING = frozenset({"append", "add", "insert", "setdefault", "appendleft", "register"})


class Import(NamedTuple):
    """A name bound by an import: ``target`` is the dotted name it stands for."""

    target: str
    line: int


class Assigned(NamedTuple):
    """A name bound to an expression, or to part of one (``exact`` false)."""

    value: ast.expr | None
    line: int
    exact: bool = True
    annotation: ast.expr | None = None


class Defined(NamedTuple):
    """A name bound by ``def`` or ``class``."""

    scope: Scope
    line: int


Binding = Import | Assigned | Defined


class Scope:
    """A module, class or function body, and the names it binds.

    ``writes`` are the names that inner functions rebind through ``global`` or ``nonlocal``;
    ``frozen`` those of arrays made read-only; ``holds`` says that functions stand inside.
    ``is_class`` says that it is a class's body, whose names methods do not see, and ``is_function``
    that it is a function's, or a lambda's: asked for each name that is looked up.
    """

    __slots__ = (
        "elsewhere", "frozen", "holds", "is_class", "is_function", "loop", "module", "names",
        "node", "parent", "returns", "sets", "writes",
    )  # fmt: skip

    def __init__(
        self,
        node: ast.Module | ast.ClassDef | Function,
        module: Module,
        parent: Scope | None,
        loop: ast.AST | None = None,
    ) -> None:
        self.node = node
        self.module = module
        self.parent = parent
        self.names: dict[str, list[Binding]] = {}
        self.elsewhere: dict[str, str] = {}
        self.writes: set[str] = set()
        self.frozen: set[str] = set()
        self.loop = loop
        self.returns: list[ast.expr] = []
        self.sets: dict[str, list[Assigned]] | None = None
        self.holds = False
        self.is_class = isinstance(node, ast.ClassDef)
        self.is_function = isinstance(node, FUNCTIONS)

    @property
    def in_loop(self) -> bool:
        """Whether this is defined anew at each turn of a loop."""
        return self.loop is not None

    @property
    def name(self) -> str:
        """The name after ``def`` or ``class``; ``<lambda>`` or ``<module>`` otherwise."""
        if isinstance(self.node, ast.Lambda):
            return "<lambda>"
        return getattr(self.node, "name", "<module>")

    @property
    def qualname(self) -> str:
        """The dotted name inside the module."""
        parts: list[str] = []
        scope: Scope = self
        while scope.parent is not None:
            parts.append(scope.name)
            scope = scope.parent
        return ".".join(reversed(parts))

    def enclosing_class(self) -> Scope | None:
        """Return the class whose method this is, or holds this."""
        scope = self.parent
        while scope is not None and not scope.is_class:
            scope = scope.parent
        return scope

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """Return the scope that binds a name as seen from here, with its bindings."""
        scope: Scope | None = self
        while scope is not None:
            if scope is self or not scope.is_class:
                kind = scope.elsewhere.get(name) if scope.elsewhere else None
                if kind == "global":
                    top = scope.module.scope
                    return (top, top.names[name]) if name in top.names else None
                if kind is None and (bound := scope.names.get(name)) is not None:
                    return scope, bound
            scope = scope.parent
        return None


class CallSite(NamedTuple):
    """A call, the scope it stands in, and the innermost loop of that scope around it."""

    node: ast.Call
    scope: Scope
    loop: ast.AST | None


class Site(NamedTuple):
    """A place where something is changed.

    ``target`` is the attribute that is bound, or the name or attribute whose contents change;
    ``how`` is ``"set"``, ``"key"`` (under a key that is computed), ``"own"`` (under the identity of
    an object, whose own the entry is), ``"item"``, ``"del"``, or the name of a method.
    """

    target: ast.Name | ast.Attribute
    how: str
    scope: Scope
    node: ast.AST
    value: ast.expr | None = None


class Module:
    """One file: its dotted name, scopes, calls, and functions with decorators.

    ``private`` are the calls of what begins with an underscore, taken from an object;
    ``asked`` are the modules that its names were looked for in, by dotted name; ``sites`` are where
    it changes something in place; ``imports`` are names and what they stand for, in any scope;
    ``drawing`` are those by which it may call what draws from keys, once somebody has asked.
    ``ours`` says that it names ``fnarray``, itself or by what it imports.
    """

    def __init__(self, name: str, source: SourceFile, is_package: bool) -> None:
        self.name = name
        self.source = source
        self.is_package = is_package
        self.calls: list[CallSite] = []
        self.private: list[CallSite] = []
        self.functions: list[Scope] = []
        self.stars: list[str] = []
        self.kept: set[ast.AST] = set()
        self.kept_names: set[str] = set()
        self.asked: dict[str, Module | None] = {}
        self.sites: list[Site] = []
        self.reached: set[str] = set()
        self.imports: list[tuple[str, str]] = []
        self.drawing: frozenset[str] | None = None
        self.ours = source.ours
        self._mentions: dict[tuple[str, ...], bool] = {}
        tree = source.tree or ast.Module([], [])
        self.scope = Scope(tree, self, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.scope}
        for statement in tree.body:
            _Walk(self).visit(statement, self.scope, None)

    @property
    def path(self) -> str:
        """The file's path as given."""
        return self.source.path

    @cached_property
    def counts(self) -> Counter[str]:
        """How often the module binds each of its names."""
        return bindings(self.source.tree.body if self.source.tree is not None else [])

    def binds_for_good(self, name: str, kind: str) -> bool:
        """Say whether the module binds a name once, or that of an array before it is read."""
        if self.source.cells or name in self.reached or not self.counts[name]:
            return False
        tree = self.source.tree
        if self.counts[name] == 1 or tree is None:
            return self.counts[name] == 1
        return bound_once(tree, name) or (kind == "ndarray" and bound_early(tree, name))

    def mentions(self, *texts: str) -> bool:
        """Say whether the text of the module has one of some in it, looked for once."""
        known = self._mentions.get(texts)
        if known is None:
            known = self._mentions[texts] = any(one in self.source.text for one in texts)
        return known

    @property
    def package(self) -> str:
        """The first part of the module's name."""
        return self.name.partition(".")[0]

    @cached_property
    def folder(self) -> str:
        """The folder that the file lies in."""
        return str(Path(self.source.path).parent)

    def absolute(self, module: str | None, level: int) -> str:
        """Return the dotted name that ``from ...module import`` means here."""
        if not level:
            return module or ""
        parts = self.name.split(".") if self.name else []
        keep = len(parts) - level + (1 if self.is_package else 0)
        return ".".join([*parts[: max(keep, 0)], *([module] if module else [])])


class _Walk:
    """One recursive walk: every node is seen once."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def visit(self, node: ast.AST, scope: Scope, loop: ast.AST | None) -> None:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            handler(self, node, scope, loop)
        else:
            self.children(node, scope, loop)

    def children(self, node: ast.AST, scope: Scope, loop: ast.AST | None) -> None:
        for child in children(node):
            handler = _HANDLERS.get(type(child))
            if handler is None:
                self.children(child, scope, loop)
            elif handler is not _Walk.skip:
                handler(self, child, scope, loop)

    def skip(self, node: ast.AST, scope: Scope, loop: ast.AST | None) -> None:
        """Handle leaves, which bind nothing."""

    def bind(self, scope: Scope, name: str, binding: Binding) -> None:
        match scope.elsewhere.get(name):
            case "global":
                scope = self.module.scope
                scope.writes.add(name)
            case "nonlocal":
                outer = scope.parent
                while outer is not None and (outer.is_class or name not in outer.names):
                    outer = outer.parent
                if outer is None:
                    return
                outer.writes.add(name)
                scope = outer
            case _:
                pass
        scope.names.setdefault(name, []).append(binding)

    def target(self, node: ast.AST, scope: Scope, value: ast.expr | None, exact: bool) -> None:
        match node:
            case ast.Name():
                self.bind(scope, node.id, Assigned(value, node.lineno, exact))
            case ast.Starred():
                self.target(node.value, scope, value, False)
            case ast.Tuple() | ast.List():
                values: list[ast.expr] = []
                if isinstance(value, (ast.Tuple, ast.List)) and exact:
                    values = value.elts
                if len(values) != len(node.elts) or any(
                    isinstance(e, ast.Starred) for e in (*node.elts, *values)
                ):
                    values = []
                for i, item in enumerate(node.elts):
                    part = values[i] if values else value
                    self.target(item, scope, part, bool(values))
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr):
                owner = scope if scope.is_class else scope.enclosing_class()
                if owner is not None and value is not None:
                    if owner.sets is None:
                        owner.sets = {}
                    made = Assigned(value if exact else None, node.lineno)
                    owner.sets.setdefault(attr, []).append(made)
                self.changed(node, scope, "set" if exact else "item", node, value)
            case ast.Attribute():
                self.changed(node, scope, "set" if exact else "item", node, value)
                self.visit(node.value, scope, None)
            case ast.Subscript(value=base, slice=key):
                known = isinstance(key, ast.Constant) or value is None
                how = "own" if is_identity(key, scope.names) else "item" if known else "key"
                self.changed(base, scope, how, node, value)
                self.visit(base, scope, None)
                self.visit(key, scope, None)
            case _:
                self.visit(node, scope, None)

    def changed(
        self, base: ast.AST, scope: Scope, how: str, node: ast.AST, value: ast.expr | None = None
    ) -> None:
        if isinstance(base, (ast.Name, ast.Attribute)):
            self.module.sites.append(Site(base, how, scope, node, value))

    def delete(self, node: ast.Delete, scope: Scope, loop: ast.AST | None) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                how = "own" if is_identity(target.slice, scope.names) else "del"
                self.changed(target.value, scope, how, target)
        self.children(node, scope, loop)

    # --- statements that bind ---

    def import_(self, node: ast.Import, scope: Scope, loop: ast.AST | None) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            target = alias.name if alias.asname else name
            self.bind(scope, name, Import(target, node.lineno))
            self.module.imports.append((name, target))

    def import_from(self, node: ast.ImportFrom, scope: Scope, loop: ast.AST | None) -> None:
        base = self.module.absolute(node.module, node.level)
        for alias in node.names:
            if alias.name == "*":
                self.module.stars.append(base)
            else:
                target = f"{base}.{alias.name}" if base else alias.name
                self.bind(scope, alias.asname or alias.name, Import(target, node.lineno))
                self.module.imports.append((alias.asname or alias.name, target))

    def assign(self, node: ast.Assign, scope: Scope, loop: ast.AST | None) -> None:
        self.visit(node.value, scope, loop)
        for target in node.targets:
            self.target(target, scope, node.value, True)
            match target, node.value:
                case (
                    ast.Attribute(ast.Attribute(ast.Name(id=name), "flags"), "writeable"),
                    ast.Constant(value=False),
                ):
                    scope.frozen.add(name)
                case _:
                    pass
            if isinstance(target, (ast.Subscript, ast.Attribute)):
                self.keep(node.value)
                self.children(target, scope, loop)

    def ann_assign(self, node: ast.AnnAssign, scope: Scope, loop: ast.AST | None) -> None:
        if node.value is not None:
            self.visit(node.value, scope, loop)
        if isinstance(node.target, ast.Name):
            binding = Assigned(node.value, node.lineno, True, node.annotation)
            self.bind(scope, node.target.id, binding)
        else:
            self.target(node.target, scope, node.value, True)

    def aug_assign(self, node: ast.AugAssign, scope: Scope, loop: ast.AST | None) -> None:
        self.visit(node.value, scope, loop)
        self.target(node.target, scope, None, False)

    def named(self, node: ast.NamedExpr, scope: Scope, loop: ast.AST | None) -> None:
        self.visit(node.value, scope, loop)
        self.target(node.target, scope, node.value, True)

    def for_(self, node: ast.For, scope: Scope, loop: ast.AST | None) -> None:
        self.visit(node.iter, scope, loop)
        self.target(node.target, scope, node.iter, False)
        for statement in node.body:
            self.visit(statement, scope, node)
        for statement in node.orelse:
            self.visit(statement, scope, loop)

    def while_(self, node: ast.While, scope: Scope, loop: ast.AST | None) -> None:
        for child in (node.test, *node.body):
            self.visit(child, scope, node)
        for statement in node.orelse:
            self.visit(statement, scope, loop)

    def if_(self, node: ast.If, scope: Scope, loop: ast.AST | None) -> None:
        # What never runs binds nothing and traces nothing.
        body = [] if is_off(node.test, self.module.scope.names) else node.body
        for child in (node.test, *body, *node.orelse):
            self.visit(child, scope, loop)

    def with_(self, node: ast.With, scope: Scope, loop: ast.AST | None) -> None:
        for item in node.items:
            self.visit(item.context_expr, scope, loop)
            if item.optional_vars is not None:
                self.target(item.optional_vars, scope, item.context_expr, False)
        for statement in node.body:
            self.visit(statement, scope, loop)

    def handler(self, node: ast.ExceptHandler, scope: Scope, loop: ast.AST | None) -> None:
        if node.name:
            self.bind(scope, node.name, Assigned(None, node.lineno, False))
        self.children(node, scope, loop)

    def capture(self, node: ast.AST, scope: Scope, loop: ast.AST | None) -> None:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if name:
            self.bind(scope, name, Assigned(None, getattr(node, "lineno", 0), False))
        self.children(node, scope, loop)

    def listcomp(self, node: ast.ListComp, scope: Scope, loop: ast.AST | None) -> None:
        for i, generator in enumerate(node.generators):
            self.comprehension(generator, scope, loop if i == 0 else node)
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                self.keep(getattr(node, name))
                self.visit(getattr(node, name), scope, node)

    def comprehension(self, node: ast.comprehension, scope: Scope, loop: ast.AST | None) -> None:
        # Its variables live in a scope of their own; here they only must not hide outer names,
        # so they are bound when nothing else is.
        self.visit(node.iter, scope, loop)
        for child in ast.walk(node.target):
            if isinstance(child, ast.Name) and child.id not in scope.names:
                self.bind(scope, child.id, Assigned(node.iter, child.lineno, False))
        for test in node.ifs:
            self.visit(test, scope, loop)

    def declare(self, node: ast.Global | ast.Nonlocal, scope: Scope, loop: ast.AST | None) -> None:
        kind = "global" if isinstance(node, ast.Global) else "nonlocal"
        self.module.reached.update(node.names)
        for name in node.names:
            scope.elsewhere[name] = kind

    def return_(self, node: ast.Return, scope: Scope, loop: ast.AST | None) -> None:
        if node.value is not None:
            scope.returns.append(node.value)
            self.keep(node.value)
            self.visit(node.value, scope, loop)

    # --- definitions and calls ---

    def function(self, node: Function, scope: Scope, loop: ast.AST | None) -> None:
        inner = Scope(node, self.module, scope, loop=loop)
        outer: Scope | None = scope
        while outer is not None and not outer.holds:
            outer.holds, outer = True, outer.parent
        self.module.scopes[node] = inner
        self.module.functions.append(inner)
        args = node.args
        for default in (*args.defaults, *args.kw_defaults):
            if default is not None:
                self.visit(default, scope, loop)
        for arg in parameters(args):
            inner.names[arg.arg] = [Assigned(None, arg.lineno, False, arg.annotation)]
        if isinstance(node, ast.Lambda):
            inner.returns.append(node.body)
            self.visit(node.body, inner, None)
            return
        for decorator in node.decorator_list:
            self.visit(decorator, scope, loop)
        self.bind(scope, node.name, Defined(inner, node.lineno))
        for statement in node.body:
            self.visit(statement, inner, None)

    def class_(self, node: ast.ClassDef, scope: Scope, loop: ast.AST | None) -> None:
        inner = Scope(node, self.module, scope, loop)
        self.module.scopes[node] = inner
        for child in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(child, scope, loop)
        self.bind(scope, node.name, Defined(inner, node.lineno))
        for statement in node.body:
            self.visit(statement, inner, None)

    def keep(self, node: ast.AST | None) -> None:
        """Note a call whose result is put into a container, or handed out."""
        if isinstance(node, ast.Call):
            self.module.kept.add(node)
        elif isinstance(node, ast.Name):
            self.module.kept_names.add(node.id)
        elif isinstance(node, (ast.Tuple, ast.List)):
            for part in node.elts:
                self.keep(part)

    def yield_(self, node: ast.Yield, scope: Scope, loop: ast.AST | None) -> None:
        self.keep(node.value)
        self.children(node, scope, loop)

    def call(self, node: ast.Call, scope: Scope, loop: ast.AST | None) -> None:
        site = CallSite(node, scope, loop)
        self.module.calls.append(site)
        match node.func:
            case ast.Attribute(value=base, attr=method):
                if method[:1] == "_":
                    self.module.private.append(site)
                if method == "setflags":
                    off = [k for k in node.keywords if k.arg == "write"]
                    if isinstance(base, ast.Name) and off and not is_true(off[0].value):
                        scope.frozen.add(base.id)
                if method in _STORING:
                    for arg in node.args:
                        self.keep(arg)
                if method in MUTATORS and not MUTATORS[method][2]:
                    self.mutates(node, base, method, scope)
            case ast.Name(id="setattr" | "delattr"):
                self.sets(node, scope)
            case _:
                pass
        self.visit(node.func, scope, loop)
        for arg in node.args:
            self.visit(arg, scope, loop)
        for keyword in node.keywords:
            self.visit(keyword.value, scope, loop)

    def alone(self, node: ast.Expr, scope: Scope, loop: ast.AST | None) -> None:
        """Handle a statement that uses no result: of a call, it is the effect that is wanted."""
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            method = call.func.attr
            if method in MUTATORS and MUTATORS[method][2]:
                self.mutates(call, call.func.value, method, scope)
        self.visit(call, scope, loop)

    def mutates(self, node: ast.Call, base: ast.expr, method: str, scope: Scope) -> None:
        """Note a method that changes what it is called on, or its first argument."""
        fewest, most, _ = MUTATORS[method]
        if not fewest <= len(node.args) <= most + method.startswith("__"):
            return
        match method, node.args:
            case "__setattr__", [made, ast.Constant(value=str() as name), *_]:  # object.__setattr__
                self.changed(ast.Attribute(made, name), scope, "set", node)
            case "setdefault", [ast.Constant(), *_]:
                self.changed(base, scope, "item", node)
            case _:
                self.changed(base, scope, method, node)

    def sets(self, node: ast.Call, scope: Scope) -> None:
        """Note what ``setattr(obj, "name", value)`` sets."""
        match node.args:
            case [made, ast.Constant(value=str() as name), *_]:
                self.changed(ast.Attribute(made, name), scope, "set", node)
            case _:
                pass


_HANDLERS: dict[type[ast.AST], Callable[[_Walk, Any, Scope, ast.AST | None], None]] = {
    ast.Import: _Walk.import_,
    ast.ImportFrom: _Walk.import_from,
    ast.Assign: _Walk.assign,
    ast.AnnAssign: _Walk.ann_assign,
    ast.AugAssign: _Walk.aug_assign,
    ast.Delete: _Walk.delete,
    ast.Expr: _Walk.alone,
    ast.NamedExpr: _Walk.named,
    ast.For: _Walk.for_,
    ast.AsyncFor: _Walk.for_,
    ast.While: _Walk.while_,
    ast.If: _Walk.if_,
    ast.With: _Walk.with_,
    ast.AsyncWith: _Walk.with_,
    ast.ExceptHandler: _Walk.handler,
    ast.MatchAs: _Walk.capture,
    ast.MatchStar: _Walk.capture,
    ast.MatchMapping: _Walk.capture,
    ast.ListComp: _Walk.listcomp,
    ast.SetComp: _Walk.listcomp,
    ast.DictComp: _Walk.listcomp,
    ast.GeneratorExp: _Walk.listcomp,
    ast.Global: _Walk.declare,
    ast.Nonlocal: _Walk.declare,
    ast.Return: _Walk.return_,
    ast.Yield: _Walk.yield_,
    ast.FunctionDef: _Walk.function,
    ast.AsyncFunctionDef: _Walk.function,
    ast.Lambda: _Walk.function,
    ast.ClassDef: _Walk.class_,
    ast.Call: _Walk.call,
    ast.Name: _Walk.skip,
    ast.Constant: _Walk.skip,
}  # fmt: skip


def parameters(args: ast.arguments) -> Iterator[ast.arg]:
    """Yield every parameter in the order of the signature."""
    yield from args.posonlyargs
    yield from args.args
    if args.vararg:
        yield args.vararg
    yield from args.kwonlyargs
    if args.kwarg:
        yield args.kwarg
