"""Complex arithmetic and elementary functions, in the precision of the operand.

Each is a text of real operations, which every compiler reads alike; the inverse functions and
those with a quotient are computed in double precision. The algorithms of the inverse ones are
CPython's (``cmathmodule.c``), that of the root is CACM's 312 (1967).
"""

# pyright: reportOperatorIssue=false, reportCallIssue=false, reportArgumentType=false
# Results of `vmath` are NumPy scalars or traced values, which no declaration tells apart.
from __future__ import annotations

import math

import numpy as np

from fnarray_kernels import vmath as vm
from fnarray_kernels.registry import compiled, straight, tell

_LOG_2, _LOG_4 = math.log(2.0), math.log(4.0)
# Beyond these the squares of parts overflow, or their sums lose what counts.
_LARGE = 1e153
_SMALL = 1e-153


def make(re, im):
    """Complex number of two real parts of one dtype."""
    dtype = np.complex64 if np.dtype(type(re)).itemsize == 4 else np.complex128
    return dtype(complex(re, im))


tell("complex", make)


@compiled
def to_complex64(x):
    """A real or complex number in single precision."""
    return np.complex64(x)


@compiled
def to_complex128(x):
    """A real or complex number in double precision."""
    return np.complex128(x)


# --- arithmetic ---------------------------------------------------------------------------------


@straight
def lost(a, b):
    """What rounding takes off the parts of ``a + b``; as of real numbers, see `scalar.lost`."""
    total = a + b
    moved = total - a
    return (a - (total - moved)) + (b - moved)


@straight
def settled(total, low):
    """A total with what it has lost; as it is where infinities leave nothing to say of that."""
    known = (low.real == low.real) & (low.imag == low.imag)
    return total + low if known else total


@straight
def div(a, b):
    """Quotient by Smith's method (CACM 5, 1962), scaled so that squares cannot overflow."""
    one = type(b.real)(1)
    large = np.abs(b.real) >= np.abs(b.imag)
    zero = (b.real == 0) & (b.imag == 0)
    p, q = (b.real, b.imag) if large else (b.imag, b.real)
    u, v = (a.real, a.imag) if large else (a.imag, a.real)
    ratio = q / (one if zero else p)
    scale = one / (np.abs(p) if zero else p + q * ratio)
    along = u + v * ratio
    across = v - u * ratio if large else u * ratio - v
    return make((u if zero else along) * scale, (v if zero else across) * scale)


@compiled
def quotient(a, b):
    """``a / b`` of real or complex numbers, by zero too, where Numba's complex ones raise."""
    return a / b if b != 0 else a * (type(b.real)(1) / b.real)


@straight
def _reciprocal(z):
    """One over a number, by Smith's method."""
    one = type(z.real)(1)
    wide = np.abs(z.imag) <= np.abs(z.real)
    p, q = (z.real, z.imag) if wide else (z.imag, z.real)
    ratio = q / p
    scale = one / (p + q * ratio)
    return make(scale if wide else ratio * scale, -ratio * scale if wide else -scale)


@straight
def neg(z):
    """Negative; signs of zeros change too."""
    return make(-z.real, -z.imag)


@straight
def conj(z):
    """Conjugate."""
    return make(z.real, -z.imag)


@straight
def abs(z):
    """Magnitude, without overflow of the squares."""
    return vm.hypot(z.real, z.imag)


@straight
def sign(z):
    """``z / |z|``; zero for zero."""
    size = vm.hypot(z.real, z.imag)
    by = type(z.real)(1) if size == 0 else size
    return make(z.real / by, z.imag / by)


@compiled
def maximum(a, b):
    """Larger by real part, then by imaginary part; NaN wins."""
    if np.isnan(a.real) or np.isnan(a.imag):
        return a
    if np.isnan(b.real) or np.isnan(b.imag):
        return b
    if a.real > b.real or (a.real == b.real and a.imag >= b.imag):
        return a
    return b


@compiled
def minimum(a, b):
    """Smaller by real part, then by imaginary part; NaN wins."""
    if np.isnan(a.real) or np.isnan(a.imag):
        return a
    if np.isnan(b.real) or np.isnan(b.imag):
        return b
    if a.real < b.real or (a.real == b.real and a.imag <= b.imag):
        return a
    return b


