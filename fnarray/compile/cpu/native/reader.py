"""Kernel text as syntax: its parameters, its statements, and which names need a place in memory.

A name that only one suite assigns, before it is read, and that is read only inside of that suite,
is an LLVM value, or several in turn. Other names get a slot, which LLVM turns into registers. What
is folded by a maximum or minimum is told apart, as `ranks` keeps it otherwise.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from types import FunctionType
from typing import Any, Final, TypeGuard, cast

from ....core.frozen import frozen
from ....core.parse import parse
from .types import Fallback

Suite = tuple[int, ...]
_LOOPS: Final = frozenset((ast.For, ast.While))
_SUITES: Final = _LOOPS | {ast.If}
#: How many turns of an inner loop are a few.
_BRIEF: Final = 8
#: Arrays that only the kernel sees, as emission names them.
_OWN: Final = re.compile(r"w\d+")
#: The module whose functions choose a number, NaN before all others.
_SCALARS: Final = "fnarray_kernels.scalar"
#: What holds no expression or statement.
_BARE = frozenset(
    (
        *("ctx", "op", "ops", "attr", "id", "arg", "name", "kind", "type_comment"),
        *("decorator_list", "returns", "type_params", "type_ignores"),
    )
)
_fields: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: (), ast.Name: ()}


def inside(*nodes: ast.AST) -> list[Any]:
    """Return the nodes and all expressions and statements in them, outer ones first.

    `ast.walk` takes five times as long, and did so for half of what it took to read a kernel.
    """
    found = list(nodes)
    for node in found:  # which grows meanwhile
        kind = type(node)
        fields = _fields.get(kind)
        if fields is None:
            fields = _fields[kind] = tuple(x for x in kind._fields if x not in _BARE)
        for field in fields:
            value = getattr(node, field)
            if type(value) is list:
                found += cast(list[ast.AST], value)
            elif value is not None:
                found.append(value)
    return found


def nodes_of(node: ast.For | ast.While | ast.Assign) -> list[Any]:
    """Return what is inside of a loop's body, or of an assignment, which several ask for."""
    held: dict[str, Any] = node.__dict__
    if "nodes_" not in held:
        if isinstance(node, ast.Assign):
            held["nodes_"] = inside(node)
        elif all(isinstance(x, ast.Assign) for x in node.body):
            parts = map(nodes_of, cast("list[ast.Assign]", node.body))
            held["nodes_"] = list(chain.from_iterable(parts))
        else:
            held["nodes_"] = inside(*node.body)
    return held["nodes_"]


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, and those of their suites."""
    for statement in body:
        yield statement
        if type(statement) in _SUITES:
            yield from statements(cast(Any, statement).body)
            yield from statements(cast(Any, statement).orelse)


def is_loop(statement: ast.stmt) -> TypeGuard[ast.For | ast.While]:
    """Whether a statement is a loop."""
    return type(statement) in _LOOPS


def holds_loops(loop: ast.For | ast.While) -> bool:
    """Whether a loop has others in it, which several ask."""
    held: dict[str, Any] = loop.__dict__
    if "holds_" not in held:
        held["holds_"] = any(map(is_loop, statements(loop.body)))
    return held["holds_"]


def holds_rows(loop: ast.For | ast.While) -> bool:
    """Whether a loop has others in it that take more than a few turns, or nobody knows how many."""
    return any(type(s) is ast.For and not _is_brief(s.iter) for s in statements(loop.body))


def _is_brief(turns: ast.expr) -> bool:
    if not isinstance(turns, ast.Call) or len(turns.args) != 1:
        return False
    stop = turns.args[0]
    return isinstance(stop, ast.Constant) and cast(int, stop.value) <= _BRIEF


def place_of(element: ast.Subscript) -> str:
    """Return where in an array an element lies, as a text that no other place has."""
    held: dict[str, Any] = element.__dict__
    if "place_" not in held:
        held["place_"] = _spelled(element.slice)
    return held["place_"]


def _spelled(place: ast.expr) -> str:
    # `ast.dump` takes fifteen times as long, and did so for a third of what it took to read the
    # small loops of a robot's arm.
    kind = type(place)
    if kind is ast.Name:
        return cast(ast.Name, place).id
    if kind is ast.Constant:
        return repr(cast(ast.Constant, place).value)
    if kind is ast.BinOp:
        sum_ = cast(ast.BinOp, place)
        word = type(sum_.op).__name__
        return f"({_spelled(sum_.left)} {word} {_spelled(sum_.right)})"
    return ast.dump(place)


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
    ranks : mapping
        Variables and arrays that a loop folds into by ``"maximum"`` or ``"minimum"``, which it is;
        and names of what such a variable will be.
    """

    name: str
    params: tuple[str, ...]
    rest: str | None
    body: list[ast.stmt]
    slots: frozenset[str]
    aliased: frozenset[str]
    globals: Mapping[str, Any]
    ranks: Mapping[str, str]


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
        lines, first = inspect.findsource(inspect.unwrap(function))
    except OSError as error:
        raise Fallback(f"no source of {function.__name__}") from error
    try:
        (node,) = parse(textwrap.dedent("".join(_block(lines[first:])))).body
    except SyntaxError:  # a text in it is indented no further
        (node,) = parse(textwrap.dedent(inspect.getsource(function))).body
    if not isinstance(node, ast.FunctionDef):
        raise Fallback(f"no source of {function.__name__}")
    cells = function.__closure__ or ()
    held = {n: c.cell_contents for n, c in zip(function.__code__.co_freevars, cells, strict=True)}
    return _read(node, {**function.__globals__, **held})


