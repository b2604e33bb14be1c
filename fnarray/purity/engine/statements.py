"""Statements: control, definitions and imports."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..nodes import walk
from ..scopes import Frame
from ..values import CONTAINERS, OUTSIDE, Value, join
from ..ways import Domain, attempt, either, is_whole, jump, loop
from . import protocols
from .callbacks import body_of
from .calls import call_expr
from .entry import define
from .machine import Engine
from .ownership import escape, mutate, read, use, use_whole
from .parts import take_attribute, take_element, take_item
from .protocols import ask_truth, each_of, leave, manage
from .standard import ask_instance
from .stores import bind, is_outer_name, put, store

_COPIES = CONTAINERS | {""}
#: Kinds of what decorators put in place of a function, or class.
_REPLACING = frozenset({"traced", "partial", "function", "class", "instance"})
#: Decorators that a method's value shows already.
_MARKS = frozenset({"property", "cached_property", "staticmethod", "classmethod", "setter",
                    "getter", "deleter", "abstractmethod", "override", "overload"})  # fmt: skip


def block(engine: Engine, body: list[ast.stmt], frame: Frame) -> bool:
    """Run statements in order; say whether control can leave at the end."""
    for statement in body:
        run = STATEMENTS.get(type(statement))
        if run is not None and run(engine, statement, frame) is False:
            return False
    return True


def merged(envs: list[dict[str, Value]]) -> dict[str, Value]:
    """Return the state in which any of the given ones may hold."""
    if len(envs) == 1:
        return envs[0]
    first, *others = envs
    out = dict(first)
    # Most names stand for one object on all ways: nothing is asked of those.
    unlike = {k: None for env in others for k, value in env.items() if first.get(k) is not value}
    unlike |= dict.fromkeys(k for env in others for k in first.keys() - env.keys())
    for name in unlike:
        value = join(_owned([env.get(name) for env in envs]))
        if value is not None:
            out[name] = value
    return out


def _owned(values: list[Value | None]) -> list[Value | None]:
    """Return the possibilities for a name, without an object of which another one is a copy.

    ``if copy: d = d.copy()``: who asked for no copy has agreed to the change.
    """
    copied = [v.bound for v in values if v is not None and v.level != OUTSIDE and v.kind in _COPIES]
    copied = [c for c in copied if c is not None and not c.others]
    if not copied:
        return values
    return [v for v in values if v is None or v.others or not any(v.same(c) for c in copied)]


#: What names stand for: any of the possibilities; twice round is enough for what is reported.
OWNED: Final = Domain(merged)


def _loop(engine: Engine, frame: Frame, body: list[ast.stmt], start: Callable[[], object]) -> None:
    """Run a body until names stand for nothing new, and nothing new is kept."""
    kept = engine.kept

    def turn() -> bool:
        start()
        return engine.block(body, frame)

    def settled(before: dict[str, Value], after: dict[str, Value]) -> bool:
        return kept == engine.kept and all(
            value.is_idle() if (was := before.get(name)) is None else value.stays(was)
            for name, value in after.items()
        )

    loop(frame, OWNED, turn, settled)


def _expr(engine: Engine, node: ast.Expr, frame: Frame) -> None:
    value = node.value
    if isinstance(value, ast.Call):
        call_expr(engine, value, frame, used=False)
    elif not isinstance(value, ast.Constant):
        read(engine, value, frame)


def _return(engine: Engine, node: ast.Return, frame: Frame) -> bool:
    if node.value is not None:
        value = engine.expr(node.value, frame)
        escape(engine, value, frame, node.value)
        frame.returns.append(value)
    return False


def _assign(engine: Engine, node: ast.Assign, frame: Frame) -> None:
    if type(node.value) is ast.Call and type(node.targets[0]) is ast.Tuple and _is_threaded(node):
        engine.threaded.add(id(node.value))
    value = engine.expr(node.value, frame)
    for target in node.targets:
        if type(target) is ast.Name:
            bind(engine, target.id, value, frame, target)
        else:
            store(engine, target, value, frame)


def _is_threaded(node: ast.Assign) -> bool:
    """Say whether ``top, s = s.pop()``: no list is bound to what it pops, so it is none."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Call(func=ast.Attribute() as f)):
            return ast.dump(f.value) in (ast.dump(p).replace("Store()", "Load()") for p in parts)
        case _:
            return False


