"""Which expressions of a traced function surely hold a traced value.

Two strengths: ``ARRAY`` is an array for certain (arithmetic, an array function's result);
``TREE`` is an argument or part of one, an array or a container of arrays.  Everything else,
whatever it may be, is not claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import cast

from ..transforms import ARRAY_PACKAGES, is_control
from ..ways import State
from ._words import words
from .index import Scope
from .project import External, Project

ARRAY, TREE, NONE = 2, 1, 0

# Attributes that are arrays when their owner is; shapes and dtypes are known while tracing.
ARRAY_ATTRIBUTES = frozenset({"T", "mT", "real", "imag", "at"})
ARRAY_METHODS = words(
    """
    all any argmax argmin argsort astype clip conj conjugate cumprod cumsum diagonal dot
    flatten max mean min prod ravel repeat reshape round sort squeeze std sum swapaxes take
    trace transpose var view set add multiply divide power get apply
    """
)
# Functions of the frameworks that answer from shapes and dtypes alone.
STATIC_FUNCTIONS = words(
    """
    shape ndim size issubdtype result_type dtype iscomplexobj isrealobj isscalar
    broadcast_shapes promote_types can_cast finfo iinfo typeof get_aval eval_shape
    tree_structure structure canonicalize_dtype is_valid_dtype axis_size make_jaxpr
    ShapeDtypeStruct device_count dtype_name float0 save named_scope process_index
    default_backend devices local_devices all_leaves treedef_is_leaf iterable callable
    issubclass isdtype broadcast_shardings
    """
)
_SAME_TREE = words("stop_gradient optimization_barrier device_put map tree_map copy")
# Builtins that pass arrays through arithmetic.
_ARITHMETIC = frozenset({"abs", "round", "sum", "pow", "divmod"})
_ARRAY_PACKAGES = tuple(
    f"{package}.{module}."
    for package in ARRAY_PACKAGES
    for module in ("numpy", "nn", "scipy", "random")
)
_FRAMEWORK = tuple(f"{package}." for package in ARRAY_PACKAGES)


class Taint(State[int]):
    """Strength of expressions under an environment of names; ``project`` resolves callees."""

    def __init__(self, project: Project, scope: Scope) -> None:
        super().__init__()
        self.project = project
        self.scope = scope

    def of(self, node: ast.expr | None) -> int:
        """Return how surely an expression is a traced value."""
        handler = _RULES.get(type(node))
        return handler(self, cast("ast.expr", node)) if handler else NONE

    def each(self, node: ast.expr) -> int:
        """Return how surely what iteration gives is traced: all that is written out, or a part."""
        if isinstance(node, (ast.Tuple, ast.List)) and node.elts:
            return min(map(self.of, node.elts))
        return min(self.of(node), TREE)

    def name(self, node: ast.Name) -> int:
        """The strength bound to the name."""
        return self.env.get(node.id, NONE)

    def attribute(self, node: ast.Attribute) -> int:
        """Array attributes of what is traced; fields of trees may be anything."""
        return ARRAY if node.attr in ARRAY_ATTRIBUTES and self.of(node.value) else NONE

    def subscript(self, node: ast.Subscript) -> int:
        """A part is as traced as the whole."""
        return self.of(node.value)

    def binary(self, node: ast.BinOp) -> int:
        """Arithmetic makes arrays; text and tuples are no arithmetic."""
        if _is_text(node.left) or _is_text(node.right):
            return NONE  # "..." % x, (1,) + shape
        return ARRAY if self.of(node.left) or self.of(node.right) else NONE

    def unary(self, node: ast.UnaryOp) -> int:
        """Arithmetic makes arrays; ``not`` makes a Python bool."""
        if isinstance(node.op, ast.Not):
            return NONE
        return ARRAY if self.of(node.operand) else NONE

    def compare(self, node: ast.Compare) -> int:
        """A comparison of arrays is one; identity and membership are not."""
        parts = [node.left, *node.comparators]
        if any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops):
            return NONE
        if any(_is_text(p) or _is_none(p) for p in parts):
            return NONE
        return ARRAY if any(self.of(p) for p in parts) else NONE

    def either(self, node: ast.IfExp) -> int:
        """Only what holds on both sides."""
        return min(self.of(node.body), self.of(node.orelse))

    def named(self, node: ast.NamedExpr) -> int:
        """The value that is named."""
        return self.of(node.value)

    def call(self, node: ast.Call) -> int:
        """What a known function or method makes of traced arguments."""
        func = node.func
        if isinstance(func, ast.Attribute) and (strength := self.of(func.value)):
            if func.attr == "values" and not node.args and strength == TREE:
                return TREE  # of a dictionary of arrays
            return ARRAY if func.attr in ARRAY_METHODS else NONE
        if self.is_control(func):
            return TREE  # whatever it is given, its result is computed at run time
        strengths = [self.of(a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        strengths += [self.of(k.value) for k in node.keywords if k.arg not in _STATIC_KEYWORDS]
        strongest = max(strengths, default=NONE)
        if strongest is NONE:
            return NONE
        target = self.callee(func)
        if target is None:
            return NONE
        last = target.rpartition(".")[2].lstrip("_")
        if last in STATIC_FUNCTIONS:
            return NONE
        if target.startswith(_ARRAY_PACKAGES):
            return ARRAY
        if target.startswith(_FRAMEWORK):
            if last in _SAME_TREE:
                return strongest
            return ARRAY if ".lax." in target else NONE
        return ARRAY if target.removeprefix("builtins.") in _ARITHMETIC else NONE

    def is_control(self, func: ast.expr) -> bool:
        """Say whether a function is a loop or branch of the frameworks."""
        target = self.callee(func)
        return target is not None and is_control(target)

    def callee(self, func: ast.expr) -> str | None:
        """Return the dotted name of a function outside the project."""
        if not isinstance(func, (ast.Name, ast.Attribute)):
            return None
        target = self.project.resolve(func, self.scope)
        return target.name if isinstance(target, External) else None


_STATIC_KEYWORDS = words("dtype shape axis axes length size num name")


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr)):
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or node.value is ...)


_RULES: dict[type, Callable[[Taint, ast.expr], int]] = {
    ast.Name: Taint.name,
    ast.Attribute: Taint.attribute,
    ast.Subscript: Taint.subscript,
    ast.BinOp: Taint.binary,
    ast.UnaryOp: Taint.unary,
    ast.Compare: Taint.compare,
    ast.IfExp: Taint.either,
    ast.NamedExpr: Taint.named,
    ast.Call: Taint.call,
}  # type: ignore[dict-item]
