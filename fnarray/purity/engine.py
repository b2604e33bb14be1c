"""The analysis: a function's body is run on abstract values, and every effect is reported.

What an effect is depends on who owns the object it touches.  An object made during the trace is
free to change; one from outside, or handed in, is not; and a callback that is traced on its own
(a loop body, a branch) owns only what it makes itself.  Functions of the user's code are entered
with the values of their arguments, so that a helper may change what its caller made.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any

from . import protocols, rules
from .calls import Calls
from .expressions import Expressions
from .findings import Finding, Place
from .rules import LintRule
from .scopes import Frame, facts_of, parameters
from .statements import Statements
from .values import CHANGING, CONTAINERS, OUTSIDE, Function, Resolver, Value, join

#: Calls entered in one analysis, and how deep: far above any real function.
_MOST_CALLS = 1500
_DEEPEST = 40
#: How often one function is entered with different arguments: with local ones, which can do no harm
#: that was not seen before, and with others.
_MOST_LOCAL, _MOST_OUTER = 6, 40


@dataclass
class Analysis:
    """The result: what was found, and the functions that were entered."""

    findings: list[Finding] = field(default_factory=list)
    entered: list[Function] = field(default_factory=list)


class Engine(Statements, Expressions, Calls):
    """One analysis of one traced function."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.found: dict[tuple[Any, ...], tuple[Finding, int]] = {}
        self.entered: dict[int, Function] = {}
        self.excused: set[int] = set()
        self.memo: dict[tuple[Any, ...], Value | None] = {}
        self.contexts: dict[tuple[int, int], int] = {}
        self.depth = 0
        self.branches = 0
        self.catching = False
        self._locals: dict[int, Value] = {}

    def unknown(self, level: int) -> Value:
        """Return an object made during the trace of which nothing is known."""
        value = self._locals.get(level)
        if value is None:
            value = self._locals[level] = Value("", level)
        return value

    # --- reports ---

    def report(
        self, rule: type[LintRule], frame: Frame, node: ast.AST, name: str = "", what: str = ""
    ) -> None:
        """Add a finding at a node; the same one twice is one."""
        file = frame.function.file
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        key = (rule.code, file, line, column, name)
        if key in self.found:
            return
        end = node.end_lineno or line  # type: ignore[attr-defined]
        lines = frame.function.lines
        source = lines[line - 1].rstrip("\n") if lines and line <= len(lines) else ""
        place = Place(file, line, column + 1, end, (node.end_col_offset or column) + 1)  # type: ignore[attr-defined]
        finding = rule.at(place, name=name, what=what, source=source, path=frame.path)
        self.found[key] = finding, len(self.found)

    def findings(self) -> list[Finding]:
        """Return what was found, in order of place; a write hides the read of the same line."""
        written = {
            (f.file, f.line, key[4]) for key, (f, _) in self.found.items() if f.code[3] in "14"
        }
        kept = [
            f for key, (f, _) in self.found.items()
            if not (f.code in _READS and (f.file, f.line, key[4]) in written)
        ]  # fmt: skip
        return sorted(kept, key=lambda f: (f.file, f.line, f.column, f.code))

    # --- the two things that may be wrong with an object ---

    def use(self, value: Value, frame: Frame, node: ast.AST) -> None:
        """Check that an object may be read here."""
        for one in value.each():
            if one.level != OUTSIDE or one.argument or one.guarded:
                continue
            where, at = one.origin if one.origin is not None else (frame, node)
            if one.kind in ("element", "member") and one.bound is not None:
                self.use(one.bound.but(origin=one.bound.origin or (where, at)), frame, node)
            elif one.rebound and one.kind not in ("function", "class", "module"):
                self.report(rules.ReboundCell, where, at, one.name, one.rebound)
            elif one.kind in CONTAINERS:
                what = "container" if one.kind == "container" else one.kind
                self.report(rules.MutableRead, where, at, one.name, what)
            elif one.kind == "ndarray":
                self.report(rules.MutableArray, where, at, one.name)
            elif one.kind == "rng":
                self.report(rules.OuterGenerator, frame, node, one.name)
            elif one.kind == "instance":
                self.report(rules.MutableRead, where, at, one.name, "object")
            elif one.constant or one.kind in ("function", "class", "module", "partial"):
                pass
            elif one.holder == "attribute":
                self.report(rules.MutableAttribute, where, at, one.name)
            elif one.kind == "scalar" and one.holder == "global":
                self.report(rules.GlobalScalar, where, at, one.name)
            if one.kind in _HOLDING and (parts := self.resolver.parts(one)) is not None:
                for part in parts:
                    if part.kind in CHANGING or part.kind in _HOLDING:
                        self.use(part.but(name=one.name, origin=(where, at)), frame, node)

    def mutate(
        self, value: Value, frame: Frame, node: ast.AST, what: str, *, attribute: bool = False
    ) -> None:
        """Report a change in place, unless the trace in progress made the object itself."""
        for one in value.each():
            if one.kind == "ref":  # its value goes in and comes out, wherever it is from
                continue
            name = one.name or "a value"
            if one.kind == "member" and not one.argument and one.level == OUTSIDE:
                name = one.name
            if OUTSIDE < one.level < frame.level:
                self.report(rules.CallbackLeak, frame, node, name, what)
            elif one.argument:
                self.report(rules.ArgumentMutation, frame, node, name, what)
            elif one.level != OUTSIDE:
                continue
            elif one.kind == "ndarray" or (one.kind == "element" and _base(one).kind == "ndarray"):
                self.report(rules.ArrayWrite, frame, node, name, what)
            elif one.name == "globals()":
                self.report(rules.GlobalWrite, frame, node, name, what)
            elif attribute:
                self.report(rules.AttributeWrite, frame, node, f"{name}.{what}".rstrip("."), what)
            else:
                self.report(rules.CapturedMutation, frame, node, name, what)

    def draw(self, value: Value, frame: Frame, node: ast.AST, *, explicit: bool = False) -> None:
        """Check that an object may be iterated over: drawn from, where it is an iterator."""
        protocols.ask(self, value, protocols.ITERATED, frame, node)
        for one in value.each():
            name = one.name or "an iterator"
            if one.argument and (explicit or one.kind in ("iterator", "generator", "file")):
                self.report(rules.ArgumentIterator, frame, node, name)
            elif one.argument:
                continue
            elif one.kind in ("iterator", "generator", "file"):
                if one.level == OUTSIDE:
                    self.report(rules.OuterIterator, frame, node, name)
                elif one.level < frame.level and one.name:
                    self.report(rules.CallbackLeak, frame, node, name, "drawn from")
            elif one.level == OUTSIDE and explicit and one.kind in ("", "instance"):
                self.report(rules.OuterIterator, frame, node, name)
            else:
                self.use(one, frame, node)

    # --- entering functions ---

    def trace(self, value: Value, label: str, frame: Frame, node: ast.AST) -> None:
        """Enter a callback that a transform traces on its own, with arguments of the tracer's."""
        for one in value.each():
            if one.kind in ("list", "tuple") and one.fields:
                for part in one.fields.values():
                    self.trace(part, label, frame, node)
            elif one.kind == "tuple" and (parts := self.resolver.items(one)) is not None:
                for part in parts:
                    self.trace(part, label, frame, node)
            else:
                self.call(one, None, {}, frame, node, level=frame.level + 1, label=label)

    def enter(
        self,
        function: Function,
        bound: dict[str, Value],
        level: int,
        path: tuple[str, ...],
    ) -> Value:
        """Run a function's body with some parameters bound; the others are the tracer's."""
        node = function.node
        key = (id(node), id(function.frame), level, tuple((k, _mark(v)) for k, v in bound.items()))
        if key in self.memo:
            return self.memo[key] or self.unknown(level)
        if self.depth > _DEEPEST or len(self.memo) > _MOST_CALLS:
            return self.unknown(level)
        outer = any(v.level == OUTSIDE or v.argument for v in bound.values())
        times = self.contexts.get((id(node), level), 0) + 1
        if times > (_MOST_OUTER if outer else _MOST_LOCAL):
            return self.unknown(level)
        self.contexts[id(node), level] = times
        self.memo[key] = None
        self.entered[id(node)] = function
        frame = Frame(function, level, path)
        for name in parameters(node):
            frame.env[name] = bound.get(name) or self.argument(function, name, level)
        self.depth += 1
        try:
            if isinstance(node, ast.Lambda):
                result: Value | None = self.expr(node.body, frame)
                self.escape(result, frame, node.body)
            else:
                self.block(node.body, frame)
                result = join(frame.returns)
        finally:
            self.depth -= 1
        for inner in frame.nested:
            self.enter_unseen(inner, frame)
        if frame.facts.yields:
            items = join(frame.yields)
            result = Value("generator", level, fields={None: items} if items else {})
        self.memo[key] = result
        return result or self.unknown(level)

    def enter_unseen(self, value: Value, frame: Frame) -> None:
        """Check an inner function that nobody was seen to call."""
        function = value.function
        if function is None:
            return
        if id(function.node) in self.entered or id(function.node) in self.excused:
            return
        names = parameters(function.node)
        bound = {name: function.defaults.get(name) or self.unknown(frame.level) for name in names}
        self.enter(function, bound, frame.level, (*frame.path, function.name))

    def argument(self, function: Function, name: str, level: int) -> Value:
        """Return what stands for an argument of a traced function."""
        args = function.node.args
        if args.vararg is not None and args.vararg.arg == name:
            item = Value(_named_kind(name), level, argument=True, name=name)
            return Value("tuple", level, name=name, fields={None: item})
        if args.kwarg is not None and args.kwarg.arg == name:
            item = Value("", level, argument=True, name=name)
            return Value("dict", level, name=name, fields={None: item})
        value = Value(self.annotated(function, name), level, argument=True, name=name)
        default = function.defaults.get(name)
        if default is None or default.level != OUTSIDE or default.kind in ("scalar", ""):
            return value
        if default.kind in ("function", "class", "module", "partial", "frozen"):
            return join([default, value]) or value
        # The default itself is captured: it is what a call without this argument reads.
        return default.but(name=name, holder="default", constant=False, others=(value,))

    def annotated(self, function: Function, name: str) -> str:
        """Return the kind that a parameter's annotation promises, where it matters here."""
        args = function.node.args
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
            if arg.arg == name and arg.annotation is not None:
                note = arg.annotation
                note = note.value if isinstance(note, ast.Subscript) else note
                last = note.attr if isinstance(note, ast.Attribute) else getattr(note, "id", "")
                return _ANNOTATED.get(last, "")
        return _named_kind(name)


