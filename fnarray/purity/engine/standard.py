"""Functions of the standard library that move objects around, or look into them by name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from .. import rules
from ..literals import is_named_text, is_text, text_of
from ..scopes import Frame
from ..values import CONTAINERS, OUTSIDE, PARTIAL_METHOD, Value, join, numbered
from . import protocols
from .callbacks import body_of
from .machine import Engine
from .ownership import use, use_all, use_whole
from .parts import super_of, take_attribute, take_element
from .protocols import each_of, encodes, finish, write
from .searches import attribute_named
from .stores import wrap


class Call(NamedTuple):
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


Handler = Callable[[Engine, Call], Value | None]


def _type(engine: Engine, call: Call) -> Value | None:
    if len(call.args) == 3:
        name, bases, space = call.args
        fields: dict[Any, Value] = {
            k[1] if isinstance(k, tuple) else k: v for k, v in (space.fields or {}).items()
        }
        over = (bases.fields or {}).values() if bases.level != OUTSIDE else ()
        fields |= {("base", i): base for i, base in enumerate(over)}
        return Value("class", call.level, name=name.name, fields=fields)
    if len(call.args) != 1:
        return None
    return take_attribute(engine, call.args[0], "__class__", call.frame, call.node)


def _isinstance(engine: Engine, call: Call) -> Value | None:
    """``isinstance(x, Tracer)`` is true of what is traced, and no text is."""
    if len(call.args) != 2:
        return None
    one, asked = call.args
    ask_instance(engine, one, asked, call.frame, call.node)
    tracer = asked.ref.endswith(".Tracer")
    if not tracer and not (engine.resolver.presumes and asked.ref in _UNTRACED):
        return None
    traced = all((v.argument and not v.kind) or v.kind == "array" for v in one.each())
    return Value("scalar", call.level, obj=tracer) if traced else None


def _callable(engine: Engine, call: Call) -> Value | None:
    """What ``callable`` looks for is in the class."""
    for one in call.args[0].each() if call.args else ():
        if one.kind == "instance" or (one.level == OUTSIDE and engine.resolver.is_custom(one)):
            cls = take_attribute(engine, one, "__class__", call.frame, call.node)
            take_attribute(engine, cls, "__call__", call.frame, call.node)
    return None


#: Of these classes no argument of a traced function is.
_UNTRACED = frozenset({f"builtins.{k}" for k in ("str", "bytes", "int", "float", "bool")})


def _issubclass(engine: Engine, call: Call) -> Value | None:
    if len(call.args) == 2:
        if call.args[0].kind == "class" and call.args[0].level == OUTSIDE:
            take_attribute(engine, call.args[0], "__mro__", call.frame, call.node)
        one, classes = call.args
        _check_class(engine, one, classes, "__subclasscheck__", call.frame, call.node)
    return None


def ask_instance(engine: Engine, value: Value, classes: Value, frame: Frame, node: ast.AST) -> None:
    """Run what ``isinstance(value, classes)`` calls, and guard what it looks at."""
    _check_class(engine, value, classes, "__instancecheck__", frame, node)
    if value.level == OUTSIDE and engine.resolver.is_custom(value):
        cls = take_attribute(engine, value, "__class__", frame, node)
        take_attribute(engine, cls, "__mro__", frame, node)


def _check_class(
    engine: Engine, value: Value, classes: Value, method: str, frame: Frame, node: ast.AST
) -> None:
    """Ask the classes of a test what they have to say."""
    known = classes.kind == "tuple" and classes.level != OUTSIDE
    for each in (classes.fields or {}).values() if known else (classes,):
        for one in each.each():
            if one.kind == "class" and one.level == OUTSIDE:
                for question in (method, "__subclasshook__"):
                    asked = take_attribute(engine, one, question, frame, node)
                    if body_of(engine, asked) is not None:
                        engine.call(asked, [value], {}, frame, node)
                for name in engine.resolver.members(one):
                    take_attribute(engine, value, name, frame, node)
            else:  # an object may answer, too
                protocols.ask(engine, one, (method,), frame, node, [value])


def _attrgetter(engine: Engine, call: Call) -> Value | None:
    paths = [text_of(call.node, i) for i in range(len(call.args))]
    if not all(paths):
        return _getter(call, None)
    return Value("getter", call.level, name=" ".join(paths))


def _methodcaller(engine: Engine, call: Call) -> Value | None:
    name = text_of(call.node)
    given = numbered(call.args[1:])
    return Value("getter", call.level, name=name, fields=given) if name else _getter(call, given)


def _getter(call: Call, given: dict[Any, Value] | None) -> Value:
    """Return what gets an attribute by a name that is computed."""
    return Value("getter", call.level, fields=given, origin=(call.frame, call.node))


#: What tells how an object is taken apart, to be copied.
_REDUCED = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__")


def _copy(engine: Engine, call: Call) -> Value | None:
    if not call.args:
        return None
    one = call.args[0]
    use(engine, one, call.frame, call.node)
    for made in (v for v in one.each() if v.bound is not None and v.kind == "instance"):
        engine.resolver.watch(made.bound or made, "copies")
    deep = call.ref == "copy.deepcopy"
    own = "__deepcopy__" if deep else "__copy__"
    if (given := protocols.ask(engine, one, (own,), call.frame, call.node)) is not None:
        return given
    parts = protocols.ask(engine, one, _REDUCED, call.frame, call.node)
    use_whole(engine, parts or engine.unknown(call.level), call.frame, call.node)
    if one.kind == "instance" and one.level != OUTSIDE and one.fields is not None:
        if deep:
            use_whole(engine, one, call.frame, call.node)
        return Value("instance", call.level, bound=one.bound, fields=dict(one.fields))
    inner = take_element(engine, one, call.frame)
    if deep:  # functions and classes are not copied
        kept = (v for v in inner.each() if v.kind in ("function", "class", "partial"))
        inner = join([engine.unknown(call.level), *kept]) or inner
    if (made := alike(engine, one, call.frame, call.node)) is not None:
        return made
    known = one.kind in CONTAINERS or one.kind == "ndarray"
    return Value(one.kind if known else "", call.level, fields={None: inner}, bound=one)


def alike(engine: Engine, one: Value, frame: Frame, node: ast.AST) -> Value | None:
    """Return a new object of the class of one from outside, where that is the user's."""
    if one.level != OUTSIDE or not engine.resolver.is_custom(one):
        return None
    cls = take_attribute(engine, one, "__class__", frame, node)
    engine.resolver.watch(cls, "copies")
    fields: dict[Any, Value] = {None: take_element(engine, one, frame)}
    return Value("instance", frame.level, bound=cls, fields=fields)


