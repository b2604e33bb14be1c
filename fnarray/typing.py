"""Types for annotations of functions of arrays."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .core.array import Array

__all__ = ["ArrayLike", "DTypeLike"]
__dir__ = __all__.copy


class _HasDType(Protocol):
    @property
    def dtype(self) -> np.dtype[Any]: ...


#: What functions of arrays take for an array. Lists are not among them: use ``numpy.asarray``.
ArrayLike = Array | np.ndarray | np.bool | np.number | bool | int | float | complex

#: What stands for a dtype.
DTypeLike = str | type[Any] | np.dtype[Any] | _HasDType
