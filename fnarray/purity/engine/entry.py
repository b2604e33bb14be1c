"""Functions of the user's code are entered, with the values of their arguments."""

from __future__ import annotations

import ast
from typing import Any

from ..nodes import walk
from ..scopes import Frame, Signature, parameters
from ..values import CONTAINERS, OUTSIDE, Fields, Function, Value, join, numbered
from .callbacks import body_of, call_back
from .machine import Engine
from .ownership import escape, hold, use
from .parts import take_attribute

#: Calls entered in one analysis, and how deep: far above any real function.
_MOST_CALLS = 1500
_DEEPEST = 40
#: What holds a value that is written out where a function is called, and what an argument that may
#: be left out. One function is entered for so many combinations of the former.
LITERAL, OPTIONAL = "literal", "optional"
_MOST_LITERAL = 2
_ANNOTATED = {
    "list": "list", "List": "list", "dict": "dict", "Dict": "dict", "set": "set", "Set": "set",
    "MutableMapping": "dict", "MutableSequence": "list", "deque": "deque",
    "Iterator": "iterator", "Generator": "", "RandomState": "rng", "TextIO": "file", "IO": "file",
    "Ref": "ref", "AbstractRef": "ref",
}  # fmt: skip


def define(engine: Engine, node: Any, frame: Frame) -> Value:
    """Return the value of an inner function, its defaults evaluated now."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    pairs = list(zip(reversed(positional), reversed(args.defaults), strict=False))
    pairs += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d]
    defaults: dict[str, Value] = {}
    for arg, default in pairs:
        value = engine.expr(default, frame)
        if value.kind == "scalar":
            use(engine, value, frame, default)
        defaults[arg.arg] = value
    outer = frame.function
    function = Function(
        node, outer.file, outer.module, frame=frame, defaults=defaults, lines=outer.lines,
        above=outer.above,
    )  # fmt: skip
    value = Value("function", frame.level, name=function.name, function=function, fields={})
    frame.nested.append(value)
    return value


def enter(
    engine: Engine,
    function: Function,
    bound: dict[str, Value],
    level: int,
    path: tuple[str, ...],
) -> Value:
    """Run a function's body with some parameters bound; the others are the tracer's."""
    node = function.node
    literal = engine.resolver.presumes and LITERAL in [v.holder for v in bound.values()]
    if literal:
        times = engine.contexts.get((id(node), -level), 0)
        asked = _asked(node) if times < _MOST_LITERAL else frozenset[str]()
        for name in [k for k, v in bound.items() if v.holder == LITERAL and k not in asked]:
            bound[name] = _unwritten(engine, function, name, bound[name], level)
        literal = any(v.holder == LITERAL for v in bound.values())
    key = (id(node), id(function.frame), level, *bound, *[_mark(v) for v in bound.values()])
    if key in engine.memo:
        return engine.memo[key] or engine.unknown(level)
    if engine.depth > _DEEPEST or len(engine.memo) > _MOST_CALLS:
        return engine.unknown(level)
    within = engine.within.get(id(node), 0)
    if within >= engine.resolver.recursion:
        return engine.unknown(level)
    outer = any(v.level == OUTSIDE or v.argument for v in bound.values())
    # Those that a literal sends one way are counted apart: they have not seen the other.
    counted = id(node), -level if literal else level
    times = engine.contexts.get(counted, 0) + 1
    if not literal and times > engine.resolver.contexts[outer]:
        return engine.unknown(level)
    engine.contexts[counted] = times
    engine.memo[key] = None
    engine.entered[id(node)] = function
    frame = Frame(function, level, path)
    for name in Signature.of(node).parameters:
        frame.env[name] = bound.get(name) or argument_of(engine, function, name, level)
    engine.depth += 1
    engine.within[id(node)] = within + 1
    try:
        if isinstance(node, ast.Lambda):
            result: Value | None = engine.expr(node.body, frame)
            escape(engine, result, frame, node.body)
        else:
            engine.block(node.body, frame)
            result = join(frame.returns)
    finally:
        engine.depth -= 1
        engine.within[id(node)] = within
    for inner in frame.nested:
        enter_unseen(engine, inner, frame)
    if frame.facts.yields or frame.facts.awaits:
        items = join(frame.yields)
        result = Value("generator", level, fields={None: items} if items else {}, bound=result)
    engine.memo[key] = result
    return result or engine.unknown(level)


def _unwritten(engine: Engine, function: Function, name: str, value: Value, level: int) -> Value:
    """Return what a written value is to who does not ask for it: the default, or anything."""
    default = function.defaults.get(name)
    if default is None or default.obj is not value.obj:
        return engine.unknown(level)
    return _called(default, name)


def _called(default: Value, name: str) -> Value:
    """Return a default by the name it was read by, or, where it had none, the parameter's."""
    return default if default.origin or default.ref else default.but(name=name)


