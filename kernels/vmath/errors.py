"""The error function, its complement and its inverse."""

# pyright: reportOperatorIssue=false
# Operands are NumPy scalars or traced values, which no declaration tells apart.
from __future__ import annotations

from fnarray_kernels._ir import const, copysign, f32, fabs, fma, scalar, select, sqrt
from fnarray_kernels.vmath import coefficients as c
from fnarray_kernels.vmath.exponential import exp_scaled, log1p_of, log_of, split
from fnarray_kernels.vmath.parts import (
    INF,
    LN2,
    LOG2_E,
    NAN,
    clip,
    horner,
    keep_zero,
    nearest,
    power_of_two,
    quick_two_sum,
    two_parts,
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
        # 1 - exp(-t), of which nothing cancels where k is 0; at 3.93 it rounds to 1.
        a = clip(size, 0.0, 3.93)
        z = a * a  # even and odd terms apart: half as many wait for each other
        t = fma(a, fma(a, horner(z, c.ERFC_LOG_32[1::2]), horner(z, c.ERFC_LOG_32[::2])), a)
        k, n = nearest(t, LOG2_E)
        r = fma(k, const(LN2, x), -t)
        power = power_of_two(-n, f32)
        less = fma(r * r, horner(r, c.EXP_32), r)
        return copysign(fma(-power, less, 1.0 - power), x)
    near = _erf_small(select(size < 0.75, x, const(0.0, x)))
    far = 1.0 - _erfc_large(select(size < 0.75, const(0.75, x), size))
    return keep_zero(x, select(size < 0.75, near, copysign(far, x)))


def _erf_near(x):
    """Return P with ``erf(x) = x + x P`` for ``|x| <= 0.75`` of float32."""
    return horner(x * x, c.ERF_32)


def _erfc_32(x):
    """Return ``erfc(x)`` of a float32, by the formula of `_erfc_large`, quotients kept whole."""
    size = fabs(x)
    near = fma(-x, _erf_near(x), 1.0 - x)
    a = clip(size, 0.75, 10.1)
    square, low = two_product(a, a)
    t = (a - 2.0) / (a + 2.0)
    first, first_low = two_parts(c.ERFC_32[0], a)
    top, top_low = quick_two_sum(first, t * horner(t, c.ERFC_32[1:]))
    under, under_low = quick_two_sum(a + a, const(1.0, a))
    inverse = 1.0 / under
    y = top * inverse
    y_low = inverse * (fma(-y, under, top) + fma(-y, under_low, top_low + first_low))
    far = exp_scaled(-square, low=-low, times=(y, y_low))
    return select(size < 0.75, near, select(x < 0, 2.0 - far, far))


@scalar
def erfc(x):
    """Complementary error function, within 2 ULP (float32) or 3.5 ULP (float64); tiny ones too."""
    if x.dtype == f32:
        return _erfc_32(x)
    size = fabs(x)
    near = 1.0 - _erf_small(select(size < 0.5, x, const(0.0, x)))
    far = _erfc_large(select(size < 0.5, const(0.5, x), size))
    return select(size < 0.5, near, select(x < 0, 2.0 - far, far))


def _chosen(v, *choices):
    """Return the first polynomial at `v` whose condition holds, the last where none does.

    Choices are pairs of a condition and coefficients; as many of these each.
    """
    (*tests, _), rows = zip(*choices, strict=True)
    y = None
    for terms in zip(*(r[::-1] for r in rows), strict=True):
        term = const(terms[-1], v)
        for test, value in zip(tests[::-1], terms[-2::-1], strict=True):
            term = select(test, const(value, v), term)
        y = term if y is None else fma(y, v, term)
    return y


@scalar
def erf_inv(x):
    """Inverse error function, within 2.25 ULP (float32) or 3.5 ULP (float64).

    Infinite at -1 and 1, NaN outside. Polynomials in ``w = -log(1 - x**2)`` near 0 and in its root
    in the tails (Giles, *GPU Computing Gems*, 2011), fitted anew.
    """
    size = fabs(x)
    inside = size < 1.0
    a = select(inside, x, const(0.5, x))
    # Each polynomial is about the middle of its interval, or its terms would cancel.
    if x.dtype == f32:
        w = -log_of(*split(fma(-a, a, const(1.0, a))))
        near = w < 5.0
        v = select(near, w, sqrt(w) - 2.75)
        heads = [two_parts(row[0], x) for row in (c.ERF_INV_NEAR_32, c.ERF_INV_FAR_32)]
        first, first_low = (select(near, *pair) for pair in zip(*heads, strict=True))
        rest = _chosen(v, (near, c.ERF_INV_NEAR_32[1:]), (None, c.ERF_INV_FAR_32[1:]))
        slope, low = quick_two_sum(first, v * rest)
        y = fma(a, slope, a * (low + first_low))
    else:
        w = -log1p_of(-a * a)
        w = select(size < 0.5, w, -(log1p_of(-fabs(a)) + log1p_of(fabs(a))))
        near, middle = w < 5.0, w < 3.7 * 3.7
        v = select(near, w - 2.5, sqrt(w) - select(middle, 3.0, const(5.0, x)))
        y = _chosen(v, (near, c.ERF_INV_NEAR), (middle, c.ERF_INV_MIDDLE), (None, c.ERF_INV_FAR))
        y = y * a
    edge = select(size == 1.0, copysign(const(INF, x), x), const(NAN, x))
    return keep_zero(x, select(inside, y, edge))


__all__ = ["erf", "erf_inv", "erfc"]
