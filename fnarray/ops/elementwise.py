"""Arithmetic, powers, exponentials, trigonometry, rounding, complex parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import wraps
from operator import index
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.dtypes import float64, to_real
from ..core.forms import Map
from ..core.primitive import Primitive
from ..core.trace import bind
from ._rules import (
    FLOAT,
    INEXACT,
    NUMBER,
    REAL,
    all_weak,
    broadcast_avals,
    check_kind,
    elementwise,
    kind,
    register,
)
from .parts import join_parts

__all__ = [
    "AccuracyMode",
    "RoundingMethod",
    "Tolerance",
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "div",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "integer_pow",
    "is_finite",
    "log",
    "log1p",
    "logistic",
    "max",
    "min",
    "mul",
    "neg",
    "nextafter",
    "pow",
    "reciprocal",
    "rem",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
]


def in_single(f: Callable[..., Any]) -> Callable[..., Any]:
    """Evaluate half-precision operands in float32, rounding once at the end, as kernels do."""

    @wraps(f)
    def evaluate(*xs: Any, **params: Any) -> Any:
        dtype = xs[0].dtype
        if dtype.itemsize != 2 or dtype.kind in "iu":
            return f(*xs, **params)
        wide = (x.astype(np.float32) if x.dtype == dtype else x for x in xs)
        return np.asarray(f(*wide, **params)).astype(dtype)

    return evaluate


# ---- arithmetic --------------------------------------------------------------------------------


@elementwise({"iu": "sc.add({0}, {1})", "fc": "({0} + {1})"}, eval=np.add, dtypes=NUMBER)
def add(x: Any, y: Any) -> Any:
    """Sum of two arrays of one dtype; integers wrap."""


@elementwise({"iu": "sc.sub({0}, {1})", "fc": "({0} - {1})"}, eval=np.subtract, dtypes=NUMBER)
def sub(x: Any, y: Any) -> Any:
    """Difference of two arrays of one dtype; integers wrap."""


@elementwise({"iu": "sc.mul({0}, {1})", "fc": "({0} * {1})"}, eval=np.multiply, dtypes=NUMBER)
def mul(x: Any, y: Any) -> Any:
    """Product of two arrays of one dtype; integers wrap."""


def _divide(x: np.ndarray, y: np.ndarray) -> Any:
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    divisor = np.where(y == 0, 1, y)
    # NumPy's // rounds down; without the remainder there is nothing to round.
    quotient = (x - np.fmod(x, divisor)) // divisor
    return np.where(y == 0, ~np.zeros_like(y), quotient)


@elementwise(
    {"iuf": "sc.div({0}, {1})", "c": "fk.complexmath.div({0}, {1})"},
    eval=_divide,
    dtypes=NUMBER,
    cost=3,
)
def div(x: Any, y: Any) -> Any:
    """Quotient of two arrays of one dtype.

    Integers are divided rounding towards zero. Division of an integer by zero gives -1 (all bits
    set), and the smallest integer divided by -1 is itself.
    """


def _remainder(x: np.ndarray, y: np.ndarray) -> Any:
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    zero = y == 0
    return np.where(zero, x, np.fmod(x, np.where(zero, 1, y)))


@elementwise("sc.rem({0}, {1})", eval=_remainder, dtypes=REAL, cost=8)
def rem(x: Any, y: Any) -> Any:
    """Remainder with the sign of ``x``; of an integer by zero, ``x`` itself."""


@elementwise(
    {"iuf": "sc.neg({0})", "c": "fk.complexmath.neg({0})"}, eval=np.negative, dtypes=NUMBER
)
def neg(x: Any) -> Any:
    """Negative; the smallest integer is its own."""


@elementwise(
    {"if": "sc.abs_({0})", "c": "fk.complexmath.abs({0})"},
    eval=np.abs,
    dtypes="ifc",
    result=to_real,
)
def abs(x: Any) -> Any:
    """Magnitude, real for complex operands; unsigned integers are not accepted."""


def _sign(x: np.ndarray) -> Any:
    s = np.sign(x)
    # NumPy's sign of -0.0 is +0.0.
    return np.where(x == 0, x, s) if x.dtype.kind not in "iuc" else s


@elementwise(
    {"iuf": "sc.sign({0})", "c": "fk.complexmath.sign({0})"}, eval=_sign, dtypes=NUMBER, cost=2
)
def sign(x: Any) -> Any:
    """-1, 0 or 1; a float zero keeps its sign; ``x / |x|`` for complex operands."""


@elementwise({"iuf": "sc.mul({0}, {0})", "c": "({0} * {0})"}, eval=np.square, dtypes=NUMBER)
def square(x: Any) -> Any:
    """``x * x``."""


@elementwise(
    {"biuf": "sc.maximum({0}, {1})", "c": "fk.complexmath.maximum({0}, {1})"}, eval=np.maximum
)
def max(x: Any, y: Any) -> Any:
    """Larger of two; NaN wins; complex numbers compare by real part, then imaginary part."""


@elementwise(
    {"biuf": "sc.minimum({0}, {1})", "c": "fk.complexmath.minimum({0}, {1})"}, eval=np.minimum
)
def min(x: Any, y: Any) -> Any:
    """Smaller of two; NaN wins; complex numbers compare by real part, then imaginary part."""


def _nextafter_template(dtype: np.dtype) -> str:
    if dtype.itemsize > 2:
        return "sc.nextafter({0}, {1})"
    # Half types arrive as float32; their own step is taken on their own bits.
    return f"fk.halves.nextafter_{'f16' if dtype.kind == 'f' else 'bf16'}({{0}}, {{1}})"


@elementwise(_nextafter_template, eval=np.nextafter, dtypes=FLOAT, cost=4)
def nextafter(x: Any, y: Any) -> Any:
    """Next number after ``x`` in the direction of ``y``."""


# ---- powers ------------------------------------------------------------------------------------


def _pow_aval(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    check_kind("pow", x.dtype, INEXACT)
    check_kind("pow", y.dtype, NUMBER)
    if kind(y.dtype) in INEXACT and x.dtype != y.dtype:
        raise TypeError(
            f"lax.pow: an inexact exponent must have the base's dtype, got {x.dtype} and "
            f"{y.dtype}. Convert one, or use fnarray.numpy.power, which promotes."
        )
    return ShapedArray(broadcast_avals("pow", (x, y)), x.dtype, all_weak((x, y)))


@in_single
def _power(x: np.ndarray, y: np.ndarray) -> Any:
    return np.power(x, y if y.dtype == x.dtype else y.astype(x.dtype))


def _pow_form(ins: tuple[ShapedArray, ...], outs: Any) -> Map:
    x, y = (a.dtype for a in ins)
    exponent = "{1}"
    if kind(x) == "c":
        exponent = "{1}" if x == y else f"fk.complexmath.to_{x}({{1}})"
        return Map(f"fk.complexmath.pow({{0}}, {exponent})", 60)
    if kind(y) in "iu":
        exponent = "sc.to_float64({1})" if x == float64 else "sc.to_float32({1})"
    return Map(f"vm.pow({{0}}, {exponent})", 30)


_pow_p = register(Primitive("pow", aval=_pow_aval, eval=_power, form=_pow_form))


def pow(x: Any, y: Any) -> Any:
    """``x ** y`` for inexact ``x``; ``y`` has its dtype or is an integer array."""
    return bind(_pow_p, x, y)


def _integer_pow_aval(x: ShapedArray, *, y: int) -> ShapedArray:
    check_kind("integer_pow", x.dtype, NUMBER)
    if y < 0 and kind(x.dtype) in "iu":
        raise TypeError(
            f"Integers cannot be raised to negative powers: lax.integer_pow got {x.dtype} and {y}. "
            "Convert the operand to a float first."
        )
    return x


def _repeated_product(x: np.ndarray, *, y: int) -> Any:
    """Square and multiply, as kernels do, so that both round alike."""
    result, n = np.ones_like(x), -y if y < 0 else y
    while n:
        if n & 1:
            result = result * x
        n >>= 1
        if n:
            x = x * x
    return 1 / result if y < 0 else result


def _integer_pow_form(ins: tuple[ShapedArray, ...], outs: Any, *, y: int) -> Map:
    where = "fk.complexmath" if kind(ins[0].dtype) == "c" else "sc"
    return Map(f"{where}.ipow({{0}}, {y})", 2 + y.bit_length() + 3 * (y < 0))


_integer_pow_p = register(
    Primitive(
        "integer_pow",
        aval=_integer_pow_aval,
        eval=in_single(_repeated_product),
        form=_integer_pow_form,
    )
)


def integer_pow(x: Any, y: int) -> Any:
    """``x ** y`` for a fixed Python integer ``y``, by repeated squaring.

    Raises
    ------
    TypeError
        ``y`` is no integer, or is negative while ``x`` holds integers.
    """
    return bind(_integer_pow_p, x, y=index(y))


def reciprocal(x: Any) -> Any:
    """``1 / x`` for inexact ``x``."""
    return integer_pow(x, -1)


# ---- transcendental functions ------------------------------------------------------------------


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
    template: str | dict[str, str],
    *,
    eval: Callable[..., Any],
    dtypes: str = INEXACT,
    cost: int = 12,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an elementwise function that takes ``accuracy``.

    There is one version of each, good to the bound in ``fnarray_kernels.vmath``, so every request
    is served by it; the argument is checked all the same.
    """

    def declare(signature: Callable[..., Any]) -> Callable[..., Any]:
        label = signature.__name__
        prim = elementwise(template, eval=eval, dtypes=dtypes, cost=cost, name=label)(
            lambda x: x
        ).primitive

        @wraps(signature)
        def face(x: Any, *, accuracy: Tolerance | AccuracyMode | None = None) -> Any:
            if accuracy is not None and not isinstance(accuracy, Tolerance | AccuracyMode):
                raise TypeError(
                    f"lax.{label}: accuracy must be a Tolerance, an AccuracyMode or None, "
                    f"got {accuracy!r}."
                )
            return bind(prim, x)

        face.primitive = prim  # type: ignore[attr-defined]
        return face

    return declare


