"""Operations on bits, and comparisons."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.record import known_of
from .kit.checks import ANY, FLOAT, INTEGER, LOGICAL, kind
from .kit.declare import elementwise
from .kit.rules import CONSTANT

__all__ = [
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "clz",
    "eq",
    "ge",
    "gt",
    "le",
    "lt",
    "mulhi",
    "ne",
    "population_count",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
]

_BOOL = np.dtype(bool)
_ORDERED = "biuf"
#: Results are bits or truth values, so that no tangent passes.
_flat = partial(elementwise, jvp=CONSTANT)


@_flat("sc.and_({0}, {1})", eval=np.bitwise_and, dtypes=LOGICAL, name="and")
def bitwise_and(x: Any, y: Any) -> Any:
    """Bitwise and of integers or bools of one dtype."""


@_flat("sc.or_({0}, {1})", eval=np.bitwise_or, dtypes=LOGICAL, name="or")
def bitwise_or(x: Any, y: Any) -> Any:
    """Bitwise or of integers or bools of one dtype."""


@_flat("sc.xor({0}, {1})", eval=np.bitwise_xor, dtypes=LOGICAL, name="xor")
def bitwise_xor(x: Any, y: Any) -> Any:
    """Bitwise exclusive or of integers or bools of one dtype."""


@_flat("sc.not_({0})", eval=np.bitwise_not, dtypes=LOGICAL, name="not")
def bitwise_not(x: Any) -> Any:
    """Bitwise complement of integers or bools."""


# ---- shifts and counts -------------------------------------------------------------------------


def _unsigned(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def _signed(x: np.ndarray) -> np.ndarray:
    return x.view(f"i{x.dtype.itemsize}")


# NumPy, too, gives zeros, or copies of the sign, where the amount is outside the width.


def _shift_right_logical(x: np.ndarray, amount: np.ndarray) -> np.ndarray:
    return np.right_shift(_unsigned(x), _unsigned(amount)).view(x.dtype)


def _shift_right_arithmetic(x: np.ndarray, amount: np.ndarray) -> np.ndarray:
    return np.right_shift(_signed(x), _signed(amount)).view(x.dtype)


def _known_shift(own: str, x: ShapedArray, *_: ShapedArray) -> np.ufunc | None:
    return np.right_shift if x.dtype.kind == own else None


known_of[_shift_right_logical] = partial(_known_shift, "u")
known_of[_shift_right_arithmetic] = partial(_known_shift, "i")


@_flat("sc.shl({0}, {1})", eval=np.left_shift, dtypes=INTEGER)
def shift_left(x: Any, y: Any) -> Any:
    """``x << y``; 0 where ``y`` is negative or no less than the width."""


@_flat("sc.shr_arith({0}, {1})", eval=_shift_right_arithmetic, dtypes=INTEGER)
def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """``x >> y`` with copies of the top bit; only those where ``y`` is outside the width."""


@_flat("sc.shr_logical({0}, {1})", eval=_shift_right_logical, dtypes=INTEGER)
def shift_right_logical(x: Any, y: Any) -> Any:
    """``x >> y`` with zeros; 0 where ``y`` is negative or no less than the width."""


@_flat("sc.popcount({0})", eval=lambda x: np.bitwise_count(_unsigned(x)), dtypes=INTEGER, cost=2)
def population_count(x: Any) -> Any:
    """Count of set bits, in the operand's dtype."""


def _leading_zeros(x: np.ndarray) -> np.ndarray:
    width = 8 * x.dtype.itemsize
    bits, shift = _unsigned(x), 1
    # Copy the top set bit into all lower ones: what stays zero leads it.
    while shift < width:
        bits = bits | (bits >> bits.dtype.type(shift))
        shift *= 2
    return width - np.bitwise_count(bits).astype(x.dtype)


@_flat("sc.clz({0})", eval=_leading_zeros, dtypes=INTEGER, cost=2)
def clz(x: Any) -> Any:
    """Count of leading zero bits, in the operand's dtype."""


