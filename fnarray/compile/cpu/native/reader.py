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
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from .types import Fallback

Suite = tuple[int, ...]


@dataclass(frozen=True, slots=True)
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
    globals : mapping
        What the other names stand for.
    """

    name: str
    params: tuple[str, ...]
    rest: str | None
    body: list[ast.stmt]
    slots: frozenset[str]
    globals: Mapping[str, Any]


def read_kernel(text: str, names: Mapping[str, Any]) -> Text:
    """Read the text of a kernel."""
    (function,) = (x for x in ast.parse(text).body if isinstance(x, ast.FunctionDef))
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
    (node,) = ast.parse(source).body
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
    return Text(function.name, params, rest, function.body, slots, names)


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


#: A loop of more statements than this fills the registers as it is.
LONG = 40

#: Loops of fewer turns are left to LLVM, which writes them out and may vectorise the loop around
#: them. On slices of (50, 50, r) a masked vector takes, at r - 1 = 3, 5, 6, 8 and 10 turns, 0.46,
#: 0.39, 0.32, 0.30 and 0.37 of the time where boxes are written, and 2.2, 1.2, 0.88, 0.34 and 0.17
#: of it where LLVM joins turns (float32; float64 is nearer to 1). It refuses two turns, aloud.
FEW = 5


def is_long(loop: ast.For, called: frozenset[str]) -> bool:
    """Whether a loop's turns are many operations."""
    nodes = (x for statement in loop.body for x in ast.walk(statement))
    return len(loop.body) > LONG or any(
        isinstance(x, ast.Attribute) and x.attr in called for x in nodes
    )


def is_parallel(loop: ast.For, slots: frozenset[str]) -> bool:
    """Whether a loop's turns are surely independent of each other.

    Such a loop can be vectorised by order; where LLVM cannot obey an order, it says so to the user.
    So each element written lies at a place of its own, and is read nowhere else in the loop.
    """
    assert isinstance(loop.target, ast.Name)
    nodes = [x for statement in loop.body for x in ast.walk(statement)]
    written: dict[str, str] = {}
    for statement in loop.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        (target,) = statement.targets
        if isinstance(target, ast.Name) and target.id not in slots:
            continue
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            return False
        counted = any(isinstance(x, ast.Name) and x.id == loop.target.id for x in ast.walk(target))
        if not counted or target.value.id in written:
            return False
        written[target.value.id] = ast.dump(target.slice)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            return False  # a call of a function with loops, perhaps
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            name = node.value.id
            if name in written and written[name] != ast.dump(node.slice):
                return False
    return True
