"""The error function, its complement and its inverse."""

from __future__ import annotations

from fnarray_kernels._ir import const, copysign, f32, fabs, fma, scalar, select, sqrt
from fnarray_kernels.vmath import coefficients as c
from fnarray_kernels.vmath.exponential import exp_scaled, log1p_of
from fnarray_kernels.vmath.parts import (
    INF,
    NAN,
    clip,
    horner,
    in_double,
    keep_zero,
    two_product,
)


def _erf_small(x):
    """Return ``erf(x)`` for ``|x| <= 0.75``."""
    return fma(x, horner(x * x, c.ERF_64), x)


def _erfc_large(x):
    """Return ``erfc(x)`` for ``x >= 0.4``, as ``exp(-x**2)`` times a smooth function.

    The variable ``(x - 4) / (x + 4)`` makes it a short polynomial on the whole half line (Shepherd
    and Laframboise, Math. Comp. 36, 1981); the rounding error of x**2 is put back.
    """
    x = clip(x, 0.0, 28.0)
    square, low = two_product(x, x)
    under = x + 4.0
    t = (x - 4.0) / under

    y = horner(t, c.ERFC_64) / fma(x, const(2.0, x), const(1.0, x))
    return y * exp_scaled(-square, low=-low)


@scalar
def erf(x):
    """Error function, within 2 ULP."""
    size = fabs(x)
    if x.dtype == f32:
        a = clip(size, 1.0, 4.0)
        near = fma(x, horner(x * x, c.ERF_32), x)
        far = 1.0 - exp_scaled(-a * horner(a, c.ERFC_LOG_32))
        return select(size <= 1.0, near, select(x == x, copysign(far, x), x))
    near = _erf_small(select(size < 0.75, x, const(0.0, x)))
    far = 1.0 - _erfc_large(select(size < 0.75, const(0.75, x), size))
    return keep_zero(x, select(size < 0.75, near, copysign(far, x)))


@in_double
def erfc(x):
    """Complementary error function, within 3 ULP also where it is tiny."""
    size = fabs(x)
    near = 1.0 - _erf_small(select(size < 0.5, x, const(0.0, x)))
    far = _erfc_large(select(size < 0.5, const(0.5, x), size))
    return select(size < 0.5, near, select(x < 0, 2.0 - far, far))


@in_double
def erf_inv(x):
    """Inverse error function, within 3 ULP; infinite at -1 and 1, NaN outside.

    Polynomials in ``w = -log(1 - x**2)`` near 0 and in its root in the tails (Giles, *GPU Computing
    Gems*, 2011), fitted anew for float64.
    """
    size = fabs(x)
    inside = size < 1.0
    a = select(inside, x, const(0.5, x))
    w = -log1p_of(-a * a)
    w = select(size < 0.5, w, -(log1p_of(-fabs(a)) + log1p_of(fabs(a))))
    near, middle = w < 5.0, w < 3.7 * 3.7
    # Each polynomial is about the middle of its interval, or its terms would cancel.
    v = select(near, w - 2.5, sqrt(w) - select(middle, 3.0, const(5.0, x)))
    y = None
    for c0, c1, c2 in zip(
        c.ERF_INV_NEAR[::-1], c.ERF_INV_MIDDLE[::-1], c.ERF_INV_FAR[::-1], strict=True
    ):
        term = select(near, c0, select(middle, c1, const(c2, x)))
        y = term if y is None else fma(y, v, term)
    edge = select(size == 1.0, copysign(const(INF, x), x), const(NAN, x))
    return keep_zero(x, select(inside, y * a, edge))


__all__ = ["erf", "erf_inv", "erfc"]
