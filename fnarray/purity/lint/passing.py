"""How long a trace lives that a function makes for itself, and what it leaves with that function.

A transform of a function made there, whose result is called at once and not kept, is over when the
call is: what was read is not kept, and what was written into the caller's objects goes with them.
"""

from __future__ import annotations

import ast

from ..engine.machine import Evidence
from ..findings import Finding
from ..nodes import nodes_in, walk
from .index import FUNCTIONS, Assigned, Scope
from .kinds import spelled
from .traced import TracedSite


def is_passing(traced: TracedSite) -> bool:
    """Say whether a transform is applied, in a function, to what that call alone uses.

    It is given a function that is made there anew, and its result is called at once, or by a name
    that is only ever called: nothing of the trace outlives the call.
    """
    around = function_around(traced)
    if around is None:
        return False
    if traced.decorates:
        alone = len(getattr(traced.scope.node, "decorator_list", ())) == 1
        return alone and _is_name_only_called({traced.scope.name}, around)
    site = traced.site
    if not isinstance(site, ast.Call) or not site.args or not _is_made_here(site.args[0], around):
        return False
    return (traced.transform.now and not traced.transform.body) or _is_only_called(site, around)


def function_around(traced: TracedSite) -> Scope | None:
    """Return the innermost function that a transform is applied in."""
    around = traced.scope.parent if traced.decorates else traced.around
    while around is not None and not around.is_function:
        around = around.parent
    return around


def maker(evidence: Evidence, scope: Scope, traced: TracedSite) -> Scope | None:
    """Return the function that made the object a finding is about, by the name of the object.

    It is looked for from the place of the finding, and from the traced function, where a method is
    called on it.
    """
    name = evidence.value.name if evidence.value is not None else getattr(evidence.node, "id", "")
    root = name.partition(".")[0]
    for start in (scope, traced.scope):
        found = start.lookup(root)
        if found is None or found[0] is start:
            continue
        holder, bindings = found
        made = [b for b in bindings if isinstance(b, Assigned) and b.exact and b.value is not None]
        if holder.is_function and made and len(made) == len(bindings):
            return holder
    return None


def is_left_there(evidence: Evidence, traced: TracedSite, held: Scope | None) -> bool:
    """Say whether what a passing trace writes goes when the function goes that applied it.

    Into an object of that function, ``held``, which it does not look at itself; or which it does,
    once ``eval_shape`` is done: what that leaves is read for its structure.
    """
    around = function_around(traced)
    if held is None or held is not around:
        return False
    if traced.transform.name == "eval_shape":
        return True
    name = evidence.value.name if evidence.value is not None else getattr(evidence.node, "id", "")
    return not _is_looked_at(name.partition(".")[0], held, traced)


def is_callbacks_own(
    finding: Finding, evidence: Evidence, traced: TracedSite, scope: Scope
) -> bool:
    """Say whether nobody meets what a callback leaves in the function around it.

    The name is bound anew to what its loop or branch gives: ``table = cond(full, keep, insert)``;
    or nobody but the callback looks at it, which writes before it reads.
    """
    name = finding.message.partition("'")[2].partition("'")[0].partition(".")[0]
    step = next((step for step in reversed(evidence.frame.path) if "(" in step), "")
    transform, _, callback = step.removesuffix(")").partition("(")
    for n in nodes_in(traced.scope.node):
        match n:
            case ast.Assign(targets=[ast.Name(id=bound)], value=ast.Call(func=func, args=args)):
                handed = any(getattr(arg, "id", "<lambda>") == callback for arg in args)
                if bound == name and handed and spelled(func).rpartition(".")[2] == transform:
                    return True
            case _:
                pass
    found = scope.lookup(name)
    if found is None or not found[0].is_function or found[0] is scope or _is_given(found[0], name):
        return False
    inside, line = set(nodes_in(scope.node)), getattr(evidence.node, "lineno", 0)
    written = set(walk(evidence.node))
    return all(
        n in inside and (n in written or n.lineno > line)
        for n in nodes_in(found[0].node)
        if isinstance(n, ast.Name) and n.id == name
    )


def _is_given(scope: Scope, name: str) -> bool:
    """Say whether a name is a parameter, but for that of all other keywords: a dict of the call."""
    kwarg = getattr(scope.node.args.kwarg, "arg", "")  # type: ignore[union-attr]
    return name != kwarg and name in _arguments(scope)


def _is_looked_at(name: str, holder: Scope, traced: TracedSite) -> bool:
    """Say whether a function, or one in it that outlives the call, reads a variable of its own."""
    kept: set[str] = set()
    waiting: list[ast.AST] = [*getattr(holder.node, "body", ())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, FUNCTIONS):
            inner = any(isinstance(n, ast.Name) and n.id == name for n in walk(node))
            if inner and node is not traced.scope.node:
                return True
            continue
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, (ast.Return, ast.Yield)) and isinstance(node.value, ast.Name):
            kept.add(node.value.id)
        waiting += ast.iter_child_nodes(node)
    return traced.scope.name in kept


def _is_made_here(node: ast.expr, around: Scope) -> bool:
    match node:
        case ast.Lambda() | ast.Call():
            return True
        case ast.Name(id=name):
            return name in around.names and name not in _arguments(around)
        case _:
            return False


def _arguments(scope: Scope) -> set[str]:
    assert isinstance(scope.node, FUNCTIONS)
    args = scope.node.args
    return {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}


def _is_only_called(site: ast.Call, around: Scope) -> bool:
    names: set[str] = set()
    for node in nodes_in(around.node):
        match node:
            case ast.Call(func=func) if func is site:
                return True
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is site:
                names.add(name)
            case _:
                pass
    return bool(names) and _is_name_only_called(names, around)


def _is_name_only_called(names: set[str], around: Scope) -> bool:
    """Say whether variables are called and nothing else, or given with operands to a call.

    ``minimize(objective, x0)`` calls what it is given; of ``register(objective)`` nobody knows.
    """
    called: set[ast.AST] = set()
    for n in nodes_in(around.node):
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) and len(n.value.args) > 1:
            called.update(n.value.args)
        if isinstance(n, ast.Call):
            called.add(n.func)
    return all(
        node in called
        for node in nodes_in(around.node)
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
    )
