"""Special functions that have no kernel: SciPy evaluates them, in compiled programs too.

A program that holds one calls it between its kernels, on whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.avals import ShapedArray
from ..core.dtypes import to_complex
from ..core.forms import Call
from ..core.primitive import Primitive
from ..core.trace import bind
from ._rules import all_weak, broadcast_avals, check_kind, check_same_dtypes, register
from .special import scipy_special

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
    name: str, evaluate: Callable[..., Any], kinds: str = "f", to_complex_result: bool = False
) -> Primitive:
    """Declare an elementwise primitive that SciPy evaluates."""

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
            form=lambda ins, outs: Call(None, host=lambda *xs: (evaluator(*xs),)),
        )
    )


def _named(name: str) -> Callable[..., Any]:
    return lambda *xs: getattr(scipy_special(), name)(*xs)


_dawsn_p = _hosted("dawsn", _named("dawsn"))
_erfcx_p = _hosted("erfcx", _named("erfcx"))
_exp1_p = _hosted("exp1", _named("exp1"))
_expi_p = _hosted("expi", _named("expi"))
_expn_p = _hosted("expn", lambda n, x: scipy_special().expn(n.astype(int), x))
_fresnel_p = tuple(
    _hosted(f"fresnel_{part}", lambda x, k=k: scipy_special().fresnel(x)[k])
    for k, part in enumerate(("sin", "cos"))
)
_hyp1f1_p = _hosted("hyp1f1", _named("hyp1f1"))
_hyp2f1_p = _hosted("hyp2f1", _named("hyp2f1"))
_jv_p = _hosted("jv", _named("jv"))
_owens_t_p = _hosted("owens_t", _named("owens_t"))
_sici_p = tuple(
    _hosted(f"{part}i", lambda x, k=k: scipy_special().sici(x)[k])
    for k, part in enumerate(("s", "c"))
)
_spence_p = _hosted("spence", _named("spence"))
_sph_harm_y_p = _hosted(
    "sph_harm_y",
    lambda n, m, *angles: scipy_special().sph_harm_y(n.astype(int), m.astype(int), *angles),
    to_complex_result=True,
)
_wofz_p = _hosted("wofz", _named("wofz"), kinds="c")


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