def _block(lines: list[str]) -> list[str]:
    """Return the lines of a function that begin with its decorators.

    `inspect.getsource` asks the tokens, which took a quarter of what it took to write a Fourier
    transform. A function ends where a line is indented no further, outside of brackets and texts.
    """
    indent = len(lines[0]) - len(lines[0].lstrip())
    begun = False
    for k, line in enumerate(lines):
        text = line.lstrip()
        if text and text[0] not in "#)" and len(line) - len(text) <= indent:
            if begun:
                return lines[:k]
            begun = text.startswith("def ")
    return lines


def _read(function: ast.FunctionDef, names: Mapping[str, Any]) -> Text:
    args = function.args
    if args.kwonlyargs or args.kwarg or args.defaults or args.posonlyargs:
        raise Fallback(f"parameters of {function.name}")
    params = tuple(a.arg for a in args.args)
    rest = args.vararg.arg if args.vararg else None
    slots = _slots(function.body, {*params, rest} if rest else set(params))
    aliased = _aliased(function) - slots
    ranks = _ranked(function.body, slots, names)
    return Text(function.name, params, rest, function.body, slots, aliased, names, ranks)


def _slots(body: list[ast.stmt], params: set[str]) -> frozenset[str]:
    """Return the names that two suites assign, or that are read outside of one, or before it."""
    home: dict[str, Suite] = dict.fromkeys(params, ())
    known: set[str] = set(params)
    slots: set[str] = set()
    read: list[tuple[str, Suite]] = []
    counter = iter(range(1 << 30))

    def walk(statements: list[ast.stmt], suite: Suite) -> None:
        for statement in statements:
            names = _names_of(statement)
            read.extend((name, suite) for name, stored in names if not stored)
            known.update(name for name, stored in names if not stored)
            inner = (*suite, next(counter)) if isinstance(statement, ast.For) else suite
            for name, stored in names:
                if stored:
                    if name in known and home.get(name) != inner:
                        slots.add(name)
                    home[name] = inner
                    known.add(name)
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
    values = [x.value for x in statements(function.body) if isinstance(x, ast.Assign)]
    return frozenset(x.id for x in values if isinstance(x, ast.Name))


def _ranked(
    body: list[ast.stmt], slots: frozenset[str], names: Mapping[str, Any]
) -> dict[str, str]:
    """Return what is folded in loops by one of two functions, and by which.

    Arrays are the kernel's own, and are read and written by elements alone; variables have a slot.
    What a variable is to be in the next turn may have a name of its own: ``t = sc.maximum(c, x)``,
    and later ``c = t``.
    """
    loops = list(filter(is_loop, statements(body)))
    chosen = [s for s in statements(loops) if type(s) is ast.Assign and choice(s.value, names)]
    if not chosen:
        return {}
    folds = [(*fold, s) for s in chosen if (fold := folding(s, names))]
    words = {name: word for name, word, _ in folds}
    mixed = {name for name, word, _ in folds if words[name] != word}
    running = list(_running(loops, chosen, slots, names))
    mixed |= {c for _, c, word in running if words.setdefault(c, word) != word}
    arrays = {name for name, _, s in folds if type(cast(Any, s).targets[0]) is ast.Subscript}
    if arrays:
        nodes = inside(*body)
        elements = [x for x in nodes if type(x) is ast.Subscript]
        parts = [x for x in elements if type(x.slice) is ast.Slice]
        parts += [x.target for x in nodes if type(x) is ast.AugAssign]
        mixed |= {getattr(getattr(x, "value", x), "id", "") for x in parts}
        read = [x.value.id for x in elements if type(x.value) is ast.Name]
        named = [x.id for x in nodes if type(x) is ast.Name]
        mixed |= {a for a in arrays if not _OWN.fullmatch(a) or read.count(a) < named.count(a)}
    ranks = {n: word for n, word in words.items() if n in slots | arrays and n not in mixed}
    return ranks | {new: word for new, c, word in running if ranks.get(c) == word}


