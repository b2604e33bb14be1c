"""Arithmetic, powers and rounding."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import wraps
from operator import index
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.dtypes import float64, to_real
from ..core.forms import Map
from ..core.primitive import Missing, Primitive, RuleOf
from ..core.tangents import Zero, is_zero
from ..core.trace import bind
from .kit import calls
from .kit.calls import broadcast, conj, const, convert, eq, ge, log, real, select
from .kit.checks import FLOAT, INEXACT, NUMBER, REAL, all_weak, broadcast_avals, check_kind, kind
from .kit.declare import elementwise
from .kit.registry import register
from .kit.rules import (
    BILINEAR,
    CONSTANT,
    ELEMENTWISE_BATCH,
    LINEAR,
    NOT_LINEAR,
    partials,
    transposed,
    transposed_each,
)

__all__ = [
    "RoundingMethod",
    "abs",
    "add",
    "ceil",
    "div",
    "floor",
    "integer_pow",
    "is_finite",
    "max",
    "min",
    "mul",
    "neg",
    "nextafter",
    "pow",
    "reciprocal",
    "rem",
    "round",
    "sign",
    "square",
    "sub",
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


def _term_by_term(alone: Callable[[Any], Any]) -> RuleOf:
    """Derivative of a sum or difference: itself on the tangents, ``alone`` on the second's only."""

    def make(prim: Primitive) -> Callable[..., Any]:
        def jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
            out, (dx, dy) = bind(prim, *primals), tangents
            if is_zero(dx):
                tangent = alone(dy)
            else:
                tangent = dx if is_zero(dy) else bind(prim, dx, dy)
            return out, broadcast(tangent, out.shape)

        return jvp

    return RuleOf(make)


_SUM: dict[str, Any] = {
    "template": {"iu": "sc.add({0}, {1})", "fc": "({0} + {1})"},
    "eval": np.add,
    "dtypes": NUMBER,
    "jvp": _term_by_term(lambda dy: dy),
    "transpose": transposed_each(lambda ct, x, y: ct, lambda ct, x, y: ct),
}


@elementwise(**_SUM)
def add(x: Any, y: Any) -> Any:
    """Sum of two arrays of one dtype; integers wrap."""


@elementwise(**_SUM)
def add_any(x: Any, y: Any) -> Any:
    """`add`, as the derivative rules write it: a name of its own tells sums of tangents apart."""


