"""Elementary functions: exponentials, trigonometry, rounding, complex parts, floating point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from ..core.apart import another
from ..core.array import Array, aval_of
from ..core.dtypes import (
    ExtendedDType,
    bool_,
    float32,
    is_bool,
    is_complex,
    is_float,
    is_half,
    is_inexact,
    is_integer,
    to_inexact,
    to_real,
)
from ..core.eager import replayed
from ..ops import log_sums
from ..ops.kit.calls import const, convert
from ..ops.kit.canonical import as_array
from ._complex_parts import imag, real
from ._face import composed, promoted
from ._promote import (
    as_operand,
    no_out,
    promote_args,
    promote_args_inexact,
    promote_dtypes_inexact,
    strengthen,
)
from ._rules import i0_of, sinc_of
from ._select import choose_where
from ._ufunc import ufunc_of
from ._ufuncs import absolute, equal, multiply

__all__ = [
    "abs",
    "acos",
    "acosh",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "hypot",
    "i0",
    "isclose",
    "iscomplex",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "rad2deg",
    "radians",
    "reciprocal",
    "rint",
    "round",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]

abs = absolute


def _full_bool(x: Array, value: bool) -> Array:
    return lax.broadcast_in_dim(convert(value, bool_), x.shape, ())


# ---- exponentials and logarithms ---------------------------------------------------------------


@promoted(lax.exp, promote_args_inexact)
def exp(x: Any, /) -> Array:
    """Exponential."""
    ...


@promoted(lax.exp2, promote_args_inexact)
def exp2(x: Any, /) -> Array:
    """``2 ** x``."""
    ...


@promoted(lax.expm1, promote_args_inexact)
def expm1(x: Any, /) -> Array:
    """``exp(x) - 1``, accurate for small ``x``."""
    ...


@promoted(lax.log, promote_args_inexact)
def log(x: Any, /) -> Array:
    """Natural logarithm; NaN below zero for real numbers."""
    ...


@promoted(lax.log1p, promote_args_inexact)
def log1p(x: Any, /) -> Array:
    """``log(1 + x)``, accurate for small ``x``."""
    ...


@composed
def log2(x: Any, /) -> Array:
    """Logarithm to base 2."""
    (x,) = promote_args_inexact("log2", x)
    # Dividing by log(2), not multiplying by its inverse, is exact for powers of 2.
    base = lax.log(convert(2, to_real(x.dtype)))
    if not is_complex(x.dtype):
        return lax.div(lax.log(x), base)
    y = lax.log(x)
    return lax.complex(lax.div(lax.real(y), base), lax.div(lax.imag(y), base))


@composed
def log10(x: Any, /) -> Array:
    """Logarithm to base 10."""
    (x,) = promote_args_inexact("log10", x)
    scale = convert(math.log10(math.e), to_real(x.dtype))  # 1 / math.log(10) is off by an ULP
    y = lax.log(x)
    if not is_complex(x.dtype):
        return lax.mul(y, scale)
    return lax.complex(lax.mul(lax.real(y), scale), lax.mul(lax.imag(y), scale))


@promoted(lax.sqrt, promote_args_inexact)
def sqrt(x: Any, /) -> Array:
    """Square root; NaN below zero for real numbers."""
    ...


@promoted(lax.cbrt, promote_args_inexact)
def cbrt(x: Any, /) -> Array:
    """Cube root of real numbers, negative ones too."""
    ...


@promoted(lax.reciprocal, promote_args_inexact)
def reciprocal(x: Any, /) -> Array:
    """``1 / x``, as a float."""
    ...


@ufunc_of(identity=-math.inf)
@composed
def logaddexp(x1: Any, x2: Any, /) -> Array:
    """``log(exp(x) + exp(y))``, without overflow."""
    x, y = promote_args_inexact("logaddexp", x1, x2)
    if not is_complex(x.dtype):
        return log_sums.logaddexp(x, y)
    return _log_add(x, y, lax.exp, 1.0)


@ufunc_of(identity=-math.inf)
@composed
def logaddexp2(x1: Any, x2: Any, /) -> Array:
    """``log2(2 ** x + 2 ** y)``, without overflow."""
    x, y = strengthen(promote_args_inexact("logaddexp2", x1, x2), x1, x2)
    if not is_complex(x.dtype):
        return log_sums.logaddexp2(x, y)
    return _log_add(x, y, lax.exp2, 1 / math.log(2))


def _log_add(x: Array, y: Array, power: Any, unit: float) -> Array:
    """Logarithm of a sum of powers of complex numbers."""
    larger = lax.max(x, y)
    term = lax.log1p(power(lax.sub(lax.add(x, y), lax.mul(larger, const(larger, 2)))))
    out = lax.add(larger, lax.mul(const(term, unit), term))
    return _wrap_angle(out, math.pi * unit)


def _wrap_angle(z: Array, half: float) -> Array:
    """Bring imaginary parts to ``[-half, half)``."""
    angle = lax.imag(z)
    shift, turn = const(angle, half), const(angle, 2 * half)
    rest = lax.rem(lax.add(angle, shift), turn)
    rest = lax.select_n(lax.lt(rest, const(rest, 0)), rest, lax.add(rest, turn))
    return lax.complex(lax.real(z), lax.sub(rest, shift))


@composed
def i0(x: Any, /) -> Array:
    """Modified Bessel function of the first kind, order 0.

    Raises
    ------
    ValueError
        For complex numbers.
    """
    (x,) = promote_args_inexact("i0", x)
    if not is_float(x.dtype):
        raise ValueError(f"numpy.i0 takes real numbers, got {x.dtype}.")
    return i0_of(x)


# ---- trigonometry ------------------------------------------------------------------------------


@promoted(lax.sin, promote_args_inexact)
def sin(x: Any, /) -> Array:
    """Sine of angles in radians."""
    ...


@promoted(lax.cos, promote_args_inexact)
def cos(x: Any, /) -> Array:
    """Cosine of angles in radians."""
    ...


@promoted(lax.tan, promote_args_inexact)
def tan(x: Any, /) -> Array:
    """Tangent of angles in radians."""
    ...


@promoted(lax.asin, promote_args_inexact)
def arcsin(x: Any, /) -> Array:
    """Inverse sine, in radians; NaN outside [-1, 1] for real numbers."""
    ...


@promoted(lax.acos, promote_args_inexact)
def arccos(x: Any, /) -> Array:
    """Inverse cosine, in radians; NaN outside [-1, 1] for real numbers."""
    ...


@promoted(lax.atan, promote_args_inexact)
def arctan(x: Any, /) -> Array:
    """Inverse tangent, in radians."""
    ...


@ufunc_of()
@promoted(lax.atan2, promote_args_inexact)
def arctan2(x: Any, y: Any, /) -> Array:
    """Angle of the point whose ordinate is the first argument, abscissa the second."""
    ...


@promoted(lax.sinh, promote_args_inexact)
def sinh(x: Any, /) -> Array:
    """Hyperbolic sine."""
    ...


@promoted(lax.cosh, promote_args_inexact)
def cosh(x: Any, /) -> Array:
    """Hyperbolic cosine."""
    ...


@promoted(lax.tanh, promote_args_inexact)
def tanh(x: Any, /) -> Array:
    """Hyperbolic tangent."""
    ...


@promoted(lax.asinh, promote_args_inexact)
def arcsinh(x: Any, /) -> Array:
    """Inverse hyperbolic sine."""
    ...


@promoted(lax.acosh, promote_args_inexact)
def arccosh(x: Any, /) -> Array:
    """Inverse hyperbolic cosine; NaN below 1 for real numbers."""
    ...


@promoted(lax.atanh, promote_args_inexact)
def arctanh(x: Any, /) -> Array:
    """Inverse hyperbolic tangent; NaN outside [-1, 1] for real numbers."""
    ...


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh


@composed
def deg2rad(x: Any, /) -> Array:
    """Angles in radians of angles in degrees."""
    (x,) = promote_args_inexact("deg2rad", x)
    return lax.mul(x, const(x, math.pi / 180))


@composed
def rad2deg(x: Any, /) -> Array:
    """Angles in degrees of angles in radians."""
    (x,) = promote_args_inexact("rad2deg", x)
    return lax.mul(x, const(x, 180 / math.pi))


radians, degrees = deg2rad, rad2deg


@ufunc_of()
@composed
def hypot(x1: Any, x2: Any, /) -> Array:
    """``sqrt(x ** 2 + y ** 2)``, without overflow; infinite where either is, NaN or not.

    Raises
    ------
    ValueError
        For complex numbers.
    """
    x, y = strengthen(promote_args_inexact("hypot", x1, x2), x1, x2)
    if is_complex(x.dtype):
        raise ValueError("numpy.hypot takes real numbers. Use numpy.abs of complex ones first.")
    x, y = lax.abs(x), lax.abs(y)
    infinity, zero, one = const(x, math.inf), const(x, 0), const(x, 1)
    infinite = lax.bitwise_or(lax.eq(x, infinity), lax.eq(y, infinity))
    large, small = lax.max(x, y), lax.min(x, y)
    ratio = lax.div(small, choose_where(lax.eq(large, zero), one, large))
    size = lax.mul(large, lax.sqrt(lax.add(one, lax.square(ratio))))
    return choose_where(infinite, infinity, choose_where(lax.eq(large, zero), large, size))


@composed
def sinc(x: Any, /) -> Array:
    """``sin(pi x) / (pi x)``, 1 at 0."""
    (x,) = promote_args_inexact("sinc", x)
    return sinc_of(0, x)


# ---- rounding ----------------------------------------------------------------------------------


_floor = promoted(lax.floor, promote_args)(lambda x: x)
_ceil = promoted(lax.ceil, promote_args)(lambda x: x)


def _whole(name: str, x: Any) -> Any:
    """Integers and bools are whole already; None for other numbers."""
    x = as_operand(name, x)
    dtype = aval_of(x).dtype
    return another(as_array(x)) if is_bool(dtype) or is_integer(dtype) else None


def floor(x: Any, /) -> Array:
    """Largest integer not above each element; integers stay as they are."""
    whole = _whole("floor", x)
    return _floor(x) if whole is None else whole


def ceil(x: Any, /) -> Array:
    """Smallest integer not below each element; integers stay as they are."""
    whole = _whole("ceil", x)
    return _ceil(x) if whole is None else whole


@composed
def trunc(x: Any, /) -> Array:
    """Cut towards zero; integers stay as they are."""
    whole = _whole("trunc", x)
    if whole is not None:
        return whole
    x = as_array(x)
    return choose_where(lax.lt(x, const(x, 0)), lax.ceil(x), lax.floor(x))


@replayed
def rint(x: Any, /) -> Array:
    """Nearest integer as a float, halves to even."""
    x = as_operand("rint", x)
    dtype = aval_of(x).dtype
    if is_bool(dtype) or is_integer(dtype):
        return convert(x, to_inexact(dtype))
    return _round_parts(as_array(x))


def _round_parts(x: Array) -> Array:
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    if is_complex(x.dtype):
        return lax.complex(lax.round(lax.real(x), even), lax.round(lax.imag(x), even))
    return lax.round(x, even)


@replayed
def round(a: Any, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals, halves to even.

    Parameters
    ----------
    a : array_like
    decimals : int
        Negative numbers round to tens, hundreds, ...; concrete.
    out : None
        Arrays are immutable.

    Raises
    ------
    ValueError
        For bools.
    """
    no_out("round", out)
    a = as_array(as_operand("round", a))
    decimals = int(decimals)
    if is_bool(a.dtype):
        raise ValueError("numpy.round takes numbers, got bool.")
    if is_integer(a.dtype):
        if decimals >= 0:
            return another(a)
        return _round_integers(a, 10**-decimals)
    if decimals == 0:
        return _round_parts(a)
    # float16 has no room for the factor: 10 ** 5 overflows.
    wide = convert(a, float32) if is_half(a.dtype) else a
    factor = convert(float(10 ** max(decimals, -decimals)), wide.dtype)
    scale, unscale = (lax.mul, lax.div) if decimals > 0 else (lax.div, lax.mul)
    return convert(unscale(_round_parts(scale(wide, factor)), factor), a.dtype, a.weak_type)


