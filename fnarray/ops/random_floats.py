"""What turns random bits into floats, in the roundings of XLA, so that samples agree with JAX.

Up to float32, `sample_log`, `sample_log1p` and `sample_erf_inv` are XLA's polynomials added up in
its order. In float64 they are the accurate functions: there XLA's ``log1p`` is a few hundred ULP
off, which is not worth having.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.dtypes import float32, float64
from .elementwise import in_single
from .kit.calls import add, div, exp, mul
from .kit.checks import FLOAT
from .kit.declare import elementwise
from .kit.rules import partials
from .special import erf_inv
from .transcendental import log, log1p

__all__: list[str] = []

# --- multiply_add -------------------------------------------------------------------------------


def _split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the halves of the bits of float64 numbers (Veltkamp)."""
    c = x * 134217729.0
    high = c - (c - x)
    return high, x - high


def _sum(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a sum and its rounding error (Knuth)."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


def _to_odd(s: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return a sum rounded to odd: a second rounding of it then rounds as if it were the first."""
    bits = np.atleast_1d(s).view(np.int64).reshape(s.shape)
    move = (error != 0) & (bits % 2 == 0) & np.isfinite(s)
    return np.where(move, np.nextafter(s, np.copysign(np.inf, error)), s)


def _multiply_add(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return ``x * y + z`` with one rounding.

    In float64 after Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums" (IEEE
    Transactions on Computers, 2008); short of overflow and of results below 1e-290.
    """
    if x.dtype == float32:
        s, error = _sum(np.multiply(x, y, dtype=float64), z.astype(float64))
        return np.where(np.isfinite(s), _to_odd(s, error), s).astype(float32)
    product = np.asarray(x * y)
    (a, b), (c, d) = _split(x), _split(y)
    low = ((a * c - product) + a * d + b * c) + b * d
    high, rest = _sum(z, low)
    top, middle = _sum(product, high)
    out = top + _to_odd(*_sum(rest, middle))
    return np.where(np.isfinite(out), out, product + z)


@elementwise(
    "fk.samples.multiply_add({0}, {1}, {2})",
    eval=in_single(_multiply_add),
    dtypes=FLOAT,
    jvp=partials(
        lambda g, out, x, y, z: mul(g, y),
        lambda g, out, x, y, z: mul(g, x),
        lambda g, out, x, y, z: g,
    ),
)
def multiply_add(x: Any, y: Any, z: Any) -> Array:
    """``x * y + z`` with one rounding, as XLA contracts it; halves round through float32."""
    ...


# --- logarithms, inverse error function ---------------------------------------------------------

# Moshier, Cephes: logf.c, and the rational function of log1p in unity.c.
_LOG = (
    (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1),
    (-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1),
    (2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
_LN2 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOG1P_OVER = (
    4.5270000862445199635215e-5, 4.9854102823193375972212e-1, 6.5787325942061044846969e0,
    2.9911919328553073277375e1, 6.0949667980987787057556e1, 5.7112963590585538103336e1,
    2.0039553499201281259648e1,
)  # fmt: skip
_LOG1P_UNDER = (
    1.0, 1.5062909083469192043167e1, 8.3047565967967209469434e1, 2.2176239823732856465394e2,
    3.0909872225312059774938e2, 2.1642788614495947685003e2, 6.0118660497603843919306e1,
)  # fmt: skip
# Giles, "Approximating the erfinv function", GPU Computing Gems Jade, 2011: table 5.
_CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip
_BLOCK = 16384
_HALF = np.float32(0.5)


def _fma(x: Any, y: Any, z: Any) -> Any:
    """Return ``x * y + z``: float32 products are exact in float64, whose rounding does no harm."""
    return (np.multiply(x, y, dtype=float64) + z).astype(float32)


def _horner(x: np.ndarray, coefficients: tuple[float, ...]) -> Any:
    y = np.float32(coefficients[0])
    for c in coefficients[1:]:
        y = _fma(y, x, np.float32(c))
    return y


def _log(x: np.ndarray) -> np.ndarray:
    m, exponent = np.frexp(x)
    exponent = exponent.astype(float32)
    small = m < np.float32(0.707106781186547524)
    exponent -= small
    m = np.where(small, m + m, m) - np.float32(1)
    square = m * m
    cube = square * m
    high, middle, low = (_horner(m, c) for c in _LOG)
    y = _fma(_fma(_fma(high, cube, middle), cube, low), cube, exponent * _LN2[1])
    y = _fma(square, -_HALF, m) + y + exponent * _LN2[0]
    return np.where((x > 0) & (x < np.inf), y, np.log(x))


def _log1p(x: np.ndarray) -> np.ndarray:
    square = x * x
    y = x * square * (_horner(x, _LOG1P_OVER) / _horner(x, _LOG1P_UNDER))
    large = ~(np.abs(x) < np.float32(0.41421356237309510))
    y = np.asarray(x + (y - _HALF * square))
    y[large] = _log(np.float32(1) + x[large])
    return y


def _erf_inv(x: np.ndarray) -> np.ndarray:
    w = -_log1p(x * -x)
    y = np.asarray(_horner(w - np.float32(2.5), _CENTRE))
    tail = ~(w < 5)
    if tail.any():
        y[tail] = _horner(np.sqrt(w[tail]) - np.float32(3), _TAIL)
    return x * np.where(np.abs(x) == 1, np.float32(np.inf), y)


def _single(
    name: str,
    evaluate: Callable[[np.ndarray], np.ndarray],
    derivative: Callable[[Any, Any, Any], Any],
) -> Callable[[Any], Array]:
    """Declare a function of float32 numbers, and of halves by way of float32."""

    @in_single
    def in_blocks(x: np.ndarray) -> np.ndarray:
        # Blocks stay in the cache: three times faster at a million.
        flat, out = x.reshape(-1), np.empty(x.size, float32)
        for start in range(0, x.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = evaluate(flat[block])
        return out.reshape(x.shape)

    def signature(x: Any) -> Any: ...

    declare = elementwise(
        f"fk.samples.{name}({{0}})",
        eval=in_blocks,
        dtypes=FLOAT,
        cost=20,
        jvp=partials(derivative),
        name=f"{name}_of_sample",
    )
    single, double = declare(signature), {"log": log, "log1p": log1p, "erf_inv": erf_inv}[name]

    def face(x: Any) -> Array:
        return double(x) if x.dtype == float64 else single(x)

    return face


def _erf_inv_tangent(g: Any, out: Any, x: Any) -> Any:
    return mul(g, mul(exp(mul(out, out)), float(np.sqrt(np.pi)) / 2))


sample_log = _single("log", _log, lambda g, out, x: div(g, x))
sample_log1p = _single("log1p", _log1p, lambda g, out, x: div(g, add(x, 1)))
sample_erf_inv = _single("erf_inv", _erf_inv, _erf_inv_tangent)