@compiled
def _part(a, b):
    """``a * b``, where a 0 beats a NaN: a part that is 0 along an axis is so at its end."""
    product = a * b
    zero = (a == 0) | (b == 0)
    return (a if a == 0 else b) if zero & (product != product) else product


# --- powers, exponentials, logarithms -----------------------------------------------------------


@straight
def _root(z):
    """Root in double precision; the real part of what has two is not negative."""
    a, b = z.real, z.imag
    x, y = np.abs(a), np.abs(b)
    large = (x >= 1e307) | (y >= 1e307)
    by = 0.25 if large else 1.0
    t = np.sqrt((x * by + vm.hypot(x * by, y * by)) * 0.5)
    other = y * by / (1.0 if t == 0.0 else 2.0 * t)
    back = 2.0 if large else 1.0
    re, im = (t, other) if a >= 0.0 else (other, t)
    infinite = y == np.inf
    return make(y if infinite else re * back, b if infinite else np.copysign(im * back, b))


@straight
def sqrt(z):
    """Principal square root."""
    return type(z)(_root(np.complex128(z)))


@straight
def rsqrt(z):
    """``1 / sqrt(z)``."""
    return type(z)(_reciprocal(_root(np.complex128(z))))


@straight
def _with_size(x, y, size, c, s):
    """A size times a cosine and a sine, of a number x + i y whose exponential it is."""
    infinite = np.abs(x) == np.inf
    # The angle of an infinity, or of a zero, is unknown; an exact zero of its parts stays one.
    unknown = infinite & ((np.abs(y) == np.inf) | (y != y))
    re = c if infinite & (c == 0) else size * c
    im = s if infinite & (s == 0) else size * s
    any_im = type(y)(np.nan) if x > 0 else size
    real = y == 0
    return make(size if real | unknown else re, y if real else any_im if unknown else im)


@straight
def exp(z):
    """Exponential."""
    return _with_size(z.real, z.imag, vm.exp(z.real), vm.cos(z.imag), vm.sin(z.imag))


@straight
def exp2(z):
    """``2 ** z``; of its angle in single precision, what is rounded is put back."""
    x, y = z.real, z.imag
    angle = np.float64(y) * _LOG_2
    turn = type(y)(angle)
    low = type(y)(angle - turn)
    size, c, s = vm.exp2(x), vm.cos(turn), vm.sin(turn)
    c, s = c - s * low, s + c * low
    return _with_size(x, y, size, c, s)


@straight
def expm1(z):
    """``exp(z) - 1``; its real part is ``expm1(x) cos y - 2 sin(y/2)**2``."""
    e, half = exp(z), vm.sin(z.imag * type(z.imag)(0.5))
    re = vm.expm1(z.real) * vm.cos(z.imag) - (half + half) * half
    infinite = np.abs(z.real) == np.inf
    return make(e.real - type(z.real)(1) if infinite else re, e.imag)


@straight
def _log(z):
    """Logarithm in double precision."""
    size = vm.hypot(z.real, z.imag)
    near = vm.log1p((z.real - 1.0) * (z.real + 1.0) + z.imag * z.imag) * 0.5
    far = vm.log(size)
    re = near if (size > 0.5) & (size < 2.0) else far
    return make(re, vm.atan2(z.imag, z.real))


@straight
def log(z):
    """Principal logarithm; near the unit circle by ``log1p(|z|**2 - 1)``."""
    return type(z)(_log(np.complex128(z)))


@straight
def log1p(z):
    """Principal logarithm of ``1 + z``, accurate for small ``z``."""
    w = np.complex128(z)
    small = vm.hypot(w.real, w.imag) < 0.5
    near = vm.log1p(w.real * (2.0 + w.real) + w.imag * w.imag if small else 0.0) * 0.5
    far = vm.log(vm.hypot(1.0 + w.real, w.imag))
    return type(z)(make(near if small else far, vm.atan2(w.imag, 1.0 + w.real)))


@straight
def logistic(z):
    """``1 / (1 + exp(-z))``.

    With ``e = exp(-|x|)`` its denominator's square is ``(1 - e)**2 + 4 e cos(y/2)**2``, and nothing
    cancels beside a pole either.
    """
    x, y = z.real, z.imag
    one = type(x)(1)
    small, less = vm.exp(-np.abs(x)), -vm.expm1(-np.abs(x))
    half = y * type(y)(0.5)
    c, s = vm.cos(half), vm.sin(half)
    across = (small + small) * c
    under = less * less + (across + across) * c
    re = (across * c + less * (one if x >= 0 else -small)) / under
    im = across * s / under
    infinite = np.abs(x) == np.inf
    re = (one if x > 0 else type(x)(0)) if infinite else re
    end = type(x)(0) if s != s else np.copysign(type(x)(0), c * s)
    im = y if y == 0 else end if infinite else im
    return make(re, im)


