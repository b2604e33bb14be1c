"""Scalar operations at exact width with XLA's meaning, also where NumPy and C define none.

Each is a `scalar` text: inlined in compiled code, and callable on NumPy values from Python.
"""

from __future__ import annotations

import functools

import numpy as np

from fnarray_kernels import _ir
from fnarray_kernels._ir import bitcast, convert, fabs, fmax, fmin, relaxed, scalar, select
from fnarray_kernels._ir import copysign as _copysign
from fnarray_kernels.registry import tell


def _width(x):
    return 8 * x.dtype.itemsize


def _signed(x):
    return np.dtype(f"i{x.dtype.itemsize}")


def _unsigned(x):
    return np.dtype(f"u{x.dtype.itemsize}")


# --- arithmetic ---------------------------------------------------------------------------------


@scalar(kinds="iuf")
def add(a, b):
    """Sum; integers wrap at their own width."""
    return a + b


@scalar(kinds="iuf")
def sub(a, b):
    """Difference; integers wrap at their own width."""
    return a - b


@scalar(kinds="iuf")
def mul(a, b):
    """Product; integers wrap at their own width."""
    return a * b


@scalar(kinds="iuf")
def neg(x):
    """Negation; the smallest integer is its own negative."""
    return -x


@scalar(kinds="iuf")
def abs_(x):
    """Magnitude; the smallest integer keeps its value."""
    if x.dtype.kind == "f":
        return fabs(x)
    return x if x.dtype.kind == "u" else select(x < 0, -x, x)


def _guard(a, b):
    """Return a divisor that cannot trap, and the places where it stands in for 0 and for -1."""
    zero = b == 0
    minus = b == -1 if b.dtype.kind == "i" else zero
    return select(zero | minus, 1, b), zero, minus


@scalar(kinds="iuf")
def div(a, b):
    """Quotient: IEEE for floats, truncated for integers; ``x / 0`` has all bits set."""
    if a.dtype.kind == "f":
        return a / b
    safe, zero, minus = _guard(a, b)
    quotient = select(minus, -a, _ir.trunc_div(a, safe))
    return select(zero, ~_ir.const(0, a), quotient)


@scalar(kinds="iuf")
def rem(a, b):
    """Remainder with the sign of `a`: C's ``fmod`` for floats; integer ``x % 0`` is ``x``."""
    if a.dtype.kind == "f":
        return _ir.trunc_rem(a, b)
    safe, zero, minus = _guard(a, b)
    return select(zero, a, select(minus, 0, _ir.trunc_rem(a, safe)))


@scalar(kinds="f")
def by_inverse(x, high, low):
    """Quotient by a number whose inverse is the sum of two: `compile.inverses` finds them."""
    return _ir.fma(x, high, x * low)


@scalar(kinds="f")
def rem_by_power(x, inverse, power):
    """Remainder by a power of two that is no fraction, given its inverse: all steps are exact."""
    return _copysign(x - _ir.trunc(x * inverse) * power, x)


def _divided(a, b):
    """Quotient, truncated, and remainder of integers of up to 32 bits, by doubles.

    No vector unit divides integers, and the inverse of what a loop divides by is found before the
    loop. The product with it is too small by 2^-20 / b at most, too little to pass an integer but
    where `b` divides `a`: nothing else leaves a remainder of the divisor's size.
    """
    inverse = 1.0 / convert(b, np.float64)
    quotient = _ir.truncated(convert(a, np.float64) * inverse, a.dtype)
    rest = a - quotient * b
    short = (rest == b) | (rest == -b) if a.dtype.kind == "i" else rest == b
    return quotient, rest, short


def _rest_single(a, b):
    """Remainder of float32, exactly, in float64 and without a branch.

    Quotients of up to 2^50 are known but for one, and a multiple subtracted by `fma` leaves what
    float64 holds: six steps do for any two numbers, from the largest multiples to the divisor's.
    """
    x, y = fabs(convert(a, np.float64)), fabs(convert(b, np.float64))
    inverse, rest = 1.0 / y, x
    for bits in range(250, -1, -50):
        whole = _ir.floor(rest * (inverse * 2.0**-bits))
        rest = _ir.fma(-whole, y * 2.0**bits, rest)
    rest = select(rest < 0.0, rest + y, rest)
    rest = select(rest >= y, rest - y, rest)
    return _copysign(convert(select(x < y, x, rest), a.dtype), a)


