"""Calls: known effects, transforms, functions of the standard library, functions to enter."""

from __future__ import annotations

import ast

from .. import rules
from ..known import (
    DRAWING,
    FILTERS,
    INDIFFERENT,
    MUTATED_NAMES,
    MUTATING_FUNCTIONS,
    MUTATING_FUNCTIONS_ATTR,
    OUT_AT,
    RESULTS,
    SEEDED,
    SHALLOW,
    VIEWS,
    WRAPPING,
    effect_of,
)
from ..literals import says_no, seeded, text_of
from ..rules import RULES
from ..scopes import Frame, Signature
from ..transforms import Transform, is_host_call, transform_of
from ..values import (
    ABSENT,
    CONTAINERS,
    OUTSIDE,
    PARTIAL_METHOD,
    Fields,
    Function,
    Value,
    join,
    numbered,
)
from . import protocols
from .callbacks import (
    LOOKING,
    body_of,
    call_back,
    callbacks,
    calls_objects,
    excuse,
    is_called,
    look_into,
)
from .entry import LITERAL, OPTIONAL, bind_arguments, construct, enter, trace
from .machine import Engine
from .methods import call_method
from .ownership import fill, is_known, keep, mutate, use, use_all, use_whole
from .parts import from_outside, of_metaclass, take_attribute, take_element
from .protocols import draw, each_of
from .searches import attribute_named, written_names
from .standard import HANDLERS, Call, alike
from .stores import put, wrap

#: What is called itself.
_DIRECT = frozenset({"function", "class", "instance", "property"})
#: What users call a builtin that names another home.
_SHOWN = {"io.open": "open"}
#: Functions whose first argument is called with the others' elements.
_APPLYING = frozenset({"builtins.map", "builtins.filter", "functools.reduce"}) | {
    f"itertools.{k}" for k in ("starmap", "filterfalse", "takewhile", "dropwhile")
}
#: Functions that give what their argument gives, of its own results.
_FOLDING = frozenset({"functools.reduce", "itertools.accumulate", "builtins.iter"})
#: Iterators over tuples of what others give.
_PAIRING = frozenset(
    f"itertools.{k}" for k in ("product", "zip_longest", "combinations", "permutations", "pairwise",
                               "batched", "combinations_with_replacement")
)  # fmt: skip
#: Containers made of pairs of keys and what they hold.
_OF_PAIRS = frozenset({"builtins.dict", "collections.OrderedDict", "collections.defaultdict"})
#: Functions that add, compare or test what they draw.
_COMPARING = frozenset(
    {f"builtins.{k}" for k in ("sum", "min", "max", "sorted", "any", "all", "set", "frozenset")}
)


def call_expr(engine: Engine, node: ast.Call, frame: Frame, used: bool) -> Value:
    """Evaluate a call expression; `used` says whether its value is."""
    callee = engine.expr(node.func, frame)
    engine.named.pop(id(node.func), None)
    args: list[Value] = []
    keywords: dict[str, Value] = {}
    argument = _argument if engine.resolver.presumes else Engine.expr
    for arg in node.args:
        value = argument(engine, arg, frame)
        if isinstance(arg, ast.Starred) or "**" in keywords:  # whichever parameters they become
            keywords["**"] = join([keywords.get("**"), value]) or value
        args.append(value)
    for keyword in node.keywords:
        value = argument(engine, keyword.value, frame)
        if keyword.arg is None:
            use(engine, value, frame, keyword.value)
            if value.level != OUTSIDE and not value.argument:  # ``**{"items": log}``
                given = (value.fields or {}).items()
                keywords.update({k[1]: v for k, v in given if k and isinstance(k[1], str)})
            value = protocols.item_of(engine, value, frame, keyword.value)
        held = keywords.get("**") if keyword.arg is None else None
        keywords[keyword.arg or "**"] = join([held, value]) or value
    if not callee.others:
        return call(engine, callee, args, keywords, frame, node, used=used)
    found = [call(engine, one, args, keywords, frame, node, used=used) for one in callee.each()]
    return join(found) or engine.unknown(frame.level)


def _argument(engine: Engine, node: ast.expr, frame: Frame) -> Value:
    """Evaluate an argument; what is written out decides which way a helper goes."""
    if type(node) is ast.Constant:
        value = node.value
        if value is None or type(value) in (bool, str):
            return Value("scalar", OUTSIDE, obj=value, constant=True, holder=LITERAL)
    return engine.expr(node, frame)