def _ann_assign(engine: Engine, node: ast.AnnAssign, frame: Frame) -> None:
    if node.value is not None:
        store(engine, node.target, engine.expr(node.value, frame), frame)


def _aug_assign(engine: Engine, node: ast.AugAssign, frame: Frame) -> None:
    right = read(engine, node.value, frame)
    target = node.target
    if not isinstance(target, ast.Name):
        store(engine, target, engine.unknown(frame.level), frame, augmented=node.op)
        return
    if is_outer_name(target.id, frame):
        store(engine, target, engine.unknown(frame.level), frame)
        return
    # ``x += 1`` rebinds an array but changes a list, or a NumPy array, in place.
    kinds = {v.kind for v in right.each()}
    current = engine.expr(target, frame)
    made = protocols.binary(engine, node.op, current, right, frame, node, in_place=True)
    for one in current.each():
        known = one.kind in CONTAINERS or one.kind == "ndarray"
        if known or (one.argument and not one.kind and kinds & CONTAINERS):
            put(engine, one, None, take_element(engine, right, frame))
            mutate(engine, one, frame, node, "in place")
        else:
            use(engine, one, frame, target)
    if not any(v.kind in CONTAINERS or v.kind == "ndarray" for v in current.each()):
        bind(engine, target.id, made or engine.unknown(frame.level), frame, target)


def _delete(engine: Engine, node: ast.Delete, frame: Frame) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            if is_outer_name(target.id, frame):
                store(engine, target, engine.unknown(frame.level), frame)
            frame.env.pop(target.id, None)
        else:
            store(engine, target, engine.unknown(frame.level), frame, deleted=True)


def _if(engine: Engine, node: ast.If, frame: Frame) -> bool:
    truth = ask_truth(engine, node.test, frame)
    if truth is not None:
        return engine.block(node.body if truth else node.orelse, frame)
    ways = node.body, node.orelse
    return either(frame, OWNED, lambda body: engine.block(body, frame), ways)


def _for(engine: Engine, node: ast.For | ast.AsyncFor, frame: Frame) -> None:
    element = each_of(engine, engine.expr(node.iter, frame), frame, node.iter)
    _loop(engine, frame, node.body, lambda: store(engine, node.target, element, frame))
    engine.block(node.orelse, frame)


def _while(engine: Engine, node: ast.While, frame: Frame) -> None:
    _loop(engine, frame, node.body, lambda: ask_truth(engine, node.test, frame))
    engine.block(node.orelse, frame)


def _try(engine: Engine, node: Any, frame: Frame) -> bool:
    def handle(handler: ast.ExceptHandler) -> bool:
        kinds = engine.expr(handler.type, frame) if handler.type is not None else None
        if handler.name:
            bind(engine, handler.name, _caught(engine, kinds, frame), frame, handler)
        return engine.block(handler.body, frame)

    return attempt(frame, OWNED, lambda body: engine.block(body, frame), node, handle)


def _with(engine: Engine, node: ast.With | ast.AsyncWith, frame: Frame) -> None:
    catching, late = engine.catching, isinstance(node, ast.AsyncWith)
    managers: list[tuple[Value, ast.expr]] = []
    for item in node.items:
        at = item.context_expr
        value = engine.expr(at, frame)
        managers.append((value, at))
        engine.catching = engine.catching or value.kind == "catching"
        entered = manage(engine, value, frame, at, late=late)
        if item.optional_vars is not None:
            store(engine, item.optional_vars, entered, frame)
    engine.block(node.body, frame)
    for value, at in reversed(managers):
        leave(engine, value, frame, at, late=late)
    engine.catching = catching


def _match(engine: Engine, node: ast.Match, frame: Frame) -> bool:
    subject = read(engine, node.subject, frame)

    def run(case: ast.match_case) -> bool:
        for part in walk(case.pattern):
            _pattern(engine, part, subject, frame)
        if case.guard is not None:
            read(engine, case.guard, frame)
        return engine.block(case.body, frame)

    return either(frame, OWNED, run, node.cases, none=not is_whole(node))