@scalar(kinds="iuf")
def div_abreast(a, b):
    """`div` of numbers of up to 32 bits, for loops that work on vectors."""
    if a.dtype.kind == "f":
        return a / b
    safe, zero, minus = _guard(a, b)
    quotient, rest, short = _divided(a, safe)
    more = quotient + 1
    if a.dtype.kind == "i":
        more = select(rest == safe, more, quotient - 1)
    whole = select(short, more, quotient)
    return select(zero, ~_ir.const(0, a), select(minus, -a, whole))


@scalar(kinds="iuf")
def rem_abreast(a, b):
    """`rem` of numbers of up to 32 bits, for loops that work on vectors."""
    if a.dtype.kind == "f":
        return _rest_single(a, b)
    safe, zero, minus = _guard(a, b)
    _, rest, short = _divided(a, safe)
    return select(zero, a, select(minus | short, 0, rest))


#: What stands for `div` and `rem` where numbers are computed side by side.
div.abreast, rem.abreast = div_abreast, rem_abreast


@scalar(kinds="iuf")
def radd(a, b):
    """Sum inside a reduction: the compiler may re-associate floats to use vector registers."""
    return relaxed("fadd", a, b) if a.dtype.kind == "f" else a + b


@scalar(kinds="iuf")
def rmul(a, b):
    """Product inside a reduction: the compiler may re-associate floats."""
    return relaxed("fmul", a, b) if a.dtype.kind == "f" else a * b


@scalar(kinds="f")
def lost(a, b):
    """What rounding takes off ``a + b``, exactly (Knuth's TwoSum); NaN beside infinities."""
    total = a + b
    moved = total - a
    return (a - (total - moved)) + (b - moved)


@scalar(kinds="f")
def settled(total, low):
    """A total with what it has lost; as it is where infinities leave nothing to say of that."""
    return select(low == low, total + low, total)


@scalar(kinds="biuf")
def maximum(a, b):
    """Larger of two; NaN wins, +0 exceeds -0, True exceeds False."""
    return a | b if a.dtype.kind == "b" else fmax(a, b)


@scalar(kinds="biuf")
def minimum(a, b):
    """Smaller of two; NaN wins, -0 is less than +0, False is less than True."""
    return a & b if a.dtype.kind == "b" else fmin(a, b)


def _ordered(x, flip):
    """Return an int32 in the order of numbers of up to 32 bits, or in the opposite one."""
    if x.dtype.kind == "f":
        bits = bitcast(x + 0.0, np.int32)  # -0 is +0
        bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        return select(x != x, -0x80000000, ~bits if flip else bits)
    high = x.dtype == np.uint32
    bits = bitcast(x ^ 0x80000000, np.int32) if high else convert(x, np.int32)
    return ~bits if flip else bits


@scalar(kinds="biuf", result=np.int64)
def least_first(x):
    """An int64 whose high half has the order of numbers of up to 32 bits; NaN comes first."""
    return convert(_ordered(x, False), np.int64) << 32


@scalar(kinds="biuf", result=np.int64)
def greatest_first(x):
    """An int64 whose high half has the opposite order; NaN comes first as well."""
    return convert(_ordered(x, True), np.int64) << 32


@scalar(kinds="iuf", result=np.int64)
def in_total_order(x):
    """An int64 in IEEE's total order: -NaN, -0 and +0 are apart, NaN comes last."""
    if x.dtype.kind == "f":
        bits = bitcast(x, _signed(x))
        last = _width(x) - 1
        bits = bits ^ ((bits >> last) & ((1 << last) - 1))
        return convert(bits, np.int64)
    if x.dtype == np.uint64:
        return bitcast(x ^ (1 << 63), np.int64)
    return convert(x, np.int64)


@scalar(kinds="iu")
def mulhi(a, b):
    """High half of the double-width product of two integers."""
    width = _width(a)
    if width < 64:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        return convert((convert(a, wide) * convert(b, wide)) >> width, a.dtype)
    x, y = bitcast(a, np.uint64), bitcast(b, np.uint64)
    low, half = 0xFFFFFFFF, 32
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    high = x1 * y1 + (middle >> half) + ((x0 * y1 + (middle & low)) >> half)
    high = bitcast(high, a.dtype)
    if a.dtype.kind == "u":
        return high
    return high - select(a < 0, b, 0) - select(b < 0, a, 0)


def ipow(x, n):
    """Return ``x ** n`` for a constant Python integer `n`, by squaring; ``x ** 0`` is 1.

    Raises
    ------
    TypeError
        A negative `n` with an integer `x`.
    """
    with np.errstate(all="ignore"):
        return _ipow(_ir.plain(x), int(n))


