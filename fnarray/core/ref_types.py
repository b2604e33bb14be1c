"""What tracing knows of Refs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .avals import ShapedArray

__all__: list[str] = []


class AbstractRef:
    """What tracing knows of a Ref: the aval of its values. Interned, as that is.

    Parameters
    ----------
    inner_aval : ShapedArray
    """

    __slots__ = ("inner_aval",)

    inner_aval: ShapedArray

    def __new__(cls, inner_aval: ShapedArray) -> AbstractRef:
        """Return the one of these values."""
        return _interned(cls, inner_aval)

    def __reduce__(self) -> Any:
        return AbstractRef, (self.inner_aval,)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.inner_aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether values give way in promotion, as the first one did."""
        return self.inner_aval.weak_type

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.inner_aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.inner_aval.size

    def str_short(self, short_dtypes: bool = False) -> str:
        """``Ref{float32[3,4]}``."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes).lstrip('~')}}}"

    __repr__ = __str__ = str_short


@cache
def _interned(cls: type[AbstractRef], inner: ShapedArray) -> Any:
    self = object.__new__(cls)
    self.inner_aval = inner
    return self
