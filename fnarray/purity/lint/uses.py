"""Pitfalls of applying a transform: anew in a loop, or with static values that do not hash."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..findings import Finding
from ..nodes import walk
from ..rules import RULES
from .index import FUNCTIONS, CallSite, Module, Scope
from .kinds import NDARRAYS
from .place import place_of
from .project import External
from .proof import is_made_alike
from .traced import Finder, TracedSite, static_names

_UNHASHABLE: dict[type[ast.expr], str] = {
    ast.List: "a list", ast.Dict: "a dict", ast.Set: "a set", ast.ListComp: "a list",
    ast.DictComp: "a dict", ast.SetComp: "a set",
}  # fmt: skip
_MAKERS = {f"builtins.{n}": f"a {n}" for n in ("list", "dict", "set", "bytearray")} | {
    f"{m}.{n}": "an array" for m in ("numpy", "jax.numpy", "fnarray.numpy") for n in NDARRAYS
}


def jit_in_loop(finder: Finder, module: Module) -> Iterator[Finding]:
    """Yield the transforms of new functions inside loops (FNA606)."""
    rule = RULES["FNA606"]
    for site in module.calls:
        if site.loop is None or not site.node.args or site.node in module.kept:
            continue
        if _is_table(site.loop, site.scope):
            continue
        if not isinstance(site.node.func, (ast.Name, ast.Attribute)):
            continue
        found = finder.transform(site.node.func, site.scope)
        if found is None or not found.compiled:
            continue
        if _is_new(finder, site.node.args[0], site.scope, site.loop) and _is_used(site, module):
            one = rule.at(
                place_of(module.source, site.node),
                name=found.name,
                what=f"{ast.unparse(site.node.func)}()",
                source=module.source.line(site.node.lineno),
            )
            alike = is_made_alike(site.node.args[0], site.loop)
            yield one if alike or module.ours else one._replace(presumed=True)
    for scope in module.functions:
        if (
            not scope.in_loop
            or isinstance(scope.node, (ast.Lambda, ast.Module))
            or scope.parent is None
        ):
            continue
        if scope.name in module.kept_names or not _is_called(scope.name, scope.loop):
            continue
        if _is_table(scope.loop, scope.parent):
            continue
        for decorator in scope.node.decorator_list:
            use = finder.applied(decorator, scope.parent)
            if use is not None and use.transform.compiled and scope.loop is not None:
                one = rule.at(
                    place_of(module.source, decorator),
                    name=use.transform.name,
                    what=f"@{use.transform.name}",
                    source=module.source.line(decorator.lineno),
                )
                alike = is_made_alike(ast.Name(scope.name, ast.Load()), scope.loop)
                yield one if alike or module.ours else one._replace(presumed=True)


def _is_table(loop: ast.AST | None, scope: Scope) -> bool:
    """Say whether a loop goes through cases that are written out: each has a program of its own."""
    match loop:
        case ast.For(iter=cases) | ast.ListComp(generators=[ast.comprehension(iter=cases), *_]):
            return _is_written_out(cases, scope)
        case ast.SetComp(generators=[one, *_]) | ast.DictComp(generators=[one, *_]):
            return _is_written_out(one.iter, scope)
        case _:
            return False


def _is_written_out(node: ast.expr, scope: Scope, depth: int = 3) -> bool:
    if depth <= 0:
        return False
    match node:
        case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if args:
            return name in _COMBINING and all(_is_written_out(a, scope, depth - 1) for a in args)
        case ast.Call(func=ast.Attribute(value=table, attr="items" | "values" | "keys"), args=[]):
            return _is_written_out(table, scope, depth - 1)
        case ast.Name():
            found = _bound_to(node, scope)
            return found is not None and _is_written_out(found[1], found[0], depth - 1)
        case _:
            return False


#: What goes through written cases, in some order or combination.
_COMBINING = frozenset({"product", "zip", "enumerate", "reversed", "sorted"})


def _is_used(site: CallSite, module: Module) -> bool:
    """Say whether the loop that makes the function also calls it, or hands it on.

    What it puts into a list is there for later.
    """
    assert site.loop is not None
    for node in walk(site.loop):
        if isinstance(node, ast.Assign) and node.value is site.node:
            names = [t.id for t in node.targets if isinstance(t, ast.Name)]
            names = [name for name in names if name not in module.kept_names]
            return any(_is_called(name, site.loop) for name in names)
    return True


def _is_called(name: str, loop: ast.AST | None) -> bool:
    """Say whether a loop calls a name, or hands it to what may; an object holds it for later."""
    if loop is None:
        return False
    later: set[ast.AST] = set()
    for n in walk(loop):
        if isinstance(n, FUNCTIONS):
            later.update(walk(n)[1:])
        elif isinstance(n, ast.Call):
            called = getattr(n.func, "attr", getattr(n.func, "id", ""))
            if called[:1].isupper():
                later.update((*n.args, *(k.value for k in n.keywords)))
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and n not in later
        for n in walk(loop)
    )


def _is_new(finder: Finder, node: ast.expr, scope: Scope, loop: ast.AST) -> bool:
    """Say whether an expression makes a new function at each turn of the loop."""
    if isinstance(node, ast.Lambda):
        return True
    if isinstance(node, ast.Call):
        if finder.is_partial(node.func, scope):
            return True
        inner = finder.transform(node.func, scope)
        return inner is not None and bool(node.args)
    if isinstance(node, ast.Name):
        target = finder.project.resolve(node, scope)
        if isinstance(target, Scope) and target.is_function and target.in_loop:
            return target.parent is scope and target.node.lineno >= loop.lineno  # type: ignore
    return False


def unhashable(finder: Finder, module: Module, traced: list[TracedSite]) -> Iterator[Finding]:
    """Yield static parameters with defaults, or given values, that do not hash (FNA608)."""
    rule = RULES["FNA608"]
    static: dict[Scope | ast.AST, tuple[Scope, frozenset[str]]] = {}
    for one in traced:
        keywords = tuple(getattr(one.site, "keywords", ()))
        if isinstance(one.site, ast.Call) and isinstance(one.site.func, ast.Call):
            keywords += tuple(one.site.func.keywords)
        names = static_names(one.scope, keywords, 0 if one.decorates else one.bound)
        named = any(k.arg in ("static_argnums", "static_argnames") for k in keywords)
        sure = all(k.arg is not None and _known(k.value) for k in keywords if _is_static(k))
        if not one.transform.compiled or not names or not named or not sure:
            continue
        if one.decorates or not one.bound:
            static[one.scope if one.decorates else one.site] = one.scope, names
        for name, default in _defaults(one.scope):
            kind = _kind(finder, default, one.scope.parent or one.scope)
            if name in names and kind:
                yield rule.at(
                    place_of(one.scope.module.source, default),
                    name=name,
                    what=kind,
                    source=one.scope.module.source.line(default.lineno),
                    path=(one.label,),
                )
    for site in module.calls if static else ():
        func = site.node.func
        found = _bound_to(func, site.scope)
        made = found[1] if found is not None else finder.project.resolve(func, site.scope)
        target, names = (
            _NOTHING if isinstance(made, External | None) else static.get(made, _NOTHING)
        )
        for name, value in _given(target, site.node) if target is not None else ():
            kind = _kind(finder, value, site.scope)
            if name in names and kind:
                yield rule.at(
                    place_of(module.source, value),
                    name=name,
                    what=kind,
                    source=module.source.line(value.lineno),
                )


_NOTHING: tuple[None, frozenset[str]] = None, frozenset()


def _is_static(keyword: ast.keyword) -> bool:
    return keyword.arg is None or keyword.arg.startswith("static_")


def _known(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def _defaults(scope: Scope) -> Iterator[tuple[str, ast.expr]]:
    assert isinstance(scope.node, FUNCTIONS)
    args = scope.node.args
    positional = [*args.posonlyargs, *args.args]
    for arg, default in zip(reversed(positional), reversed(args.defaults), strict=False):
        yield arg.arg, default
    for arg, given in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if given is not None:
            yield arg.arg, given


def _given(scope: Scope, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    assert isinstance(scope.node, FUNCTIONS)
    args = scope.node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args)]
    if scope.parent is not None and scope.parent.is_class:
        names = names[1:]
    for name, value in zip(names, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        yield name, value
    for keyword in call.keywords:
        if keyword.arg:
            yield keyword.arg, keyword.value


def _kind(finder: Finder, node: ast.expr, scope: Scope) -> str | None:
    """Return what an expression makes, if that does not hash; of a name, what it is bound to."""
    if (found := _bound_to(node, scope)) is not None:
        return _kind(finder, found[1], found[0]) if not isinstance(found[1], ast.Name) else None
    kind = _UNHASHABLE.get(type(node))
    if kind is None and isinstance(node, ast.Call):
        target = finder.project.resolve(node.func, scope)
        kind = _MAKERS.get(target.name) if isinstance(target, External) else None
    return kind


def _bound_to(node: ast.expr, scope: Scope) -> tuple[Scope, ast.expr] | None:
    """Return the expression that a name is bound to once, and where; None for anything else."""
    found = scope.lookup(node.id) if isinstance(node, ast.Name) else None
    if found is None or len(found[1]) != 1 or not getattr(found[1][0], "exact", False):
        return None
    value: ast.expr | None = getattr(found[1][0], "value", None)
    return None if value is None else (found[0], value)
