"""What assignment binds, and what it changes."""

from __future__ import annotations

import ast
import re
from typing import Any, Final

from .. import rules
from ..nodes import walk
from ..scopes import Frame
from ..values import CONTAINERS, OUTSIDE, Value, join
from . import protocols
from .machine import Engine
from .ownership import as_written, leak, mutate, part_of, read, use
from .parts import take_element, take_item

#: Methods of ``x.at[i]`` that do what an operator does in place.
_UPDATES: Final[dict[type, str]] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power",
}  # fmt: skip
_UNPACKED = frozenset({"iterator", "generator", "file", "instance"})


def is_outer_name(name: str, frame: Frame) -> bool:
    """Say whether assignment to a name writes a variable that is not the function's own."""
    return name in frame.facts.globals or name in frame.facts.nonlocals


def bind(engine: Engine, name: str, value: Value, frame: Frame, node: ast.AST) -> None:
    """Bind a name: the function's own, or a global or variable of a function around."""
    if name in frame.facts.globals:
        engine.report(rules.GlobalWrite, frame, node, name)
    elif name in frame.facts.nonlocals:
        owner = frame.owner(name)
        if owner is None or owner.level == OUTSIDE:
            engine.report(rules.NonlocalWrite, frame, node, name)
        elif owner.level < frame.level:
            leak(engine, frame, node, name, "nonlocal")
        else:
            owner.env[name] = join([owner.env.get(name), value]) or value
    else:
        frame.env[name] = value


