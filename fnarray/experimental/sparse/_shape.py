"""Sparse arrays in other shapes, parts of them, and several as one."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...lax import GatherScatterMode
from ._bcoo import (
    BCOO,
    bcoo_transpose,
    bcoo_update_layout,
    dense_shape,
    each_batch,
    fitted,
    full_batch,
    inside,
    sparse_shape,
)

__all__ = [
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_dynamic_slice",
    "bcoo_gather",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_squeeze",
]


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """Lay axes at given places of a shape, and repeat along the others."""
    shape, places = tuple(map(int, shape)), tuple(map(int, broadcast_dimensions))
    mat = full_batch(mat)
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    # New axes before the last batch, or before all, are batches; those after the first dense one
    # are dense.
    n_batch = places[b - 1] + 1 if b else places[0] if places else 0
    if mat.n_dense:
        n_dense = len(shape) - places[s]
    else:
        n_dense = 0
    batch = shape[:n_batch]
    sparse = range(n_batch, len(shape) - n_dense)
    dense = shape[len(shape) - n_dense :]
    start = len(shape) - n_dense
    data = lax.broadcast_in_dim(
        mat.data,
        (*batch, mat.nse, *dense),
        (*places[:b], n_batch, *(p - start + n_batch + 1 for p in places[s:])),
    )
    indices = lax.broadcast_in_dim(
        mat.indices, (*batch, mat.nse, mat.n_sparse), (*places[:b], n_batch, n_batch + 1)
    )
    # Sparse axes that are new, or stretched, hold every element at each of their places.
    old = {p: k for k, p in enumerate(places[b:s])}
    stretched = [p for p in sparse if p not in old or sparse_shape(mat)[old[p]] != shape[p]]
    count = prod(shape[p] for p in stretched)
    grid = np.indices([shape[p] for p in stretched]).reshape(len(stretched), count)
    at = {p: grid[k].astype(indices.dtype) for k, p in enumerate(stretched)}
    here = inside(indices, sparse_shape(mat))[..., None]
    columns = []
    for p in sparse:
        if p in at:
            own = jnp.where(here, at[p], np.asarray(shape[p], indices.dtype))
        else:
            own = indices[..., old[p], None]
        columns.append(jnp.broadcast_to(own, (*batch, mat.nse, count)))
    if columns:
        indices = jnp.stack(columns, -1).reshape(*batch, mat.nse * count, len(columns))
    data = jnp.repeat(data, count, axis=n_batch)
    return BCOO((data, indices), shape=shape)


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Any = None) -> BCOO:
    """Return the elements in another shape; where axes of batches change, they become sparse."""
    sizes = tuple(map(operator.index, new_sizes))
    if dimensions is not None:
        raise NotImplementedError("bcoo_reshape: dimensions must be None. Transpose first.")
    if -1 in sizes:
        known = prod(n for n in sizes if n != -1)
        sizes = tuple(mat.size // max(known, 1) if n == -1 else n for n in sizes)
    if prod(sizes) != mat.size:
        raise TypeError(f"bcoo_reshape: shape {mat.shape} has not the size of {sizes}.")
    mat = full_batch(mat)
    if not (_split(mat, sizes)):
        mat = bcoo_update_layout(mat, n_batch=0, n_dense=0)
    b, d = mat.n_batch, mat.n_dense
    old, new = sparse_shape(mat), sizes[b : len(sizes) - d]
    wide = np.int64 if prod(old) > np.iinfo(np.int32).max else mat.indices.dtype
    flat = jnp.zeros(mat.indices.shape[:-1], wide)
    for k, n in enumerate(old):
        flat = flat * n + mat.indices[..., k].astype(wide)
    columns = []
    for n in reversed(new):
        columns.append(flat % max(n, 1))
        flat = flat // max(n, 1)
    found = jnp.stack(columns[::-1], -1) if columns else mat.indices[..., :0]
    here = inside(mat.indices, old)[..., None]
    ends = np.asarray(new, mat.indices.dtype)
    indices = jnp.where(here, found.astype(mat.indices.dtype), ends)
    return BCOO((mat.data, indices), shape=sizes, unique_indices=mat.unique_indices)


def _split(mat: BCOO, sizes: tuple[int, ...]) -> bool:
    b, dense = mat.n_batch, dense_shape(mat)
    behind = sizes[len(sizes) - len(dense) :] if dense else ()
    return sizes[:b] == mat.shape[:b] and behind == dense and len(sizes) >= b + len(dense)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """Take away axes of size 1."""
    gone = sorted({d % arr.ndim for d in dimensions})
    if any(arr.shape[d] != 1 for d in gone):
        raise ValueError(f"bcoo_squeeze: axes {gone} of shape {arr.shape} must be of size 1.")
    mat = full_batch(arr)
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = [d for d in gone if d < b]
    sparse = [d - b for d in gone if b <= d < s]
    dense = [d - mat.n_sparse + 1 for d in gone if d >= s]
    data = mat.data
    if sparse:  # what is padding along an axis that goes is zero from then on
        here = inside(mat.indices, sparse_shape(mat))
        data = jnp.where(here.reshape(*here.shape, *(1,) * (data.ndim - here.ndim)), data, 0)
    left = np.asarray([k for k in range(mat.n_sparse) if k not in sparse], int)
    indices = lax.squeeze(mat.indices[..., left], batch)
    shape = tuple(n for d, n in enumerate(mat.shape) if d not in gone)
    return BCOO((lax.squeeze(data, (*batch, *dense)), indices), shape=shape)


def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """Return a box of elements."""
    starts, limits = tuple(start_indices), tuple(limit_indices)
    steps = (1,) * mat.ndim if strides is None else tuple(strides)
    mat = full_batch(mat)
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse

    def cut(x: Any, axes: Sequence[int], at: Sequence[int]) -> Any:
        low, high, step = [0] * x.ndim, list(x.shape), [1] * x.ndim
        for axis, place in zip(axes, at, strict=True):
            low[place], high[place], step[place] = starts[axis], limits[axis], steps[axis]
        return lax.slice(x, low, high, step)

    behind = [k - mat.n_sparse + 1 for k in range(s, mat.ndim)]
    data = cut(mat.data, [*range(b), *range(s, mat.ndim)], [*range(b), *behind])
    indices = cut(mat.indices, range(b), range(b))
    shape = tuple(-(-max(h - low, 0) // k) for low, h, k in zip(starts, limits, steps, strict=True))
    low, high, step = (np.asarray(v[b:s], indices.dtype) for v in (starts, limits, steps))
    here = (indices >= low) & (indices < high) & ((indices - low) % step == 0)
    ends = np.asarray(shape[b:s], indices.dtype)
    kept = here.all(-1, keepdims=True)
    indices = jnp.where(kept, (indices - low) // step, ends)
    return fitted(BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices))


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """Return a box of elements that may begin at traced indices."""
    sizes = tuple(map(operator.index, slice_sizes))
    mat = full_batch(mat)
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    starts = [
        jnp.clip(jnp.asarray(i), 0, n - m)
        for i, n, m in zip(start_indices, mat.shape, sizes, strict=True)
    ]
    zero = jnp.zeros((), starts[0].dtype) if starts else 0
    data = lax.dynamic_slice(
        mat.data, (*starts[:b], zero, *starts[s:]), (*sizes[:b], mat.nse, *sizes[s:])
    )
    indices = lax.dynamic_slice(
        mat.indices, (*starts[:b], zero, zero), (*sizes[:b], mat.nse, mat.n_sparse)
    )
    if mat.n_sparse:
        low = jnp.stack(starts[b:s]).astype(indices.dtype)
        wide = np.asarray(sizes[b:s], indices.dtype)
        kept = ((indices >= low) & (indices < low + wide)).all(-1, keepdims=True)
        indices = jnp.where(kept, indices - low, wide)
    return fitted(BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices))


def bcoo_gather(
    operand: BCOO,
    start_indices: Any,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """`lax.gather` of a sparse array; the axes of the indices are batches of the result.

    Raises
    ------
    NotImplementedError
        For indices with batches of their own, and values to fill in that are not zero.
    """
    numbers = dimension_numbers
    fill = GatherScatterMode.from_any(mode) == GatherScatterMode.FILL_OR_DROP
    if numbers.operand_batching_dims or (fill and fill_value != 0):
        raise NotImplementedError(
            "bcoo_gather: operands and indices have no batches in common, and what is filled in is "
            "zero. Map with vmap, or make the operand dense: M.todense()."
        )
    at = jnp.asarray(start_indices)
    sizes, limits = tuple(slice_sizes), np.subtract(operand.shape, slice_sizes)

    def part(at: Any) -> BCOO:
        starts: list[Any] = [jnp.zeros((), at.dtype)] * operand.ndim
        for k, d in enumerate(numbers.start_index_map):
            starts[d] = at[k]
        found = bcoo_dynamic_slice(operand, starts, sizes)
        if fill:
            ends = jnp.asarray([limits[d] for d in numbers.start_index_map], at.dtype)
            found = found._with(jnp.where(((at >= 0) & (at <= ends)).all(), found.data, 0))
        return bcoo_squeeze(found, dimensions=numbers.collapsed_slice_dims)

    batch = at.ndim - 1
    found = each_batch(part, batch)(at)
    places = [d for d in range(found.ndim) if d not in numbers.offset_dims]
    order = [*places, *numbers.offset_dims]
    if order == list(range(found.ndim)):
        return found
    return bcoo_transpose(
        bcoo_update_layout(found, n_batch=0, n_dense=0), permutation=np.argsort(order).tolist()
    )


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """Turn axes around."""
    mat = full_batch(operand)
    axes = {d % mat.ndim for d in dimensions}
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = [d for d in axes if d < b]
    data = lax.rev(mat.data, (*batch, *(d - mat.n_sparse + 1 for d in axes if d >= s)))
    indices = lax.rev(mat.indices, batch)
    turned = np.asarray([k in axes for k in range(b, s)])
    ends = np.asarray(sparse_shape(mat), indices.dtype)
    kept = inside(indices, sparse_shape(mat))[..., None]
    if turned.any():
        indices = jnp.where(kept & turned, ends - 1 - indices, indices)
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Put sparse arrays one after the other along an axis."""
    operands = list(operands)
    if not operands:
        raise ValueError("bcoo_concatenate: there must be at least one operand.")
    axis = dimension % operands[0].ndim
    if len({(m.n_batch, m.n_dense) for m in operands}) > 1:
        operands = [bcoo_update_layout(m, n_batch=0, n_dense=0) for m in operands]
    mats = [full_batch(m) for m in operands]
    first = mats[0]
    b, s = first.n_batch, first.n_batch + first.n_sparse
    shape = list(first.shape)
    shape[axis] = sum(m.shape[axis] for m in mats)
    if axis < b or axis >= s:
        nse = max(m.nse for m in mats)
        mats = [_padded(m, nse) for m in mats]
        data = jnp.concatenate(
            [m.data for m in mats], axis if axis < b else axis - first.n_sparse + 1
        )
        if axis < b:
            indices = jnp.concatenate([m.indices for m in mats], axis)
            return BCOO((data, indices), shape=shape)
        mats = [bcoo_update_layout(m, n_dense=0) for m in mats]
        return bcoo_concatenate(mats, dimension=axis)
    columns, start = [], 0
    for m in mats:
        shift = np.zeros(first.n_sparse, m.indices.dtype)
        shift[axis - b] = start
        kept = inside(m.indices, sparse_shape(m))[..., None]
        ends = np.asarray(shape[b:s], m.indices.dtype)
        columns.append(jnp.where(kept, m.indices + shift, ends))
        start += m.shape[axis]
    data = jnp.concatenate([m.data for m in mats], b)
    return BCOO((data, jnp.concatenate(columns, b)), shape=shape)


def _padded(mat: BCOO, nse: int) -> BCOO:
    """Return the array with room for more elements."""
    if mat.nse == nse:
        return mat
    more = BCOO._empty(
        mat.shape, dtype=mat.dtype, index_dtype=mat.indices.dtype, n_batch=mat.n_batch,
        n_dense=mat.n_dense, nse=nse - mat.nse,
    )  # fmt: skip
    data = jnp.concatenate([mat.data, more.data], mat.n_batch)
    return BCOO((data, jnp.concatenate([mat.indices, more.indices], mat.n_batch)), shape=mat.shape)
