"""Functions that somebody else calls: handed to a library, or to the host."""

from __future__ import annotations

import ast

from ..scopes import Frame
from ..transforms import ARRAY_PACKAGES
from ..values import OUTSIDE, Function, Value, join
from .machine import Engine
from .ownership import use
from .parts import take_attribute

#: Packages that call no object they are given, besides what is known of them: to array packages it
#: is a tree. "" is what has no name.
_INSPECTING = frozenset({"", *ARRAY_PACKAGES, "builtins", "copy", "dataclasses", "inspect", "math",
                         "numpy", "operator", "typing"})  # fmt: skip
#: Of these, what calls objects that are no functions.
_CALLING = frozenset(
    f"numpy.{k}" for k in ("vectorize", "frompyfunc", "apply_along_axis", "apply_over_axes",
                           "fromfunction", "piecewise")
)  # fmt: skip

#: Functions that look at the function they are given, and do not call it.
LOOKING = frozenset(
    f"inspect.{k}" for k in ("signature", "getfullargspec", "isfunction", "ismethod", "getsource",
                             "getdoc", "getmodule", "iscoroutinefunction", "isgeneratorfunction")
)  # fmt: skip


def calls_objects(ref: str) -> bool:
    """Say whether a function may call objects that it is given, and that are no functions."""
    return ref.partition(".")[0] not in _INSPECTING or ref in _CALLING


def body_of(engine: Engine, callee: Value) -> tuple[Function, Value | None] | None:
    """Return what a call of an object enters, and its receiver."""
    if callee.function is not None and callee.kind != "class":
        return callee.function, callee.bound
    if callee.kind == "instance" and callee.level != OUTSIDE and callee.bound is not None:
        fields = callee.bound.fields or {}
        method = fields.get("__call__")
        if callee.bound.level == OUTSIDE:
            method = engine.resolver.attribute(callee.bound, "__call__")
        return body_of(engine, method.but(bound=callee)) if method is not None else None
    return engine.resolver.follow(callee) if callee.level == OUTSIDE else None


def is_callable(value: Value) -> bool:
    """Say whether an argument is a function of the user's."""
    return any(v.function is not None or v.kind in ("partial", "function") or
               (v.kind == "frozen" and v.fields is not None and v.level == OUTSIDE and
                any(f.kind == "function" for f in v.fields.values())) or
               (v.kind == "member" and v.bound is not None and v.bound.level == OUTSIDE)
               for v in value.each())  # fmt: skip


def is_called(engine: Engine, value: Value) -> bool:
    """Say whether an argument can be called, and what that runs is the user's: objects, too."""
    return is_callable(value) or any(
        one.kind in ("instance", "frozen") and body_of(engine, one) is not None
        for one in value.each()
    )


def excuse(engine: Engine, values: list[Value]) -> None:
    """Leave functions that run outside of the trace unchecked, inner ones among them."""
    for value in values:
        for one in value.each():
            if one.function is not None:
                engine.excused.add(id(one.function.node))
            elif one.kind == "partial" and one.bound is not None:
                excuse(engine, [one.bound])


#: Of what is of no other kind, nobody calls anything: most of all arguments.
_CALL_NOTHING = frozenset({"", "array", "scalar"})


def callbacks(
    engine: Engine, values: list[Value], frame: Frame, node: ast.AST, *, objects: bool = False
) -> None:  # fmt: skip
    """Call the functions among the arguments, as whoever they are passed to will.

    And `objects`, which array packages do not: to them they are trees. What else is handed over,
    a function may be given: ``json.dumps(thing, default=as_text)``.
    """
    given: list[Value] = []
    if objects and (handed := join(v for v in values if _is_instance(v))) is not None:
        given = [handed] * 3
    for value in values:
        if value.kind in _CALL_NOTHING and value.function is None and not value.others:
            continue
        if is_callable(value) or (objects and is_called(engine, value)):
            # And what it gives, whoever calls it reads.
            use(engine, call_back(engine, value, given, frame, node), frame, node)
        for one in value.each():
            kinds = ("frozen",) if one.level == OUTSIDE else ("list", "tuple")
            if one.kind in kinds and one.fields and not one.argument:
                callbacks(engine, list(one.fields.values()), frame, node)


def _is_instance(value: Value) -> bool:
    return any(one.kind == "instance" for one in value.each())


def look_into(engine: Engine, values: list[Value], frame: Frame, node: ast.AST) -> None:
    """Guard what functions are, as calls of them would, and find nothing: nobody calls them."""
    for value in values:  # which tells ``inspect.signature`` another than the function's own
        take_attribute(engine, value, "__signature__", frame, node)
        for one in value.each():
            target = engine.resolver.follow(one) if one.level == OUTSIDE else None
            for default in target[0].defaults.values() if target is not None else ():
                use(engine, default, frame, node)
                callbacks(engine, [default], frame, node)
    before = dict(engine.found), dict(engine.memo), dict(engine.contexts), dict(engine.entered)
    callbacks(engine, values, frame, node)
    engine.found, engine.memo, engine.contexts, engine.entered = before


def call_back(
    engine: Engine, value: Value, given: list[Value], frame: Frame, node: ast.AST
) -> Value:
    """Call a function that somebody else calls, with arguments only partly known."""
    found: list[Value] = []
    for one in value.each():
        if one.kind == "property" or (one.kind == "class" and not given):
            continue
        args = given
        if one.kind == "member":
            # ``map(log.append, xs)``: called for its effect, whatever becomes of the result.
            args = given[:1] or [engine.unknown(frame.level)]
        elif one.function is not None and not given:
            names = [*one.function.node.args.posonlyargs, *one.function.node.args.args]
            args = [engine.unknown(frame.level) for _ in names[1 if one.bound else 0 :]]
        found.append(engine.call(one, args, {}, frame, node, used=one.kind != "member"))
    return join(found) or engine.unknown(frame.level)
