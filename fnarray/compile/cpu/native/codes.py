"""Codes of a kernel's signature, and what is left to Numba: all that a kernel on disk asks for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..namespace import CODES

DType = np.dtype[Any]
#: Where NumPy's array object holds its data pointer, after Python's header.
DATA: Final = object.__basicsize__


class Fallback(Exception):
    """A kernel holds something that is left to Numba."""


def dtype_of(code: str) -> tuple[DType, int | None]:
    """Return the dtype and the rank, None for a scalar, that a code of a signature stands for."""
    name, bracket, rank = code.partition("[")
    if name not in CODES or (bracket and not (rank[:-1].isdigit() and rank.endswith("]"))):
        raise Fallback(f"signature {code}")
    return np.dtype(CODES[name]), int(rank[:-1]) if bracket else None
