"""Statements: what they bind, and what they change."""

from __future__ import annotations

import ast
from typing import Any

from . import protocols, rules
from .scopes import Frame
from .values import CONTAINERS, OUTSIDE, Function, Value, join

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Statements:
    """The part of the engine that runs statements."""

    def block(self: Any, body: list[ast.stmt], frame: Frame) -> bool:
        """Run statements in order; say whether control can leave at the end."""
        for statement in body:
            run = _RUN.get(type(statement))
            if run is not None:
                run(self, statement, frame)
            if isinstance(statement, _ENDS):
                return False
            if isinstance(statement, ast.If) and getattr(statement, "_ends", False):
                return False
        return True

    def _do_Expr(self: Any, node: ast.Expr, frame: Frame) -> None:
        value = node.value
        if isinstance(value, ast.Call):
            self.call_expr(value, frame, used=False)
        elif not isinstance(value, ast.Constant):
            self.read(value, frame)

    def _do_Return(self: Any, node: ast.Return, frame: Frame) -> None:
        if node.value is not None:
            value = self.expr(node.value, frame)
            self.escape(value, frame, node.value)
            frame.returns.append(value)

    def _do_Assign(self: Any, node: ast.Assign, frame: Frame) -> None:
        value = self.expr(node.value, frame)
        for target in node.targets:
            self.store(target, value, frame)

    def _do_AnnAssign(self: Any, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.store(node.target, self.expr(node.value, frame), frame)

    def _do_AugAssign(self: Any, node: ast.AugAssign, frame: Frame) -> None:
        right = self.read(node.value, frame)
        target = node.target
        if not isinstance(target, ast.Name):
            self.store(target, self.unknown(frame.level), frame, augmented=True)
            return
        if self.is_outer_name(target.id, frame):
            self.store(target, self.unknown(frame.level), frame)
            return
        # ``x += 1`` rebinds an array but changes a list, or a NumPy array, in place.
        kinds = {v.kind for v in right.each()}
        current = self._expr_Name(target, frame)
        protocols.binary(self, node.op, current, right, frame, node, in_place=True)
        for one in current.each():
            known = one.kind in CONTAINERS or one.kind == "ndarray"
            if known or (one.argument and not one.kind and kinds & CONTAINERS):
                self.mutate(one, frame, node, "in place")
            else:
                self.use(one, frame, target)
        if not any(v.kind in CONTAINERS or v.kind == "ndarray" for v in current.each()):
            self.bind(target.id, self.unknown(frame.level), frame, target)

    def _do_Delete(self: Any, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                if self.is_outer_name(target.id, frame):
                    self.store(target, self.unknown(frame.level), frame)
                frame.env.pop(target.id, None)
            else:
                self.store(target, self.unknown(frame.level), frame, deleted=True)

    # --- control ---

    def _do_If(self: Any, node: ast.If, frame: Frame) -> None:
        self.test(node.test, frame)
        node._ends = not self.either(frame, node.body, node.orelse)  # type: ignore[attr-defined]

    def either(self: Any, frame: Frame, *bodies: list[ast.stmt]) -> bool:
        """Run alternatives from the same state, and join what they leave."""
        before, after = frame.env, []
        self.branches += 1
        for body in bodies:
            frame.env = dict(before)
            if self.block(body, frame):
                after.append(frame.env)
        self.branches -= 1
        frame.env = self.merged(after) if after else before
        return bool(after)

    def merged(self: Any, envs: list[dict[str, Value]]) -> dict[str, Value]:
        """Return the state in which any of the given ones may hold."""
        if len(envs) == 1:
            return envs[0]
        out = {}
        for name in dict.fromkeys(k for env in envs for k in env):
            first = envs[0].get(name)
            if all(env.get(name) is first for env in envs):
                value: Value | None = first
            else:
                value = join(env.get(name) for env in envs)
            if value is not None:
                out[name] = value
        return out

    def loop(self: Any, frame: Frame, body: list[ast.stmt], start: Any) -> None:
        """Run a body until names stand for nothing new; twice is enough for what is reported."""
        before = dict(frame.env)
        self.branches += 1
        for _ in range(2):
            start()
            self.block(body, frame)
            after = self.merged([before, frame.env])
            settled = all(
                name in before and (value is before[name] or value.same(before[name]))
                for name, value in after.items()
            )
            frame.env = before = after
            if settled:
                break
        self.branches -= 1

    def _do_For(self: Any, node: ast.For | ast.AsyncFor, frame: Frame) -> None:
        items = self.expr(node.iter, frame)
        self.draw(items, frame, node.iter)
        element = self.element(items, frame)
        self.loop(frame, node.body, lambda: self.store(node.target, element, frame))
        self.block(node.orelse, frame)

    def _do_While(self: Any, node: ast.While, frame: Frame) -> None:
        self.loop(frame, node.body, lambda: self.test(node.test, frame))
        self.block(node.orelse, frame)

    def _do_Try(self: Any, node: Any, frame: Frame) -> None:
        before = dict(frame.env)
        self.block(node.body, frame)
        ends = [frame.env]
        for handler in node.handlers:
            frame.env = self.merged([before, ends[0]])
            if handler.type is not None:
                self.expr(handler.type, frame)
            if handler.name:
                self.bind(handler.name, self.unknown(frame.level), frame, handler)
            if self.block(handler.body, frame):
                ends.append(frame.env)
        frame.env = self.merged(ends)
        self.block(node.orelse, frame)
        self.block(node.finalbody, frame)

    def _do_With(self: Any, node: ast.With | ast.AsyncWith, frame: Frame) -> None:
        catching = self.catching
        for item in node.items:
            value = self.expr(item.context_expr, frame)
            self.catching = self.catching or value.kind == "catching"
            entered = self.manage(value, frame, item.context_expr)
            if item.optional_vars is not None:
                self.store(item.optional_vars, entered, frame)
        self.block(node.body, frame)
        self.catching = catching

    def _do_Match(self: Any, node: ast.Match, frame: Frame) -> None:
        subject = self.read(node.subject, frame)
        before, after = frame.env, [dict(frame.env)]
        for case in node.cases:
            frame.env = dict(before)
            for part in ast.walk(case.pattern):
                if isinstance(part, (ast.MatchAs, ast.MatchStar)) and part.name:
                    self.bind(part.name, self.part(subject, frame), frame, part)
                elif isinstance(part, ast.MatchMapping) and part.rest:
                    self.bind(part.rest, self.unknown(frame.level), frame, part)
                elif isinstance(part, ast.MatchValue):
                    self.read(part.value, frame)
            if case.guard is not None:
                self.read(case.guard, frame)
            if self.block(case.body, frame):
                after.append(frame.env)
        frame.env = self.merged(after)

    def _do_Raise(self: Any, node: ast.Raise, frame: Frame) -> None:
        for part in (node.exc, node.cause):
            if part is not None:
                self.read(part, frame)

    def _do_Assert(self: Any, node: ast.Assert, frame: Frame) -> None:
        self.test(node.test, frame)
        if node.msg is not None:
            self.read(node.msg, frame)

    # --- definitions and imports ---

    def _do_FunctionDef(self: Any, node: Any, frame: Frame) -> None:
        value = self.define(node, frame)
        for decorator in reversed(node.decorator_list):
            value = self.decorate(decorator, value, frame)
        self.bind(node.name, value, frame, node)

    def define(self: Any, node: Any, frame: Frame) -> Value:
        """Return the value of an inner function, its defaults evaluated now."""
        args = node.args
        positional = [*args.posonlyargs, *args.args]
        pairs = list(zip(reversed(positional), reversed(args.defaults), strict=False))
        pairs += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d]
        defaults = {}
        for arg, default in pairs:
            value = self.expr(default, frame)
            if value.kind == "scalar":
                self.use(value, frame, default)
            defaults[arg.arg] = value
        outer = frame.function
        function = Function(
            node, outer.file, outer.module, frame=frame, defaults=defaults, lines=outer.lines
        )
        value = Value("function", frame.level, name=function.name, function=function)
        frame.nested.append(value)
        return value

    def _do_ClassDef(self: Any, node: ast.ClassDef, frame: Frame) -> None:
        bases = [self.expr(base, frame) for base in node.bases]
        fields: dict[Any, Value] = {("base", i): base for i, base in enumerate(bases)}
        for part in node.body:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                value = self.define(part, frame)
                marks = {getattr(d, "id", getattr(d, "attr", "")) for d in part.decorator_list}
                if "setter" in marks:
                    fields["setter", part.name] = value
                    continue
                if marks & {"property", "cached_property"}:
                    value = value.but(kind="property")
                elif "staticmethod" in marks:
                    value = value.but(holder="static")
                fields[part.name] = value
            elif isinstance(part, ast.Assign):
                value = self.expr(part.value, frame)
                for target in part.targets:
                    if isinstance(target, ast.Name):
                        fields[target.id] = value
            elif isinstance(part, ast.AnnAssign) and part.value is not None:
                fields[getattr(part.target, "id", "")] = self.expr(part.value, frame)
            else:
                # Its names are the class's: those of the function stay as they were.
                before = dict(frame.env)
                self.block([part], frame)
                frame.env = before
        value = Value("class", frame.level, name=node.name, fields=fields)
        for base in bases:
            for one in base.each():
                hook = self.attribute(one, "__init_subclass__", frame, node)
                if self.body(hook) is not None:
                    self.call(hook.but(bound=None), [value], {}, frame, node)
        for decorator in reversed(node.decorator_list):
            value = self.decorate(decorator, value, frame)
        self.bind(node.name, value, frame, node)

    def _do_Import(self: Any, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            ref = alias.name if alias.asname else alias.name.partition(".")[0]
            name = alias.asname or ref
            value = Value("module", OUTSIDE, name=name, ref=ref, constant=True, holder="import")
            self.bind(name, value, frame, node)

    def _do_ImportFrom(self: Any, node: ast.ImportFrom, frame: Frame) -> None:
        for alias in node.names:
            name = alias.asname or alias.name
            module = Value("module", OUTSIDE, name="", ref=node.module or "", constant=True,
                           holder="import")  # fmt: skip
            value = None
            if not node.level:
                value = self.resolver.attribute(module, alias.name)
                value = value or Value("", OUTSIDE, ref=f"{node.module}.{alias.name}")
                value = value.but(name=name, constant=True)
            self.bind(name, value or self.unknown(frame.level), frame, node)

    # --- stores ---

    def is_outer_name(self: Any, name: str, frame: Frame) -> bool:
        """Say whether assignment to a name writes a variable that is not the function's own."""
        return name in frame.facts.globals or name in frame.facts.nonlocals

    def bind(self: Any, name: str, value: Value, frame: Frame, node: ast.AST) -> None:
        """Bind a name: the function's own, or a global or variable of a function around."""
        if name in frame.facts.globals:
            self.report(rules.GlobalWrite, frame, node, name)
        elif name in frame.facts.nonlocals:
            owner = frame.owner(name)
            if owner is None:
                self.report(rules.NonlocalWrite, frame, node, name)
            elif owner.level < frame.level:
                self.report(rules.CallbackLeak, frame, node, name, "nonlocal")
            else:
                owner.env[name] = join([owner.env.get(name), value]) or value
        else:
            frame.env[name] = value

    def store(
        self: Any, target: ast.expr, value: Value, frame: Frame,
        *, augmented: bool = False, deleted: bool = False,
    ) -> None:  # fmt: skip
        """Assign to a target of any form."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, frame, target)
        elif isinstance(target, ast.Starred):
            self.store(target.value, Value("list", frame.level, fields={None: value}), frame)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if any(one.kind in ("iterator", "generator", "file") for one in value.each()):
                self.draw(value, frame, target)
            for i, part in enumerate(target.elts):
                self.store(part, self.part(value, frame, i), frame)
        elif isinstance(target, ast.Attribute):
            base = self.expr(target.value, frame)
            self.put(base, target.attr, value)
            protocols.assign(self, base, target.attr, value, frame, target)
            self.mutate(base, frame, target, target.attr, attribute=True)
        elif isinstance(target, ast.Subscript):
            base = self.expr(target.value, frame)
            index = self.read(target.slice, frame)
            key = target.slice
            self.put(base, ("item", key.value) if isinstance(key, ast.Constant) else None, value)
            what = "del" if deleted else "item assignment"
            method = "__delitem__" if deleted else "__setitem__"
            protocols.ask(self, base, (method,), frame, target, [index, value])
            for one in base.each():
                if one.kind == "ref":
                    continue
                array = one.kind == "array" or (one.argument and _looks_array(one, key, index))
                if array and not deleted and (one.level == frame.level or not one.level):
                    shown = ast.unparse(key)
                    method = "add" if augmented else "set"
                    text = f"{one.name or 'x'}.at[{shown}].{method}(...)"
                    self.report(rules.ArrayItemWrite, frame, target, one.name, text)
                else:
                    self.mutate(one, frame, target, what)

    def put(self: Any, base: Value, key: Any, value: Value) -> None:
        """Remember what a local object holds."""
        for one in base.each():
            if one.fields is not None and one.level != OUTSIDE:
                one.fields[key] = join([one.fields.get(key), value]) or value


def _looks_array(value: Value, key: ast.expr, index: Value) -> bool:
    """Guess from an index whether ``x[index] = v`` is meant for an array: a string never is."""
    if value.kind in CONTAINERS:
        return False
    if isinstance(key, ast.JoinedStr) or (
        isinstance(key, ast.Constant) and isinstance(key.value, str)
    ):
        return False
    return not (index.kind == "scalar" and index.obj.__class__ is str)


#: What runs a statement, by the type of its node. Nothing runs ``pass``, ``global``, ``nonlocal``,
#: ``break``, ``continue``, and type aliases.
_RUN = {
    getattr(ast, name.removeprefix("_do_")): run
    for name, run in vars(Statements).items()
    if name.startswith("_do_")
}
_RUN |= {
    ast.AsyncFor: _RUN[ast.For], ast.AsyncWith: _RUN[ast.With], ast.TryStar: _RUN[ast.Try],
    ast.AsyncFunctionDef: _RUN[ast.FunctionDef],
}  # fmt: skip
