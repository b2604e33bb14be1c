"""Abstract values: what tracing knows of an array."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .dtypes import as_dtype, short_name

_interned: dict[tuple[tuple[int, ...], np.dtype, bool], ShapedArray] = {}


class ShapedArray:
    """Shape, dtype and weak type of an array.

    Instances are interned: equal avals are one object, so comparing and hashing them is comparing
    and hashing an address, which is what the dispatch of compiled functions relies on.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    weak_type : bool
        Whether the dtype gives way in promotion, as that of a Python scalar does.
    """

    __slots__ = ("dtype", "shape", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool

    def __new__(
        cls, shape: Any, dtype: Any, weak_type: bool = False, *, sharding: Any = None
    ) -> ShapedArray:
        """Return the one aval of these three; where arrays are is no part of it."""
        exact: Any = dtype
        if not isinstance(dtype, np.dtype):
            exact = np.dtype(dtype)
        key: tuple[tuple[int, ...], np.dtype, bool] = (tuple(shape), exact, weak_type)
        found = _interned.get(key)
        if found is None:
            self = object.__new__(cls)
            object.__setattr__(self, "shape", tuple(int(n) for n in key[0]))
            object.__setattr__(self, "dtype", key[1])
            object.__setattr__(self, "weak_type", bool(weak_type))
            # setdefault is atomic: two threads that race agree on one object.
            found = _interned.setdefault(key, self)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"ShapedArray is immutable: cannot set {name!r}")

    def __reduce__(self):
        return ShapedArray, (self.shape, self.dtype, self.weak_type)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def update(self, **changes: Any) -> ShapedArray:
        """Return the aval with some of ``shape``, ``dtype``, ``weak_type`` replaced."""
        return ShapedArray(
            changes.get("shape", self.shape),
            changes.get("dtype", self.dtype),
            changes.get("weak_type", self.weak_type),
        )

    def str_short(self, short_dtypes: bool = False) -> str:
        """``float32[3,4]``, or ``f32[3,4]`` with short dtype names; weak types begin with ``~``."""
        name = short_name(self.dtype) if short_dtypes else self.dtype.name
        weak = "~" if self.weak_type and not short_dtypes else ""
        return f"{weak}{name}[{','.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        return self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short().lstrip('~')}{weak})"


class ShapeDtypeStruct:
    """A stand-in for an array argument: its shape and dtype, and no data.

    Parameters
    ----------
    shape : sequence of int
    dtype : dtype-like
    weak_type : bool, optional
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False):
        self.shape = tuple(shape)
        self.dtype = as_dtype(dtype)
        self.weak_type = weak_type
        self.sharding = sharding

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct of rank 0")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (
            (self.shape, self.dtype, self.weak_type) == (other.shape, other.dtype, other.weak_type)
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"
