"""Mechanical repairs: what to write instead, as edits of a file's text.

Each takes a finding and the module it stands in, and returns the edits that remove its cause, or
none where that takes a decision. They are the repairs that a rule's own text names.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..bindings import FUNCTIONS, Tree
from ..findings import Finding
from ..nodes import walk
from ._words import words
from .index import Assigned, Binding, Import, Module, Scope
from .keys import drawn_key
from .place import column_of
from .project import External, Project

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_REPEATED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BRANCHES = (ast.If, ast.Try, ast.Match)
_IN_PLACE = words("sort fill resize put itemset partition setflags byteswap setfield")


class Edit(NamedTuple):
    """Text in place of a span: lines from 1, columns in characters from 0, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


def applied(lines: list[str], edits: list[Edit]) -> list[str]:
    """Return the lines with all edits made; they must not overlap."""
    out = list(lines)
    for edit in sorted(set(edits), reverse=True):
        head, tail = out[edit.line - 1][: edit.column], out[edit.end_line - 1][edit.end_column :]
        out[edit.line - 1 : edit.end_line] = f"{head}{edit.text}{tail}".split("\n")
    return out


class Surroundings:
    """A module, and where a finding stands in it."""

    def __init__(self, project: Project, module: Module, finding: Finding) -> None:
        self.project = project
        self.module = module
        self.finding = finding
        assert module.source.tree is not None
        self.tree = module.source.tree
        self.parents = Tree.of(self.tree).parents

    def column(self, line: int, offset: int) -> int:
        """Return the character that stands at the tree's offset."""
        return column_of(self.module.source.line(line), offset) - 1

    def start(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return the line and the character at which a node begins."""
        return node.lineno, self.column(node.lineno, node.col_offset)

    def span(self, node: ast.expr) -> tuple[int, int, int, int]:
        """Return where a node begins and ends."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = self.column(node.end_lineno, node.end_col_offset)
        return *self.start(node), node.end_lineno, end

    def at(self, kind: type[ast.expr]) -> Iterator[ast.expr]:
        """Yield the nodes of a kind that begin where the finding does."""
        for node in walk(self.tree):
            if isinstance(node, kind) and self.start(node) == (
                self.finding.line, self.finding.column - 1
            ):  # fmt: skip
                yield node

    def scope(self, node: ast.AST) -> Scope:
        """Return the innermost function, class or module around a node."""
        around = self.parents.get(node)
        while around is not None and around not in self.module.scopes:
            around = self.parents.get(around)
        return self.module.scopes[around] if around is not None else self.module.scope

    def chain(self, node: ast.AST) -> list[ast.AST]:
        """Return a node and all around it, innermost first."""
        found = [node]
        while (around := self.parents.get(found[-1])) is not None:
            found.append(around)
        return found

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the simple statement, alone on its line, that a node is evaluated once by."""
        for one in self.chain(node):
            if isinstance(one, _REPEATED):
                return None
            if isinstance(one, ast.stmt):
                line, column = self.start(one)
                alone = not self.module.source.line(line)[:column].strip()
                return one if isinstance(one, _SIMPLE) and alone else None
        return None

    def names(self, name: str) -> Iterator[ast.Name]:
        """Yield where the name is spelled, in any scope."""
        return (n for n in walk(self.tree) if isinstance(n, ast.Name) and n.id == name)


# --- FNA605: key, sub = random.split(key) ---


def split_key(place: Surroundings) -> list[Edit]:
    """Give an earlier draw a key of its own: a key that was drawn from must not be split."""
    call = next(iter(place.at(ast.Call)), None)
    if not isinstance(call, ast.Call):
        return []
    scope = place.scope(call)
    name = drawn_key(place.project, scope, call)
    own = scope.is_function and name in scope.names and name not in scope.elsewhere
    if name is None or not own or _is_paired(call) or _is_captured(place, name, scope):
        return []
    for draw in reversed(list(_draws_before(place, call, name))):
        statement = place.statement(draw)
        given = draw.args[0] if draw.args else next(
            (k.value for k in draw.keywords if k.arg == "key"), None)  # fmt: skip
        if _rebinds(statement, name):
            continue  # a split such as these, in a loop
        if statement is None or not isinstance(given, ast.Name) or not _imports(place):
            return []
        sub = _fresh(place, "sub", scope)
        split, imported = _splitter(place, draw.func, scope)
        line, column = place.start(statement)
        indent = place.module.source.line(line)[:column]
        split = f"{name}, {sub} = {split}({name})\n{indent}"
        return [Edit(line, column, line, column, split), Edit(*place.span(given), sub), *imported]
    return []


def _splitter(place: Surroundings, drawn: ast.expr, scope: Scope) -> tuple[str, list[Edit]]:
    """Return how ``split`` is spelled beside a draw, and its import if there is none."""
    if isinstance(drawn, ast.Attribute):
        return f"{ast.unparse(drawn.value)}.split", []
    target = place.project.resolve(drawn, scope)  # ``from jax.random import normal``
    assert isinstance(target, External)
    module, top = target.name.rpartition(".")[0], place.module.scope
    for name, bindings in top.names.items():
        targets = {b.target if isinstance(b, Import) else "" for b in bindings}
        if (found := scope.lookup(name)) is None or found[0] is not top:
            continue
        if targets in ({module}, {f"{module}.split"}):
            return (f"{name}.split" if targets == {module} else name), []
    taken = any("split" in one.names for one in place.module.scopes.values())
    name = "split_key" if taken else "split"
    said = f"from {module} import split" + (f" as {name}" if taken else "")
    return name, [_importing(place, said)]


def _imports(place: Surroundings) -> list[ast.Import | ast.ImportFrom]:
    return [n for n in place.tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]


def _importing(place: Surroundings, said: str) -> Edit:
    """Return the edit that puts a line below the imports of a file."""
    last = _imports(place)[-1]
    line = last.end_lineno or last.lineno
    end = len(place.module.source.line(line))
    return Edit(line, end, line, end, f"\n{said}")


def _is_paired(call: ast.Call) -> bool:
    """Say whether a draw may be meant to equal the one before: rows of two arrays, in one order."""
    func = call.func
    return getattr(func, "attr", getattr(func, "id", "")) in ("choice", "permutation")


def _is_captured(place: Surroundings, name: str, scope: Scope) -> bool:
    """Say whether a function inside sees the variable, and so what it is bound to last."""
    inner = (place.scope(node) for node in place.names(name))
    return any(s is not scope and (s.lookup(name) or [None])[0] is scope for s in inner)


def _rebinds(statement: ast.stmt | None, name: str) -> bool:
    return isinstance(statement, ast.Assign) and any(
        isinstance(n, ast.Name) and n.id == name for t in statement.targets for n in walk(t)
    )


def _draws_before(place: Surroundings, call: ast.Call, name: str) -> Iterator[ast.Call]:
    """Yield the draws from a key that may come before one, itself last where a loop repeats it."""
    scope = place.scope(call)
    around = place.chain(call)
    for site in place.module.calls:
        draw = site.node
        if site.scope is not scope or drawn_key(place.project, scope, draw) != name:
            continue
        if draw is call:
            inner = around[: around.index(scope.node)]
            if any(isinstance(n, (ast.For, ast.While)) for n in inner):
                yield draw
        elif place.start(draw) < place.start(call) and not _exclude(place, draw, call):
            yield draw


def _exclude(place: Surroundings, one: ast.AST, two: ast.AST) -> bool:
    """Say whether two nodes stand in different branches of one statement."""
    first, second = place.chain(one), place.chain(two)
    meeting = next(node for node in first if node in second)
    if not isinstance(meeting, _BRANCHES):
        return False
    return _branch(meeting, first) != _branch(meeting, second)


def _branch(statement: ast.AST, chain: list[ast.AST]) -> str:
    child = chain[chain.index(statement) - 1]
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        part: list[Any] = getattr(statement, name, [])
        if type(part) is list and child in part:
            return f"{name}{part.index(child)}" if name in ("handlers", "cases") else name
    return "test"


def _fresh(place: Surroundings, name: str, scope: Scope) -> str:
    """Return a name that a function does not use yet, but for splits such as these."""
    taken = {n.id for n in walk(scope.node) if isinstance(n, ast.Name)} | scope.names.keys()
    if name not in taken or all(
        isinstance(b, Assigned) and isinstance(b.value, ast.Call)
        and ast.unparse(b.value.func).endswith(".split")
        for b in scope.names.get(name, [None])  # type: ignore[list-item]
    ):  # fmt: skip
        return name
    return next(n for i in range(2, 1000) if (n := f"{name}{i}") not in taken)


# --- FNA202: jnp.asarray around a captured array ---


def freeze_array(place: Surroundings) -> list[Edit]:
    """Make an array one that cannot change, where it is bound, if nothing changes it in place."""
    found = _captured(place)
    if found is None:
        return []
    name, holder, bindings = found
    if any(_changes(place, node) for node in place.names(name)):
        return []
    values = [b.value for b in bindings if isinstance(b, Assigned) and b.exact and b.value]
    if len(values) != len(bindings):
        return []
    alias, imported = _alias(place, holder)
    edits: list[Edit] = []
    for value in values:
        if not _is_frozen(value, name, alias):
            line, column, end_line, end_column = place.span(value)
            edits.append(Edit(line, column, line, column, f"{alias}.asarray("))
            edits.append(Edit(end_line, end_column, end_line, end_column, ")"))
    return [*edits, *imported] if edits else []


def _is_frozen(value: ast.expr, name: str, alias: str) -> bool:
    """Say whether a value is of the library: it makes it, or it is made of the frozen array."""
    calls = [n for n in walk(value) if isinstance(n, ast.Call)]
    if not calls:
        return any(isinstance(n, ast.Name) and n.id == name for n in walk(value))
    return value is calls[0] and ast.unparse(calls[0].func).startswith(f"{alias}.")


def _captured(place: Surroundings) -> tuple[str, Scope, list[Binding]] | None:
    """Return the variable that a finding is about, and what binds it."""
    for node in place.at(ast.Name):
        assert isinstance(node, ast.Name)
        found = place.scope(node).lookup(node.id)
        if found is not None and node.id not in found[0].writes and not found[0].is_class:
            return node.id, *found
    return None


def _changes(place: Surroundings, node: ast.Name) -> bool:
    """Say whether a use of an array changes it in place, or may."""
    parent = place.parents[node]
    above = place.parents.get(parent)
    match parent:
        case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.AugAssign():
            return True
        case ast.Attribute(ctx=ast.Store()):
            return True
        case ast.Attribute(attr=attr):
            return attr in _IN_PLACE or attr == "flags" or (
                isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store)
            )  # fmt: skip
        case ast.keyword(arg="out") | ast.Global() | ast.Nonlocal():
            return True
        case _:
            return False


def _alias(place: Surroundings, holder: Scope) -> tuple[str, list[Edit]]:
    """Return what the file calls the library's arrays module, and its import if there is none."""
    top = place.module.scope
    library = "jax" if "jax.numpy" in place.finding.repair else "fnarray"
    for name, bindings in top.names.items():
        # Of two libraries' modules the one whose transform captures the array.
        if all(isinstance(b, Import) and b.target == f"{library}.numpy" for b in bindings) and (
            holder is top or name not in holder.names
        ):
            return name, []
    name = "jnp" if "jnp" not in top.names else f"{library}_numpy"
    return name, [_importing(place, f"import {library}.numpy as {name}")]


# --- FNA203: a constant in capitals ---


def capitalise(place: Surroundings) -> list[Edit]:
    """Write a module's number in capitals, if all that binds it are branches of one statement."""
    found = _captured(place)
    if found is None:
        return []
    name, holder, bindings = found
    capitals = name.upper()
    if holder is not place.module.scope or not capitals.isidentifier() or capitals == name:
        return []
    uses = list(place.names(name))
    bound = [n for n in uses if not isinstance(n.ctx, ast.Load) and place.scope(n) is holder]
    taken = any(capitals in s.names or name in s.elsewhere for s in place.module.scopes.values())
    spelled = any(isinstance(n, ast.Constant) and n.value == name for n in ast.walk(place.tree))
    if taken or spelled or len(bound) != len(bindings) or not _is_bound_once(place, bound):
        return []
    mine = [n for n in uses if (seen := place.scope(n).lookup(name)) and seen[0] is holder]
    if any(isinstance(n, ast.JoinedStr) for use in mine for n in place.chain(use)):
        return []  # before Python 3.12 the tree does not tell where in the string they stand
    return [Edit(*place.span(use), capitals) for use in mine]


def _is_bound_once(place: Surroundings, bound: list[ast.Name]) -> bool:
    loops = (ast.For, ast.While, ast.AsyncFor, *FUNCTIONS, *_REPEATED)
    if any(isinstance(n, loops) for node in bound for n in place.chain(node)):
        return False
    pairs = [(a, b) for i, a in enumerate(bound) for b in bound[:i]]
    return all(_exclude(place, a, b) for a, b in pairs)


#: What repairs the findings of a rule.
REPAIRS: dict[str, Callable[[Surroundings], list[Edit]]] = {
    "FNA202": freeze_array,
    "FNA203": capitalise,
    "FNA605": split_key,
}
