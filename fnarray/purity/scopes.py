"""Which names a function binds itself, and the frame that holds their values in an analysis."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any, NamedTuple

from .nodes import children
from .values import OUTSIDE, Function, Value
from .ways import State

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_INNER_TYPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})
_TELLING = frozenset({
    ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.FunctionDef, ast.AsyncFunctionDef,
    ast.ClassDef, ast.Import, ast.ImportFrom, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
    ast.MatchMapping,
})  # fmt: skip
#: Flags of code objects, as `inspect` names them: importing that takes longer than a short file.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200
_COMPREHENSION_TYPES = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})


class Facts:
    """Names bound in a function's own body, and whether it is a generator or a coroutine."""

    __slots__ = ("awaits", "bound", "globals", "nonlocals", "yields")

    def __init__(self, node: FunctionNode) -> None:
        self.bound = set(parameters(node))
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.yields = False
        self.awaits = isinstance(node, ast.AsyncFunctionDef)
        for one in walk_body(node):
            # Most nodes bind nothing: one look-up tells.
            if type(one) is ast.Name:
                if type(one.ctx) is not ast.Load:
                    self.bound.add(one.id)
            elif type(one) in _TELLING:
                self._take(one)
        self.bound -= self.globals | self.nonlocals

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Facts:
        """Return the facts of a function of which some variables alone are known."""
        facts = cls.__new__(cls)
        facts.bound, facts.globals, facts.nonlocals = set(names), set(), set()
        facts.yields = facts.awaits = False
        return facts

    @classmethod
    def of_code(cls, code: CodeType) -> Facts:
        """Return the facts of a function that declares no name global or nonlocal: a look-up."""
        facts = cls.__new__(cls)
        facts.bound = {*code.co_varnames, *code.co_cellvars}
        facts.globals, facts.nonlocals = set(), set()
        facts.yields = bool(code.co_flags & (_GENERATOR | _ASYNC_GENERATOR))
        facts.awaits = bool(code.co_flags & (_COROUTINE | _ASYNC_GENERATOR))
        return facts

    def _take(self, one: Any) -> None:
        if isinstance(one, (ast.Yield, ast.YieldFrom)):
            self.yields = True
        elif isinstance(one, ast.Global):
            self.globals.update(one.names)
        elif isinstance(one, ast.Nonlocal):
            self.nonlocals.update(one.names)
        elif isinstance(one, (ast.Import, ast.ImportFrom)):
            self.bound.update((a.asname or a.name).partition(".")[0] for a in one.names)
        elif isinstance(one, ast.MatchMapping):
            self.bound.update([one.rest] if one.rest else ())
        elif one.name:
            self.bound.add(one.name)


def walk_body(node: FunctionNode) -> Iterator[ast.AST]:
    """Yield the nodes of a function's own body; inner functions and classes only by themselves.

    The targets of comprehensions are theirs alone, except what a walrus binds.
    """
    body = node.body
    stack: list[ast.AST] = list(body) if isinstance(body, list) else [body]
    while stack:
        one = stack.pop()
        yield one
        kind = type(one)
        if kind in _INNER_TYPES:
            stack.extend(getattr(one, "decorator_list", ()))
        elif kind in _COMPREHENSION_TYPES:
            stack.extend(
                inner
                for child in ast.iter_child_nodes(one)
                for inner in ast.walk(child)
                if isinstance(inner, ast.NamedExpr)
            )
        else:
            stack += children(one)


def parameters(node: FunctionNode) -> list[str]:
    """Return the names of all parameters."""
    args = node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return names + [a.arg for a in (args.vararg, args.kwarg) if a is not None]


class Signature(NamedTuple):
    """The names of a function's parameters, and of what decorates it: asked at each call.

    ``positional`` may be given by place, and ``named`` are all that a call may give by name.
    """

    positional: tuple[str, ...]
    named: tuple[str, ...]
    parameters: tuple[str, ...]
    marks: frozenset[str]

    @classmethod
    def of(cls, node: FunctionNode) -> Signature:
        """Return what stands in the first lines of a function, kept on its node."""
        kept: Signature | None = getattr(node, "_signature", None)
        if kept is None:
            args = node.args
            positional = tuple(a.arg for a in (*args.posonlyargs, *args.args))
            named = (*positional, *(a.arg for a in args.kwonlyargs))
            above = getattr(node, "decorator_list", ())
            marks = frozenset(getattr(d, "id", getattr(d, "attr", "")) for d in above)
            kept = cls(positional, named, tuple(parameters(node)), marks)
            node._signature = kept  # type: ignore[union-attr]
        return kept


def facts_of(node: FunctionNode) -> Facts:
    """Return the facts of a function, kept on its node."""
    facts = getattr(node, "_facts", None)
    if facts is None:
        facts = node._facts = Facts(node)  # type: ignore[union-attr]
    return facts


class Frame(State[Value]):
    """One function being analysed: the values of its names, its trace level, how it is reached."""

    __slots__ = ("facts", "function", "level", "nested", "path", "returns", "yields")

    def __init__(self, function: Function, level: int, path: tuple[str, ...]) -> None:
        super().__init__()
        self.function = function
        self.facts = facts_of(function.node)
        self.level = level
        self.path = path
        self.returns: list[Value] = []
        self.yields: list[Value] = []
        self.nested: list[Value] = []

    @classmethod
    def holding(cls, function: Function, env: dict[str, Value]) -> Frame:
        """Return the frame of a call that is over, with the variables that closures still hold."""
        frame = cls(function, OUTSIDE, ())
        frame.facts, frame.env = Facts.of_names(env), env
        return frame

    def owner(self, name: str) -> Frame | None:
        """Return the frame around this one in which a free name is bound, if it is analysed."""
        frame: Any = self.function.frame
        while frame is not None:
            if name in frame.facts.bound:
                return frame
            if name in frame.facts.globals:
                return None
            frame = frame.function.frame
        return None