def _ipow(x, n):
    if n < 0 and x.dtype.kind != "f":
        raise TypeError(f"ipow: an integer cannot be raised to {n}; convert it to a float first")
    power, result = abs(n), None
    while power:
        if power & 1:
            result = x if result is None else result * x
        power >>= 1
        if power:
            x = x * x
    if result is None:
        return x * 0 + 1 if x.dtype.kind != "f" else select(x == x, 1.0, _ir.const(1.0, x))
    return 1.0 / result if n < 0 else result


@functools.cache
def _traced_ipow(args):
    dtype, n = args
    return _ir.template(_ipow(*_ir.arguments((dtype,), dtype), n))


ipow.traced = _traced_ipow


# --- bits ---------------------------------------------------------------------------------------


@scalar(kinds="biu")
def and_(a, b):
    """Bitwise and."""
    return a & b


@scalar(kinds="biu")
def or_(a, b):
    """Bitwise or."""
    return a | b


@scalar(kinds="biu")
def xor(a, b):
    """Bitwise exclusive or."""
    return a ^ b


@scalar(kinds="biu")
def not_(x):
    """Bitwise complement."""
    return ~x


def _shift(x, amount, shift, past):
    """Shift by `amount`, giving `past` where it is negative or no less than the width."""
    count = bitcast(amount, _unsigned(x))
    inside = count < _width(x)
    return select(inside, shift(x, bitcast(select(inside, count, 0), x.dtype)), past)


@scalar(kinds="iu")
def shl(x, amount):
    """Shift left; an amount outside the width gives 0."""
    return _shift(x, amount, lambda v, n: v << n, _ir.const(0, x))


@scalar(kinds="iu")
def shr_logical(x, amount):
    """Shift right, filling with zeros; an amount outside the width gives 0."""
    bits = bitcast(x, _unsigned(x))
    amount = bitcast(amount, bits.dtype)
    return bitcast(_shift(bits, amount, lambda v, n: v >> n, _ir.const(0, bits)), x.dtype)


@scalar(kinds="iu")
def shr_arith(x, amount):
    """Shift right, copying the top bit; an amount outside the width leaves only copies of it."""
    bits = bitcast(x, _signed(x))
    amount = bitcast(amount, bits.dtype)
    sign = bits >> (_width(x) - 1)
    return bitcast(_shift(bits, amount, lambda v, n: v >> n, sign), x.dtype)


@scalar(kinds="iu")
def popcount(x):
    """Count of set bits."""
    return _ir.ctpop(x)


@scalar(kinds="iu")
def clz(x):
    """Count of leading zero bits; zero has as many as its width."""
    return _ir.ctlz(x)


# --- floats -------------------------------------------------------------------------------------


@scalar(kinds="iuf")
def sign(x):
    """-1, 0 or 1; a float zero keeps its sign and NaN stays NaN."""
    if x.dtype.kind == "f":
        return select(fabs(x) > 0, _copysign(_ir.const(1.0, x), x), x)
    one, zero = _ir.const(1, x), _ir.const(0, x)
    positive = select(x > 0, one, zero)
    return positive if x.dtype.kind == "u" else select(x < 0, _ir.const(-1, x), positive)


@scalar
def rint(x):
    """Nearest integer, halves to even."""
    return _ir.rint(x)


@scalar
def round_away(x):
    """Nearest integer, halves away from zero."""
    whole = _ir.trunc(x)
    return select(fabs(x - whole) >= 0.5, whole + _copysign(_ir.const(1.0, x), x), whole)


@scalar
def floor(x):
    """Largest integer not above `x`."""
    return _ir.floor(x)


@scalar
def ceil(x):
    """Smallest integer not below `x`."""
    return _ir.ceil(x)


@scalar
def trunc(x):
    """Integer part of `x`."""
    return _ir.trunc(x)


@scalar
def sqrt(x):
    """Square root, correctly rounded; NaN below zero."""
    return _ir.sqrt(x)


@scalar
def copysign(a, b):
    """Magnitude of `a` with the sign of `b`."""
    return _copysign(a, b)


@scalar(result=np.bool_)
def is_nan(x):
    """Whether `x` is NaN."""
    return x != x


@scalar(result=np.bool_)
def is_finite(x):
    """Whether `x` is neither NaN nor infinite."""
    return fabs(x) < np.inf