def _asked(node: Any) -> frozenset[str]:
    """Return the names of which a function asks whether they are None, true, or some text."""
    known: frozenset[str] | None = getattr(node, "_asked", None)
    if known is None:
        tests = (n.test for n in walk(node) if isinstance(n, (ast.If, ast.IfExp)))
        parts = (part for test in tests for part in walk(test))
        known = node._asked = frozenset(n.id for n in parts if isinstance(n, ast.Name))
    return known


def enter_unseen(engine: Engine, value: Value, frame: Frame) -> None:
    """Check an inner function that nobody was seen to call."""
    function = value.function
    if function is None:
        return
    if id(function.node) in engine.entered or id(function.node) in engine.excused:
        return
    names = parameters(function.node)
    bound = {name: function.defaults.get(name) or engine.unknown(frame.level) for name in names}
    enter(engine, function, bound, frame.level, (*frame.path, function.name))


def enter_named(engine: Engine) -> None:
    """Call the functions from outside that were named, and that nobody was seen to call.

    A container, a library, an exception may have them, or an object of which nothing is known:
    whatever way one went, its reads are those of the trace.
    """
    while engine.named:
        _, named = engine.named.popitem()
        for value, frame, node in named.values():
            for one in value.each():
                target = body_of(engine, one)
                seen = None if target is None else id(target[0].node)
                if seen is not None and seen not in engine.entered and seen not in engine.excused:
                    call_back(engine, one.but(kind="function"), [], frame, node)


def argument_of(engine: Engine, function: Function, name: str, level: int) -> Value:
    """Return what stands for an argument of a traced function."""
    args = function.node.args
    if args.vararg is not None and args.vararg.arg == name:
        item = Value("", level, argument=True, name=name)
        return Value("tuple", level, name=name, fields={None: item})
    if args.kwarg is not None and args.kwarg.arg == name:
        item = Value("", level, argument=True, name=name)
        return Value("dict", level, name=name, fields={None: item})
    value = Value(kind_annotated(function, name), level, argument=True, name=name)
    default = function.defaults.get(name)
    if default is not None and default.argument:
        return default
    if default is None:
        return value
    if default.level != OUTSIDE or default.kind in ("scalar", ""):
        return value.but(holder=OPTIONAL)
    if default.kind in ("function", "class", "module", "partial", "frozen"):
        return join([default, value]) or value
    # The default itself is captured: it is what a call without this argument reads.
    return default.but(name=name, holder="default", constant=False, others=(value,))


def kind_annotated(function: Function, name: str) -> str:
    """Return the kind that a parameter's annotation promises, where it matters here."""
    args = function.node.args
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        if arg.arg == name and arg.annotation is not None:
            note = arg.annotation
            note = note.value if isinstance(note, ast.Subscript) else note
            last = note.attr if isinstance(note, ast.Attribute) else getattr(note, "id", "")
            return _ANNOTATED.get(last, "")
    return ""


