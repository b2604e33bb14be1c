"""What objects are made of: attributes, items, what ``super()`` finds."""

from __future__ import annotations

import ast
from typing import Any

from .. import rules
from ..known import EFFECT_OBJECTS, effect_of
from ..nodes import walk
from ..rules import RULES, LintRule
from ..scopes import Frame, parameters
from ..values import (
    ABSENT,
    CHANGING,
    CONTAINERS,
    DRAWN,
    OUTSIDE,
    PARTIAL_METHOD,
    Fields,
    Function,
    Value,
    join,
)
from .machine import Engine
from .ownership import use

#: Objects whose attributes are methods, or as changeable as they are.
_OPAQUE = frozenset({"ndarray", "element", "logger"})
#: What a method may be given as its object.
_RECEIVERS = frozenset({"instance", "frozen", "class"})
#: How an array may be used, which anybody may change, and its bytes do not tell.
_STATE = frozenset({"flags", "strides"})
#: Attributes of methods, and of partials, that show what these are made of.
_OF_CALLS = frozenset({"__self__", "__func__", "func", "args", "keywords"})
#: Attributes by which a function shows what it holds.
_HELD = frozenset({"__closure__", "__defaults__", "__kwdefaults__", "__annotations__"})
#: Attributes by which an exception leads to others.
_CHAINED = frozenset({"__cause__", "__context__", "exceptions"})
#: Attributes of arrays that are plain data, never the container they were taken from.
_PLAIN = frozenset({"shape", "dtype", "ndim", "size", "T", "real", "imag", "mT", "itemsize"})


#: Attributes by which a frame of the stack shows its variables.
_FRAME = frozenset({"f_globals", "f_locals", "f_builtins"})


#: What may be read wherever it is: nobody is told where it was.
_READ_FREELY = frozenset({"module", "function", "class"})


def from_outside(engine: Engine, value: Value, frame: Frame, node: ast.AST) -> Value:
    """Note where an object from outside is named, and whether to name it is an effect."""
    engine.name(value, frame, node)
    for one in value.each() if value.others else (value,):
        if one.ref and (code := effect_of(one.ref)) in EFFECT_OBJECTS:
            engine.report(RULES[code], frame, node, one.ref)
            # Said once: what is done with it afterwards is the same effect.
            return engine.unknown(frame.level)
    if value.others or (value.ref and value.kind in _READ_FREELY):
        return value
    return value.read_at((frame, node))


def take_item(engine: Engine, value: Value, frame: Frame, index: Any = None) -> Value:
    """Return the element at a constant index, or any element."""
    if not value.others:
        return _item_of_one(engine, value, frame, index) or value
    return join([_item_of_one(engine, v, frame, index) for v in value.each()]) or value


def _nested(value: Value) -> Value:
    """Return what is taken from a container of containers and leaves: one of the containers.

    Who builds nested dictionaries writes into the inner ones, and leaves the leaves alone.
    """
    made = [v for v in value.each() if v.level != OUTSIDE and v.kind in CONTAINERS]
    if not made or not value.others:
        return value
    return join([v for v in value.each() if not v.argument or v.kind]) or value


def take_slice(engine: Engine, value: Value, frame: Frame, node: ast.AST) -> Value:
    """Return ``value[a:b]``: a new list or text, but a view of an array."""
    made: list[Value | None] = []
    for one in value.each():
        found = engine.resolver.is_custom(one) if one.level == OUTSIDE else one.kind == "instance"
        if found or one.kind in ("ndarray", "element", "array", "member"):
            made.append(_item_of_one(engine, one, frame, None))
            continue
        if one.kind in CONTAINERS:
            use(engine, one, frame, node)
        kind = one.kind if one.kind in ("list", "tuple", "deque", "bytearray") else ""
        fields: Fields = {None: _item_of_one(engine, one, frame, None) or engine.unknown(one.level)}
        made.append(Value(kind, frame.level, name=one.name, bound=one, fields=fields))
    return join(made) or engine.unknown(frame.level)


