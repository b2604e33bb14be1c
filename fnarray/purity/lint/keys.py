"""FNA605: a random key drawn from twice on one path through a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ..findings import Finding
from ..known import MUTATORS
from ..nodes import children, walk
from ..rules import RULES
from ..ways import Domain, State, attempt, either, is_whole, jump, loop
from ._words import words
from .index import FUNCTIONS, Assigned, Defined, Module, Scope
from .place import place_of
from .project import External, Project

_RANDOM = ("jax.random.", "fnarray.random.")
# These make keys, or derive a new one from data: the same key may be given to them again.
_FREE = words(
    """
    key PRNGKey fold_in key_data wrap_key_data clone key_impl default_prng_impl
    threefry2x32_p random_gamma_p
    """
)
#: Functions that draw, by the names under which a project may hand them on.
_DRAWS = words("normal uniform split bernoulli randint choice permutation categorical gamma")
#: Draws that put data into an order: that of two arrays is meant to be one.
_ORDERS = frozenset({"choice", "permutation", "shuffle"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _most(ends: list[dict[str, int]]) -> dict[str, int]:
    """Return the most draws that any one way made."""
    keys = dict.fromkeys(key for env in ends for key in env)
    return {key: max(env.get(key, 0) for env in ends) for key in keys}


#: Draws: what a ``try`` drew before it failed is drawn again by its handlers, and means to be.
DRAWN: Final = Domain(_most, undone=True)


class _Keys(State[int]):
    """Follows the keys of one function: how often each was drawn from, by its spelling."""

    def __init__(self, project: Project, scope: Scope, inner: Inner) -> None:
        super().__init__()
        self.project = project
        self.scope = scope
        self.inner = inner
        #: For each draw that is not the first: the key, and all draws made from it until then.
        self.found: dict[ast.Call, tuple[str, list[ast.Call]]] = {}
        #: The draws made from each key, in the order of the text.
        self.drawn: dict[str, list[ast.Call]] = {}
        #: Draws that stand in a comprehension, where no statement can split.
        self.inside: set[ast.AST] = set()

    def run(self) -> Iterator[Finding]:
        """Yield a finding at each second draw."""
        node = self.scope.node
        assert isinstance(node, FUNCTIONS)
        body: list[ast.stmt]
        body = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
        self.block(body)
        module = self.scope.module
        for call, (key, draws) in self.found.items():
            # What a loop draws anew at each turn is the same each time, and keys lead further.
            repeated = call in draws[:-1] or (
                _name(call) == "split" and ast.dump(call) != ast.dump(draws[0])
            )
            if not repeated and not meet(body, draws):
                continue
            before = next((d.lineno for d in draws if d.lineno != call.lineno), 0)
            said = f"was used on line {before}" if before else "was used before"
            if call in draws[:-1] and not before:
                said = "is used again at each turn"
            finding = RULES["FNA605"].at(
                place_of(module.source, call),
                name=key,
                what=said,
                source=module.source.line(call.lineno),
            )
            repair = f"Split it into as many: ... for sub in random.split({key}, n)."
            if drawn_key(self.project, self.scope, call) is None:
                repair = f"Give {_name(call)} a key as an argument, split for each call."
            elif call not in self.inside:
                repair = finding.repair
            yield finding._replace(repair=repair)

    def block(self, body: list[ast.stmt]) -> bool:
        """Follow statements in order; say whether control can leave at the end."""
        for statement in _chained(body):
            if _HANDLERS.get(type(statement), _Keys.plain)(self, statement) is False:
                return False
        return True

    def plain(self, node: ast.AST) -> None:
        self.draws(node)
        for child in walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                self.forget(child.id)
            elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
                self.forget(ast.unparse(child))

    def forget(self, name: str) -> None:
        """A name is bound anew: what was drawn from it no longer counts."""
        for key in [k for k in self.env if k == name or k.startswith((f"{name}[", f"{name}."))]:
            del self.env[key]

    def draws(self, node: ast.AST) -> None:
        """Count the draws in an expression, in the order of the text.

        What an assertion draws is drawn again to be compared with.
        """
        if not self.mentions(node) or _is_assertion(node):
            return
        if isinstance(node, ast.IfExp):
            self.draws(node.test)
            either(self, DRAWN, self.expression, (node.body, node.orelse))
            return
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return
        if isinstance(node, _COMPREHENSIONS):
            self.comprehension(node)
            return
        match node:
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int() as index)):
                for child in children(call):
                    self.draws(child)
                self.count(call, index if _name(call) == "split" else None)
            case _:
                for child in children(node):
                    self.draws(child)
                if isinstance(node, ast.Call):
                    self.count(node)

    def expression(self, node: ast.expr) -> bool:
        self.draws(node)
        return True

    def comprehension(self, node: Any) -> None:
        """Count the draws of a comprehension, whose variables are its own; it goes round twice."""
        targets: list[ast.expr] = [generator.target for generator in node.generators]
        own = {n.id for target in targets for n in walk(target) if isinstance(n, ast.Name)}
        self.inside.update(walk(node))
        before = dict(self.env)
        for name in own:
            self.forget(name)
        start = node.generators[0].iter  # which is evaluated once
        self.draws(start)
        for _ in range(DRAWN.turns):
            for child in children(node):
                for part in children(child) if isinstance(child, ast.comprehension) else [child]:
                    if part is not start:
                        self.draws(part)
            for name in own:
                self.forget(name)
        self.env.update({k: n for k, n in before.items() if k not in self.env})

    def count(self, call: ast.Call, part: int | None = None) -> None:
        """Count a draw; of ``split(key)[0]``, that part of the key alone."""
        key = drawn_key(self.project, self.scope, call)
        for one in [key] if key is not None else _inner_of(self.inner, self.scope, call):
            self.count_one(call, one, part)

    def count_one(self, call: ast.Call, key: str, part: int | None) -> None:
        state = self.env
        name = key
        parts = [k for k in state if k.startswith(f"{key}[split ")]
        if part is not None and not state.get(key):
            name = f"{key}[split {part}]"
        elif parts:  # the whole, after parts of it
            state[key] = state.get(key, 0) + 1
            self.drawn[key] = self.drawn[parts[0]]
        if not state.get(name):
            self.drawn[name] = []
        elif _is_paired(self.drawn[name][0], call):
            return
        state[name] = state.get(name, 0) + 1
        self.drawn[name] = [*self.drawn[name], call]
        if state[name] > 1:
            self.found.setdefault(call, (key, self.drawn[name]))

    def mentions(self, node: ast.AST) -> bool:
        return not isinstance(node, (ast.Name, ast.Constant, ast.expr_context))

    # --- statements ---

    def if_(self, node: ast.If) -> bool:
        self.draws(node.test)
        return either(self, DRAWN, self.block, (node.body, node.orelse))

    def loop(self, node: ast.For | ast.AsyncFor | ast.While) -> bool:
        target = None if isinstance(node, ast.While) else node.target
        self.draws(node.test if isinstance(node, ast.While) else node.iter)

        def turn() -> bool:
            for child in walk(target) if target is not None else ():
                if isinstance(child, ast.Name):
                    self.forget(child.id)
            return self.block(node.body)

        loop(self, DRAWN, turn)
        return self.block(node.orelse)

    def with_(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            self.plain(item)
        return self.block(node.body)

    def try_(self, node: ast.Try) -> bool:
        return attempt(self, DRAWN, self.block, node, lambda handler: self.block(handler.body))

    def match(self, node: ast.Match) -> bool:
        self.draws(node.subject)

        def run(case: ast.match_case) -> bool:
            if case.guard is not None:
                self.draws(case.guard)
            return self.block(case.body)

        return either(self, DRAWN, run, node.cases, none=not is_whole(node))

    def leave(self, node: ast.Return | ast.Raise) -> bool:
        self.plain(node)
        return False

    def jump(self, node: ast.Break | ast.Continue) -> bool:
        return jump(self, node)

    def skip(self, node: ast.AST) -> None:
        self.forget(getattr(node, "name", ""))


_HANDLERS: dict[type[ast.stmt], Callable[[_Keys, Any], bool | None]] = {
    ast.If: _Keys.if_,
    ast.For: _Keys.loop,
    ast.AsyncFor: _Keys.loop,
    ast.While: _Keys.loop,
    ast.With: _Keys.with_,
    ast.AsyncWith: _Keys.with_,
    ast.Try: _Keys.try_,
    ast.TryStar: _Keys.try_,
    ast.Match: _Keys.match,
    ast.Return: _Keys.leave,
    ast.Raise: _Keys.leave,
    ast.Continue: _Keys.jump,
    ast.Break: _Keys.jump,
    ast.FunctionDef: _Keys.skip,
    ast.AsyncFunctionDef: _Keys.skip,
    ast.ClassDef: _Keys.skip,
}


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _name(node).lstrip("_").lower().startswith("assert")
    return isinstance(node, ast.Assert)


def _is_paired(first: ast.Call, node: ast.Call) -> bool:
    """Say whether a draw shuffles, or chooses from, other data in the order of the first one."""
    shuffles = _name(node) in _ORDERS
    return shuffles and _order(first) == _order(node)


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _order(call: ast.Call) -> list[str]:
    """Return what decides the order that a draw gives: all but the data, which come second."""
    parts = [call.func, *call.args[:1], *call.args[2:], *(k.value for k in call.keywords)]
    return [ast.dump(part) for part in parts]


def meet(body: list[ast.stmt], draws: list[ast.Call]) -> bool:
    """Say whether what the last of some draws gives comes together with what another gave.

    Draws of one key that never meet, in a call, a result or a container, do as if independent.
    """
    met = False
    held: dict[str, set[int]] = {}

    def of(parts: list[ast.AST]) -> set[int]:
        nonlocal met
        found: set[int] = set()
        for node in (n for part in parts for n in walk(part)):
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    found |= held.get(node.id, set())
            elif node in draws:
                found.add(draws.index(node))  # type: ignore[arg-type]
        met = met or (len(found) > 1 and len(draws) - 1 in found)
        return found

    def bind(target: ast.AST, given: set[int]) -> None:
        for node in walk(target):
            if isinstance(node, ast.Name):
                whole = isinstance(node.ctx, ast.Store)
                held[node.id] = given if whole else held.get(node.id, set()) | given

    def run(statements: list[ast.stmt]) -> None:
        for one in statements:
            inside = [part for name in _BODIES for part in getattr(one, name, ())]
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or not inside:
                given = of([one])
            else:
                given = of([n for n in children(one) if n not in inside])
            match one:
                case ast.Assign(targets=targets):
                    for target in targets:
                        bind(target, given)
                case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                    bind(target, given)
                case ast.For(target=target):
                    bind(target, given)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr=method))):
                    if method in MUTATORS:
                        bind(base, given)
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    held[name] = given
                    continue
                case _:
                    pass
            if inside:
                run([p for p in inside if isinstance(p, ast.stmt)])
                for handler in (p for p in inside if not isinstance(p, ast.stmt)):
                    run(getattr(handler, "body", []))

    run(body)
    return met


_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def _chained(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return statements, of which those that ask one name for other constants exclude each other.

    ``if kind == "a": ...`` and then ``if kind == "b": ...`` is as good as ``elif``.
    """
    made: list[ast.stmt] = []
    for one in reversed(body):
        if made and _excludes(one, made[-1]):
            assert isinstance(one, ast.If)
            made[-1] = ast.If(one.test, one.body, [made[-1]])
        else:
            made.append(one)
    return made[::-1]


