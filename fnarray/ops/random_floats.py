"""What turns random bits into floats, in the roundings of XLA, so that samples agree with JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.array import Array
from ..core.dtypes import float32, float64
from ._rules import FLOAT, elementwise
from .elementwise import in_single
from .special import erf_inv

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


@elementwise("fk.samples.multiply_add({0}, {1}, {2})", eval=in_single(_multiply_add), dtypes=FLOAT)
def multiply_add(x: Any, y: Any, z: Any) -> Array:
    """``x * y + z`` with one rounding, as XLA contracts it; halves round through float32."""


# --- erf_inv ------------------------------------------------------------------------------------

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


def _horner(v: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    y = np.float32(coefficients[0])
    for c in coefficients[1:]:
        # A product of float32 numbers is exact in float64.
        y = (np.multiply(y, v, dtype=float64) + np.float32(c)).astype(float32)
    return y


def _erf_inv_single(x: np.ndarray) -> np.ndarray:
    """Evaluate in blocks that stay in the cache: three times faster at a million."""
    out = np.empty(x.size, float32)
    flat = x.reshape(-1)
    for start in range(0, x.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        out[block] = _erf_inv_block(flat[block])
    return out.reshape(x.shape)


def _erf_inv_block(x: np.ndarray) -> np.ndarray:
    w = np.asarray(-np.log1p((x * -x).astype(float64))).astype(float32)
    y = np.asarray(_horner(w - np.float32(2.5), _CENTRE))
    tail = w >= 5
    if tail.any():
        root = np.sqrt(w[tail]) - np.float32(3)
        y[tail] = np.where(np.isinf(root), np.inf, _horner(root, _TAIL))
    return x * y


@elementwise("fk.samples.erf_inv({0})", eval=in_single(_erf_inv_single), dtypes=FLOAT, cost=20)
def erf_inv_single(x: Any) -> Array:
    """Inverse error function as XLA approximates it up to float32, errors in the tails included."""


def erf_inv_as_xla(x: Any) -> Array:
    """Inverse error function: XLA's approximation up to float32, the accurate one in float64."""
    return erf_inv(x) if x.dtype == float64 else erf_inv_single(x)
