"""Types of 8 bits and fewer, as ml_dtypes has them: it stores them, and computes with them.

No kernel holds them: in compiled programs, operations on them are steps on the host.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

__all__ = [
    "KINDS",
    "SMALL",
    "SMALL_FLOATS",
    "SMALL_SIGNED",
    "SMALL_UNSIGNED",
    "bits_of",
    "is_small",
    "to_wider",
]

SMALL_FLOATS: Final = tuple(
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
        "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
        "float8_e5m2fnuz", "float8_e8m0fnu",
    )
)  # fmt: skip
SMALL_SIGNED: Final = tuple(np.dtype(getattr(ml_dtypes, f"int{n}")) for n in (1, 2, 4))
SMALL_UNSIGNED: Final = tuple(np.dtype(getattr(ml_dtypes, f"uint{n}")) for n in (1, 2, 4))
SMALL: Final = (*SMALL_FLOATS, *SMALL_SIGNED, *SMALL_UNSIGNED)
#: NumPy's abstract types above those of ml_dtypes, which derive from `numpy.generic` only.
KINDS: Final[dict[type, type]] = {
    ml_dtypes.bfloat16: np.floating,
    **{d.type: np.floating for d in SMALL_FLOATS},
    **{d.type: np.signedinteger for d in SMALL_SIGNED},
    **{d.type: np.unsignedinteger for d in SMALL_UNSIGNED},
}
_SMALL: Final = frozenset(SMALL)


def is_small(dtype: Any) -> bool:
    """Whether a dtype is one of these."""
    return dtype in _SMALL


def to_wider(dtype: np.dtype) -> np.dtype:
    """Dtype of 32 bits in which small types are multiplied; others are returned as they are."""
    if dtype not in _SMALL:
        return dtype
    return np.dtype(np.float32 if dtype in SMALL_FLOATS else np.int32)


def bits_of(dtype: np.dtype) -> int:
    """Bits of one element."""
    if dtype in _SMALL:
        info: Any = ml_dtypes.finfo if dtype in SMALL_FLOATS else ml_dtypes.iinfo
        return info(dtype).bits
    return 8 * dtype.itemsize
