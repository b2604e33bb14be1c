"""Operations that rename places: broadcasting, reshaping, transposing, tiling; and iota."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from ..core.apart import another
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import canonicalize_dtype
from ..core.forms import Iota
from ..core.hooks import cut_as
from ..core.primitive import Missing, Primitive
from ..core.record import known_of, thin_of
from ..core.trace import bind
from ..errors import ShapeError
from .kit import calls
from .kit.calls import permute, reduce_sum
from .kit.canonical import Shape, as_array, canonical_axis, canonical_ints, canonical_shape
from .kit.checks import NUMBER, check_kind
from .kit.declare import reindexing
from .kit.moves import moving
from .kit.registry import register
from .kit.rules import CONSTANT, LINEAR, NOT_LINEAR, led_by, one_more_axis, shifted, transposed

__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "collapse",
    "expand_dims",
    "iota",
    "reshape",
    "squeeze",
    "tile",
    "transpose",
]


# --- broadcasting -------------------------------------------------------------------------------


def _broadcast_shape(x: Shape, *, shape: Shape, broadcast_dimensions: Shape) -> Shape:
    where = f"lax.broadcast_in_dim: broadcast_dimensions {broadcast_dimensions}"
    if len(broadcast_dimensions) != len(x):
        raise ShapeError(f"{where} must name one result axis for each axis of operand {x}.")
    if any(not 0 <= d < len(shape) for d in broadcast_dimensions):
        raise ShapeError(f"{where} must be axes of the result {shape}; operand has shape {x}.")
    if any(a >= b for a, b in pairwise(broadcast_dimensions)):
        raise ShapeError(f"{where} must be strictly increasing; use lax.transpose to reorder.")
    if any(n not in (1, shape[d]) for n, d in zip(x, broadcast_dimensions, strict=True)):
        raise ShapeError(
            f"{where}: axes of the operand must have size 1 or that of the result's axis, "
            f"got operand {x} and result {shape}."
        )
    return shape


def _thin(x: np.ndarray, *, shape: Shape, broadcast_dimensions: Shape) -> np.ndarray:
    """Return what NumPy repeats to the shape by itself."""
    if x.ndim == len(shape):
        return x
    sizes = [1] * len(shape)
    for n, d in zip(x.shape, broadcast_dimensions, strict=True):
        sizes[d] = n
    return x.reshape(sizes)


def _broadcast_eval(x: np.ndarray, *, shape: Shape, broadcast_dimensions: Shape) -> np.ndarray:
    x = _thin(x, shape=shape, broadcast_dimensions=broadcast_dimensions)
    if x.shape == shape:
        return x
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


def _known_broadcast(
    x: ShapedArray, *, shape: Shape, broadcast_dimensions: Shape
) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return what reshapes, where nothing is repeated."""
    return (lambda x: x.reshape(shape)) if prod(shape) == x.size else None


thin_of[_broadcast_eval] = _thin
known_of[_broadcast_eval] = _known_broadcast


def _broadcast_transpose(
    ct: Any, x: ShapedArray, *, shape: Shape, broadcast_dimensions: Shape
) -> Array:
    """Sum over the axes that are new or were stretched."""
    along = {d for n, d in zip(x.shape, broadcast_dimensions, strict=True) if n == shape[d]}
    return calls.reshape(reduce_sum(ct, [d for d in range(len(shape)) if d not in along]), x.shape)


def _led(axes: Shape | None, size: int = 0) -> Shape | None:
    """Return axes that follow a mapped one, and that one first."""
    return axes if axes is None else (0, *(a + 1 for a in axes))


def _print_broadcast(params: dict[str, Any]) -> dict[str, Any]:
    dims = params["broadcast_dimensions"]
    return {"broadcast_dimensions": dims} if dims else {}


broadcast_in_dim_p = reindexing(
    "broadcast_in_dim",
    shape=_broadcast_shape,
    index=lambda i, x, *, shape, broadcast_dimensions: tuple(
        0 if n == 1 else i[d] for n, d in zip(x, broadcast_dimensions, strict=True)
    ),
    eval=_broadcast_eval,
    jvp=LINEAR,
    transpose=transposed(_broadcast_transpose),
    batch=one_more_axis(shape=led_by(None), broadcast_dimensions=_led),
    print_params=_print_broadcast,
)


