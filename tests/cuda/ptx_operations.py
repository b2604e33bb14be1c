"""What PTX's instructions compute, by NumPy: an operation's qualifiers, and its operands."""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numba
import numpy as np

_single, _double = ctypes.CDLL(None).fmaf, ctypes.CDLL(None).fma
_single.argtypes, _single.restype = [ctypes.c_float] * 3, ctypes.c_float
_double.argtypes, _double.restype = [ctypes.c_double] * 3, ctypes.c_double
_fmaf = numba.vectorize(["f4(f4,f4,f4)"])(lambda a, b, c: _single(a, b, c))
_fma = numba.vectorize(["f8(f8,f8,f8)"])(lambda a, b, c: _double(a, b, c))

_KINDS = {"s": "i", "u": "u", "b": "u", "f": "f"}


def dtype_of(kind: str) -> np.dtype:
    """Return the type that an instruction's qualifier names."""
    if kind == "pred":
        return np.dtype(bool)
    if kind == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(f"{_KINDS[kind[0]]}{int(kind[1:]) // 8}")


def _high(how: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bits = 8 * a.itemsize
    wide = [(int(x) * int(y)) >> bits for x, y in zip(a, b, strict=True)]
    return np.array([x % (1 << bits) for x in wide], f"u{a.itemsize}").view(a.dtype)


def _product(how: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _high(how, a, b) if "hi" in how else a * b


def _quotient(how: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return a / b
    b = np.where(b == 0, 1, b).astype(a.dtype)
    found = a // b
    return found + ((a % b != 0) & ((a < 0) != (b < 0)) if a.dtype.kind == "i" else 0)


def _remainder(how: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - _quotient(how, a, b).astype(a.dtype) * b


def _shifted(how: Any, a: np.ndarray, by: np.ndarray, left: bool) -> np.ndarray:
    bits = 8 * a.itemsize
    few = np.minimum(by, bits - 1).astype(f"u{a.itemsize}").view(a.dtype)
    if left:
        return np.where(by < bits, a << few, 0).astype(a.dtype)
    full = a >> few
    return full if a.dtype.kind == "i" else np.where(by < bits, full, 0).astype(a.dtype)


def _least(how: Any, a: np.ndarray, b: np.ndarray, most: bool = False) -> np.ndarray:
    if a.dtype.kind != "f":
        return np.maximum(a, b) if most else np.minimum(a, b)
    # -0.0 is less than 0.0.
    below = (a < b) | ((a == b) & np.signbit(a))
    found = np.where(below != most, a, b)
    if "NaN" in how:
        return np.where(np.isnan(a) | np.isnan(b), np.nan, found).astype(a.dtype)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, found)).astype(a.dtype)


def _permuted(how: Any, a: np.ndarray, b: np.ndarray, how_much: np.ndarray) -> np.ndarray:
    both = np.stack([a, b], 1).view(np.uint8).reshape(-1, 8)
    out = np.zeros((len(a), 4), np.uint8)
    for k in range(4):
        pick = (how_much >> np.uint32(4 * k)) & np.uint32(15)
        byte = both[np.arange(len(a)), pick & 7]
        out[:, k] = np.where(pick & 8, np.where(byte & 128, 255, 0), byte)
    return out.view(np.uint32).reshape(-1)


def _zeros(how: Any, a: np.ndarray) -> np.ndarray:
    bits = 8 * a.itemsize
    return np.array([bits - int(x).bit_length() for x in a], np.uint32)


def _field(how: Any, a: np.ndarray, start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return ``size`` bits from ``start`` on; of signed numbers, with the last for a sign."""
    bits = 8 * a.itemsize
    whole, few = a.view(f"u{a.itemsize}").astype(np.uint64), size.astype(np.uint64)
    mask = (np.uint64(1) << few) - np.uint64(1)
    found = ((whole >> start.astype(np.uint64)) & mask).astype(f"u{a.itemsize}")
    if a.dtype.kind == "u":
        return found
    rest = (bits - size).astype(f"u{a.itemsize}")
    return (found << rest).view(a.dtype) >> rest.view(a.dtype)


def _funnel(how: Any, a: np.ndarray, b: np.ndarray, by: np.ndarray) -> np.ndarray:
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    by = (by & np.uint32(31)).astype(np.uint64)
    found = (both << by) >> np.uint64(32) if "l" in how else both >> by
    return found.astype(np.uint32)


def _negated(how: Any, a: np.ndarray) -> np.ndarray:
    return -a


def _off(found: np.ndarray, by: float) -> np.ndarray:
    """Return numbers that are off by as much as they may be, up or down by their last bit."""
    up = np.where(found.view(np.uint32) & 1, 1 + by, 1 - by)
    return (found * up).astype(np.float32)


def _power(how: Any, a: np.ndarray) -> np.ndarray:
    found = np.exp2(a.astype(np.float64)).astype(np.float32)
    return _off(np.where(abs(found) < np.finfo(np.float32).tiny, 0, found), 2.0**-22)


def _reciprocal(how: Any, a: np.ndarray) -> np.ndarray:
    found = (1 / a).astype(a.dtype)
    return _off(found, 2.0**-23) if "approx" in how else found


def _divided(how: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    found = _quotient(how, a, b)
    if "full" not in how:
        return found
    away = np.where(found.view(np.uint32) & 1, np.inf, -np.inf).astype(np.float32)
    return np.where(np.isfinite(found) & (found != 0), np.nextafter(found, away), found)


OPERATIONS: dict[str, Callable[..., np.ndarray]] = {
    "mov": lambda how, a: a,
    "add": lambda how, a, b: a + b,
    "sub": lambda how, a, b: a - b,
    "mul": _product,
    "mad": lambda how, a, b, c: a * b + c,
    "fma": lambda how, a, b, c: (_fma if a.itemsize == 8 else _fmaf)(a, b, c),
    "div": _divided,
    "ex2": _power,
    "rem": _remainder,
    "rcp": _reciprocal,
    "sqrt": lambda how, a: np.sqrt(a),
    "abs": lambda how, a: np.abs(a),
    "neg": _negated,
    "not": lambda how, a: ~a,
    "and": lambda how, a, b: a & b,
    "or": lambda how, a, b: a | b,
    "xor": lambda how, a, b: a ^ b,
    "shl": lambda how, a, b: _shifted(how, a, b, True),
    "shr": lambda how, a, b: _shifted(how, a, b, False),
    "min": _least,
    "max": functools.partial(_least, most=True),
    "copysign": lambda how, a, b: np.copysign(b, a),
    "prmt": _permuted,
    "bfe": _field,
    "clz": _zeros,
    "popc": lambda how, a: np.bitwise_count(a).astype(np.uint32),
    "shf": _funnel,
}
COMPARISONS: dict[str, tuple[Any, bool]] = {
    **{name: (getattr(operator, name), False) for name in ("eq", "lt", "le", "gt", "ge", "ne")},
    **{f"{n}u": (getattr(operator, n), True) for n in ("eq", "lt", "le", "gt", "ge", "ne")},
    "nan": (lambda a, b: np.isnan(a) | np.isnan(b), True),
    "num": (lambda a, b: ~(np.isnan(a) | np.isnan(b)), False),
}