@elementwise(
    {"iu": "sc.sub({0}, {1})", "fc": "({0} - {1})"},
    eval=np.subtract,
    dtypes=NUMBER,
    jvp=_term_by_term(lambda dy: neg(dy)),
    transpose=transposed_each(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
)
def sub(x: Any, y: Any) -> Any:
    """Difference of two arrays of one dtype; integers wrap."""


@elementwise(
    {"iu": "sc.mul({0}, {1})", "fc": "({0} * {1})"},
    eval=np.multiply,
    dtypes=NUMBER,
    jvp=BILINEAR,
    transpose=transposed_each(lambda ct, x, y: calls.mul(ct, y), lambda ct, x, y: calls.mul(x, ct)),
)
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
    # By the quotient: 1 / y**2 would overflow where the quotient does not.
    jvp=partials(
        lambda g, out, x, y: calls.div(g, y),
        lambda g, out, x, y: calls.div(calls.mul(calls.neg(g), out), y),
    ),
    transpose=transposed_each(lambda ct, x, y: calls.div(ct, y), None),
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


def _whole_quotient(x: Any, y: Any) -> Any:
    quotient = div(x, y)
    return mul(sign(quotient), floor(abs(quotient)))


@elementwise(
    "sc.rem({0}, {1})",
    eval=_remainder,
    dtypes=REAL,
    cost=8,
    jvp=partials(lambda g, out, x, y: g, lambda g, out, x, y: mul(neg(g), _whole_quotient(x, y))),
)
def rem(x: Any, y: Any) -> Any:
    """Remainder with the sign of ``x``; of an integer by zero, ``x`` itself."""


@elementwise(
    "sc.copysign({0}, {1})",
    eval=np.copysign,
    dtypes=FLOAT,
    jvp=partials(lambda g, out, x, y: g, None),
)
def zero_signed(x: Any, y: Any) -> Any:
    """``x``, which is of the sign of ``y`` or 0: its zeros take that sign too."""


@elementwise(
    {"iuf": "sc.neg({0})", "c": "fk.complexmath.neg({0})"},
    eval=np.negative,
    dtypes=NUMBER,
    jvp=LINEAR,
    transpose=transposed(lambda ct, x: calls.neg(ct)),
)
def neg(x: Any) -> Any:
    """Negative; the smallest integer is its own."""


def _abs_slope(g: Any, out: Any, x: Any) -> Any:
    if kind(x.dtype) != "c":
        # The slope at 0 is 1, as in JAX.
        return select(ge(x, 0), g, neg(g))
    size = select(eq(out, 0), 1, out)
    return div(real(mul(g, conj(x))), size)


@elementwise(
    {"if": "sc.abs_({0})", "c": "fk.complexmath.abs({0})"},
    eval=np.abs,
    dtypes="ifc",
    result=to_real,
    jvp=partials(_abs_slope),
)
def abs(x: Any) -> Any:
    """Magnitude, real for complex operands; unsigned integers are not accepted."""


def _sign(x: np.ndarray) -> Any:
    s = np.sign(x)
    # NumPy's sign of -0.0 is +0.0.
    return np.where(x == 0, x, s) if x.dtype.kind not in "iuc" else s


def _sign_slope(g: Any, out: Any, x: Any) -> Any:
    if kind(x.dtype) != "c":
        return Zero(out.aval)
    # What of g turns x around the origin, over the distance to it.
    along = real(mul(g, conj(out)))
    size = abs(x)
    size = select(eq(size, 0), 1, size)
    return div(sub(g, mul(out, convert(along, x.dtype))), convert(size, x.dtype))


@elementwise(
    {"iuf": "sc.sign({0})", "c": "fk.complexmath.sign({0})"},
    eval=_sign,
    dtypes=NUMBER,
    cost=2,
    jvp=partials(_sign_slope),
)
def sign(x: Any) -> Any:
    """-1, 0 or 1; a float zero keeps its sign; ``x / |x|`` for complex operands."""


@elementwise(
    {"iuf": "sc.mul({0}, {0})", "c": "({0} * {0})"},
    eval=np.square,
    dtypes=NUMBER,
    jvp=partials(lambda g, out, x: mul(g, calls.mul(2, x))),
)
def square(x: Any) -> Any:
    """``x * x``."""


def _chosen(g: Any, out: Any, x: Any, y: Any) -> Any:
    """Tangent where ``x`` is what `max` or `min` chose: half of it where ``y`` equals it."""
    half = select(eq(y, out), const(g, 0.5), const(g, 1))
    return mul(g, select(eq(x, out), half, 0))


_EXTREME = partials(_chosen, lambda g, out, x, y: _chosen(g, out, y, x))


@elementwise(
    {"biuf": "sc.maximum({0}, {1})", "c": "fk.complexmath.maximum({0}, {1})"},
    eval=np.maximum,
    exact=False,
    jvp=_EXTREME,
)
def max(x: Any, y: Any) -> Any:
    """Larger of two; NaN wins; complex numbers compare by real part, then imaginary part."""


@elementwise(
    {"biuf": "sc.minimum({0}, {1})", "c": "fk.complexmath.minimum({0}, {1})"},
    eval=np.minimum,
    exact=False,
    jvp=_EXTREME,
)
def min(x: Any, y: Any) -> Any:
    """Smaller of two; NaN wins; complex numbers compare by real part, then imaginary part."""


def _nextafter_template(dtype: np.dtype) -> str:
    if dtype.itemsize > 2:
        return "sc.nextafter({0}, {1})"
    # Half types arrive as float32; their own step is taken on their own bits.
    return f"fk.halves.nextafter_{'f16' if dtype.kind == 'f' else 'bf16'}({{0}}, {{1}})"


@elementwise(
    _nextafter_template,
    eval=np.nextafter,
    dtypes=FLOAT,
    cost=4,
    jvp=Missing("a step in the last bit has no slope; differentiate the operand in its place."),
)
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


def _pow_slope(g: Any, out: Any, x: Any, y: Any) -> Any:
    if kind(y.dtype) in INEXACT:
        return mul(g, mul(y, pow(x, calls.sub(y, 1))))
    y = convert(y, x.dtype)
    # x**0 is 1 at 0 too: its slope is 0 * x**0 there, not 0 / x.
    other = select(eq(y, 0), 1, y)
    return mul(g, mul(y, pow(x, calls.sub(other, 1))))


def _pow_slope_by_exponent(g: Any, out: Any, x: Any, y: Any) -> Any:
    base = select(eq(x, 0), 1, x)
    return mul(g, mul(log(base), out))


_pow_p = register(
    Primitive(
        "pow",
        aval=_pow_aval,
        eval=_power,
        form=_pow_form,
        jvp=partials(_pow_slope, _pow_slope_by_exponent),
        transpose=NOT_LINEAR,
        batch=ELEMENTWISE_BATCH,
    )
)


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
    result, n = None, -y if y < 0 else y
    while n:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if n:
            x = x * x
    result = np.ones_like(x) if result is None else result
    return 1 / result if y < 0 else result


#: Written out, so that loops over complex numbers have no branch.
_COMPLEX_POWERS = {2: "({0} * {0})", 3: "({0} * ({0} * {0}))"}


def _integer_pow_form(ins: tuple[ShapedArray, ...], outs: Any, *, y: int) -> Map:
    cost = 2 + y.bit_length() + 3 * (y < 0)
    if kind(ins[0].dtype) != "c":
        return Map(f"sc.ipow({{0}}, {y})", cost)
    return Map(_COMPLEX_POWERS.get(y, f"fk.complexmath.ipow({{0}}, {y})"), cost)


def _integer_pow_slope(g: Any, out: Any, x: Any, *, y: int) -> Any:
    if y in (0, 1):
        return g if y else Zero(out.aval)
    return mul(g, calls.mul(y, x if y == 2 else integer_pow(x, y - 1)))


_integer_pow_p = register(
    Primitive(
        "integer_pow",
        aval=_integer_pow_aval,
        eval=in_single(_repeated_product),
        form=_integer_pow_form,
        jvp=partials(_integer_pow_slope),
        transpose=NOT_LINEAR,
        batch=ELEMENTWISE_BATCH,
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


# ---- rounding ----------------------------------------------------------------------------------


class RoundingMethod(IntEnum):
    """Where `round` takes numbers halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@elementwise("sc.floor({0})", eval=np.floor, dtypes=FLOAT, jvp=CONSTANT)
def floor(x: Any) -> Any:
    """Largest integer not above ``x``."""


@elementwise("sc.ceil({0})", eval=np.ceil, dtypes=FLOAT, jvp=CONSTANT)
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


_round_p = register(
    Primitive(
        "round",
        aval=_round_aval,
        eval=_round,
        form=_round_form,
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=ELEMENTWISE_BATCH,
    )
)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Nearest integer, as a float; ``rounding_method`` decides for halves.

    Raises
    ------
    ValueError
        ``rounding_method`` is no `RoundingMethod`.
    """
    return bind(_round_p, x, rounding_method=RoundingMethod(rounding_method))


@elementwise(
    "sc.is_finite({0})", eval=np.isfinite, dtypes=FLOAT, result=np.dtype(bool), jvp=CONSTANT
)
def is_finite(x: Any) -> Any:
    """Whether each element is neither infinite nor NaN."""
