"""Roots, exponentials, logarithms, trigonometry: inexact functions of one operand, and atan2."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import Any, cast

import numpy as np

from ..core.avals import ShapedArray
from ..core.dtypes import float32, to_real
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive
from ..core.record import spelled_of
from ..core.trace import bind, trace_graph
from .elementwise import in_single, integer_pow, reciprocal, square
from .kit.calls import abs, add, div, eq, lt, mul, neg, select, sub
from .kit.checks import FLOAT, INEXACT, kind
from .kit.declare import Face, elementwise, face_of
from .kit.rules import partials
from .parts import join_parts

__all__ = [
    "AccuracyMode",
    "Tolerance",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "logistic",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


class AccuracyMode(Enum):
    """What ``accuracy=`` of the transcendental functions may ask for."""

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True)
class Tolerance:
    """Error that ``accuracy=`` allows: absolute, relative, in units in the last place."""

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if self.atol < 0 or self.rtol < 0 or self.ulps < 0:
            raise ValueError(f"lax.Tolerance: bounds must not be negative, got {self}.")


def transcendental(
    eval: Callable[..., Any],
    slope: Callable[[Any, Any, Any], Any],
    *,
    template: str | dict[str, str] | None = None,
    dtypes: str = INEXACT,
    cost: int = 12,
) -> Callable[[Callable[..., Any]], Face]:
    """Declare an elementwise function of one operand.

    Parameters
    ----------
    eval : callable
        NumPy evaluation.
    slope : callable
        ``slope(g, out, x)`` is the tangent of ``out`` for the tangent ``g`` of ``x``.
    template : str or dict by kinds, optional
        By default the kernels of its name, one for real and one for complex operands.
    """

    def declare(signature: Callable[..., Any]) -> Face:
        name = signature.__name__
        kernels = {"f": f"vm.{name}({{0}})", "c": f"fk.complexmath.{name}({{0}})"}
        prim = elementwise(
            template or kernels, eval=eval, dtypes=dtypes, cost=cost, jvp=partials(slope), name=name
        )(lambda x: x).primitive
        face = _with_accuracy if "accuracy" in inspect.signature(signature).parameters else face_of
        return face(prim, signature)

    return declare


def _with_accuracy(prim: Primitive, signature: Callable[..., Any]) -> Face:
    """Return the public function of a primitive that takes ``accuracy``.

    There is one version of each, good to the bound in ``fnarray_kernels.vmath``, so every request
    is served by it; the argument is checked all the same.
    """

    @wraps(signature)
    def unary(x: Any, *, accuracy: Tolerance | AccuracyMode | None = None) -> Any:
        if accuracy is not None and not isinstance(accuracy, Tolerance | AccuracyMode):
            raise TypeError(
                f"lax.{prim.name}: accuracy must be a Tolerance, an AccuracyMode or None, "
                f"got {accuracy!r}."
            )
        return bind(prim, x)

    face = cast("Face", unary)
    face.primitive = prim
    return face


@transcendental(
    np.sqrt,
    lambda g, out, x: mul(g, div(0.5, out)),
    template={"f": "sc.sqrt({0})", "c": "fk.complexmath.sqrt({0})"},
    cost=6,
)
def sqrt(x: Any, *, accuracy: Any = None) -> Any:
    """Square root, correctly rounded for real operands; NaN below zero."""


@transcendental(
    in_single(lambda x: 1 / np.sqrt(x)), lambda g, out, x: mul(g, mul(div(out, x), -0.5))
)
def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """``1 / sqrt(x)``."""


@transcendental(
    np.cbrt,
    lambda g, out, x: mul(g, mul(integer_pow(out, -2), 1 / 3)),
    template="vm.cbrt({0})",
    dtypes=FLOAT,
    cost=20,
)
def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """Cube root, real for negative operands."""


@transcendental(np.exp, lambda g, out, x: mul(g, out))
def exp(x: Any, *, accuracy: Any = None) -> Any:
    """Exponential."""


def _exp2(x: np.ndarray) -> Any:
    return np.exp2(x) if x.dtype.kind != "c" else np.exp(x * np.log(2).astype(to_real(x.dtype)))


@transcendental(_exp2, lambda g, out, x: mul(mul(g, out), float(np.log(2))))
def exp2(x: Any, *, accuracy: Any = None) -> Any:
    """``2 ** x``."""


def _expm1(x: Any) -> Any:
    out = np.expm1(x)
    if x.dtype.kind != "c":
        return out
    # NumPy's is NaN where an infinite power meets the sine of 0 or of an unknown angle.
    infinite = np.isinf(x.real)
    out = np.where(infinite, np.exp(x, where=infinite, out=np.zeros_like(x)) - 1, out)
    out.imag = np.where(x.imag == 0, x.imag, out.imag)
    return out.astype(x.dtype, copy=False)


@transcendental(_expm1, lambda g, out, x: mul(g, add(out, 1)))
def expm1(x: Any, *, accuracy: Any = None) -> Any:
    """``exp(x) - 1``, accurate for small ``x``."""


@transcendental(np.log, lambda g, out, x: div(g, x))
def log(x: Any, *, accuracy: Any = None) -> Any:
    """Natural logarithm; NaN below zero for real operands."""


def _log1p(x: Any) -> Any:
    if x.dtype.kind != "c":
        return np.log1p(x)
    re, im = x.real, x.imag
    # NumPy takes log|1 + x|, which loses what 1 + x rounds away.
    small = np.hypot(re, im) < 0.5
    excess = np.where(small, re * (2 + re) + im * im, 0)
    # The size of the others may be beyond the largest number, its logarithm is not.
    size = np.where(small, np.log1p(excess) / 2, np.log(1 + x).real)
    return join_parts(size, np.arctan2(im, 1 + re))


@transcendental(_log1p, lambda g, out, x: div(g, add(x, 1)))
def log1p(x: Any, *, accuracy: Any = None) -> Any:
    """Natural logarithm of ``1 + x``, accurate for small ``x``."""


def _logistic(x: Any) -> Any:
    if x.dtype.kind != "c":
        return 1 / (1 + np.exp(-x))
    falling = x.real < 0
    small = np.exp(np.where(falling, x, -x))  # the other one is infinite in all directions
    return np.where(falling, small, x.dtype.type(1)) / (1 + small)


@transcendental(in_single(_logistic), lambda g, out, x: mul(g, mul(out, sub(1, out))))
def logistic(x: Any, *, accuracy: Any = None) -> Any:
    """Logistic function ``1 / (1 + exp(-x))``."""


def _logistic_in_turn(x: ShapedArray) -> ClosedGraph | None:
    if x.dtype is not float32:
        return None
    return trace_graph(lambda y: [div(1, add(exp(neg(y)), 1))], [x], "logistic")


spelled_of[logistic.primitive.eval] = _logistic_in_turn


@transcendental(np.sin, lambda g, out, x: mul(g, cos(x)))
def sin(x: Any, *, accuracy: Any = None) -> Any:
    """Sine."""


def _cos_slope(g: Any, out: Any, x: Any) -> Any:
    return neg(mul(g, sin(x)))


@transcendental(np.cos, _cos_slope)
def cos(x: Any, *, accuracy: Any = None) -> Any:
    """Cosine."""


@transcendental(np.tan, lambda g, out, x: mul(g, add(square(out), 1)), cost=20)
def tan(x: Any, *, accuracy: Any = None) -> Any:
    """Tangent."""


@transcendental(np.tanh, lambda g, out, x: mul(add(g, mul(g, out)), sub(1, out)))
def tanh(x: Any, *, accuracy: Any = None) -> Any:
    """Hyperbolic tangent."""


def _factored(product: Any, difference: Any) -> Any:
    """Return what is 0 at 1 and -1 by its factors, whose product keeps all digits beside them.

    There it is the difference of squares, whose own slope is finite: those of the factors are 0
    and not, and times infinity are no number.
    """
    return select(eq(product, 0), difference, product)


def _asin_slope(g: Any, out: Any, x: Any) -> Any:
    difference = sub(1, square(x))
    factored = _factored(mul(sub(1, x), add(x, 1)), difference)
    # The slope of the product, 1 - x - (1 + x), loses a small x, where the difference loses none.
    return mul(g, rsqrt(select(lt(abs(x), 0.5), difference, factored)))


@transcendental(np.arcsin, _asin_slope, cost=15)
def asin(x: Any) -> Any:
    """Inverse sine."""


@transcendental(np.arccos, lambda g, out, x: neg(_asin_slope(g, out, x)), cost=15)
def acos(x: Any) -> Any:
    """Inverse cosine."""


@transcendental(np.arctan, lambda g, out, x: div(g, add(square(x), 1)), cost=15)
def atan(x: Any) -> Any:
    """Inverse tangent."""


@transcendental(np.sinh, lambda g, out, x: mul(g, cosh(x)), cost=15)
def sinh(x: Any) -> Any:
    """Hyperbolic sine."""


def _cosh_slope(g: Any, out: Any, x: Any) -> Any:
    return mul(g, sinh(x))


@transcendental(np.cosh, _cosh_slope, cost=15)
def cosh(x: Any) -> Any:
    """Hyperbolic cosine."""


@transcendental(np.arcsinh, lambda g, out, x: mul(g, rsqrt(add(square(x), 1))), cost=20)
def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine."""


