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
#: Of context variables, queues, buffers: they hold values, but cannot be frozen.
_OF_OTHERS = "Read it outside, and pass what it gives as an argument."
_OF_STREAMS = (
    "Do it outside, before or after the call: pass in what is read of it, return what is put there."
)
_OF_CACHES = "Clear it outside, between calls."
_OF_NAMESPACES = "Return the new value, and let the caller set it."
#: Transforms that take ``has_aux``.
_AUXILIARY = frozenset({"grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian", "jvp",
                        "vjp", "linearize"})  # fmt: skip
#: What is read from an object that may change.
_PARTS = frozenset({"element", "member", "opaque"})
#: Of these, which one an attribute holds, a guard tells.
_NAMED = frozenset({"function", "class", "module", "partial"})
#: What holds names for everybody: of these nobody makes another with one attribute replaced.
_SPACES = frozenset({"class", "module", "function"})
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
            repair = _OF_OTHERS if one.kind in ("container", "logger") else ""
            engine.report(rules.MutableRead, where, at, one.name, one.kind, value=one,
                          repair=repair)  # fmt: skip
        elif one.kind == "ndarray":
            engine.report(rules.MutableArray, where, at, one.name, value=one)
        elif one.kind in ("iterator", "generator"):
            engine.report(rules.OuterIterator, where, at, one.name, value=one)
        elif one.kind == "rng":
            engine.report(rules.OuterGenerator, frame, node, one.name)
        elif one.kind == "instance":
            engine.report(rules.MutableRead, where, at, one.name, "object", value=one,
                          repair=_OF_OBJECTS)  # fmt: skip
        elif one.constant or one.kind in ("function", "class", "module", "partial"):
            pass
        elif one.holder == "attribute":
            repair = _OF_CLASSES if _is_of_class(engine, at, where) else ""
            if one.name.rpartition(".")[2].startswith("__"):  # whose name is Python's
                repair = _OF_OTHERS
            engine.report(rules.MutableAttribute, where, at, one.name, value=one, repair=repair)
        elif one.kind == "scalar" and one.holder == "global":
            engine.report(rules.GlobalScalar, where, at, one.name)
        if one.kind == "class":
            engine.resolver.watch(one, "members")
        if one.kind in _HOLDING and (parts := engine.resolver.parts(one)) is not None:
            for part in parts:
                if part.kind in CHANGING or part.kind in _HOLDING:
                    use(engine, part.but(name=one.name, origin=(where, at)), frame, node)


def _is_of_class(engine: Engine, node: ast.AST, frame: Frame) -> bool:
    """Say whether an attribute is one of a class, which no dataclass makes immutable."""
    if not isinstance(node, ast.Attribute):
        return False
    return any(
        base.kind == "class" or (base.kind == "instance" and base.level != OUTSIDE)
        for base in engine.expr(node.value, frame).each()
    )


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
    given: Sequence[Value] = (), *, attribute: bool = False,
) -> None:  # fmt: skip
    """Report a change in place, unless the trace in progress made the object itself."""
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
        if OUTSIDE < one.level < frame.level:
            leak(engine, frame, node, name, what)
        elif one.argument:
            engine.report(rules.ArgumentMutation, frame, node, name, what, value=one)
        elif one.level != OUTSIDE:
            continue
        elif _base(one).kind == "ndarray":
            engine.report(rules.ArrayWrite, frame, node, _base(one).name or name, what)
        elif one.name == "globals()":
            engine.report(rules.GlobalWrite, frame, node, _global_of(node, what), what)
        elif name.endswith(".__dict__"):  # ``vars(model).update(w=x)``
            engine.report(
                rules.AttributeWrite, frame, node, name, "changes", value=one, given=given
            )
        elif attribute:
            full, done = f"{name}.{what}".rstrip("."), "deletes" if _deletes(node) else "sets"
            engine.report(rules.AttributeWrite, frame, node, full, done, value=one, given=given,
                          repair=_OF_NAMESPACES if one.kind in _SPACES else "")  # fmt: skip
        else:
            repair = _OF_STREAMS if one.kind == "container" else ""
            engine.report(rules.CapturedMutation, frame, node, name, what, value=one, given=given,
                          repair=_OF_CACHES if what == "cache_clear" else repair)  # fmt: skip
        said.add(one.name)


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
