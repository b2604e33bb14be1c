"""Arrays of other libraries, shared through DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numpy import from_dlpack as from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]
__dir__ = __all__.copy


def is_supported_dtype(dtype: Any) -> bool:
    """Say whether arrays of a dtype can be handed over.

    Raises
    ------
    TypeError
        There is no such dtype.
    """
    # NumPy hands over what it calculates with itself, so not bfloat16 and other additions.
    return np.dtype(dtype).kind in "biufc"
