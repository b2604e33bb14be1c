"""What the syntax of a call alone says of its arguments."""

from __future__ import annotations

import ast

from .scopes import Frame
from .values import Value

_TEXT = (str, bytes)
#: The name of what gives a value that is text, whatever it says.
TEXT = "builtins.str"


def text_of(node: ast.AST, at: int = 0) -> str:
    """Return an argument of a call, by its position, where it is a string; else ""."""
    arg = node.args[at] if isinstance(node, ast.Call) and len(node.args) > at else None
    return arg.value if isinstance(arg, ast.Constant) and isinstance(arg.value, str) else ""


def handler_of(node: ast.AST, at: int) -> str:
    """Return what is to handle errors of ``encode``, where it is named: none of Python's own."""
    named = [k.value for k in getattr(node, "keywords", ()) if k.arg == "errors"]
    given = named[0].value if named and isinstance(named[0], ast.Constant) else text_of(node, at)
    return given if isinstance(given, str) and given not in _HANDLERS else ""


_HANDLERS = frozenset(
    {"strict", "ignore", "replace", "xmlcharrefreplace", "backslashreplace", "namereplace",
     "surrogateescape", "surrogatepass"}
)  # fmt: skip


def seeded(node: ast.AST) -> bool:
    """Say whether a generator is made with an argument: a seed."""
    if not isinstance(node, ast.Call):
        return True
    given = [*node.args, *(k.value for k in node.keywords)]
    return bool(given) and not all(isinstance(g, ast.Constant) and g.value is None for g in given)


def says_no(node: ast.AST, name: str) -> bool:
    """Say whether a call has a keyword that is written as False or None."""
    given = (k.value for k in getattr(node, "keywords", ()) if k.arg == name)
    return any(isinstance(g, ast.Constant) and not g.value for g in given)


def is_named_text(node: ast.AST, frame: Frame) -> bool:
    """Say whether ``hash`` is asked of a parameter that is text by its annotation or default."""
    arg = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if not isinstance(arg, ast.Name):
        return False
    spec = frame.function.node.args
    for one in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
        if one.arg == arg.id and getattr(one.annotation, "id", "") in ("str", "bytes"):
            return True
    positional = [*spec.posonlyargs, *spec.args]
    places = [
        *zip(reversed(positional), reversed(spec.defaults), strict=False),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    return any(
        a.arg == arg.id and isinstance(d, ast.Constant) and isinstance(d.value, _TEXT)
        for a, d in places
    )


def is_text(node: ast.AST, value: Value) -> bool:
    """Say whether ``hash`` is asked of text: a literal, an f-string, or ``str(...)``."""
    arg = node.args[0] if isinstance(node, ast.Call) and node.args else None
    return spells_text(arg) or value.ref == TEXT or isinstance(value.obj, _TEXT)


def spells_text(node: ast.expr | None) -> bool:
    """Say whether an expression is text: a literal, an f-string, or ``str(...)``."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, _TEXT)
        case ast.Call(func=ast.Name(id=name)):
            return name in ("str", "repr", "format")
        case ast.Tuple(elts=parts):
            return any(map(spells_text, parts))
        case _:
            return isinstance(node, ast.JoinedStr)