def take_element(engine: Engine, value: Value, frame: Frame) -> Value:
    """Return what iteration over an object gives."""
    return take_item(engine, value, frame)


def _item_of_one(engine: Engine, one: Value, frame: Frame, index: Any) -> Value | None:
    if one.kind == "ref":
        return one
    if one.fields is not None and one.level != OUTSIDE and not one.argument:
        if index is not None and ("item", index) in one.fields:
            exact, rest = one.fields["item", index], one.fields.get(None)
            # By a computed key, too, something may have come to stand there.
            return exact if rest is None or one.kind == "tuple" else join([exact, rest])
        if index is not None and None in one.fields:
            return _nested(one.fields[None])
        return _nested(join(one.fields.values()) or engine.unknown(one.level))
    if one.argument:
        return Value("", one.level, argument=True, name=one.name)
    if one.level != OUTSIDE:
        return engine.unknown(one.level)
    if one.kind in ("tuple", "frozen", "scalar") or one.guarded:
        known = engine.resolver.item(one, index) if index is not None else None
        parts = [known] if known is not None else list(engine.resolver.items(one) or ())
        if isinstance(index, int) and known is None and -len(parts) <= index < len(parts):
            parts = [parts[index]]
        if one.kind == "scalar" or not parts:
            return one
        return join(p.but(name=one.name, origin=one.origin, holder=p.holder or one.holder,
                          home=p.home or one.home, constant=p.constant or one.constant,
                          guarded=p.guarded or one.guarded)
                    for p in parts)  # fmt: skip
    if one.kind == "element":
        return one
    if one.kind == "class":  # of an enumeration: its members
        known = engine.resolver.item(one, index)
        return known or join(engine.resolver.items(one) or ()) or engine.unknown(frame.level)
    if one.kind in ("module", "class", "function", ""):
        return engine.unknown(frame.level)
    if one.kind in ("iterator", "generator", "file"):
        return engine.unknown(frame.level)
    known = engine.resolver.item(one, index) if index is not None else None
    if known is not None and (known.kind in CHANGING):
        return known.but(name=one.name, origin=one.origin, holder="element")
    element = Value("element", OUTSIDE, name=one.name, bound=one, origin=one.origin)
    # Read it may be where nothing is kept: what it does when called is an effect even so.
    return join([element, *engine.resolver.callables(one, index)])


def take_attribute(engine: Engine, base: Value, attr: str, frame: Frame, node: ast.AST) -> Value:
    """Return an attribute of an object; properties run."""
    if not base.others:
        return _attribute_of_one(engine, base, attr, frame, node)
    found = join([_attribute_of_one(engine, v, attr, frame, node) for v in base.each()])
    return found or engine.unknown(frame.level)


def _attribute_of_one(engine: Engine, one: Value, attr: str, frame: Frame, node: ast.AST) -> Value:
    name = f"{one.name}.{attr}" if one.name else attr
    if one.kind == "module" and attr[:2] != "__":  # the most of all
        return _found(engine, one, attr, name, frame, node)
    if one.kind == "ref":
        return one
    if attr == "__call__" and one.kind in ("function", "partial"):
        return one
    if attr == "cache_clear" and one.keeps:
        return Value("member", one.level, name=name, bound=one, origin=one.origin)
    if one.kind == "super":
        found = super_attribute(engine, one, attr, frame, node)
        if found is not None:
            return found
    if attr == "__class__" and one.kind == "instance" and one.bound is not None:
        return one.bound
    if attr in _OF_CALLS and one.bound is not None and one.kind in ("function", "partial"):
        return _of_call(one, attr, frame)
    if one.level != OUTSIDE or one.argument:
        return _local_attribute(engine, one, attr, name, frame, node)
    if attr == "__dict__":
        return Value("dict", OUTSIDE, name=name, holder="attribute", origin=(frame, node))
    if one.kind == "ndarray" and attr in _STATE:
        engine.report(rules.MutableAttribute, frame, node, name, value=one)
    if (
        one.kind in CONTAINERS or one.kind in DRAWN or one.kind in _OPAQUE
    ) and not engine.resolver.is_own(one, attr):
        return Value("member", OUTSIDE, name=name, bound=one, origin=one.origin)
    return _found(engine, one, attr, name, frame, node)


