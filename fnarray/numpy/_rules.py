"""Functions with derivatives of their own: where the formula's would not be defined."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from .. import lax
from ..control.custom import custom_jvp
from ..core.array import Array

__all__: list[str] = []


@custom_jvp
def i0_of(x: Array) -> Array:
    """Modified Bessel function of order 0; its derivative, that of order 1, is odd."""
    size = lax.abs(x)
    return lax.mul(lax.exp(size), lax.bessel_i0e(size))


i0_of.defjvps(lambda t, out, x: lax.mul(t, lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x))))


@partial(custom_jvp, nondiff_argnums=(0,))
def sinc_at_zero(order: int, x: Array) -> Array:
    """Derivative of an order at 0, where no formula of `sinc` gives it."""
    value = 0.0 if order % 2 else (-1) ** (order // 2) * math.pi**order / (order + 1)
    return lax.full_like(x, value)


@sinc_at_zero.defjvp
def _next_order(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return sinc_at_zero(order, x), lax.mul(t, sinc_at_zero(order + 1, x))
