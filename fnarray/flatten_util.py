"""Trees of arrays as one vector, and back."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from . import lax
from . import numpy as jnp
from .core import tree
from .core.array import Array
from .core.dtypes import canonicalize_dtype, dtype_and_weak, lattice_result_type
from .ops.kit.moves import as_seen

__all__ = ["ravel_pytree"]
__dir__ = __all__.copy


@dataclass(frozen=True, slots=True)
class _Unravel:
    """From a vector to the tree it was made of; equal for equal trees, so that jit knows it."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    dtype: np.dtype

    def __call__(self, vector: Any) -> Any:
        vector = jnp.asarray(vector)
        sizes = [prod(shape) for shape in self.shapes]
        if vector.shape != (sum(sizes),):
            raise ValueError(
                f"unravel: expected an array of shape {(sum(sizes),)}, got shape {vector.shape}."
            )
        mixed = any(d != self.dtype for d in self.dtypes)
        if vector.dtype != self.dtype and not mixed:
            raise TypeError(
                f"unravel function given array of dtype {vector.dtype}, but expected dtype "
                f"{self.dtype}. Convert it with astype."
            )
        leaves, start = [], 0
        for size, shape, dtype in zip(sizes, self.shapes, self.dtypes, strict=True):
            part = lax.slice_in_dim(vector, start, start + size).reshape(shape)
            leaves.append(lax.convert_element_type(part, dtype))
            start += size
        return tree.unflatten(self.structure, leaves)


def ravel_pytree(pytree: Any) -> tuple[Array, Any]:
    """Flatten a tree of arrays to one vector.

    Parameters
    ----------
    pytree : tree of arrays and scalars

    Returns
    -------
    vector : array
        The leaves, each in C order, one after the other, in the dtype they promote to.
    unravel : callable
        From a vector of that length to a tree of that structure, with those shapes and dtypes.
        Hashable; equal for trees alike. It raises `ValueError` for another shape and, where all
        leaves have one dtype, `TypeError` for another dtype.
    """
    leaves, structure = tree.flatten(pytree)
    leaves = as_seen(leaves, pytree)  # random keys refuse to be numbers, as their words would not
    if not leaves:
        empty = jnp.zeros(0)
        return empty, _Unravel(structure, (), (), empty.dtype)
    dtype, _ = lattice_result_type([dtype_and_weak(x) for x in leaves])
    arrays = [jnp.asarray(x) for x in leaves]
    dtype = canonicalize_dtype(dtype)
    vector = jnp.concatenate([jnp.ravel(lax.convert_element_type(x, dtype)) for x in arrays])
    shapes, dtypes = (tuple(getattr(x, what) for x in arrays) for what in ("shape", "dtype"))
    return vector, _Unravel(structure, shapes, dtypes, dtype)
