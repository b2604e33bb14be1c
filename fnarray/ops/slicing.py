"""Operations that cut and join with static bounds: slices, reversal, concatenation, padding."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.forms import Inline, Piece, Pieces
from ..core.graph import ClosedGraph, Eqn, Graph, Var
from ..core.primitive import Primitive
from ..core.record import known_of
from ..core.tangents import is_undefined
from ..core.trace import bind
from ..errors import ShapeError
from .kit.calls import const, full, reduce_sum, select, select_n
from .kit.canonical import Shape, canonical_axis, canonical_ints
from .kit.checks import all_weak, check_same_dtypes
from .kit.declare import reindexing
from .kit.moves import moving
from .kit.registry import register
from .kit.rules import (
    LINEAR,
    instantiate,
    led_by,
    linear_in,
    one_more_axis,
    shifted,
    spread,
    transposed,
)
from .shape import broadcast_in_dim, broadcast_in_dim_p, squeeze, squeeze_p

__all__ = [
    "concatenate",
    "index_in_dim",
    "pad",
    "rev",
    "slice",
    "slice_in_dim",
    "split",
    "stack",
    "unstack",
]


# --- slices -------------------------------------------------------------------------------------


def _slice_shape(
    x: Shape, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
) -> Shape:
    steps = (1,) * len(x) if strides is None else strides
    got = f"got start {start_indices}, limit {limit_indices}, strides {strides} for shape {x}"
    if not len(start_indices) == len(limit_indices) == len(steps) == len(x):
        raise ShapeError(f"lax.slice: indices must have one entry for each axis; {got}.")
    out = []
    for n, start, limit, step in zip(x, start_indices, limit_indices, steps, strict=True):
        if not 0 <= start <= limit <= n:
            raise ShapeError(f"lax.slice: 0 <= start <= limit <= size must hold; {got}.")
        if step < 1:
            raise ShapeError(f"lax.slice: strides must be positive; {got}. Use lax.rev.")
        out.append(-(-(limit - start) // step))
    return tuple(out)


def _slice_index(
    i: Any, x: Shape, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
) -> Any:
    steps = strides or (1,) * len(x)
    return tuple(s + k * step for s, k, step in zip(start_indices, i, steps, strict=True))


def _slice_eval(
    x: np.ndarray, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
) -> np.ndarray:
    if strides is None:
        return x[tuple(map(builtins.slice, start_indices, limit_indices))]
    return x[tuple(map(builtins.slice, start_indices, limit_indices, strides))]


def _known_slice(
    x: ShapedArray, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
) -> Callable[[np.ndarray], np.ndarray]:
    given = start_indices, limit_indices, strides or (None,) * len(start_indices)
    return operator.itemgetter(tuple(map(builtins.slice, *given)))


known_of[_slice_eval] = _known_slice


def _slice_transpose(
    ct: Any,
    x: ShapedArray,
    *,
    start_indices: Shape,
    limit_indices: Shape,
    strides: Shape | None,
) -> Array:
    """Put the elements back where they were taken, between zeros."""
    config = []
    steps = strides or (1,) * x.ndim
    for n, start, k, step in zip(x.shape, start_indices, ct.shape, steps, strict=True):
        config.append((start, n - start - (k - 1) * step - 1 if k else n - start, step - 1))
    return bind(pad_p, ct, const(ct, 0), padding_config=tuple(config))


slice_p = reindexing(
    "slice",
    shape=_slice_shape,
    index=_slice_index,
    eval=_slice_eval,
    jvp=LINEAR,
    transpose=transposed(_slice_transpose),
    batch=one_more_axis(
        start_indices=led_by(0),
        limit_indices=led_by(None),
        strides=lambda steps, size: None if steps is None else (1, *steps),
    ),
)


@moving
def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Cut a box out of an array, with static bounds that must lie within it.

    Parameters
    ----------
    operand : array_like
    start_indices, limit_indices : sequence of int
        First index, and one past the last, along each axis.
    strides : sequence of int, optional
        Positive steps.

    Raises
    ------
    TypeError
        For bounds outside the array: they are neither clamped nor counted from the end.
    """
    return bind(
        slice_p,
        operand,
        start_indices=canonical_ints("slice", "start_indices", start_indices),
        limit_indices=canonical_ints("slice", "limit_indices", limit_indices),
        strides=None if strides is None else canonical_ints("slice", "strides", strides),
    )