def _excludes(one: ast.stmt, other: ast.stmt) -> bool:
    match one, other:
        case (
            ast.If(test=ast.Compare(left=ast.Name(id=a), ops=[ast.Eq()],
                                    comparators=[ast.Constant(value=first)]), orelse=[]),
            ast.If(test=ast.Compare(left=ast.Name(id=b), ops=[ast.Eq()],
                                    comparators=[ast.Constant(value=second)])),
        ):  # fmt: skip
            stored = (n for part in one.body for n in walk(part) if isinstance(n, ast.Name))
            rebound = any(n.id == a and isinstance(n.ctx, ast.Store) for n in stored)
            return a == b and first != second and not rebound
        case _:
            return False


def _spelling(node: ast.expr | None) -> str | None:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return f"{name}.{attr}"
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as index)):
            return f"{name}[{index}]"
        case _:
            return None


def drawn_key(project: Project, scope: Scope, call: ast.Call) -> str | None:
    """Return how the key that a call draws from is spelled, if the call draws."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return None
    given = call.args[0] if call.args else next(
        (k.value for k in call.keywords if k.arg == "key"), None
    )  # fmt: skip
    spelled = _spelling(given)
    # Most calls are given no name first, or are of nothing imported that draws: to resolve what
    # they call is most of the time.
    may = spelled is not None and _may_draw(call.func, scope.module)
    target = project.resolve(call.func, scope) if may else None
    if not isinstance(target, External) or not target.name.startswith(_RANDOM):
        return None
    return None if target.name.rpartition(".")[2] in _FREE else spelled


def _may_draw(func: ast.expr, module: Module) -> bool:
    while isinstance(func, ast.Attribute):
        func = func.value
    if module.drawing is None:
        module.drawing = _names_that_draw(module)
    return bool(module.stars) or (isinstance(func, ast.Name) and func.id in module.drawing)


def _names_that_draw(module: Module) -> frozenset[str]:
    found = {
        name for name, target in module.imports
        if target.startswith(("jax", "fnarray")) or "random" in target
        or target.rpartition(".")[2] in _DRAWS
    }  # fmt: skip
    for scope in module.scopes.values():  # ``draw = jax.random.normal``
        for name, bound in scope.names.items():
            value = getattr(bound[-1], "value", None)
            while isinstance(value, ast.Attribute):
                value = value.value
            if isinstance(value, ast.Name) and value.id in found:
                found.add(name)
    return frozenset(found)


#: The keys of the function around it that an inner function draws from whenever it is called.
Inner = dict[Scope, dict[str, None]]


def _inner_of(inner: Inner, scope: Scope, call: ast.Call) -> Iterable[str]:
    """Return the keys of a function that a call of one of its inner functions draws from."""
    if not inner or not isinstance(call.func, ast.Name):
        return ()
    found = scope.lookup(call.func.id)
    if found is None or found[0] is not scope or len(found[1]) != 1:
        return ()
    match found[1][0]:
        case Defined(scope=made):
            return inner.get(made, ())
        case Assigned(value=ast.Lambda() as node, exact=True):
            return inner.get(scope.module.scopes[node], ())
        case _:
            return ()


def reused(project: Project, module: Module) -> Iterator[Finding]:
    """Yield the reused keys of every function of a module that draws at all."""
    drawing: dict[Scope, int] = {}
    inner: Inner = {}
    # What draws is spelled out, or has the name of what does, or comes from somewhere by a star.
    spelled = module.stars or module.mentions("random")
    if not spelled and not any(t.rpartition(".")[2] in _DRAWS for _, t in module.imports):
        return
    for site in module.calls:
        key = drawn_key(project, site.scope, site.node) if site.scope.is_function else None
        if key is None:
            continue
        drawing[site.scope] = drawing.get(site.scope, 0) + (2 if site.loop else 1)
        found = site.scope.lookup(re.split(r"[.\[]", key)[0])
        if found is not None and found[0] is site.scope.parent and _name(site.node) not in _ORDERS:
            inner.setdefault(site.scope, {})[key] = None
    for site in module.calls if inner else ():
        if any(True for _ in _inner_of(inner, site.scope, site.node)):
            drawing[site.scope] = drawing.get(site.scope, 0) + (2 if site.loop else 1)
    for scope, draws in drawing.items():
        if draws > 1:
            yield from _Keys(project, scope, inner).run()