def _found(engine: Engine, one: Value, attr: str, name: str, frame: Frame, node: ast.AST) -> Value:
    """Return what an object from outside has by a name; properties and descriptors run."""
    value = engine.resolver.attribute(one, attr)
    if value is None:
        if attr == "__origin__" and one.kind == "class":  # of ``Class[int]``
            return one
        if one.ref and one.kind in ("module", "class", "function", ""):
            ref = f"{one.ref}.{attr}"
            return from_outside(
                engine, Value("", OUTSIDE, name=name, ref=ref, constant=True), frame, node
            )
        kind = "member"
        return Value(kind, OUTSIDE, name=name, bound=one, origin=one.origin, constant=True)
    if value.kind == "property" and (one.kind != "class" or value.bound is not None):
        return engine.call(value.but(kind="function"), [], {}, frame, node)
    if value.kind == "descriptor":
        return _ask_descriptor(engine, value, frame, node)
    if value.kind == "answer" and value.bound is not None:  # what a module's ``__getattr__`` gives
        asked = Value("scalar", frame.level, obj=value.obj)
        return engine.call(value.bound, [asked], {}, frame, node)
    if one.kind == "frozen" and not value.constant and value.kind != "opaque":
        value = value.but(constant=True)
    if value.kind in CONTAINERS and value.holder == "attribute" and not value.name:
        value = value.but(name=name)
    return from_outside(engine, value if value.name else value.but(name=name), frame, node)


def _held(engine: Engine, function: Function, frame: Frame) -> list[Value]:
    """Return what a function made in the trace has for defaults, annotations, and captures."""
    around: Fields = function.frame.env if function.frame is not None else {}
    spec = function.node.args
    notes = (a.annotation for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))
    said = [engine.expr(note, function.frame or frame) for note in notes if note is not None]
    names = {n.id for n in walk(function.node) if isinstance(n, ast.Name)}
    captured = [value for name, value in around.items() if name in names]
    return [*function.defaults.values(), *said, *captured]


def _of_call(one: Value, attr: str, frame: Frame) -> Value:
    """Return what a method, or a ``partial``, is made of."""
    assert one.bound is not None
    if attr in ("__self__", "func"):
        return one.bound
    if attr == "__func__":
        return one.but(bound=None)
    fields = one.fields or {}
    if attr == "args":
        return Value(
            "tuple", frame.level, fields={k: v for k, v in fields.items() if k and k[0] == "item"}
        )
    named: Fields = {("item", k): v for k, v in fields.items() if isinstance(k, str)}
    return Value("dict", frame.level, fields=named)


