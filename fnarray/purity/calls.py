"""Calls: known effects, methods that change their receiver, transforms, and functions to enter."""

from __future__ import annotations

import ast
from typing import Any, cast

from . import protocols, rules
from .known import (
    ARRAY_MUTATORS,
    DRAWING,
    FILTERS,
    INDIFFERENT,
    MUTATING_FUNCTIONS,
    MUTATING_FUNCTIONS_ATTR,
    MUTATORS,
    OUT_AT,
    QUIET_ON_UNKNOWN,
    RESULTS,
    SEEDED,
    SHALLOW,
    WRAPPING,
    effect_of,
    is_host_call,
    tracer_of,
)
from .literals import seeded, text_of
from .rules import RULES
from .scopes import Frame
from .standard import HANDLERS, Call, numbered
from .values import CONTAINERS, DRAWN, OUTSIDE, Function, Value, join

Fields = dict[Any, Value]

_LOGGERS = frozenset(
    {"debug", "info", "warning", "warn", "error", "critical", "exception", "log", "fatal"}
)
_IMMUTABLE = frozenset({"scalar", "frozen", "tuple", "array", "module", "class", "function"})
#: Methods that draw all that their argument has.
_TAKES_ALL = frozenset({"extend", "extendleft", "update"})
#: Functions that add, compare or test what they draw.
_COMPARING = frozenset(
    {f"builtins.{k}" for k in ("sum", "min", "max", "sorted", "any", "all", "set", "frozenset")}
)


