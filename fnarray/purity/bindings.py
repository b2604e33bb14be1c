"""Which names are effectively final: bound once, or a container that its own call alone can reach.

A module's name is final when its whole source is seen to bind it once, and an array's when that is
over before a function that reads it is made. A container of an enclosing
function is final when that call made it, nobody is given it, and nothing writes it once the closure
is made. What is final is accepted, and guarded like everything else: what the syntax does not show
is seen by the guard.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import Any

from .nodes import children, walk
from .scopes import parameters

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*FUNCTIONS, ast.ClassDef)
_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SUITES = ("body", "orelse", "finalbody", "handlers", "cases")
_MADE = (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)
#: Calls that make a container anew, and others that look into one without keeping it.
_MAKERS = frozenset({"dict", "list", "set", "sorted", "defaultdict", "OrderedDict", "Counter",
                     "copy", "deepcopy", "fromkeys", "split", "asdict", "get_type_hints",
                     "loads"})  # fmt: skip
_LOOKERS = _MAKERS | {
    "len", "tuple", "frozenset", "any", "all", "sum", "min", "max", "enumerate", "zip", "reversed",
    "isinstance", "bool", "str", "repr", "print",
}  # fmt: skip
_READERS = frozenset({"get", "items", "keys", "values", "copy", "index", "count", "isdisjoint",
                      "issubset", "issuperset", "union", "difference", "intersection"})  # fmt: skip


class Tree:
    """Where the nodes of one syntax tree stand; made once, and kept on the tree.

    A statement of the module is looked into when something in it is asked for.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._parents: dict[ast.AST, ast.AST] = {}
        self._functions: dict[tuple[int, int], Any] = {}
        self._waiting = list(tree.body)

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each node is a part of."""
        self._take(self._waiting)
        return self._parents

    def around(self, first: int, last: int) -> list[Any]:
        """Return the functions of all statements of the module that have some of these lines."""
        self._take([s for s in self._waiting if _meets(s, first, last)])
        return list(self._functions.values())

    @cached_property
    def bound(self) -> Counter[str]:
        """How often the module binds each name."""
        return bindings(self._tree.body)

    @cached_property
    def assigned(self) -> frozenset[str]:
        """Attributes that something in the module sets, or deletes."""
        found = (n for n in walk(self._tree) if isinstance(n, ast.Attribute))
        return frozenset(n.attr for n in found if not isinstance(n.ctx, ast.Load))

    @cached_property
    def reached(self) -> frozenset[str]:
        """Names that a function reaches out for."""
        found: set[str] = set()
        statements: list[Any] = [*self._tree.body]
        for statement in statements:  # it grows on the way
            if isinstance(statement, (ast.Global, ast.Nonlocal)):
                found.update(statement.names)
            for suite in _SUITES:
                below = getattr(statement, suite, None)
                if type(below) is list:  # a lambda's body is none
                    statements += below  # pyright: ignore
        return frozenset(found)

    def function(self, line: int, column: int) -> tuple[Any, dict[ast.AST, ast.AST]]:
        """Return the function at a place, or None, and what the nodes around it are parts of."""
        self._take([s for s in self._waiting if _meets(s, line, line)])
        return self._functions.get((line, column)), self._parents

    def _take(self, statements: list[ast.stmt]) -> None:
        self._waiting = [s for s in self._waiting if s not in statements]
        self._parents.update(dict.fromkeys(statements, self._tree))
        nodes: list[ast.AST] = [*statements]
        for node in nodes:  # it grows on the way
            below = children(node)
            self._parents.update(dict.fromkeys(below, node))
            nodes += below
            if isinstance(node, FUNCTIONS):
                self._functions[node.lineno, node.col_offset] = node

    @staticmethod
    def of(tree: Any) -> Tree:
        """Return what is known of a tree, looked up once."""
        kept = getattr(tree, "_places", None)
        if kept is None:
            kept = tree._places = Tree(tree)
        return kept


def _meets(statement: ast.stmt, first: int, last: int) -> bool:
    return first_line(statement) <= last and first <= (statement.end_lineno or 0)


def first_line(node: ast.stmt) -> int:
    """Return the line that a definition begins at: that of its first decorator."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def bindings(body: list[ast.stmt], again: int = 2) -> Counter[str]:
    """Return how often statements bind each name of their scope; in a loop, or in place: twice.

    Or as often as ``again`` says.
    """
    found: Counter[str] = Counter()
    stack: list[tuple[ast.AST, int]] = [(node, 1) for node in body]
    while stack:
        node, times = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                found[starred(node)] += times
                continue
            found.update({(a.asname or a.name).partition(".")[0]: times for a in node.names})
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[node.id] += 2 if isinstance(node.ctx, ast.Del) else times
        elif isinstance(node, _SCOPES):
            if not isinstance(node, ast.Lambda):
                found[node.name] += times
            stack += [(d, times) for d in getattr(node, "decorator_list", ())]
            continue
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            walrus = (n for n in walk(node) if isinstance(n, ast.NamedExpr))
            found.update({n.target.id: 2 for n in walrus})
            continue
        elif isinstance(node, ast.AnnAssign) and node.value is None:
            continue
        elif (name := getattr(node, "name", None) or getattr(node, "rest", None)) is not None:
            found[name] += 2  # ``except ... as``, which deletes it, and patterns
        if isinstance(node, (*_LOOPS, ast.AugAssign)):
            times = again
        stack += [(child, times) for child in children(node)]
    return found


