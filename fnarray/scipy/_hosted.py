"""Special functions that SciPy evaluates (see `fnarray.ops.hosted`)."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..core.array import Array
from ..core.dtypes import to_complex
from ..nn._args import inexact_operands, strong_operands
from ..ops import hosted


def dawsn(x: Any) -> Array:
    """Dawson's integral, ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``."""
    return hosted.dawsn(*inexact_operands("dawsn", x))


def erfcx(x: Any) -> Array:
    """``exp(x**2) * erfc(x)``, which neither under- nor overflows for positive ``x``."""
    return hosted.erfcx(*inexact_operands("erfcx", x))


def exp1(x: Any) -> Array:
    """Exponential integral E1, of ``exp(-t) / t`` from ``x`` to infinity."""
    return hosted.exp1(*strong_operands("exp1", x))


def expi(x: Any) -> Array:
    """Exponential integral Ei, of ``exp(t) / t`` from -infinity to ``x``."""
    return hosted.expi(*strong_operands("expi", x))


def expn(n: Any, x: Any) -> Array:
    """Generalised exponential integral of order ``n``, of ``exp(-x t) / t**n`` from 1 on."""
    return hosted.expn(*strong_operands("expn", n, x))


def fresnel(x: Any) -> tuple[Array, Array]:
    """Fresnel's integrals from 0 to ``x``: of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)``."""
    return hosted.fresnel(*strong_operands("fresnel", x))


def hyp1f1(a: Any, b: Any, x: Any) -> Array:
    """Confluent hypergeometric function 1F1(a; b; x)."""
    return hosted.hyp1f1(*strong_operands("hyp1f1", a, b, x))


def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Array:
    """Gauss's hypergeometric function 2F1(a, b; c; x)."""
    return hosted.hyp2f1(*strong_operands("hyp2f1", a, b, c, x))


def owens_t(h: Any, a: Any) -> Array:
    """Owen's T function: probability that ``X > h`` and ``0 < Y < a X`` for normal X and Y."""
    return hosted.owens_t(*strong_operands("owens_t", h, a))


def sici(x: Any) -> tuple[Array, Array]:
    """Sine and cosine integrals."""
    return hosted.sici(*strong_operands("sici", x))


def spence(x: Any) -> Array:
    """Spence's function, minus the integral of ``log(t) / (t - 1)`` from 1 to ``x``."""
    return hosted.spence(*strong_operands("spence", x))


def wofz(z: Any) -> Array:
    """Faddeeva function ``exp(-z**2) erfc(-i z)``, complex."""
    (z,) = inexact_operands("wofz", z)
    return hosted.wofz(lax.convert_element_type(z, to_complex(z.dtype)))


def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Array:
    """Bessel functions of the first kind, of orders 0 to ``v`` along a new first axis.

    Parameters
    ----------
    z : array
    v : int
        Largest order, not negative.
    n_iter : int
        Accepted for compatibility; there is no iteration.
    """
    (z,) = inexact_operands("bessel_jn", z)
    if index(v) < 0:
        raise ValueError(f"bessel_jn: v must not be negative, got {v}.")
    shape = (index(v) + 1, *z.shape)
    orders = lax.broadcasted_iota(z.dtype, shape, 0)
    return hosted.jv(orders, jnp.broadcast_to(z, shape))


def sph_harm_y(
    n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None, n_max: int | None = None
) -> Array:
    """Spherical harmonic of degree ``n`` and order ``m``.

    Parameters
    ----------
    n, m : integer arrays
        ``|m| <= n``.
    theta, phi : arrays
        Polar angle in [0, pi] and azimuthal angle.
    diff_n : None
        SciPy's request for derivatives is refused: differentiate instead.
    n_max : int, optional
        Accepted for compatibility; the degree needs no bound.
    """
    if diff_n:
        raise ValueError(
            f"sph_harm_y: diff_n must be None, got {diff_n}. Differentiate with fnarray.jvp."
        )
    for name, x in (("n", n), ("m", m)):
        if np.dtype(getattr(x, "dtype", type(x))).kind not in "iu":
            raise TypeError(f"sph_harm_y: {name} must hold integers, got {x!r}.")
    return hosted.sph_harm_y(*inexact_operands("sph_harm_y", n, m, theta, phi))