def _everywhere(name: str) -> dict[str, str]:
    """Templates of a function that exists for real and complex operands."""
    return {"f": f"vm.{name}({{0}})", "c": f"fk.complexmath.{name}({{0}})"}


@transcendental({"f": "sc.sqrt({0})", "c": "fk.complexmath.sqrt({0})"}, eval=np.sqrt, cost=6)
def sqrt(x: Any, *, accuracy: Any = None) -> Any:
    """Square root, correctly rounded for real operands; NaN below zero."""


@transcendental(_everywhere("rsqrt"), eval=in_single(lambda x: 1 / np.sqrt(x)))
def rsqrt(x: Any, *, accuracy: Any = None) -> Any:
    """``1 / sqrt(x)``."""


@transcendental("vm.cbrt({0})", eval=np.cbrt, dtypes=FLOAT, cost=20)
def cbrt(x: Any, *, accuracy: Any = None) -> Any:
    """Cube root, real for negative operands."""


@transcendental(_everywhere("exp"), eval=np.exp)
def exp(x: Any, *, accuracy: Any = None) -> Any:
    """Exponential."""


def _exp2(x: np.ndarray) -> Any:
    return np.exp2(x) if x.dtype.kind != "c" else np.exp(x * np.log(2).astype(to_real(x.dtype)))