@moving
def broadcast_in_dim(
    operand: Any, shape: Any, broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Broadcast an array to a shape, saying which axis of the result each of its axes becomes.

    Parameters
    ----------
    operand : array_like
    shape : sequence of int
        Of the result.
    broadcast_dimensions : sequence of int
        For each axis of the operand the axis of the result it lies along; out of order, axes are
        exchanged. Axes of size 1 stretch.

    Raises
    ------
    TypeError
        For dimensions that do not fit.
    """
    if out_sharding is not None:
        return cut_as(out_sharding, broadcast_in_dim, operand, shape, broadcast_dimensions)
    shape = canonical_shape("broadcast_in_dim", shape)
    dims = canonical_ints("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    if isinstance(operand, Array) and operand.shape == shape and dims == tuple(range(len(shape))):
        return another(operand) if shape else operand
    if list(dims) != sorted(dims) and len(set(dims)) == len(dims):
        order = sorted(range(len(dims)), key=dims.__getitem__)
        operand, dims = transpose(operand, order), tuple(sorted(dims))
    return bind(broadcast_in_dim_p, operand, shape=shape, broadcast_dimensions=dims)


@moving
def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Repeat an array along new leading axes of the given sizes."""
    if out_sharding is not None:
        return cut_as(out_sharding, broadcast, operand, sizes)
    sizes = canonical_shape("broadcast", sizes)
    if not sizes:
        return as_array(operand)
    shape = aval_of(operand).shape
    n = len(sizes)
    return broadcast_in_dim(operand, sizes + shape, range(n, n + len(shape)))


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """Add leading axes of size 1 until an array has ``rank`` axes."""
    new = rank - aval_of(x).ndim
    return expand_dims(x, range(new)) if new > 0 else as_array(x)


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """Return the shape that arrays of the given shapes broadcast to, by NumPy's rule.

    Raises
    ------
    ValueError
        Where sizes differ and neither is 1.
    """
    sizes = [canonical_shape("broadcast_shapes", s) for s in shapes]
    rank = max(map(len, sizes), default=0)
    out = []
    for column in zip(*[(1,) * (rank - len(s)) + s for s in sizes], strict=True):
        wide = {n for n in column if n != 1}
        if len(wide) > 1:
            raise ValueError(f"Incompatible shapes for broadcasting: shapes={sizes}")
        out.append(wide.pop() if wide else 1)
    return tuple(out)


@moving
def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """Insert axes of size 1, so that they are the axes ``dimensions`` of the result.

    Raises
    ------
    ValueError
        For axes out of range or repeated.
    """
    shape = aval_of(array).shape
    ndim = len(shape) + len(dimensions)
    new = {canonical_axis("expand_dims", d, ndim) for d in dimensions}
    if len(new) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}")
    if not new:
        return another(as_array(array)) if shape else as_array(array)
    kept = tuple(d for d in range(ndim) if d not in new)
    sizes = iter(shape)
    out = tuple(1 if d in new else next(sizes) for d in range(ndim))
    return broadcast_in_dim(array, out, kept)


# --- axes ---------------------------------------------------------------------------------------


def _is_permutation(axes: Shape, ndim: int) -> bool:
    return sorted(axes) == list(range(ndim))


def _inverse(permutation: Shape) -> Shape:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _reshape_shape(x: Shape, *, new_sizes: Shape, dimensions: Shape | None) -> Shape:
    if dimensions is not None and not _is_permutation(dimensions, len(x)):
        raise ShapeError(
            "lax.reshape: dimensions must be a permutation of the operand's axes, got "
            f"{dimensions} for shape {x}."
        )
    if prod(x) != prod(new_sizes):
        raise ShapeError(
            f"lax.reshape: cannot reshape array of shape {x} (size {prod(x)}) into shape "
            f"{new_sizes} (size {prod(new_sizes)}): total sizes must be equal."
        )
    return new_sizes


