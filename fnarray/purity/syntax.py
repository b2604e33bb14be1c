"""From a live function to its syntax: exact for lambdas, from bytecode where source is missing."""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import operator
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ..core.parse import parse
from .bindings import Tree, bound_by_star, bound_early, bound_once, first_line
from .nodes import children
from .objects import instance_dict, is_a
from .scopes import Facts, FunctionNode
from .transforms import is_host_call

_trees: dict[str, tuple[list[str], ast.Module | None]] = {}


def lines_of(code: CodeType, namespace: dict[str, Any] | None = None) -> list[str]:
    """Return the lines of the file of a code object; empty where there is none."""
    found = linecache.getlines(code.co_filename, namespace)
    if not found and code.co_filename == "<string>" and code in _of_command_line()[1]:
        return _of_command_line()[0]
    return found


@functools.cache
def _of_command_line() -> tuple[list[str], frozenset[CodeType]]:
    """Return the lines of ``python -c``, and the code in them: of Python 3.13 linecache has them.

    What ``exec`` compiles is called ``<string>`` too: the code tells them apart.
    """
    given = sys.orig_argv[: -len(sys.argv) + 1 or None] if sys.argv[:1] == ["-c"] else ["-c"]
    text = given[-1] if given[-2:-1] == ["-c"] else given[-1].removeprefix("-c")
    try:
        made = compile(text, "<string>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return [], frozenset()
    return text.splitlines(keepends=True), frozenset(_with_inner(made))


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _with_inner(inner)


def tree_of(code: CodeType, lines: list[str]) -> ast.Module | None:
    """Return the syntax tree of a whole file, parsed once, or None if it does not parse."""
    kept = _trees.get(code.co_filename)
    if kept is None or kept[0] is not lines:
        kept = _trees[code.co_filename] = lines, parsed(lines)
    return kept[1]


def parsed(lines: list[str]) -> ast.Module | None:
    """Return the syntax tree of some lines, or None if they do not parse."""
    try:
        return parse("".join(lines))
    except (SyntaxError, ValueError):
        return None


def tree_of_file(file: str, namespace: dict[str, Any]) -> ast.Module | None:
    """Return the syntax tree of a module's own file, or None where it has none."""
    lines = linecache.getlines(file, namespace) if file.endswith(".py") else []
    kept = _trees.get(file)
    if kept is None or kept[0] is not lines:
        kept = _trees[file] = lines, parsed(lines) if lines else None
    return kept[1]


def is_final(namespace: dict[str, Any], name: str, kind: str) -> bool:
    """Say whether the source of a module, all of which is seen, binds a name for good.

    Once; or, of an array, whose bytes are compared, until a function is made that reads it.
    """
    file: Any = namespace.get("__file__")
    tree = tree_of_file(file, namespace) if is_a(file, str) else None
    if tree is None:
        return False
    if bound_once(tree, name) or (kind == "ndarray" and bound_early(tree, name)):
        return True
    return bound_by_star(tree, name, lambda spelled: _exports(namespace, spelled, name))


def _exports(namespace: dict[str, Any], spelled: str, name: str) -> bool:
    """Say whether a module, as it is spelled in another, is one whose star brings a name."""
    package: Any = namespace.get("__package__") or ""
    dots = len(spelled) - len(spelled.lstrip("."))
    if dots:
        above = package.rsplit(".", dots - 1)[0] if dots > 1 else package
        spelled = f"{above}.{spelled[dots:]}".rstrip(".")
    space = instance_dict(sys.modules.get(spelled)) or {}
    listed: Any = space.get("__all__")
    if is_a(listed, (list, tuple)):
        return name in listed
    return name in space and not name.startswith("_")


def extent(code: CodeType) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return first and last position that the instructions of a code object come from."""
    starts: list[tuple[int, int]] = []
    ends: list[tuple[int, int]] = []
    for line, end_line, column, end_column in code.co_positions():
        if line and end_line and column is not None and end_column:
            starts.append((line, column))
            ends.append((end_line, end_column))
    return (min(starts), max(ends)) if starts else None


_LINE: Callable[[tuple[int, int, int | None]], int | None] = operator.itemgetter(2)


def last_line(code: CodeType, lines: list[str]) -> int:
    """Return the last line of a definition, by its instructions and then by indentation."""
    last = max(filter(None, map(_LINE, code.co_lines())), default=code.co_firstlineno)
    head = lines[code.co_firstlineno - 1]
    indent = len(head) - len(head.lstrip())
    while last < len(lines):
        text = lines[last].lstrip()
        # A closing bracket may stand as far left as the definition itself.
        if text and len(lines[last]) - len(text) <= indent and text[0] not in ")]}":
            break
        last += 1
    return last


class Source(NamedTuple):
    """The syntax of a function, the lines of its file, and how many stand above what was parsed."""

    node: FunctionNode
    lines: list[str]
    above: int = 0


_nodes: dict[CodeType, Source] = {}


def trees_known() -> int:
    """Return of how many code objects the syntax is known: it stays known."""
    return len(_nodes)


def source_of(fun: FunctionType) -> Source:
    """Return the syntax of a function; one tree for each code object."""
    code = fun.__code__
    lines = lines_of(code, fun.__globals__)
    kept = _nodes.get(code)
    if kept is None or kept.lines is not lines:
        known: Source | None = None
        if lines:
            known = _lambda(code, lines) if code.co_name == "<lambda>" else _definition(code, lines)
        kept = _nodes[code] = known or Source(from_bytecode(code), lines)
    return kept


def _definition(code: CodeType, lines: list[str]) -> Source | None:
    """Parse the lines of a definition alone: a tenth of the time of its file.

    The lines above are not put before it, empty, so that it stands where it does: each takes the
    parser 0.1 us.
    """
    first = code.co_firstlineno
    if first > len(lines):
        return None
    last = last_line(code, lines)
    text = "".join(lines[first - 1 : last])
    head = "if 1:\n" if text[:1] in " \t" else ""
    above = first - 2 if head else first - 1
    try:
        tree: ast.Module | None = parse(head + text)
    except (SyntaxError, ValueError):
        tree, above = tree_of(code, lines), 0
    if tree is None:
        return None
    for node in _functions(tree):
        if first_line(node) + above == first and node.name == code.co_name:
            if not any(word in text for word in _OUTWARD):
                node._facts = Facts.of_code(code)
            return Source(node, lines, above)
    return None


def _lambda(code: CodeType, lines: list[str]) -> Source | None:
    tree, span = tree_of(code, lines), extent(code)
    if tree is None or span is None:
        return None
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    best: tuple[int, FunctionNode | None] = (1 << 60, None)
    for node in Tree.of(tree).around(span[0][0], span[1][0]):
        if isinstance(node, ast.Lambda):
            body, args = node.body, node.args
            start, end = (
                (body.lineno, body.col_offset),
                (body.end_lineno or 0, body.end_col_offset or 0),
            )
            spelled = tuple(a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))
            # The first instruction may stand for the whole line: only its column is wrong.
            inside = start <= max(span[0], (span[0][0], body.col_offset)) and span[1] <= end
            if inside and len(spelled) == len(names) and start[0] <= span[1][0]:
                size = (end[0] - start[0]) * 10_000 + end[1] - start[1]
                exact = span[1] == end and span[0] <= start
                best = min(best, (size - (1 << 40 if exact else 0), node), key=lambda b: b[0])
    return None if best[1] is None else Source(best[1], lines)


#: What declares names that a function rebinds outside of itself: its code does not tell them apart.
_OUTWARD = ("global", "nonlocal")


def _functions(tree: ast.AST) -> Iterator[Any]:
    queue = children(tree)
    for node in queue:  # it grows on the way
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        queue += children(node)


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of a code object and of the functions made in it."""
    for one in _with_inner(code):
        yield from dis.get_instructions(one)


def from_bytecode(code: CodeType) -> FunctionNode:
    """Return a function that reads, calls and writes the names that a code object does.

    Without source this is all that can be said: each chain of attributes that starts at a global or
    an outer variable is taken to be called, each ``STORE_GLOBAL`` to be an assignment. What is
    loaded right after a host callback is what the host calls.
    """
    body: list[ast.stmt] = []
    written: set[str] = set()
    outer: set[str] = set()
    chain: ast.expr | None = None
    host: ast.Call | None = None

    def flush(*, following: bool = False) -> None:
        nonlocal chain, host
        if chain is not None and host is not None:
            host.args.append(chain)
            host = None
        elif chain is not None:
            called = ast.copy_location(ast.Call(func=chain, args=[], keywords=[]), chain)
            body.append(ast.Expr(value=called))
            name = getattr(chain, "attr", getattr(chain, "id", ""))
            host = called if following and is_host_call(f"fnarray.{name}") else None
        chain = None

    for step in _instructions(code):
        at = step.positions
        spot: dict[str, Any] = {
            "lineno": (at and at.lineno) or code.co_firstlineno,
            "col_offset": (at and at.col_offset) or 0,
            "end_lineno": (at and at.end_lineno) or code.co_firstlineno,
            "end_col_offset": (at and at.end_col_offset) or 0,
        }
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") or (
            step.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF") and step.argval in code.co_freevars
        ):
            flush(following=True)
            chain = ast.Name(id=step.argval, ctx=ast.Load(), **spot)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain is not None:
            chain = ast.Attribute(value=chain, attr=step.argval, ctx=ast.Load(), **spot)
        elif step.opname != "PUSH_NULL":
            flush()
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF"):
                if step.opname == "STORE_DEREF" and step.argval not in code.co_freevars:
                    continue
                (outer if step.opname == "STORE_DEREF" else written).add(step.argval)
                target = ast.Name(id=step.argval, ctx=ast.Store(), **spot)
                body.append(ast.Assign(targets=[target], value=ast.Constant(None, **spot), **spot))
    flush()
    if written:
        body.insert(0, ast.Global(names=sorted(written)))
    if outer:
        body.insert(0, ast.Nonlocal(names=sorted(outer)))
    names = code.co_varnames[: code.co_argcount]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    args = ast.arguments(
        posonlyargs=[], args=[ast.arg(arg=n) for n in names], vararg=None,
        kwonlyargs=[ast.arg(arg=n) for n in keywords], kw_defaults=[None] * len(keywords),
        kwarg=None, defaults=[],
    )  # fmt: skip
    node = ast.FunctionDef(
        name=code.co_name, args=args, body=body or [ast.Pass()], decorator_list=[]
    )
    node.lineno = node.end_lineno = code.co_firstlineno
    node.col_offset = node.end_col_offset = 0
    return node