@transcendental(_everywhere("exp2"), eval=_exp2)
def exp2(x: Any, *, accuracy: Any = None) -> Any:
    """``2 ** x``."""


@transcendental(_everywhere("expm1"), eval=np.expm1)
def expm1(x: Any, *, accuracy: Any = None) -> Any:
    """``exp(x) - 1``, accurate for small ``x``."""


@transcendental(_everywhere("log"), eval=np.log)
def log(x: Any, *, accuracy: Any = None) -> Any:
    """Natural logarithm; NaN below zero for real operands."""


def _log1p(x: np.ndarray) -> Any:
    if x.dtype.kind != "c":
        return np.log1p(x)
    re, im = x.real, x.imag
    # NumPy takes log|1 + x|, which loses what 1 + x rounds away.
    small = np.hypot(re, im) < 0.5
    square = np.where(small, re * (2 + re) + im * im, 0)
    size = np.where(small, np.log1p(square) / 2, np.log(np.hypot(1 + re, im)))
    return join_parts(size, np.arctan2(im, 1 + re))


@transcendental(_everywhere("log1p"), eval=_log1p)
def log1p(x: Any, *, accuracy: Any = None) -> Any:
    """Natural logarithm of ``1 + x``, accurate for small ``x``."""


@transcendental(_everywhere("logistic"), eval=in_single(lambda x: 1 / (1 + np.exp(-x))))
def logistic(x: Any, *, accuracy: Any = None) -> Any:
    """Logistic function ``1 / (1 + exp(-x))``."""


