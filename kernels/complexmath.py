"""Complex arithmetic and elementary functions, in the precision of the operand.

Numba's own versions serve where they are accurate. Those written here are the ones it computes by
the textbook formula, which cancels: ``expm1``, ``log1p``, ``log`` near the unit circle.
"""

from __future__ import annotations

import numpy as np

from fnarray_kernels.registry import compiled, tell


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


@compiled
def div(a, b):
    """Quotient by Smith's method (CACM 5, 1962), scaled so that squares cannot overflow."""
    return np.divide(a, b)


@compiled
def neg(z):
    """Negative; signs of zeros change too."""
    return make(-z.real, -z.imag)


@compiled
def conj(z):
    """Conjugate."""
    return make(z.real, -z.imag)


@compiled
def abs(z):
    """Magnitude, without overflow of the squares."""
    return np.hypot(z.real, z.imag)


@compiled
def sign(z):
    """``z / |z|``; zero for zero."""
    size = np.hypot(z.real, z.imag)
    if size == 0:
        return z
    return make(z.real / size, z.imag / size)


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


# --- powers, exponentials, logarithms -----------------------------------------------------------


@compiled
def sqrt(z):
    """Principal square root."""
    return np.sqrt(z)


@compiled
def rsqrt(z):
    """``1 / sqrt(z)``."""
    return np.reciprocal(np.sqrt(z))


@compiled
def exp(z):
    """Exponential."""
    return np.exp(z)


@compiled
def exp2(z):
    """``2 ** z``."""
    return np.power(make(z.real * 0 + 2, z.imag * 0), z)


@compiled
def expm1(z):
    """``exp(z) - 1``; its real part is ``expm1(x) cos y - 2 sin(y/2)**2``."""
    half = np.sin(z.imag / 2)
    re = np.expm1(z.real) * np.cos(z.imag) - 2 * half * half
    return make(re, np.exp(z.real) * np.sin(z.imag))


@compiled
def log(z):
    """Principal logarithm; near the unit circle by ``log1p(|z|**2 - 1)``."""
    size = np.hypot(z.real, z.imag)
    if 0.5 < size < 2:
        re = np.log1p((z.real - 1) * (z.real + 1) + z.imag * z.imag) / 2
    else:
        re = np.log(size)
    return make(re, np.arctan2(z.imag, z.real))


@compiled
def log1p(z):
    """Principal logarithm of ``1 + z``, accurate for small ``z``."""
    size = np.hypot(z.real, z.imag)
    if size < 0.5:
        re = np.log1p(z.real * (2 + z.real) + z.imag * z.imag) / 2
    else:
        re = np.log(np.hypot(1 + z.real, z.imag))
    return make(re, np.arctan2(z.imag, 1 + z.real))


@compiled
def logistic(z):
    """``1 / (1 + exp(-z))``."""
    return np.reciprocal(1 + np.exp(-z))


@compiled
def pow(a, b):
    """Principal power."""
    return np.power(a, b)


@compiled
def ipow(z, n):
    """``z ** n`` for an integer ``n``, by squaring."""
    count = -n if n < 0 else n
    result = make(z.real * 0 + 1, z.imag * 0)
    if count == 0:
        return result
    while True:
        if count & 1:
            result = result * z
        count >>= 1
        if count == 0:
            break
        z = z * z
    return np.reciprocal(result) if n < 0 else result


# --- trigonometry -------------------------------------------------------------------------------


@compiled
def sin(z):
    """Sine."""
    return np.sin(z)


@compiled
def cos(z):
    """Cosine."""
    return np.cos(z)


@compiled
def tan(z):
    """Tangent."""
    return np.tan(z)


@compiled
def sinh(z):
    """Hyperbolic sine."""
    return np.sinh(z)


@compiled
def cosh(z):
    """Hyperbolic cosine."""
    return np.cosh(z)


@compiled
def tanh(z):
    """Hyperbolic tangent."""
    return np.tanh(z)


@compiled
def asin(z):
    """Inverse sine."""
    return np.arcsin(z)


@compiled
def acos(z):
    """Inverse cosine."""
    return np.arccos(z)


@compiled
def atan(z):
    """Inverse tangent."""
    return np.arctan(z)


@compiled
def asinh(z):
    """Inverse hyperbolic sine."""
    return np.arcsinh(z)


@compiled
def acosh(z):
    """Inverse hyperbolic cosine."""
    return np.arccosh(z)


@compiled
def atanh(z):
    """Inverse hyperbolic tangent."""
    return np.arctanh(z)


@compiled
def atan2(y, x):
    """``-i log((x + i y) / sqrt(x**2 + y**2))``: the angle of a point with complex coordinates."""
    rotated = make(x.real - y.imag, x.imag + y.real)
    w = log(np.divide(rotated, np.sqrt(x * x + y * y)))
    return make(w.imag, -w.real)
