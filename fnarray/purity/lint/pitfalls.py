"""The rules on what is done with traced values: conversions, branches, masks, unrolled loops.

Each registers the syntax that it watches; `tracedness` walks, and says what is traced.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

from ..findings import Finding
from ._words import words
from .project import Project
from .taint import ARRAY, NONE, STATIC_FUNCTIONS, TREE
from .traced import TracedSite
from .tracedness import Tracedness, Watchers, short
from .unroll import trips

_Rule = Callable[[Tracedness, Any], None]
_NUMBER_FORMAT = re.compile(r"%[-+ #0\d.]*[diouxXeEfFgG]")
_LITERALS = (ast.Constant, ast.UnaryOp)
_NUMBERS = frozenset(f"builtins.{n}" for n in ("float", "int", "bool", "complex", "range"))
_NUMPY_SAFE = STATIC_FUNCTIONS | words(
    "dtype iscomplex_type float_ errstate ndarray newaxis testing"
)
_MASKS = words("isnan isfinite isinf logical_and logical_or logical_not")

_syntax: dict[type[ast.AST], list[_Rule]] = {}


def _on(kind: type[ast.AST]) -> Callable[[_Rule], _Rule]:
    """Return a decorator: the rule is asked at each node of a kind."""

    def register(rule: _Rule) -> _Rule:
        _syntax.setdefault(kind, []).append(rule)
        return rule

    return register


def pitfalls(
    project: Project, traced: TracedSite, roots: dict[ast.AST, TracedSite]
) -> list[Finding]:
    """Return the pitfalls in a traced function and the functions inside it.

    ``roots`` tells which inner functions are traced themselves, so that their parameters count.
    """
    return Tracedness(project, traced, roots, _WATCHERS).run()


# ---- FNA601: a truth is asked for ----------------------------------------------------------------


def _truth(walk: Tracedness, test: ast.expr, what: str) -> None:
    if what == "or" and isinstance(test, ast.Name) and not walk.traced.ours:
        return  # ``given or default``: what may be left out is a tree, or None
    # An item of an argument that is asked for its truth is hardly a container.
    item = isinstance(test, ast.Subscript) and isinstance(test.slice, ast.Constant)
    if walk.taint.of(test) >= (TREE if item else ARRAY):
        walk.report("FNA601", test, what=what)


@_on(ast.Compare)
def _chained(walk: Tracedness, node: ast.Compare) -> None:
    if len(node.ops) > 1 and walk.taint.of(node):
        walk.report("FNA601", node, what="a chained comparison")


@_on(ast.Match)
def _matched(walk: Tracedness, node: ast.Match) -> None:
    patterns = [p for c in node.cases for p in ast.walk(c.pattern)]
    compared = any(
        isinstance(p, ast.MatchValue)
        and isinstance(p.value, _LITERALS)
        and not isinstance(getattr(p.value, "value", 0), (str, bytes))
        for p in patterns
    )
    if compared and walk.taint.of(node.subject):
        walk.report("FNA601", node.subject, what="match")


def _compared(walk: Tracedness, node: ast.Call, name: str, given: ast.expr) -> None:
    if name in ("builtins.max", "builtins.min") and len(node.args) > 1:
        walk.report("FNA601", node, name=short(given), what=f"{ast.unparse(node.func)}()")


# ---- FNA602: a number is asked for ---------------------------------------------------------------


@_on(ast.FormattedValue)
def _formatted(walk: Tracedness, node: ast.FormattedValue) -> None:
    if node.format_spec is not None and walk.taint.of(node.value) and node.conversion < 0:
        walk.report("FNA602", node.value, name=short(node.value), what="a number's format")


@_on(ast.BinOp)
def _interpolated(walk: Tracedness, node: ast.BinOp) -> None:
    match node:
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod()):
            parts = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            number = next((p for p in parts if walk.taint.of(p)), None)
            if number is not None and _NUMBER_FORMAT.search(text):
                walk.report("FNA602", number, name=short(number), what="a number's format")
        case _:
            pass


@_on(ast.Subscript)
def _indexing(walk: Tracedness, node: ast.Subscript) -> None:
    if isinstance(node.value, (ast.List, ast.Tuple)) and walk.taint.of(node.slice):
        walk.report("FNA602", node, name=short(node.slice), what="an index")


@_on(ast.Call)
def _taken_out(walk: Tracedness, node: ast.Call) -> None:
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="item" | "tolist" as name), args=[]):
            if walk.taint.of(base):
                walk.report("FNA602", node, name=short(base), what=f".{name}()")
        case _:
            pass


def _converted(walk: Tracedness, node: ast.Call, name: str, given: ast.expr) -> None:
    if name == "builtins.bool" and max(map(walk.taint.of, node.args)) != ARRAY:
        return  # of a tree: whether it is empty
    if name in _NUMBERS or name.startswith("math."):
        walk.report("FNA602", node, name=short(given), what=f"{ast.unparse(node.func)}()")


# ---- FNA603, FNA604, FNA607: NumPy, sizes, loops -------------------------------------------------


def _numpy(walk: Tracedness, node: ast.Call, name: str, given: ast.expr) -> None:
    if name.startswith("numpy.") and name.rpartition(".")[2] not in _NUMPY_SAFE:
        walk.report("FNA603", node, name=short(given), what=f"{ast.unparse(node.func)}()")


@_on(ast.Subscript)
def _masked(walk: Tracedness, node: ast.Subscript) -> None:
    at = isinstance(node.value, ast.Attribute) and node.value.attr == "at"
    if at or not isinstance(node.ctx, ast.Load) or not walk.taint.of(node.value):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if any(_is_mask(walk, part) for part in parts):
        walk.report("FNA604", node, name=short(node.value), what="is indexed by a mask")


def _is_mask(walk: Tracedness, node: ast.expr | None) -> bool:
    """Say whether an index is surely a traced array of truth values."""
    match node:
        case ast.Compare():
            return walk.taint.of(node) == ARRAY
        case ast.UnaryOp(op=ast.Invert()):
            return _is_mask(walk, node.operand)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return _is_mask(walk, node.left) or _is_mask(walk, node.right)
        case ast.Call():
            name = walk.taint.callee(node.func) or ""
            return name.rpartition(".")[2] in _MASKS and walk.taint.of(node) == ARRAY
        case ast.Name():
            found = walk.taint.scope.lookup(node.id)
            if found is None or len(found[1]) != 1 or not walk.taint.of(node):
                return False
            value: ast.expr | None = getattr(found[1][0], "value", None)
            exact: bool = getattr(found[1][0], "exact", False)
            return exact and not isinstance(value, ast.Name) and _is_mask(walk, value)
        case _:
            return False


def _sized(walk: Tracedness, node: ast.Call, name: str, given: ast.expr) -> None:
    """Report a function whose result is as large as values say, unless its size is given."""
    package, _, last = name.rpartition(".")
    size = _SIZES.get(last)
    if size is None or package not in ("fnarray.numpy", "jax.numpy"):
        return
    named = {keyword.arg for keyword in node.keywords}
    if size in named or None in named or any(isinstance(a, ast.Starred) for a in node.args):
        return
    if last == "where" and (len(node.args) > 1 or named & {"x", "y"}):
        return
    if last == "repeat":  # how often, and not what
        given = next((k.value for k in node.keywords if k.arg == "repeats"), *node.args[1:2])
    if walk.taint.of(given):
        what = f"is given to {ast.unparse(node.func)}()"
        repair = f"Pass {size}=n, to which the result is cut or filled." if size else _OUTSIDE
        walk.report("FNA604", node, name=short(given), what=what, repair=repair)


#: Functions whose results are as large as values say, and the argument that decides the size.
_SIZES = dict.fromkeys(
    words("""
    nonzero flatnonzero argwhere where extract compress unique unique_all unique_counts
    unique_inverse unique_values setdiff1d union1d intersect1d setxor1d
    """),
    "size",
) | {"bincount": "length", "repeat": "total_repeat_length", "trim_zeros": ""}
_OUTSIDE = "Do it outside of the traced function."


@_on(ast.Call)
def _selected(walk: Tracedness, node: ast.Call) -> None:
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="nonzero"), args=[], keywords=[]):
            if walk.taint.of(base):
                repair = "Use jnp.nonzero(..., size=n)."
                what = "is asked for .nonzero()"
                walk.report("FNA604", node, name=short(base), what=what, repair=repair)
        case _:
            pass


def _unrolled(walk: Tracedness, iterated: ast.expr, body: Sequence[ast.AST], node: ast.AST) -> None:
    """Report a long ``range`` whose body computes with traced values."""
    if walk.traced.transform.name in ("make_jaxpr", "eval_shape"):
        return  # nothing is compiled: somebody looks at the program
    count = trips(walk.taint, iterated)
    if count is None or count < walk.project.settings.max_unrolled:
        return
    computes = any(
        isinstance(child, ast.Name) and walk.taint.env.get(child.id, NONE)
        for part in body
        for child in ast.walk(part)
    )
    if computes:
        place = iterated if isinstance(node, ast.For) else node
        walk.report("FNA607", place, name=str(count), what=str(count))


_WATCHERS = Watchers(_syntax, (_compared, _converted, _numpy, _sized), (_truth,), (_unrolled,))
