"""The interpreter's state: what was found, what was entered, and the table that it runs by.

It knows no syntax. Handlers are functions that take the engine; those of statements, expressions
and calls are in a `Language`, by which they also reach each other: all else is a plain import.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..findings import Finding, Place
from ..rules import LintRule
from ..scopes import Frame
from ..values import ABSENT, Function, Resolver, Value

_READS = frozenset({"FNA201", "FNA202", "FNA203", "FNA204"})
#: Of these, what a line does twice to one object is said once.
_ONCE = _READS | {"FNA401", "FNA402"}
#: What is said of an argument, and of the default that stands in its place: one cause.
_OF_DEFAULTS = {"FNA104": "FNA103", "FNA402": "FNA401"}
_CALLED = frozenset({"function", "partial", "property"})


class Caller(Protocol):
    """What runs the call of an object."""

    def __call__(
        self, engine: Engine, callee: Value, args: list[Value] | None, keywords: dict[str, Value],
        frame: Frame, node: ast.AST, *, used: bool = True, level: int = 0, label: str = "",
    ) -> Value:  # fmt: skip
        """Call an object. Arguments None are the tracer's own: the call is a trace."""
        ...


class Evidence(NamedTuple):
    """What a finding rests on: the object, and where it was met.

    ``given`` is what is put into the object, or handed to the call.
    """

    value: Value | None
    frame: Frame
    node: ast.AST
    given: Sequence[Value] = ()


class Language(NamedTuple):
    """What runs each kind of syntax.

    Attributes
    ----------
    statements, expressions : mapping
        By the type of the node. A statement that returns False is never left at its end; one
        without an entry does nothing.
    block, call : callable
        Run some statements, and the call of an object.
    """

    statements: Mapping[type[ast.AST], Callable[[Engine, Any, Frame], bool | None]]
    expressions: Mapping[type[ast.AST], Callable[[Engine, Any, Frame], Value]]
    block: Callable[[Engine, list[ast.stmt], Frame], bool]
    call: Caller


class Engine:
    """One analysis of one traced function."""

    def __init__(self, resolver: Resolver, language: Language) -> None:
        self.resolver = resolver
        self.language = language
        self._expressions = language.expressions
        self.places = resolver.places
        self.found: dict[tuple[str, str, int, int, str], Finding] = {}
        self.evidence: dict[Finding, Evidence] = {}
        self.entered: dict[int, Function] = {}
        self.excused: set[int] = set()
        #: Calls of methods whose receiver is bound to what they return: ``top, s = s.pop()``.
        self.threaded: set[int] = set()
        self.memo: dict[tuple[Any, ...], Value | None] = {}
        self.contexts: dict[tuple[int, int], int] = {}
        self.depth = 0
        #: How often a function is entered and not yet left, by its node.
        self.within: dict[int, int] = {}
        self.catching = False
        #: Functions from outside that were named, by the node that names them: see `name`.
        self.named: dict[int, dict[int, tuple[Value, Frame, ast.AST]]] = {}
        #: The ``__getattribute__`` of classes, by the identity of each.
        self.answering: dict[int, tuple[Value, Value | None]] = {}
        #: What was raised, which whoever handles errors may get.
        self.raised: list[Value] = []
        #: How often an object made in the trace was given something that it did not hold.
        self.kept = 0
        self._locals: dict[int, Value] = {}
        self._arrays: dict[int, Value] = {}

    def unknown(self, level: int) -> Value:
        """Return an object made during the trace of which nothing is known."""
        value = self._locals.get(level)
        if value is None:
            value = self._locals[level] = Value("", level)
        return value

    def array(self, level: int) -> Value:
        """Return an array made during the trace, of which nothing more is known."""
        value = self._arrays.get(level)
        if value is None:
            value = self._arrays[level] = Value("array", level)
        return value

    # --- what handlers reach each other by ---

    def expr(self, node: ast.expr, frame: Frame) -> Value:
        """Evaluate an expression: the object, which nobody has read yet."""
        return self._expressions[type(node)](self, node, frame)

    def block(self, body: list[ast.stmt], frame: Frame) -> bool:
        """Run statements in order; say whether control can leave at the end."""
        return self.language.block(self, body, frame)

    def call(
        self, callee: Value, args: list[Value] | None, keywords: dict[str, Value],
        frame: Frame, node: ast.AST, *, used: bool = True, level: int = 0, label: str = "",
    ) -> Value:  # fmt: skip
        """Call an object; `used` says whether the result is."""
        return self.language.call(
            self, callee, args, keywords, frame, node, used=used, level=level, label=label
        )

    def name(self, value: Value, frame: Frame, node: ast.AST) -> None:
        """Note that a function from outside is named here: whoever gets it may call it."""
        # Nobody enters a function of ours: most of those that are named.
        if value.kind in _CALLED and value.ref[:8] != "fnarray." and not self.resolver.presumes:
            which = id(value.function) if value.obj is ABSENT else id(value.obj)
            self.named.setdefault(id(node), {})[which] = value, frame, node

    def forget(self, *nodes: ast.AST) -> None:
        """Take back that functions are named at some nodes: it is known what becomes of them."""
        if self.named:
            for node in nodes:
                self.named.pop(id(node), None)

    # --- reports ---

    def report(
        self, rule: type[LintRule], frame: Frame, node: ast.AST, name: str = "", what: str = "",
        *, value: Value | None = None, given: Sequence[Value] = (), repair: str = "",
        shown: str = "",
    ) -> None:  # fmt: skip
        """Add a finding at a node, on an object; the same one twice is one.

        A `repair` stands in place of the rule's, where that would not help; `shown` in place of the
        name, where the part of the object that is meant is written out.
        """
        file = frame.function.file
        at: Any = node
        above = frame.function.above
        line: int = at.lineno + above
        column: int = at.col_offset
        key = (rule.code, file, line, column, name)
        if key in self.found:
            return
        lines = frame.function.lines
        source = lines[line - 1].rstrip("\n") if lines and line <= len(lines) else ""
        end = at.end_lineno + above if at.end_lineno else line
        place = Place(file, line, column + 1, end, (at.end_col_offset or column) + 1)
        finding = rule.at(place, name=shown or name, what=what, source=source, path=frame.path)
        finding = finding._replace(repair=repair) if repair else finding
        self.found[key] = finding
        self.evidence[finding] = Evidence(value, frame, node, given)

    def findings(self) -> list[Finding]:
        """Return what was found, in order of place.

        A write hides the read of the same line, and of the reads of a name on a line one is said.
        What is done to a parameter's default hides what is done to the argument in its place.
        """
        written = {(f.file, f.line, key[4]) for key, f in self.found.items() if f.code[3] in "14"}
        kept = [
            f for key, f in self.found.items()
            if not (f.code in _READS and (f.file, f.line, key[4]) in written)
            and (_OF_DEFAULTS.get(f.code), *key[1:]) not in self.found
        ]  # fmt: skip
        kept.sort(key=lambda f: (f.file, f.line, f.column, f.code))
        causes: set[tuple[object, ...]] = set()
        for finding in tuple(kept):
            cause = finding.file, finding.line, finding.code, finding.message
            if finding.code in _ONCE and cause in causes:
                kept.remove(finding)
            causes.add(cause)
        return kept
