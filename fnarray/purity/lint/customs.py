"""Ways of writing by which an effect is meant: a first use, a lock, a test that expects an error.

Each is a law of text alone, which `harm` and `changes` ask of a node and the function it stands in.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..nodes import nodes_in, walk
from .index import Binding, Module, Scope, Site
from .kinds import spelled

# ---- a first use ---------------------------------------------------------------------------------


def is_first_use(scope: Scope, node: ast.AST, target: ast.AST) -> bool:
    """Say whether something is set where it was asked for and missing: it is made once.

    ``if cls._instance is None: cls._instance = cls()``; or the other way around, by a return.
    """
    text = spelled(target)
    for branch in _branches(scope):
        if _says(branch.test, text, there=False) and _holds(branch.body, node):
            return True
        if not _says(branch.test, text, there=True):
            continue
        leaves = isinstance(branch.body[-1], (ast.Return, ast.Raise))
        if _holds(branch.orelse, node) or (leaves and branch.lineno < _line(node)):
            return not _holds(branch.body, node)
    return False


def _branches(scope: Scope) -> Iterator[ast.If]:
    """Yield the branches of a function's own statements: of inner functions, others ask."""
    body: object = getattr(scope.node, "body", None)
    waiting: list[Any] = [*body] if isinstance(body, list) else []  # a lambda has no statements
    for one in waiting:  # it grows on the way
        if isinstance(one, ast.If):
            yield one
        if not isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            for name in _BODIES:
                waiting += getattr(one, name, ())


_BODIES = ("body", "orelse", "finalbody", "handlers")


