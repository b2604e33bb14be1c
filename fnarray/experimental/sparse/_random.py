"""Sparse arrays made of nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ... import numpy as jnp
from ... import random
from ._bcoo import BCOO, each_batch
from ._bcsr import BCSR

__all__ = ["empty", "eye", "random_bcoo"]

_FORMATS: dict[str, Any] = {"bcoo": BCOO, "bcsr": BCSR}


def _format(name: str) -> Any:
    if name not in _FORMATS:
        raise ValueError(f"sparse: sparse_format must be one of {sorted(_FORMATS)}, got {name!r}.")
    return _FORMATS[name]


def empty(
    shape: Sequence[int],
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> Any:
    """Return a sparse array of zeros, none of them stored."""
    return _format(sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> Any:
    """Return a sparse matrix of ones along a diagonal."""
    kind = _format(sparse_format)
    mat = BCOO._eye(N, N if M is None else M, k, dtype=dtype, index_dtype=index_dtype, **kwds)
    return mat if kind is BCOO else BCSR.from_bcoo(mat)


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = np.float32,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] | None = None,
    **kwds: Any,
) -> BCOO:
    """Return a random sparse array.

    Parameters
    ----------
    key : random key
    shape : sequence of int
    nse : int or float
        How many elements to store for each batch, or which part of them.
    generator : callable, optional
        ``generator(key, shape, dtype, **kwds)`` of the data; `random.uniform` by default.
    """
    shape = tuple(shape)
    stop = len(shape) - n_dense
    batch, sparse, dense = shape[:n_batch], shape[n_batch:stop], shape[stop:]
    total = prod(sparse)
    count = int(np.ceil(nse * total)) if isinstance(nse, float) and nse < 1 else int(nse)
    kind = np.dtype(indices_dtype or np.int32)
    of_data, of_indices = random.split(key)

    def places(key: Any) -> Any:
        if not sparse:
            return jnp.zeros((count, 0), kind)
        flat = random.choice(key, total, (count,), replace=not unique_indices)
        flat = jnp.sort(flat) if sorted_indices else flat
        return jnp.stack(jnp.unravel_index(flat, sparse), -1).astype(kind)

    keys = random.split(of_indices, prod(batch)) if batch else of_indices
    if batch:
        keys = keys.reshape(*batch, *keys.shape[1:])
    indices = each_batch(places, n_batch)(keys)
    make = random.uniform if generator is None else generator
    data = make(of_data, (*batch, count, *dense), dtype, **kwds)
    return BCOO(
        (data, indices), shape=shape, indices_sorted=sorted_indices, unique_indices=unique_indices
    )
