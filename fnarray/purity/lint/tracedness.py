"""What is traced, statement by statement: a traced function is walked, and the rules are asked.

The walk knows no rule. A rule registers the syntax that it watches (`Watchers`), and is called with
each such node, once its parts were walked and while the strengths of names are those of that place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, cast

from ..findings import Finding
from ..nodes import children, nodes_in, walk
from ..rules import RULES
from ..ways import Domain, attempt, either, is_whole, jump, loop
from ._words import words
from .index import FUNCTIONS, Scope, parameters
from .kinds import flags
from .place import place_of
from .project import Project
from .proof import is_sorted_out
from .taint import ARRAY, NONE, TREE, Taint
from .traced import TracedSite

_TEXTUAL = re.compile(r"\b(str|Callable|type|Literal|dtype|DTypeLike|Sequence\[int\])\b")
_GUARD = re.compile(r"Concretization|Tracer|ConcreteError")


def _on_all_ways(ends: list[dict[str, int]]) -> dict[str, int]:
    """Return what is traced whichever way control came: nothing else is claimed."""
    shared = (name for name in ends[0] if all(name in env for env in ends))
    return {name: min(env[name] for env in ends) for name in shared}


#: What is traced: a body's rules are asked once, and a loop is taken to be run.
TRACED: Final = Domain(_on_all_ways, turns=1, skips=False)
#: How many helpers deep traced values are followed.
_DEEPEST = 4


#: Functions that draw all that a generator gives.
_DRAWING = frozenset(
    f"builtins.{name}" for name in ("sum", "list", "tuple", "min", "max", "sorted")
)
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Watchers(NamedTuple):
    """The rules that look on.

    Attributes
    ----------
    syntax : mapping
        Called with the walk and a node, by the type of the node.
    calls : sequence
        Called with the walk, a call of a function from elsewhere that is given a traced value, the
        function's dotted name, and the first such argument.
    truth : sequence
        Called with the walk, an expression whose truth is asked for, and what asks.
    loops : sequence
        Called with the walk, what is iterated over, what is done at each turn, and the place.
    """

    syntax: Mapping[type[ast.AST], Sequence[Callable[[Tracedness, Any], None]]]
    calls: Sequence[Callable[[Tracedness, ast.Call, str, ast.expr], None]]
    truth: Sequence[Callable[[Tracedness, ast.expr, str], None]]
    loops: Sequence[Callable[[Tracedness, ast.expr, Sequence[ast.AST], ast.AST], None]]


class Tracedness:
    """Walks one traced function in order, keeping track of what is traced."""

    def __init__(
        self,
        project: Project,
        traced: TracedSite,
        roots: dict[ast.AST, TracedSite],
        watchers: Watchers,
    ) -> None:
        self.watchers = watchers
        self.project = project
        self.traced = traced
        self.roots = roots
        self.module = traced.scope.module
        self.taint = Taint(project, traced.scope)
        self.found: list[Finding] = []
        self.guarded = 0
        self.path: tuple[str, ...] = (traced.label,)
        self.followed: set[tuple[ast.AST, tuple[tuple[str, int], ...]]] = set()

    def run(self) -> list[Finding]:
        """Return the findings in the function and the functions inside it."""
        if self.traced.transform.abstract:
            self.enter(self.traced.scope, self.traced)
        return self.found

    # --- functions ---

    def enter(
        self, scope: Scope, traced: TracedSite | None, given: dict[str, int] | None = None
    ) -> None:
        """Walk a function's body with its parameters bound."""
        outer, outer_scope = dict(self.taint.env), self.taint.scope
        self.taint.scope = scope
        node = scope.node
        assert isinstance(node, FUNCTIONS)
        for arg in parameters(node.args):
            self.taint.env[arg.arg] = NONE
        if traced is not None:
            for name in self.traced_parameters(traced):
                self.taint.env[name] = ARRAY if name in _numbers(node) else TREE
        self.taint.env |= given or {}
        if isinstance(node, ast.Lambda):
            self.expression(node.body)
        else:
            self._block(node.body)
        self.taint.env, self.taint.scope = outer, outer_scope

    def traced_parameters(self, traced: TracedSite) -> Iterator[str]:
        """Yield the parameters that surely arrive as traced values (or trees of them)."""
        node = traced.scope.node
        assert isinstance(node, FUNCTIONS)
        args = node.args
        positional = [*args.posonlyargs, *args.args]
        with_default = {a.arg for a in positional[len(positional) - len(args.defaults) :]}
        unmapped = self.unmapped(traced)
        # What stands above a method is given ``self`` as well.
        start = 0 if traced.decorates else traced.bound
        inspected = _inspected(node)
        for i, arg in enumerate(positional):
            if i < traced.bound or arg.arg in traced.fixed or arg.arg in with_default:
                continue
            if i == 0 and arg.arg in ("self", "cls"):
                continue
            if unmapped is None or i - start in unmapped or arg.arg in inspected:
                continue
            if _is_textual(arg):
                continue
            yield arg.arg

    def unmapped(self, traced: TracedSite) -> set[int] | None:
        """Return the positions that ``in_axes`` leaves unmapped: under vmap they keep their value.

        None when it cannot be said.
        """
        if traced.transform.name not in ("vmap", "pmap"):
            return set()
        keywords = {k.arg: k.value for k in getattr(traced.site, "keywords", ())}
        args = getattr(traced.site, "args", [])
        axes = keywords.get("in_axes", args[1] if len(args) > 1 else None)
        if axes is None:
            return set()
        if traced.transform.name == "pmap":
            return set()
        try:
            value: Any = ast.literal_eval(axes)
        except (ValueError, TypeError, SyntaxError):
            return None
        if isinstance(value, (tuple, list)):
            given = cast("tuple[Any, ...]", value)
            return {i for i, axis in enumerate(given) if axis is None}
        return set() if value is not None else None

    # --- statements ---

    def _block(self, body: list[ast.stmt]) -> bool:
        """Walk statements in order; say whether control can leave at the end."""
        for statement in body:
            handler = self._statements.get(type(statement), Tracedness._other)
            if handler(self, statement) is False:
                return False
        return True

    def _other(self, node: ast.stmt) -> None:
        for child in children(node):
            if isinstance(child, ast.expr):
                self.expression(child)

    def _leave(self, node: ast.stmt) -> bool:
        self._other(node)
        return False

    def _jump(self, node: ast.Break | ast.Continue) -> bool:
        return jump(self.taint, node)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        scope = self.module.scopes.get(node)
        self.taint.env[node.name] = NONE
        if scope is not None:
            inner = self.roots.get(node)
            self.enter(scope, inner if inner and inner.transform.abstract else None)

    def _class_(self, node: ast.ClassDef) -> None:
        self.taint.env[node.name] = NONE

    def _assign(self, node: ast.Assign) -> None:
        self.expression(node.value)
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.expression(target.value)
                self.expression(target.slice)
            self._bind(target, self.taint.of(node.value), node.value)

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.expression(node.value)
            self._bind(node.target, self.taint.of(node.value), node.value)

    def _aug_assign(self, node: ast.AugAssign) -> None:
        self.expression(node.value)
        if isinstance(node.target, ast.Name):
            strength = max(self.taint.of(node.target), self.taint.of(node.value))
            self.taint.env[node.target.id] = ARRAY if strength else NONE

    def _bind(self, target: ast.AST, strength: int, value: ast.expr | None = None) -> None:
        match target:
            case ast.Name():
                self.taint.env[target.id] = strength
            case ast.Starred():
                self._bind(target.value, NONE)
            case ast.Tuple() | ast.List():
                parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else None
                if parts is not None and len(parts) == len(target.elts):
                    strengths = [self.taint.of(part) for part in parts]
                else:
                    strengths = [min(strength, TREE)] * len(target.elts)
                for item, one in zip(target.elts, strengths, strict=True):
                    self._bind(item, one)
            case _:
                pass

    def _if_(self, node: ast.If) -> bool:
        self.decide(node.test, "if")
        sorted_out = set[str]()

        def run(body: list[ast.stmt]) -> bool:
            ended = self._block(body)
            if body is node.body and not ended:  # ``if isinstance(x, Tracer): raise``
                sorted_out.update(_of_tracers(node.test))
            return ended

        known = self.known(node.test)
        ways = (node.body, node.orelse) if known is None else (node.body if known else node.orelse,)
        ended = either(self.taint, TRACED, run, ways)
        self.taint.env |= dict.fromkeys(sorted_out, NONE)
        return ended

    def known(self, test: ast.expr) -> bool | None:
        """Return the truth of a flag that a compiled function has by default: given, it is traced.

        ``if flag`` fails then, whatever the flag; so the other way is never gone.
        """
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            known = self.known(test.operand)
            return None if known is None else not known
        site, scope = self.traced, self.taint.scope
        bare = scope is site.scope and not site.partial and not site.bound
        if not isinstance(test, ast.Name) or not bare or not site.transform.compiled:
            return None
        return None if test.id in site.fixed else flags(scope).get(test.id)

    def _loop(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> bool:
        loop(self.taint, TRACED, lambda: self._block(body))
        return self._block(orelse)

    def _while_(self, node: ast.While) -> bool:
        self.decide(node.test, "while")
        return self._loop(node.body, node.orelse)

    def _for_(self, node: ast.For | ast.AsyncFor) -> bool:
        self.expression(node.iter)
        for rule in self.watchers.loops:
            rule(self, node.iter, node.body, node)
        self._bind(node.target, self.taint.each(node.iter))
        return self._loop(node.body, node.orelse)

    def _with_(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.expression(item.context_expr)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, NONE)
        eager = any(
            "ensure_compile_time_eval" in ast.unparse(i.context_expr)
            or "disable_jit" in ast.unparse(i.context_expr)
            for i in node.items
        )
        self.guarded += eager
        self._block(node.body)
        self.guarded -= eager

    def _try_(self, node: ast.Try) -> bool:
        guarded = any(h.type is None or _GUARD.search(ast.unparse(h.type)) for h in node.handlers)

        def run(body: list[ast.stmt]) -> bool:
            inside = guarded and body is node.body
            self.guarded += inside
            ended = self._block(body)
            self.guarded -= inside
            return ended

        return attempt(self.taint, TRACED, run, node, lambda handler: self._block(handler.body))

    def _assert_(self, node: ast.Assert) -> None:
        self.decide(node.test, "assert")

    def _match(self, node: ast.Match) -> bool:
        self.expression(node.subject)
        self.ask(node)

        def run(case: ast.match_case) -> bool:
            if case.guard is not None:
                self.decide(case.guard, "if")
            return self._block(case.body)

        return either(self.taint, TRACED, run, node.cases, none=not is_whole(node))

    # --- expressions ---

    def expression(self, node: ast.AST | None) -> None:
        """Check an expression and everything inside it."""
        if node is None:
            return
        handler = self._expressions.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            for child in children(node):
                self.expression(child)
        self.ask(node)

    def ask(self, node: ast.AST) -> None:
        """Ask the rules that watch this kind of syntax."""
        for rule in self.watchers.syntax.get(type(node), ()):
            rule(self, node)

    def decide(self, test: ast.expr, what: str) -> None:
        """Check an expression whose truth is asked for."""
        match test:
            case ast.BoolOp():
                for value in test.values:
                    self.decide(value, what)
            case ast.UnaryOp(op=ast.Not()):
                self.decide(test.operand, what)
            case _:
                self.expression(test)
                for rule in self.watchers.truth:
                    rule(self, test, what)

    def _bool_op(self, node: ast.BoolOp) -> None:
        word = "and" if isinstance(node.op, ast.And) else "or"
        for value in node.values[:-1]:
            self.decide(value, word)
        self.expression(node.values[-1])

    def _unary(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.decide(node.operand, "not")
        else:
            self.expression(node.operand)

    def _if_exp(self, node: ast.IfExp) -> None:
        self.decide(node.test, "if")
        self.expression(node.body)
        self.expression(node.orelse)

    def _lambda_(self, node: ast.Lambda) -> None:
        scope = self.module.scopes.get(node)
        if scope is not None:
            inner = self.roots.get(node)
            self.enter(scope, inner if inner and inner.transform.abstract else None)

    def _comprehension(self, node: _Comprehension, asked: str = "", *, drawn: bool = False) -> None:
        outer = dict(self.taint.env)
        for generator in node.generators:
            self.expression(generator.iter)
            self._bind(generator.target, self.taint.each(generator.iter))
            for test in generator.ifs:
                self.decide(test, "if")
        parts = [getattr(node, n) for n in ("elt", "key", "value") if hasattr(node, n)]
        if drawn or not isinstance(node, ast.GeneratorExp):
            for rule in self.watchers.loops:
                rule(self, node.generators[0].iter, parts, node)
        for part in parts:
            if asked:
                self.decide(part, asked)
            else:
                self.expression(part)
        self.taint.env = outer

    def _named(self, node: ast.NamedExpr) -> None:
        self.expression(node.value)
        self._bind(node.target, self.taint.of(node.value))

    def _call(self, node: ast.Call) -> None:
        if not self.asks_each(node):
            drawn = node.args and isinstance(node.args[0], ast.GeneratorExp)
            drawn = drawn and self.taint.callee(node.func) in _DRAWING
            for child in children(node):
                if drawn and child is node.args[0]:
                    self._comprehension(node.args[0], drawn=True)  # type: ignore[arg-type]
                    self.ask(child)
                else:
                    self.expression(child)
        strengths = [self.taint.of(arg) for arg in node.args]
        if not any(strengths):
            return
        name = self.taint.callee(node.func)
        if name is None:
            self.follow(node, strengths)
            return
        first = next(arg for arg, s in zip(node.args, strengths, strict=True) if s)
        for rule in self.watchers.calls:
            rule(self, node, name, first)

    def asks_each(self, node: ast.Call) -> bool:
        """Check the items of ``any(...)`` and ``all(...)``; say whether it was one of these."""
        if len(node.args) != 1 or node.keywords:
            return False
        name = self.taint.callee(node.func)
        if name not in ("builtins.any", "builtins.all"):
            return False
        match node.args[0]:
            case ast.GeneratorExp() | ast.ListComp() as each:
                self._comprehension(each, asked=f"{name.removeprefix('builtins.')}()")
            case ast.List() | ast.Tuple() as items:
                for item in items.elts:
                    self.decide(item, f"{name.removeprefix('builtins.')}()")
            case _:
                return False
        return True

    def follow(self, node: ast.Call, strengths: list[int]) -> None:
        """Walk a helper of the project with the parameters that are given traced values."""
        if not isinstance(node.func, (ast.Name, ast.Attribute)) or len(self.path) > _DEEPEST:
            return
        helper = self.project.resolve(node.func, self.taint.scope)
        if not isinstance(helper, Scope) or not isinstance(helper.node, ast.FunctionDef):
            return
        plain = not helper.node.decorator_list and helper.node not in self.roots
        if not plain or any(isinstance(arg, ast.Starred) for arg in node.args):
            return
        names = [*helper.node.args.posonlyargs, *helper.node.args.args]
        if helper.parent is not None and helper.parent.is_class:
            names = names[1:]
        inspected = _inspected(helper.node)
        given = {
            arg.arg: strength
            for arg, strength in zip(names, strengths, strict=False)
            if strength and arg.arg not in inspected and not _is_textual(arg)
        }
        key = helper.node, tuple(sorted(given.items()))
        if not given or key in self.followed:
            return
        self.followed.add(key)
        env, module, guarded = self.taint.env, self.module, self.guarded
        inside = helper.parent is not None and helper.parent.is_function
        self.taint.env, self.module = dict(env) if inside else {}, helper.module
        self.path = (*self.path, helper.name)
        self.enter(helper, None, given)
        self.taint.env, self.module, self.guarded = env, module, guarded
        self.path = self.path[:-1]

    # --- reports ---

    def report(
        self, code: str, node: ast.AST, *, name: str = "", what: str = "", repair: str = ""
    ) -> None:
        """Add a finding, unless the code around it expects the error.

        A `repair` stands in place of the rule's, where that would not help.
        """
        if self.guarded:
            return
        if not name:
            name = self.offender(node)
        found = RULES[code].at(
            place_of(self.module.source, node),
            name=name,
            what=what,
            source=self.module.source.line(node.lineno),  # type: ignore[attr-defined]
            path=self.path,
        )
        found = found._replace(repair=repair) if repair else found
        sorted_out = not self.traced.ours and is_sorted_out(self.taint.scope, node)
        self.found.append(found._replace(presumed=True) if sorted_out else found)

    def offender(self, node: ast.AST) -> str:
        """Return the first traced name in an expression, or the expression."""
        for child in walk(node):
            if isinstance(child, ast.Name) and self.taint.env.get(child.id, NONE):
                return child.id
        return short(node)

    # --- what runs each kind of syntax ---

    _statements: ClassVar[Mapping[type[ast.stmt], Callable[[Any, Any], bool | None]]] = {
        ast.FunctionDef: _define,
        ast.AsyncFunctionDef: _define,
        ast.ClassDef: _class_,
        ast.Assign: _assign,
        ast.AnnAssign: _ann_assign,
        ast.AugAssign: _aug_assign,
        ast.If: _if_,
        ast.While: _while_,
        ast.For: _for_,
        ast.AsyncFor: _for_,
        ast.With: _with_,
        ast.AsyncWith: _with_,
        ast.Try: _try_,
        ast.TryStar: _try_,
        ast.Assert: _assert_,
        ast.Match: _match,
        ast.Return: _leave,
        ast.Raise: _leave,
        ast.Break: _jump,
        ast.Continue: _jump,
    }
    _expressions: ClassVar[Mapping[type[ast.AST], Callable[[Any, Any], None]]] = {
        ast.BoolOp: _bool_op,
        ast.UnaryOp: _unary,
        ast.IfExp: _if_exp,
        ast.Lambda: _lambda_,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.DictComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.NamedExpr: _named,
        ast.Call: _call,
    }


def _numbers(node: Any) -> frozenset[str]:
    """Return the names in a function that are only computed with, asked for their truth, or
    returned; kept on its node.
    """
    kept: frozenset[str] | None = getattr(node, "_numbers", None)
    if kept is None:
        uses: dict[bool, set[str]] = {True: set(), False: set()}
        for parent in nodes_in(node):
            fine = isinstance(parent, _NUMERIC) and not any(
                isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn))
                for op in getattr(parent, "ops", ())
            )
            uses[fine].update(c.id for c in children(parent) if type(c) is ast.Name)
        kept = node._numbers = frozenset(uses[True] - uses[False])
    return kept