def _holds(body: Iterable[ast.stmt], node: ast.AST) -> bool:
    return any(inner is node for part in body for inner in walk(part))


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _says(test: ast.expr, text: str, *, there: bool) -> bool:
    """Say whether a test holds only where something is there, or only where it is missing."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _says(inner, text, there=not there)
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]):
            return spelled(left) == text and isinstance(op, ast.IsNot if there else ast.Is)
        case ast.Compare(left=ast.Constant(value=str() as name), ops=[op], comparators=[held]):
            owner = spelled(held).removesuffix(".__dict__").replace("vars(", "")
            return f"{owner}.{name}" == text and isinstance(op, ast.In if there else ast.NotIn)
        case ast.Call(func=ast.Name(id="hasattr"), args=[base, ast.Constant(value=name)]):
            return there and f"{spelled(base)}.{name}" == text
        case ast.BoolOp(op=op, values=parts):
            # Both hold where ``and`` does; of ``or``, any may.
            ask = any if isinstance(op, ast.And) else all
            return ask(_says(part, text, there=there) for part in parts)
        case ast.Name() | ast.Attribute():
            return there and spelled(test) == text
        case _:
            return False


# ---- a constructor's part ------------------------------------------------------------------------

_COPIES = frozenset({"__new__", "copy", "deepcopy", "cls"})


def is_new(scope: Scope, target: ast.AST) -> bool:
    """Say whether a field is set of an object that the function has made, and others have not seen:
    ``obj = cls.__new__(cls)``, or a copy.
    """
    root = spelled(target).partition(".")[0]
    bindings = _last_bindings(scope, root)
    value = getattr(bindings[0], "value", None) if len(bindings) == 1 else None
    match value:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _COPIES:
            return getattr(bindings[0], "exact", False)
        case ast.Call(func=ast.Call(func=ast.Name(id="type"))):  # ``type(self)(...)``
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name[:1].isupper():
            return not _is_handed_on(scope, root, bindings[0].line, _line(target))
        case _:
            return False


def _last_bindings(scope: Scope, name: str) -> list[Binding]:
    """Return what a variable is bound to, since it was bound to a copy of itself if it was."""
    bindings = scope.names.get(name, [])
    copied = [
        n.lineno for n in getattr(scope.node, "body", ())
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and len(n.value.args) == 1
        and isinstance(n.targets[0], ast.Name) and n.targets[0].id == name
        and root_of(n.value.args[0]) == name
    ] if len(bindings) > 1 else []  # fmt: skip
    return [b for b in bindings if b.line >= copied[-1]] if copied else bindings


def _is_handed_on(scope: Scope, name: str, first: int, last: int) -> bool:
    """Say whether an object is called, or given to anybody, between two lines."""
    # Few statements of a module stand between: to walk all was a tenth of a run over JAX.
    body: Any = () if isinstance(scope.node, ast.Lambda) else scope.node.body
    near: list[ast.AST] = [s for s in body if s.end_lineno > first and s.lineno < last]
    for n in itertools.chain.from_iterable(map(walk, near)):
        if isinstance(n, ast.Call) and first < n.lineno < last:
            parts = (n.func, *n.args, *(k.value for k in n.keywords))
            if any(root_of(part) == name for part in parts):
                return True
    return False


#: What a method is called that frameworks call once, after the constructor.
_BUILDS = re.compile(r"_*(build|setup|set_up|init|initiali[sz]e|prepare)(_\w+)?\Z")


def is_set_up(site: Site, constructors: frozenset[str]) -> bool:
    """Say whether a field is set that constructors leave empty, by the one method that sets it.

    Or leave out, where the name of the method says that it builds.

    Until then there is nothing to read: what is traced is traced afterwards.
    """
    owner = site.scope.enclosing_class()
    attr = getattr(site.target, "attr", "")
    bound = (owner.sets or {}).get(attr, ()) if owner is not None else ()
    empty = any(isinstance(b.value, ast.Constant) and b.value.value is None for b in bound)
    if not empty and not (len(bound) == 1 and _BUILDS.match(site.scope.name)):
        return False
    places = {
        other.scope for other in site.scope.module.sites
        if getattr(other.target, "attr", "") == attr and other.scope.enclosing_class() is owner
        and other.scope.name not in constructors
    }  # fmt: skip
    return places == {site.scope}


def constructing(module: Module, constructors: frozenset[str]) -> set[Scope]:
    """Return the private methods that constructors of their class call, and nobody else does."""
    callers: dict[tuple[Scope, str], list[Scope]] = {}
    for site in module.private:
        func: Any = site.node.func
        method = site.scope
        while method.parent is not None and method.parent.is_function:
            method = method.parent
        owner = method.parent
        if owner is not None and owner.is_class and spelled(func.value) == "self":
            callers.setdefault((owner, func.attr), []).append(method)
    found: set[Scope] = set()
    for _ in range(2):  # one that such a method calls
        for (owner, name), those in callers.items():
            inner = getattr(owner.names.get(name, [None])[-1], "scope", None)
            if inner is not None and all(m.name in constructors or m in found for m in those):
                found.add(inner)
    return found


# ---- a lock --------------------------------------------------------------------------------------

_LOCK = re.compile(r"(?i)lock\Z|mutex\Z")


def is_locked(scope: Scope, node: ast.AST) -> bool:
    """Say whether something is done while a lock is held: bookkeeping among threads, and meant."""
    return any(
        isinstance(n, ast.With)
        and any(_LOCK.search(spelled(item.context_expr)) for item in n.items)
        and _holds(n.body, node)
        for n in nodes_in(scope.node)
    )


# ---- an error ------------------------------------------------------------------------------------


def is_failing(scope: Scope, node: ast.AST) -> bool:
    """Say whether something is done on the way to an error: no program is made that would miss it.

    In the statement that raises, or just before it; anywhere in a handler that raises at its end.
    """
    for n in nodes_in(scope.node):
        if isinstance(n, ast.ExceptHandler) and isinstance(n.body[-1], ast.Raise):
            if _holds(n.body, node):
                return True
            continue
        if n is scope.node or not isinstance(n, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            continue
        for body in (n.body, getattr(n, "orelse", [])):
            if body and isinstance(body[-1], ast.Raise) and _holds(filter(_is_simple, body), node):
                return True
    return False


def _is_simple(statement: ast.AST) -> bool:
    return isinstance(statement, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Raise))


# ---- tests ---------------------------------------------------------------------------------------

_RAISING = frozenset({"raises", "assertRaises", "assertRaisesRegex", "assertRaisesWithRegex",
                      "warns", "assertWarns", "assertWarnsRegex"})  # fmt: skip


def is_expected(scope: Scope, site: ast.AST, around: Scope) -> bool:
    """Say whether a test applies a transform, or calls what it made, where it expects an error."""
    for n in nodes_in(around.node):
        if not isinstance(n, ast.With):
            continue
        calls = (item.context_expr for item in n.items)
        names = {spelled(c.func).rpartition(".")[2] for c in calls if isinstance(c, ast.Call)}
        if names & _RAISING and (
            _holds(n.body, site)
            or any(isinstance(m, ast.Name) and m.id == scope.name
                   for part in n.body for m in walk(part))
        ):  # fmt: skip
            return True
    return False


def is_tally(scope: Scope, node: ast.AST) -> bool:
    """Say whether ``calls["n"] += 1`` counts how often its function is traced, for a test.

    It is told by who reads it: nobody but assertions.
    """
    match _statement(scope, node):
        case ast.AugAssign(target=target, op=ast.Add(), value=ast.Constant(value=int())):
            root = root_of(target)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr="append"),
                                     args=[_])):  # fmt: skip
            root = root_of(base)
        case _:
            return False
    found = scope.lookup(root)
    if found is None or not found[0].is_function or found[0] is scope:
        return False
    inside = set(nodes_in(scope.node))
    asserted: set[ast.AST] = set()
    for n in nodes_in(found[0].node):
        match n:
            case ast.Assert():
                asserted.update(walk(n))
            case ast.Call(func=func) if "assert" in spelled(func).rpartition(".")[2].lower():
                asserted.update(walk(n))
            case _:
                pass
    reads = [
        n for n in nodes_in(found[0].node)
        if isinstance(n, ast.Name) and n.id == root and isinstance(n.ctx, ast.Load)
        and n not in inside
    ]  # fmt: skip
    return bool(reads) and all(n in asserted for n in reads)


def _statement(scope: Scope, node: ast.AST) -> ast.AST | None:
    return next(
        (n for n in nodes_in(scope.node)
         if isinstance(n, (ast.AugAssign, ast.Expr)) and node in walk(n)), None,
    )  # fmt: skip


def root_of(node: ast.AST) -> str:
    """Return the variable that an item, attribute or method is of: of ``args[0].v``, ``args``."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Subscript(value=inner) | ast.Attribute(value=inner):
                node = inner
            case ast.AugAssign(target=inner) | ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case _:
                return ""
    return node.id