def _high_half(x: np.ndarray, y: np.ndarray) -> Any:
    width = 8 * x.dtype.itemsize
    if width < 64:
        wide = np.dtype(f"{x.dtype.kind}8")
        return ((x.astype(wide) * y.astype(wide)) >> wide.type(width)).astype(x.dtype)
    a, b = _unsigned(x), _unsigned(y)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    high = a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & low)) >> half)
    if x.dtype.kind == "u":
        return high
    return _signed(np.asarray(high)) - np.where(x < 0, y, 0) - np.where(y < 0, x, 0)


@_flat("sc.mulhi({0}, {1})", eval=_high_half, dtypes=INTEGER, cost=3)
def mulhi(x: Any, y: Any) -> Any:
    """High half of the double-width product of two integers of one dtype."""


# ---- comparisons -------------------------------------------------------------------------------


@_flat("({0} == {1})", eval=np.equal, dtypes=ANY, result=_BOOL)
def eq(x: Any, y: Any) -> Any:
    """``x == y``; NaN equals nothing."""


@_flat("({0} != {1})", eval=np.not_equal, dtypes=ANY, result=_BOOL)
def ne(x: Any, y: Any) -> Any:
    """``x != y``; NaN differs from everything."""


@_flat("({0} < {1})", eval=np.less, dtypes=_ORDERED, result=_BOOL)
def lt(x: Any, y: Any) -> Any:
    """``x < y`` for real operands."""


@_flat("({0} <= {1})", eval=np.less_equal, dtypes=_ORDERED, result=_BOOL)
def le(x: Any, y: Any) -> Any:
    """``x <= y`` for real operands."""


@_flat("({0} > {1})", eval=np.greater, dtypes=_ORDERED, result=_BOOL)
def gt(x: Any, y: Any) -> Any:
    """``x > y`` for real operands."""


@_flat("({0} >= {1})", eval=np.greater_equal, dtypes=_ORDERED, result=_BOOL)
def ge(x: Any, y: Any) -> Any:
    """``x >= y`` for real operands."""


def total_order_key(x: np.ndarray) -> np.ndarray:
    """Integers that sort as floats do in IEEE 754's total order: -NaN, -inf, ..., -0, +0, ..., NaN.

    Operands of other kinds are their own keys.
    """
    if kind(x.dtype) not in FLOAT:
        return x
    bits = _signed(x)
    width = 8 * bits.dtype.itemsize
    # Of negative floats the larger magnitude is the smaller number: flip all bits but the sign.
    flip = (bits >> bits.dtype.type(width - 1)) & bits.dtype.type(2 ** (width - 1) - 1)
    return bits ^ flip


def _total_order(operator: str) -> Any:
    def template(dtype: np.dtype) -> str:
        if kind(dtype) not in FLOAT:
            return f"({{0}} {operator} {{1}})"
        integer = "int64" if dtype.itemsize == 8 else "int32"

        def key(x: str) -> str:
            bits = f"sc.bitcast_{integer}({x})"
            top = f"{integer[0]}{integer[3:]}({integer[3:]} - 1)"  # as i32(31)
            one = f"{integer[0]}{integer[3:]}(1)"
            return f"sc.xor({bits}, sc.shr_logical(sc.shr_arith({bits}, {top}), {one}))"

        return f"({key('{0}')} {operator} {key('{1}')})"

    return template


def _in_total_order(compare: Any) -> Any:
    return lambda x, y: compare(total_order_key(x), total_order_key(y))


@_flat(_total_order("=="), eval=_in_total_order(np.equal), dtypes=_ORDERED, result=_BOOL, cost=3)
def eq_to(x: Any, y: Any) -> Any:
    """``x == y`` in IEEE 754's total order, where NaN equals itself and -0.0 is less than 0.0."""


@_flat(
    _total_order("<="), eval=_in_total_order(np.less_equal), dtypes=_ORDERED, result=_BOOL, cost=3
)
def le_to(x: Any, y: Any) -> Any:
    """``x <= y`` in IEEE 754's total order."""


@_flat(_total_order("<"), eval=_in_total_order(np.less), dtypes=_ORDERED, result=_BOOL, cost=3)
def lt_to(x: Any, y: Any) -> Any:
    """``x < y`` in IEEE 754's total order."""
