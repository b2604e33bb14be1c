"""Special functions that have no kernel: SciPy evaluates them, in compiled programs too.

A program that holds one calls it between its kernels, on whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.dtypes import to_complex
from ..core.forms import on_host
from ..core.primitive import Missing, Primitive
from ..core.trace import bind
from ._hypergeometric import hyp1f1_slope, hyp2f1_slope
from .elementwise import square
from .kit import calls
from .kit.calls import add, broadcast, const, convert, div, eq, exp, log, lt, mul, neg, select, sub
from .kit.checks import all_weak, broadcast_avals, check_kind, check_same_dtypes
from .kit.registry import register
from .kit.rules import ELEMENTWISE_BATCH, NOT_LINEAR, partials
from .special import erf, no_slope, scipy_special
from .transcendental import cos, sin, sqrt

__all__ = [
    "dawsn",
    "erfcx",
    "exp1",
    "expi",
    "expn",
    "fresnel",
    "hyp1f1",
    "hyp2f1",
    "jv",
    "owens_t",
    "sici",
    "spence",
    "sph_harm_y",
    "wofz",
]


def _hosted(
    name: str,
    evaluate: Callable[..., Any],
    *slopes: Callable[..., Any],
    kinds: str = "f",
    to_complex_result: bool = False,
    jvp: Missing | None = None,
) -> Primitive:
    """Declare an elementwise primitive that SciPy evaluates, with its partial derivatives."""

    def aval(*avals: ShapedArray) -> ShapedArray:
        check_same_dtypes(name, avals)
        dtype = avals[0].dtype
        check_kind(name, dtype, kinds)
        out = to_complex(dtype) if to_complex_result else dtype
        return ShapedArray(broadcast_avals(name, avals), out, all_weak(avals))

    def evaluator(*xs: np.ndarray) -> np.ndarray:
        # Half types have no loops in SciPy; float64 serves all, and is rounded once.
        wide = np.complex128 if xs[0].dtype.kind == "c" else np.float64
        value = np.asarray(evaluate(*(x.astype(wide) for x in xs)))
        return value.astype(to_complex(xs[0].dtype) if to_complex_result else xs[0].dtype)

    return register(
        Primitive(
            name,
            aval=aval,
            eval=evaluator,
            form=lambda ins, outs: on_host(name),
            jvp=jvp or partials(*slopes),
            transpose=NOT_LINEAR,
            batch=ELEMENTWISE_BATCH,
        )
    )


def _named(name: str) -> Callable[..., Any]:
    return lambda *xs: getattr(scipy_special(), name)(*xs)


def _order(name: str, operand: str = "its order") -> Callable[..., Any]:
    return no_slope(name, operand, "orders are whole numbers. Stop its gradient.")


def _phase(x: Any) -> Any:
    """``pi x**2 / 2``."""
    return mul(square(x), np.pi / 2)


def _by_series(x: Any, at: float, width: float, series: tuple[float, ...], far: Any) -> Any:
    """``far(x)``, whose limit at ``at`` and Taylor series around it are known."""
    distance = sub(x, at)
    near = lt(calls.abs(distance), width)
    value = const(x, series[-1])
    for term in series[-2::-1]:
        value = add(mul(value, distance), term)
    return select(near, value, far(select(near, at + 1, x)))


def _expn_slope(g: Any, out: Any, n: Any, x: Any) -> Any:
    # That of order 0 is elementary; SciPy has no order -1.
    first = mul(exp(neg(x)), div(add(x, 1), square(x)))
    lower = bind(_expn_p, sub(calls.max(n, 1), 1), x)
    zero = broadcast(eq(n, 0), out.shape)
    return neg(mul(g, select(zero, first, lower)))


def _hyp1f1_slope(g: Any, out: Any, a: Any, b: Any, x: Any) -> Any:
    return mul(g, mul(div(a, b), bind(_hyp1f1_p, add(a, 1), add(b, 1), x)))


def _hyp2f1_slope(g: Any, out: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    upper = bind(_hyp2f1_p, add(a, 1), add(b, 1), add(c, 1), x)
    return mul(g, mul(div(mul(a, b), c), upper))


def _by_parameter(name: str, k: int, letter: str, evaluate: Callable[..., Any]) -> Any:
    """Derivative by a parameter of a hypergeometric function: a primitive of its own."""
    why = "it is a derivative by a parameter, and has none. Use differences of it."
    slope = _hosted(f"{name}_by_{letter}", partial(evaluate, k), jvp=Missing(why))
    return lambda g, out, *xs: mul(g, bind(slope, *xs))


def _jv_slope(g: Any, out: Any, v: Any, x: Any) -> Any:
    around = sub(bind(_jv_p, add(v, -1), x), bind(_jv_p, add(v, 1), x))
    return mul(g, mul(around, 0.5))


def _owens_t_by_h(g: Any, out: Any, h: Any, a: Any) -> Any:
    bell = exp(mul(square(h), -0.5))
    return mul(g, mul(mul(bell, erf(mul(mul(a, h), 0.5**0.5))), -0.5 / (2 * np.pi) ** 0.5))


def _owens_t_by_a(g: Any, out: Any, h: Any, a: Any) -> Any:
    size = add(square(a), 1)
    bell = exp(mul(mul(square(h), size), -0.5))
    return mul(g, div(mul(bell, 0.5 / np.pi), size))


def _si_slope(g: Any, out: Any, x: Any) -> Any:
    taylor = (1, 0, -1 / 6, 0, 1 / 120, 0, -1 / 5040)
    return mul(g, _by_series(x, 0, 1e-2, taylor, lambda x: div(sin(x), x)))


def _spence_slope(g: Any, out: Any, x: Any) -> Any:
    taylor = (-1, 1 / 2, -1 / 3, 1 / 4, -1 / 5)
    far = lambda x: div(log(x), sub(1, x))  # noqa: E731
    return mul(g, _by_series(x, 1, 1e-3, taylor, far))


def _polar_slope(g: Any, out: Any, n: Any, m: Any, theta: Any, phi: Any) -> Any:
    # By ladder operators: no division by sin(theta), so that it holds at the poles.
    def neighbour(sign: int) -> Any:
        k = mul(m, sign)
        # Negative past the last order, where the functions are 0.
        size = sqrt(calls.max(mul(sub(n, k), add(n, add(k, 1))), 0))
        turn = calls.complex(cos(phi), mul(sin(phi), -sign))
        other = bind(_sph_harm_y_p, n, add(m, sign), theta, phi)
        return mul(mul(convert(size, out.dtype), turn), other)

    return mul(convert(g, out.dtype), mul(sub(neighbour(1), neighbour(-1)), 0.5))


def _azimuthal_slope(g: Any, out: Any, n: Any, m: Any, theta: Any, phi: Any) -> Any:
    return mul(mul(calls.complex(0, m), out), convert(g, out.dtype))


def _wofz_slope(g: Any, out: Any, z: Any) -> Any:
    return mul(g, sub(2j / np.pi**0.5, mul(mul(z, out), 2)))


_dawsn_p = _hosted(
    "dawsn",
    _named("dawsn"),
    lambda g, out, x: mul(g, sub(1, mul(mul(x, out), 2))),
)
_erfcx_p = _hosted(
    "erfcx",
    _named("erfcx"),
    lambda g, out, x: mul(g, sub(mul(mul(x, out), 2), 2 / np.pi**0.5)),
)
_exp1_p = _hosted(
    "exp1",
    _named("exp1"),
    # Below 0 there is no value, and no slope.
    lambda g, out, x: neg(mul(g, select(lt(x, 0), np.nan, div(exp(neg(x)), x)))),
)
_expi_p = _hosted("expi", _named("expi"), lambda g, out, x: mul(g, div(exp(x), x)))
_expn_p = _hosted(
    "expn", lambda n, x: scipy_special().expn(n.astype(int), x), _order("expn"), _expn_slope
)
_fresnel_p = tuple(
    _hosted(
        f"fresnel_{part}",
        lambda x, k=k: scipy_special().fresnel(x)[k],
        lambda g, out, x, f=f: mul(g, f(_phase(x))),
    )
    for k, (part, f) in enumerate((("sin", sin), ("cos", cos)))
)
_hyp1f1_p = _hosted(
    "hyp1f1",
    _named("hyp1f1"),
    *(_by_parameter("hyp1f1", k, p, hyp1f1_slope) for k, p in enumerate("ab")),
    _hyp1f1_slope,
)
_hyp2f1_p = _hosted(
    "hyp2f1",
    _named("hyp2f1"),
    *(_by_parameter("hyp2f1", k, p, hyp2f1_slope) for k, p in enumerate("abc")),
    _hyp2f1_slope,
)
_jv_p = _hosted("jv", _named("jv"), _order("jv"), _jv_slope)
_owens_t_p = _hosted("owens_t", _named("owens_t"), _owens_t_by_h, _owens_t_by_a)
_sici_p = tuple(
    _hosted(f"{part}i", lambda x, k=k: scipy_special().sici(x)[k], slope)
    for k, (part, slope) in enumerate(
        (("s", _si_slope), ("c", lambda g, out, x: mul(g, div(cos(x), x))))
    )
)
_spence_p = _hosted("spence", _named("spence"), _spence_slope)
_sph_harm_y_p = _hosted(
    "sph_harm_y",
    lambda n, m, *angles: scipy_special().sph_harm_y(n.astype(int), m.astype(int), *angles),
    _order("sph_harm_y", "its degree"),
    _order("sph_harm_y"),
    _polar_slope,
    _azimuthal_slope,
    to_complex_result=True,
)
_wofz_p = _hosted("wofz", _named("wofz"), _wofz_slope, kinds="c")


def dawsn(x: Any) -> Any:
    """Dawson's integral, ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``."""
    return bind(_dawsn_p, x)


