"""Walking syntax trees in half of the time that `ast.walk` takes, as deep as programs write."""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

# What says how a node is used, or is plain text: no field of these holds a node with a place.
_PLAIN = frozenset({
    "ctx", "op", "ops", "id", "attr", "arg", "module", "level", "asname", "kind", "simple",
    "type_comment", "type_ignores", "conversion", "is_async",
})  # fmt: skip
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(field for field in kind._fields if field not in _PLAIN)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
} | {ast.Constant: ()}
#: Lists that hold None, or names, besides nodes.
_MIXED = frozenset({"keys", "kw_defaults", "names", "kwd_attrs"})


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below a node, contexts and operators left out."""
    found: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        field = getattr(node, name, None)
        if type(field) is list:
            found += _nodes(field) if name in _MIXED else field  # pyright: ignore
        elif field is not None and isinstance(field, ast.AST):
            found.append(field)
    return found


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all below it, contexts and operators left out, outermost first."""
    found = [node]
    for one in found:  # it grows on the way
        for name in _FIELDS[type(one)]:
            field = getattr(one, name, None)
            if type(field) is list:
                found += _nodes(field) if name in _MIXED else field  # pyright: ignore
            elif field is not None and isinstance(field, ast.AST):
                found.append(field)
    return found


def nodes_in(function: ast.AST) -> list[ast.AST]:
    """Return what `walk` does for a function, kept on its node: a law of text asks many times."""
    kept: list[ast.AST] | None = getattr(function, "_inside", None)
    if kept is None:
        kept = function._inside = walk(function)  # type: ignore[attr-defined]
    return kept


def _nodes(field: list[object]) -> list[ast.AST]:
    return [x for x in field if isinstance(x, ast.AST)]


#: Frames more. Python's parser nests 200 brackets, and its compiler some 3,000 expressions; of ours
#: each takes three or four. They are Python's own, which take next to nothing of the stack of C.
_ROOM: Final = 12_000
_counting = threading.Lock()
_deep = [0]


def deeply(call: Callable[..., T], *given: Any) -> T:
    """Call with room for deep syntax; no code of the user's runs inside.

    Without end it would take the stack of C as well. The limit is all threads', so the last one
    that leaves takes the room away.
    """
    with _counting:
        if not _deep[0]:
            sys.setrecursionlimit(sys.getrecursionlimit() + _ROOM)
        _deep[0] += 1
    try:
        return _in_one_piece(call, *given)
    finally:
        with _counting:
            _deep[0] -= 1
            if not _deep[0]:
                sys.setrecursionlimit(sys.getrecursionlimit() - _ROOM)


def _in_one_piece(call: Callable[..., T], *given: Any) -> T:
    return call(*given)


# Frames of Python lie in pieces of 16 KiB, and a piece is given back with its last frame: where
# calls go to and fro over an edge, each is two system calls and a new page. In a first check of
# fifty helpers they were 660, an eighth of its time. A frame that asks for more than half a MiB
# gets a whole one, and what is called lies in its rest: memory is taken as it is touched.
_in_one_piece.__code__ = _in_one_piece.__code__.replace(co_stacksize=64_600)


def _alone() -> None:
    """Begin a child with a lock of its own: another thread of its parent's may have held it."""
    global _counting
    _counting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)