def is_branched(scope: Scope, node: ast.AST) -> bool:
    """Say whether something stands under a condition: a text there tells of how it was called."""
    kinds = (ast.If, ast.Try, ast.ExceptHandler, ast.Match)
    return any(isinstance(n, kinds) and node in walk(n) for n in nodes_in(scope.node))


def is_cached(scope: Scope) -> bool:
    """Say whether what a function gives is kept, for it is the same each time."""
    decorators = getattr(scope.node, "decorator_list", ())
    names = (spelled(getattr(d, "func", d)).rpartition(".")[2] for d in decorators)
    return any(name in ("lru_cache", "cache", "memoize") for name in names)


# ---- what is said of the code itself -------------------------------------------------------------

_OF_CODE = re.compile(r"(?i)\bdeprecat|\bwarn|\bcompil|\btrac(e|ing)\b|\bjit|\bnote:|\bnot support")


def speaks_of_code(told: list[ast.expr]) -> bool:
    """Say whether a text, with no value in it, is about the program: it is rightly said once."""
    return bool(told) and all(
        isinstance(a, ast.Constant) and isinstance(a.value, str) for a in told
    ) and any(_OF_CODE.search(str(getattr(a, "value", ""))) for a in told)  # fmt: skip


# ---- who knows of traces -------------------------------------------------------------------------

#: Names of what tells whether a trace is in progress.
_TELLS = re.compile(r"Tracer\Z|(has|is|in|under|contains)_\w*(trac(er|ers|ing|ed)|transform)\Z")

_MENTIONS = ("Tracer", "_tracer", "_tracing", "_traced", "_transform", "Concretization")
#: What says that a traced value was asked for its number.
_CAUGHT = re.compile(r"Tracer\w*Error\Z|ConcretizationTypeError\Z")


def asks_for_tracers(scope: Scope) -> bool:
    """Say whether a function asks if it is traced: it knows what is done at the trace alone.

    So does one that catches the error of who asks a traced value for its number.
    """
    if not scope.module.mentions(*_MENTIONS):
        return False
    for n in nodes_in(scope.node):
        if isinstance(n, ast.Call):
            named = (n.func, *n.args[1:])
            if any(isinstance(a, (ast.Name, ast.Attribute)) and _TELLS.search(spelled(a))
                   for a in named):  # fmt: skip
                return True
        caught = n.type if isinstance(n, ast.ExceptHandler) else None
        if caught is not None and any(_CAUGHT.search(spelled(a)) for a in walk(caught)):
            return True
    return False