def starred(node: ast.ImportFrom) -> str:
    """Return what stands for the names that ``from module import *`` binds."""
    return f"*{'.' * node.level}{node.module or ''}"


def _bindings_in(function: Any) -> Counter[str]:
    """Return how often a function binds each name, parameters aside; kept on its node."""
    kept = getattr(function, "_bindings", None)
    if kept is None:
        body: Any = function.body
        kept = function._bindings = bindings([] if isinstance(body, ast.expr) else body)
    return kept


def bound_once(tree: ast.Module, name: str) -> bool:
    """Say whether a module binds a name once, and no function of it reaches out for the name."""
    places = Tree.of(tree)
    if name in places.reached or not places.bound[name]:
        return False
    return places.bound[name] == 1 or _times_on_a_way(tree.body, name) == 1


def bound_by_star(tree: ast.Module, name: str, exports: Callable[[str], bool]) -> bool:
    """Say whether one ``from module import *``, and nothing else, binds a name of a module.

    ``exports`` tells, of a module as it is spelled there, whether it exports the name.
    """
    places = Tree.of(tree)
    if name in places.reached or places.bound[name]:
        return False
    found = [key for key in places.bound if key[0] == "*" and exports(key[1:])]
    return len(found) == 1 and bound_once(tree, found[0])


def bound_early(tree: ast.Module, name: str) -> bool:
    """Say whether a module binds a name, however often, before it makes a function that reads it.

    Its statements run in order, and once: whoever reads the name finds what it is for good.
    """
    places = Tree.of(tree)
    if name in places.reached or not places.bound[name]:
        return False
    last = max(i for i, one in enumerate(tree.body) if bindings([one])[name])
    inner = (n for one in tree.body[: last + 1] for n in walk(one) if isinstance(n, FUNCTIONS))
    return not any(isinstance(n, ast.Name) and n.id == name for f in inner for n in walk(f))


def _times_on_a_way(body: list[ast.stmt], name: str) -> int:
    """Return how often statements bind a name at most, where a test decides which are run."""
    total = 0
    for one in body:
        if isinstance(one, ast.If):
            total += max(_times_on_a_way(one.body, name), _times_on_a_way(one.orelse, name))
            total += bindings([ast.Expr(one.test)])[name]
        elif isinstance(one, ast.Try):
            ways = [one.body + one.orelse, *(h.body for h in one.handlers)]
            total += max(_times_on_a_way(way, name) for way in ways)
            total += 2 * any(h.name == name for h in one.handlers)
            total += _times_on_a_way(one.finalbody, name)
        else:
            total += bindings([one])[name]
    return total


def bound_in_class(tree: ast.Module, path: str, name: str) -> bool:
    """Say whether the body of a class binds a name once, and nothing in its module sets it."""
    if name in Tree.of(tree).assigned:
        return False
    body: list[ast.stmt] = tree.body
    for part in path.replace(".<locals>", "").split("."):
        found = [n for n in body if isinstance(n, _NAMED) and n.name == part]
        if len(found) != 1:
            return False
        body = found[0].body
    return bindings(body)[name] == 1


def binder(tree: ast.Module, line: int, column: int, name: str) -> tuple[Any, Any] | None:
    """Return the function around a place that binds a name, and what in it leads to the place."""
    inner, parents = Tree.of(tree).function(line, column)
    around = parents.get(inner) if inner is not None else None
    while around is not None:
        if isinstance(around, FUNCTIONS):
            if name in parameters(around) or _bindings_in(around)[name]:
                return around, inner
            inner = around
        around = parents.get(around)
    return None