def bind_arguments(
    engine: Engine, function: Function, receiver: Value | None, args: list[Value] | None,
    keywords: dict[str, Value], level: int,
) -> dict[str, Value]:  # fmt: skip
    """Return the values of parameters; those that a tracer supplies are left out."""
    spec = function.node.args
    names, named, *_ = Signature.of(function.node)
    fixed = keywords.get("")
    given = [receiver] if receiver is not None else []
    given += list(fixed.fields.values()) if fixed is not None and fixed.fields else []
    given += args or []
    bound = dict(zip(names, given, strict=False))
    bound.update({k: v for k, v in keywords.items() if k in named})
    if args is None:
        return bound
    rest = given[len(names) :]
    if spec.vararg is not None:
        bound[spec.vararg.arg] = Value("tuple", level, fields=numbered(rest))
    if spec.kwarg is not None:
        extra = {("item", k): v for k, v in keywords.items() if k not in bound}
        bound[spec.kwarg.arg] = Value("dict", level, fields=extra)
    spread = keywords.get("**")  # what stars give, whichever parameter gets it
    for name in named:
        if name not in bound:
            default = function.defaults.get(name)
            if spread is not None:
                bound[name] = join([spread, default]) or spread
            elif default is None:
                bound[name] = engine.unknown(level)
            elif engine.resolver.presumes and is_written_out(default):
                bound[name] = default.but(constant=True, holder=LITERAL)
            else:  # what was named where the function was defined keeps that name and place
                bound[name] = _called(default, name)
    return bound


def construct(
    engine: Engine, maker: Value, init: Value | None, args: list[Value] | None,
    keywords: dict[str, Value], frame: Frame, node: ast.AST,
) -> Value:  # fmt: skip
    """Make an instance, and run its ``__init__``."""
    fields: Fields = {}
    made = Value("instance", frame.level, bound=maker, fields=fields)
    target = body_of(engine, init) if init is not None and init.kind == "function" else None
    if target is not None:
        bound = bind_arguments(engine, target[0], made, args or [], keywords, frame.level)
        enter(engine, target[0], bound, frame.level, (*frame.path, maker.name))
    else:
        for key, value in (*enumerate(args or ()), *keywords.items()):
            hold(engine, value, frame, node)
            fields[key if isinstance(key, str) else None] = value
    for (use_of, place), one in (maker.fields or {}).items() if maker.level == OUTSIDE else ():
        if use_of == "default" and place[0] >= len(args or ()) and place[1] not in keywords:
            fields[place[1]] = fields["item", place[0]] = one
    _end(engine, made, maker, frame, node)
    return made


def _end(engine: Engine, made: Value, maker: Value, frame: Frame, node: ast.AST) -> None:
    """Run the ``__del__`` of an object's class: what the trace makes ends with it, or before."""
    last = take_attribute(engine, maker, "__del__", frame, node)
    for one in last.each():
        target = body_of(engine, one)
        if target is not None:
            bound = bind_arguments(engine, target[0], made, [], {}, frame.level)
            enter(engine, target[0], bound, frame.level, (*frame.path, f"{maker.name}.__del__"))


def trace(
    engine: Engine, value: Value, label: str, frame: Frame, node: ast.AST,
    carried: tuple[str, int] | None = None,
) -> None:  # fmt: skip
    """Enter a callback that a transform traces on its own, with arguments of the tracer's.

    What a loop carries is of the kind that it starts from, if that is a container.
    """
    for one in value.each():
        if one.kind in ("list", "tuple") and one.fields:
            for part in one.fields.values():
                trace(engine, part, label, frame, node)
        elif one.kind == "tuple" and (parts := engine.resolver.items(one)) is not None:
            for part in parts:
                trace(engine, part, label, frame, node)
        else:
            level, given = frame.level + 1, dict[str, Value]()
            if carried is not None and carried[0] in CONTAINERS and one.function is not None:
                names = parameters(one.function.node)[: carried[1] + 1]
                kinds = [""] * carried[1] + [carried[0]]
                pairs = zip(names, kinds, strict=False)
                given[""] = Value("tuple", fields=numbered(
                    Value(kind, level, argument=True, name=name) for name, kind in pairs
                ))  # fmt: skip
            engine.call(one, None, given, frame, node, level=level, label=label)


def _mark(value: Value) -> tuple[Any, ...]:
    """Return what distinguishes a value for the memory of calls."""
    if value.level != OUTSIDE and not (
        value.argument or value.function or value.fields or value.bound
    ):
        return value.kind, value.level
    marks = (
        value.kind, value.level, value.argument, value.name, value.ref, id(value.obj),
        id(value.function), id(value.fields), id(value.bound),
    )  # fmt: skip
    return marks if not value.others else (*marks, *map(_mark, value.others))


def is_written_out(value: Value) -> bool:
    """Say whether a value is None, a truth or a text."""
    known = value.obj is None or value.obj.__class__ in (bool, str)
    return value.kind == "scalar" and known and not value.others