def _pattern(engine: Engine, part: ast.AST, subject: Value, frame: Frame) -> None:
    """Take apart what is matched: bind the names of a pattern, ask what it asks."""
    if isinstance(part, ast.MatchStar) and part.name:
        rest = Value("list", frame.level, fields={None: take_element(engine, subject, frame)})
        bind(engine, part.name, rest, frame, part)
    elif isinstance(part, ast.MatchAs) and part.name:
        bind(engine, part.name, take_item(engine, subject, frame), frame, part)
    elif isinstance(part, ast.MatchMapping):
        for key in part.keys:
            read(engine, key, frame)
        if part.rest:
            rest = Value("dict", frame.level, fields={None: take_element(engine, subject, frame)})
            bind(engine, part.rest, rest, frame, part)
    elif isinstance(part, ast.MatchValue):
        read(engine, part.value, frame)
    elif isinstance(part, ast.MatchClass):
        cls = read(engine, part.cls, frame)
        ask_instance(engine, subject, cls, frame, part)
        if part.patterns:
            take_attribute(engine, cls, "__match_args__", frame, part)


def _raise(engine: Engine, node: ast.Raise, frame: Frame) -> bool:
    for part in (node.exc, node.cause):
        if part is not None:
            _raised(engine, read(engine, part, frame), frame, part)
    return False


def _raised(engine: Engine, value: Value, frame: Frame, node: ast.AST) -> None:
    """Note what is raised: an object of the user's, or one that is made of his class."""
    for kind in value.each():
        one = engine.call(kind, [], {}, frame, node) if _is_users(engine, kind) else kind
        users = one.kind == "instance" and one.bound is not None and _is_users(engine, one.bound)
        if users and not any(one.same(known) for known in engine.raised):
            engine.raised.append(one)


def _is_users(engine: Engine, value: Value) -> bool:
    known = value.kind == "class" and not engine.resolver.presumes
    return known and (value.level != OUTSIDE or engine.resolver.is_open(value))


def _caught(engine: Engine, kinds: Value | None, frame: Frame) -> Value:
    """Return what ``except kinds as name`` binds: what was raised, or any of those classes."""
    several = [kinds] if kinds is not None else []
    if kinds is not None and kinds.kind == "tuple" and kinds.fields:
        several = [*kinds.fields.values()]
    made = [
        Value("instance", frame.level, bound=one, fields={})
        for kind in several for one in kind.each() if _is_users(engine, one)
    ]  # fmt: skip
    return join([*engine.raised, *made]) or engine.unknown(frame.level)


def _jump(engine: Engine, node: ast.Break | ast.Continue, frame: Frame) -> bool:
    return jump(frame, node)


def _assert(engine: Engine, node: ast.Assert, frame: Frame) -> None:
    ask_truth(engine, node.test, frame)
    if node.msg is not None:
        read(engine, node.msg, frame)


def _function_def(engine: Engine, node: Any, frame: Frame) -> None:
    value = define(engine, node, frame)
    for decorator in reversed(node.decorator_list):
        value = decorate(engine, decorator, value, frame)
    bind(engine, node.name, value, frame, node)


def _class_def(engine: Engine, node: ast.ClassDef, frame: Frame) -> None:
    bases: list[Value] = []
    for base in node.bases:
        value = read(engine, base, frame)
        entries = protocols.ask(engine, value, ("__mro_entries__",), frame, base)
        bases.append(value if entries is None else take_element(engine, entries, frame))
    fields: dict[Any, Value] = {("base", i): base for i, base in enumerate(bases)}
    named = {k.arg: engine.expr(k.value, frame) for k in node.keywords}
    _class_body(engine, node, fields, frame)
    value = Value("class", frame.level, name=node.name, fields=fields)
    unknown = engine.unknown(frame.level)
    meta = named.pop("metaclass", None)
    if meta is not None:
        fields["meta", 0] = meta
        made = [unknown, unknown, Value("dict", frame.level, fields={})]
        for name, first in (("__prepare__", meta), ("__new__", meta), ("__init__", value)):
            given = made[:2] if name == "__prepare__" else made
            _run_hook(engine, meta, name, [first, *given], frame, node)
    for part in tuple(fields.values()):
        protocols.ask(engine, part, ("__set_name__",), frame, node, [value, unknown])
    for base in bases:
        _run_hook(engine, base, "__init_subclass__", [value], frame, node)
    for decorator in reversed(node.decorator_list):
        value = decorate(engine, decorator, value, frame)
    bind(engine, node.name, value, frame, node)


