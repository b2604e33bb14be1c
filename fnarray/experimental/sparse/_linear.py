"""Products and sums of sparse arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...api.batching import vmap
from ...core.array import Array
from ._bcoo import (
    BCOO,
    bcoo_todense,
    bcoo_update_layout,
    columns,
    dense_shape,
    each_batch,
    fitted,
    full_batch,
    inside,
    sparse_shape,
)
from ._shape import bcoo_broadcast_in_dim

__all__ = [
    "bcoo_dot_general",
    "bcoo_dot_general_sampled",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
]

Dims = Any
#: The letter of the elements stored.
_NTH = 1 << 10


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Dims,
    precision: None = None,
    preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Any:
    """`lax.dot_general` of operands of which one or both are sparse.

    Returns
    -------
    Array or BCOO
        Sparse where both operands are.
    """
    (lc, rc), (lb, rb) = [[tuple(map(int, d)) for d in pair] for pair in dimension_numbers]
    numbers = ((lc, rc), (lb, rb))
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        out: Any = _sparse_sparse(lhs, rhs, numbers)
    elif isinstance(lhs, BCOO):
        out = _sparse_dense(lhs, jnp.asarray(rhs), numbers)
    elif isinstance(rhs, BCOO):
        out = _sparse_dense(rhs, jnp.asarray(lhs), ((rc, lc), (rb, lb)))
        # batch, then the sparse operand's axes, then the dense one's: the last two change places.
        b, own = len(lb), rhs.ndim - len(rb) - len(rc)
        order = (*range(b), *range(b + own, out.ndim), *range(b, b + own))
        out = lax.transpose(out, order)
    else:
        return lax.dot_general(
            lhs, rhs, numbers, precision=precision, preferred_element_type=preferred_element_type
        )
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def _check_sizes(a: tuple[int, ...], b: tuple[int, ...], numbers: Dims) -> None:
    (lc, rc), (lb, rb) = numbers
    for i, j in zip((*lc, *lb), (*rc, *rb), strict=True):
        if a[i] != b[j]:
            raise TypeError(
                f"bcoo_dot_general: axes {i} and {j} of shapes {a} and {b} must have one size."
            )


def _sparse_dense(mat: BCOO, dense: Array, numbers: Dims) -> Array:
    """Multiply each element stored with what it meets, and add up.

    Axes are letters: those that are contracted or batched together have one.
    """
    _check_sizes(mat.shape, dense.shape, numbers)
    (lc, rc), (lb, rb) = numbers
    mat = full_batch(mat)
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    theirs = list(range(mat.ndim, mat.ndim + dense.ndim))
    for i, j in zip((*lc, *lb), (*rc, *rb), strict=True):
        theirs[j] = i
    free = [x for x in range(mat.ndim) if x not in lc and x not in lb]
    out = [*lb, *free, *(x for x in theirs if x >= mat.ndim)]
    kept = [x for x in range(b, s) if x not in lc]
    mapped = sorted(x for x in theirs if x < b)
    looked_up = [x for x in range(b, s) if x in theirs]
    beside = [x for x in theirs if x >= s]
    # First the batches, then what is looked up at an element's place.
    dense = lax.transpose(dense, [theirs.index(x) for x in (*mapped, *looked_up, *beside)])
    behind = list(range(s, mat.ndim))
    product = list(dict.fromkeys(x for x in (*behind, *beside) if x not in lc))
    sizes = [n for x, n in enumerate(mat.shape) if x in kept]

    def one(data: Any, indices: Any, dense: Any) -> Any:
        met, letters = dense, beside
        if looked_up:
            at = tuple(indices[:, x - b] for x in looked_up)
            met, letters = dense.at[at].get(mode="fill", fill_value=0), [_NTH, *beside]
        elif mat.n_sparse and not kept:  # padding meets no zero, and is not left out below
            here = inside(indices, sparse_shape(mat))
            data = jnp.where(here.reshape(-1, *(1,) * (data.ndim - 1)), data, 0)
        terms = jnp.einsum(data, [_NTH, *behind], met, letters, [_NTH, *product])
        if not kept:
            return terms.sum(0).astype(terms.dtype)
        found = jnp.zeros((*sizes, *terms.shape[1:]), terms.dtype)
        return found.at[tuple(indices[:, x - b] for x in kept)].add(terms, mode="drop")

    fun = one
    for x in reversed(range(b)):
        fun = vmap(fun, in_axes=(0, 0, 0 if x in mapped else None))
    found = fun(mat.data, mat.indices, dense)
    axes = [*range(b), *kept, *product]
    if summed := [k for k, x in enumerate(axes) if x in lc]:
        found = found.sum(tuple(summed)).astype(found.dtype)
        axes = [x for x in axes if x not in lc]
    return lax.transpose(found, [axes.index(x) for x in out])


def _sparse_sparse(lhs: BCOO, rhs: BCOO, numbers: Dims) -> BCOO:
    """Multiply all pairs of elements; those that do not meet become padding."""
    _check_sizes(lhs.shape, rhs.shape, numbers)
    (lc, rc), (lb, rb) = numbers
    n = len(lb)
    if lhs.n_dense or rhs.n_dense:
        lhs, rhs = (bcoo_update_layout(m, n_dense=0) for m in (lhs, rhs))
    shared = lb == rb == tuple(range(n)) and lhs.n_batch == rhs.n_batch == n
    if not shared:
        lhs, rhs = (bcoo_update_layout(m, n_batch=0) for m in (lhs, rhs))
        n = 0
    lhs, rhs = full_batch(lhs), full_batch(rhs)
    pairs = [(i - n, j - n) for i, j in zip((*lb, *lc), (*rb, *rc), strict=True) if i >= n]
    of_lhs = [*(() if shared else lb), *(k for k in range(n, lhs.ndim) if k not in (*lb, *lc))]
    of_rhs = [k for k in range(n, rhs.ndim) if k not in (*rb, *rc)]
    shape = (
        *(lhs.shape[k] for k in lb),
        *(lhs.shape[k] for k in range(lhs.ndim) if k not in (*lb, *lc)),
        *(rhs.shape[k] for k in of_rhs),
    )

    def one(a: Any, at_a: Any, b: Any, at_b: Any) -> Any:
        p, q = a.shape[0], b.shape[0]
        meet = inside(at_a, sparse_shape(lhs))[:, None] & inside(at_b, sparse_shape(rhs))
        for i, j in pairs:
            meet &= at_a[:, None, i] == at_b[None, :, j]
        data = jnp.where(meet, a[:, None] * b[None], 0).reshape(p * q)
        parts = [
            *(jnp.broadcast_to(at_a[:, None, k - n], (p, q)) for k in of_lhs),
            *(jnp.broadcast_to(at_b[None, :, k - n], (p, q)) for k in of_rhs),
        ]
        if not parts:
            return data, jnp.zeros((p * q, 0), at_a.dtype)
        ends = np.asarray(shape[n:], at_a.dtype)
        indices = jnp.where(meet[..., None], jnp.stack(parts, -1), ends)
        return data, indices.reshape(p * q, len(parts))

    data, indices = each_batch(one, n)(lhs.data, lhs.indices, rhs.data, rhs.indices)
    return fitted(BCOO((data, indices), shape=shape))


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Dims) -> Array:
    """Return elements of `lax.dot_general` of dense operands at sparse indices."""
    dense = lax.dot_general(A, B, dimension_numbers)
    n = indices.ndim - 2

    def one(indices: Any, dense: Any) -> Any:
        return dense.at[columns(indices)].get(mode="fill", fill_value=0)

    return each_batch(one, n)(indices, dense)


def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Array:
    """Return the data of a sparse array times a dense one, which broadcasts."""
    v = jnp.asarray(v)
    mat = full_batch(sp_mat)
    if v.ndim > mat.ndim or any(
        n not in (1, m) for n, m in zip(v.shape[::-1], mat.shape[::-1], strict=False)
    ):
        raise ValueError(f"bcoo_multiply_dense: shape {v.shape} does not broadcast to {mat.shape}.")
    v = v.reshape((1,) * (mat.ndim - v.ndim) + v.shape)
    b = mat.n_batch
    v = jnp.broadcast_to(v, (*mat.shape[:b], *v.shape[b:]))

    def one(data: Any, indices: Any, v: Any) -> Any:
        if not indices.shape[-1]:
            return data * v[None]
        at = tuple(
            jnp.where(i < n, 0, i) if v.shape[k] == 1 else i
            for k, (i, n) in enumerate(zip(columns(indices), sparse_shape(mat), strict=True))
        )
        return data * v.at[at].get(mode="fill", fill_value=0)

    return each_batch(one, b)(mat.data, mat.indices, v)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """Multiply two sparse arrays of one shape element by element."""
    if lhs.shape != rhs.shape:
        raise ValueError(
            f"bcoo_multiply_sparse: shapes must be equal, got {lhs.shape} and {rhs.shape}."
        )
    if (lhs.n_batch, lhs.n_dense) != (rhs.n_batch, rhs.n_dense):
        lhs, rhs = (bcoo_update_layout(m, n_batch=0, n_dense=0) for m in (lhs, rhs))
    lhs, rhs = full_batch(lhs), full_batch(rhs)

    def one(a: Any, at_a: Any, b: Any, at_b: Any) -> Any:
        # What the other array has at each place of this one, duplicates added up.
        same = (at_a[:, None, :] == at_b[None, :, :]).all(-1)
        same &= inside(at_a, sparse_shape(lhs))[:, None]
        return a * jnp.tensordot(same.astype(b.dtype), b, 1)

    data = each_batch(one, lhs.n_batch)(lhs.data, lhs.indices, rhs.data, rhs.indices)
    return BCOO((data, lhs.indices), shape=lhs.shape, unique_indices=lhs.unique_indices)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """Sum along axes."""
    along = sorted({a % mat.ndim for a in axes})
    mat = full_batch(mat)
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    if any(a < b for a in along):
        # Batches that are summed are elements of one: their axis goes next to them.
        gone = [a for a in along if a < b]
        left = [a for a in range(b) if a not in gone]
        data = lax.transpose(mat.data, (*left, *gone, *range(b, mat.data.ndim)))
        indices = lax.transpose(mat.indices, (*left, *gone, b, b + 1))
        sizes = [mat.shape[a] for a in left]
        room = prod(mat.shape[a] for a in gone) * mat.nse
        data = data.reshape(*sizes, room, *dense_shape(mat))
        indices = indices.reshape(*sizes, room, mat.n_sparse)
        shape = tuple(n for a, n in enumerate(mat.shape) if a not in gone)
        mat = BCOO((data, indices), shape=shape)
        along = [a - len(gone) for a in along if a >= b]
        b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    data, indices = mat.data, mat.indices
    if dense := [a - mat.n_sparse + 1 for a in along if a >= s]:
        data = data.sum(tuple(dense)).astype(data.dtype)
    sparse = [a for a in along if a < s]
    if sparse:
        # An element that is padding along a summed axis would be none without it.
        here = inside(indices, sparse_shape(mat))
        data = jnp.where(here.reshape(*here.shape, *(1,) * (data.ndim - here.ndim)), data, 0)
        left = np.asarray([a - b for a in range(b, s) if a not in sparse], int)
        indices = indices[..., left]
    shape = tuple(n for a, n in enumerate(mat.shape) if a not in along)
    return BCOO((data, indices), shape=shape)


def matmul(a: Any, b: Any) -> Any:
    """``a @ b`` where one operand or both are sparse."""
    shapes = [tuple(np.shape(x)) if not isinstance(x, BCOO) else x.shape for x in (a, b)]
    m, n = map(len, shapes)
    if not m or not n:
        raise ValueError(
            f"matmul: operands must have axes, got shapes {shapes[0]} and {shapes[1]}."
        )
    if min(m, n) == 2 and max(m, n) > 2 and not (isinstance(a, BCOO) and isinstance(b, BCOO)):
        # One matrix for all of a batch: its rows come first, or its columns last.
        out = bcoo_dot_general(a, b, dimension_numbers=(((m - 1,), (n - 2,)), ((), ())))
        return jnp.moveaxis(out, 0, -2) if m == 2 else out
    if min(m, n) > 1 and max(m, n) > 2:
        batch = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
        lead = tuple(range(len(batch)))
        last = ((len(batch) + 1,), (len(batch),))
        both = [_in_batches(x, (*batch, *s[-2:])) for x, s in zip((a, b), shapes, strict=True)]
        return bcoo_dot_general(*both, dimension_numbers=(last, (lead, lead)))
    rc = 0 if n == 1 else n - 2
    return bcoo_dot_general(a, b, dimension_numbers=(((m - 1,), (rc,)), ((), ())))


def _in_batches(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an operand repeated along the axes before its last two."""
    if not isinstance(x, BCOO):
        return jnp.broadcast_to(x, shape)
    if x.shape == shape:
        return x
    places = range(len(shape) - x.ndim, len(shape))
    return bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=tuple(places))


def dense_of(x: Any) -> Any:
    """Return a sparse array as a dense one, others as they are."""
    return bcoo_todense(x) if isinstance(x, BCOO) else x