@straight
def pow(a, b):
    """Principal power."""
    x, y = np.complex128(a), np.complex128(b)
    power = exp(y * _log(x))
    alone = y.imag == 0
    zero = (x.real == 0) & (x.imag == 0)
    of_zero = 0.0 if (y.real > 0) & alone else np.nan
    re, im = of_zero if zero else power.real, of_zero if zero else power.imag
    square = a * a
    squared = alone & (y.real == 2)
    one = alone & (y.real == 0)
    result = type(a)(make(1.0 if one else re, 0.0 if one else im))
    return make(square.real if squared else result.real, square.imag if squared else result.imag)


@compiled
def ipow(z, n):
    """``z ** n`` for an integer ``n``, by squaring."""
    count = -n if n < 0 else n
    result = type(z)(make(1.0, 0.0))
    if count == 0:
        return result
    while count & 1 == 0:
        z = z * z
        count >>= 1
    result = z
    count >>= 1
    while count != 0:
        z = z * z
        if count & 1:
            result = result * z
        count >>= 1
    return _reciprocal(result) if n < 0 else result


# --- trigonometry -------------------------------------------------------------------------------


@straight
def _turned(z):
    """``i z``."""
    return make(-z.imag, z.real)


@straight
def _turned_back(z):
    """``-i z``."""
    return make(z.imag, -z.real)


@compiled
def sin(z):
    """Sine."""
    return _turned_back(sinh(_turned(z)))


@compiled
def cos(z):
    """Cosine."""
    return cosh(_turned(z))


@straight
def tan(z):
    """Tangent."""
    return _turned_back(tanh(_turned(z)))


@compiled
def sinh(z):
    """Hyperbolic sine."""
    x, y = z.real, z.imag
    c, s = vm.cos(y), vm.sin(y)
    if np.abs(x) == np.inf:
        if s != s:
            return make(x, s)
        return make(c * x if c != 0 else c, s * np.abs(x) if s != 0 else s)
    return make(_part(c, vm.sinh(x)), _part(s, vm.cosh(x)))


@compiled
def cosh(z):
    """Hyperbolic cosine."""
    x, y = z.real, z.imag
    c, s = vm.cos(y), vm.sin(y)
    if np.abs(x) == np.inf:
        if s != s or s == 0:
            return make(np.abs(x), s if x > 0 else -s)
        return make(np.copysign(x, c), np.copysign(x, s if x > 0 else -s))
    return make(_part(c, vm.cosh(x)), _part(s, vm.sinh(x)))


@straight
def tanh(z):
    """Hyperbolic tangent, ``(sinh x cosh x + i sin y cos y) / (sinh(x)**2 + cos(y)**2)``.

    Above and below are times ``4 exp(-2 |x|)``: nothing cancels, and nothing overflows.
    """
    x, y = z.real, z.imag
    one = type(x)(1)
    grown = vm.expm1(np.abs(x))
    less = one / (grown + one)
    less_1 = one if less == 0 else grown * less
    c, s = vm.cos(y), vm.sin(y)
    along, across = less_1 * (one + less), (c + c) * less
    under = along * along + across * across
    re = np.copysign(along * (one + less * less) / under, x)
    im = (s + s) * less * across / under
    # A part that is 0 along an axis is so where the other one is no number.
    re, im = x if x == 0 else re, y if y == 0 else im
    infinite = np.abs(x) == np.inf
    end = type(x)(0) if np.abs(y) == np.inf else np.copysign(type(x)(0), s * c)
    return make(np.copysign(one, x) if infinite else re, end if infinite else im)


@straight
def asin(z):
    """Inverse sine."""
    return _turned_back(asinh(_turned(z)))


@straight
def _is_large(z):
    """Whether a size overflows, or nearly: a fourth of it is taken, and log(4) added."""
    return (np.abs(z.real) > _LARGE) | (np.abs(z.imag) > _LARGE)