def store(
    engine: Engine, target: ast.expr, value: Value, frame: Frame,
    *, augmented: ast.operator | None = None, deleted: bool = False,
) -> None:  # fmt: skip
    """Assign to a target of any form; what is `augmented`, by an operator."""
    if isinstance(target, ast.Name):
        bind(engine, target.id, value, frame, target)
    elif isinstance(target, ast.Starred):
        store(engine, target.value, Value("list", frame.level, fields={None: value}), frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        found = None
        if any(one.kind in _UNPACKED for one in value.each()):
            found = protocols.each_of(engine, value, frame, target)
        for i, part in enumerate(target.elts):
            item = take_item(engine, value, frame, i)
            store(engine, part, join([item, found]) or item, frame)
    elif isinstance(target, ast.Attribute):
        base = engine.expr(target.value, frame)
        engine.forget(target.value)
        put(engine, base, target.attr, value)
        _lose(engine, base, value, frame, target)
        if deleted or not protocols.assign(engine, base, target.attr, value, frame, target):
            mutate(engine, base, frame, target, target.attr, [value], attribute=True)
    elif isinstance(target, ast.Subscript):
        base = engine.expr(target.value, frame)
        index = read(engine, target.slice, frame)
        key = target.slice
        held = take_element(engine, value, frame) if isinstance(key, ast.Slice) else value
        if deleted or isinstance(key, ast.Slice):
            shift(base)
        put(engine, base, ("item", key.value) if isinstance(key, ast.Constant) else None, held)
        what = "del" if deleted else "item assignment"
        method = "__delitem__" if deleted else "__setitem__"
        ran = protocols.ask(engine, base, (method,), frame, target, [index, value])
        for one in base.each():
            if ran is not None and (one.kind == "instance" or engine.resolver.is_custom(one)):
                continue  # what the user's own method does was found there
            if one.kind == "ref" or (one.level and _is_ref(engine, one, key)):
                continue
            array = one.kind == "array" or (
                one.argument and _looks_array(one, target, index)
                and not _is_mapping(target.value, key, frame.function.node)
            )  # fmt: skip
            if array and not deleted and (one.level == frame.level or not one.level):
                method = _UPDATES.get(type(augmented), "set")
                shown = as_written(target.value, frame)
                text = f"{shown}.at[{as_written(key, frame)}].{method}(...)"
                engine.report(rules.ArrayItemWrite, frame, target, one.name or shown, text,
                              value=base, shown=shown)  # fmt: skip
            else:
                _write_item(engine, one, key, frame, target, what, value)


def _write_item(
    engine: Engine, one: Value, key: ast.expr, frame: Frame, node: ast.AST, what: str, value: Value
) -> None:
    """Report ``d[key] = v``; of ``globals()`` and ``vars(obj)``, as what it binds."""
    text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
    owner, dot, last = one.name.rpartition(".")
    if one.name == "globals()" and text and one.level == OUTSIDE:
        engine.report(rules.GlobalWrite, frame, node, text)
    elif last == "__dict__" and dot and text:
        mutate(engine, one.but(name=owner), frame, node, text, attribute=True)
    else:
        instead = _rebuilt(part_of(node, frame, one.name), key, frame) if what != "del" else ""
        mutate(engine, one, frame, node, what, [value], repair=instead)


def _rebuilt(name: str, key: ast.expr, frame: Frame) -> str:
    """Return how a container is made anew with another item, by the key that it stands under."""
    if isinstance(key, ast.Slice) or not name:
        return ""
    said = as_written(key, frame)
    made = f"{{**{name}, {said}: ...}}"
    if isinstance(key, ast.Constant) and isinstance(key.value, int):
        made = f"[*{name}[:{said}], ..., *{name}[{said} + 1:]]"
    return f"Build a new one: {made}."


def _lose(engine: Engine, base: Value, value: Value, frame: Frame, node: ast.AST) -> None:
    """Read what an object keeps of which nothing is known: whoever reads it there is not seen."""
    if any(one.level != OUTSIDE and not one.kind and not one.argument for one in base.each()):
        use(engine, value, frame, node)


def shift(base: Value) -> None:
    """Forget at which places a list made in the trace holds what: something moves them."""
    for one in base.each():
        if one.fields and one.level != OUTSIDE and one.kind in ("list", "deque"):
            held = join(one.fields.values())
            one.fields.clear()
            one.fields |= {} if held is None else {None: held}


def wrap(engine: Engine, outer: Value, wrapped: Value, frame: Frame, node: ast.AST) -> Value:
    """Note that a function stands for another one, as ``functools.wraps`` does."""
    put(engine, outer, "__wrapped__", wrapped)
    mutate(engine, outer, frame, node, "__wrapped__", [wrapped], attribute=True)
    return outer


def put(engine: Engine, base: Value, key: Any, value: Value) -> None:
    """Remember what a local object holds."""
    for one in base.each():
        if one.fields is not None and one.level != OUTSIDE:
            old = one.fields.get(key)
            new = one.fields[key] = join([old, value]) or value
            if not (new.is_idle() if old is None or old.is_idle() else new.same(old)):
                engine.kept += 1


def bind_target(engine: Engine, target: ast.expr, value: Value, frame: Frame) -> None:
    """Bind the target of a comprehension, whose names are never global."""
    if isinstance(target, ast.Name):
        frame.env[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        for i, part in enumerate(target.elts):
            bind_target(engine, part, take_item(engine, value, frame, i), frame)
    elif isinstance(target, ast.Starred):
        bind_target(engine, target.value, engine.unknown(frame.level), frame)
    else:
        store(engine, target, value, frame)


def _is_ref(engine: Engine, value: Value, key: ast.expr) -> bool:
    """Say whether ``x_ref[...] = v`` writes a mutable reference, which is there to be written.

    Where JAX traces, a field of a tuple of them is taken for one, too.
    """
    whole = isinstance(key, ast.Constant) and key.value is ...
    parts = value.name.split(".")
    if value.kind in ("element", "member") and engine.resolver.presumes:
        return any(_REF.search(part) for part in parts)
    return not value.kind and (whole or _REF.search(parts[-1]) is not None)


_REF = re.compile(r"(\A|_)refs?\Z")


def _looks_array(value: Value, target: ast.Subscript, index: Value) -> bool:
    """Guess from an index whether ``x[index] = v`` is meant for an array: a string never is.

    What an object holds is looked up by names, as often as it is an array.
    """
    key = target.slice
    if value.kind in CONTAINERS:
        return False
    if isinstance(key, ast.JoinedStr) or (
        isinstance(key, ast.Constant) and isinstance(key.value, str)
    ):
        return False
    if isinstance(key, ast.Name) and "." in value.name:
        return False
    return not (index.kind == "scalar" and index.obj.__class__ is str)


#: Methods that a mapping has, and an array has not.
_OF_MAPPINGS = frozenset({"items", "keys", "values", "get", "setdefault", "update", "pop"})


def _is_mapping(base: ast.expr, key: ast.expr, function: ast.AST) -> bool:
    """Say whether a function looks a string up in what it writes into, or asks it for its keys.

    Or whether it writes under what iteration over it gives, or over the items of another mapping.
    """
    if not isinstance(base, ast.Name):
        return False
    named = key.id if isinstance(key, ast.Name) else None
    for node in walk(function):
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Name(id=whole)) if whole == base.id:
                if name == named:
                    return True
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=name), _]),
                iter=ast.Call(func=ast.Attribute(attr="items")),
            ) if name == named:
                return True
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str())) if (
                name == base.id
            ):
                return True
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == base.id:
                if attr in _OF_MAPPINGS:
                    return True
            case _:
                pass
    return False
