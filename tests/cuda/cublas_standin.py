"""cuBLAS's product of stacks as its manual has it, by NumPy on the stub's memory.

Matrices are columns of numbers that lie together, each ``leading`` elements from the one before.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

_TYPES: dict[int, Any] = {
    0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128,
    14: ml_dtypes.bfloat16,
}  # fmt: skip
#: How float32 is multiplied: rounded to so many bits after the point, or as it is.
_BITS = {68: 23, 77: 10, 75: 7, 70: 52}
_INVALID, _UNSUPPORTED = 7, 15


class Cublas:
    """The functions that products call.

    Attributes
    ----------
    streams : dict
        Of handles.
    calls : list
        Matrices, sizes, and how products were formed, of each call.
    """

    def __init__(self) -> None:
        self.streams: dict[int, int] = {}
        self.calls: list[tuple[int, tuple[int, int, int], int]] = []

    def cublasCreate_v2(self, handle: Any) -> int:
        """Make a handle."""
        handle._obj.value = len(self.streams) + 1
        self.streams[handle._obj.value] = 0
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: int) -> int:
        """Note the stream of a handle."""
        self.streams[handle.value] = stream
        return 0

    def cublasGemmStridedBatchedEx(
        self, handle, first_t, second_t, m, n, k, alpha, a, a_type, a_ld, a_step, b, b_type, b_ld,
        b_step, beta, c, c_type, c_ld, c_step, count, compute, algorithm,
    ) -> int:  # fmt: skip
        """Multiply, in the order of the library's own arguments."""
        wide = np.float64 if compute == 70 else np.float32
        scale = np.result_type(_TYPES[a_type], wide) if a_type != 14 else np.dtype(np.float32)
        factors = [_array(p, scale, 1)[0] for p in (alpha, beta)]
        if factors != [1, 0] or handle.value not in self.streams or algorithm != -1:
            return _INVALID
        rows, others = (k if first_t else m), (n if second_t else k)
        if a_ld < max(rows, 1) or b_ld < max(others, 1) or c_ld < max(m, 1):
            return _INVALID
        if a_type != b_type or (c_type != a_type and (a_type not in (2, 14) or c_type != 0)):
            return _UNSUPPORTED
        if (compute == 70) != (a_type in (1, 5)):
            return _UNSUPPORTED
        self.calls.append((count, (m, n, k), compute))
        left = _stack(a, a_type, a_ld, a_step, count, (k, m) if first_t else (m, k))
        right = _stack(b, b_type, b_ld, b_step, count, (n, k) if second_t else (k, n))
        out = _stack(c, c_type, c_ld, c_step, count, (m, n))
        left, right = (
            _rounded(np.swapaxes(x, 1, 2) if turned else x, scale, _BITS[compute])
            for x, turned in ((left, first_t), (right, second_t))
        )
        out[...] = np.matmul(left, right).astype(out.dtype)
        return 0


def _array(pointer: int, dtype: Any, size: int) -> np.ndarray:
    room = (ctypes.c_char * (size * np.dtype(dtype).itemsize)).from_address(pointer)
    return np.frombuffer(room, dtype, size)


def _stack(pointer, kind, leading, step, count, shape) -> np.ndarray:
    """Return matrices of a stack, as a view of all memory that they reach."""
    dtype = np.dtype(_TYPES[kind])
    size = (count - 1) * step + (shape[1] - 1) * leading + shape[0]
    flat = _array(pointer, dtype, size)
    strides = tuple(s * dtype.itemsize for s in (step, 1, leading))
    return np.lib.stride_tricks.as_strided(flat, (count, *shape), strides)


def _rounded(x: np.ndarray, scale: Any, bits: int) -> np.ndarray:
    """Return numbers as the multiplier takes them."""
    x = x.astype(scale)
    if scale == np.float32 and bits < 23:
        drop = 23 - bits
        word = np.ascontiguousarray(x).view(np.uint32)
        half = np.uint32((1 << (drop - 1)) - 1) + ((word >> np.uint32(drop)) & np.uint32(1))
        x = ((word + half) >> np.uint32(drop) << np.uint32(drop)).view(np.float32)
    return x
