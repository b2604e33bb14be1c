"""Vector math: elementary functions in float32 and float64 that inline and vectorise."""

from fnarray_kernels.scalar import sqrt
from fnarray_kernels.vmath.errors import erf, erf_inv, erfc
from fnarray_kernels.vmath.exponential import exp, exp2, expm1, log, log1p, log2, logistic, pow
from fnarray_kernels.vmath.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from fnarray_kernels.vmath.roots import (
    cbrt,
    hypot,
    pow_1_2,
    pow_3,
    pow_3_2,
    pow_4,
    pow_5_2,
    pow_m1,
    pow_m1_2,
    pow_m2,
    pow_m3,
    pow_m3_2,
    pow_m5_2,
    rsqrt,
)
from fnarray_kernels.vmath.trigonometric import acos, asin, atan, atan2, cos, sin, tan

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf",
    "erf_inv", "erfc", "exp", "exp2", "expm1", "hypot", "log", "log1p", "log2", "logistic", "pow",
    "pow_1_2", "pow_3", "pow_3_2", "pow_4", "pow_5_2", "pow_m1", "pow_m1_2", "pow_m2", "pow_m3",
    "pow_m3_2", "pow_m5_2", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