@straight
def _acos(z):
    """Inverse cosine in double precision."""
    large = _is_large(z)
    a, b = _root(make(1.0 - z.real, -z.imag)), _root(make(1.0 + z.real, z.imag))
    size = np.copysign(vm.hypot(z.real * 0.25, z.imag * 0.25), -z.imag)
    im = vm.asinh(size if large else b.real * a.imag - b.imag * a.real)
    re = vm.atan2(np.abs(z.imag) if large else a.real, z.real if large else b.real)
    im = im + np.copysign(_LOG_4, im) if large else im
    across = (z.real == 0) & (z.imag != z.imag)
    re = re if large else 2.0 * re
    return make(0.5 * np.pi if across else re, z.imag if across else im)


@straight
def acos(z):
    """Inverse cosine."""
    return type(z)(_acos(np.complex128(z)))


@straight
def atan(z):
    """Inverse tangent."""
    return _turned_back(atanh(_turned(z)))


@straight
def _asinh(z):
    """Inverse hyperbolic sine in double precision."""
    large = _is_large(z)
    a, b = _root(make(1.0 + z.imag, -z.real)), _root(make(1.0 - z.imag, z.real))
    size = np.copysign(vm.hypot(z.real * 0.25, z.imag * 0.25), z.real)
    re = vm.asinh(size if large else a.real * b.imag - b.real * a.imag)
    under = np.abs(z.real) if large else a.real * b.real - a.imag * b.imag
    re = re + np.copysign(_LOG_4, re) if large else re
    along = (z.imag == 0) & (z.real != z.real)
    return make(z.real if along else re, z.imag if along else vm.atan2(z.imag, under))


@straight
def asinh(z):
    """Inverse hyperbolic sine."""
    return type(z)(_asinh(np.complex128(z)))


@straight
def _acosh(z):
    """Inverse hyperbolic cosine in double precision."""
    large = _is_large(z)
    a, b = _root(make(z.real - 1.0, z.imag)), _root(make(z.real + 1.0, z.imag))
    size = vm.hypot(z.real * 0.25, z.imag * 0.25)
    re = vm.asinh(size if large else a.real * b.real + a.imag * b.imag)
    im = vm.atan2(z.imag if large else a.imag, z.real if large else b.real)
    re = re + _LOG_4 if large else re
    across = (z.real == 0) & (z.imag != z.imag)
    im = im if large else 2.0 * im
    return make(z.imag if across else re, 0.5 * np.pi if across else im)


@straight
def acosh(z):
    """Inverse hyperbolic cosine."""
    return type(z)(_acosh(np.complex128(z)))


@straight
def _atanh(x, y):
    """Inverse hyperbolic tangent of ``x + i y`` for ``x >= 0``."""
    ay = np.abs(y)
    large = (x != x) | (x > _LARGE) | (ay > _LARGE)
    infinite = (np.abs(x) == np.inf) | (ay == np.inf)
    h = vm.hypot(x * 0.5, y * 0.5)
    far = np.copysign(0.0, x) if infinite else x / 4.0 / h / h
    aside = -np.copysign(0.5 * np.pi, -y) if (x == x) | (ay == np.inf) else x
    pole = (x == 1.0) & (ay < _SMALL)
    less = 1.0 - x
    near = vm.log1p(4.0 * x / (less * less + ay * ay)) * 0.25 if x != 0 else x
    # Beside the pole ``log(2 / |y|) / 2``.
    close = (_LOG_2 - vm.log(ay)) * 0.5
    re = far if large else close if pole else near
    im = -vm.atan2(-2.0 * y, less * (1.0 + x) - ay * ay) * 0.5
    beside = np.copysign(vm.atan2(2.0, -ay) * 0.5, y) if ay != 0.0 else y
    im = aside if large else beside if pole else im
    return make(re, im if y == y else y)


@straight
def atanh(z):
    """Inverse hyperbolic tangent."""
    x, y = np.float64(z.real), np.float64(z.imag)
    negative = x < 0.0
    w = _atanh(-x if negative else x, -y if negative else y)
    return type(z)(make(-w.real if negative else w.real, -w.imag if negative else w.imag))


@compiled
def atan2(y, x):
    """``-i log((x + i y) / sqrt(x**2 + y**2))``: the angle of a point with complex coordinates."""
    a, b = np.complex128(y), np.complex128(x)
    w = _log(div(make(b.real - a.imag, b.imag + a.real), _root(b * b + a * a)))
    return type(y)(make(w.imag, -w.real))