def _format(engine: Engine, call: Call) -> Value | None:
    write(engine, [*call.args[1:], *call.keywords.values()], call.frame, call.node)
    return None


def _replace(engine: Engine, call: Call) -> Value | None:
    use_all(engine, [*call.args, *call.keywords.values()], call.frame, call.node)
    return alike(engine, call.args[0], call.frame, call.node) if call.args else None


def _fields(engine: Engine, call: Call) -> Value | None:
    for value in call.args:
        cls = value if value.kind == "class" else None
        cls = cls or take_attribute(engine, value, "__class__", call.frame, call.node)
        engine.resolver.watch(cls, "fields")
    return None


def _hints(engine: Engine, call: Call) -> Value | None:
    for value in call.args[:1]:
        engine.resolver.watch(value, "hints")
    return None


def _unwrap(engine: Engine, call: Call) -> Value | None:
    if not call.args:
        return None
    inner = take_attribute(engine, call.args[0], "__wrapped__", call.frame, call.node)
    return inner if inner.kind == "function" else call.args[0]


def _next(engine: Engine, call: Call) -> Value | None:
    if not call.args:
        return None
    element = each_of(engine, call.args[0], call.frame, call.node, explicit=True)
    finish(engine, call.args[0], call.frame, call.node)
    return join([element, *call.args[1:]])


def _globals(engine: Engine, call: Call) -> Value:
    return Value("dict", OUTSIDE, name="globals()", origin=(call.frame, call.node))


def _vars(engine: Engine, call: Call) -> Value:
    if not call.args:
        held: dict[Any, Value] = {("item", k): v for k, v in call.frame.env.items()}
        return Value("dict", call.level, fields=held)
    return take_attribute(engine, call.args[0], "__dict__", call.frame, call.node)


def _getattr(engine: Engine, call: Call) -> Value | None:
    if len(call.args) < 2:
        return None
    frame, node, (base, key, *others) = call.frame, call.node, call.args
    use(engine, key, frame, node)
    name = _named(call)
    if name:
        return join([take_attribute(engine, base, name, frame, node), *others])
    use(engine, base, frame, node)
    found = attribute_named(engine, base, _written(node, 1), frame, node)
    return found.but(others=(*found.others, *(v for one in others for v in one.each())))


def _members(engine: Engine, call: Call) -> Value | None:
    """``inspect.getmembers``: pairs of names and attributes."""
    if not call.args:
        return None
    use_all(engine, call.args, call.frame, call.node)
    found = attribute_named(engine, call.args[0], None, call.frame, call.node, handed=True)
    pair = Value("tuple", call.level, fields=numbered([engine.unknown(call.level), found]))
    return Value("list", call.level, fields={None: pair})


def _named(call: Call) -> str:
    """Return the name of an attribute: written there, or held by a name that is guarded."""
    written = _written(call.node, 1)
    name = written.value if isinstance(written, ast.Constant) else call.args[1].obj
    return name if type(name) is str else ""


def _written(node: ast.AST, at: int) -> ast.expr | None:
    """Return how an argument of a call is written, by its position."""
    return node.args[at] if isinstance(node, ast.Call) and len(node.args) > at else None


def _search(engine: Engine, call: Call) -> Value:
    """Look among the attributes of an object for whichever it has."""
    for one in call.args[0].each() if call.args else ():
        if one.level == OUTSIDE and not one.argument and engine.resolver.is_open(one):
            name = f"{one.name}.<computed>"
            engine.report(rules.MutableAttribute, call.frame, call.node, name, value=one)
    use_all(engine, call.args, call.frame, call.node)
    for one in call.args[:1]:
        protocols.ask(engine, one, ("__dir__",), call.frame, call.node)
    return engine.unknown(call.level)


