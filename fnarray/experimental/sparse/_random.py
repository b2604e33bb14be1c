"""Sparse arrays made of nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ... import numpy as jnp
from ... import random
from ...api.batching import vmap
from ._bcoo import BCOO
from ._bcsr import BCSR
from ._matrices import COO, CSC, CSR

__all__ = ["empty", "eye", "random_bcoo"]

_FORMATS: dict[str, Any] = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csc": CSC, "csr": CSR}


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
    columns = N if M is None else M
    return _format(sparse_format)._eye(N, columns, k, dtype=dtype, index_dtype=index_dtype, **kwds)


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
    # JAX's draws: one key for the data, one for the indices of each batch.
    keys = random.split(key, prod(batch) + 1)

    def places(key: Any) -> Any:
        if not sparse:
            return jnp.zeros((count, 0), kind)
        flat = random.choice(key, total, (count,), replace=not unique_indices)
        return jnp.stack(jnp.unravel_index(flat, sparse), -1).astype(kind)

    indices = vmap(places)(keys[1:]).reshape(*batch, count, len(sparse))
    make = random.uniform if generator is None else generator
    data = make(keys[0], (*batch, count, *dense), dtype, **kwds)
    mat = BCOO((data, indices), shape=shape, unique_indices=unique_indices)
    return mat.sort_indices() if sorted_indices else mat
