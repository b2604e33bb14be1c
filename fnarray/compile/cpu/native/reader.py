"""Kernel text as syntax: its parameters, its statements, and which names need a place in memory.

A name that is assigned once, and read only inside the suite that assigns it, is one LLVM value.
Every other name gets a slot, which LLVM turns into registers.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

from ....core.frozen import frozen
from ....core.parse import parse
from .types import Fallback

Suite = tuple[int, ...]


@frozen
class Text:
    """A function as it was read.

    Attributes
    ----------
    params : tuple of str
    rest : str or None
        The parameter that takes what remains of the arguments.
    body : list of statements
    slots : frozenset of str
        Names that need a place in memory.
    aliased : frozenset of str
        Names whose value another name is given, as it is.
    globals : mapping
        What the other names stand for.
    """

    name: str
    params: tuple[str, ...]
    rest: str | None
    body: list[ast.stmt]
    slots: frozenset[str]
    aliased: frozenset[str]
    globals: Mapping[str, Any]


def read_kernel(text: str, names: Mapping[str, Any]) -> Text:
    """Read the text of a kernel."""
    (function,) = (x for x in parse(text).body if isinstance(x, ast.FunctionDef))
    return _read(function, names)


@functools.cache
def read_function(function: Callable[..., Any]) -> Text:
    """Read a Python function by its source, with what its closure and module hold."""
    if not isinstance(function, FunctionType):
        raise Fallback(f"call of {getattr(function, '__name__', function)}")
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except OSError as error:
        raise Fallback(f"no source of {function.__name__}") from error
    (node,) = parse(source).body
    if not isinstance(node, ast.FunctionDef):
        raise Fallback(f"no source of {function.__name__}")
    cells = function.__closure__ or ()
    held = {n: c.cell_contents for n, c in zip(function.__code__.co_freevars, cells, strict=True)}
    return _read(node, {**function.__globals__, **held})


def _read(function: ast.FunctionDef, names: Mapping[str, Any]) -> Text:
    args = function.args
    if args.kwonlyargs or args.kwarg or args.defaults or args.posonlyargs:
        raise Fallback(f"parameters of {function.name}")
    params = tuple(a.arg for a in args.args)
    rest = args.vararg.arg if args.vararg else None
    slots = _slots(function.body, {*params, rest} if rest else set(params))
    aliased = _aliased(function) - slots
    return Text(function.name, params, rest, function.body, slots, aliased, names)


def _slots(body: list[ast.stmt], params: set[str]) -> frozenset[str]:
    """Return the names that are assigned again, or read outside the suite that assigns them."""
    home: dict[str, Suite] = dict.fromkeys(params, ())
    slots: set[str] = set()
    read: list[tuple[str, Suite]] = []
    counter = iter(range(1 << 30))

    def walk(statements: list[ast.stmt], suite: Suite) -> None:
        for statement in statements:
            names = list(_names_of(statement))
            read.extend((name, suite) for name, stored in names if not stored)
            inner = (*suite, next(counter)) if isinstance(statement, ast.For) else suite
            for name, stored in names:
                if stored:
                    if name in home:
                        slots.add(name)
                    home[name] = inner
            if isinstance(statement, ast.For):
                walk(statement.body, inner)
            elif isinstance(statement, ast.While):
                walk(statement.body, (*suite, next(counter)))
            elif isinstance(statement, ast.If):
                walk(statement.body, (*suite, next(counter)))
                walk(statement.orelse, (*suite, next(counter)))

    walk(body, ())
    slots.update(n for n, s in read if n in home and s[: len(home[n])] != home[n])
    return frozenset(slots)


def _aliased(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names that are assigned to others."""
    values = [x.value for x in ast.walk(function) if isinstance(x, ast.Assign)]
    return frozenset(x.id for x in values if isinstance(x, ast.Name))


def _names_of(statement: ast.stmt) -> Iterator[tuple[str, bool]]:
    """Yield the names a statement itself reads and stores, without those of its suites."""
    if isinstance(statement, ast.For):
        parts: list[ast.AST] = [statement.target, statement.iter]
    elif isinstance(statement, (ast.While, ast.If)):
        parts = [statement.test]
    else:
        parts = [statement]
    for part in parts:
        for node in ast.walk(part):
            if isinstance(node, ast.Name):
                yield node.id, isinstance(node.ctx, ast.Store)
                if isinstance(statement, ast.AugAssign) and node is statement.target:
                    yield node.id, False


def is_pure(node: ast.expr) -> bool:
    """Whether an expression may be computed though its value is not wanted."""
    return not any(isinstance(x, (ast.Subscript, ast.Call)) for x in ast.walk(node))
