"""Functions of the standard library that move objects around, or look into them by name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from . import protocols, rules
from .literals import is_named_text, is_text, text_of
from .machine import Machine
from .scopes import Frame
from .values import CONTAINERS, OUTSIDE, Value


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function known by name."""

    ref: str
    args: list[Value]
    keywords: dict[str, Value]
    frame: Frame
    node: ast.AST

    @property
    def level(self) -> int:
        """The trace that the call is part of."""
        return self.frame.level


Handler = Callable[[Machine, Call], Value | None]


def numbered(values: list[Value]) -> dict[Any, Value]:
    """Return values as the fields of a tuple."""
    return {("item", i): v for i, v in enumerate(values)}


def _type(engine: Machine, call: Call) -> Value | None:
    if len(call.args) != 1:
        return None
    return engine.attribute(call.args[0], "__class__", call.frame, call.node)


def _attrgetter(engine: Machine, call: Call) -> Value | None:
    path = text_of(call.node)
    return Value("getter", call.level, name=path) if path else None


def _copy(engine: Machine, call: Call) -> Value | None:
    if not call.args:
        return None
    one = call.args[0]
    engine.use(one, call.frame, call.node)
    deep = call.ref == "copy.deepcopy"
    inner = engine.unknown(call.level) if deep else engine.element(one, call.frame)
    known = one.kind in CONTAINERS or one.kind == "ndarray"
    return Value(one.kind if known else "", call.level, fields={None: inner})


def _next(engine: Machine, call: Call) -> Value | None:
    if not call.args:
        return None
    engine.draw(call.args[0], call.frame, call.node, explicit=True)
    return engine.element(call.args[0], call.frame)


def _globals(engine: Machine, call: Call) -> Value:
    return Value("dict", OUTSIDE, name="globals()", origin=(call.frame, call.node))


def _vars(engine: Machine, call: Call) -> Value:
    if not call.args:
        return Value("dict", call.level, fields={})
    return engine.attribute(call.args[0], "__dict__", call.frame, call.node)


def _getattr(engine: Machine, call: Call) -> Value | None:
    if len(call.args) < 2:
        return None
    frame, node, (base, key, *_) = call.frame, call.node, call.args
    written = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    name = written.value if isinstance(written, ast.Constant) else key.obj
    if type(name) is str:  # written there, or held by a name that is guarded
        engine.use(key, frame, node)
        return engine.attribute(base, name, frame, node)
    for one in base.each():
        if one.level == OUTSIDE and not one.argument and engine.resolver.is_open(one):
            engine.report(rules.MutableAttribute, frame, node, f"{one.name}.<computed>")
    engine.use_all(call.args, frame, node)
    return engine.element(base, frame) if base.argument else engine.unknown(call.level)


def _hash(engine: Machine, call: Call) -> Value | None:
    if not call.args:
        return None
    engine.use(call.args[0], call.frame, call.node)
    protocols.asked_by(engine, call.ref, call.args, call.frame, call.node)
    if is_text(call.node, call.args[0]) or is_named_text(call.node, call.frame):
        engine.report(rules.Identity, call.frame, call.node, "hash")
    return engine.unknown(call.level)


def _super(engine: Machine, call: Call) -> Value:
    return protocols.super_of(engine, call.args, call.frame)


def _partial(engine: Machine, call: Call) -> Value | None:
    if not call.args:
        return None
    first, *rest = call.args
    fields: dict[Any, Value] = {**numbered(rest), **call.keywords}
    return Value("partial", call.level, name=first.name, bound=first, fields=fields)


def _wraps(engine: Machine, call: Call) -> Value:
    return Value("wraps", call.level)


def _cache(engine: Machine, call: Call) -> Value:
    return call.args[0] if call.args and call.args[0].function else Value("wraps", call.level)


#: By qualified name; a handler that returns None leaves the call to what holds for all others.
HANDLERS: Final[dict[str, Handler]] = {
    "builtins.type": _type,
    "operator.attrgetter": _attrgetter,
    "copy.copy": _copy,
    "copy.deepcopy": _copy,
    "builtins.next": _next,
    "builtins.globals": _globals,
    "builtins.vars": _vars,
    "builtins.locals": _vars,
    "builtins.getattr": _getattr,
    "builtins.hash": _hash,
    "builtins.super": _super,
    "functools.partial": _partial,
    "functools.wraps": _wraps,
    "functools.update_wrapper": _wraps,
    "functools.lru_cache": _cache,
    "functools.cache": _cache,
}