def _reshape_index(i: Any, x: Shape, *, new_sizes: Shape, dimensions: Shape | None) -> Any:
    """Regroup indices over the smallest runs of axes whose sizes multiply to the same.

    Short runs keep quotients and remainders out of axes that a reshape leaves alone.
    """
    axes = dimensions or tuple(range(len(x)))
    old = [x[a] for a in axes]
    if not prod(old):
        return (0,) * len(x)
    out: list[Any] = [0] * len(x)
    a = b = 0
    while a < len(old):
        a0, b0, flat = a, b, 0
        m, n = old[a], 1
        a += 1
        while n != m or (b < len(new_sizes) and new_sizes[b] == 1):
            if n < m or n == m:
                flat = flat * new_sizes[b] + i[b]
                n *= new_sizes[b]
                b += 1
            else:
                m *= old[a]
                a += 1
        if (a - a0, b - b0) == (1, 1):
            out[axes[a0]] = flat
            continue
        for k in range(a - 1, a0 - 1, -1):
            out[axes[k]] = flat if k == a0 else flat % old[k]
            flat = flat // old[k]
    return tuple(out)


def _reshape_eval(x: np.ndarray, *, new_sizes: Shape, dimensions: Shape | None) -> np.ndarray:
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


def _reshape_transpose(
    ct: Any, x: ShapedArray, *, new_sizes: Shape, dimensions: Shape | None
) -> Array:
    if dimensions is None:
        return calls.reshape(ct, x.shape)
    return permute(calls.reshape(ct, [x.shape[d] for d in dimensions]), _inverse(dimensions))


reshape_p = reindexing(
    "reshape",
    shape=_reshape_shape,
    index=_reshape_index,
    eval=_reshape_eval,
    jvp=LINEAR,
    transpose=transposed(_reshape_transpose),
    batch=one_more_axis(new_sizes=led_by(None), dimensions=_led),
    print_params=lambda params: {**params, "sharding": None},
)