def _hasattr(engine: Engine, call: Call) -> Value | None:
    if len(call.args) != 2:
        return None
    name = _named(call)
    if not name:
        return _search(engine, call)
    for one in call.args[0].each():
        if one.level == OUTSIDE and engine.resolver.is_open(one):
            take_attribute(engine, one, name, call.frame, call.node)
    return None


def _id(engine: Engine, call: Call) -> Value:
    """``id(x)`` may be compared and looked up: as a number it is another one in each process."""
    return Value("identity", call.level, name="id", origin=(call.frame, call.node))


def _hash(engine: Engine, call: Call) -> Value | None:
    if not call.args:
        return None
    use(engine, call.args[0], call.frame, call.node)
    protocols.asked_by(engine, call.ref, call.args, call.frame, call.node)
    if is_text(call.node, call.args[0]) or is_named_text(call.node, call.frame):
        engine.report(rules.Identity, call.frame, call.node, "hash")
    return engine.unknown(call.level)


def _super(engine: Engine, call: Call) -> Value:
    return super_of(engine, call.args, call.frame)


def _partial(engine: Engine, call: Call) -> Value | None:
    if not call.args:
        return None
    first, *rest = call.args
    fields: dict[Any, Value] = {**numbered(rest), **call.keywords}
    return Value("partial", call.level, name=first.name, bound=first, fields=fields)


def _partial_method(engine: Engine, call: Call) -> Value | None:
    made = _partial(engine, call)
    return None if made is None else made.but(ref=PARTIAL_METHOD)


def _wraps(engine: Engine, call: Call) -> Value:
    wrapped = call.keywords.get("wrapped") or (call.args[0] if call.args else None)
    engine.forget(*(call.node.args[:1] if isinstance(call.node, ast.Call) else ()))
    return Value("wraps", call.level, bound=wrapped)


def _update_wrapper(engine: Engine, call: Call) -> Value | None:
    wrapped = call.keywords.get("wrapped") or (call.args[1] if len(call.args) > 1 else None)
    if not call.args or wrapped is None:
        return None
    return wrap(engine, call.args[0], wrapped, call.frame, call.node)


def _cache(engine: Engine, call: Call) -> Value:
    given = call.args[0] if call.args else None
    is_function = given is not None and (given.function is not None or given.kind == "function")
    return given if given is not None and is_function else Value("wraps", call.level)


def _memory(engine: Engine, call: Call) -> Value | None:
    """A view of a buffer from outside: what is written into the one, the other has."""
    use_all(engine, call.args[:1], call.frame, call.node)
    outer = [v for one in call.args[:1] for v in one.each() if v.level == OUTSIDE]
    return join(v for v in outer if v.kind in ("container", "bytearray", "ndarray"))


def _exception(engine: Engine, call: Call) -> Value:
    raised = join(engine.raised) or engine.unknown(call.level)
    if call.ref == "sys.exception":
        return raised
    return Value("tuple", call.level, fields={None: raised})


def _encode(engine: Engine, call: Call) -> None:
    encodes(engine, call.node, 2)


def _lookup_error(engine: Engine, call: Call) -> None:
    encodes(engine, call.node, 0)


#: By qualified name; a handler that returns None leaves the call to what holds for all others.
HANDLERS: Final[dict[str, Handler]] = {
    "builtins.type": _type,
    "builtins.isinstance": _isinstance,
    "operator.attrgetter": _attrgetter,
    "operator.methodcaller": _methodcaller,
    "inspect.getattr_static": _getattr,
    "inspect.unwrap": _unwrap,
    "builtins.str.format": _format,
    "dataclasses.replace": _replace,
    "dataclasses.fields": _fields,
    "typing.get_type_hints": _hints,
    "inspect.get_annotations": _hints,
    "copy.copy": _copy,
    "copy.deepcopy": _copy,
    "builtins.next": _next,
    "builtins.globals": _globals,
    "builtins.vars": _vars,
    "builtins.locals": _vars,
    "builtins.getattr": _getattr,
    "builtins.object.__getattribute__": _getattr,
    "inspect.getmembers": _members,
    "builtins.hasattr": _hasattr,
    "builtins.dir": _search,
    "builtins.issubclass": _issubclass,
    "builtins.callable": _callable,
    "builtins.hash": _hash,
    "builtins.id": _id,
    "builtins.super": _super,
    "functools.partial": _partial,
    PARTIAL_METHOD: _partial_method,
    "sys.exc_info": _exception,
    "sys.exception": _exception,
    "functools.wraps": _wraps,
    "functools.update_wrapper": _update_wrapper,
    "functools.lru_cache": _cache,
    "functools.cache": _cache,
    "codecs.lookup_error": _lookup_error,
    "builtins.memoryview": _memory,
    "numpy.frombuffer": _memory,
    **dict.fromkeys(("codecs.encode", "codecs.decode", "builtins.str", "builtins.bytes"), _encode),
}