@moving
def slice_in_dim(
    operand: Any,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Slice along one axis; negative bounds count from its end, None is the whole of it."""
    shape = aval_of(operand).shape
    axis = canonical_axis("slice_in_dim", axis, len(shape))
    start, limit, strides = [0] * len(shape), list(shape), [1] * len(shape)

    def bound(index: int | None, default: int) -> int:
        if index is None:
            return default
        (index,) = canonical_ints("slice_in_dim", "bound", (index,))
        return index + shape[axis] if index < 0 else index

    start[axis] = bound(start_index, 0)
    limit[axis] = bound(limit_index, shape[axis])
    strides[axis] = stride
    return slice(operand, start, limit, strides)


@moving
def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Take one static index along an axis, keeping the axis (of size 1) or dropping it.

    Raises
    ------
    IndexError
        For an index out of range.
    """
    shape = aval_of(operand).shape
    axis = canonical_axis("index_in_dim", axis, len(shape))
    (at,) = canonical_ints("index_in_dim", "index", (index,))
    if not -shape[axis] <= at < shape[axis]:
        raise IndexError(
            f"lax.index_in_dim: index {at} is out of bounds for axis {axis} with size {shape[axis]}"
        )
    at %= shape[axis]
    row = slice_in_dim(operand, at, at + 1, 1, axis)
    return row if keepdims else squeeze(row, (axis,))


def _rev_shape(x: Shape, *, dimensions: Shape) -> Shape:
    if any(not 0 <= d < len(x) for d in dimensions) or len(set(dimensions)) != len(dimensions):
        raise ShapeError(
            f"lax.rev: dimensions must be distinct axes of shape {x}, got {dimensions}."
        )
    return x


rev_p = reindexing(
    "rev",
    shape=_rev_shape,
    index=lambda i, x, *, dimensions: tuple(
        (n - 1) - k if d in dimensions else k for d, (k, n) in enumerate(zip(i, x, strict=True))
    ),
    eval=lambda x, *, dimensions: np.flip(x, dimensions),
    jvp=LINEAR,
    transpose=transposed(lambda ct, x, *, dimensions: rev(ct, dimensions)),
    batch=one_more_axis(dimensions=shifted),
)


@moving
def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """Reverse the order of elements along axes.

    Raises
    ------
    TypeError
        For axes that are negative, out of range or repeated.
    """
    return bind(rev_p, operand, dimensions=canonical_ints("rev", "dimensions", dimensions))


# --- joining and splitting ----------------------------------------------------------------------


def _concatenate_aval(*avals: ShapedArray, dimension: int) -> ShapedArray:
    check_same_dtypes("concatenate", avals)
    first = avals[0].shape
    got = ", ".join(str(a.shape) for a in avals)
    if any(a.ndim != len(first) for a in avals):
        raise ShapeError(f"lax.concatenate: operands must have equal ranks, got {got}.")
    if not 0 <= dimension < len(first):
        raise ShapeError(f"lax.concatenate: dimension {dimension} out of bounds for {got}.")
    for a in avals:
        if (*a.shape[:dimension], *a.shape[dimension + 1 :]) != (
            *first[:dimension],
            *first[dimension + 1 :],
        ):
            raise ShapeError(
                f"lax.concatenate: shapes may differ only in dimension {dimension}, got {got}."
            )
    joined = sum(a.shape[dimension] for a in avals)
    shape = (*first[:dimension], joined, *first[dimension + 1 :])
    return ShapedArray(shape, avals[0].dtype, all_weak(avals))


def _concatenate_form(ins: tuple[ShapedArray, ...], outs: Any, *, dimension: int) -> Pieces:
    rank = ins[0].ndim
    starts = accumulate((a.shape[dimension] for a in ins), initial=0)
    zero, one = (0,) * rank, (1,) * rank
    return Pieces(
        tuple(
            Piece(k, zero, a.shape, (*zero[:dimension], at, *zero[dimension + 1 :]), one)
            for k, (a, at) in enumerate(zip(ins, starts, strict=False))
            if a.size
        )
    )


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list[Any]:
    stops = list(accumulate(x.shape[dimension] for x in operands))
    return [
        slice_in_dim(ct, stop - x.shape[dimension], stop, 1, dimension) if is_undefined(x) else None
        for x, stop in zip(operands, stops, strict=True)
    ]


concatenate_p = register(
    Primitive(
        "concatenate",
        aval=_concatenate_aval,
        eval=lambda *xs, dimension: np.concatenate(xs, dimension),
        form=_concatenate_form,
        jvp=linear_in(),
        transpose=_concatenate_transpose,
        batch=one_more_axis(dimension=shifted),
    )
)


@moving
def concatenate(operands: Sequence[Any], dimension: int) -> Array:
    """Join arrays of one dtype along an axis.

    Raises
    ------
    TypeError
        For dtypes that differ, or shapes that differ elsewhere than in ``dimension``.
    ValueError
        For no arrays.
    """
    if not len(operands):
        raise ValueError("lax.concatenate requires a non-empty sequence of arrays.")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    return bind(concatenate_p, *operands, dimension=operator.index(dimension))


def _split_aval(x: ShapedArray, *, sizes: Shape, axis: int) -> tuple[ShapedArray, ...]:
    if any(n < 0 for n in sizes) or sum(sizes) != x.shape[axis]:
        raise ValueError(
            f"lax.split: sizes must be non-negative and add up to {x.shape[axis]}, the size of "
            f"axis {axis}, got {sizes}."
        )
    return tuple(x.update(shape=(*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes)


def _cuts(name: str, x: ShapedArray, outs: Any, sizes: Shape, axis: int, drop: bool) -> Inline:
    """Stand for the slices that parts along an axis are, less the axis where it is dropped."""
    source = Var(x)
    parts = tuple(map(Var, outs))
    eqns, at = [], 0
    for part, n in zip(parts, sizes, strict=True):
        start, limit = [0] * x.ndim, list(x.shape)
        start[axis], limit[axis] = at, at + n
        at += n
        cut = Var(x.update(shape=(*x.shape[:axis], n, *x.shape[axis + 1 :]))) if drop else part
        params = {"start_indices": tuple(start), "limit_indices": tuple(limit), "strides": None}
        eqns.append(Eqn(slice_p, (source,), (cut,), params))
        if drop:
            eqns.append(Eqn(squeeze_p, (cut,), (part,), {"dimensions": (axis,)}))
    return Inline(ClosedGraph(Graph((), (source,), tuple(eqns), parts, name)))


split_p = register(
    Primitive(
        "split",
        aval=_split_aval,
        eval=lambda x, *, sizes, axis: np.split(x, list(accumulate(sizes))[:-1], axis),
        form=lambda ins, outs, *, sizes, axis: _cuts("split", ins[0], outs, sizes, axis, False),
        multiple_results=True,
        jvp=LINEAR,
        transpose=transposed(
            lambda cts, x, *, sizes, axis: concatenate([*map(instantiate, cts)], axis)
        ),
        batch=one_more_axis(axis=shifted),
    )
)


@moving
def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cut an array into parts of the given sizes along an axis.

    Raises
    ------
    ValueError
        For sizes that are negative or do not add up, or an axis out of range.
    """
    return bind(
        split_p,
        operand,
        sizes=canonical_ints("split", "sizes", sizes),
        axis=canonical_axis("split", axis, aval_of(operand).ndim),
    )


def _stack_aval(*avals: ShapedArray, axis: int) -> ShapedArray:
    check_same_dtypes("stack", avals)
    shape = avals[0].shape
    if any(a.shape != shape for a in avals):
        got = ", ".join(str(a.shape) for a in avals)
        raise ValueError(f"lax.stack: operands must have equal shapes, got {got}.")
    return ShapedArray((*shape[:axis], len(avals), *shape[axis:]), avals[0].dtype, all_weak(avals))


def _stack_form(ins: tuple[ShapedArray, ...], outs: Any, *, axis: int) -> Inline:
    """Stand for the concatenation that a stack is, of operands with an axis of size 1 more."""
    sources = tuple(map(Var, ins))
    shape = ins[0].shape
    wide = (*shape[:axis], 1, *shape[axis:])
    dims = tuple(d for d in range(len(wide)) if d != axis)
    rows = tuple(Var(a.update(shape=wide)) for a in ins)
    out = Var(outs[0])
    params = {"shape": wide, "broadcast_dimensions": dims}
    eqns = [
        Eqn(broadcast_in_dim_p, (x,), (row,), params) for x, row in zip(sources, rows, strict=True)
    ]
    eqns.append(Eqn(concatenate_p, rows, (out,), {"dimension": axis}))
    return Inline(ClosedGraph(Graph((), sources, tuple(eqns), (out,), "stack")))


def _stack_transpose(ct: Any, *operands: Any, axis: int) -> list[Any]:
    parts = bind(unstack_p, ct, axis=axis)
    return [part if is_undefined(x) else None for x, part in zip(operands, parts, strict=True)]


stack_p = register(
    Primitive(
        "stack",
        aval=_stack_aval,
        eval=lambda *xs, axis: np.stack(xs, axis),
        form=_stack_form,
        jvp=linear_in(),
        transpose=_stack_transpose,
        batch=one_more_axis(axis=shifted),
    )
)


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Join arrays of one shape and dtype along a new axis.

    Raises
    ------
    TypeError
        For dtypes that differ.
    ValueError
        For shapes that differ, an axis out of range, or no arrays.
    """
    if not len(operands):
        raise ValueError("lax.stack requires a non-empty sequence of arrays.")
    axis = canonical_axis("stack", axis, aval_of(operands[0]).ndim + 1)
    return bind(stack_p, *operands, axis=axis)


unstack_p = register(
    Primitive(
        "unstack",
        aval=lambda x, *, axis: (
            (x.update(shape=(*x.shape[:axis], *x.shape[axis + 1 :])),) * x.shape[axis]
        ),
        eval=lambda x, *, axis: tuple(np.moveaxis(x, axis, 0)),
        form=lambda ins, outs, *, axis: _cuts(
            "unstack", ins[0], outs, (1,) * len(outs), axis, True
        ),
        multiple_results=True,
        jvp=LINEAR,
        transpose=transposed(lambda cts, x, *, axis: stack([*map(instantiate, cts)], axis)),
        batch=one_more_axis(axis=shifted),
    )
)


def unstack(x: Any, axis: int = 0) -> tuple[Array, ...]:
    """Return the arrays that an array is a stack of, along an axis.

    Raises
    ------
    ValueError
        For an axis out of range.
    """
    shape = aval_of(x).shape
    axis = canonical_axis("unstack", axis, len(shape))
    return tuple(bind(unstack_p, x, axis=axis)) if shape[axis] else ()


# --- padding ------------------------------------------------------------------------------------


PaddingConfig = tuple[tuple[int, int, int], ...]


def _pad_aval(x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig) -> ShapedArray:
    if x.dtype != value.dtype:
        raise TypeError(
            "lax.pad: operand and padding_value must have the same dtype, got "
            f"{x.dtype} and {value.dtype}."
        )
    got = f"got {padding_config} for shape {x.shape}"
    if value.shape:
        raise ValueError(f"lax.pad: padding_value must be a scalar, got shape {value.shape}.")
    if len(padding_config) != x.ndim:
        raise ValueError(f"lax.pad: padding_config must have one entry for each axis; {got}.")
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(f"lax.pad: interior padding must not be negative; {got}.")
    shape = tuple(
        n + low + high + max(n - 1, 0) * interior
        for n, (low, high, interior) in zip(x.shape, padding_config, strict=True)
    )
    if any(n < 0 for n in shape):
        raise ValueError(f"lax.pad: negative padding cuts more than there is; {got}.")
    return ShapedArray(shape, x.dtype, all_weak((x, value)))


def _pad_piece(x: Shape, out: Shape, config: PaddingConfig) -> Piece:
    """Return the box of the operand that negative padding leaves, and where it goes."""
    start, extents, offset = [], [], []
    for n, m, (low, _, interior) in zip(x, out, config, strict=True):
        step = interior + 1
        first = -(low // step) if low < 0 else 0
        last = min(n, -((low - m) // step))  # elements e with low + e * step < m
        start.append(first)
        extents.append(max(last - first, 0))
        offset.append(low + first * step)
    return Piece(0, tuple(start), tuple(extents), tuple(offset), tuple(c[2] + 1 for c in config))


def _pad_eval(x: np.ndarray, value: np.ndarray, *, padding_config: PaddingConfig) -> np.ndarray:
    shape = tuple(
        n + low + high + max(n - 1, 0) * interior
        for n, (low, high, interior) in zip(x.shape, padding_config, strict=True)
    )
    out = np.empty(shape, x.dtype)
    out[...] = value
    piece = _pad_piece(x.shape, shape, padding_config)
    if all(piece.extents):
        boxes = zip(piece.start, piece.extents, piece.offset, piece.stride, strict=True)
        source, target = [], []
        for start, n, offset, step in boxes:
            source.append(builtins.slice(start, start + n))
            target.append(builtins.slice(offset, offset + (n - 1) * step + 1, step))
        out[tuple(target)] = x[tuple(source)]
    return out


def _pad_form(ins: Any, outs: Any, *, padding_config: PaddingConfig) -> Pieces:
    piece = _pad_piece(ins[0].shape, outs[0].shape, padding_config)
    return Pieces((piece,) if all(piece.extents) else (), fill=1)


def _gaps(shape: Shape, config: PaddingConfig) -> Array:
    """Return where padding an array of a shape puts the padding value."""
    inside = full(ShapedArray(shape, np.dtype(bool)), False)
    return bind(pad_p, inside, const(inside, True), padding_config=config)


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: PaddingConfig) -> list[Any]:
    """Put zeros where elements were cut off, then take those of the operand out."""
    dx = dvalue = None
    if is_undefined(x):
        cut = tuple((max(-low, 0), max(-high, 0), 0) for low, high, _ in padding_config)
        dx = bind(pad_p, ct, const(ct, 0), padding_config=cut) if any(map(any, cut)) else ct
        dx = slice(
            dx,
            [max(low, 0) for low, _, _ in padding_config],
            [n - max(high, 0) for n, (_, high, _) in zip(dx.shape, padding_config, strict=True)],
            [interior + 1 for _, _, interior in padding_config],
        )
    if is_undefined(value):
        dvalue = reduce_sum(select(_gaps(x.shape, padding_config), ct, 0), range(ct.ndim))
    return [dx, dvalue]


def _pad_batch(size: int, operands: Any, batched: Any, *, padding_config: PaddingConfig) -> Array:
    x, value = operands
    if not batched[0]:
        x = spread(x, size)
    config = ((0, 0, 0), *padding_config)
    if not batched[1]:
        return bind(pad_p, x, value, padding_config=config)
    padded = bind(pad_p, x, const(x, 0), padding_config=config)
    values = broadcast_in_dim(value, padded.shape, (0,))
    return select_n(_gaps(x.shape, config), padded, values)


pad_p = register(
    Primitive(
        "pad",
        aval=_pad_aval,
        eval=_pad_eval,
        form=_pad_form,
        jvp=linear_in(),
        transpose=_pad_transpose,
        batch=_pad_batch,
    )
)


def pad(operand: Any, padding_value: Any, padding_config: Sequence[Sequence[int]]) -> Array:
    """Surround an array by a value, and spread it over its elements' gaps.

    Parameters
    ----------
    operand : array_like
    padding_value : scalar array of the operand's dtype
    padding_config : sequence of (low, high, interior)
        For each axis: how many values before the first element, after the last, and between
        neighbours. Negative ``low`` and ``high`` cut elements off, after interior padding.

    Raises
    ------
    TypeError
        For dtypes that differ.
    ValueError
        For a configuration that does not fit the operand.
    """
    config = tuple(canonical_ints("pad", "padding_config", c) for c in padding_config)
    if any(len(c) != 3 for c in config):
        raise ValueError(f"lax.pad: entries must be (low, high, interior), got {config}.")
    return bind(pad_p, operand, padding_value, padding_config=config)
