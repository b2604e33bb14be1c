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
def sinc_at_zero(order: int, x: Array) -> Array:
    """Derivative of an order at 0, where no formula of `sinc` gives it."""
    value = 0.0 if order % 2 else (-1) ** (order // 2) * math.pi**order / (order + 1)
    return lax.full_like(x, value)


@sinc_at_zero.defjvp
def _next_order(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return sinc_at_zero(order, x), lax.mul(t, sinc_at_zero(order + 1, x))
