"""Arithmetic, comparison, logic and bits, with NumPy's promotion and broadcasting."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..core.apart import another
from ..core.array import Array, ArrayImpl
from ..core.dtypes import (
    dtype_and_weak,
    int32,
    is_bool,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    is_unsigned,
    uint8,
)
from ..core.eager import replayed
from ..ops.elementwise import zero_signed
from ..ops.kit.calls import const, convert
from ..ops.kit.canonical import as_array
from ._face import composed, composed_exactly, promoted
from ._promote import (
    as_operand,
    operands,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    promote_dtypes,
    promote_shapes,
    strengthen,
)
from ._select import as_condition, choose_where
from ._ufunc import ufunc_of

__all__ = [
    "absolute",
    "add",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "divide",
    "divmod",
    "equal",
    "fabs",
    "float_power",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "gcd",
    "greater",
    "greater_equal",
    "invert",
    "lcm",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "not_equal",
    "positive",
    "pow",
    "power",
    "remainder",
    "right_shift",
    "sign",
    "square",
    "subtract",
    "true_divide",
]


# ---- arithmetic --------------------------------------------------------------------------------


@ufunc_of(monoid=lax.reduce_sum, running=lax.cumsum, at="add", identity=0, widens=True)
@promoted(lax.add, promote_args, boolean=lax.bitwise_or)
def add(x: Any, y: Any, /) -> Array:
    """Sum; for bools the logical or."""
    ...


@ufunc_of(at="subtract")
@promoted(lax.sub, promote_args)
def subtract(x: Any, y: Any, /) -> Array:
    """Difference; bools are not accepted."""
    ...


@ufunc_of(monoid=lax.reduce_prod, running=lax.cumprod, at="multiply", identity=1, widens=True)
@promoted(lax.mul, promote_args, boolean=lax.bitwise_and)
def multiply(x: Any, y: Any, /) -> Array:
    """Product; for bools the logical and."""
    ...


@ufunc_of(at="divide")
@promoted(lax.div, promote_args_inexact)
def divide(x: Any, y: Any, /) -> Array:
    """Quotient, a float for integers too."""
    ...


true_divide = divide


def _nonzero_divisor(y: Array) -> Array:
    """A divisor with 1 for 0: the remainder by 1 is 0, which is what integers give by 0."""
    return choose_where(lax.eq(y, const(y, 0)), lax.full_like(y, 1), y)


@ufunc_of()
@composed_exactly
def floor_divide(x: Any, y: Any, /) -> Array:
    """Quotient rounded down; integers stay integers.

    An integer divided by 0 gives -2, or -1 for 0, as in JAX; a float gives inf or NaN. A float's 0
    has the sign of the quotient, as in NumPy (JAX loses it).
    """
    x, y = promote_args_numeric("floor_divide", x, y)
    dtype = x.dtype
    if is_unsigned(dtype):
        return lax.div(x, y)
    if is_integer(dtype):
        quotient, rest = lax.div(x, y), lax.rem(x, y)
        down = lax.bitwise_and(lax.ne(lax.sign(x), lax.sign(y)), lax.ne(rest, const(rest, 0)))
        return choose_where(down, lax.sub(quotient, const(quotient, 1)), quotient)
    if is_complex(dtype):
        raise TypeError("numpy.floor_divide does not accept complex numbers, which have no floor.")
    return _float_divmod(x, y)[0]


def _float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    rest = lax.rem(x, y)
    zero = const(y, 0)
    # x - rest is a multiple of y, so the division is exact but for rounding.
    whole = zero_signed(lax.sub(x, rest), x)
    quotient = lax.div(choose_where(lax.eq(y, zero), x, whole), y)
    down = lax.bitwise_and(lax.ne(rest, zero), lax.ne(lax.sign(y), lax.sign(rest)))
    rest = zero_signed(choose_where(down, lax.add(rest, y), rest), y)
    quotient = choose_where(down, lax.sub(quotient, const(quotient, 1)), quotient)
    return lax.round(quotient), rest


@ufunc_of()
@composed_exactly
def remainder(x: Any, y: Any, /) -> Array:
    """Remainder of `floor_divide`: it has the divisor's sign, 0 too. An integer modulo 0 is 0."""
    x, y = promote_args_numeric("remainder", x, y)
    if is_integer(y.dtype):
        y = _nonzero_divisor(y)
    rest = lax.rem(x, y)
    zero = const(rest, 0)
    other_sign = lax.ne(lax.lt(rest, zero), lax.lt(y, const(y, 0)))
    wrap = lax.bitwise_and(other_sign, lax.ne(rest, zero))
    rest = lax.select_n(wrap, rest, lax.add(rest, y))
    return zero_signed(rest, y) if is_float(rest.dtype) else rest


