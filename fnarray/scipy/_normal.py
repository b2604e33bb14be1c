"""The standard normal distribution: its bell, distribution function and quantiles."""

from __future__ import annotations

from functools import partial
from math import log, pi, sqrt
from operator import index
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..control.custom import custom_jvp
from ..core.array import Array
from ..core.dtypes import finfo
from ..nn._args import strong_operands
from ._hosted import erfcx

__all__: list[str] = []


def ndtr(x: Any) -> Array:
    """Distribution function of the standard normal distribution."""
    return _ndtr(*strong_operands("ndtr", x))


#: Beyond, the normal distribution's tails are 0 in double precision.
_END = 39.0


def _halves(x: Any) -> tuple[Any, Any]:
    """Two floats that add up to one: products of two that are first have no rounding error."""
    first = lax.reduce_precision(x, finfo(x.dtype).iexp, _half(x.dtype))
    return first, x - first


def _half(dtype: np.dtype) -> int:
    """Digits after the first of a float whose square is exact."""
    return (finfo(dtype).nmant - 1) // 2


@custom_jvp
def bell(x: Any) -> Array:
    """``exp(-x**2 / 2)``, with what the square loses by rounding put back."""
    x = jnp.clip(x, -_END, _END)
    square = x * x
    first, rest = _halves(x)
    low = (first * first - square) + rest * (x + first)
    return jnp.exp(-0.5 * square) * (1 - 0.5 * low)


bell.defjvps(lambda t, out, x: t * (-x * out))


@custom_jvp
def _ndtr(x: Any) -> Array:
    # A rounding error of x / sqrt(2) would cost x**2 units: what it is times the slope of the
    # logarithm, within a hundredth between the bounds of Mills's ratio (DLMF 7.8.2), is put back.
    x = jnp.clip(x, -_END, _END)
    y = x * -sqrt(0.5)
    first, rest = _halves(x)
    root, end = _root_of_half(x.dtype)
    low = (first * -root - y) - (rest * root + x * end)
    slope = jnp.where(y > 0, y + jnp.sqrt(y * y + 1.5), 0.0)
    return 0.5 * lax.erfc(y) * (1 - low * slope)


def _root_of_half(dtype: np.dtype) -> tuple[float, float]:
    """The root of 1/2 as a float of half the digits of a type, and what it lacks."""
    scale = 2.0 ** _half(dtype)
    first = round(sqrt(0.5) * scale) / scale
    # The float64 next to the root is 4.8e-17 above it.
    return first, (sqrt(0.5) - first) - 4.833646656726457e-17


_ndtr.defjvps(lambda t, out, x: t * ((2 * pi) ** -0.5 * bell(x)))


def log_ndtr(x: Any, series_order: int = 3) -> Array:
    """Logarithm of `ndtr`, accurate in both tails.

    Parameters
    ----------
    x : array
    series_order : int
        Terms of the asymptotic series (DLMF 7.12.1) that serves the lower tail.
    """
    (x,) = strong_operands("log_ndtr", x)
    order = index(series_order)
    if order < 0:
        raise ValueError(f"log_ndtr: series_order must not be negative, got {order}.")
    return _log_ndtr(x, order)


@partial(custom_jvp, nondiff_argnums=(1,))
def _log_ndtr(x: Any, order: int) -> Array:
    # Where erfc still has all its digits: the series has them from 10 on, or nearly so from 37.
    low = -37.0 if finfo(x.dtype).bits == 64 else -10.0
    tail = jnp.minimum(x, low)
    square = jnp.square(tail)
    series, term = 1.0, 1.0
    for k in range(1, order + 1):
        term = term * (1 - 2 * k) / square
        series = series + term
    below = -0.5 * square - jnp.log(-tail) - 0.5 * log(2 * pi) + jnp.log(series)
    part = ndtr(jnp.where(x < low, -1.0, -jnp.abs(x)))
    rest = jnp.where(x > 0, jnp.log1p(-part), jnp.log(part))
    return jnp.where(x < low, below, rest)


@_log_ndtr.defjvp
def _log_ndtr_jvp(order: int, primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    """Density over distribution, by their logarithms."""
    (x,), (t,) = primals, tangents
    out = _log_ndtr(x, order)
    return out, t * jnp.exp(-0.5 * jnp.square(x) - 0.5 * log(2 * pi) - out)


# Rational functions of Wichura's algorithm AS 241 (Applied Statistics 37, 1988), lowest power
# first: the centre, the near tail, the far tail. Relative error below 1e-15.
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)  # fmt: skip
_NEAR = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
_FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    """Quotient of two polynomials, by Horner's rule."""

    def polynomial(terms: tuple[float, ...]) -> Any:
        total: Any = 0.0
        for c in reversed(terms):
            total = total * x + c
        return total

    return polynomial(coefficients[0]) / polynomial(coefficients[1])


def ndtri(p: Any) -> Array:
    """Inverse of `ndtr`; infinite at 0 and 1, NaN outside (Wichura's AS 241)."""
    return _ndtri(*strong_operands("ndtri", p))


@custom_jvp
def _ndtri(p: Any) -> Array:
    q = p - 0.5
    centre = q * _ratio(_CENTRE, 0.180625 - jnp.square(jnp.clip(q, -0.425, 0.425)))
    edge = jnp.minimum(p, 1 - p)
    inside = (edge > 0) & (edge < 1)
    r = jnp.sqrt(-jnp.log(jnp.where(inside, edge, 0.5)))
    tail = jnp.where(r <= 5, _ratio(_NEAR, r - 1.6), _ratio(_FAR, r - 5.0))
    tail = jnp.where(inside, tail, jnp.where(edge == 0, np.inf, np.nan))
    return jnp.where(jnp.abs(q) <= 0.425, centre, jnp.where(q < 0, -tail, tail))


@custom_jvp
def _ndtri_slope(p: Any, y: Any) -> Array:
    """One over the density at a quantile: Mills's ratio, well conditioned, over the tail."""
    edge = jnp.minimum(p, 1 - p)
    slope = sqrt(pi / 2) * erfcx(jnp.abs(y) * sqrt(0.5)) / edge
    return jnp.where(edge == 0, np.inf, slope)


_ndtri.defjvps(lambda t, out, p: t * _ndtri_slope(p, out))
# Of p alone, as `y` is its quantile.
_ndtri_slope.defjvps(lambda t, out, p, y: t * (y * jnp.square(out)), None)