def bound_before(tree: ast.Module, line: int, column: int, name: str) -> bool:
    """Say whether the function around a place binds a name for good before it comes there.

    A parameter, one assignment, or several, in place and in loops among them, of which none comes
    later, in a further turn of a loop around the place neither.
    """
    found = binder(tree, line, column, name)
    if found is None or name in Tree.of(tree).reached:
        return False
    around, closure = found
    if _bindings_in(around)[name] + (name in parameters(around)) == 1:
        return True
    if isinstance(around, ast.Lambda):
        return False
    places = [n for n in _occurrences(around, name) if isinstance(n.ctx, ast.Store)]
    if len(places) != bindings(around.body, again=1)[name]:
        return False
    line = closure.lineno
    loops = (n for n in walk(around) if isinstance(n, _LOOPS) and _meets(n, line, line))
    first = min((n.lineno for n in loops), default=line)
    return all((n.end_lineno or 0) < first for n in places)


def belongs(tree: ast.Module, line: int, column: int, name: str) -> bool:
    """Say whether a container that the function at a place captures is its frame's alone.

    The enclosing call made it, gives it to nobody, and does not write it once the closure is made.
    """
    found = binder(tree, line, column, name)
    if found is None or isinstance(found[0], ast.Lambda):
        return False
    around, closure = found
    _, parents = Tree.of(tree).function(line, column)
    if name in Tree.of(tree).reached or not _is_made_by(around, name):
        return False
    return all(
        _is_harmless(node, around, closure, line, column, parents)
        for node in _occurrences(around, name)
    )


def _is_made_by(around: Any, name: str) -> bool:
    args = around.args
    packed = [a.arg for a in (args.vararg, args.kwarg) if a is not None]
    if name in parameters(around) and name not in packed:
        return False
    values = [
        n.value
        for n in walk(around)
        if isinstance(n, (ast.Assign, ast.AnnAssign))
        and any(isinstance(t, ast.Name) and t.id == name for t in _targets(n))
    ]
    if len(values) != _bindings_in(around)[name]:
        return False  # in a loop, in place, or by unpacking
    return all(v is not None and (isinstance(v, _MADE) or _is_call_of(v, _MAKERS)) for v in values)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _is_call_of(node: Any, names: frozenset[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    return getattr(func, "id", getattr(func, "attr", "")) in names


def _occurrences(around: Any, name: str) -> list[ast.Name]:
    """Return where a variable is named: in its function, and in those inside of it."""
    found: list[ast.Name] = []
    stack: list[ast.AST] = list(around.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and node.id == name:
            found.append(node)
        elif isinstance(node, FUNCTIONS) and name in parameters(node):
            stack += [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
            continue
        stack += children(node)
    return found


def _is_harmless(
    node: ast.Name, around: Any, closure: Any, line: int, column: int,
    parents: dict[ast.AST, ast.AST],
) -> bool:  # fmt: skip
    """Say whether one use leaves the container as it is, or comes before the closure is made."""
    parent = parents[node]
    if _reads(node, parent, parents):
        return True
    chain = [parent]
    while chain[-1] is not around:
        chain.append(parents[chain[-1]])
    inner = [n for n in chain if isinstance(n, FUNCTIONS) and n is not around]
    if any((n.lineno, n.col_offset) == (line, column) for n in inner):
        # The traced function itself: what it does with the container, the analysis follows.
        return isinstance(parent, (ast.Call, ast.keyword))
    made = closure
    looped = any(isinstance(n, _LOOPS) and any(m is made for m in walk(n)) for n in chain)
    before = not inner and not looped and (node.end_lineno or 0) < made.lineno
    return before and _writes(node, parent, parents)


def _reads(node: ast.Name, parent: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    match parent:
        case ast.Subscript(ctx=ast.Load()):
            return parent.value is node
        case ast.Attribute(attr=attr):
            call = parents[parent]
            return attr in _READERS and isinstance(call, ast.Call) and call.func is parent
        case ast.keyword(arg=None) | ast.Starred() | ast.Compare() | ast.FormattedValue():
            return True
        case ast.For(iter=it) | ast.AsyncFor(iter=it) | ast.comprehension(iter=it):
            return it is node
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return test is node
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Dict(keys=keys, values=values):  # ``{**kw}``
            return any(k is None and v is node for k, v in zip(keys, values, strict=True))
        case ast.Call():
            return parent.func is not node and _is_call_of(parent, _LOOKERS)
        case _:
            return False


def _writes(node: ast.Name, parent: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Say whether a use writes the container, and gives it to nobody."""
    match parent:
        case ast.Subscript():
            return parent.value is node
        case ast.Attribute():
            call = parents[parent]
            return isinstance(call, ast.Call) and call.func is parent
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return isinstance(node.ctx, ast.Store)
        case _:
            return False
