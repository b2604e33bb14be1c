"""Tracing pitfalls inside a traced function: values asked of tracers, masks, unrolled loops."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from ..findings import Finding
from ..rules import RULES
from ._words import words
from .index import FUNCTIONS, Scope, parameters
from .place import place_of
from .project import Project
from .taint import ARRAY, NONE, STATIC_FUNCTIONS, TREE, Taint
from .traced import TracedSite
from .unroll import trips

_TEXTUAL = re.compile(r"\b(str|Callable|type|Literal|dtype|DTypeLike|Sequence\[int\])\b")
_GUARD = re.compile(r"Concretization|Tracer|ConcreteError")
_NUMBER_FORMAT = re.compile(r"%[-+ #0\d.]*[diouxXeEfFgG]")
#: How many helpers deep traced values are followed.
_DEEPEST = 4
_LITERALS = (ast.Constant, ast.UnaryOp)


def pitfalls(
    project: Project, traced: TracedSite, roots: dict[ast.AST, TracedSite]
) -> list[Finding]:
    """Return the pitfalls in a traced function and the functions inside it.

    ``roots`` tells which inner functions are traced themselves, so that their parameters count.
    """
    return _Pitfalls(project, traced, roots).run()


_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class _Pitfalls:
    """Walks one traced function in order, keeping track of what is traced."""

    def __init__(
        self, project: Project, traced: TracedSite, roots: dict[ast.AST, TracedSite]
    ) -> None:
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
                self.taint.env[name] = ARRAY if _is_number(node, name) else TREE
        self.taint.env |= given or {}
        if isinstance(node, ast.Lambda):
            self.expression(node.body)
        else:
            self.block(node.body)
        self.taint.env, self.taint.scope = outer, outer_scope

    def traced_parameters(self, traced: TracedSite) -> Iterator[str]:
        """Yield the parameters that surely arrive as traced values (or trees of them)."""
        node = traced.scope.node
        assert isinstance(node, FUNCTIONS)
        args = node.args
        positional = [*args.posonlyargs, *args.args]
        with_default = {a.arg for a in positional[len(positional) - len(args.defaults) :]}
        unmapped = self.unmapped(traced)
        inspected = _inspected(node)
        for i, arg in enumerate(positional):
            if i < traced.bound or arg.arg in traced.fixed or arg.arg in with_default:
                continue
            if i == 0 and arg.arg in ("self", "cls"):
                continue
            if unmapped is None or i - traced.bound in unmapped or arg.arg in inspected:
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
            value = ast.literal_eval(axes)
        except (ValueError, TypeError, SyntaxError):
            return None
        if isinstance(value, (tuple, list)):
            return {i for i, axis in enumerate(value) if axis is None}
        return set() if value is not None else None

    # --- statements ---

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                handler(self, statement)
            else:
                self.other(statement)

    def other(self, node: ast.stmt) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.expression(child)

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        scope = self.module.scopes.get(node)
        self.taint.env[node.name] = NONE
        if scope is not None:
            inner = self.roots.get(node)
            self.enter(scope, inner if inner and inner.transform.abstract else None)

    def class_(self, node: ast.ClassDef) -> None:
        self.taint.env[node.name] = NONE

    def assign(self, node: ast.Assign) -> None:
        self.expression(node.value)
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.expression(target.value)
                self.expression(target.slice)
            self.bind(target, self.taint.of(node.value), node.value)

    def ann_assign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.expression(node.value)
            self.bind(node.target, self.taint.of(node.value), node.value)

    def aug_assign(self, node: ast.AugAssign) -> None:
        self.expression(node.value)
        if isinstance(node.target, ast.Name):
            strength = max(self.taint.of(node.target), self.taint.of(node.value))
            self.taint.env[node.target.id] = ARRAY if strength else NONE

    def bind(self, target: ast.AST, strength: int, value: ast.expr | None = None) -> None:
        match target:
            case ast.Name():
                self.taint.env[target.id] = strength
            case ast.Starred():
                self.bind(target.value, NONE)
            case ast.Tuple() | ast.List():
                parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else None
                if parts is not None and len(parts) == len(target.elts):
                    strengths = [self.taint.of(part) for part in parts]
                else:
                    strengths = [min(strength, TREE)] * len(target.elts)
                for item, one in zip(target.elts, strengths, strict=True):
                    self.bind(item, one)

    def if_(self, node: ast.If) -> None:
        self.decide(node.test, "if")
        before = dict(self.taint.env)
        self.block(node.body)
        after = self.taint.env
        self.taint.env = before
        self.block(node.orelse)
        # A name is traced afterwards only when it is on both ways (or one way never comes out).
        if not _leaves(node.body):
            if _leaves(node.orelse):
                self.taint.env = after
            else:
                names = self.taint.env.keys() & after.keys()
                self.taint.env = {k: min(self.taint.env[k], after[k]) for k in names}

    def while_(self, node: ast.While) -> None:
        self.decide(node.test, "while")
        self.block(node.body)
        self.block(node.orelse)

    def for_(self, node: ast.For) -> None:
        self.expression(node.iter)
        self.unrolled(node.iter, node.body, node)
        self.bind(node.target, min(self.taint.of(node.iter), TREE))
        self.block(node.body)
        self.block(node.orelse)

    def with_(self, node: ast.With) -> None:
        for item in node.items:
            self.expression(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, NONE)
        eager = any(
            "ensure_compile_time_eval" in ast.unparse(i.context_expr)
            or "disable_jit" in ast.unparse(i.context_expr)
            for i in node.items
        )
        self.guarded += eager
        self.block(node.body)
        self.guarded -= eager

    def try_(self, node: ast.Try) -> None:
        guarded = any(h.type is None or _GUARD.search(ast.unparse(h.type)) for h in node.handlers)
        self.guarded += guarded
        self.block(node.body)
        self.guarded -= guarded
        for handler in node.handlers:
            self.block(handler.body)
        self.block(node.orelse)
        self.block(node.finalbody)

    def assert_(self, node: ast.Assert) -> None:
        self.decide(node.test, "assert")

    def match(self, node: ast.Match) -> None:
        self.expression(node.subject)
        patterns = [p for c in node.cases for p in ast.walk(c.pattern)]
        compared = any(
            isinstance(p, ast.MatchValue)
            and isinstance(p.value, _LITERALS)
            and not isinstance(getattr(p.value, "value", 0), (str, bytes))
            for p in patterns
        )
        if compared and self.taint.of(node.subject):
            self.report("FNA601", node.subject, what="match")
        for case in node.cases:
            if case.guard is not None:
                self.decide(case.guard, "if")
            self.block(case.body)

    # --- expressions ---

    def expression(self, node: ast.AST | None) -> None:
        """Check an expression and everything inside it."""
        if node is None:
            return
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            for child in ast.iter_child_nodes(node):
                self.expression(child)

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
                # An item of an argument that is asked for its truth is hardly a container.
                item = isinstance(test, ast.Subscript) and isinstance(test.slice, ast.Constant)
                if self.taint.of(test) >= (TREE if item else ARRAY):
                    self.report("FNA601", test, what=what)

    def bool_op(self, node: ast.BoolOp) -> None:
        word = "and" if isinstance(node.op, ast.And) else "or"
        for value in node.values[:-1]:
            self.decide(value, word)
        self.expression(node.values[-1])

    def unary(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.decide(node.operand, "not")
        else:
            self.expression(node.operand)

    def if_exp(self, node: ast.IfExp) -> None:
        self.decide(node.test, "if")
        self.expression(node.body)
        self.expression(node.orelse)

    def compare(self, node: ast.Compare) -> None:
        for part in (node.left, *node.comparators):
            self.expression(part)
        if len(node.ops) > 1 and self.taint.of(node):
            self.report("FNA601", node, what="a chained comparison")

    def lambda_(self, node: ast.Lambda) -> None:
        scope = self.module.scopes.get(node)
        if scope is not None:
            inner = self.roots.get(node)
            self.enter(scope, inner if inner and inner.transform.abstract else None)

    def comprehension(self, node: _Comprehension, asked: str = "") -> None:
        outer = dict(self.taint.env)
        for generator in node.generators:
            self.expression(generator.iter)
            self.bind(generator.target, min(self.taint.of(generator.iter), TREE))
            for test in generator.ifs:
                self.decide(test, "if")
        parts = [getattr(node, n) for n in ("elt", "key", "value") if hasattr(node, n)]
        if not isinstance(node, ast.GeneratorExp):
            self.unrolled(node.generators[0].iter, parts, node)
        for part in parts:
            if asked:
                self.decide(part, asked)
            else:
                self.expression(part)
        self.taint.env = outer

    def formatted(self, node: ast.FormattedValue) -> None:
        self.expression(node.value)
        if node.format_spec is not None and self.taint.of(node.value) and node.conversion < 0:
            self.report("FNA602", node.value, name=_short(node.value), what="a number's format")

    def binary(self, node: ast.BinOp) -> None:
        self.expression(node.left)
        self.expression(node.right)
        match node:
            case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod()):
                parts = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
                number = next((p for p in parts if self.taint.of(p)), None)
                if number is not None and _NUMBER_FORMAT.search(text):
                    self.report("FNA602", number, name=_short(number), what="a number's format")

    def named(self, node: ast.NamedExpr) -> None:
        self.expression(node.value)
        self.bind(node.target, self.taint.of(node.value))

    def subscript(self, node: ast.Subscript) -> None:
        self.expression(node.value)
        self.expression(node.slice)
        at = isinstance(node.value, ast.Attribute) and node.value.attr == "at"
        if isinstance(node.value, (ast.List, ast.Tuple)) and self.taint.of(node.slice):
            self.report("FNA602", node, name=_short(node.slice), what="an index")
        if at or not isinstance(node.ctx, ast.Load) or not self.taint.of(node.value):
            return
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(self.is_mask(part) for part in parts):
            self.report("FNA604", node, name=_short(node.value))

    def is_mask(self, node: ast.expr | None) -> bool:
        """Say whether an index is surely a traced array of truth values."""
        match node:
            case ast.Compare():
                return self.taint.of(node) == ARRAY
            case ast.UnaryOp(op=ast.Invert()):
                return self.is_mask(node.operand)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                return self.is_mask(node.left) or self.is_mask(node.right)
            case ast.Call():
                name = self.taint.callee(node.func) or ""
                known = name.rpartition(".")[2] in ("isnan", "isfinite", "isinf", "logical_and",
                                                    "logical_or", "logical_not")  # fmt: skip
                return known and self.taint.of(node) == ARRAY
            case ast.Name():
                found = self.taint.scope.lookup(node.id)  # type: ignore[attr-defined]
                if found is None or len(found[1]) != 1 or not self.taint.of(node):
                    return False
                value = getattr(found[1][0], "value", None)
                exact = getattr(found[1][0], "exact", False)
                return exact and not isinstance(value, ast.Name) and self.is_mask(value)
            case _:
                return False

    def call(self, node: ast.Call) -> None:
        func = node.func
        if not self.asks_each(node):
            for child in ast.iter_child_nodes(node):
                self.expression(child)
        if isinstance(func, ast.Attribute) and func.attr in ("item", "tolist"):
            if self.taint.of(func.value) and not node.args:
                self.report("FNA602", node, name=_short(func.value), what=f".{func.attr}()")
            return
        strengths = [self.taint.of(arg) for arg in node.args]
        if not any(strengths):
            return
        name = self.taint.callee(func)
        if name is None:
            self.follow(node, strengths)
            return
        first = node.args[next(i for i, s in enumerate(strengths) if s)]
        last = name.rpartition(".")[2]
        spelled = ast.unparse(func)
        if name in _NUMBERS:
            if name != "builtins.bool" or max(strengths) == ARRAY:
                self.report("FNA602", node, name=_short(first), what=f"{spelled}()")
        elif name.startswith("math.") or name == "builtins.range":
            self.report("FNA602", node, name=_short(first), what=f"{spelled}()")
        elif name in ("builtins.max", "builtins.min") and len(node.args) > 1:
            self.report("FNA601", node, name=_short(first), what=f"{spelled}()")
        elif name.startswith("numpy.") and last not in STATIC_FUNCTIONS | _NUMPY_SAFE:
            self.report("FNA603", node, name=_short(first), what=f"{spelled}()")

    def asks_each(self, node: ast.Call) -> bool:
        """Check the items of ``any(...)`` and ``all(...)``; say whether it was one of these."""
        if len(node.args) != 1 or node.keywords:
            return False
        name = self.taint.callee(node.func)
        if name not in ("builtins.any", "builtins.all"):
            return False
        match node.args[0]:
            case ast.GeneratorExp() | ast.ListComp() as each:
                self.comprehension(each, asked=f"{name.removeprefix('builtins.')}()")
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
        helper = self.project.resolve(node.func, self.taint.scope)  # type: ignore[arg-type]
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

    def unrolled(self, iterated: ast.expr, body: Sequence[ast.AST], node: ast.AST) -> None:
        """Report a long ``range`` whose body computes with traced values."""
        count = trips(self.taint, iterated)
        if count is None or count < self.project.settings.max_unrolled:
            return
        computes = any(
            isinstance(child, ast.Name) and self.taint.env.get(child.id, NONE)
            for part in body
            for child in ast.walk(part)
        )
        if computes:
            place = iterated if isinstance(node, ast.For) else node
            self.report("FNA607", place, name=str(count), what=str(count))

    # --- reports ---

    def report(self, code: str, node: ast.AST, *, name: str = "", what: str = "") -> None:
        if self.guarded:
            return
        if not name:
            name = self.offender(node)
        self.found.append(
            RULES[code].at(
                place_of(self.module.source, node),
                name=name,
                what=what,
                source=self.module.source.line(node.lineno),  # type: ignore[attr-defined]
                path=self.path,
            )
        )

    def offender(self, node: ast.AST) -> str:
        """Return the first traced name in an expression, or the expression."""
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and self.taint.env.get(child.id, NONE):
                return child.id
        return _short(node)


_NUMBERS = frozenset(f"builtins.{n}" for n in ("float", "int", "bool", "complex"))
_NUMPY_SAFE = words("dtype iscomplex_type float_ errstate ndarray newaxis testing")

_STATEMENTS: dict[type, Callable] = {
    ast.FunctionDef: _Pitfalls.define,
    ast.AsyncFunctionDef: _Pitfalls.define,
    ast.ClassDef: _Pitfalls.class_,
    ast.Assign: _Pitfalls.assign,
    ast.AnnAssign: _Pitfalls.ann_assign,
    ast.AugAssign: _Pitfalls.aug_assign,
    ast.If: _Pitfalls.if_,
    ast.While: _Pitfalls.while_,
    ast.For: _Pitfalls.for_,
    ast.With: _Pitfalls.with_,
    ast.Try: _Pitfalls.try_,
    ast.TryStar: _Pitfalls.try_,
    ast.Assert: _Pitfalls.assert_,
    ast.Match: _Pitfalls.match,
}
_EXPRESSIONS: dict[type, Callable] = {
    ast.BoolOp: _Pitfalls.bool_op,
    ast.UnaryOp: _Pitfalls.unary,
    ast.IfExp: _Pitfalls.if_exp,
    ast.Compare: _Pitfalls.compare,
    ast.Lambda: _Pitfalls.lambda_,
    ast.ListComp: _Pitfalls.comprehension,
    ast.SetComp: _Pitfalls.comprehension,
    ast.DictComp: _Pitfalls.comprehension,
    ast.GeneratorExp: _Pitfalls.comprehension,
    ast.NamedExpr: _Pitfalls.named,
    ast.FormattedValue: _Pitfalls.formatted,
    ast.BinOp: _Pitfalls.binary,
    ast.Subscript: _Pitfalls.subscript,
    ast.Call: _Pitfalls.call,
}


def _is_number(node: ast.AST, name: str) -> bool:
    """Say whether a parameter is only ever computed with, asked for its truth, or returned."""
    uses = 0
    for parent in ast.walk(node):
        fine = isinstance(parent, _NUMERIC) and not any(
            isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn))
            for op in getattr(parent, "ops", ())
        )
        for child in ast.iter_child_nodes(parent):
            if isinstance(child, ast.Name) and child.id == name:
                uses += 1
                if not fine:
                    return False
    return uses > 0


_NUMERIC = (ast.If, ast.IfExp, ast.While, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp,
            ast.Return, ast.Assert, ast.Lambda)  # fmt: skip


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _is_textual(arg: ast.arg) -> bool:
    """Say whether a parameter's annotation promises no array."""
    return arg.annotation is not None and bool(_TEXTUAL.search(ast.unparse(arg.annotation)))


def _inspected(node: ast.AST) -> set[str]:
    """Return the names whose type a function asks for: it may expect other than arrays."""
    asked = set()
    for child in ast.walk(node):
        match child:
            case ast.Call(func=ast.Name(id=asks) | ast.Attribute(attr=asks), args=[first, *_]):
                if asks in _ASKS and isinstance(first, ast.Name):
                    asked.add(first.id)
    return asked


_ASKS = words("""
    isinstance callable type is_array issubclass hasattr is_concrete is_constant isscalar
    is_inexact_array is_traced
""")