mod = remainder


@ufunc_of()
@composed_exactly
def fmod(x: Any, y: Any, /) -> Array:
    """Remainder of the quotient cut towards zero: it has the dividend's sign."""
    x, y = promote_args_numeric("fmod", x, y)
    return lax.rem(x, _nonzero_divisor(y) if is_integer(y.dtype) else y)


@composed
def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Quotient rounded down, and remainder: ``(floor_divide(x, y), remainder(x, y))``."""
    x, y = promote_args_numeric("divmod", x1, x2)
    if is_float(x.dtype):
        return _float_divmod(x, y)
    return floor_divide(x, y), remainder(x, y)


# ---- powers ------------------------------------------------------------------------------------


@ufunc_of(at="power")
def power(x: Any, y: Any, /) -> Array:
    """``x ** y``.

    One integer exponent that is known is applied by repeated squaring, in the dtype of ``x``; an
    integer array raised to an integer array stays integer and wraps.

    Raises
    ------
    TypeError
        For integers raised to a negative integer that is known: a number, an array of no axes.
    """
    return _power(x, int(y) if _is_known_integer(y) else y)


@replayed
def _power(x: Any, y: Any) -> Array:
    if isinstance(y, int):
        # Of no dtype: multiplied out it needs none, and the result has the base's.
        (x,) = promote_dtypes(*operands("power", x))
        return lax.integer_pow(convert(x, int32, False) if is_bool(x.dtype) else x, y)
    x, y = operands("power", x, y)
    x_dtype, y_dtype = dtype_and_weak(x)[0], dtype_and_weak(y)[0]
    if is_inexact(x_dtype) and is_integer(y_dtype):
        x, y = promote_shapes("power", *(as_array(a) for a in (x, y)))
        return lax.pow(x, y)
    x, y = promote_args_numeric("power", x, y)
    return _integer_power(x, y) if is_integer(x.dtype) else lax.pow(x, y)


def _is_known_integer(y: Any) -> bool:
    """Whether an exponent is one integer, or bool, whose value is known."""
    if isinstance(y, ArrayImpl | np.ndarray | np.generic):
        return y.ndim == 0 and y.dtype.kind in "iub"
    return isinstance(y, int)


pow = power


@composed
def _integer_power(x: Array, y: Array) -> Array:
    """Square and multiply. Six bits of exponent do: 2 ** 64 overflows every integer."""
    shape = lax.broadcast_shapes(x.shape, y.shape)
    zero, one = const(x, 0), const(y, 1)
    zero_power = lax.bitwise_and(lax.eq(x, zero), lax.ne(y, const(y, 0)))
    out = choose_where(zero_power, zero, const(x, 1))
    out = out if out.shape == shape else lax.broadcast_in_dim(out, shape, ())
    for bit in range(6):
        if bit:
            x, y = lax.mul(x, x), lax.shift_right_logical(y, one)
        out = choose_where(lax.bitwise_and(y, one), lax.mul(out, x), out)
    return out


@ufunc_of()
@replayed
def float_power(x: Any, y: Any, /) -> Array:
    """``x ** y`` in floating point, also for integers."""
    return lax.pow(*promote_args_inexact("float_power", x, y))


# ---- signs and order ---------------------------------------------------------------------------


@ufunc_of(nin=1)
@promoted(lax.neg, promote_args)
def negative(x: Any, /) -> Array:
    """``-x``; bools are not accepted."""
    ...


@ufunc_of(nin=1)
def positive(x: Any, /) -> Array:
    """``+x``: an array of the same elements."""
    return another(as_array(as_operand("positive", x)))


_magnitude = promoted(lax.abs, promote_args)


@_magnitude
def _absolute(x: Any, /) -> Array:
    """Magnitude of signed and complex numbers."""
    ...


def absolute(x: Any, /) -> Array:
    """Magnitude, real for complex numbers; bools and unsigned integers stay as they are."""
    if isinstance(x, Array) and not (is_bool(x.dtype) or is_unsigned(x.dtype)):
        return _absolute(x)
    x = as_array(as_operand("absolute", x))
    return another(x) if is_bool(x.dtype) or is_unsigned(x.dtype) else _absolute(x)


@replayed
def fabs(x: Any, /) -> Array:
    """Magnitude of real numbers, as a float.

    Raises
    ------
    TypeError
        For complex numbers.
    """
    (x,) = promote_args_inexact("fabs", x)
    if is_complex(x.dtype):
        raise TypeError("numpy.fabs does not accept complex numbers. Use numpy.absolute.")
    return lax.abs(x)


@promoted(lax.sign, promote_args)
def sign(x: Any, /) -> Array:
    """-1, 0 or 1 by the sign; ``x / |x|`` for complex numbers; bools are not accepted."""
    ...


@promoted(lax.square, promote_args_numeric)
def square(x: Any, /) -> Array:
    """``x * x``."""
    ...


@ufunc_of(monoid=lax.reduce_max, running=lax.cummax, at="max")
@promoted(lax.max, promote_args)
def maximum(x: Any, y: Any, /) -> Array:
    """Larger of two; NaN where either is NaN."""
    ...


@ufunc_of(monoid=lax.reduce_min, running=lax.cummin, at="min")
@promoted(lax.min, promote_args)
def minimum(x: Any, y: Any, /) -> Array:
    """Smaller of two; NaN where either is NaN."""
    ...


@composed_exactly
def fmax(x1: Any, x2: Any, /) -> Array:
    """Larger of two; a NaN gives way to a number."""
    x, y = operands("fmax", x1, x2)
    return choose_where(logical_or(greater(x, y), not_equal(y, y)), x, y)


@composed_exactly
def fmin(x1: Any, x2: Any, /) -> Array:
    """Smaller of two; a NaN gives way to a number."""
    x, y = operands("fmin", x1, x2)
    return choose_where(logical_or(less(x, y), not_equal(y, y)), x, y)


# ---- comparison --------------------------------------------------------------------------------


@ufunc_of()
@promoted(lax.eq, promote_args, others=operator.eq)
def equal(x: Any, y: Any, /) -> Array:
    """``x == y``."""
    ...


@ufunc_of()
@promoted(lax.ne, promote_args, others=operator.ne)
def not_equal(x: Any, y: Any, /) -> Array:
    """``x != y``."""
    ...


def _ordered(compare: Any) -> Any:
    """An order for all numbers: complex ones by real part, then by imaginary part."""

    def apply(x: Array, y: Array) -> Array:
        if not is_complex(x.dtype):
            return compare(x, y)
        x_re, y_re = lax.real(x), lax.real(y)
        by_imag = compare(lax.imag(x), lax.imag(y))
        return lax.select_n(lax.eq(x_re, y_re), compare(x_re, y_re), by_imag)

    return apply


@ufunc_of()
@promoted(_ordered(lax.lt), promote_args)
def less(x: Any, y: Any, /) -> Array:
    """``x < y``; complex numbers compare by real part, then imaginary part."""
    ...


@ufunc_of()
@promoted(_ordered(lax.le), promote_args)
def less_equal(x: Any, y: Any, /) -> Array:
    """``x <= y``; complex numbers compare by real part, then imaginary part."""
    ...


@ufunc_of()
@promoted(_ordered(lax.gt), promote_args)
def greater(x: Any, y: Any, /) -> Array:
    """``x > y``; complex numbers compare by real part, then imaginary part."""
    ...


@ufunc_of()
@promoted(_ordered(lax.ge), promote_args)
def greater_equal(x: Any, y: Any, /) -> Array:
    """``x >= y``; complex numbers compare by real part, then imaginary part."""
    ...


# ---- logic -------------------------------------------------------------------------------------


def _truths(name: str, *args: Any) -> list[Array]:
    return [as_condition(x) for x in promote_args(name, *args)]


@ufunc_of(identity=True)
@promoted(lax.bitwise_and, _truths, numbers=promote_args)
def logical_and(x: Any, y: Any, /) -> Array:
    """Whether both are nonzero."""
    ...


@ufunc_of(identity=False)
@promoted(lax.bitwise_or, _truths, numbers=promote_args)
def logical_or(x: Any, y: Any, /) -> Array:
    """Whether either is nonzero."""
    ...


@ufunc_of(identity=False)
@promoted(lax.bitwise_xor, _truths, numbers=promote_args)
def logical_xor(x: Any, y: Any, /) -> Array:
    """Whether exactly one is nonzero."""
    ...


@ufunc_of(nin=1)
@promoted(lax.bitwise_not, _truths)
def logical_not(x: Any, /) -> Array:
    """Whether an element is zero."""
    ...


# ---- bits --------------------------------------------------------------------------------------


@ufunc_of(monoid=lax.reduce_and, identity=-1)
@promoted(lax.bitwise_and, promote_args)
def bitwise_and(x: Any, y: Any, /) -> Array:
    """Bitwise and of integers or bools."""
    ...


@ufunc_of(monoid=lax.reduce_or, identity=0)
@promoted(lax.bitwise_or, promote_args)
def bitwise_or(x: Any, y: Any, /) -> Array:
    """Bitwise or of integers or bools."""
    ...


@ufunc_of(monoid=lax.reduce_xor, identity=0)
@promoted(lax.bitwise_xor, promote_args)
def bitwise_xor(x: Any, y: Any, /) -> Array:
    """Bitwise exclusive or of integers or bools."""
    ...


@ufunc_of(nin=1)
@promoted(lax.bitwise_not, promote_args)
def bitwise_not(x: Any, /) -> Array:
    """Bitwise complement of integers or bools."""
    ...


invert = bitwise_invert = bitwise_not


@ufunc_of()
@promoted(lax.shift_left, promote_args_numeric)
def left_shift(x: Any, y: Any, /) -> Array:
    """``x << y``; 0 where ``y`` is negative or no less than the width."""
    ...


def _shift_right(x: Array, y: Array) -> Array:
    shift = lax.shift_right_logical if is_unsigned(x.dtype) else lax.shift_right_arithmetic
    return shift(x, y)


@ufunc_of()
@promoted(_shift_right, promote_args_numeric)
def right_shift(x: Any, y: Any, /) -> Array:
    """``x >> y``, keeping the sign of signed integers."""
    ...


bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


@ufunc_of(nin=1)
@replayed
def bitwise_count(x: Any, /) -> Array:
    """Count of set bits in the magnitude, as uint8."""
    (x,) = promote_args_numeric("bitwise_count", x)
    return convert(lax.population_count(absolute(x)), uint8)


# ---- integers ----------------------------------------------------------------------------------


def _integers(name: str, *args: Any) -> list[Array]:
    promoted = promote_args(name, *args)
    if not is_integer(promoted[0].dtype):
        raise ValueError(f"numpy.{name} takes integers, got {promoted[0].dtype}.")
    return strengthen(promoted, *args)


def _by_numpy(function: np.ufunc) -> Callable[..., Any]:
    """Return what finds NumPy's function of integers of one kind, where it knows all magnitudes."""

    def instead(x1: Any, x2: Any) -> Any:
        if not (type(x1) is ArrayImpl is type(x2) and x1.dtype is x2.dtype):
            return None
        least = 0 if is_unsigned(x1.dtype) else np.iinfo(x1.dtype).min

        def evaluate(x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
            # The magnitude of the least number is itself.
            unknown = least and ((x == least).any() or (y == least).any())
            return None if unknown else function(x, y)

        return evaluate

    return instead


@replayed(instead=_by_numpy(np.gcd))
def gcd(x1: Any, x2: Any, /) -> Array:
    """Greatest common divisor, never negative, by Euclid's algorithm.

    Raises
    ------
    ValueError
        For arrays that are not integer.
    """
    x, y = (absolute(a) for a in _integers("gcd", x1, x2))
    shape = lax.broadcast_shapes(x.shape, y.shape)
    x, y = (lax.broadcast_in_dim(a, shape, range(len(shape) - a.ndim, len(shape))) for a in (x, y))

    def unfinished(pair: tuple[Array, Array]) -> Array:
        return lax.reduce_or(lax.ne(pair[1], const(pair[1], 0)), tuple(range(pair[1].ndim)))

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = pair
        done = lax.eq(b, const(b, 0))
        rest = lax.rem(a, _nonzero_divisor(b))
        return lax.select_n(done, b, a), lax.select_n(done, rest, b)

    # The smallest integer is its own magnitude, and so negative, as are its remainders.
    return absolute(lax.while_loop(unfinished, step, (x, y))[0])


@replayed(instead=_by_numpy(np.lcm))
def lcm(x1: Any, x2: Any, /) -> Array:
    """Least common multiple, never negative; 0 where either is 0.

    Raises
    ------
    ValueError
        For arrays that are not integer.
    """
    x, y = (absolute(a) for a in _integers("lcm", x1, x2))
    divisor = gcd(x, y)
    product = lax.mul(x, lax.div(y, _nonzero_divisor(divisor)))
    return choose_where(lax.eq(divisor, const(divisor, 0)), divisor, product)