def _run_hook(
    engine: Engine, owner: Value, name: str, args: list[Value], frame: Frame, node: ast.AST
) -> None:
    """Call what a class has for the making of others."""
    for one in owner.each():
        hook = take_attribute(engine, one, name, frame, node)
        if body_of(engine, hook) is not None:
            given = engine.call(hook.but(bound=None), args, {}, frame, node)
            use_whole(engine, given, frame, node)


def _class_body(engine: Engine, node: ast.ClassDef, fields: dict[Any, Value], frame: Frame) -> None:
    """Run the body of a class; put what it binds among its fields."""
    for part in node.body:
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            value = define(engine, part, frame)
            marks = {getattr(d, "id", getattr(d, "attr", "")) for d in part.decorator_list}
            if "setter" in marks:
                fields["setter", part.name] = value
                continue
            if marks & {"property", "cached_property"}:
                value = value.but(kind="property")
            elif "staticmethod" in marks:
                value = value.but(holder="static")
            for decorator in reversed(part.decorator_list):
                if getattr(decorator, "id", getattr(decorator, "attr", "")) not in _MARKS:
                    value = decorate(engine, decorator, value, frame)
            fields[part.name] = value
        elif isinstance(part, ast.Assign) and all(isinstance(t, ast.Name) for t in part.targets):
            value = engine.expr(part.value, frame)
            for target in part.targets:
                if isinstance(target, ast.Name):
                    fields[target.id] = value
        elif isinstance(part, ast.AnnAssign) and part.value is not None:
            fields[getattr(part.target, "id", "")] = engine.expr(part.value, frame)
        else:
            # Its names are the class's: those of the function stay as they were.
            before = dict(frame.env)
            engine.block([part], frame)
            fields |= {k: v for k, v in frame.env.items() if before.get(k) is not v}
            frame.env = before


def _import(engine: Engine, node: ast.Import, frame: Frame) -> None:
    for alias in node.names:
        ref = alias.name if alias.asname else alias.name.partition(".")[0]
        name = alias.asname or ref
        value = Value("module", OUTSIDE, name=name, ref=ref, constant=True, holder="import")
        bind(engine, name, value, frame, node)


def _import_from(engine: Engine, node: ast.ImportFrom, frame: Frame) -> None:
    for alias in node.names:
        name = alias.asname or alias.name
        module = Value("module", OUTSIDE, name="", ref=node.module or "", constant=True,
                       holder="import")  # fmt: skip
        value = None
        if not node.level:
            value = engine.resolver.attribute(module, alias.name)
            value = value or Value("", OUTSIDE, ref=f"{node.module}.{alias.name}")
            value = value.but(name=name, constant=True)
        bind(engine, name, value or engine.unknown(frame.level), frame, node)


def decorate(engine: Engine, decorator: ast.expr, value: Value, frame: Frame) -> Value:
    """Apply a decorator of an inner function."""
    if isinstance(decorator, ast.Call):
        maker = call_expr(engine, decorator, frame, used=True)
    else:
        maker = engine.expr(decorator, frame)
    made = [engine.call(one, [value], {}, frame, decorator) for one in maker.each()]
    found = join(made)
    if found is None:
        return value
    known = found.function or found.kind in _REPLACING
    return found if known or any(v.level == OUTSIDE and v.kind for v in found.each()) else value


#: What runs a statement, by the type of its node; False says that control never goes on. Nothing
#: runs ``pass``, ``global``, ``nonlocal``, and type aliases.
STATEMENTS: Final[Mapping[type[ast.AST], Callable[[Engine, Any, Frame], bool | None]]] = {
    ast.Break: _jump,
    ast.Continue: _jump,
    ast.Expr: _expr,
    ast.Return: _return,
    ast.Assign: _assign,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.Delete: _delete,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
    ast.Try: _try,
    ast.With: _with,
    ast.Match: _match,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.FunctionDef: _function_def,
    ast.ClassDef: _class_def,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.AsyncFor: _for,
    ast.AsyncWith: _with,
    ast.TryStar: _try,
    ast.AsyncFunctionDef: _function_def,
}
