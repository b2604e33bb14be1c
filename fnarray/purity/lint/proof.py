"""What a file shows of a finding where JAX traces, and what is presumed.

A finding is *shown* if the text itself has both halves of it: that the transform reaches the code,
and that somebody meets what goes wrong. It is *presumed* if it would be wrong under one more
condition that the text does not tell: that a field is set again after the first call, that what a
helper is handed is traced, that somebody reads what is left behind. The command reports what is
shown, and the rest with ``--presumed``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from ..nodes import walk
from .case import Case, is_traced, is_untraced
from .changes import CONSTRUCTORS
from .classes import assigned
from .customs import constructing, is_branched, is_first_use, is_locked, root_of
from .index import FUNCTIONS, Module, Scope, Site, parameters
from .kinds import spelled
from .traced import TracedSite


class Trace(NamedTuple):
    """A traced function, and the syntax of all functions that its trace came through."""

    site: TracedSite
    entered: Collection[ast.AST]

    @property
    def applied(self) -> int:
        """The line where the transform is applied."""
        return getattr(self.site.site, "lineno", 0)

    def is_in_sight(self, case: Case) -> bool:
        """Say whether something stands in the file of the traced function, or of its transform."""
        around = self.site.around or self.site.scope
        return case.module in (self.site.scope.module, around.module)

    def reaches(self, scope: Scope) -> bool:
        """Say whether a function is run by the trace, or stands in one that is."""
        inner: Scope | None = scope
        while inner is not None and inner.is_function:
            if inner.node in self.entered:
                return True
            inner = inner.parent
        return False


def is_shown(case: Case, trace: Trace) -> bool:
    """Say whether the text shows a finding."""
    return _LAWS.get(case.finding.code, _is_itself)(case, trace)


def _is_itself(case: Case, trace: Trace) -> bool:
    """What a traced function does in its own text, whatever it is given, is done at its trace."""
    steps = [step for step in case.evidence.frame.path[1:] if "(" not in step]
    return not steps and not is_branched(case.scope, case.evidence.node)


def _is_told(case: Case, trace: Trace) -> bool:
    """What is said of a traced value is its name, wherever that is said."""
    return any(map(is_traced, case.evidence.given)) or _is_itself(case, trace)


def _is_logged(case: Case, trace: Trace) -> bool:
    """A log that tells nothing of the call is as true once as each time."""
    node = case.evidence.node
    told = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    return not all(isinstance(n, ast.Constant) for n in told) and _is_told(case, trace)


# ---- reads ---------------------------------------------------------------------------------------


def _is_given_again(case: Case, trace: Trace) -> bool:
    """A read is of what changes if a caller may give it anew, or the text does, after the trace."""
    value = case.evidence.value
    if value is None or not trace.is_in_sight(case):
        return False
    name = value.name.rpartition(".")[2]
    if isinstance(value.home, Scope) and value.home.is_class and _is_left_empty(case, name):
        return False  # whoever sets it up comes first
    parts = constructing(case.module, CONSTRUCTORS)
    if any(_last(s.target) == name and _is_later(s, trace, parts) for s in case.module.sites):
        return True
    made = case.resolver.class_of(value) if value.holder != "attribute" else None
    return made is not None and any(
        site.scope.parent is made and _is_later(site, trace, parts) for site in made.module.sites
    )  # it has a method for that


def _is_left_empty(case: Case, name: str) -> bool:
    """Say whether a class gives a field None, for a method to fill."""
    home = case.evidence.value.home  # type: ignore[union-attr]
    values = [one.value for one in assigned(case.resolver.project, home, name)]
    return any(isinstance(v, ast.Constant) and v.value is None for v in values)


def _is_later(site: Site, trace: Trace, parts: set[Scope]) -> bool:
    """Say whether something is changed once its constructor is done, and a program compiled."""
    scope = site.scope
    if trace.reaches(scope) or scope in parts or scope.name in CONSTRUCTORS:
        return False
    if scope is trace.site.around or not scope.is_function:
        return getattr(site.node, "lineno", 0) > trace.applied
    told = site.node.args if isinstance(site.node, ast.Call) else [site.value]
    given = _parameters(scope)
    names = (n for part in told if part is not None for n in walk(part))
    return any(isinstance(n, ast.Name) and n.id in given for n in names)


def _parameters(scope: Scope) -> set[str]:
    """Return what a function is given, but for the object that it is a method of."""
    if not isinstance(scope.node, FUNCTIONS):
        return set()
    args = scope.node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    method = scope.parent is not None and scope.parent.is_class
    return set(names[1:] if method else names)


# ---- writes --------------------------------------------------------------------------------------


def _is_met(case: Case, trace: Trace) -> bool:
    """A write is met if a function that the trace does not come through reads what it left.

    A traced value that has no number there, or a sum or a list that lacks the other calls. What is
    set to the same at each call is there from the first, and tables are asked by those who fill
    them.
    """
    node, site = case.evidence.node, _site(case)
    if isinstance(node, ast.Call) and spelled(node.func) == "next":
        return _is_itself(case, trace)
    name = _written(case)
    adds = _is_added(case) or (site is not None and site.how in _ADDING)
    if not name or (not adds and all(map(is_untraced, case.evidence.given))):
        return False
    found = case.scope.lookup(root_of(node) or name)
    if _is_added(case) and _is_itself(case, trace):
        return True  # a counter that is one
    if case.finding.code == "FNA101" or (adds and found is not None and found[0].parent is None):
        return True  # whoever imports the module has it
    if is_locked(case.scope, node) or not trace.is_in_sight(case):
        return False
    if site is not None and is_first_use(case.scope, site.node, site.target):
        return True  # the next trace finds what this one left
    home = case.scope.lookup(name)
    return any(
        not trace.reaches(scope)
        and scope.name not in CONSTRUCTORS
        and (not isinstance(node, ast.Name) or scope.lookup(name) == home)
        and (scope is not trace.site.around or getattr(node, "lineno", 0) > trace.applied)
        for scope, node in _readers(case.module, name)
    )


def _is_added(case: Case) -> bool:
    node = case.evidence.node
    return any(
        isinstance(n, ast.AugAssign) and (n is node or n.target is node)
        for n in walk(case.scope.node)
    )


#: What makes a list longer at each call.
_ADDING = frozenset({"append", "appendleft", "extend", "insert"})


def _site(case: Case) -> Site | None:
    node = case.evidence.node
    return next((site for site in case.module.sites if site.node is node), None)


def _written(case: Case) -> str:
    """Return the last name of what is written: of ``self.seen.append(x)``, ``seen``."""
    node, site = case.evidence.node, _site(case)
    if site is not None:
        return _last(site.target)
    return _last(node) if isinstance(node, (ast.Name, ast.Attribute)) else root_of(node)


def _readers(module: Module, name: str) -> Iterator[tuple[Scope, ast.AST]]:
    """Yield where a module reads a variable or an attribute of a name."""
    written = {id(n) for site in module.sites for n in walk(site.target)}
    for scope in module.scopes.values():
        waiting: list[ast.AST] = [scope.node]
        for node in waiting:  # it grows on the way
            if node is not scope.node and node in module.scopes:
                continue
            waiting += ast.iter_child_nodes(node)
            if not isinstance(getattr(node, "ctx", None), ast.Load) or id(node) in written:
                continue
            if getattr(node, "attr", getattr(node, "id", "")) == name:
                yield scope, node


def _last(node: ast.AST) -> str:
    return spelled(node).rpartition(".")[2]


# ---- traced values -------------------------------------------------------------------------------


def is_sorted_out(scope: Scope, node: ast.AST) -> bool:
    """Say whether a branch asked what kind of thing it has, so that it may know of tracers."""
    return any(
        isinstance(n, (ast.If, ast.IfExp)) and node in walk(n)
        and any(isinstance(c, ast.Call) and spelled(c.func) in ("isinstance", "hasattr")
                for c in walk(n.test))
        for n in walk(scope.node)
    )  # fmt: skip


def is_made_alike(node: ast.expr, loop: ast.AST) -> bool:
    """Say whether a loop makes the same function at each turn: of nothing that a turn binds."""
    bound = {n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    made = {n.name: n for n in walk(loop) if isinstance(n, ast.FunctionDef)}
    waiting: list[ast.AST] = [node]
    for one in waiting:  # it grows on the way
        inner = {a.arg for n in walk(one) if isinstance(n, FUNCTIONS) for a in parameters(n.args)}
        names = {n.id for n in walk(one) if isinstance(n, ast.Name)} - inner
        if names & (bound - made.keys()):
            return False
        waiting += [made[name] for name in sorted(names & made.keys()) if made[name] not in waiting]
    return True


# ---- variables of loops --------------------------------------------------------------------------


def _is_kept(case: Case, trace: Trace) -> bool:
    """A closure meets a loop's next value if the loop keeps it: in a container, or by a yield."""
    name = getattr(case.evidence.node, "id", "")
    found = case.scope.lookup(name)
    inner = case.scope
    while inner.parent is not None and found is not None and inner is not found[0]:
        if any(_holds(value, inner) for value in _stored(inner.parent)):
            return True
        inner = inner.parent
    return False


def _stored(scope: Scope) -> Iterator[ast.AST]:
    """Yield what a function puts into containers and objects, or yields."""
    for node in walk(scope.node):
        match node:
            case ast.Call(func=ast.Attribute(attr="append" | "add" | "insert"), args=args):
                yield from args
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute()], value=value):
                yield value
            case ast.AugAssign(value=value) | ast.ListComp(elt=value) | ast.DictComp(value=value):
                yield value
            case ast.Yield(value=ast.expr() as value):
                yield value
            case _:
                pass


def _holds(node: ast.AST, function: Scope) -> bool:
    """Say whether an expression hands on a function, by itself or transformed."""
    match node:
        case ast.Name(id=name):
            return name == function.name
        case ast.Call(args=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(_holds(part, function) for part in parts)
        case _:
            return node is function.node


_LAWS: dict[str, Callable[[Case, Trace], bool]] = {
    **dict.fromkeys(("FNA101", "FNA102", "FNA103", "FNA105", "FNA108"), _is_met),
    **dict.fromkeys(("FNA201", "FNA204"), _is_given_again),
    **dict.fromkeys(("FNA311", "FNA314"), _is_told),
    "FNA313": _is_logged,
    "FNA205": _is_kept,
}