def _acosh_slope(g: Any, out: Any, x: Any) -> Any:
    if kind(x.dtype) != "c":
        return mul(g, rsqrt(_factored(mul(sub(x, 1), add(x, 1)), sub(square(x), 1))))
    # The root of the product is of the other sign left of the imaginary axis.
    return mul(g, mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1))))


@transcendental(np.arccosh, _acosh_slope, cost=20)
def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine."""


@transcendental(
    np.arctanh, lambda g, out, x: mul(reciprocal(add(x, 1)), div(g, sub(1, x))), cost=20
)
def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent."""


def _atan2(y: np.ndarray, x: np.ndarray) -> Any:
    if y.dtype.kind != "c":
        return np.arctan2(y, x)
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


@elementwise(
    {"f": "vm.atan2({0}, {1})", "c": "fk.complexmath.atan2({0}, {1})"},
    eval=_atan2,
    dtypes=INEXACT,
    cost=20,
    jvp=partials(
        lambda g, out, x, y: mul(g, div(y, add(square(x), square(y)))),
        lambda g, out, x, y: mul(g, div(neg(x), add(square(x), square(y)))),
    ),
)
def atan2(x: Any, y: Any) -> Any:
    """Angle of the point ``(y, x)``: the inverse tangent of ``x / y`` in its quadrant."""