def _local_attribute(
    engine: Engine, one: Value, attr: str, name: str, frame: Frame, node: ast.AST
) -> Value:
    asked = one.kind == "instance" and not attr.startswith("__")
    answer = _answers_all(engine, one.bound) if asked and one.bound is not None else None
    if answer is not None:
        given = [engine.unknown(frame.level)]
        return engine.call(_bound_to(engine, one, answer, frame, node), given, {}, frame, node)
    if one.kind == "class" and one.fields is not None:
        value = _of_class(engine, one, attr)
        if value is not None:
            if value.level == OUTSIDE:
                engine.name(value, frame, node)
            return value if value.kind != "function" else value.but(bound=None)
        if (value := of_metaclass(engine, one, attr, frame, node)) is not None:
            return value
        if not attr.startswith("__"):
            answer = of_metaclass(engine, one, "__getattr__", frame, node)
            if answer is not None and answer.kind == "function":
                return engine.call(answer, [engine.unknown(frame.level)], {}, frame, node)
    elif one.fields is not None and attr in one.fields:
        return one.fields[attr]
    elif attr == "__dict__" and one.kind in ("instance", "function") and one.fields is not None:
        return Value("dict", one.level, fields=one.fields)
    elif one.kind in ("instance", "function") and ("item", attr) in (one.fields or {}):
        return (one.fields or {})["item", attr]  # put into its ``__dict__``
    if one.kind == "instance" and one.bound is not None:
        value = _of_class(engine, one.bound, attr)
        if value is not None:
            return _bound_to(engine, one, value, frame, node)
        special = attr.startswith("__")  # Python asks the class for those, and nobody else
        answer = None if special else _of_class(engine, one.bound, "__getattr__")
        if answer is not None and answer.kind == "function":
            given = [engine.unknown(frame.level)]
            return engine.call(answer.but(bound=one), given, {}, frame, node)
        if one.fields is not None and None in one.fields:  # set by a name that is computed
            return one.fields[None]
    if attr in _HELD and one.function is not None:
        for part in _held(engine, one.function, frame):
            use(engine, part, frame, node)
    if attr in _CHAINED and (one.kind == "instance" or engine.raised):
        chained = join([one, *engine.raised]) or one
        grouped = attr == "exceptions"
        return Value("tuple", one.level, fields={None: chained}) if grouped else chained
    if attr in _PLAIN and not one.kind:
        return Value("", frame.level)
    if attr in _FRAME and not one.kind and not _is_said(engine, rules.Environment, frame, node):
        engine.report(rules.Environment, frame, node, attr)
    if attr == "at":
        return Value("array", frame.level)
    return Value("member", one.level, argument=one.argument, name=name, bound=one)


def _is_said(engine: Engine, rule: type[LintRule], frame: Frame, node: Any) -> bool:
    """Say whether a line breaks a rule already: ``sys._getframe().f_globals`` is one cause."""
    at = rule.code, frame.function.file, node.lineno + frame.function.above
    return any(key[:3] == at for key in engine.found)


def _answers_all(engine: Engine, cls: Value) -> Value | None:
    """Return the user's ``__getattribute__`` of a class, which is asked for every attribute."""
    key = id(cls.fields) if cls.obj is ABSENT else id(cls.obj)
    if key not in engine.answering:
        asked = cls.level != OUTSIDE or engine.resolver.is_open(cls)
        found = _of_class(engine, cls, "__getattribute__") if asked else None
        entered = found is not None and (
            found.function is not None
            or (found.level == OUTSIDE and engine.resolver.follow(found) is not None)
        )
        engine.answering[key] = cls, found if entered else None
    return engine.answering[key][1]


def _bound_to(engine: Engine, one: Value, value: Value, frame: Frame, node: ast.AST) -> Value:
    """Return what the class of an object made in the trace has, as the object's own."""
    if value.kind == "property":
        return engine.call(value.but(kind="function", bound=one), [], {}, frame, node)
    if value.kind == "descriptor":
        return _ask_descriptor(engine, value, frame, node, one)
    if value.kind == "function" and value.holder != "static":
        value = value.but(bound=one)
    if value.ref == PARTIAL_METHOD and value.bound is not None:
        value = value.but(ref="", bound=_bound_to(engine, one, value.bound, frame, node))
    if value.level == OUTSIDE:
        engine.name(value, frame, node)
    if value.level == OUTSIDE and value.kind != "function":
        return from_outside(engine, value, frame, node)
    return value


def _ask_descriptor(
    engine: Engine, value: Value, frame: Frame, node: ast.AST, one: Value | None = None
) -> Value:
    """Return what the ``__get__`` of a descriptor gives, of the object given if not of its own."""
    obj, owner = (value.fields or {}).values()
    assert value.bound is not None
    return engine.call(value.bound, [one or obj, owner], {}, frame, node)


def _of_class(engine: Engine, cls: Value, attr: str) -> Value | None:
    """Return what a class, or one that it inherits from, has by a name."""
    if cls.level == OUTSIDE:
        return engine.resolver.attribute(cls, attr)
    fields = cls.fields or {}
    return fields[attr] if attr in fields else _of_bases(engine, cls, attr)


