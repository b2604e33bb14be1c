"""Methods of objects that have no body to enter: of containers, arrays, iterators, loggers."""

from __future__ import annotations

import ast

from .. import rules
from ..known import (
    ARRAY_MUTATORS,
    BUFFER_MUTATORS,
    MEMORY_VIEWS,
    MUTATORS,
    QUIET_ON_UNKNOWN,
    VIEWS,
)
from ..scopes import Frame
from ..values import CONTAINERS, DRAWN, OUTSIDE, Fields, Value, join, numbered
from .callbacks import call_back, callbacks
from .entry import trace
from .machine import Engine
from .ownership import fill, hold, mutate, use, use_all, use_whole
from .parts import take_element
from .protocols import COMPARED, ask, draw, encodes, finish, manage_all, match_items, write
from .stores import put, shift

_LOGGERS = frozenset(
    {"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "fatal"}
)
_IMMUTABLE = frozenset({"scalar", "frozen", "tuple", "array", "module", "class", "function"})
#: Methods that put what they are given into a text.
_WRITING = frozenset({"format", "format_map", "substitute", "safe_substitute"})
#: Methods of paths, whatever gives the path.
_FILES = frozenset({"read_text", "read_bytes", "write_text", "write_bytes"})
#: Methods by which a generator goes on, and may come to its end.
_ENDS = frozenset({"__next__", "send", "throw", "close"})
#: Methods that look for an item.
_MATCHING = frozenset({"index", "count", "remove"})
#: Methods that change a container, and put nothing that they are given into it.
_KEEPS_NONE = frozenset({"sort", "pop", "remove", "discard", "rotate"})
#: Methods that draw all that their argument has.
_TAKES_ALL = frozenset({"extend", "extendleft", "update"})


def call_method(
    engine: Engine, member: Value, args: list[Value], keywords: dict[str, Value],
    frame: Frame, node: ast.AST, used: bool,
) -> Value:  # fmt: skip
    """Call a method of an object that has no body to enter."""
    base, name = member.bound, member.name.rpartition(".")[2]
    assert base is not None
    if base.kind == "logger" and name in _LOGGERS:
        engine.report(rules.Logging, frame, node, member.name)
        return engine.unknown(frame.level)
    if (base.kind in DRAWN and base.level == OUTSIDE) or (base.argument and base.kind == "rng"):
        rule = {"rng": rules.OuterGenerator, "file": rules.FileAccess}.get(
            base.kind, rules.OuterIterator
        )
        engine.report(rule, frame, node, base.name)
        return engine.unknown(frame.level)
    if name == "enter_context" and args:
        return manage_all(engine, args[0], frame, node)
    if name == "cache_clear" and base.keeps and base.level == OUTSIDE:
        mutate(engine, base, frame, node, name)
    if name in _ENDS:
        _resume(engine, base, name, args, frame, node)
    if base.kind == "traced" and name.startswith(("def", "custom")):
        for value in args:
            trace(engine, value, name, frame, node)
        return engine.unknown(frame.level)
    _of_text(engine, base, name, [*args, *keywords.values()], frame, node)
    if base.kind == "ndarray":
        if name in ARRAY_MUTATORS:
            mutate(engine, base, frame, node, name)
        else:
            use(engine, base, frame, node)
    elif id(node) not in engine.threaded and changes(base, name, args, keywords, used):
        mutate(engine, base, frame, node, name, args)
        for value in args if name in _TAKES_ALL else ():
            if any(v.kind in DRAWN for v in value.each()):
                draw(engine, value, frame, node)
    else:
        use(engine, base, frame, node)
    fill(engine, keywords, frame, node)
    if name == "join":
        for value in args:
            draw(engine, value, frame, node)
    elif name == "shuffle" and base.kind == "rng":
        for value in (*args, *(keywords[k] for k in ("x",) if k in keywords)):
            mutate(engine, value, frame, node, name)
    elif name in _FILES and base.level != OUTSIDE and not base.fields:
        engine.report(rules.FileAccess, frame, node, member.name)
    if base.fields is not None and base.level != OUTSIDE and name in MUTATORS:
        _fill(engine, base, name, [*args, *keywords.values()], frame, node)
    else:
        use_all(engine, [*args, *keywords.values()], frame, node)
    _run_handed(engine, base, name, args, keywords, frame, node)
    return result_of_method(engine, base, name, args, frame)


def _run_handed(
    engine: Engine, base: Value, name: str, args: list[Value], keywords: dict[str, Value],
    frame: Frame, node: ast.AST,
) -> None:  # fmt: skip
    """Run what a method calls of what it is given, or holds."""
    if name == "sort" and base.kind in CONTAINERS:  # it calls no item, but compares them
        sorting = take_element(engine, base, frame)
        if "key" in keywords:
            sorting = call_back(engine, keywords["key"], [sorting], frame, node)
            use(engine, sorting, frame, node)
        ask(engine, sorting, COMPARED, frame, node)
    elif name in _MATCHING and base.level != OUTSIDE and args:
        match_items(engine, base, args[0], frame, node)
    elif base.kind not in CONTAINERS or keywords:
        callbacks(engine, [*args, *keywords.values()], frame, node)


def _fill(
    engine: Engine, base: Value, name: str, given: list[Value], frame: Frame, node: ast.AST
) -> None:  # fmt: skip
    """Put what a method is given into a container that the trace made."""
    if name not in ("append", "extend"):
        shift(base)
    for value in given:
        inner = take_element(engine, value, frame) if name in ("extend", "update") else value
        hold(engine, value, frame, node)
        if name not in _KEEPS_NONE:
            put(engine, base, None, inner)


def _resume(
    engine: Engine, base: Value, name: str, args: list[Value], frame: Frame, node: ast.AST
) -> None:  # fmt: skip
    """Let a generator go on, which may come to its end."""
    if name in ("__next__", "send") and (base.kind in DRAWN or base.argument):
        draw(engine, base, frame, node, explicit=True)
    for value in args:  # what ``yield`` gives is not followed
        use_whole(engine, value, frame, node)
    finish(engine, base, frame, node)


def _of_text(
    engine: Engine, base: Value, name: str, given: list[Value], frame: Frame, node: ast.AST
) -> None:
    """Put values into a text, or a text into bytes."""
    if name in ("encode", "decode"):
        encodes(engine, node, 1)
    if name in _WRITING and not base.kind:
        write(engine, given, frame, node)
        for value in given if name == "format_map" else ():
            write(engine, [take_element(engine, value, frame)], frame, node)


def changes(
    base: Value,
    name: str,
    args: list[Value],
    keywords: dict[str, Value],
    used: bool,
) -> bool:
    """Say whether a method changes its receiver: by its kind, or else by how it is called."""
    if base.kind == "container" and name in BUFFER_MUTATORS:
        return True
    if name not in MUTATORS or base.kind in _IMMUTABLE:
        return False
    if base.kind in CONTAINERS:
        return name not in ("read", "readline") or base.level == OUTSIDE
    if base.kind in DRAWN or name in QUIET_ON_UNKNOWN or base.kind in ("super", "traced"):
        return False
    fewest, most, silent = MUTATORS[name]
    if not fewest <= len(args) <= most or (used and silent):
        return False
    return name == "update" or not keywords


def result_of_method(
    engine: Engine, base: Value, name: str, args: list[Value], frame: Frame
) -> Value:
    """Return what a container's method gives, or an array's."""
    views = {"ndarray": VIEWS, "container": MEMORY_VIEWS}.get(base.kind, ())
    if name in views and base.level == OUTSIDE:
        return base
    if name in ("get", "pop", "setdefault", "popleft"):
        part = take_element(engine, base, frame)
        return join([part, *args[1:2]]) or part
    if name in ("values", "elements"):
        return Value("frozen", frame.level, fields={None: take_element(engine, base, frame)})
    if name in ("items", "popitem"):
        key, part = engine.unknown(frame.level), take_element(engine, base, frame)
        pair = Value("tuple", frame.level, fields=numbered([key, part]))
        return pair if name == "popitem" else Value("frozen", frame.level, fields={None: pair})
    if name == "copy" and (base.kind in CONTAINERS or base.kind == "ndarray" or base.argument):
        fields: Fields = {None: take_element(engine, base, frame)}
        return Value(base.kind, frame.level, fields=fields, bound=base)
    return engine.unknown(frame.level)
