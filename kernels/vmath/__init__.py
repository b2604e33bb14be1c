"""Vector math: elementary functions in float32 and float64 that inline and vectorise."""

from fnarray_kernels.scalar import sqrt
from fnarray_kernels.vmath.errors import erf, erf_inv, erfc
from fnarray_kernels.vmath.exponential import exp, exp2, expm1, log, log1p, log2, logistic, pow
from fnarray_kernels.vmath.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from fnarray_kernels.vmath.roots import cbrt, hypot, rsqrt
from fnarray_kernels.vmath.trigonometric import acos, asin, atan, atan2, cos, sin, tan

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf",
    "erf_inv", "erfc", "exp", "exp2", "expm1", "hypot", "log", "log1p", "log2", "logistic", "pow",
    "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