@transcendental(_everywhere("sin"), eval=np.sin)
def sin(x: Any, *, accuracy: Any = None) -> Any:
    """Sine."""


@transcendental(_everywhere("cos"), eval=np.cos)
def cos(x: Any, *, accuracy: Any = None) -> Any:
    """Cosine."""


@transcendental(_everywhere("tan"), eval=np.tan, cost=20)
def tan(x: Any, *, accuracy: Any = None) -> Any:
    """Tangent."""


@transcendental(_everywhere("tanh"), eval=np.tanh)
def tanh(x: Any, *, accuracy: Any = None) -> Any:
    """Hyperbolic tangent."""


@elementwise(_everywhere("asin"), eval=np.arcsin, dtypes=INEXACT, cost=15)
def asin(x: Any) -> Any:
    """Inverse sine."""


@elementwise(_everywhere("acos"), eval=np.arccos, dtypes=INEXACT, cost=15)
def acos(x: Any) -> Any:
    """Inverse cosine."""


@elementwise(_everywhere("atan"), eval=np.arctan, dtypes=INEXACT, cost=15)
def atan(x: Any) -> Any:
    """Inverse tangent."""


@elementwise(_everywhere("sinh"), eval=np.sinh, dtypes=INEXACT, cost=15)
def sinh(x: Any) -> Any:
    """Hyperbolic sine."""


@elementwise(_everywhere("cosh"), eval=np.cosh, dtypes=INEXACT, cost=15)
def cosh(x: Any) -> Any:
    """Hyperbolic cosine."""


@elementwise(_everywhere("asinh"), eval=np.arcsinh, dtypes=INEXACT, cost=20)
def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine."""


@elementwise(_everywhere("acosh"), eval=np.arccosh, dtypes=INEXACT, cost=20)
def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine."""


@elementwise(_everywhere("atanh"), eval=np.arctanh, dtypes=INEXACT, cost=20)
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
)
def atan2(x: Any, y: Any) -> Any:
    """Angle of the point ``(y, x)``: the inverse tangent of ``x / y`` in its quadrant."""


# ---- rounding ----------------------------------------------------------------------------------


class RoundingMethod(IntEnum):
    """Where `round` takes numbers halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@elementwise("sc.floor({0})", eval=np.floor, dtypes=FLOAT)
def floor(x: Any) -> Any:
    """Largest integer not above ``x``."""


@elementwise("sc.ceil({0})", eval=np.ceil, dtypes=FLOAT)
def ceil(x: Any) -> Any:
    """Smallest integer not below ``x``."""


@in_single
def _round(x: np.ndarray, *, rounding_method: RoundingMethod) -> Any:
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones_like(x), x), whole)


def _round_aval(x: ShapedArray, *, rounding_method: RoundingMethod) -> ShapedArray:
    check_kind("round", x.dtype, FLOAT)
    return x


def _round_form(ins: Any, outs: Any, *, rounding_method: RoundingMethod) -> Map:
    even = rounding_method is RoundingMethod.TO_NEAREST_EVEN
    return Map("sc.rint({0})" if even else "sc.round_away({0})", 2)


_round_p = register(Primitive("round", aval=_round_aval, eval=_round, form=_round_form))


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Nearest integer, as a float; ``rounding_method`` decides for halves.

    Raises
    ------
    ValueError
        ``rounding_method`` is no `RoundingMethod`.
    """
    return bind(_round_p, x, rounding_method=RoundingMethod(rounding_method))


@elementwise("sc.is_finite({0})", eval=np.isfinite, dtypes=FLOAT, result=np.dtype(bool))
def is_finite(x: Any) -> Any:
    """Whether each element is neither infinite nor NaN."""