def written(node: ast.AST) -> list[ast.expr]:
    """Return the arguments of a call, as they are written."""
    if not isinstance(node, ast.Call):
        return []
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def call(
    engine: Engine, callee: Value, args: list[Value] | None, keywords: dict[str, Value],
    frame: Frame, node: ast.AST, *, used: bool = True, level: int = 0, label: str = "",
) -> Value:  # fmt: skip
    """Call an object. Arguments None are the tracer's own: the call is a trace."""
    level = level or frame.level
    if callee.kind not in _DIRECT:
        found = _call_through(engine, callee, args, keywords, frame, node, used, level, label)
        if found is not None:
            return found
    if callee.ref and (found := call_known(engine, callee, args or [], keywords, frame, node)):
        return found
    if callee.kind == "class":
        local = callee.level != OUTSIDE
        asked = of_metaclass(engine, callee, "__call__", frame, node) if local else None
        if asked is not None and body_of(engine, asked) is not None:
            return engine.call(asked, args, keywords, frame, node, used=used)
        if found := _make(engine, callee, args, keywords, frame, node):
            return found
    target = body_of(engine, callee)
    if target is None:
        return call_unknown(engine, callee, args or [], keywords, frame, node)
    function, receiver = target
    if is_trusted_by_mark(function):
        return engine.unknown(level)
    bound = bind_arguments(engine, function, receiver, args, keywords, level)
    name = f"{label}({function.name})" if label else function.name
    path = frame.path if callee.kind == "property" else _further(frame.path, name)
    result = enter(engine, function, bound, level, path)
    if callee.keeps:
        # A tracer has no hash: no cache takes one as an argument, and fnarray says so.
        given = [] if engine.resolver.presumes else [*(args or []), *keywords.values()]
        given = [value for value in given if value.holder != OPTIONAL]
        keep(engine, callee, [result, *given], frame, node)
    if callee.kind == "function" and _is_context_manager(function):
        return Value("context", level, fields={None: take_element(engine, result, frame)})
    return result


def _call_through(
    engine: Engine, callee: Value, args: list[Value] | None, keywords: dict[str, Value],
    frame: Frame, node: ast.AST, used: bool, level: int, label: str,
) -> Value | None:  # fmt: skip
    """Call what stands for a call of something else; None for what is called itself."""
    if callee.kind == "partial" and callee.bound is not None:
        fields = callee.fields or {}
        fixed = [v for k, v in fields.items() if isinstance(k, tuple)]
        named = {k: v for k, v in fields.items() if isinstance(k, str)}
        if callee.ref == PARTIAL_METHOD and args:  # of the class: the object comes first
            fixed, args = [args[0], *fixed], args[1:]
        if args is None:
            return engine.call(callee.bound, None, {**named, "": _pack(fixed)}, frame, node,
                             level=level, label=label)  # fmt: skip
        return engine.call(callee.bound, [*fixed, *args], {**named, **keywords}, frame, node,
                         used=used, level=level)  # fmt: skip
    if callee.kind == "traced":
        return engine.unknown(level)
    if callee.kind == "weak" and callee.bound is not None:  # a weak reference gives its object
        return from_outside(engine, callee.bound, frame, node)
    if callee.kind == "getter" and args:
        return get_by_name(engine, callee, args[0], frame, node)
    if callee.kind == "member" and callee.bound is not None:
        whole = callee.bound.bound if callee.bound.kind == "super" else None
        if whole is not None and whole.kind == "class" and callee.name.endswith("__call__"):
            found = _make(engine, whole, args, keywords, frame, node)  # what ``type`` does
            return found or construct(engine, whole, None, args, keywords, frame, node)
        if args and callee.name.endswith("__getattribute__") and isinstance(node, ast.Call):
            return attribute_named(engine, callee.bound, node.args[0], frame, node)
        return call_method(engine, callee, args or [], keywords, frame, node, used)
    return None