@moving
def reshape(
    operand: Any,
    new_sizes: Any,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Lay an array's elements out in a new shape, the last axis fastest.

    Parameters
    ----------
    operand : array_like
    new_sizes : sequence of int
        Sizes of the result, all known: ``-1`` is for `fnarray.numpy.reshape`.
    dimensions : sequence of int, optional
        Order in which to read the operand's axes.

    Raises
    ------
    TypeError
        Where the number of elements differs.
    """
    if out_sharding is not None:
        return cut_as(out_sharding, reshape, operand, new_sizes, dimensions)
    sizes = canonical_shape("reshape", new_sizes)
    dims = None
    if dimensions is not None:
        dims = canonical_ints("reshape", "dimensions", dimensions)
        if dims == tuple(range(aval_of(operand).ndim)):
            dims = None
    if dims is None and isinstance(operand, Array) and operand.shape == sizes:
        return operand if sizes else another(operand)
    return bind(reshape_p, operand, new_sizes=sizes, dimensions=dims)


@moving
def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge the axes from ``start_dimension`` up to, not including, ``stop_dimension``.

    Raises
    ------
    ValueError
        Where the range runs backwards.
    """
    shape = aval_of(operand).shape
    start, stop, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if stop < start:
        raise ValueError(
            f"lax.collapse: the range of axes [{start_dimension}:{stop_dimension}] of shape "
            f"{shape} runs backwards."
        )
    return reshape(operand, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


def _transpose_shape(x: Shape, *, permutation: Shape) -> Shape:
    if not _is_permutation(permutation, len(x)):
        raise ShapeError(
            f"lax.transpose: permutation must be a permutation of the operand's axes, got "
            f"{permutation} for shape {x}."
        )
    return tuple(x[p] for p in permutation)


def _transpose_index(i: Any, x: Shape, *, permutation: Shape) -> Any:
    out = [0] * len(x)
    for k, p in enumerate(permutation):
        out[p] = i[k]
    return tuple(out)


transpose_p = reindexing(
    "transpose",
    shape=_transpose_shape,
    index=_transpose_index,
    eval=lambda x, *, permutation: x.transpose(permutation),
    jvp=LINEAR,
    transpose=transposed(lambda ct, x, *, permutation: permute(ct, _inverse(permutation))),
    batch=one_more_axis(permutation=_led),
)


@moving
def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """Reorder axes: axis ``k`` of the result is axis ``permutation[k]`` of the operand.

    Raises
    ------
    TypeError
        For what is not a permutation of all axes.
    """
    permutation = canonical_ints("transpose", "permutation", permutation)
    if permutation == tuple(range(aval_of(operand).ndim)):
        return as_array(operand)
    return bind(transpose_p, operand, permutation=permutation)


def _squeeze_shape(x: Shape, *, dimensions: Shape) -> Shape:
    if any(x[d] != 1 for d in dimensions):
        raise ValueError(
            "lax.squeeze: cannot select an axis to squeeze out which has size not equal to one, "
            f"got shape {x} and dimensions {dimensions}."
        )
    return tuple(n for d, n in enumerate(x) if d not in dimensions)


def _squeeze_index(i: Any, x: Shape, *, dimensions: Shape) -> Any:
    rest = iter(i)
    return tuple(0 if d in dimensions else next(rest) for d in range(len(x)))


squeeze_p = reindexing(
    "squeeze",
    shape=_squeeze_shape,
    index=_squeeze_index,
    eval=lambda x, *, dimensions: x.reshape(_squeeze_shape(x.shape, dimensions=dimensions)),
    jvp=LINEAR,
    transpose=transposed(lambda ct, x, *, dimensions: calls.reshape(ct, x.shape)),
    batch=one_more_axis(dimensions=shifted),
)


@moving
def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """Remove axes of size 1.

    Raises
    ------
    ValueError
        For axes of another size, out of range, or repeated.
    """
    ndim = aval_of(array).ndim
    dims = tuple(sorted(canonical_axis("squeeze", d, ndim) for d in dimensions))
    if len(set(dims)) != len(dims):
        raise ValueError(f"lax.squeeze: dimensions are not unique: {tuple(dimensions)}")
    return bind(squeeze_p, array, dimensions=dims) if dims else as_array(array)


def _tile_shape(x: Shape, *, reps: Shape) -> Shape:
    if len(reps) != len(x) or any(r < 0 for r in reps):
        raise ShapeError(
            f"lax.tile: reps must be non-negative, one for each axis of shape {x}, got {reps}."
        )
    return tuple(n * r for n, r in zip(x, reps, strict=True))


def _tile_transpose(ct: Any, x: ShapedArray, *, reps: Shape) -> Array:
    pairs = [n for pair in zip(reps, x.shape, strict=True) for n in pair]
    return reduce_sum(calls.reshape(ct, pairs), range(0, len(pairs), 2))


tile_p = reindexing(
    "tile",
    shape=_tile_shape,
    index=lambda i, x, *, reps: tuple(
        k if r == 1 else k % n if n else 0 for k, n, r in zip(i, x, reps, strict=True)
    ),
    eval=lambda x, *, reps: np.tile(x, reps),
    jvp=LINEAR,
    transpose=transposed(_tile_transpose),
    batch=one_more_axis(reps=led_by(1)),
)


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """Repeat a whole array ``reps[k]`` times along axis ``k``.

    Raises
    ------
    TypeError
        Unless there is one non-negative count for each axis.
    """
    return bind(tile_p, operand, reps=canonical_ints("tile", "reps", reps))


# --- iota ---------------------------------------------------------------------------------------


def _iota_aval(*, dtype: np.dtype, shape: Shape, dimension: int) -> ShapedArray:
    check_kind("iota", dtype, NUMBER)
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"lax.iota: dimension must be an axis of the shape, got {dimension} for {shape}."
        )
    return ShapedArray(shape, dtype)


def _iota_eval(*, dtype: np.dtype, shape: Shape, dimension: int) -> np.ndarray:
    n = shape[dimension]
    line = np.arange(n, dtype=np.int64).astype(dtype)
    if len(shape) == 1:
        return line
    out = np.empty(shape, dtype)
    out[...] = line.reshape([n if d == dimension else 1 for d in range(len(shape))])
    return out


iota_p = register(
    Primitive(
        "iota",
        aval=_iota_aval,
        eval=_iota_eval,
        form=lambda ins, outs, *, dtype, shape, dimension: Iota(dimension),
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=Missing("it has no operands, hence nothing to map"),
        print_params=lambda params: {**params, "sharding": None},
    )
)


def iota(dtype: Any, size: int) -> Array:
    """Return ``0, 1, ..., size - 1`` in a dtype; integers too narrow for them wrap around."""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Array:
    """Return an array whose elements are their own index along an axis.

    Raises
    ------
    TypeError
        For bool, or a shape that is not concrete.
    ValueError
        For an axis that the shape does not have.
    """
    if out_sharding is not None:
        return cut_as(out_sharding, broadcasted_iota, dtype, shape, dimension)
    return bind(
        iota_p,
        dtype=canonicalize_dtype(dtype),
        shape=canonical_shape("iota", shape),
        dimension=operator.index(dimension),
    )
