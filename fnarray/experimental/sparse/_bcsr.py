"""BCSR: compressed rows, batched in front, dense behind."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import numpy as jnp
from ...core.array import Array
from ...tree_util import register_pytree_node_class
from ._array import BatchedArray
from ._bcoo import (
    BCOO,
    _as_array,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_sort_indices,
    each_batch,
    full_batch,
)
from ._linear import bcoo_dot_general
from ._shape import bcoo_broadcast_in_dim, bcoo_concatenate

__all__ = [
    "BCSR",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
]


@register_pytree_node_class
class BCSR(BatchedArray):
    """A sparse array as compressed rows.

    Parameters
    ----------
    args : (Array, Array, Array)
        ``data`` of shape ``(*batch, nse, *dense)``, ``indices`` of columns ``(*batch, nse)``, and
        ``indptr``, where each row begins, ``(*batch, rows + 1)``.
    shape : sequence of int
    """

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices, self.indptr = map(_as_array, args)
        sizes = tuple(map(operator.index, shape))
        b = self.indices.ndim - 1
        if self.indptr.shape[-1] != sizes[b] + 1 or self.data.shape[b] != self.indices.shape[-1]:
            raise ValueError(
                f"BCSR: data of shape {self.data.shape}, indices of shape {self.indices.shape} and "
                f"indptr of shape {self.indptr.shape} do not make an array of shape {sizes}."
            )
        self._sizes = sizes[b:]
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Sizes of the axes."""
        return (*self.indptr.shape[: self.n_batch], *self._sizes)

    @property
    def n_batch(self) -> int:
        """Number of batch axes."""
        return self.indices.ndim - 1

    #: Number of sparse axes.
    n_sparse = 2

    @property
    def nse(self) -> int:
        """Number of elements stored for each batch."""
        return self.indices.shape[-1]

    def tree_flatten(self) -> Any:
        """Return what transforms see, and the rest."""
        aux = self._sizes, self.indices_sorted, self.unique_indices
        return (self.data, self.indices, self.indptr), aux

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> BCSR:
        """Return the array, of leaves that may be no arrays."""
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        self._sizes, self.indices_sorted, self.unique_indices = aux
        return self

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """Return the array of the elements of another that are not zero."""
        coo = bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )
        return cls.from_bcoo(coo)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """Return an array of two sparse axes as compressed rows."""
        if arr.n_sparse != 2:
            raise NotImplementedError(
                f"BCSR.from_bcoo: the array must have 2 sparse axes, got {arr.n_sparse}."
            )
        arr = full_batch(arr if arr.indices_sorted else bcoo_sort_indices(arr))
        rows = arr.shape[arr.n_batch]

        def starts(row: Any) -> Any:
            return jnp.searchsorted(row, jnp.arange(rows + 1, dtype=row.dtype)).astype(row.dtype)

        indptr = each_batch(starts, arr.n_batch)(arr.indices[..., 0])
        return cls(
            (arr.data, arr.indices[..., 1], indptr), shape=arr.shape, indices_sorted=True,
            unique_indices=arr.unique_indices,
        )  # fmt: skip

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """Return the array of a SciPy matrix."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR.from_scipy_sparse: n_dense and n_batch must be 0.")
        csr = mat.tocsr()
        kind = index_dtype or np.int32
        return cls((csr.data, csr.indices.astype(kind), csr.indptr.astype(kind)), shape=csr.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], **options: Any) -> BCSR:
        return cls.from_bcoo(BCOO._empty(shape, **options))

    @classmethod
    def _eye(cls, N: int, M: int, k: int, **options: Any) -> BCSR:
        return cls.from_bcoo(BCOO._eye(N, M, k, **options))

    def to_bcoo(self) -> BCOO:
        """Return the array as coordinates; elements beyond the last row's end are padding."""

        def rows(indices: Any, indptr: Any) -> Any:
            at = jnp.arange(indices.shape[0], dtype=indptr.dtype)
            row = jnp.searchsorted(indptr, at, side="right").astype(indices.dtype) - 1
            return jnp.stack([row, indices], -1)

        indices = each_batch(rows, self.n_batch)(self.indices, self.indptr)
        return BCOO(
            (self.data, indices), shape=self.shape, indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )  # fmt: skip

    def todense(self) -> Array:
        """Return the array with its zeros."""
        return self.to_bcoo().todense()

    def astype(self, dtype: Any) -> BCSR:
        """Return the array with elements of another dtype."""
        return self._with(self.data.astype(dtype))

    def _with(self, data: Any) -> BCSR:
        return BCSR(
            (data, self.indices, self.indptr), shape=self.shape,
            indices_sorted=self.indices_sorted, unique_indices=self.unique_indices,
        )  # fmt: skip

    def transpose(self, axes: Any = None) -> BCSR:
        """Return the array with its axes in another order."""
        return BCSR.from_bcoo(self.to_bcoo().transpose(axes))

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Return the array with every index once."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))


def bcsr_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCSR:
    """Return the compressed rows of the elements of a dense array that are not zero."""
    return BCSR.fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)


def bcsr_todense(mat: BCSR) -> Array:
    """Return a sparse array with its zeros."""
    return mat.todense()


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Array:
    """Return the elements of a dense array at the places of a sparse one."""
    mat = jnp.asarray(mat)
    dense = mat.shape[indices.ndim + 1 :]
    like = BCSR((jnp.zeros((*indices.shape, *dense)), indices, indptr), shape=mat.shape)
    return bcoo_extract(like.to_bcoo(), mat).data


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Return the array with every index once."""
    return mat.sum_duplicates(nse)


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """Lay axes at given places of a shape, and repeat along the others."""
    coo = bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )
    return BCSR.from_bcoo(coo)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Put sparse arrays one after the other along an axis."""
    return BCSR.from_bcoo(bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))


def bcsr_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, **options: Any) -> Any:
    """`lax.dot_general` of operands of which one or both are compressed rows."""
    ours = [x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)]
    out = bcoo_dot_general(*ours, dimension_numbers=dimension_numbers, **options)
    return BCSR.from_bcoo(out) if isinstance(out, BCOO) else out
