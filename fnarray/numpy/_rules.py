"""Functions with derivatives of their own: where the formula's would not be defined."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from .. import lax
from ..control.custom import custom_jvp
from ..core.array import Array
from ..core.dtypes import finfo

__all__: list[str] = []


@custom_jvp
def i0_of(x: Array) -> Array:
    """Modified Bessel function of order 0; its derivative, that of order 1, is odd."""
    size = lax.abs(x)
    return lax.mul(lax.exp(size), lax.bessel_i0e(size))


i0_of.defjvps(lambda t, out, x: lax.mul(t, i1_of(x)))


@custom_jvp
def i1_of(x: Array) -> Array:
    """Modified Bessel function of order 1."""
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x))


i1_of.defjvps(lambda t, out, x: lax.mul(t, lax.sub(i0_of(x), _ratio(1, x))))

#: The size below which ratios are their series, of as many terms as float64 needs there: quotients
#: of differences lose what is small. Of the first, which is none, a term is enough close to 0.
_NEAR, _LENGTH = 4.0, 17


@partial(custom_jvp, nondiff_argnums=(0,))
def _ratio(order: int, x: Array) -> Array:
    """Modified Bessel function of an order over that power of ``x`` (DLMF 10.25.2, 10.29.1)."""
    limit, terms = (_NEAR, _LENGTH) if order > 1 else (float(finfo(x.dtype).eps), 1)
    near = lax.lt(lax.abs(x), lax.full_like(x, limit))
    y = lax.square(lax.mul(lax.select(near, x, lax.full_like(x, 0.0)), lax.full_like(x, 0.5)))
    series = lax.full_like(x, 0.0)
    for k in reversed(range(terms)):
        term = 0.5**order / (math.factorial(k) * math.factorial(k + order))
        series = lax.add(lax.mul(series, y), lax.full_like(x, term))
    far = lax.select(near, lax.full_like(x, limit), x)
    before, ratio = i0_of(far), lax.div(i1_of(far), far)
    for n in range(1, order):
        double = lax.mul(ratio, lax.full_like(x, 2.0 * n))
        before, ratio = ratio, lax.div(lax.sub(before, double), lax.square(far))
    return lax.select(near, series, ratio)


@_ratio.defjvp
def _ratio_slope(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return _ratio(order, x), lax.mul(t, lax.mul(x, _ratio(order + 1, x)))


@partial(custom_jvp, nondiff_argnums=(0,))
def sinc_of(order: int, x: Array) -> Array:
    """``sin(pi x) / (pi x)``, or its derivative of an order: the series, where terms cancel."""
    # What is subnormal has no quotient of complex numbers.
    limit = lax.full_like(lax.abs(x), 1.0 if order else float(finfo(x.dtype).tiny))
    near = lax.lt(lax.abs(x), limit)
    far = lax.select(near, lax.full_like(x, 1.0), x)
    angle = lax.mul(far, lax.full_like(x, math.pi))
    sine = lax.sin(angle)
    value = lax.div(sine, angle)
    if not order:
        return lax.select(near, lax.full_like(x, 1.0), value)
    turns = (lax.cos(angle), lax.neg(sine), lax.neg(lax.cos(angle)), sine)
    for n in range(1, order + 1):  # the slopes of x sinc(x) are those of the sine
        turn = lax.mul(turns[(n - 1) % 4], lax.full_like(x, math.pi ** (n - 1)))
        value = lax.div(lax.sub(turn, lax.mul(value, lax.full_like(x, n))), far)
    y = lax.square(lax.select(near, x, lax.full_like(x, 0.0)))
    series = lax.full_like(x, 0.0)
    for k in reversed(range((order + 1) // 2, order + _LENGTH)):
        term = (-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1)
        series = lax.mul(series, y)
        series = lax.add(series, lax.full_like(x, term * math.perm(2 * k, order)))
    return lax.select(near, lax.mul(series, x) if order % 2 else series, value)


@sinc_of.defjvp
def _sinc_slope(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return sinc_of(order, x), lax.mul(t, sinc_of(order + 1, x))
