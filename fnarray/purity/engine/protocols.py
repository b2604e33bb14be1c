"""The methods that Python calls without being told: of operators, tests, iteration, ``with``."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

from .. import rules
from ..literals import handler_of, spells_text
from ..scopes import Frame
from ..values import ABSENT, CONTAINERS, OUTSIDE, Value, join
from .callbacks import body_of
from .entry import LITERAL, OPTIONAL
from .machine import Engine
from .ownership import is_known, leak, read, use, use_whole
from .parts import of_metaclass, take_attribute, take_element

_BINARY = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "MatMult": "matmul", "Div": "truediv", "Mod": "mod",
    "FloorDiv": "floordiv", "Pow": "pow", "LShift": "lshift", "RShift": "rshift", "BitAnd": "and",
    "BitOr": "or", "BitXor": "xor",
}  # fmt: skip
_COMPARED = {
    "Eq": ("__eq__", "__eq__"), "NotEq": ("__ne__", "__ne__"), "Lt": ("__lt__", "__gt__"),
    "Gt": ("__gt__", "__lt__"), "LtE": ("__le__", "__ge__"), "GtE": ("__ge__", "__le__"),
}  # fmt: skip
_ORDERING = ("__eq__", "__lt__", "__gt__", "__le__", "__ge__")
_UNARY = {"USub": "__neg__", "UAdd": "__pos__", "Invert": "__invert__"}
#: Made in the trace, these have methods of the user's.
_ASKABLE = frozenset({"instance", "class"})
TRUTH = ("__bool__", "__len__")
#: What is, or may hold, an array, whose text is as long as NumPy is told.
_WRITTEN = frozenset({"ndarray", "array", "frozen", "tuple", "list", "dict"})
TEXT = ("__format__", "__str__", "__repr__")
ITERATED = ("__iter__", "__next__", "__getitem__")
INDEX = ("__index__",)
HASH = ("__hash__",)
COMPARED = ("__lt__", "__gt__", "__eq__", "__add__", "__radd__", "__bool__", "__len__")
_NUMBER = ("__float__", "__index__", "__int__", "__complex__", "__round__", "__abs__", "__trunc__")
_ARRAY = (
    "__array__", "__array_ufunc__", "__array_function__", "__jax_array__", "__fnarray_array__",
)  # fmt: skip
#: What functions of the standard library ask of their arguments.
_ASKED = {
    **dict.fromkeys(("float", "int", "complex", "round", "abs", "range", "chr"), _NUMBER),
    "divmod": ("__divmod__", "__rdivmod__", *_NUMBER), "pow": ("__pow__", "__rpow__", *_NUMBER),
    **dict.fromkeys(("str", "repr", "format", "ascii"), TEXT),
    **dict.fromkeys(("bool", "any", "all"), (*TRUTH, *ITERATED)),
    "len": ("__len__",), "hash": ("__hash__",), "reversed": ("__reversed__", "__len__", *ITERATED),
    "bytes": ("__bytes__", *ITERATED), "iter": ITERATED, "next": ("__next__",),
    **dict.fromkeys(
        ("sum", "min", "max", "sorted"), (*ITERATED, "__add__", "__radd__", "__lt__", "__gt__")
    ),
}  # fmt: skip


_ORDERED = ("__eq__", "__lt__", "__gt__", "__le__", "__ge__", "__ne__")
_ARITHMETIC = tuple(f"__{prefix}{name}__" for name in _BINARY.values() for prefix in ("", "r"))
#: What a function of a library may ask of an object that it finds in what it is given.
_ANYTHING = (
    *_ORDERED, *_ARITHMETIC, *_UNARY.values(), *TRUTH, *TEXT, *ITERATED, *HASH, *_NUMBER, *_ARRAY,
    "__contains__", "__call__", "__reversed__", "as_integer_ratio",
)  # fmt: skip
#: Those of which it is known what they ask of items, by name or by what the name begins with.
_ASKING = {
    **dict.fromkeys(("math", "struct", "array"), (*_NUMBER, *_ARITHMETIC)),
    **dict.fromkeys(("heapq", "bisect", "builtins.min", "builtins.max", "builtins.sorted"),
                    _ORDERED),
    **dict.fromkeys(("itertools.groupby", "operator.indexOf", "operator.countOf"), _ORDERED),
    **dict.fromkeys(("itertools.compress", "itertools.filterfalse", "itertools.takewhile",
                     "itertools.dropwhile", "builtins.filter"), TRUTH),
    **dict.fromkeys(("itertools.accumulate", "builtins.sum"), _ARITHMETIC),
    "itertools.chain.from_iterable": ITERATED, "itertools": (), "operator": (),
    **dict.fromkeys(("json", "pprint", "reprlib", "string", "textwrap", "builtins.str",
                     "builtins.repr", "builtins.format", "builtins.ascii"), TEXT),
    **dict.fromkeys(("collections", "builtins.dict", "builtins.set", "builtins.frozenset",
                     "builtins.hash", "builtins.dict.fromkeys"), (*HASH, *_ORDERED)),
    **dict.fromkeys(("builtins", "contextlib", "copy", "dataclasses", "fnarray", "functools",
                     "inspect", "jax", "logging", "random", "types", "typing", "warnings",
                     "weakref"), ()),
}  # fmt: skip
#: What holds items that it asks for itself, when it is compared, hashed or written.
_PARTED = frozenset({"list", "tuple", "dict", "set", "deque", "frozen", "iterator", "generator"})


@lru_cache(maxsize=4096)
def asking(ref: str) -> Sequence[str]:
    """Return which special methods a function of a library may ask of items, by its name."""
    name = ref
    while name and name not in _ASKING:
        name = name.rpartition(".")[0]
    return _ASKING.get(name, _ANYTHING) if ref else ()


_ASKED_BY = {
    "os.fspath": ("__fspath__",), "sys.getsizeof": ("__sizeof__",),
    "operator.length_hint": ("__len__", "__length_hint__"),
}  # fmt: skip


def ask(
    engine: Engine, value: Value, names: Sequence[str], frame: Frame, node: ast.AST,
    args: Sequence[Value] = (),
) -> Value | None:  # fmt: skip
    """Run those of some special methods that the class of an object has; return what they give."""
    if names is not TEXT and value.is_plain():
        return None
    if value.kind in _PARTED or value.others:
        if names is TEXT or names is HASH:
            ask_parts(engine, value, names, frame, node)
        elif names[0] in _ORDERED:
            ask_parts(engine, value, _ORDERED, frame, node)
    if names is TEXT and value.level != OUTSIDE and value.kind == "ndarray":
        engine.resolver.watch(value, "printing")
    if value.level != OUTSIDE and value.kind not in _ASKABLE and not value.others:
        return None
    if names is TEXT and any(one.kind in _WRITTEN for one in value.each()):
        engine.resolver.watch(value, "printing")
    found: list[Value] = []
    for one in value.each():
        for name in names if _has_methods(engine, one, names) else ():
            method = _method(engine, one, name, frame, node)
            if method is not None and body_of(engine, method) is not None:
                given = [*args, *[engine.unknown(frame.level)] * 3][: _wanted(engine, method)]
                found.append(engine.call(method, given, {}, frame, node))
    return join(found)


def ask_parts(
    engine: Engine, value: Value, names: Sequence[str], frame: Frame, node: ast.AST, deep: int = 3
) -> None:
    """Run those special methods that the objects in a container have, however deep they lie."""
    for one in value.each() if names else ():
        if one.kind not in _PARTED or one.argument:
            continue
        for part in take_element(engine, one, frame).each():
            if part.obj is one.obj and part.same(one):
                continue
            users = part.kind in ("instance", "frozen") and not part.argument
            if users and (part.level != OUTSIDE or engine.resolver.is_custom(part)):
                _ask_own(engine, part, names, frame, node)
            elif part.kind in _PARTED and deep:
                ask_parts(engine, part, names, frame, node, deep - 1)


def _ask_own(
    engine: Engine, one: Value, names: Sequence[str], frame: Frame, node: ast.AST
) -> None:  # fmt: skip
    """Run those of many special methods that a class of the user's has; guard that it has no more.

    To look for each would cost a call half a microsecond for each.
    """
    owner = one if one.level == OUTSIDE else one.bound
    if owner is not None and owner.level == OUTSIDE:
        engine.resolver.watch(owner, "names")
        known = {*engine.resolver.names(owner)}
        names = [name for name in names if name in known]
    if names:
        ask(engine, one, names, frame, node)


def _has_methods(engine: Engine, one: Value, names: Sequence[str]) -> bool:
    """Say whether the special methods of an object may be the user's, and are entered.

    Those of a library are not, but anybody may replace them.
    """
    if one.level == OUTSIDE and not engine.resolver.is_custom(one):
        engine.resolver.heed(one, names)
        return one.kind == "instance"
    return one.level == OUTSIDE or one.kind in _ASKABLE


def _method(engine: Engine, one: Value, name: str, frame: Frame, node: ast.AST) -> Value | None:
    """Return what Python calls of an object by itself: its class is asked, not the object."""
    if one.kind == "class":
        return of_metaclass(engine, one, name, frame, node)
    return take_attribute(engine, one, name, frame, node)


def ask_class(
    engine: Engine, value: Value, index: Value, frame: Frame, node: ast.AST
) -> Value | None:
    """Run what ``Class[index]`` calls."""
    found: list[Value] = []
    for one in value.each():
        if one.kind == "class" and (one.fields is not None or engine.resolver.is_open(one)):
            method = take_attribute(engine, one, "__class_getitem__", frame, node)
            if body_of(engine, method) is not None:
                bound = method if method.bound is not None else method.but(bound=one)
                found.append(engine.call(bound, [index], {}, frame, node))
            elif method.kind in ("function", "class"):  # of ``Generic``: it stands for the class
                found.append(one)
    return join(found)


def _wanted(engine: Engine, method: Value) -> int:
    body = body_of(engine, method)
    assert body is not None
    spec = body[0].node.args
    return len(spec.posonlyargs) + len(spec.args) - (body[1] is not None)


def binary(
    engine: Engine, op: ast.operator, left: Value, right: Value, frame: Frame, node: ast.AST,
    *, in_place: bool = False,
) -> Value | None:  # fmt: skip
    """Run what ``left + right`` calls."""
    if left.is_plain() and right.is_plain():
        return None
    if not isinstance(op, ast.Mod) or left.kind == "identity":  # else it may be text
        compute(engine, (left, right))
    elif right.kind == "tuple" and right.level != OUTSIDE:  # ``"%s %s" % (a, b)``
        write(engine, list((right.fields or {}).values()), frame, node)
        ask_parts(engine, right, _NUMBER, frame, node)
    elif spells_text(getattr(node, "left", None)):  # ``"%s" % a``
        write(engine, [right], frame, node)
        ask(engine, right, _NUMBER, frame, node)
    short = _BINARY[type(op).__name__]
    first = (f"__i{short}__", f"__{short}__") if in_place else (f"__{short}__",)
    parts = [
        ask(engine, left, first, frame, node, [right]),
        ask(engine, right, (f"__r{short}__",), frame, node, [left]),
    ]
    return join(parts)


def write(engine: Engine, values: Sequence[Value], frame: Frame, node: ast.AST) -> None:
    """Put values into a text, as ``format`` does."""
    template = getattr(getattr(node, "func", None), "value", None)
    text = template.value if isinstance(template, ast.Constant) else ""
    fields = _FIELD.findall(text) if isinstance(text, str) else ()
    for value in values:
        use(engine, value, frame, node)
        ask(engine, value, TEXT, frame, node)
        for field in fields:  # ``"{0.name}"``
            use(engine, take_attribute(engine, value, field, frame, node), frame, node)


#: An attribute that a format asks for.
_FIELD = re.compile(r"\{\w*\.(\w+)")


def unary(
    engine: Engine, op: ast.unaryop, value: Value, frame: Frame, node: ast.AST
) -> Value | None:
    """Run what ``-value`` or ``not value`` calls."""
    name = _UNARY.get(type(op).__name__)
    if name is not None:
        compute(engine, (value,))
    return ask(engine, value, TRUTH if name is None else (name,), frame, node)


def compare(
    engine: Engine, op: ast.cmpop, left: Value, right: Value, frame: Frame, node: ast.AST
) -> Value | None:
    """Run what ``left < right`` calls."""
    if isinstance(op, (ast.In, ast.NotIn)):
        found = ask(engine, right, ("__contains__", *ITERATED), frame, node, [left])
        if found is None:
            match_items(engine, right, left, frame, node)
    elif (names := _COMPARED.get(type(op).__name__)) is not None:
        if not isinstance(op, (ast.Eq, ast.NotEq)):
            compute(engine, (left, right))
        if left.is_plain() and right.is_plain():
            return None
        parts = [
            ask(engine, left, names[:1], frame, node, [right]),
            ask(engine, right, names[1:], frame, node, [left]),
        ]
        if (made := join(parts)) is not None:
            return made
        # What a class does not say itself follows from what it does: ``!=``, a total ordering.
        for one, other in ((left, right), (right, left)):
            ask(engine, one, _ORDERING, frame, node, [other])
    return None


def match_items(
    engine: Engine, whole: Value, value: Value, frame: Frame, node: ast.AST
) -> None:  # fmt: skip
    """Compare a value with the items of a container, as ``in`` and ``list.index`` do."""
    item = take_element(engine, whole, frame)
    ask(engine, item, ("__eq__",), frame, node, [value])
    ask(engine, value, ("__eq__",), frame, node, [item])


def compute(engine: Engine, values: Sequence[Value]) -> None:
    """Report what is made into a number: an ``id`` among the values."""
    for value in values:
        for one in value.each():
            if one.kind == "identity" and one.origin is not None:
                engine.report(rules.Identity, *one.origin, one.name)


#: Builtins that make another number, or an order, of a number.
_COMPUTING = frozenset({"int", "float", "complex", "abs", "round", "divmod", "pow", "hash", "range",
                        "sorted", "min", "max", "sum", "bin", "hex"})  # fmt: skip


#: Functions that give what the method of their argument gives.
GIVING = frozenset(
    {f"builtins.{k}" for k in ("abs", "round", "divmod", "pow", "reversed", "iter", "next")}
    | {f"math.{k}" for k in ("trunc", "floor", "ceil")}
)
#: Functions that write an array as text.
WRITING = frozenset({f"numpy.{name}" for name in ("array2string", "array_repr", "array_str")})


@lru_cache(maxsize=4096)
def _asked_for(ref: str) -> tuple[str, ...]:
    """Return the special methods that a function of a library calls of its arguments."""
    package, _, name = ref.rpartition(".")
    if package == "builtins":
        return _ASKED.get(name, ITERATED)
    if package == "math":
        return (*_NUMBER, "__floor__", "__ceil__")
    if package == "operator":
        return f"__{name.strip('_')}__", f"__r{name.strip('_')}__"
    if ".numpy" in ref or ref.startswith(("numpy.", "fnarray.", "jax.")):
        return (*_ARRAY, "__float__", "__index__", "__iter__", "__len__", "__getitem__")
    return (*_ASKED_BY.get(ref, ()), *ITERATED)


def asked_by(
    engine: Engine, ref: str, args: list[Value], frame: Frame, node: ast.AST
) -> Value | None:
    """Run what a function of a library calls of its arguments; return what it then gives."""
    if ref in WRITING and args:
        engine.resolver.watch(args[0], "printing")
    names = _asked_for(ref)
    package, _, name = ref.rpartition(".")
    if names is not TEXT and all(value.is_plain() for value in args):
        return None  # of numbers and arrays nothing is asked
    wanted = asking(ref)
    for value in args if wanted else ():
        ask_parts(engine, value, wanted, frame, node)
        for one in value.each():
            if one.level == OUTSIDE and engine.resolver.is_custom(one):
                _ask_own(engine, one, wanted, frame, node)
    if (
        package == "math"
        or names[:1] == _ARRAY[:1]
        or (package == "builtins" and name in _COMPUTING)
    ):
        compute(engine, args)
    found = [
        ask(engine, value, names, frame, node) for value in args
        if names is TEXT or any(v.kind == "instance" or v.level == OUTSIDE for v in value.each())
    ]  # fmt: skip
    return join(found) if package == "operator" or ref in GIVING else None


def encodes(engine: Engine, node: ast.AST, at: int) -> None:
    """Guard the function that handles errors of encoding, named by an argument."""
    if name := handler_of(node, at):
        engine.resolver.watch(Value("scalar", OUTSIDE, name=repr(name), obj=name), "handler")


def assign(
    engine: Engine, base: Value, attr: str, value: Value, frame: Frame, node: ast.AST
) -> bool:
    """Run what ``base.attr = value`` calls: the setter of a property, or ``__setattr__``.

    Say whether a setter of the user's did all of it.
    """
    ran = 0
    for one in base.each():
        if one.kind != "instance":
            continue
        maker = one.bound if one.level != OUTSIDE else None
        local = (maker.fields or {}).get(("setter", attr)) if maker is not None else None
        setter = local.but(bound=one) if local is not None else engine.resolver.setter(one, attr)
        if setter is not None:
            engine.call(setter, [value], {}, frame, node)
            ran += 1
    ask(engine, base, ("__setattr__",), frame, node, [engine.unknown(frame.level), value])
    return ran == len(base.each())


def ask_truth(engine: Engine, node: ast.expr, frame: Frame) -> bool | None:
    """Evaluate an expression of which only the truth counts; return it where it is known."""
    value = read(engine, node, frame)
    ask(engine, value, TRUTH, frame, node)
    if value.holder == LITERAL and not value.others:
        return bool(value.obj)
    return value.obj if is_truth(value) else says_tracing(node, frame)


def is_truth(value: Value) -> bool:
    """Say whether a value is known to be True, or False, while tracing; a constant is guarded."""
    known = value.level != OUTSIDE or (value.constant and value.kind == "scalar")
    return known and not value.others and (value.obj is True or value.obj is False)


#: Of these it is known that they are not None.
_THERE = CONTAINERS | {"function", "class", "module", "instance", "tuple", "array", "ndarray"}


def presumed(engine: Engine, node: ast.Compare, frame: Frame) -> Value | None:
    """Return the truth of ``x is None`` and ``x == "mode"`` for what a caller wrote out.

    And what a file may presume where JAX traces: an argument that is handed in is not None.
    """
    match node:
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=right)]):
            left = frame.env.get(name)
        case _:
            return None
    if left is None or left.others:
        return None
    if left.holder == LITERAL and isinstance(op, (ast.Is, ast.Eq)):
        same: bool | None = left.obj is None if right is None else left.obj == right
    elif left.holder == LITERAL and isinstance(op, (ast.IsNot, ast.NotEq)):
        same = left.obj is None if right is None else left.obj == right
    elif right is None and isinstance(op, (ast.Is, ast.IsNot)):
        handed = left.argument and not left.kind and left.holder != OPTIONAL
        same = False if handed or (left.kind in _THERE and left.level != OUTSIDE) else None
    else:
        same = None
    if same is None:
        return None
    return Value("scalar", frame.level, obj=same is isinstance(op, (ast.Is, ast.Eq)))


def is_none(engine: Engine, node: ast.Compare, frame: Frame) -> Value | None:
    """Return the truth of ``x is None`` where guards tell which object it is."""
    match node:
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op],
            comparators=[ast.Constant(value=None)],
        ):  # fmt: skip
            left = frame.env.get(name)
        case _:
            return None
    if left is None or left.others or left.argument:
        return None
    if left.level == OUTSIDE:
        known = left.constant or (left.kind == "instance" and is_known(left))
        none = left.obj is None
        known = known and left.obj is not ABSENT
    else:
        known, none = left.kind in _THERE, False
    return Value("scalar", frame.level, obj=none is isinstance(op, ast.Is)) if known else None


def same_module(engine: Engine, node: ast.Compare, frame: Frame) -> Value | None:
    """Return the truth of ``xp is jnp``, where it is known which array modules both are."""
    if not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return None
    left, right = engine.expr(node.left, frame), engine.expr(node.comparators[0], frame)
    known = left.constant and right.constant and not left.others and not right.others
    if not known or not left.ref.endswith("numpy") or not right.ref.endswith("numpy"):
        return None
    same = left.ref == right.ref
    return Value("scalar", frame.level, obj=same is isinstance(node.ops[0], ast.Is))


#: What functions and variables are called that tell whether a trace is in progress: it is.
_TRACING = re.compile(r"_*(?:(?:is|in|under)_)?(?:tracing|traced|tracer)\Z")


def says_tracing(node: ast.expr, frame: Frame) -> bool | None:
    """Return the truth of ``tracing`` and ``not is_tracing()``; None of other tests.

    A variable must be the function's own: what others hold is what they hold.
    """
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = says_tracing(inner, frame)
            return None if found is None else not found
        case ast.BoolOp(op=op, values=values):
            decides = isinstance(op, ast.Or)
            parts = [says_tracing(v, frame) for v in values]
            return decides if decides in parts else None
        case ast.Name(id=name):
            own = name in frame.facts.bound or frame.owner(name) is not None
            return True if own and _TRACING.match(name) else None
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return True if _TRACING.match(name) else None
        case _:
            return None


def draw(
    engine: Engine, value: Value, frame: Frame, node: ast.AST, *, explicit: bool = False
) -> None:
    """Check that an object may be iterated over: drawn from, where it is an iterator."""
    ask(engine, value, ITERATED, frame, node)
    for one in value.each():
        name = one.name or "an iterator"
        if one.argument and (explicit or one.kind in ("iterator", "generator", "file")):
            engine.report(rules.ArgumentIterator, frame, node, name)
        elif one.argument:
            continue
        elif one.kind in ("iterator", "generator", "file"):
            if one.level == OUTSIDE:
                engine.report(rules.OuterIterator, frame, node, name)
            elif one.level < frame.level and one.name:
                leak(engine, frame, node, name, "drawn from")
        elif one.level == OUTSIDE and explicit and one.kind in ("", "instance"):
            engine.report(rules.OuterIterator, frame, node, name)
        else:
            use(engine, one, frame, node)


def each_of(
    engine: Engine, value: Value, frame: Frame, node: ast.AST, *, explicit: bool = False
) -> Value:  # fmt: skip
    """Draw from an object; return any element, that of the user's own iteration included."""
    draw(engine, value, frame, node, explicit=explicit)
    element = take_element(engine, value, frame)
    if not any(one.kind == "instance" or one.level == OUTSIDE for one in value.each()):
        return element
    found = [element, ask(engine, value, ("__next__", "__getitem__"), frame, node)]
    made = ask(engine, value, ("__iter__",), frame, node)
    for one in made.each() if made is not None else ():
        found.append(take_element(engine, one, frame))
        if not one.same(value):
            found.append(ask(engine, one, ("__next__",), frame, node))
    return join(found) or element


