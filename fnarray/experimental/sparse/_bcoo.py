"""BCOO: coordinates and values, batched in front, dense behind.

A value of shape ``(*batch, *sparse, *dense)`` is stored as ``data`` of shape
``(*batch, nse, *dense)`` and ``indices`` of shape ``(*batch, nse, number of sparse axes)``. Indices
out of bounds are padding. Duplicates add up.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...api.batching import vmap
from ...core.array import Array
from ...core.trace import Tracer
from ...errors import ConcretizationTypeError
from ...tree_util import register_pytree_node_class
from ._array import BatchedArray

__all__ = [
    "BCOO",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_sort_indices",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "bcoo_update_layout",
]


@register_pytree_node_class
class BCOO(BatchedArray):
    """A sparse array as coordinates and values.

    Parameters
    ----------
    args : (Array, Array)
        ``data`` and ``indices``.
    shape : sequence of int
    indices_sorted, unique_indices : bool
        What is known of the indices.

    Examples
    --------
    >>> import fnarray.numpy as jnp
    >>> from fnarray.experimental import sparse
    >>> M = sparse.BCOO.fromdense(jnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> M, (M @ jnp.ones(3)).tolist()
    (BCOO(float32[2, 3], nse=3), [1.0, 5.0])
    """

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        data, indices = map(_as_array, args)
        sizes = tuple(map(operator.index, shape))
        _check(data, indices, sizes)
        batch = sizes[: indices.ndim - 2]
        # The sizes of batches are those of the arrays, so that `vmap` may take some away.
        if any(
            max(m, n) < size for m, n, size in zip(data.shape, indices.shape, batch, strict=False)
        ):
            indices = jnp.broadcast_to(indices, (*batch, *indices.shape[-2:]))
        self.data, self.indices, self._sizes = data, indices, sizes[len(batch) :]
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices

    # ---- layout ----

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """Sizes of the axes."""
        sizes = zip(self.data.shape[: self.n_batch], self.indices.shape, strict=False)
        return (*(max(m, n) if m and n else 0 for m, n in sizes), *self._sizes)

    @property
    def n_batch(self) -> int:
        """Number of batch axes."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """Number of sparse axes."""
        return self.indices.shape[-1]

    @property
    def nse(self) -> int:
        """Number of elements stored for each batch."""
        return self.indices.shape[-2]

    def tree_flatten(self) -> Any:
        """Return what transforms see, and the rest."""
        return (self.data, self.indices), (self._sizes, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> BCOO:
        """Return the array, of leaves that may be no arrays."""
        self = object.__new__(cls)
        self.data, self.indices = children
        self._sizes, self.indices_sorted, self.unique_indices = aux
        return self

    # ---- conversions ----

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """Return the array of the elements of another that are not zero."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """Return the array of a SciPy matrix."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse: n_dense and n_batch must be 0.")
        coo = mat.tocoo()
        indices = np.stack([coo.row, coo.col], axis=1).astype(index_dtype or np.int32)
        return cls((coo.data, indices), shape=coo.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:
        shape = tuple(shape)
        split = len(shape) - n_dense
        batch, sparse, dense = shape[:n_batch], shape[n_batch:split], shape[split:]
        data = jnp.zeros((*batch, nse, *dense), dtype)
        # Every index is padding.
        ends = jnp.asarray(np.asarray(sparse, np.int32).astype(index_dtype))
        indices = jnp.broadcast_to(ends, (*batch, nse, len(sparse)))
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(
        cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32", **layout: Any
    ) -> BCOO:
        mat = cls.fromdense(np.eye(N, M, k), index_dtype=np.dtype(index_dtype), **layout)
        return mat.astype(jnp.float32 if dtype is None else dtype)

    def todense(self) -> Array:
        """Return the array with its zeros."""
        return bcoo_todense(self)

    def astype(self, dtype: Any) -> BCOO:
        """Return the array with elements of another dtype."""
        return self._with(self.data.astype(dtype))

    def _with(self, data: Any) -> BCOO:
        return BCOO(
            (data, self.indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: Any = None
    ) -> BCOO:
        """Return the array with other numbers of batch and dense axes."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Return the array with every index once; see `bcoo_sum_duplicates`."""
        return bcoo_sum_duplicates(self, nse=nse, remove_zeros=remove_zeros)

    def sort_indices(self) -> BCOO:
        """Return the array with its indices in order."""
        return bcoo_sort_indices(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Return the array with its axes in another order; see `bcoo_transpose`."""
        perm = range(self.ndim)[::-1] if axes is None else axes
        return bcoo_transpose(self, permutation=tuple(perm))


def _as_array(x: Any) -> Any:
    return jnp.asarray(x) if isinstance(x, np.ndarray | list | tuple | int | float) else x


def _check(data: Any, indices: Any, shape: tuple[int, ...]) -> None:
    """Raise `ValueError` unless data, indices and shape fit together."""
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1] if indices.ndim > 1 else 0
    n_dense = len(shape) - n_batch - n_sparse
    wanted = (
        *(s if d != 1 else d for s, d in zip(shape[:n_batch], data.shape, strict=False)),
        indices.shape[-2] if indices.ndim > 1 else 0,
        *shape[n_batch + n_sparse :],
    )
    if indices.ndim < 2 or n_dense < 0 or tuple(data.shape) != wanted:
        raise ValueError(
            f"BCOO: data of shape {tuple(data.shape)} and indices of shape {tuple(indices.shape)} "
            f"do not make an array of shape {shape}: data must be (*batch, nse, *dense), indices "
            "(*batch, nse, number of sparse axes)."
        )
    if indices.dtype.kind not in "iu":
        raise ValueError(f"BCOO: indices must be integers, got dtype {indices.dtype}.")


# ---- parts ---------------------------------------------------------------------------------------


def each_batch(fun: Callable[..., Any], n_batch: int) -> Callable[..., Any]:
    """Map a function over the batch axes, which are the first ones of all its arguments."""
    for _ in range(n_batch):
        fun = vmap(fun)
    return fun


def sparse_shape(mat: BCOO) -> tuple[int, ...]:
    """Return the sizes of the sparse axes."""
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def dense_shape(mat: BCOO) -> tuple[int, ...]:
    """Return the sizes of the dense axes."""
    return mat.shape[mat.n_batch + mat.n_sparse :]


def full_batch(mat: BCOO) -> BCOO:
    """Return the array with batches of data and indices that are as many as the shape says."""
    batch = mat.shape[: mat.n_batch]
    data = jnp.broadcast_to(mat.data, (*batch, *mat.data.shape[mat.n_batch :]))
    indices = jnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[mat.n_batch :]))
    return (
        mat
        if data is mat.data and indices is mat.indices
        else BCOO((data, indices), shape=mat.shape)
    )


def columns(indices: Any) -> tuple[Any, ...]:
    """Return the indices along each sparse axis."""
    return tuple(indices[..., k] for k in range(indices.shape[-1]))


def inside(indices: Any, sizes: Sequence[int]) -> Any:
    """Say which indices are not padding."""
    if not sizes:
        return jnp.ones(indices.shape[:-1], bool)
    return (indices < np.asarray(sizes, indices.dtype)).all(-1)


# ---- operations ----------------------------------------------------------------------------------


def bcoo_todense(mat: BCOO) -> Array:
    """Return a sparse array with its zeros."""
    mat = full_batch(mat)
    sizes = (*sparse_shape(mat), *dense_shape(mat))

    def one(data: Any, indices: Any) -> Any:
        if not indices.shape[-1]:
            return data.sum(0).astype(data.dtype)
        return jnp.zeros(sizes, data.dtype).at[columns(indices)].add(data, mode="drop")

    return each_batch(one, mat.n_batch)(mat.data, mat.indices)


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """Return the elements of a dense array at the indices of a sparse one."""
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: shapes must be equal, got {sparr.shape} and {arr.shape}.")
    mat = full_batch(sparr)

    def one(indices: Any, dense: Any) -> Any:
        if not indices.shape[-1]:
            # All elements are at one place: the first has what is there.
            first = np.arange(indices.shape[0]).reshape(-1, *(1,) * dense.ndim) == 0
            return jnp.where(first, dense[None], 0).astype(dense.dtype)
        return dense.at[columns(indices)].get(mode="fill", fill_value=0)

    return mat._with(each_batch(one, mat.n_batch)(mat.indices, arr))


def bcoo_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCOO:
    """Return the sparse array of the elements of a dense one that are not zero.

    Parameters
    ----------
    mat : array_like
    nse : int, optional
        How many elements to store for each batch; as many as are not zero by default, which a
        traced array does not tell.
    n_batch, n_dense : int
        How many axes in front are batches, and how many at the end are stored whole.
    index_dtype : dtype-like

    Raises
    ------
    ConcretizationTypeError
        For a traced array and no ``nse``.
    """
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if n_sparse < 0 or min(n_batch, n_dense) < 0:
        raise ValueError(
            f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} are too many or negative for "
            f"an array of shape {mat.shape}."
        )
    mask = mat != 0
    if n_dense:
        mask = mask.any(tuple(range(mat.ndim - n_dense, mat.ndim)))
    if nse is None:
        if isinstance(mask, Tracer):
            raise ConcretizationTypeError(
                "bcoo_fromdense: the number of elements to store must be known while tracing. Give "
                f"it: nse; or make the sparse array outside. The array is {mask.where_from()}."
            )
        counts = mask.sum(tuple(range(n_batch, mask.ndim)))
        nse = int(counts.max()) if counts.size else 0
    nse = operator.index(nse)
    sizes = mat.shape[n_batch : n_batch + n_sparse]

    def one(mask: Any) -> Any:
        if not n_sparse:
            return jnp.zeros((nse, 0), index_dtype)
        found = jnp.nonzero(mask, size=nse, fill_value=sizes)
        return jnp.stack(found, -1).astype(index_dtype)

    indices = each_batch(one, n_batch)(mask)
    like = jnp.zeros((*mat.shape[:n_batch], nse, *mat.shape[n_batch + n_sparse :]), mat.dtype)
    empty = BCOO((like, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)
    return bcoo_extract(empty, mat)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Transpose a sparse array; batch, sparse and dense axes stay among their own.

    Raises
    ------
    NotImplementedError
        For an order that mixes them: `bcoo_update_layout` first.
    """
    perm = [operator.index(p) % mat.ndim for p in permutation]
    if sorted(perm) != list(range(mat.ndim)):
        raise ValueError(f"bcoo_transpose: {permutation} is no order of {mat.ndim} axes.")
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    kinds = [perm[:b], perm[b:s], perm[s:]]
    if any(
        set(k) != set(r)
        for k, r in zip(kinds, (range(b), range(b, s), range(s, mat.ndim)), strict=True)
    ):
        raise NotImplementedError(
            f"bcoo_transpose: {permutation} mixes batch, sparse and dense axes, of which there are "
            f"{b}, {s - b} and {mat.ndim - s}. Change the layout first: bcoo_update_layout."
        )
    batch, sparse, dense = kinds
    data = lax.transpose(mat.data, (*batch, b, *(d - mat.n_sparse + 1 for d in dense)))
    indices = lax.transpose(mat.indices, (*batch, b, b + 1))
    indices = indices[..., np.asarray([k - b for k in sparse], int)] if sparse else indices
    shape = tuple(mat.shape[p] for p in perm)
    return BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)


def _order(indices: Any) -> Any:
    return jnp.lexsort(columns(indices)[::-1])


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Return a sparse array with its indices in order; padding comes last."""
    mat = full_batch(mat)

    def one(data: Any, indices: Any) -> Any:
        if not indices.shape[-1]:
            return data, indices
        order = _order(indices)
        return data[order], indices[order]

    data, indices = each_batch(one, mat.n_batch)(mat.data, mat.indices)
    return BCOO(
        (data, indices), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices
    )


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """Return a sparse array with every index once, in order.

    Parameters
    ----------
    mat : BCOO
    nse : int, optional
        How many elements to store; as many as there are by default. While tracing the default is to
        keep the number, with padding.
    remove_zeros : bool
        Whether elements that are zero are left out.
    """
    mat = full_batch(mat)
    sizes = sparse_shape(mat)
    ends = np.asarray(sizes, np.int64)
    room = mat.nse

    def one(data: Any, indices: Any) -> Any:
        if not indices.shape[-1]:
            return data.sum(0, keepdims=True).astype(data.dtype), indices[:1], jnp.asarray(1)
        keep = inside(indices, sizes)
        if remove_zeros:
            keep &= (data != 0).any(tuple(range(1, data.ndim)))
        indices = jnp.where(keep[:, None], indices, ends.astype(indices.dtype))
        order = _order(indices)
        indices, data = indices[order], data[order]
        keep = keep[order]
        new = jnp.concatenate([keep[:1], (indices[1:] != indices[:-1]).any(-1) & keep[1:]])
        place = jnp.where(keep, jnp.cumsum(new) - 1, room)
        summed = jnp.zeros_like(data).at[place].add(data, mode="drop")
        blank = jnp.broadcast_to(ends.astype(indices.dtype), indices.shape)
        return summed, blank.at[place].set(indices, mode="drop"), new.sum()

    if not room:
        return mat
    data, indices, counts = each_batch(one, mat.n_batch)(mat.data, mat.indices)
    if nse is None and not isinstance(counts, Tracer):
        nse = int(counts.max()) if counts.size else 0
    b = mat.n_batch
    if nse is not None and nse != data.shape[b]:
        if nse < data.shape[b]:
            data = lax.slice_in_dim(data, 0, nse, axis=b)
            indices = lax.slice_in_dim(indices, 0, nse, axis=b)
        else:
            more = BCOO._empty(
                mat.shape, dtype=data.dtype, index_dtype=indices.dtype, n_batch=b,
                n_dense=mat.n_dense, nse=nse - data.shape[b],
            )  # fmt: skip
            data = jnp.concatenate([data, more.data], b)
            indices = jnp.concatenate([indices, more.indices], b)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def fitted(mat: BCOO) -> BCOO:
    """Return the array with no more elements stored than it has."""
    room = prod(sparse_shape(mat))
    return mat if mat.nse <= room else bcoo_sum_duplicates(mat, nse=room)


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: Any = None,
) -> BCOO:
    """Return a sparse array with other numbers of batch and dense axes.

    Axes of batches, and dense ones, become sparse ones with all their elements; sparse ones become
    batches or dense by way of the dense array.
    """
    b = mat.n_batch if n_batch is None else n_batch
    d = mat.n_dense if n_dense is None else n_dense
    if min(b, d) < 0 or b + d > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={n_batch} and n_dense={n_dense} are too many or negative "
            f"for an array of shape {mat.shape}."
        )
    if b > mat.n_batch or d > mat.n_dense:
        return _relaid(mat, b, d)
    mat = full_batch(mat)
    while mat.n_dense > d:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > b:
        mat = _batch_to_sparse(mat)
    return mat


def _relaid(mat: BCOO, n_batch: int, n_dense: int) -> BCOO:
    dense = bcoo_todense(mat)
    rest = mat.shape[n_batch : mat.ndim - n_dense]
    nse = int(np.prod(rest)) if isinstance(dense, Tracer) else None
    return bcoo_fromdense(
        dense, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=mat.indices.dtype
    )


def _dense_to_sparse(mat: BCOO) -> BCOO:
    """Make the first dense axis the last sparse one."""
    b, n = mat.n_batch, dense_shape(mat)[0]
    shape = mat.indices.shape
    counted = jnp.arange(n, dtype=mat.indices.dtype)
    own = jnp.broadcast_to(mat.indices[..., None, :], (*shape[:-1], n, shape[-1]))
    new = jnp.broadcast_to(counted[:, None], (*shape[:-1], n, 1))
    indices = jnp.concatenate([own, new], -1).reshape(*shape[:b], n * mat.nse, shape[-1] + 1)
    data = mat.data.reshape(*shape[:b], n * mat.nse, *dense_shape(mat)[1:])
    return BCOO((data, indices), shape=mat.shape)


def _batch_to_sparse(mat: BCOO) -> BCOO:
    """Make the last batch axis the first sparse one."""
    b = mat.n_batch - 1
    n, shape = mat.shape[b], mat.indices.shape
    counted = jnp.arange(n, dtype=mat.indices.dtype)[:, None, None]
    new = jnp.broadcast_to(counted, (*shape[:-1], 1))
    # Padding stays padding: it is out of bounds along the other axes.
    indices = jnp.concatenate([new, mat.indices], -1).reshape(
        *shape[:b], n * mat.nse, shape[-1] + 1
    )
    data = mat.data.reshape(*shape[:b], n * mat.nse, *dense_shape(mat))
    return BCOO((data, indices), shape=mat.shape)
