"""Texts of what Numba brings along, read as the kernels' functions are."""

from __future__ import annotations

from typing import Any

from .types import compiled


@compiled
def quotient(a: Any, b: Any) -> Any:
    """Divide complex numbers by Smith's method (CACM 5, 1962), as Numba's operator does."""
    if abs(b.real) >= abs(b.imag):
        ratio = b.imag / b.real
        under = b.real + b.imag * ratio
        return complex((a.real + a.imag * ratio) / under, (a.imag - a.real * ratio) / under)
    if abs(b.imag) >= abs(b.real):
        ratio = b.real / b.imag
        under = b.real * ratio + b.imag
        return complex((a.real * ratio + a.imag) / under, (a.imag * ratio - a.real) / under)
    nan = b.real + b.imag  # one of them is
    return complex(nan, nan)