@scalar
def nextafter(x, y):
    """Next float after `x` towards `y`; `y` when they are equal, NaN when either is."""
    integer = _signed(x)
    bits = bitcast(x, integer)
    one = _ir.const(1, bits)
    step = bitcast(bits + select((x < y) == (x > 0), one, -one), x.dtype)
    least = bitcast(bitcast(_copysign(_ir.const(0.0, x), y), integer) | one, x.dtype)
    moved = select(x == 0, least, step)
    return select((x != x) | (y != y), x + y, select(x == y, y, moved))


# --- conversions --------------------------------------------------------------------------------

_FIXED = ("bool", *(f"{s}int{w}" for s in ("", "u") for w in (8, 16, 32, 64)))
_TARGETS = (*_FIXED, "float32", "float64")


def _converter(target):
    def text(x):
        return convert(x, target)

    text.__name__ = text.__qualname__ = f"to_{target}"
    text.__doc__ = f"As {target}: integers wrap, floats saturate, NaN becomes 0 (True for bool)."
    return scalar(text, kinds="biuf", result=np.dtype(target))


def _bitcaster(target):
    width = np.dtype(target).itemsize

    def text(x):
        if x.dtype.itemsize != width:
            raise TypeError(f"bitcast_{target}: {x.dtype} has another width")
        return bitcast(x, target)

    text.__name__ = text.__qualname__ = f"bitcast_{target}"
    text.__doc__ = f"The same bits read as {target}."
    return scalar(text, kinds="iuf", result=np.dtype(target))


to_bool, *_integers, to_float32, to_float64 = map(_converter, _TARGETS)
to_int8, to_int16, to_int32, to_int64, to_uint8, to_uint16, to_uint32, to_uint64 = _integers
*_integers, bitcast_float32, bitcast_float64 = map(_bitcaster, _TARGETS[1:])
bitcast_int8, bitcast_int16, bitcast_int32, bitcast_int64, *_integers = _integers
bitcast_uint8, bitcast_uint16, bitcast_uint32, bitcast_uint64 = _integers


@scalar(only=np.uint16, result=np.float32)
def f16_load(bits):
    """float16 bits (uint16) as float32, exactly."""
    bits = convert(bits, np.uint32)
    # Shifting puts the fields in place with the exponent 112 too small: 224 for infinities.
    shifted = (bits & 0x7FFF) << 13
    value = shifted + select(shifted >= 0x0F800000, _ir.const(0x70000000, bits), 0x38000000)
    # A subnormal is its integer, scaled: as a float32 of that exponent a loop would flush it.
    small = bitcast(convert(bits & 0x3FF, np.float32) * 2.0**-24, np.uint32)
    value = select(shifted < 0x00800000, small, value)
    return bitcast(value | ((bits & 0x8000) << 16), np.float32)


@scalar(only=np.float32, result=np.uint16)
def f16_store(x):
    """float32 as float16 bits (uint16), rounded to nearest even; NaN stays NaN, quiet."""
    bits = bitcast(x, np.uint32)
    sign, size = (bits >> 16) & 0x8000, bits & 0x7FFFFFFF
    # Below 2**-14 adding 0.5 aligns the last half-precision bit with the last bit of the sum.
    small = bitcast(bitcast(size, np.float32) + 0.5, np.uint32) - 0x3F000000
    # Elsewhere rebias the exponent and round: half an ulp less one, plus the bit that would be odd.
    normal = (size - 0x38000000 + 0xFFF + ((size >> 13) & 1)) >> 13
    half = select(size < 0x38800000, small, normal)
    half = select(size >= 0x47800000, _ir.const(0x7C00, size), half)
    half = select(size > 0x7F800000, 0x7E00 | ((size >> 13) & 0x3FF), half)
    return convert(half | sign, np.uint16)


@scalar(only=np.uint16, result=np.float32)
def bf16_load(bits):
    """bfloat16 bits (uint16) as float32, exactly."""
    return bitcast(convert(bits, np.uint32) << 16, np.float32)


@scalar(only=np.float32, result=np.uint16)
def bf16_store(x):
    """float32 as bfloat16 bits (uint16), rounded to nearest even; NaN stays NaN, quiet."""
    bits = bitcast(x, np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return convert(select(x != x, (bits >> 16) | 0x40, rounded), np.uint16)


# --- indices and arrays -------------------------------------------------------------------------


def u(i):
    """Index `i` as unsigned, so that indexing carries no wrap-around code; `i` must be >= 0."""
    return int(i)


def flat(a):
    """View a C-contiguous array of any rank as one-dimensional, sharing its data."""
    return a.reshape(-1, copy=False)


tell("power", ipow)
tell("index", u)
tell("view", flat)