def _make(
    engine: Engine, cls: Value, args: list[Value] | None, keywords: dict[str, Value],
    frame: Frame, node: ast.AST,
) -> Value | None:  # fmt: skip
    """Make an object of a class of the user's; None where something else answers the call."""
    made: Value | None = None
    new = take_attribute(engine, cls, "__new__", frame, node)
    if body_of(engine, new) is not None:
        made = engine.call(new.but(bound=None), [cls, *(args or [])], keywords, frame, node)
        if not any(one.level == OUTSIDE or one.fields for one in made.each()):
            made = None  # of which nothing is known but its class
    if cls.level != OUTSIDE:
        init = take_attribute(engine, cls, "__init__", frame, node)
    else:
        _supply(engine, cls, args or [], keywords, frame, node)
        target = body_of(engine, cls)
        if target is None or target[1] is not None:
            _begin(engine, cls, frame, node)
            return None
        init = Value("function", OUTSIDE, name=cls.name, function=target[0])
    return join([construct(engine, cls, init, args, keywords, frame, node), made])


def _begin(engine: Engine, cls: Value, frame: Frame, node: ast.AST) -> None:
    """Report what a library's class above is known for, whose ``__init__`` it is: a bar's."""
    if engine.resolver.is_open(cls):
        init = take_attribute(engine, cls, "__init__", frame, node)
        made = init.bound if init.kind == "partial" and init.bound is not None else init
        if code := effect_of(made.ref):
            engine.report(RULES[code], frame, node, cls.name)


def _supply(
    engine: Engine, cls: Value, args: list[Value], keywords: dict[str, Value],
    frame: Frame, node: ast.AST,
) -> None:  # fmt: skip
    """Call what makes those of an instance's fields that are left out, and what takes one apart."""
    for (use_of, place), one in (cls.fields or {}).items():
        if use_of == "made" and (place[0] < len(args) or place[1] in keywords):
            continue
        if use_of == "made" and (one.kind == "class" or effect_of(one.ref)):
            use_whole(engine, engine.call(one, [], {}, frame, node), frame, node)
        elif use_of != "default":
            callbacks(engine, [one], frame, node)


