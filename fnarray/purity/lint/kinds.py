"""What the text of a name, a binding or a function says of what it stands for."""

from __future__ import annotations

import ast
import builtins
import re

from ..known import RESULTS
from ..nodes import children
from ._words import words
from .index import FUNCTIONS, Assigned, Binding, Scope

#: Calls that make objects which can change, or are drawn from, by the name of the callee.
MADE = RESULTS | {
    "numpy.random.Generator": "rng",
    **dict.fromkeys(
        ("builtins.property", "re.compile", "numpy.dtype", "collections.namedtuple",
         "typing.TypeVar", "builtins.hash"), "frozen"),
    **dict.fromkeys(("builtins.globals", "builtins.locals", "builtins.vars"), "dict"),
    "builtins.tuple": "tuple",
    "collections.UserList": "list",
    "collections.UserDict": "dict",
    "weakref.WeakValueDictionary": "dict",
    "weakref.WeakKeyDictionary": "dict",
    "weakref.WeakSet": "set",
}  # fmt: skip
NDARRAYS = words(
    """
    array asarray zeros ones full empty arange linspace eye identity zeros_like ones_like
    full_like empty_like copy concatenate stack vstack hstack load loadtxt genfromtxt
    logspace geomspace tile repeat reshape sin cos exp log sqrt diag outer
    """
)
_NUMBERS = re.compile(r"(math|numpy)\.(pi|e|tau|inf|nan|euler_gamma)\Z")


def external_kind(dotted: str) -> str:
    """Return what can be said of an outside name from its spelling alone."""
    head, _, last = dotted.rpartition(".")
    if not head:
        return "module"
    if dotted in ("sys.argv", "sys.path"):
        return "list"
    if dotted in ("os.environ", "sys.modules"):
        return ""
    if _NUMBERS.match(dotted):
        return "scalar"
    if head == "builtins":
        made = getattr(builtins, last, None)
        return "class" if isinstance(made, type) else "function" if callable(made) else "scalar"
    return "class" if last[:1].isupper() and not last.isupper() else ""


def is_number(bindings: list[Binding]) -> bool:
    """Say whether a name is first bound to a number: no placeholder, then, but a variable."""
    match getattr(bindings[0], "value", None) if bindings else None:
        case ast.Constant(value=int() | float() | complex()):
            return True
        case ast.Call(func=ast.Name(id="float" | "int")) | ast.UnaryOp(operand=ast.Constant()):
            return True
        case _:
            return False


def met(scope: Scope, name: str) -> list[Binding]:
    """Return what binds a name, as functions inside meet it: the last, made before any of them.

    ``weights = tuple(weights)``: that it was a list before is no matter.
    """
    bindings = scope.names.get(name, [])
    last = bindings[-1] if len(bindings) > 1 and scope.is_function else None
    if not isinstance(last, Assigned) or not last.exact or name in scope.writes:
        return bindings
    body: list[ast.stmt] = getattr(scope.node, "body", [])
    whole = any(isinstance(s, (ast.Assign, ast.AnnAssign)) and s.lineno == last.line for s in body)
    later = all(
        one.node.lineno > last.line  # type: ignore[attr-defined]
        for one in scope.module.functions if one.parent is scope
    )  # fmt: skip
    return [last] if whole and later and last.line >= max(b.line for b in bindings) else bindings


def is_final(binding: Binding) -> bool:
    """Say whether a binding is annotated as final."""
    note = getattr(binding, "annotation", None)
    return note is not None and bool(re.search(r"\bFinal\b", ast.unparse(note)))


def is_generator(scope: Scope) -> bool:
    """Say whether a function yields."""
    if isinstance(scope.node, ast.Lambda):
        return False
    stack: list[ast.AST] = list(scope.node.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            stack.extend(children(node))
    return False


def flags(scope: Scope) -> dict[str, bool]:
    """Return the parameters of a function that are True or False by default, and stay that."""
    assert isinstance(scope.node, FUNCTIONS)
    args = scope.node.args
    positional = [*args.posonlyargs, *args.args]
    pairs: list[tuple[ast.arg, ast.expr | None]]
    pairs = [*zip(reversed(positional), reversed(args.defaults), strict=False)]
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return {
        arg.arg: default.value
        for arg, default in pairs
        if isinstance(default, ast.Constant)
        and isinstance(default.value, bool)
        and len(scope.names.get(arg.arg, ())) == 1
    }


def stands_in_loop(scope: Scope) -> bool:
    """Say whether a function, or one around it, may be made anew at each turn of a loop."""
    while scope.parent is not None:
        if scope.in_loop:
            return True
        scope = scope.parent
    return False


def spelled(node: ast.AST) -> str:
    """Return a chain of names as it is written; what is no name in it shows as ``()``."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{spelled(value)}.{attr}"
        case _:
            return "()"
