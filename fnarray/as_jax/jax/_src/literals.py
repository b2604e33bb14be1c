"""``jax._src.literals``: literals that carry a dtype. Tracing makes none of these here."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fnarray.core.avals import ShapedArray


class TypedNdArray(np.ndarray):
    """An array literal of a dtype, as some libraries tell them from others."""


class _Typed:
    """A Python number that has a dtype, and makes no weak one of another."""

    dtype: np.dtype
    aval: ShapedArray

    def __new__(cls, value: Any, dtype: Any) -> Self:
        """Return a number of a dtype."""
        # Python's type says how it is made: this class only adds what is known beside the value.
        self = super().__new__(cls, value)  # type: ignore[call-arg]
        self.dtype = np.dtype(dtype)
        self.aval = ShapedArray((), self.dtype, weak_type=True)
        return self

    def __repr__(self) -> str:
        (kind,) = {int, float, complex} & set(type(self).__mro__)
        return f"{type(self).__name__}({kind(self)}, dtype={self.dtype.name})"  # type: ignore[call-overload]

    def __getnewargs__(self) -> tuple[Any, ...]:
        (kind,) = {int, float, complex} & set(type(self).__mro__)
        return kind(self), self.dtype  # type: ignore[call-overload]


class TypedInt(_Typed, int):
    """An integer literal of a dtype."""


class TypedFloat(_Typed, float):
    """A float literal of a dtype."""


class TypedComplex(_Typed, complex):
    """A complex literal of a dtype."""