_NUMERIC = (ast.If, ast.IfExp, ast.While, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp,
            ast.Return, ast.Assert, ast.Lambda)  # fmt: skip


def short(node: ast.AST) -> str:
    """Return an expression as it is written, or the beginning of it."""
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."


def _is_textual(arg: ast.arg) -> bool:
    """Say whether a parameter's annotation promises no array."""
    return arg.annotation is not None and bool(_TEXTUAL.search(ast.unparse(arg.annotation)))


def _inspected(node: ast.AST) -> set[str]:
    """Return the names whose type a function asks for: it may expect other than arrays."""
    asked = set[str]()
    for child in nodes_in(node):
        match child:
            case ast.Call(func=ast.Name(id=asks) | ast.Attribute(attr=asks), args=[first, *_]):
                if asks in _ASKS and isinstance(first, ast.Name):
                    asked.add(first.id)
            case _:
                pass
    return asked


def _of_tracers(test: ast.expr) -> set[str]:
    """Return the names that a test asks to be tracers, of which any one is enough."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kinds]):
            return {name} if _TRACER.search(ast.unparse(kinds)) else set()
        case ast.BoolOp(op=ast.Or(), values=parts):
            return {name for part in parts for name in _of_tracers(part)}
        case _:
            return set()


_TRACER = re.compile(r"(\A|\.)Tracer\Z")
_ASKS = words("""
    isinstance callable type is_array issubclass hasattr is_concrete is_constant isscalar
    is_inexact_array is_traced
""")
