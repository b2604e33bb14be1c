"""What turns random bits into floats, in the roundings of XLA, so that samples agree with JAX."""

from __future__ import annotations

from fnarray_kernels._ir import const, fabs, fma, scalar, select, sqrt
from fnarray_kernels.vmath import log1p

# Giles, "Approximating the erfinv function", GPU Computing Gems Jade, 2011: table 5.
CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


@scalar
def multiply_add(x, y, z):
    """``x * y + z`` with one rounding."""
    return fma(x, y, z)


@scalar(only="float32")
def erf_inv(x):
    """Inverse error function in single precision; its tails have the error of ``1 - x * x``.

    `vmath.erf_inv` is more accurate; the difference, up to 87 ULP, is why this one exists.
    """
    w = -log1p(x * -x)
    near = w < 5.0
    v = select(near, w - 2.5, sqrt(w) - 3.0)
    y = None
    for centre, tail in zip(CENTRE, TAIL, strict=True):
        term = select(near, centre, const(tail, x))
        y = term if y is None else fma(y, v, term)
    return x * select(fabs(x) == 1.0, const(float("inf"), x), y)