class Calls:
    """The part of the engine that runs calls."""

    def call_expr(self: Any, node: ast.Call, frame: Frame, used: bool) -> Value:
        """Evaluate a call expression; `used` says whether its value is."""
        callee = self.expr(node.func, frame)
        args = [self.expr(arg, frame) for arg in node.args]
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.expr(keyword.value, frame)
            if keyword.arg is None:
                self.use(value, frame, keyword.value)
                if value.level != OUTSIDE and not value.argument:  # ``**{"items": log}``
                    given = (value.fields or {}).items()
                    keywords.update({k[1]: v for k, v in given if k and isinstance(k[1], str)})
                value = self.element(value, frame)
            keywords[keyword.arg or "**"] = value
        found = [self.call(one, args, keywords, frame, node, used=used) for one in callee.each()]
        return join(found) or self.unknown(frame.level)

    def call(
        self: Any, callee: Value, args: list[Value] | None, keywords: dict[str, Value],
        frame: Frame, node: ast.AST, *, used: bool = True, level: int = 0, label: str = "",
    ) -> Value:  # fmt: skip
        """Call an object. Arguments None are the tracer's own: the call is a trace."""
        level = level or frame.level
        if callee.kind == "partial" and callee.bound is not None:
            fields = callee.fields or {}
            fixed = [v for k, v in fields.items() if isinstance(k, tuple)]
            named = {k: v for k, v in fields.items() if isinstance(k, str)}
            if args is None:
                return self.call(callee.bound, None, {**named, "": _pack(fixed)}, frame, node,
                                 level=level, label=label)  # fmt: skip
            return self.call(callee.bound, [*fixed, *args], {**named, **keywords}, frame, node,
                             used=used, level=level)  # fmt: skip
        if callee.kind == "traced":
            return self.unknown(level)
        if callee.kind == "getter" and args:
            value = args[0]
            for attr in callee.name.split("."):
                value = self.attribute(value, attr, frame, node)
            self.use(value, frame, node)
            return value
        if callee.kind == "member" and callee.bound is not None:
            return self.call_method(callee, args or [], keywords, frame, node, used)
        if callee.ref and (found := self.call_known(callee, args or [], keywords, frame, node)):
            return found
        if callee.kind == "class":
            new = self.attribute(callee, "__new__", frame, node)
            if self.body(new) is not None:
                self.call(new.but(bound=None), [callee, *(args or [])], keywords, frame, node)
        if callee.kind == "class" and callee.level != OUTSIDE:
            return self.construct(
                callee, cast("Fields", callee.fields).get("__init__"), args, keywords, frame, node
            )
        target = self.body(callee)
        if target is None:
            return self.call_unknown(callee, args or [], keywords, frame, node)
        function, receiver = target
        if callee.kind == "class":
            maker = Value("function", OUTSIDE, name=callee.name, function=function)
            return self.construct(callee, maker, args, keywords, frame, node)
        if is_trusted_by_mark(function):
            return self.unknown(level)
        bound = self.bind_arguments(function, receiver, args, keywords, level)
        name = f"{label}({function.name})" if label else function.name
        path = frame.path if callee.kind == "property" else (*frame.path, name)
        result = self.enter(function, bound, level, path)
        if callee.keeps:
            self.keep(callee, [result, *(args or []), *keywords.values()], frame, node)
        if callee.kind == "function" and _is_context_manager(function):
            return Value("context", level, fields={None: self.element(result, frame)})
        return result

    def keep(self: Any, callee: Value, values: list[Value], frame: Frame, node: ast.AST) -> None:
        """Report a cache from outside that would hold a tracer: an argument, or a result."""
        owner = callee.bound if callee.bound is not None else callee
        traced = any(
            v.argument or v.kind == "array" for value in values for v in value.each()
            if v.level != OUTSIDE
        )  # fmt: skip
        if traced and owner.level == OUTSIDE:
            self.report(rules.CapturedMutation, frame, node, callee.name, "keeps a traced value")

    def body(self: Any, callee: Value) -> tuple[Function, Value | None] | None:
        """Return what a call of an object enters, and its receiver."""
        if callee.function is not None and callee.kind != "class":
            return callee.function, callee.bound
        if callee.kind == "instance" and callee.level != OUTSIDE and callee.bound is not None:
            fields = callee.bound.fields or {}
            method = fields.get("__call__")
            if callee.bound.level == OUTSIDE:
                method = self.resolver.attribute(callee.bound, "__call__")
            return self.body(method.but(bound=callee)) if method is not None else None
        return self.resolver.follow(callee) if callee.level == OUTSIDE else None

    def bind_arguments(
        self: Any, function: Function, receiver: Value | None, args: list[Value] | None,
        keywords: dict[str, Value], level: int,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the values of parameters; those that a tracer supplies are left out."""
        spec = function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        fixed = keywords.get("")
        given = [receiver] if receiver is not None else []
        given += list(fixed.fields.values()) if fixed is not None and fixed.fields else []
        given += args or []
        bound = dict(zip(names, given, strict=False))
        bound.update({k: v for k, v in keywords.items() if k in names or k in _keyword_only(spec)})
        if args is None:
            return bound
        rest = given[len(names) :]
        if spec.vararg is not None:
            bound[spec.vararg.arg] = Value("tuple", level, fields=numbered(rest))
        if spec.kwarg is not None:
            extra = {("item", k): v for k, v in keywords.items() if k not in bound}
            bound[spec.kwarg.arg] = Value("dict", level, fields=extra)
        for name in (*names, *_keyword_only(spec)):
            if name not in bound:
                default = function.defaults.get(name)
                if default is None:
                    bound[name] = self.unknown(level)
                else:  # what was named where the function was defined keeps that name and place
                    bound[name] = default if default.origin else default.but(name=name)
        return bound

    def construct(
        self: Any, maker: Value, init: Value | None, args: list[Value] | None,
        keywords: dict[str, Value], frame: Frame, node: ast.AST,
    ) -> Value:  # fmt: skip
        """Make an instance, and run its ``__init__``."""
        fields: Fields = {}
        made = Value("instance", frame.level, bound=maker, fields=fields)
        if init is not None and init.function is not None:
            bound = self.bind_arguments(init.function, made, args or [], keywords, frame.level)
            self.enter(init.function, bound, frame.level, (*frame.path, maker.name))
        else:
            for key, value in (*enumerate(args or ()), *keywords.items()):
                self.hold(value, frame, node)
                fields[key if isinstance(key, str) else None] = value
        return made

    # --- functions known by name ---

    def call_known(
        self: Any, callee: Value, args: list[Value], keywords: dict[str, Value],
        frame: Frame, node: ast.AST,
    ) -> Value | None:  # fmt: skip
        """Call a function of which the name says what it does; None for any other."""
        ref = callee.ref
        tracer = tracer_of(ref)
        if tracer is not None:
            return self.call_transform(tracer, args, keywords, frame, node)
        if is_host_call(ref):
            self.excuse([*args, *keywords.values()])
            # ``debug.callback(ordered=True)`` is given the function by a second call.
            return self.unknown(frame.level) if args else Value("function", frame.level, ref=ref)
        if ref.endswith(".assume_pure"):
            return Value("function", frame.level)
        if ref in MUTATING_FUNCTIONS and args:
            self.mutate(args[MUTATING_FUNCTIONS[ref]], frame, node, ref.rpartition(".")[2])
            self.use_all(args[1:], frame, node)
            return self.unknown(frame.level)
        if ref in MUTATING_FUNCTIONS_ATTR and args:
            self.mutate(args[0], frame, node, ref.rpartition(".")[2], attribute=True)
            return self.unknown(frame.level)
        if ref == "warnings.catch_warnings":
            return Value("catching", frame.level)
        code = effect_of(ref)
        if self.catching and ref in FILTERS:
            code = ""
        if code and not (code == "FNA311" and _to_local(keywords.get("file"))):
            if code not in ("FNA314", "FNA315") or ref in ("os.getenv", "os.getpid"):
                shown = ref.removeprefix("builtins.")
                self.report(RULES[code], frame, node, shown)
            self.use_all(args, frame, node)
            return self.unknown(frame.level)
        if ref in OUT_AT:
            for value in args[OUT_AT[ref] :][:1]:
                self.mutate(value, frame, node, "out")
        if ref == "numpy.datetime64" and text_of(node) in ("now", "today"):
            self.report(rules.Clock, frame, node, ref)
        if ref in SEEDED and not seeded(node):
            self.report(rules.Random, frame, node, f"{ref} without a seed")
        return self.call_builtin(ref, args, keywords, frame, node)

    def call_builtin(
        self: Any, ref: str, args: list[Value], keywords: dict[str, Value],
        frame: Frame, node: ast.AST,
    ) -> Value | None:  # fmt: skip
        """Call a function of the standard library that moves objects around."""
        level = frame.level
        handler = HANDLERS.get(ref)
        if handler is not None:
            found = handler(self, Call(ref, args, keywords, frame, node))
            if found is not None:
                return found
        if ref in INDIFFERENT:
            return self.unknown(level)
        protocols.asked_by(self, ref, args, frame, node)
        if ref in WRAPPING or ref in DRAWING:
            return self.gather(ref, args, keywords, frame, node)
        kind = RESULTS.get(ref)
        if kind is None:
            return None
        self.use_all([*args, *keywords.values()], frame, node)
        self.callbacks([*args, *keywords.values()], frame, node)
        if ref.startswith("numpy.") and "out" in keywords:
            self.mutate(keywords["out"], frame, node, "out=")
        held: Fields | None = {} if kind not in ("scalar", "frozen") else None
        if ref in SHALLOW and args and held is not None:
            held[None] = self.element(args[0], frame)
        return Value(kind, level, fields=held)

    def gather(
        self: Any, ref: str, args: list[Value], keywords: dict[str, Value],
        frame: Frame, node: ast.AST,
    ) -> Value:  # fmt: skip
        """Call a function that iterates over its arguments, now or later."""
        parts = []
        calls = [a for a in args if self.is_callable(a)]
        for i, value in enumerate(args):
            if any(value is c for c in calls):
                continue
            at = node.args[i] if isinstance(node, ast.Call) and i < len(node.args) else node
            self.draw(value, frame, at)
            parts.append(self.element(value, frame))
        if ref == "builtins.zip":
            inner = Value("tuple", frame.level, fields=numbered(parts))
        elif ref == "builtins.enumerate" and parts:
            inner = Value(
                "tuple", frame.level, fields=numbered([self.unknown(frame.level), *parts[:1]])
            )
        else:
            inner = join(parts) or self.unknown(frame.level)
        for one in (*calls, *(v for v in keywords.values() if self.is_callable(v))):
            given = parts if ref in ("builtins.map", "itertools.starmap") else [inner, inner]
            result = self.call_back(one, given, frame, node)
            inner = result if ref in ("builtins.map", "itertools.starmap") else inner
        kind = RESULTS.get(ref, "")
        if ref in ("builtins.tuple", "builtins.frozenset"):
            kind = "tuple"
        if ref in _COMPARING:
            for part in parts:
                self.use(part, frame, node)
        if ref in ("builtins.min", "builtins.max"):
            return join([self.unknown(frame.level), *parts]) or inner
        if ref == "builtins.sum":
            return self.unknown(frame.level)
        return Value(kind, frame.level, fields={None: inner} if kind else None)

    def call_transform(
        self: Any, tracer: tuple[str, tuple[int | str, ...], bool], args: list[Value],
        keywords: dict[str, Value], frame: Frame, node: ast.AST,
    ) -> Value:  # fmt: skip
        """Trace the callbacks of a transform, in a trace of their own."""
        short, where, now = tracer
        traced = [
            args[w] if isinstance(w, int) else keywords[w]
            for w in where
            if (isinstance(w, int) and w < len(args)) or w in keywords
        ]
        for value in traced:
            self.trace(value, short, frame, node)
        others = [v for v in (*args, *keywords.values()) if not any(v is t for t in traced)]
        self.use_all(others, frame, node)
        if now:
            return self.unknown(frame.level)
        return Value("traced", frame.level, name=short, bound=traced[0] if traced else None)

    # --- methods ---

    def call_method(
        self: Any, member: Value, args: list[Value], keywords: dict[str, Value],
        frame: Frame, node: ast.AST, used: bool,
    ) -> Value:  # fmt: skip
        """Call a method of an object that has no body to enter."""
        base, name = cast("Value", member.bound), member.name.rpartition(".")[2]
        if base.kind == "logger" and name in _LOGGERS:
            self.report(rules.Logging, frame, node, member.name)
            return self.unknown(frame.level)
        if (base.kind in DRAWN and base.level == OUTSIDE) or (base.argument and base.kind == "rng"):
            rule = {"rng": rules.OuterGenerator, "file": rules.FileAccess}.get(
                base.kind, rules.OuterIterator
            )
            self.report(rule, frame, node, base.name)
            return self.unknown(frame.level)
        if name in ("__next__", "send") and (base.kind in DRAWN or base.argument):
            self.draw(base, frame, node, explicit=True)
        if base.kind == "traced" and name.startswith(("def", "custom")):
            for value in args:
                self.trace(value, name, frame, node)
            return self.unknown(frame.level)
        if base.kind == "ndarray":
            if name in ARRAY_MUTATORS:
                self.mutate(base, frame, node, name)
            else:
                self.use(base, frame, node)
        elif self.changes(base, name, args, keywords, used):
            self.mutate(base, frame, node, name)
            for value in args if name in _TAKES_ALL else ():
                if any(v.kind in DRAWN for v in value.each()):
                    self.draw(value, frame, node)
        else:
            self.use(base, frame, node)
        if "out" in keywords:
            self.mutate(keywords["out"], frame, node, "out=")
        if base.fields is not None and base.level != OUTSIDE and name in MUTATORS:
            for value in (*args, *keywords.values()):
                inner = self.element(value, frame) if name in ("extend", "update") else value
                self.hold(value, frame, node)
                self.put(base, None, inner)
        else:
            self.use_all([*args, *keywords.values()], frame, node)
        self.callbacks([*args, *keywords.values()], frame, node)
        return self.result_of_method(base, name, args, frame)

    def changes(
        self: Any, base: Value, name: str, args: list[Value], keywords: dict[str, Value], used: bool
    ) -> bool:
        """Say whether a method changes its receiver: by its kind, or else by how it is called."""
        if name not in MUTATORS or base.kind in _IMMUTABLE:
            return False
        if base.kind in CONTAINERS:
            return name not in ("read", "readline") or base.level == OUTSIDE
        if base.kind in DRAWN or name in QUIET_ON_UNKNOWN or base.kind in ("super", "traced"):
            return False
        fewest, most, silent = MUTATORS[name]
        if not fewest <= len(args) <= most or (used and silent):
            return False
        return name == "update" or not keywords

    def result_of_method(
        self: Any, base: Value, name: str, args: list[Value], frame: Frame
    ) -> Value:
        """Return what a container's method gives."""
        if name in ("get", "pop", "setdefault", "popleft", "popitem"):
            part = self.element(base, frame)
            return join([part, *args[1:2]]) or part
        if name in ("values", "elements"):
            return Value("frozen", frame.level, fields={None: self.element(base, frame)})
        if name == "items":
            key, part = self.unknown(frame.level), self.element(base, frame)
            pair = Value("tuple", frame.level, fields=numbered([key, part]))
            return Value("frozen", frame.level, fields={None: pair})
        if name == "copy" and (base.kind in CONTAINERS or base.kind == "ndarray"):
            return Value(base.kind, frame.level, fields={None: self.element(base, frame)})
        return self.unknown(frame.level)

    # --- the rest ---

    def call_unknown(
        self: Any, callee: Value, args: list[Value], keywords: dict[str, Value],
        frame: Frame, node: ast.AST,
    ) -> Value:  # fmt: skip
        """Call what cannot be seen: it reads its arguments, and calls those that are functions."""
        if callee.kind == "wraps":
            return args[0] if args else self.unknown(frame.level)
        if callee.kind or callee.holder != "attribute":
            # An attribute that is called is a function, whatever else is not known of it.
            self.use(callee, frame, node)
        if "out" in keywords:
            self.mutate(keywords["out"], frame, node, "out=")
        everything = [*args, *keywords.values()]
        if callee.bound is not None and callee.kind == "function":
            self.use(callee.bound, frame, node)  # a method that nobody enters
        if callee.fields and callee.level == OUTSIDE and callee.kind in ("frozen", "function"):
            self.callbacks(list(callee.fields.values()), frame, node)
        self.use_all(everything, frame, node)
        protocols.asked_by(self, callee.ref, everything, frame, node)
        if callee.ref.partition(".")[0] not in ("fnarray", "jax") or "tree" in callee.ref:
            for value in everything:
                if value.level == OUTSIDE and value.kind in ("iterator", "generator"):
                    self.draw(value, frame, node)
        self.callbacks(everything, frame, node)
        if callee.kind == "class":
            return self.construct(callee, None, args, keywords, frame, node)
        kind = "array" if ".numpy." in callee.ref else ""
        return Value(kind, frame.level) if kind else self.unknown(frame.level)

    def use_all(self: Any, values: list[Value], frame: Frame, node: ast.AST) -> None:
        """Read all arguments; functions among them are not read but called."""
        for value in values:
            self.use(value, frame, node)

    def is_callable(self: Any, value: Value) -> bool:
        """Say whether an argument is a function of the user's."""
        return any(v.function is not None or v.kind in ("partial", "function") or
                   (v.kind == "frozen" and v.fields is not None and v.level == OUTSIDE and
                    any(f.kind == "function" for f in v.fields.values())) or
                   (v.kind == "member" and v.bound is not None and v.bound.level == OUTSIDE)
                   for v in value.each())  # fmt: skip

    def excuse(self: Any, values: list[Value]) -> None:
        """Leave functions that run outside of the trace unchecked, inner ones among them."""
        for value in values:
            for one in value.each():
                if one.function is not None:
                    self.excused.add(id(one.function.node))
                elif one.kind == "partial" and one.bound is not None:
                    self.excuse([one.bound])

    def callbacks(self: Any, values: list[Value], frame: Frame, node: ast.AST) -> None:
        """Call the functions among the arguments, as whoever they are passed to will."""
        for value in values:
            if self.is_callable(value):
                self.call_back(value, [], frame, node)
            for one in value.each():
                if one.level == OUTSIDE and one.kind == "frozen" and one.fields:
                    self.callbacks(list(one.fields.values()), frame, node)

    def call_back(
        self: Any, value: Value, given: list[Value], frame: Frame, node: ast.AST
    ) -> Value:
        """Call a function that somebody else calls, with arguments only partly known."""
        found = []
        for one in value.each():
            if one.kind in ("class", "property"):
                continue
            args = given
            if one.kind == "member":
                # ``map(log.append, xs)``: called for its effect, whatever becomes of the result.
                args = given[:1] or [self.unknown(frame.level)]
            elif one.function is not None and not given:
                names = [*one.function.node.args.posonlyargs, *one.function.node.args.args]
                args = [self.unknown(frame.level) for _ in names[1 if one.bound else 0 :]]
            found.append(self.call(one, args, {}, frame, node, used=one.kind != "member"))
        return join(found) or self.unknown(frame.level)

    def decorate(self: Any, decorator: ast.expr, value: Value, frame: Frame) -> Value:
        """Apply a decorator of an inner function."""
        if isinstance(decorator, ast.Call):
            maker = self.call_expr(decorator, frame, used=True)
        else:
            maker = self.expr(decorator, frame)
        made = [self.call(one, [value], {}, frame, decorator) for one in maker.each()]
        found = join(made)
        if found is None:
            return value
        known = found.function or found.kind in ("traced", "partial", "function")
        return found if known else value

    def manage(self: Any, value: Value, frame: Frame, node: ast.AST) -> Value:
        """Enter and leave a context manager; return what ``as`` binds."""
        found = []
        for one in value.each():
            if one.kind == "context":
                found.append(cast("Fields", one.fields)[None])
                continue
            if one.kind == "instance" or (one.level == OUTSIDE and one.kind == "file"):
                enter = self.attribute(one, "__enter__", frame, node)
                seen = self.body(enter) is not None
                found.append(self.call(enter, [], {}, frame, node) if seen else one)
                leave = self.attribute(one, "__exit__", frame, node)
                if self.body(leave) is not None:
                    self.call(leave, [self.unknown(frame.level)] * 3, {}, frame, node)
                elif one.kind == "file":
                    self.report(rules.FileAccess, frame, node, one.name)
            else:
                found.append(one)
        return join(found) or value


def _pack(values: list[Value]) -> Value:
    return Value("tuple", 1, fields=numbered(values))


def _keyword_only(spec: ast.arguments) -> list[str]:
    return [a.arg for a in spec.kwonlyargs]


def _marks(function: Function) -> set[str]:
    return {
        getattr(d, "id", getattr(d, "attr", ""))
        for d in getattr(function.node, "decorator_list", ())
    }


def is_trusted_by_mark(function: Function) -> bool:
    """Say whether ``@assume_pure`` stands above a function."""
    return "assume_pure" in _marks(function)


def _is_context_manager(function: Function) -> bool:
    return "contextmanager" in _marks(function)


def _to_local(file: Value | None) -> bool:
    return file is not None and all(v.level != OUTSIDE for v in file.each())