#: Immutable, but what they hold need not be.
_HOLDING = frozenset({"tuple", "frozen"})
_READS = frozenset({"FNA201", "FNA202", "FNA203", "FNA204"})
_ANNOTATED = {
    "list": "list", "List": "list", "dict": "dict", "Dict": "dict", "set": "set", "Set": "set",
    "MutableMapping": "dict", "MutableSequence": "list", "deque": "deque",
    "Iterator": "iterator", "Generator": "", "RandomState": "rng", "TextIO": "file", "IO": "file",
    "Ref": "ref", "AbstractRef": "ref",
}  # fmt: skip


#: What users call Refs. An array of such a name refuses to be written, too: when it is traced.
_REF = re.compile(r"(?:^|_)refs?\d*(?:_|$)")


def _named_kind(name: str) -> str:
    """Return the kind that a parameter's name promises."""
    return "ref" if _REF.search(name) else ""


def _base(value: Value) -> Value:
    while value.bound is not None and value.kind in ("element", "member"):
        value = value.bound
    return value


def _mark(value: Value) -> tuple[Any, ...]:
    """Return what distinguishes a value for the memory of calls."""
    known = value.argument or value.function or value.fields or value.bound
    if value.level != OUTSIDE and not known:
        return value.kind, value.level
    marks = (
        value.kind, value.level, value.argument, value.name, value.ref, id(value.obj),
        id(value.function), id(value.fields), id(value.bound),
    )  # fmt: skip
    return marks if not value.others else (*marks, *map(_mark, value.others))