def of_metaclass(
    engine: Engine, cls: Value, attr: str, frame: Frame, node: ast.AST
) -> Value | None:  # fmt: skip
    """Return what the metaclass of a class has by a name, if that is the user's, bound to it."""
    meta = _metaclass_of(engine, cls, frame, node)
    found = _of_class(engine, meta, attr) if meta is not None else None
    return None if found is None else _bound_to(engine, cls, found, frame, node)


def _metaclass_of(engine: Engine, cls: Value, frame: Frame, node: ast.AST) -> Value | None:
    """Return the metaclass of a class, where it is the user's."""
    if cls.level == OUTSIDE:
        if not engine.resolver.is_open(cls):
            return None
        meta = _attribute_of_one(engine, cls, "__class__", frame, node)
        return meta if engine.resolver.is_open(meta) else None
    fields = cls.fields or {}
    if ("meta", 0) in fields:
        return fields["meta", 0]
    for key, base in fields.items():
        if isinstance(key, tuple) and key[0] == "base" and base.kind == "class":
            found = _metaclass_of(engine, base, frame, node)
            if found is not None:
                return found
    return None


def _of_bases(engine: Engine, cls: Value, attr: str) -> Value | None:
    """Return what the classes that one made in the trace inherits from have by a name."""
    for key, base in (cls.fields or {}).items():
        if isinstance(key, tuple) and key[0] == "base" and base.kind == "class":
            found = _of_class(engine, base, attr)
            if found is not None:
                return found
    return None


# ---- super ---------------------------------------------------------------------------------------


def super_of(engine: Engine, args: list[Value], frame: Frame) -> Value:
    """Return what ``super()``, or ``super(Class, self)``, gives in a method."""
    home: Any = frame
    while home.function.frame is not None and not (
        frame_self(home) and "__class__" not in home.env
    ):  # a function, or a comprehension, inside of a method
        home = home.function.frame
    if len(args) == 2:
        return Value("super", frame.level, bound=args[1], fields={"class": args[0]})
    names = parameters(home.function.node)
    receiver = home.env.get(names[0]) if names else None
    owner = engine.resolver.lookup(home.function, "__class__")
    fields = {"class": owner} if owner is not None and owner.kind == "class" else {}
    made = None if receiver is None else receiver.bound
    if not fields and receiver is not None and receiver.kind == "class":
        made = _metaclass_of(engine, receiver, frame, home.function.node)
    if not fields and made is not None:
        found = _class_with(made, home.function)
        fields = {"class": found} if found is not None else {}
    return Value("super", frame.level, bound=receiver, fields=fields)


def _class_with(cls: Value, method: Function) -> Value | None:
    """Return which of a class made in the trace, and its bases, a method was written in."""
    fields = cls.fields or {}
    if cls.level == OUTSIDE or any(v.function is method for v in fields.values()):
        return cls if cls.level != OUTSIDE else None
    found = (_class_with(v, method) for k, v in fields.items() if k and k[0] == "base")
    return next((f for f in found if f is not None), None)


def frame_self(frame: Frame) -> bool:
    """Say whether a function's first parameter is bound to an object: it is a method."""
    names = parameters(frame.function.node)
    return bool(names) and (frame.env.get(names[0]) or Value()).kind in _RECEIVERS


def super_attribute(
    engine: Engine, one: Value, attr: str, frame: Frame, node: ast.AST
) -> Value | None:
    """Return what the classes after one have by a name, bound to the object."""
    owner, receiver = (one.fields or {}).get("class"), one.bound
    if owner is None or receiver is None:
        return None
    if owner.level != OUTSIDE:
        found = _of_bases(engine, owner, attr)
        return None if found is None else _bound_to(engine, receiver, found, frame, node)
    found = engine.resolver.inherited(owner, receiver, attr)
    if found is None:
        return None
    if found.kind == "property":
        return engine.call(found.but(kind="function"), [], {}, frame, node)
    if found.kind == "descriptor":
        return _ask_descriptor(engine, found, frame, node)
    return from_outside(engine, found, frame, node)
