"""Expressions: which object they give, before anybody reads it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..nodes import children, walk
from ..scopes import Frame
from ..values import OUTSIDE, Fields, Value, join
from . import protocols
from .calls import call_expr
from .entry import define
from .machine import Engine
from .ownership import hold, is_known, read, use
from .parts import from_outside, take_attribute, take_element, take_item, take_slice
from .protocols import ask_truth, draw, each_of
from .stores import bind_target, store


def _parts(engine: Engine, node: ast.expr, frame: Frame) -> Value:
    """Evaluate an expression that reads all its parts: f-strings, slices."""
    for child in children(node):
        if isinstance(child, ast.expr):
            read(engine, child, frame)
    return engine.unknown(frame.level)


def _constant(engine: Engine, node: ast.Constant, frame: Frame) -> Value:
    return engine.unknown(frame.level)


_DRAWN = frozenset({"iterator", "generator"})


def _name(engine: Engine, node: ast.Name, frame: Frame) -> Value:
    name = node.id
    value = frame.env.get(name)
    if value is not None:
        if value.kind in _DRAWN and not value.name and not value.others:
            value = frame.env[name] = value.but(name=name)
        if value.holder == "default" and value.origin is None and not value.others:
            return value.but(origin=(frame, node))
        return value
    if name in frame.facts.bound:
        return engine.unknown(frame.level)
    if name not in frame.facts.globals:
        owner = frame.owner(name)
        if owner is not None:
            value = owner.env.get(name)
            if value is None:
                return engine.unknown(owner.level)
            return value if value.name else value.but(name=name)
    value = engine.resolver.lookup(frame.function, name)
    if value is None:
        return engine.unknown(frame.level)
    return from_outside(engine, value, frame, node)


def _named_expr(engine: Engine, node: ast.NamedExpr, frame: Frame) -> Value:
    value = engine.expr(node.value, frame)
    store(engine, node.target, value, frame)
    return value


def _starred(engine: Engine, node: ast.Starred, frame: Frame) -> Value:
    value = engine.expr(node.value, frame)
    return each_of(engine, value, frame, node.value)


def _if_exp(engine: Engine, node: ast.IfExp, frame: Frame) -> Value:
    truth = ask_truth(engine, node.test, frame)
    if truth is not None:
        return engine.expr(node.body if truth else node.orelse, frame)
    parts = engine.expr(node.body, frame), engine.expr(node.orelse, frame)
    return join(parts) or engine.unknown(frame.level)


def _bool_op(engine: Engine, node: ast.BoolOp, frame: Frame) -> Value:
    values = [engine.expr(v, frame) for v in node.values]
    for value, part in zip(values[:-1], node.values, strict=False):
        protocols.ask(engine, value, protocols.TRUTH, frame, part)
    decides = isinstance(node.op, ast.Or)
    if any(protocols.is_truth(value) and value.obj is decides for value in values):
        return Value("scalar", frame.level, obj=decides)
    return join(values) or engine.unknown(frame.level)


def _bin_op(engine: Engine, node: ast.BinOp, frame: Frame) -> Value:
    # Programs write sums of a thousand terms, each of which is the left side of the next.
    chain = [node]
    while isinstance(node.left, ast.BinOp):
        node = node.left
        chain.append(node)
    value = engine.expr(node.left, frame)
    for one in reversed(chain):
        use(engine, value, frame, one.left)
        right = read(engine, one.right, frame)
        if type(one.op) is not ast.Mod and value.is_plain() and right.is_plain():
            value = _number(engine, value, right, frame)
        else:
            value = _combined(engine, one, value, right, frame)
    return value


def _number(engine: Engine, left: Value, right: Value, frame: Frame) -> Value:
    """Return what an operator makes of numbers and arrays: an array, if one of them is known."""
    for one in (left, right):
        if one.kind == "array" or (one.others and any(v.kind == "array" for v in one.others)):
            return engine.array(frame.level)
    return engine.unknown(frame.level)


#: What ``+``, ``*`` and ``|`` make of containers has their elements.
_JOINED = frozenset({"list", "tuple", "dict", "set"})


def _combined(engine: Engine, node: ast.BinOp, left: Value, right: Value, frame: Frame) -> Value:
    made = protocols.binary(engine, node.op, left, right, frame, node)
    if made is not None:
        return made
    for one in (*left.each(), *right.each()):
        if one.level == OUTSIDE and engine.resolver.gives_its_kind(one):
            return one
        if one.kind in _JOINED and one.kind != "list":
            held = _held_by(engine, (left, right), frame)
            return (
                Value(one.kind, frame.level, fields=held) if held else engine.unknown(frame.level)
            )
        if one.kind == "list":
            return Value("list", frame.level, fields=_held_by(engine, (left, right), frame))
        if one.kind == "ndarray" or (one.kind == "array" and one.level != OUTSIDE):
            return Value(one.kind, frame.level, fields={})
    return engine.unknown(frame.level)


def _held_by(engine: Engine, whole: tuple[Value, ...], frame: Frame) -> Fields:
    """Return the elements of containers that an operator joins, but for numbers and arrays."""
    parts = [
        part
        for value in whole
        for one in value.each() if one.kind in _JOINED
        for part in take_element(engine, one, frame).each()
        if not part.is_idle() and part.kind
    ]  # fmt: skip
    found = join(parts)
    return {} if found is None else {None: found}


def _unary_op(engine: Engine, node: ast.UnaryOp, frame: Frame) -> Value:
    value = read(engine, node.operand, frame)
    made = protocols.unary(engine, node.op, value, frame, node)
    if not isinstance(node.op, ast.Not):
        return made or engine.unknown(frame.level)
    if protocols.is_truth(value):
        return Value("scalar", frame.level, obj=not value.obj)
    return engine.unknown(frame.level)


def _formatted_value(engine: Engine, node: ast.FormattedValue, frame: Frame) -> Value:
    value = read(engine, node.value, frame)
    protocols.ask(engine, value, protocols.TEXT, frame, node)
    if node.format_spec is not None:
        read(engine, node.format_spec, frame)
    return engine.unknown(frame.level)


_IDENTITY = (ast.Is, ast.IsNot)
_SAME = (*_IDENTITY, ast.Eq, ast.NotEq)
#: Attributes by which a function may be called that has them; others tell something of it.
_LEADING = frozenset({"__call__", "__get__", "__code__", "__func__", "__self__", "func", "args",
                      "keywords", "fget", "fset", "fdel"})  # fmt: skip


def _compare(engine: Engine, node: ast.Compare, frame: Frame) -> Value:
    left = engine.expr(node.left, frame)
    if not (all(isinstance(op, _IDENTITY) for op in node.ops) and is_known(left)):
        use(engine, left, frame, node.left)
    made: list[Value | None] = []
    for way, right in zip(node.ops, node.comparators, strict=True):
        value = engine.expr(right, frame)
        if isinstance(way, _SAME):
            engine.forget(node.left, right)
        if isinstance(way, (ast.In, ast.NotIn)):
            draw(engine, value, frame, right)
        elif not (isinstance(way, _IDENTITY) and is_known(value)):
            use(engine, value, frame, right)
        made.append(protocols.compare(engine, way, left, value, frame, node))
        left = value
    asked = protocols.presumed if engine.resolver.presumes else protocols.is_none
    truth = asked(engine, node, frame)
    if truth is None and engine.resolver.presumes and len(node.ops) == 1:
        truth = protocols.same_module(engine, node, frame)
    return (join(made) or engine.unknown(frame.level)) if truth is None else truth


def _lambda(engine: Engine, node: ast.Lambda, frame: Frame) -> Value:
    return define(engine, node, frame)


def _call(engine: Engine, node: ast.Call, frame: Frame) -> Value:
    return call_expr(engine, node, frame, used=True)


def _yield(engine: Engine, node: ast.Yield, frame: Frame) -> Value:
    if node.value is not None:
        value = engine.expr(node.value, frame)
        use(engine, value, frame, node.value)
        frame.yields.append(value)
    return engine.unknown(frame.level)


def _yield_from(engine: Engine, node: ast.YieldFrom, frame: Frame) -> Value:
    value = engine.expr(node.value, frame)
    frame.yields.append(each_of(engine, value, frame, node.value))
    made = protocols.ask(engine, value, ("__iter__",), frame, node)
    return protocols.returned_by(engine, value if made is None else made, frame)


def _await(engine: Engine, node: ast.Await, frame: Frame) -> Value:
    value = engine.expr(node.value, frame)
    use(engine, value, frame, node.value)
    made = protocols.ask(engine, value, ("__await__",), frame, node)
    return protocols.returned_by(engine, value if made is None else made, frame)


def _list(engine: Engine, node: ast.List | ast.Tuple | ast.Set, frame: Frame) -> Value:
    kind = type(node).__name__.lower()
    fields: dict[Any, Value] = {}
    starred = False
    for i, part in enumerate(node.elts):
        starred = starred or isinstance(part, ast.Starred)
        value = engine.expr(part, frame)
        hold(engine, value, frame, part)
        if kind == "set":
            protocols.ask(engine, value, protocols.HASH, frame, part)
        key = None if starred or kind == "set" else ("item", i)
        fields[key] = join([fields.get(key), value]) or value
    return Value(kind, frame.level, fields=fields)


def _dict(engine: Engine, node: ast.Dict, frame: Frame) -> Value:
    fields: dict[Any, Value] = {}
    for key, part in zip(node.keys, node.values, strict=True):
        value = engine.expr(part, frame)
        if key is None:
            use(engine, value, frame, part)
            value = protocols.item_of(engine, value, frame, part)
        else:
            protocols.ask(engine, read(engine, key, frame), protocols.HASH, frame, key)
            hold(engine, value, frame, part)
        mark = ("item", key.value) if isinstance(key, ast.Constant) else None
        fields[mark] = join([fields.get(mark), value]) or value
    return Value("dict", frame.level, fields=fields)


def _comprehension(engine: Engine, node: Any, frame: Frame) -> Value:
    """Evaluate a comprehension; its names are gone afterwards."""
    names = {n.id for g in node.generators for n in walk(g.target) if isinstance(n, ast.Name)}
    kept = {name: frame.env.get(name) for name in names}
    for generator in node.generators:
        items = each_of(engine, engine.expr(generator.iter, frame), frame, generator.iter)
        for target in walk(generator.target):
            if isinstance(target, ast.Name):
                frame.env.pop(target.id, None)
        bind_target(engine, generator.target, items, frame)
        for test in generator.ifs:
            ask_truth(engine, test, frame)
    results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    parts: list[Value] = []
    for part in results:
        value = (
            call_expr(engine, part, frame, used=False)
            if isinstance(part, ast.Call)
            else engine.expr(part, frame)
        )
        hold(engine, value, frame, part)
        parts.append(value)
    for name, old in kept.items():
        if old is None:
            frame.env.pop(name, None)
        else:
            frame.env[name] = old
    kind = {"ListComp": "list", "SetComp": "set", "DictComp": "dict"}.get(
        type(node).__name__, "generator"
    )
    return Value(kind, frame.level, fields={None: parts[-1]})


def _subscript(engine: Engine, node: ast.Subscript, frame: Frame) -> Value:
    base = engine.expr(node.value, frame)
    at = read(engine, node.slice, frame)
    if isinstance(node.slice, ast.Slice):
        return take_slice(engine, base, frame, node)
    protocols.ask(engine, at, protocols.INDEX, frame, node.slice)
    index = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if base.ref == "sys.modules":
        name = at.obj if index is None and at.constant else index
        own = engine.resolver.item(base, name) if name.__class__ is str else None
        if own is not None:
            return own.but(name=ast.unparse(node))
    found = protocols.ask(engine, base, ("__getitem__", "__missing__"), frame, node, [at])
    found = found or protocols.ask_class(engine, base, at, frame, node)
    if found is not None:
        return join([found, *take_item(engine, base, frame).each()]) or found
    for one in base.each():
        if one.level == OUTSIDE and one.kind == "iterator":  # of ``np.nditer``: where it stands
            use(engine, one, frame, node)
    return take_item(engine, base, frame, index)


def _attribute(engine: Engine, node: ast.Attribute, frame: Frame) -> Value:
    places = engine.places
    if places is not None and (known := places.recall(node, frame)) is not None:
        return known
    base = engine.expr(node.value, frame)
    if node.attr not in _LEADING:
        engine.forget(node.value)
    value = take_attribute(engine, base, node.attr, frame, node)
    if places is not None and value.level == OUTSIDE and value.ref:
        places.remember(node, frame, base, value)
    return value


#: What runs an expression, by the type of its node.
EXPRESSIONS: Final[Mapping[type[ast.AST], Callable[[Engine, Any, Frame], Value]]] = {
    **dict.fromkeys(ast.expr.__subclasses__(), _parts),
    ast.Constant: _constant,
    ast.Name: _name,
    ast.NamedExpr: _named_expr,
    ast.Starred: _starred,
    ast.IfExp: _if_exp,
    ast.BoolOp: _bool_op,
    ast.BinOp: _bin_op,
    ast.UnaryOp: _unary_op,
    ast.FormattedValue: _formatted_value,
    ast.Compare: _compare,
    ast.Lambda: _lambda,
    ast.Call: _call,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: _await,
    ast.List: _list,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.Attribute: _attribute,
    **dict.fromkeys((ast.Tuple, ast.Set), _list),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), _comprehension),
}
