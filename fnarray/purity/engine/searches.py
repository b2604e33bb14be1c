"""Attributes by names that are computed: any that the object has, and the name may spell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import islice, product

from .. import rules
from ..nodes import nodes_in
from ..scopes import Frame
from ..values import OUTSIDE, Value
from .entry import body_of
from .machine import Engine
from .parts import take_attribute, take_element

#: A part of a name that nobody knows.
_ANY = "\0"
#: At most so many ways to spell a name, and attributes that it may stand for, are gone through.
_SPELLINGS, _ATTRIBUTES = 64, 64
_FIELD = re.compile(r"%[^%]*?[a-z]|\{[^{}]*\}")


def attribute_named(
    engine: Engine, base: Value, name: ast.AST | None, frame: Frame, node: ast.AST,
    *, handed: bool = False,
) -> Value:  # fmt: skip
    """Return any attribute that an object has under a name that an expression computes.

    Under a name of which nothing is known it may be a method only where it is called, or ``handed``
    on: what looks through fields calls none.
    """
    spelled = [*spellings(name, frame)]
    exact = not any(_ANY in one for one in spelled)
    found: list[Value] = []
    for one in base.each():
        if one.argument:
            found.append(take_element(engine, one, frame))
        elif exact:
            found += [take_attribute(engine, one, name, frame, node) for name in spelled]
        elif one.level == OUTSIDE and engine.resolver.is_open(one):
            shown = f"{one.name}.<computed>"
            engine.report(rules.MutableAttribute, frame, node, shown, value=one)
        elif not (engine.resolver.presumes and _ANY in spelled):
            found += [
                take_attribute(engine, one, attr, frame, node)
                for attr in islice(_matching(_names(engine, one), spelled), _ATTRIBUTES)
            ]
            if one.kind == "instance" and one.fields is not None and None in one.fields:
                found.append(one.fields[None])  # set by a name that is computed
    unlike = {one.identity(): one for value in found for one in value.each()}
    if _ANY in spelled and not handed:
        calls = _calls_of(node, frame)
        unlike = {
            key: one for key, one in unlike.items()
            if one.kind != "function" or any(_fits(engine, one, call) for call in calls)
        }  # fmt: skip
        engine.forget(node)
        for one in unlike.values():
            engine.name(one, frame, node)
    if not unlike:
        return engine.unknown(frame.level)
    first, *others = unlike.values()
    return first.but(others=(*others,))  # all of them, where `join` keeps the first six


def _calls_of(node: ast.AST, frame: Frame) -> list[ast.Call | None]:
    """Return the calls of what an expression gives, by whatever name; None where others call it."""
    names: set[str] = set()
    calls: list[ast.Call | None] = []
    by_name: list[tuple[str, ast.Call]] = []
    for one in nodes_in(frame.function.node):
        match one:
            case ast.Call(func=func) if func is node:
                calls.append(one)
            case ast.Call(func=ast.Name(id=name)):
                by_name.append((name, one))
            case ast.Return(value=value) | ast.Lambda(body=value) if value is node:
                calls.append(None)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                names.add(name)
            case _:
                pass
    return calls + [call for name, call in by_name if name in names]


def _fits(engine: Engine, method: Value, call: ast.Call | None) -> bool:
    """Say whether a method takes as many arguments as a call has."""
    target = body_of(engine, method)
    if target is None or call is None or any(isinstance(a, ast.Starred) for a in call.args):
        return True
    function, receiver = target
    spec = function.node.args
    most = len(spec.posonlyargs) + len(spec.args) - (receiver is not None)
    least = most - len(spec.defaults)
    named = len(call.keywords)
    return least - named <= len(call.args) and (spec.vararg is not None or len(call.args) <= most)


def written_names(node: ast.AST, frame: Frame) -> list[str | None]:
    """Return the names that ``setattr`` may give an attribute; None stands for any."""
    written = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    spelled = [*spellings(written, frame)]
    return [None] if any(_ANY in one for one in spelled) else [*spelled]


def spellings(node: ast.AST | None, frame: Frame) -> Iterator[str]:
    """Yield what text an expression may give, with a mark for each part that is not known."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield from _joined(parts, frame)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            yield from spellings(value, frame)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _joined([left, right], frame)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            yield _FIELD.sub(_ANY, text)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            yield _FIELD.sub(_ANY, text)
        case ast.IfExp(body=body, orelse=orelse):
            yield from spellings(body, frame)
            yield from spellings(orelse, frame)
        case ast.Name(id=name):
            value = frame.env.get(name)
            if value is not None and not value.others and type(value.obj) is str:
                yield value.obj
            else:
                yield from _of_loop(name, frame)
        case _:
            yield _ANY


def _joined(parts: list[ast.expr], frame: Frame) -> Iterator[str]:
    ways = product(*([*spellings(part, frame)] for part in parts))
    some = ["".join(way) for way in islice(ways, _SPELLINGS + 1)]
    yield from some if len(some) <= _SPELLINGS else [_ANY]


def _of_loop(name: str, frame: Frame) -> Iterator[str]:
    """Yield the texts that a loop over a literal gives a name, if nothing else binds it."""
    stores = [
        n for n in nodes_in(frame.function.node)
        if isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
    ]  # fmt: skip
    loops = [
        n for n in nodes_in(frame.function.node)
        if isinstance(n, (ast.For, ast.comprehension)) and n.target in stores
    ]  # fmt: skip
    items = getattr(loops[0].iter, "elts", ()) if len(loops) == len(stores) == 1 else ()
    texts = [n.value for n in items if isinstance(n, ast.Constant) and type(n.value) is str]
    yield from texts if texts and len(texts) == len(items) else [_ANY]


def _matching(names: Iterable[str], spelled: list[str]) -> Iterator[str]:
    """Yield the names that one of the spellings may stand for; special ones nobody computes."""
    ways = [".*".join(map(re.escape, one.split(_ANY))) for one in spelled]
    pattern = re.compile("|".join(ways))
    for name in sorted(set(names)):
        if pattern.fullmatch(name) and not (name.startswith("__") and name.endswith("__")):
            yield name


def _names(engine: Engine, one: Value) -> Iterator[str]:
    """Yield the names of what an object has, and its classes."""
    if one.level == OUTSIDE:
        yield from engine.resolver.names(one)
        return
    for key, value in (one.fields or {}).items():
        if isinstance(key, str):
            yield key
        elif key and key[0] == "base" and value.kind == "class":
            yield from _names(engine, value)
    if one.kind == "instance" and one.bound is not None:
        yield from _names(engine, one.bound)
