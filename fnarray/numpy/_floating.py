"""Floats by their parts: signs, neighbours, fractions and exponents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from ..core.apart import another
from ..core.array import Array, aval_of
from ..core.dtypes import (
    bfloat16,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    int32,
    is_complex,
    is_inexact,
)
from ..core.eager import replayed
from ..ops.kit.calls import const, convert
from ..ops.kit.canonical import as_array
from ._face import composed, promoted
from ._math import signbit
from ._promote import (
    as_operand,
    broadcast_to,
    no_out,
    operands,
    promote_args_inexact,
    promote_dtypes_inexact,
    strengthen,
)
from ._select import choose_where
from ._ufunc import ufunc_of

__all__ = [
    "copysign",
    "frexp",
    "heaviside",
    "ldexp",
    "modf",
    "nan_to_num",
    "nextafter",
    "spacing",
]


@ufunc_of()
@promoted(lax.nextafter, promote_args_inexact)
def nextafter(x: Any, y: Any, /) -> Array:
    """Next float after the first argument in the direction of the second."""
    ...


@ufunc_of()
@composed
def copysign(x1: Any, x2: Any, /) -> Array:
    """Magnitude of the first argument with the sign of the second.

    Raises
    ------
    TypeError
        For complex numbers.
    """
    x, y = promote_args_inexact("copysign", x1, x2)
    if is_complex(x.dtype):
        raise TypeError("numpy.copysign takes real numbers.")
    size = lax.abs(x)
    return choose_where(signbit(y), lax.neg(size), size)


@ufunc_of()
@composed
def heaviside(x1: Any, x2: Any, /) -> Array:
    """Step function: 0 below zero, 1 above, the second argument at zero."""
    x, y = strengthen(promote_args_inexact("heaviside", x1, x2), x1, x2)
    zero, one = const(x, 0), const(x, 1)
    at_zero = choose_where(lax.ne(x, x), x, y)
    above = choose_where(lax.gt(x, zero), one, at_zero)
    return choose_where(lax.lt(x, zero), zero, above)


@ufunc_of(nin=1)
@composed
def spacing(x: Any, /) -> Array:
    """Distance to the next float away from zero, with the sign of ``x``.

    Raises
    ------
    ValueError
        For complex numbers.
    """
    (x,) = promote_args_inexact("spacing", x)
    x = convert(x, x.dtype)
    if is_complex(x.dtype):
        raise ValueError("numpy.spacing takes real numbers.")
    step = lax.sub(lax.nextafter(x, copysign(const(x, math.inf), x)), x)
    smallest = copysign(const(x, float(finfo(x.dtype).smallest_subnormal)), x)
    return choose_where(lax.eq(step, const(step, 0)), smallest, step)


@replayed
def modf(x: Any, /, out: None = None) -> tuple[Array, Array]:
    """Fractional and whole part, both with the sign of ``x``."""
    no_out("modf", out)
    (x,) = promote_args_inexact("modf", x)
    whole = choose_where(lax.ge(x, const(x, 0)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


#: Of each float dtype: integer of its width, bits of fraction, bias of the exponent.
_LAYOUT = {
    float16: (np.dtype(np.int16), 10, 15),
    bfloat16: (np.dtype(np.int16), 7, 127),
    float32: (int32, 23, 127),
    float64: (np.dtype(np.int64), 52, 1023),
}


@composed
def frexp(x: Any, /) -> tuple[Array, Array]:
    """Fraction in [0.5, 1) and int32 exponent with ``x = fraction * 2 ** exponent``.

    Zero, infinity and NaN are their own fraction, with exponent 0.

    Raises
    ------
    TypeError
        For complex numbers.
    """
    (x,) = promote_args_inexact("frexp", x)
    if is_complex(x.dtype):
        raise TypeError("numpy.frexp takes real numbers.")
    integer, fraction_bits, bias = _LAYOUT[x.dtype]
    # Subnormals are scaled up first, to have an exponent of their own.
    small = lax.lt(lax.abs(x), const(x, float(finfo(x.dtype).tiny)))
    scaled = choose_where(small, lax.mul(x, const(x, 2.0**fraction_bits)), x)
    bits = lax.bitcast_convert_type(scaled, integer)
    exponent_mask = (2 * bias + 1) << fraction_bits
    exponent_mask = convert(exponent_mask, integer)
    biased = lax.bitwise_and(bits, exponent_mask)
    exponent = lax.shift_right_logical(biased, convert(fraction_bits, integer))
    exponent = lax.sub(convert(exponent, int32), convert(bias - 1, int32))
    down = convert(-fraction_bits, int32)
    exponent = lax.add(exponent, choose_where(small, down, convert(0, int32)))
    # The power whose bits complement the exponent's, which is always normal: 2 ** (2 - exponent).
    power = lax.bitcast_convert_type(lax.bitwise_xor(biased, exponent_mask), x.dtype)
    itself = lax.bitwise_or(lax.eq(x, const(x, 0)), lax.bitwise_not(lax.is_finite(x)))
    fraction = choose_where(itself, x, lax.mul(lax.mul(scaled, power), const(x, 0.25)))
    return fraction, choose_where(itself, convert(0, int32), exponent)


@ufunc_of()
@composed
def ldexp(x1: Any, x2: Any, /) -> Array:
    """``x * 2 ** n`` for integers ``n``, exact unless the result is out of range.

    Raises
    ------
    ValueError
        For complex numbers, or exponents that are not integers.
    """
    x, n = operands("ldexp", x1, x2)
    if is_complex(aval_of(x).dtype):
        raise ValueError("numpy.ldexp takes real numbers.")
    if is_inexact(aval_of(n).dtype):
        raise ValueError(f"numpy.ldexp: exponents must be integers, got {aval_of(n).dtype}.")
    (x,) = promote_dtypes_inexact(x)
    x = convert(x, x.dtype)
    n = as_array(n)
    n = convert(n, int32) if n.dtype.itemsize < 4 else n
    limits = finfo(x.dtype)
    far = 4 * limits.maxexp
    least = max(-far, iinfo(n.dtype).min)
    # Before they are int32: what that does not hold would wrap.
    n = lax.clamp(convert(least, n.dtype), n, convert(far, n.dtype))
    shape = lax.broadcast_shapes(x.shape, n.shape)
    x, n = broadcast_to("ldexp", x, shape), convert(broadcast_to("ldexp", n, shape), int32)
    fraction, exponent = frexp(x)
    low, high = convert(limits.minexp + 1, int32), convert(limits.maxexp - 1, int32)
    exponent = lax.add(exponent, n)
    # The first product is exact, being a normal number: only the second may round.
    first = lax.clamp(low, exponent, high)
    second = lax.clamp(low, lax.sub(exponent, first), high)
    scaled = lax.mul(fraction, _power_of_two(first, x.dtype))
    scaled = lax.mul(scaled, _power_of_two(second, x.dtype))
    itself = lax.bitwise_or(lax.eq(x, const(x, 0)), lax.bitwise_not(lax.is_finite(x)))
    return choose_where(itself, x, scaled)


def _power_of_two(n: Array, dtype: np.dtype) -> Array:
    """``2 ** n`` by its bits, for exponents of normal numbers."""
    integer, fraction_bits, bias = _LAYOUT[dtype]
    exponent = convert(lax.add(n, convert(bias, int32)), integer)
    bits = lax.shift_left(exponent, convert(fraction_bits, integer))
    return lax.bitcast_convert_type(bits, dtype)


@replayed
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Array:
    """Replace NaN and infinities by numbers.

    Parameters
    ----------
    x : array_like
    copy : bool
        Accepted; arrays are immutable.
    nan, posinf, neginf : array_like
        Replacements; the largest and smallest finite numbers for infinities by default.
    """
    x = as_array(as_operand("nan_to_num", x))
    if not is_inexact(x.dtype):
        return another(x)
    x = convert(x, x.dtype)
    if is_complex(x.dtype):
        parts = (nan_to_num(part(x), copy, nan, posinf, neginf) for part in (lax.real, lax.imag))
        return lax.complex(*parts)
    limits = finfo(x.dtype)
    posinf = float(limits.max) if posinf is None else posinf
    neginf = float(limits.min) if neginf is None else neginf
    rules = ((lax.ne(x, x), nan), (_equals(x, math.inf), posinf), (_equals(x, -math.inf), neginf))
    for where, value in rules:
        x = choose_where(where, convert(value, x.dtype, x.weak_type), x)
    return x


def _equals(x: Array, value: float) -> Array:
    return lax.eq(x, const(x, value))