def _further(path: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the way to a function that is called: what calls itself in a circle is said once."""
    again = name in path
    path = (*path, name)
    if not again:
        return path
    for size in range(1, len(path) // 2 + 1):
        if path[-size:] == path[-2 * size : -size]:
            return path[:-size]
    return path


def get_by_name(engine: Engine, getter: Value, whole: Value, frame: Frame, node: ast.AST) -> Value:
    """Call what ``operator.attrgetter`` made, or ``methodcaller``, whose arguments it has."""
    taken: list[Value] = []
    for path in getter.name.split():
        value = whole
        for attr in path.split("."):
            value = take_attribute(engine, value, attr, frame, node)
        taken.append(value)
    if getter.origin is not None and not getter.name:
        made, call = getter.origin
        names = call.args if isinstance(call, ast.Call) else ()
        names = names[:1] if getter.fields is not None else names
        taken = [attribute_named(engine, whole, n, made, node, handed=True) for n in names]
    if getter.fields is not None:
        given = list(getter.fields.values())
        taken = [
            join([engine.call(one, given, {}, frame, node) for one in value.each()]) or value
            for value in taken
        ]
    use_all(engine, taken, frame, node)
    return taken[0] if len(taken) == 1 else Value("tuple", frame.level, fields=numbered(taken))


def call_known(
    engine: Engine, callee: Value, args: list[Value], keywords: dict[str, Value],
    frame: Frame, node: ast.AST,
) -> Value | None:  # fmt: skip
    """Call a function of which the name says what it does; None for any other."""
    ref = callee.ref
    if is_dull(ref):
        return None
    transform = transform_of(ref)
    if transform is not None:
        return call_transform(engine, transform, args, keywords, frame, node)
    if is_host_call(ref):
        excuse(engine, [*args, *keywords.values()])
        engine.forget(*written(node))
        # ``debug.callback(ordered=True)`` is given the function by a second call.
        return engine.unknown(frame.level) if args else Value("function", frame.level, ref=ref)
    if ref.endswith(".assume_pure"):
        engine.forget(*written(node))
        return Value("function", frame.level)
    if ref in MUTATED_NAMES and MUTATED_NAMES[ref] in keywords:
        mutate(engine, keywords[MUTATED_NAMES[ref]], frame, node, ref.rpartition(".")[2])
    at = MUTATING_FUNCTIONS.get(ref, len(args))
    if at < len(args):
        mutate(engine, args[at], frame, node, ref.rpartition(".")[2])
        protocols.ask_parts(engine, args[at], protocols.asking(ref), frame, node)
        use_all(engine, args[at + 1 :], frame, node)
        for value in args[at + 1 :]:  # ``heappush``
            put(engine, args[at], None, value)
        if code := effect_of(ref):  # ``random.shuffle``
            engine.report(RULES[code], frame, node, ref, given=args)
        return take_element(engine, args[at], frame)
    if ref in MUTATING_FUNCTIONS_ATTR and args:
        name = text_of(node, 1) or "<computed>"
        mutate(engine, args[0], frame, node, name, args[2:], attribute=True)
        for value in args[2:3]:
            for key in written_names(node, frame):
                put(engine, args[0], key, value)
        return engine.unknown(frame.level)
    if ref == "warnings.catch_warnings":
        return Value("catching", frame.level)
    code = effect_of(ref)
    if engine.catching and ref in FILTERS:
        code = ""
    if code and not (code == "FNA311" and _to_local(keywords.get("file"))):
        if code not in ("FNA314", "FNA315") or ref in ("os.getenv", "os.getpid"):
            shown = _SHOWN.get(ref) or ref.removeprefix("builtins.")
            engine.report(RULES[code], frame, node, shown, given=args)
        use_all(engine, args, frame, node)
        return engine.unknown(frame.level)
    if ref in OUT_AT:
        for value in args[OUT_AT[ref] :][:1]:
            mutate(engine, value, frame, node, "out")
    if ref == "numpy.datetime64" and text_of(node) in ("now", "today"):
        engine.report(rules.Clock, frame, node, ref)
    if ref in SEEDED and not seeded(node):
        engine.report(rules.Random, frame, node, f"{ref} without a seed")
    return call_builtin(engine, ref, args, keywords, frame, node)


#: Whether a name tells nothing of a function, but the effect that it may be known for.
_dull: dict[str, bool] = {}


def is_dull(ref: str) -> bool:
    """Say whether a function of that name does nothing but with its arguments: it is in no table.

    Most calls are of such: the tables are looked through once for each name.
    """
    dull = _dull.get(ref)
    if dull is None:
        known = (
            MUTATING_FUNCTIONS, MUTATING_FUNCTIONS_ATTR, FILTERS, OUT_AT, SEEDED, HANDLERS,
            INDIFFERENT, WRAPPING, DRAWING, RESULTS, protocols.GIVING, protocols.WRITING, LOOKING,
        )  # fmt: skip
        dull = _dull[ref] = (
            transform_of(ref) is None and not is_host_call(ref)
            and not any(ref in table for table in known)
            and not ref.startswith(("builtins.", "operator.", "warnings.", "numpy."))
            and not ref.endswith(".assume_pure")
        )  # fmt: skip
    return dull and not effect_of(ref)


def call_builtin(
    engine: Engine, ref: str, args: list[Value], keywords: dict[str, Value],
    frame: Frame, node: ast.AST,
) -> Value | None:  # fmt: skip
    """Call a function of the standard library that moves objects around."""
    level = frame.level
    handler = HANDLERS.get(ref)
    if handler is not None:
        found = handler(engine, Call(ref, args, keywords, frame, node))
        if found is not None:
            return found
    if ref in INDIFFERENT:
        engine.forget(*written(node))
        use_all(engine, (v for v in args if not is_known(v)), frame, node)
        return engine.unknown(level)
    given = protocols.asked_by(engine, ref, args, frame, node)
    if ref in WRAPPING or ref in DRAWING:
        found = gather(engine, ref, args, keywords, frame, node)
        return join([found, given]) or found
    if given is not None:
        use_all(engine, args, frame, node)
        return given
    kind = RESULTS.get(ref)
    views = ref[:6] == "numpy." and (ref[6:] in VIEWS or says_no(node, "copy"))
    if views and args and _is_outer_array(args[0]):
        use_all(engine, [*args, *keywords.values()], frame, node)
        return args[0]
    if kind is None:
        return None
    for value in (*args, *keywords.values()):
        use_whole(engine, value, frame, node)
    callbacks(engine, [*args, *keywords.values()], frame, node, objects=calls_objects(ref))
    if ref.startswith("numpy."):
        fill(engine, keywords, frame, node)
    held: Fields | None = None if kind in ("scalar", "frozen") else {}
    if ref in SHALLOW and args and held is not None:
        parts = [take_element(engine, one, frame) for one in args]
        if ref == "collections.defaultdict" and body_of(engine, args[0]) is not None:
            parts[0] = engine.call(args[0], [], {}, frame, node)
        several = ref in ("collections.ChainMap", "collections.defaultdict")
        held[None] = _drawn(engine, ref, parts if several else parts[:1], frame)
    if kind == "logger":  # whose level, handlers and filters are everybody's
        return Value(kind, OUTSIDE, name=f"{ref}(...)")
    return Value(kind, level, fields=held)


def gather(
    engine: Engine, ref: str, args: list[Value], keywords: dict[str, Value],
    frame: Frame, node: ast.AST,
) -> Value:  # fmt: skip
    """Call a function that iterates over its arguments, now or later."""
    parts: list[Value] = []
    calls = [a for a in args if is_called(engine, a)]
    calling = ref in _APPLYING or (ref == "builtins.iter" and len(args) > 1)
    if calling and args and args[0] not in calls:
        calls.append(args[0])
    for i, value in enumerate(args):
        if any(value is c for c in calls):
            continue
        at = node.args[i] if isinstance(node, ast.Call) and i < len(node.args) else node
        if ref == "functools.reduce" and i == 2:  # where it starts: nobody draws from that
            parts.append(value)
            continue
        parts.append(each_of(engine, value, frame, at))
    if "fillvalue" in keywords:
        parts.append(keywords["fillvalue"])
    if ref == "builtins.zip":
        inner = Value("tuple", frame.level, fields=numbered(parts))
    elif ref == "builtins.enumerate" and parts:
        inner = Value(
            "tuple", frame.level, fields=numbered([engine.unknown(frame.level), *parts[:1]])
        )
    else:
        inner = _drawn(engine, ref, parts, frame)
    handed = (v for k, v in keywords.items() if k == "key" or is_called(engine, v))
    for one in (*calls, *handed):
        given = parts if ref in ("builtins.map", "itertools.starmap") else [inner, inner]
        if ref == "itertools.starmap" and parts:
            given = list((parts[0].fields or {}).values()) or parts
        result = call_back(engine, one, given, frame, node)
        if ref in ("builtins.map", "itertools.starmap"):
            inner = result
        elif ref in _FOLDING:
            inner = join([result, inner]) or result
        else:  # a key, a condition
            use(engine, result, frame, node)
            protocols.ask(engine, result, protocols.COMPARED, frame, node)
    kind = RESULTS.get(ref, "")
    if ref in ("builtins.tuple", "builtins.frozenset"):
        kind = "tuple"
    if ref in _COMPARING:
        for part in parts:
            use(engine, part, frame, node)
            protocols.ask(engine, part, protocols.COMPARED, frame, node)
    if ref in ("builtins.min", "builtins.max"):
        others = [v for k, v in keywords.items() if k == "default"]
        return join([engine.unknown(frame.level), *parts, *others]) or inner
    if ref == "functools.reduce":
        return inner
    if ref == "builtins.sum":
        return engine.unknown(frame.level)
    source = args[0] if kind in CONTAINERS and len(args) == 1 else None
    held: Fields = {None: inner} if parts or calls or ref not in _OF_PAIRS else {}
    if ref in _OF_PAIRS:
        held |= {("item", key): value for key, value in keywords.items()}
    return Value(kind, frame.level, fields=held if kind else None, bound=source)


def _drawn(engine: Engine, ref: str, parts: list[Value], frame: Frame) -> Value:
    """Return what is drawn from iterators, or kept, of which these are elements."""
    inner = join(parts) or engine.unknown(frame.level)
    if ref.endswith("from_iterable"):
        return take_element(engine, inner, frame)
    if ref in _PAIRING:
        return Value("tuple", frame.level, fields={None: inner})
    if ref == "itertools.groupby":
        group = Value("iterator", frame.level, fields={None: inner})
        return Value("tuple", frame.level, fields=numbered([engine.unknown(frame.level), group]))
    if ref in _OF_PAIRS:  # ``dict(zip(names, functions))``: what it holds is the second of each
        pairs = [v.fields for v in inner.each() if v.kind == "tuple" and v.fields]
        return join([pair["item", 1] for pair in pairs if ("item", 1) in pair]) or inner
    return inner


def call_transform(
    engine: Engine, transform: Transform, args: list[Value], keywords: dict[str, Value],
    frame: Frame, node: ast.AST,
) -> Value:  # fmt: skip
    """Trace the callbacks of a transform, in a trace of their own."""
    traced: list[Value] = []
    for position, names in transform.slots:
        if position is not None and position < len(args):
            traced.append(args[position])
        traced += [keywords[name] for name in names if name in keywords]
    carried = None
    if transform.carry is not None and transform.carry[0] < len(args):
        start, position = transform.carry
        carried = args[start].kind, position
    for value in traced:
        trace(engine, value, transform.name, frame, node, carried)
    others = [v for v in (*args, *keywords.values()) if not any(v is t for t in traced)]
    use_all(engine, others, frame, node)
    if transform.now:
        return engine.unknown(frame.level)
    return Value("traced", frame.level, name=transform.name, bound=traced[0] if traced else None)


def call_unknown(
    engine: Engine, callee: Value, args: list[Value], keywords: dict[str, Value],
    frame: Frame, node: ast.AST,
) -> Value:  # fmt: skip
    """Call what cannot be seen: it reads its arguments, and calls those that are functions."""
    everything = [*args, *keywords.values()]
    if (
        callee.kind == "function"
        and not callee.fields
        and callee.bound is None
        and "out" not in keywords
        and is_dull(callee.ref)
        and all(value.is_plain() for value in everything)
    ):
        # It is given numbers and arrays: to read them is no effect, and nothing of them is called.
        for value in everything:
            if value.level == OUTSIDE or value.others:
                use(engine, value, frame, node)
        return engine.array(frame.level) if ".numpy." in callee.ref else engine.unknown(frame.level)
    if args and callee.ref == "contextlib.enter_context":
        return protocols.manage_all(engine, args[0], frame, node)
    if callee.kind == "wraps":
        if args and callee.bound is not None:
            return wrap(engine, args[0], callee.bound, frame, node)
        return args[0] if args else engine.unknown(frame.level)
    if callee.kind or callee.holder != "attribute":
        # An attribute that is called is a function, whatever else is not known of it.
        use(engine, callee, frame, node)
    fill(engine, keywords, frame, node)
    if callee.bound is not None and callee.kind == "function":
        use(engine, callee.bound, frame, node)  # a method that nobody enters
    if callee.fields and callee.level == OUTSIDE and callee.kind in ("frozen", "function"):
        callbacks(engine, list(callee.fields.values()), frame, node)
    for value in everything:
        use_whole(engine, value, frame, node)
    protocols.asked_by(engine, callee.ref, everything, frame, node)
    package = callee.ref.partition(".")[0]
    if package not in ("fnarray", "jax") or "tree" in callee.ref:
        for value in everything:
            if value.level == OUTSIDE and value.kind in ("iterator", "generator"):
                draw(engine, value, frame, node)
    if callee.ref in LOOKING:
        look_into(engine, everything, frame, node)
        engine.forget(*written(node))
    else:
        callbacks(engine, everything, frame, node, objects=calls_objects(callee.ref))
    if callee.kind == "class" and callee.level == OUTSIDE and callee.obj is not ABSENT:
        members = join(engine.resolver.items(callee) or ())  # of an enumeration, by its value
        if members is not None:
            engine.resolver.watch(callee, "values")
            missing = take_attribute(engine, callee, "_missing_", frame, node)
            if body_of(engine, missing) is not None:
                engine.call(missing, args[:1], {}, frame, node)
            return members
    if callee.name.endswith("._replace") and callee.bound is not None:
        made = alike(engine, callee.bound, frame, node)
        if made is not None:
            return made
    if callee.kind == "class":
        return construct(engine, callee, None, args, keywords, frame, node)
    return engine.array(frame.level) if ".numpy." in callee.ref else engine.unknown(frame.level)


def _is_outer_array(value: Value) -> bool:
    return any(v.kind == "ndarray" and v.level == OUTSIDE for v in value.each())


def _pack(values: list[Value]) -> Value:
    return Value("tuple", 1, fields=numbered(values))


def is_trusted_by_mark(function: Function) -> bool:
    """Say whether ``@assume_pure`` stands above a function."""
    return "assume_pure" in Signature.of(function.node).marks


def _is_context_manager(function: Function) -> bool:
    return "contextmanager" in Signature.of(function.node).marks


def _to_local(file: Value | None) -> bool:
    return file is not None and all(v.level != OUTSIDE for v in file.each())