def erfcx(x: Any) -> Any:
    """``exp(x**2) * erfc(x)``."""
    return bind(_erfcx_p, x)


def exp1(x: Any) -> Any:
    """Exponential integral E1."""
    return bind(_exp1_p, x)


def expi(x: Any) -> Any:
    """Exponential integral Ei."""
    return bind(_expi_p, x)


def expn(n: Any, x: Any) -> Any:
    """Exponential integral of order ``n``, whole numbers in the dtype of ``x``."""
    return bind(_expn_p, n, x)


def fresnel(x: Any) -> tuple[Any, Any]:
    """Fresnel's integrals of sine and cosine of ``pi t**2 / 2``."""
    sine, cosine = _fresnel_p
    return bind(sine, x), bind(cosine, x)


def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Confluent hypergeometric function 1F1."""
    return bind(_hyp1f1_p, a, b, x)


def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Gauss's hypergeometric function 2F1."""
    return bind(_hyp2f1_p, a, b, c, x)


def jv(v: Any, x: Any) -> Any:
    """Bessel function of the first kind, of order ``v``."""
    return bind(_jv_p, v, x)


def owens_t(h: Any, a: Any) -> Any:
    """Owen's T function."""
    return bind(_owens_t_p, h, a)


def sici(x: Any) -> tuple[Any, Any]:
    """Sine and cosine integrals."""
    sine, cosine = _sici_p
    return bind(sine, x), bind(cosine, x)


def spence(x: Any) -> Any:
    """Spence's function, the dilogarithm of ``1 - x``."""
    return bind(_spence_p, x)


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any) -> Any:
    """Spherical harmonic of degree ``n`` and order ``m`` at polar ``theta``, azimuthal ``phi``."""
    return bind(_sph_harm_y_p, n, m, theta, phi)


def wofz(z: Any) -> Any:
    """Faddeeva function, ``exp(-z**2) erfc(-i z)``, of complex numbers."""
    return bind(_wofz_p, z)