def item_of(engine: Engine, value: Value, frame: Frame, node: ast.AST) -> Value:
    """Return any item of what is given as a mapping: ``**value``."""
    item = take_element(engine, value, frame)
    ask(engine, value, ("keys",), frame, node)
    return join([item, ask(engine, value, ("__getitem__",), frame, node)]) or item


def returned_by(engine: Engine, value: Value, frame: Frame) -> Value:
    """Return what generators, or coroutines, give at their end: to ``yield from``, to ``await``."""
    ends = (one.bound for one in value.each() if one.kind == "generator" and one.level != OUTSIDE)
    return join(ends) or engine.unknown(frame.level)


def finish(engine: Engine, value: Value, frame: Frame, node: ast.AST) -> None:
    """Read what a generator gives at its end: whoever catches the ``StopIteration`` has it."""
    use_whole(engine, returned_by(engine, value, frame), frame, node)


def leave(
    engine: Engine, value: Value, frame: Frame, node: ast.AST, *, late: bool = False
) -> None:  # fmt: skip
    """Leave a context manager, which is shown what was raised."""
    unknown = engine.unknown(frame.level)
    raised = join(engine.raised) or unknown
    for one in value.each():
        if _is_outer_file(one) or _has_methods(engine, one, _MANAGED[late]):
            method = _method(engine, one, _MANAGED[late][1], frame, node)
            if method is not None and body_of(engine, method) is not None:
                engine.call(method, [unknown, raised, unknown], {}, frame, node)


