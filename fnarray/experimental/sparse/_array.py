"""What sparse arrays have in common: operators upon a dense form and a few operations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ...core.array import Array


class SparseArray:
    """An array that stores some of its elements; the others are zero.

    Attributes
    ----------
    data : Array
        The elements stored.
    shape : tuple of int
    """

    data: Any
    shape: Any
    nse: Any
    # NumPy arrays and ours leave `x @ M` to M.
    __array_priority__ = 200
    __array_ufunc__ = None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, zeros included."""
        return prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.data.dtype

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a sparse array of rank 0")
        return self.shape[0]

    def __iter__(self) -> Any:
        # Without it Python asks for elements until IndexError, which indexing never raises.
        return (self[k] for k in range(len(self)))  # type: ignore[index]

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            sizes = list(self.shape)
            return f"{name}({self.dtype.name}{sizes}, nse={self.nse}{self._more()})"
        except (AttributeError, IndexError):  # holds what stands for arrays inside of a tree map
            return f"{name}(<invalid>)"

    def _more(self) -> str:
        """Return what else to show of the layout."""
        return ""

    def todense(self) -> Array:
        """Return the array with its zeros."""
        raise TypeError(f"{type(self).__name__} does not say how it becomes dense")

    def transpose(self, axes: Any = None) -> Any:
        """Return the array with its axes in another order."""
        raise TypeError(f"{type(self).__name__} does not say how it is transposed")

    def block_until_ready(self) -> Any:
        """Return the array itself, once its elements are computed."""
        self.data.block_until_ready()
        return self

    def __bool__(self) -> bool:
        raise TypeError("a sparse array has no truth value: ask M.todense().any() or .all().")

    def __eq__(self, other: object) -> Any:
        raise TypeError("sparse arrays are not compared: nearly all elements would be equal zeros.")

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]


class BatchedArray(SparseArray):
    """One with batch axes in front, and dense ones behind the sparse ones."""

    n_batch: Any

    @property
    def n_dense(self) -> int:
        """Number of dense axes."""
        return self.data.ndim - 1 - self.n_batch

    def _more(self) -> str:
        return "".join(
            f", {name}={n}" for name in ("n_batch", "n_dense") if (n := getattr(self, name))
        )
