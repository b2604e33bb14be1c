"""What half-precision numbers need beside arithmetic in float32: their own bits."""

from __future__ import annotations

import numpy as np

from fnarray_kernels.registry import compiled
from fnarray_kernels.scalar import bf16_load, bf16_store, f16_load, f16_store


@compiled
def _step(bits, up):
    """Bits of the neighbour of a half-precision number, a finite one that is not zero."""
    grows = up == (bits < np.uint16(0x8000))
    return np.uint16(bits + 1) if grows else np.uint16(bits - 1)


@compiled
def nextafter_f16(x, y):
    """Next float16 after ``x`` towards ``y``; both are float16 values held in float32."""
    if x != x or y != y or x == y:
        return x + y if x != y else y
    if x == 0:
        return f16_load(np.uint16(1 if y > 0 else 0x8001))
    return f16_load(_step(f16_store(x), y > x))


@compiled
def nextafter_bf16(x, y):
    """Next bfloat16 after ``x`` towards ``y``; both are bfloat16 values held in float32."""
    if x != x or y != y or x == y:
        return x + y if x != y else y
    if x == 0:
        return bf16_load(np.uint16(1 if y > 0 else 0x8001))
    return bf16_load(_step(bf16_store(x), y > x))


@compiled
def recast(x, out):
    """Copy the bytes of one array into another of the same size in bytes."""
    out.view(np.uint8)[:] = x.view(np.uint8)
