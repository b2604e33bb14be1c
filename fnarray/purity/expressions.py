"""Expressions: which object they give, before anybody reads it."""

from __future__ import annotations

import ast
from typing import Any

from . import protocols
from .known import EFFECT_OBJECTS, effect_of
from .rules import RULES
from .scopes import Frame
from .values import CHANGING, CONTAINERS, DRAWN, OUTSIDE, Value, join

#: Objects whose attributes are methods, or as changeable as they are.
_OPAQUE = frozenset({"ndarray", "element", "logger"})
#: Objects that a helper may return unread.
_PASSED_ON = CONTAINERS | {"instance"}
#: Attributes of arrays that are plain data, never the container they were taken from.
_PLAIN = frozenset({"shape", "dtype", "ndim", "size", "T", "real", "imag", "mT", "itemsize"})


class Expressions:
    """The part of the engine that evaluates expressions.

    ``expr`` gives the object without reading it, so that a caller may change it, pass it on or
    take an attribute; ``read`` also checks that it may be read.
    """

    def read(self: Any, node: ast.expr, frame: Frame) -> Value:
        """Evaluate an expression whose value is looked at."""
        value = self.expr(node, frame)
        self.use(value, frame, node)
        return value

    def expr(self: Any, node: ast.expr, frame: Frame) -> Value:
        """Evaluate an expression."""
        run = _RUN.get(type(node))
        if run is not None:
            return run(self, node, frame)
        # Operators, comparisons, f-strings, slices: they read all their parts.
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.read(child, frame)
        return self.unknown(frame.level)

    def _expr_Constant(self: Any, node: ast.Constant, frame: Frame) -> Value:
        return self.unknown(frame.level)

    def _expr_Name(self: Any, node: ast.Name, frame: Frame) -> Value:
        name = node.id
        value = frame.env.get(name)
        if value is not None:
            if not value.name and not value.others and value.kind in ("iterator", "generator"):
                value = frame.env[name] = value.but(name=name)
            return value
        if name in frame.facts.bound:
            return self.unknown(frame.level)
        if name not in frame.facts.globals:
            owner = frame.owner(name)
            if owner is not None:
                value = owner.env.get(name)
                if value is None:
                    return self.unknown(owner.level)
                return value if value.name else value.but(name=name)
        value = self.resolver.lookup(frame.function, name)
        if value is None:
            return self.unknown(frame.level)
        return self.outer(value, frame, node)

    def outer(self: Any, value: Value, frame: Frame, node: ast.AST) -> Value:
        """Note where an object from outside is named, and whether to name it is an effect."""
        for one in value.each():
            code = effect_of(one.ref) if one.ref else ""
            if code in EFFECT_OBJECTS:
                self.report(RULES[code], frame, node, one.ref)
                # Said once: what is done with it afterwards is the same effect.
                return self.unknown(frame.level)
        if value.others:
            return value
        return value.but(origin=(frame, node))

    def _expr_NamedExpr(self: Any, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.expr(node.value, frame)
        self.store(node.target, value, frame)
        return value

    def _expr_Starred(self: Any, node: ast.Starred, frame: Frame) -> Value:
        value = self.expr(node.value, frame)
        self.draw(value, frame, node.value)
        return self.element(value, frame)

    def _expr_IfExp(self: Any, node: ast.IfExp, frame: Frame) -> Value:
        self.test(node.test, frame)
        parts = self.expr(node.body, frame), self.expr(node.orelse, frame)
        return join(parts) or self.unknown(frame.level)

    def _expr_BoolOp(self: Any, node: ast.BoolOp, frame: Frame) -> Value:
        values = [self.expr(v, frame) for v in node.values]
        for value, part in zip(values[:-1], node.values, strict=False):
            protocols.ask(self, value, protocols.TRUTH, frame, part)
        return join(values) or self.unknown(frame.level)

    def _expr_BinOp(self: Any, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.read(node.left, frame), self.read(node.right, frame)
        made = protocols.binary(self, node.op, left, right, frame, node)
        if made is not None:
            return made
        for one in (*left.each(), *right.each()):
            if one.kind in ("list", "ndarray") or (one.kind == "array" and one.level != OUTSIDE):
                return Value(one.kind, frame.level, fields={})
        return self.unknown(frame.level)

    def _expr_UnaryOp(self: Any, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.read(node.operand, frame)
        protocols.unary(self, node.op, value, frame, node)
        return self.unknown(frame.level)

    def _expr_FormattedValue(self: Any, node: ast.FormattedValue, frame: Frame) -> Value:
        value = self.read(node.value, frame)
        protocols.ask(self, value, protocols.TEXT, frame, node)
        if node.format_spec is not None:
            self.read(node.format_spec, frame)
        return self.unknown(frame.level)

    def test(self: Any, node: ast.expr, frame: Frame) -> None:
        """Evaluate an expression of which only the truth counts."""
        protocols.ask(self, self.read(node, frame), protocols.TRUTH, frame, node)

    def _expr_Compare(self: Any, node: ast.Compare, frame: Frame) -> Value:
        left = self.expr(node.left, frame)
        if not all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            self.use(left, frame, node.left)  # else which object it is, a guard tells
        for way, right in zip(node.ops, node.comparators, strict=True):
            value = self.expr(right, frame)
            if isinstance(way, (ast.In, ast.NotIn)):
                self.draw(value, frame, right)
            elif not isinstance(way, (ast.Is, ast.IsNot)):
                self.use(value, frame, right)
            protocols.compare(self, way, left, value, frame, node)
            left = value
        return self.unknown(frame.level)

    def _expr_Lambda(self: Any, node: ast.Lambda, frame: Frame) -> Value:
        return self.define(node, frame)

    def _expr_Call(self: Any, node: ast.Call, frame: Frame) -> Value:
        return self.call_expr(node, frame, used=True)

    def _expr_Yield(self: Any, node: ast.Yield, frame: Frame) -> Value:
        if node.value is not None:
            value = self.expr(node.value, frame)
            self.use(value, frame, node.value)
            frame.yields.append(value)
        return self.unknown(frame.level)

    def _expr_YieldFrom(self: Any, node: ast.YieldFrom, frame: Frame) -> Value:
        value = self.expr(node.value, frame)
        self.draw(value, frame, node.value)
        frame.yields.append(self.element(value, frame))
        return self.unknown(frame.level)

    # --- displays and comprehensions ---

    def _expr_List(self: Any, node: ast.List | ast.Tuple | ast.Set, frame: Frame) -> Value:
        kind = type(node).__name__.lower()
        fields: dict[Any, Value] = {}
        starred = False
        for i, part in enumerate(node.elts):
            starred = starred or isinstance(part, ast.Starred)
            value = self.expr(part, frame)
            self.hold(value, frame, part)
            key = None if starred or kind == "set" else ("item", i)
            fields[key] = join([fields.get(key), value]) or value
        return Value(kind, frame.level, fields=fields)

    def _expr_Dict(self: Any, node: ast.Dict, frame: Frame) -> Value:
        fields: dict[Any, Value] = {}
        for key, part in zip(node.keys, node.values, strict=True):
            value = self.expr(part, frame)
            if key is None:
                self.use(value, frame, part)
                value = self.element(value, frame)
            else:
                self.read(key, frame)
                self.hold(value, frame, part)
            mark = ("item", key.value) if isinstance(key, ast.Constant) else None
            fields[mark] = join([fields.get(mark), value]) or value
        return Value("dict", frame.level, fields=fields)

    def hold(self: Any, value: Value, frame: Frame, node: ast.AST) -> None:
        """Put a value into a container: reading it later would have no origin to point at."""
        for one in value.each():
            if one.kind in ("scalar", "element", "ndarray") or one.holder == "attribute":
                self.use(one, frame, node)

    def escape(self: Any, value: Value, frame: Frame, node: ast.AST) -> None:
        """Return a value: at the end of the trace that is to read it."""
        if self.depth <= 1 or not any(
            v.level == OUTSIDE and v.kind in _PASSED_ON for v in value.each()
        ):
            self.use(value, frame, node)
        if self.depth <= 1:
            for one in value.each():
                for part in (one.fields or {}).values() if one.level != OUTSIDE else ():
                    if part.level == OUTSIDE:
                        self.use(part, frame, node)

    def _expr_Comprehension(self: Any, node: Any, frame: Frame) -> Value:
        """Evaluate a comprehension; its names are gone afterwards."""
        names = {
            n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)
        }
        kept = {name: frame.env.get(name) for name in names}
        for generator in node.generators:
            items = self.expr(generator.iter, frame)
            self.draw(items, frame, generator.iter)
            for target in ast.walk(generator.target):
                if isinstance(target, ast.Name):
                    frame.env.pop(target.id, None)
            self.target(generator.target, self.element(items, frame), frame)
            for test in generator.ifs:
                self.test(test, frame)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.branches += 1
        parts: list[Value] = []
        for part in results:
            value = (
                self.call_expr(part, frame, used=False)
                if isinstance(part, ast.Call)
                else self.expr(part, frame)
            )
            self.hold(value, frame, part)
            parts.append(value)
        self.branches -= 1
        for name, old in kept.items():
            if old is None:
                frame.env.pop(name, None)
            else:
                frame.env[name] = old
        kind = {"ListComp": "list", "SetComp": "set", "DictComp": "dict"}.get(
            type(node).__name__, "generator"
        )
        return Value(kind, frame.level, fields={None: parts[-1]})

    def target(self: Any, target: ast.expr, value: Value, frame: Frame) -> None:
        """Bind the target of a comprehension, whose names are never global."""
        if isinstance(target, ast.Name):
            frame.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for i, part in enumerate(target.elts):
                self.target(part, self.part(value, frame, i), frame)
        elif isinstance(target, ast.Starred):
            self.target(target.value, self.unknown(frame.level), frame)
        else:
            self.store(target, value, frame)

    # --- parts of objects ---

    def _expr_Subscript(self: Any, node: ast.Subscript, frame: Frame) -> Value:
        base = self.expr(node.value, frame)
        at = self.read(node.slice, frame)
        protocols.ask(self, at, protocols.INDEX, frame, node.slice)
        found = protocols.ask(self, base, ("__getitem__", "__missing__"), frame, node, [at])
        if found is not None:
            return join([found, *self.part(base, frame).each()]) or found
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return self.part(base, frame, index)

    def part(self: Any, value: Value, frame: Frame, index: Any = None) -> Value:
        """Return the element at a constant index, or any element."""
        return join([self._part(v, frame, index) for v in value.each()]) or value

    def element(self: Any, value: Value, frame: Frame) -> Value:
        """Return what iteration over an object gives."""
        return self.part(value, frame)

    def _part(self: Any, one: Value, frame: Frame, index: Any) -> Value | None:
        if one.kind == "ref":
            return one
        if one.fields is not None and one.level != OUTSIDE and not one.argument:
            if index is not None and ("item", index) in one.fields:
                return one.fields["item", index]
            if index is not None and None in one.fields:
                return one.fields[None]
            return join(one.fields.values()) or self.unknown(one.level)
        if one.argument:
            return Value("", one.level, argument=True, name=one.name)
        if one.level != OUTSIDE:
            return self.unknown(one.level)
        if one.kind in ("tuple", "frozen", "scalar") or one.guarded:
            known = self.resolver.item(one, index) if index is not None else None
            parts = [known] if known is not None else list(self.resolver.items(one) or ())
            if isinstance(index, int) and known is None and -len(parts) <= index < len(parts):
                parts = [parts[index]]
            if one.kind == "scalar" or not parts:
                return one
            return join(p.but(name=one.name, origin=one.origin, holder=p.holder or one.holder,
                              constant=p.constant or one.constant) for p in parts)  # fmt: skip
        if one.kind == "element":
            return one
        if one.kind in ("module", "class", "function", ""):
            return self.unknown(frame.level)
        if one.kind in ("iterator", "generator", "file"):
            return self.unknown(frame.level)
        known = self.resolver.item(one, index) if index is not None else None
        if known is not None and (known.kind in CHANGING):
            return known.but(name=one.name, origin=one.origin)
        element = Value("element", OUTSIDE, name=one.name, bound=one, origin=one.origin)
        # Read it may be where nothing is kept: what it does when called is an effect even so.
        return join([element, *self.resolver.callables(one, index)])

    def _expr_Attribute(self: Any, node: ast.Attribute, frame: Frame) -> Value:
        base = self.expr(node.value, frame)
        return self.attribute(base, node.attr, frame, node)

    def attribute(self: Any, base: Value, attr: str, frame: Frame, node: ast.AST) -> Value:
        """Return an attribute of an object; properties run."""
        found = join([self._attribute(v, attr, frame, node) for v in base.each()])
        return found or self.unknown(frame.level)

    def _attribute(self: Any, one: Value, attr: str, frame: Frame, node: ast.AST) -> Value:
        if one.kind == "ref":
            return one
        name = f"{one.name}.{attr}" if one.name else attr
        if one.kind == "super":
            found = protocols.super_attribute(self, one, attr, frame, node)
            if found is not None:
                return found
        if attr == "__class__" and one.kind == "instance" and one.bound is not None:
            return one.bound
        if one.level != OUTSIDE or one.argument:
            return self._local_attribute(one, attr, name, frame, node)
        if attr == "__dict__":
            return Value("dict", OUTSIDE, name=f"{name}", holder="attribute")
        if one.kind in CONTAINERS or one.kind in DRAWN or one.kind in _OPAQUE:
            return Value("member", OUTSIDE, name=name, bound=one, origin=one.origin)
        value = self.resolver.attribute(one, attr)
        if value is None:
            if one.ref and one.kind in ("module", "class", "function", ""):
                ref = f"{one.ref}.{attr}"
                return self.outer(
                    Value("", OUTSIDE, name=name, ref=ref, constant=True), frame, node
                )
            kind = "member"
            return Value(kind, OUTSIDE, name=name, bound=one, origin=one.origin, constant=True)
        if value.kind == "property":
            return self.call(value.but(kind="function"), [], {}, frame, node)
        if one.kind == "frozen" and not value.constant:
            value = value.but(constant=True)
        if value.kind in CONTAINERS and value.holder == "attribute" and not value.name:
            value = value.but(name=name)
        return self.outer(value if value.name else value.but(name=name), frame, node)

    def _local_attribute(
        self: Any, one: Value, attr: str, name: str, frame: Frame, node: ast.AST
    ) -> Value:
        if one.fields is not None and attr in one.fields:
            value = one.fields[attr]
            return value if one.kind != "class" else value.but(bound=None)
        if one.kind == "instance" and one.bound is not None:
            maker = one.bound
            value = _of_local_class(maker, attr) if maker.level != OUTSIDE else None
            if maker.level == OUTSIDE:
                value = self.resolver.attribute(maker, attr)
            if value is not None:
                if value.kind == "property":
                    return self.call(value.but(kind="function", bound=one), [], {}, frame, node)
                if value.kind == "function" and value.holder != "static":
                    value = value.but(bound=one)
                if value.level == OUTSIDE and value.kind != "function":
                    return self.outer(value, frame, node)
                return value
        if attr in _PLAIN and not one.kind:
            return Value("", frame.level)
        if attr == "at":
            return Value("array", frame.level)
        return Value("member", one.level, argument=one.argument, name=name, bound=one)


def _of_local_class(cls: Value, attr: str) -> Value | None:
    """Return what a class made in the trace, or one that it inherits from, has by a name."""
    fields = cls.fields or {}
    if attr in fields:
        return fields[attr]
    bases = [v for k, v in fields.items() if isinstance(k, tuple) and k[0] == "base"]
    found = (_of_local_class(b, attr) for b in bases if b.kind == "class" and b.level != OUTSIDE)
    return next((f for f in found if f is not None), None)


#: What runs an expression, by the type of its node.
_RUN = {
    getattr(ast, name.removeprefix("_expr_")): run
    for name, run in vars(Expressions).items()
    if name.startswith("_expr_") and name != "_expr_Comprehension"
}
_RUN |= dict.fromkeys((ast.Tuple, ast.Set), _RUN[ast.List]) | dict.fromkeys(
    (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), Expressions._expr_Comprehension
)