def analyse(function: Function, resolver: Resolver, path: tuple[str, ...] = ()) -> Analysis:
    """Analyse a function as a traced one.

    Parameters
    ----------
    function
        Its syntax; parameters in ``function.defaults`` keep their default as a possibility.
    resolver
        What answers for names and attributes from outside.
    path
        How it is reached: ``("jit(train)",)``.

    Returns
    -------
    Analysis
        All findings, in order of place.
    """
    engine = Engine(resolver)
    path = path or (function.name,)
    facts = facts_of(function.node)
    if facts.awaits or facts.yields:
        rule = rules.TracedCoroutine if facts.awaits else rules.TracedGenerator
        frame = Frame(function, 1, path)
        engine.report(rule, frame, _heading(function.node), function.name)
    engine.enter(function, function_bound(function), 1, path)
    return Analysis(engine.findings(), list(engine.entered.values()))


def function_bound(function: Function) -> dict[str, Value]:
    """Return the parameters of a traced function that are fixed: the receiver of a method."""
    return {k: v for k, v in function.defaults.items() if v.holder == "receiver"}


def _heading(node: Any) -> ast.AST:
    """Return a node that spans a definition's first line only: where a finding about it points."""
    if isinstance(node, ast.Lambda):
        return node
    start = ast.Pass(lineno=node.lineno, col_offset=node.col_offset)
    start.end_lineno = node.lineno
    start.end_col_offset = node.col_offset + len("def ") + len(node.name)
    return start
