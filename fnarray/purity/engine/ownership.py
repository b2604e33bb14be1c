"""Who owns an object decides what may be done with it: read, changed, returned, kept.

An object made during the trace is free to change; one from outside, or handed in, is not; and a
callback that is traced on its own (a loop body, a branch) owns only what it makes itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from .. import rules
from ..scopes import Frame
from ..transforms import transform_of
from ..values import CHANGING, CONTAINERS, OUTSIDE, Value
from .machine import Engine

#: Immutable, but what they hold need not be.
_HOLDING = frozenset({"tuple", "frozen"})
_WHOLE = CONTAINERS | {"tuple", "instance"}
#: What is to be done about an object that is read as a whole.
_OF_OBJECTS = "Pass its values as arguments, or make its class a frozen dataclass."
_OF_CLASSES = (
    "Name it in CAPITALS, or annotate it as typing.Final, if it never changes; or pass the value "
    "as an argument."
)
_OF_RECEIVERS = (
    "Trace the function of its class, with the object static (static_argnums=0); or make the class "
    "a frozen dataclass, or pass the value as an argument."
)
#: Of context variables, queues, buffers: they hold values, but cannot be frozen.
_OF_OTHERS = "Read it outside, and pass what it gives as an argument."
_OF_STREAMS = (
    "Do it outside, before or after the call: pass in what is read of it, return what is put there."
)
_OF_CACHES = "Clear it outside, between calls."
#: Transforms that take ``has_aux``.
_AUXILIARY = frozenset({"grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian", "jvp",
                        "vjp", "linearize"})  # fmt: skip
#: What is read from an object that may change.
_PARTS = frozenset({"element", "member", "opaque"})
#: Of these, which one an attribute holds, a guard tells.
_NAMED = frozenset({"function", "class", "module", "partial"})
#: Objects that a helper may return unread.
_PASSED_ON = CONTAINERS | {"instance"}


def read(engine: Engine, node: ast.expr, frame: Frame) -> Value:
    """Evaluate an expression whose value is looked at."""
    value = engine.expr(node, frame)
    if value.level == OUTSIDE or value.others:
        use(engine, value, frame, node)
    return value


def use(engine: Engine, value: Value, frame: Frame, node: ast.AST) -> None:
    """Check that an object may be read here."""
    if value.level != OUTSIDE and not value.others:
        return
    for one in value.each():
        if one.level != OUTSIDE or one.argument or one.guarded:
            continue
        where, at = one.origin if one.origin is not None else (frame, node)
        if one.kind in ("element", "member") and one.bound is not None:
            use(engine, one.bound.but(origin=one.bound.origin or (where, at)), frame, node)
        elif one.rebound and one.kind not in ("function", "class", "module"):
            engine.report(rules.ReboundCell, where, at, one.name, one.rebound, value=one)
        elif one.kind in CONTAINERS or one.kind == "logger":
            other = one.kind in ("container", "logger") or one.name.endswith("__dict__")
            repair = _OF_OTHERS if other else ""
            engine.report(rules.MutableRead, where, at, one.name, one.kind, value=one,
                          repair=repair)  # fmt: skip
        elif one.kind == "ndarray":
            engine.report(rules.MutableArray, where, at, one.name, value=one)
        elif one.kind in ("iterator", "generator"):
            engine.report(rules.OuterIterator, where, at, one.name, value=one)
        elif one.kind == "rng":
            engine.report(rules.OuterGenerator, frame, node, one.name)
        elif one.kind == "instance" and not engine.resolver.is_whole(one):
            repair = _OF_OTHERS if engine.resolver.is_ready_made(one) else _OF_OBJECTS
            engine.report(rules.MutableRead, where, at, one.name, "object", value=one,
                          repair=repair)  # fmt: skip
        elif one.constant or one.kind in ("function", "class", "module", "partial", "instance"):
            pass
        elif one.holder == "attribute":
            engine.report(rules.MutableAttribute, where, at, one.name, value=one,
                          repair=_of_attribute(engine, one, at, where))  # fmt: skip
        elif one.kind == "scalar" and one.holder == "global":
            engine.report(rules.GlobalScalar, where, at, one.name)
        if one.kind == "class":
            engine.resolver.watch(one, "members")
        if one.kind in _HOLDING and (parts := engine.resolver.parts(one)) is not None:
            for part in parts:
                if part.kind in CHANGING or part.kind in _HOLDING:
                    use(engine, part.but(name=one.name, origin=(where, at)), frame, node)


def _of_attribute(engine: Engine, one: Value, node: ast.AST, frame: Frame) -> str:
    """Return what is to be done about an attribute: "" where a frozen dataclass would help."""
    if one.name.rpartition(".")[2].startswith("__"):  # whose name is Python's
        return _OF_OTHERS
    bases = engine.expr(node.value, frame).each() if isinstance(node, ast.Attribute) else ()
    for base in bases:
        if base.kind == "class" or (base.kind == "instance" and base.level != OUTSIDE):
            return _OF_CLASSES
        if base.level == OUTSIDE and engine.resolver.is_ready_made(base):
            return _OF_OTHERS
        if base.holder == "receiver" and base.name == "self":
            return _OF_RECEIVERS
    return ""


def is_known(value: Value) -> bool:
    """Say whether guards tell which object it is, and so its class, whatever it holds.

    They do of names, and of what cannot change; not of a part of what anybody may change.
    """
    return all(
        one.level != OUTSIDE or one.argument or one.guarded
        or (one.kind not in _PARTS and one.holder != "element"
            and (one.constant or one.kind in _NAMED or one.holder != "attribute"))
        for one in value.each()
    )  # fmt: skip


def use_all(engine: Engine, values: Iterable[Value], frame: Frame, node: ast.AST) -> None:
    """Read all arguments; functions among them are not read but called."""
    for value in values:
        use(engine, value, frame, node)


def use_whole(engine: Engine, value: Value, frame: Frame, node: ast.AST, deep: int = 4) -> None:
    """Read an argument with all that it holds, as a function does that nobody enters."""
    use(engine, value, frame, node)
    for one in value.each():
        if one.level != OUTSIDE and one.kind in _WHOLE and one.fields and deep:
            for part in tuple(one.fields.values()):
                use_whole(engine, part, frame, node, deep - 1)
        elif one.level != OUTSIDE and one.kind == "generator" and one.bound is not None and deep:
            use_whole(engine, one.bound, frame, node, deep - 1)  # ``asyncio.run(main())``


def mutate(
    engine: Engine, value: Value, frame: Frame, node: ast.AST, what: str,
    given: Sequence[Value] = (), *, attribute: bool = False, repair: str = "",
) -> None:  # fmt: skip
    """Report a change in place, unless the trace in progress made the object itself.

    A `repair` is that of an argument; of what is captured the new value is returned.
    """
    said: set[str] = set()
    for one in value.each():
        # The value of a Ref goes in and comes out, wherever it is from; a parameter's default and
        # the argument in its place are one cause.
        if one.kind == "ref" or one.name in said:
            continue
        if (
            one.kind == "scalar" and not attribute
        ):  # None, where a container may be: it has no items
            continue
        name = one.name or "a value"
        shown = part_of(node, frame, name)
        if OUTSIDE < one.level < frame.level:
            leak(engine, frame, node, name, what)
        elif one.argument:
            if attribute:
                done = f"{'deletes' if _deletes(node) else 'sets'} {what}"
                again = f"Build a new one, such as dataclasses.replace({shown}, {what}=...)."
                engine.report(rules.ArgumentMutation, frame, node, name, done, value=one,
                              shown=shown, repair=again if what.isidentifier() else "")  # fmt: skip
            else:
                engine.report(rules.ArgumentMutation, frame, node, name, what, value=one,
                              shown=shown, repair=repair)  # fmt: skip
        elif one.level != OUTSIDE:
            continue
        elif _base(one).kind == "ndarray":
            whole = one.kind == "element" or _base(one).name != name
            engine.report(rules.ArrayWrite, frame, node, _base(one).name or name, what,
                          shown="" if whole else shown)  # fmt: skip
        elif one.name == "globals()":
            engine.report(rules.GlobalWrite, frame, node, _global_of(node, what), what)
        elif name.endswith(".__dict__"):  # ``vars(model).update(w=x)``
            engine.report(
                rules.AttributeWrite, frame, node, name, "changes", value=one, given=given
            )
        elif attribute:
            full, done = f"{name}.{what}".rstrip("."), "deletes" if _deletes(node) else "sets"
            engine.report(rules.AttributeWrite, frame, node, full, done, value=one, given=given,
                          shown=f"{shown}.{what}".rstrip("."))  # fmt: skip
        else:
            instead = _OF_STREAMS if one.kind == "container" else ""
            instead = _OF_CACHES if what == "cache_clear" else instead
            engine.report(rules.CapturedMutation, frame, node, name, what, value=one, given=given,
                          shown=shown, repair=instead)  # fmt: skip
        said.add(one.name)


def part_of(node: ast.AST, frame: Frame, name: str) -> str:
    """Return how the part of an object that a node changes is written: ``params["w"]``.

    It is the object's name where no part is taken, or where the object has another name there.
    """
    base = root = getattr(getattr(node, "func", node), "value", None)
    taken = False
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        taken = taken or isinstance(root, ast.Subscript)
        root = root.value
    if not taken or not isinstance(root, ast.Name) or root.id != name.partition(".")[0]:
        return name
    return as_written(base, frame) if isinstance(base, ast.expr) else name


def as_written(node: ast.expr, frame: Frame) -> str:
    """Return the text of an expression that is written on one line, or what says the same."""
    lines, line = frame.function.lines, node.lineno + frame.function.above
    if lines is None or line > len(lines) or node.end_lineno != node.lineno:
        return ast.unparse(node)
    return lines[line - 1].encode()[node.col_offset : node.end_col_offset].decode()


def fill(engine: Engine, keywords: dict[str, Value], frame: Frame, node: ast.AST) -> None:
    """Report what ``out=`` names, an array or a tuple of them, as changed."""
    for one in keywords["out"].each() if "out" in keywords else ():
        for part in (one.fields or {}).values() if one.kind == "tuple" else (one,):
            mutate(engine, part, frame, node, "out=")


def _global_of(node: ast.AST, what: str) -> str:
    """Return the global that a method of ``globals()`` writes, or how that is spelled."""
    match node:
        case ast.Call(args=[], keywords=[ast.keyword(arg=str(name)), *_]):
            return name
        case ast.Call(args=[ast.Dict(keys=[ast.Constant(value=str(name)), *_]), *_]):
            return name
        case ast.Call(args=[ast.Constant(value=str(name)), *_]):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case _:
            return f"globals().{what}(...)" if isinstance(node, ast.Call) else "globals()[...]"


def leak(engine: Engine, frame: Frame, node: ast.AST, name: str, what: str) -> None:
    """Report what a traced callback does to a local of the function around it."""
    if name == "a value":
        base = getattr(node, "func", node)
        name = ast.unparse(getattr(base, "value", base))
    traced = next((step for step in reversed(frame.path) if "(" in step), "")
    transform = transform_of(f"fnarray.{traced.partition('(')[0]}")
    repair = ""  # of a loop, or a branch, the rule's own
    if transform is not None:
        aux = ", has_aux=True" if transform.name in _AUXILIARY else ""
        repair = f"Return it from the function: {traced.removesuffix(')')}{aux}) gives it back."
    engine.report(rules.CallbackLeak, frame, node, name, what, repair=repair)


def _deletes(node: ast.AST) -> bool:
    called = getattr(node, "func", None)
    named = getattr(called, "id", getattr(called, "attr", "")) in ("delattr", "__delattr__")
    return named or isinstance(getattr(node, "ctx", None), ast.Del)


def hold(engine: Engine, value: Value, frame: Frame, node: ast.AST) -> None:
    """Put a value into a container: reading it later would have no origin to point at."""
    for one in value.each():
        if one.kind in ("scalar", "element", "ndarray") or one.holder == "attribute":
            use(engine, one, frame, node)


def escape(engine: Engine, value: Value, frame: Frame, node: ast.AST) -> None:
    """Return a value: at the end of the trace that is to read it."""
    if engine.depth <= 1 or not any(
        v.level == OUTSIDE and v.kind in _PASSED_ON for v in value.each()
    ):
        use(engine, value, frame, node)
    if engine.depth <= 1:
        for one in value.each():
            if one.kind == "identity" and one.origin is not None:
                engine.report(rules.Identity, *one.origin, one.name)
            for part in (one.fields or {}).values() if one.level != OUTSIDE else ():
                if part.level == OUTSIDE:
                    use(engine, part, frame, node)


def keep(engine: Engine, callee: Value, values: list[Value], frame: Frame, node: ast.AST) -> None:
    """Report a cache from outside that would hold a tracer: an argument, or a result."""
    owner = callee.bound if callee.bound is not None else callee
    traced = any(
        v.argument or v.kind == "array" for value in values for v in value.each()
        if v.level != OUTSIDE
    )  # fmt: skip
    if traced and owner.level == OUTSIDE:
        engine.report(rules.CapturedMutation, frame, node, callee.name, "keeps a traced value",
                      repair="Call it outside and pass the result, or drop the cache.")  # fmt: skip


def _base(value: Value) -> Value:
    while value.bound is not None and value.kind in ("element", "member"):
        value = value.bound
    return value