def choice(node: ast.expr, names: Mapping[str, Any]) -> str | None:
    """Return which of `scalar`'s functions chooses one of two numbers; None for anything else."""
    match node:
        case ast.Call(ast.Attribute(ast.Name("sc"), word), [_, _]):
            pass
        case ast.Call(ast.Name(name), [_, _]):
            function = names.get(name)
            own = getattr(function, "__module__", "") == _SCALARS
            word = getattr(function, "__name__", "") if own else ""
        case _:
            return None
    return word if word in ("maximum", "minimum") else None


def folding(statement: ast.stmt, names: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what a statement folds a number into, and by which function; None for any other.

    ``acc = sc.maximum(acc, x)`` or ``w[i] = sc.minimum(w[i], x)``.
    """
    match statement:
        case ast.Assign(
            [ast.Name() | ast.Subscript(ast.Name()) as target],
            ast.Call(_, [ast.Name() | ast.Subscript(ast.Name()) as first, _]) as call,
        ) if (word := choice(call, names)) and ast.unparse(target) == ast.unparse(first):
            array: Any = target.value if isinstance(target, ast.Subscript) else target
            return array.id, word
        case _:
            return None


def _running(
    loops: Iterable[ast.For | ast.While],
    chosen: list[ast.Assign],
    slots: frozenset[str],
    names: Mapping[str, Any],
) -> Iterator[tuple[str, str, str]]:
    """Yield names of what a variable will be, the variable, and by which function it is folded.

    Not where the other number is made of the variable: to turn a rank into a number takes as long
    as what it spares.
    """
    for loop in loops:
        ends: dict[str, str] = {}
        for last in loop.body:
            match last:
                case ast.Assign([ast.Name(variable)], ast.Name(value)):
                    ends[value] = variable
                case _:
                    pass
        for statement in chosen:
            match statement:
                case ast.Assign([ast.Name(new)], ast.Call(_, args) as call) if new in ends:
                    carried = ends[new]
                case _:
                    continue
            own = [x for x in args if isinstance(x, ast.Name) and x.id == carried]
            if statement not in loop.body or carried not in slots or new in slots or len(own) != 1:
                continue
            (other,) = (x for x in args if x is not own[0])
            before = loop.body[: loop.body.index(statement)]
            if _depends_on(carried, before).isdisjoint(x.id for x in inside(other) if _is_name(x)):
                yield new, carried, choice(call, names) or ""


def _depends_on(name: str, body: list[ast.stmt]) -> set[str]:
    """Return the names that statements, in their order, make of one, and itself."""
    found = {name}
    for statement in body:
        used = [x for x in inside(statement) if _is_name(x)]
        if any(x.id in found for x in used):
            found.update(x.id for x in used if type(x.ctx) is ast.Store)
    return found


def _is_name(node: Any) -> bool:
    return type(node) is ast.Name


def _names_of(statement: ast.stmt) -> list[tuple[str, bool]]:
    """Return the names a statement itself reads and stores, without those of its suites."""
    if isinstance(statement, ast.For):
        nodes = inside(statement.target, statement.iter)
    elif isinstance(statement, (ast.While, ast.If)):
        nodes = inside(statement.test)
    else:
        nodes = nodes_of(statement) if isinstance(statement, ast.Assign) else inside(statement)
    names = [(x.id, type(x.ctx) is ast.Store) for x in nodes if type(x) is ast.Name]
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        names.append((statement.target.id, False))
    return names


def is_pure(node: ast.expr) -> bool:
    """Whether an expression may be computed though its value is not wanted."""
    return not any(isinstance(x, (ast.Subscript, ast.Call)) for x in inside(node))