def _round_integers(a: Array, unit: int) -> Array:
    if unit > np.iinfo(a.dtype).max:
        return lax.full_like(a, 0)
    # By integers throughout: a float would lose digits of large ones.
    one = const(a, unit)
    low = a - a % one
    rest, half = a - low, const(a, unit // 2)
    odd = lax.eq((low // one) % const(a, 2), const(a, 1))
    up = lax.bitwise_or(lax.gt(rest, half), lax.bitwise_and(lax.eq(rest, half), odd))
    return choose_where(up, low + one, low)


around = round


# ---- tests -------------------------------------------------------------------------------------


@promoted(lambda x: lax.ne(x, x), promote_args)
def isnan(x: Any, /) -> Array:
    """Whether each element is NaN."""
    ...


@composed
def isfinite(x: Any, /) -> Array:
    """Whether each element is neither infinite nor NaN."""
    x = as_array(as_operand("isfinite", x))
    if is_float(x.dtype):
        return lax.is_finite(x)
    if is_complex(x.dtype):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return _full_bool(x, True)


@composed
def isinf(x: Any, /) -> Array:
    """Whether each element is infinite."""
    x = as_array(as_operand("isinf", x))
    if is_complex(x.dtype):
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    if not is_float(x.dtype):
        return _full_bool(x, False)
    return lax.eq(lax.abs(x), const(x, math.inf))


def _is_infinity(name: str, x: Any, value: float, out: Any) -> Array:
    no_out(name, out)
    x = as_array(as_operand(name, x))
    if is_complex(x.dtype):
        raise ValueError(f"numpy.{name} takes real numbers, got {x.dtype}.")
    return lax.eq(x, const(x, value)) if is_float(x.dtype) else _full_bool(x, False)


@replayed
def isposinf(x: Any, /, out: None = None) -> Array:
    """Whether each element is plus infinity."""
    return _is_infinity("isposinf", x, math.inf, out)


@replayed
def isneginf(x: Any, /, out: None = None) -> Array:
    """Whether each element is minus infinity."""
    return _is_infinity("isneginf", x, -math.inf, out)


@replayed
def isreal(x: Any) -> Array:
    """Whether each element has no imaginary part."""
    part = imag(x)
    return lax.eq(part, const(part, 0))


@replayed
def iscomplex(x: Any) -> Array:
    """Whether each element has an imaginary part."""
    part = imag(x)
    return lax.ne(part, const(part, 0))


@composed
def signbit(x: Any, /) -> Array:
    """Whether each element's sign is negative, that of -0.0 and NaN included.

    Raises
    ------
    ValueError
        For complex numbers.
    """
    x = as_array(as_operand("signbit", x))
    if is_integer(x.dtype):
        return lax.lt(x, const(x, 0))
    if is_bool(x.dtype):
        return _full_bool(x, False)
    if not is_float(x.dtype):
        raise ValueError(f"numpy.signbit takes real numbers, got {x.dtype}.")
    bits = lax.bitcast_convert_type(x, f"int{8 * x.dtype.itemsize}")
    return lax.lt(bits, const(bits, 0))


@replayed
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Array:
    """Whether ``|a - b| <= atol + rtol |b|``; equal infinities are close.

    Parameters
    ----------
    a, b : array_like
    rtol, atol : array_like
    equal_nan : bool
        Whether NaN is close to NaN.
    """
    if isinstance(a, Array) and isinstance(a.dtype, ExtendedDType):  # random keys
        return equal(a, b)
    a, b = promote_args("isclose", a, b)
    if not is_inexact(a.dtype):
        a, b = promote_dtypes_inexact(a, b)
    same = lax.eq(a, b)
    real = to_real(a.dtype)
    rtol, atol = convert(rtol, real), convert(atol, real)
    bound = multiply(rtol, lax.abs(b)) + atol
    near = lax.le(lax.abs(lax.sub(a, b)), bound)
    finite = lax.bitwise_and(isfinite(a), isfinite(b))
    close = choose_where(finite, near, same)
    if equal_nan:
        close = lax.bitwise_or(close, lax.bitwise_and(lax.ne(a, a), lax.ne(b, b)))
    return close


# ---- complex parts -----------------------------------------------------------------------------


@replayed
def angle(z: Any, deg: bool = False) -> Array:
    """Angle of complex numbers in the plane, in radians, or degrees with ``deg``."""
    z = as_array(as_operand("angle", z))
    if not is_complex(z.dtype):
        # One number is as if it were complex, of which the narrowest has parts of 32 bits; of JAX
        # arrays of halves keep their dtype.
        dtype = to_inexact(z.dtype)
        z = convert(z, float32 if dtype.itemsize < 4 and not z.ndim else dtype, False)
    out = arctan2(imag(z), real(z))
    return rad2deg(out) if deg else out
