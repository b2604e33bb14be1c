"""Vector math: elementary functions in float32 and float64 that inline and vectorise."""
from fnarray_kernels.vmath.exponential import exp, exp2, expm1, log, log1p, log2, logistic, pow
from fnarray_kernels.vmath.trigonometric import acos, asin, atan, atan2, cos, sin, tan