def _is_outer_file(one: Value) -> bool:
    return one.kind == "file" and one.level == OUTSIDE


#: What ``with`` calls, and what ``async with`` does.
_MANAGED = (("__enter__", "__exit__"), ("__aenter__", "__aexit__"))


def manage(
    engine: Engine, value: Value, frame: Frame, node: ast.AST, *, late: bool = False
) -> Value:  # fmt: skip
    """Enter a context manager, by ``async with`` if it is `late`; return what ``as`` binds."""
    found: list[Value] = []
    for one in value.each():
        if one.kind == "context":
            found.append((one.fields or {})[None])
            continue
        if _is_outer_file(one) or _has_methods(engine, one, _MANAGED[late]):
            enter = _method(engine, one, _MANAGED[late][0], frame, node)
            seen = enter is not None and body_of(engine, enter) is not None
            given = engine.call(enter, [], {}, frame, node) if enter is not None and seen else one
            given = returned_by(engine, given, frame) if late and seen else given
            # What a library's manager was made of it may give: ``contextlib.closing(thing)``.
            found += [given] if seen else [given, *(one.fields or {}).values()]
            if _is_outer_file(one) and not seen:
                engine.report(rules.FileAccess, frame, node, one.name)
        else:
            found.append(one)
    return join(found) or value


def manage_all(engine: Engine, value: Value, frame: Frame, node: ast.AST) -> Value:
    """Enter a context manager and leave it: what an ``ExitStack`` does."""
    entered = manage(engine, value, frame, node)
    leave(engine, value, frame, node)
    return entered
