"""Sorting along an axis, by one key or several, and selection of the largest elements.

Floats are ordered through their bits, read as unsigned integers: one order for every dtype, and
32-bit keys can carry their positions, so that NumPy's fastest sort, which is not stable, serves.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import bool_, float32, int32, is_complex, is_float
from ..core.forms import KernelRef, Library
from ..core.primitive import Primitive, RuleOf
from ..core.tangents import Zero, is_zero, tangent_aval
from ..core.trace import bind
from ._windows import GatherDimensionNumbers, GatherScatterMode
from .gather import gather_p
from .kit.calls import expand, neg
from .kit.declare import inlined, kernel_call
from .kit.rules import one_more_axis, shifted
from .reduce import HALVES
from .shape import broadcasted_iota

__all__ = ["approx_max_k", "approx_min_k", "sort", "sort_key_val", "top_k"]

#: Operands that the native kernel takes at most.
_NATIVE_OPERANDS = 3
#: Keys of so many numbers, or in lines of so few, are sorted as they are: 300 in 4 us and 1,000 in
#: 18, 10,000 lines of ten in 1.1 ms; packed, as integers whose low half is their place, in 14, 21
#: and 1.1. Longer ones take a third of the time packed.
_PACKED, _LINE = 1000, 10
#: So many largest elements, of lines of so many, are kept in order, and others in a heap, whose
#: text takes LLVM three times as long (of 500 42 ms and 14). Two in lines of 8 took 0.82 of the
#: time, ten in lines of 50 0.73, five of 500 1.03, of 32,000 1.5.
_INSERTED, _SCANNED = 16, 1 << 12


#: By the size of a float: integers of that size, and which of them -0 is.
_MINUS_ZERO = {size: (np.dtype(f"i{size}"), np.iinfo(f"i{size}").min) for size in (4, 8)}


# --- orders as integers -------------------------------------------------------------------------


def _ordinals(x: np.ndarray, *, total: bool = False) -> np.ndarray:
    """Return unsigned integers in the order of ``x``.

    NaN is above everything and zeros are equal; with ``total`` by IEEE's total order, where
    -NaN is below everything and -0 below +0.
    """
    if x.dtype == bool_ or x.dtype.kind == "u":
        return x.view(f"u{x.dtype.itemsize}")
    width = 8 * x.dtype.itemsize
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    sign = unsigned.type(1 << (width - 1))
    bits = x.view(unsigned)
    if x.dtype.kind == "i":
        return bits ^ sign
    if not total:
        infinity = np.array(np.inf, x.dtype).view(unsigned)[()]
        bits = np.where((bits & ~sign) > infinity, ~sign, bits)
        bits = np.where(bits == sign, unsigned.type(0), bits)
    return np.where(bits & sign, ~bits, bits | sign)


def _packed(ordinals: np.ndarray, axis: int) -> np.ndarray:
    """Return 64-bit integers that order by ordinals of up to 32 bits, then by position."""
    n = ordinals.shape[axis]
    position = np.arange(n, dtype=np.uint64).reshape(
        [-1 if a == axis else 1 for a in range(ordinals.ndim)]
    )
    return (ordinals.astype(np.uint64) << np.uint64(32)) | position


def _positions(packed: np.ndarray) -> np.ndarray:
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _stable_order(key: np.ndarray, axis: int) -> np.ndarray:
    """Return the positions that sort a key, ties in order."""
    if key.dtype in HALVES:
        return np.argsort(_ordinals(key), axis=axis, kind="stable")
    if key.dtype.itemsize != 4 or key.size <= _PACKED or key.shape[axis] <= _LINE:
        return np.argsort(key, axis=axis, kind="stable")
    packed = _packed(_ordinals(key), axis)
    packed.sort(axis=axis)
    return _positions(packed)


def _sorted_values(x: np.ndarray, axis: int) -> np.ndarray:
    """Sort one real operand; stable in what can be told apart, the signs of zeros."""
    if x.dtype in HALVES:
        return _sorted_values(x.astype(float32), axis).astype(x.dtype)
    if x.dtype.kind == "f":
        bits, lowest = _MINUS_ZERO[x.dtype.itemsize]
        is_zero = x.view(bits) == lowest
        found = b"\1" in is_zero.tobytes() if x.size <= _PACKED else is_zero.any()
        if found:
            return np.sort(x, axis=axis, kind="stable")
    out = x.copy()
    out.sort(axis)
    return out


# --- derivatives --------------------------------------------------------------------------------


def _moved(g: Any, out: Any, positions: Any, axis: int) -> Any:
    """Return the tangent of a result that holds an operand's elements, from where along an axis."""
    if is_zero(g):
        return Zero(tangent_aval(out.aval))
    others = tuple(d for d in range(g.ndim) if d != axis)
    return bind(
        gather_p,
        g,
        expand(positions, g.ndim),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=(1,) * g.ndim,
        unique_indices=True,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _sort_jvp(
    primals: Any, tangents: Any, *, dimension: int, **params: Any
) -> tuple[list[Any], list[Any]]:
    """Move tangents as their operands move: positions are sorted along."""
    places = broadcasted_iota(int32, primals[0].shape, dimension)
    *outs, places = bind(sort_p, *primals, places, dimension=dimension, **params)
    moved = zip(tangents, outs, strict=True)
    return outs, [_moved(g, out, places, dimension) for g, out in moved]


def _largest_jvp(prim: Primitive) -> Callable[..., Any]:
    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[list[Any], list[Any]]:
        values, places = bind(prim, *primals, **params)
        axis = params["axis"] if "axis" in params else params["reduction_dimension"]
        moved = _moved(tangents[0], values, places, axis)
        return [values, places], [moved, Zero(tangent_aval(places.aval))]

    return jvp


# --- sort ---------------------------------------------------------------------------------------


def _sort_aval(
    *avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int
) -> tuple[ShapedArray, ...]:
    if any(a.shape != avals[0].shape for a in avals):
        got = ", ".join(str(a.shape) for a in avals)
        raise TypeError(f"lax.sort: operands must have one shape, got {got}.")
    return avals


def _sort_eval(
    *operands: Any, dimension: int, is_stable: bool, num_keys: int
) -> tuple[np.ndarray, ...]:
    first = operands[0]
    if len(operands) == 1 and not is_complex(first.dtype):
        return (_sorted_values(first, dimension),)
    keys = []
    for x in operands[:num_keys]:
        keys += [x.real, x.imag] if is_complex(x.dtype) else [x]
    order: np.ndarray | None = None
    for key in reversed(keys):
        if order is None:
            order = _stable_order(np.ascontiguousarray(key), dimension)
        else:
            finer = _stable_order(np.take_along_axis(key, order, dimension), dimension)
            order = np.take_along_axis(order, finer, dimension)
    assert order is not None
    if order.ndim == 1:
        return tuple(x[order] for x in operands)
    return tuple(np.take_along_axis(x, order, dimension) for x in operands)


def _rows(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def _sort_call(ins: Any, outs: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Library:
    comparable = all(not is_complex(a.dtype) and a.dtype not in HALVES for a in ins[:num_keys])
    native = comparable and len(ins) <= _NATIVE_OPERANDS and ins[0].size
    statics = (*_rows(ins[0].shape, dimension), num_keys)
    return Library(KernelRef("sort", f"sort_{len(ins)}"), statics, ins[0].size, bool(native))


sort_p = kernel_call(
    "sort",
    aval=_sort_aval,
    eval=_sort_eval,
    call=_sort_call,
    multiple_results=True,
    jvp=_sort_jvp,
    batch=one_more_axis(dimension=shifted),
)


def _axis(name: str, axis: Any, ndim: int) -> int:
    """Return an axis counted from the front; raise `ValueError` where there is none."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"lax.{name}: axis must be in [{-ndim}, {ndim}), got {axis}.")
    return axis % ndim


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort an array along an axis, or several arrays by the first ones.

    NaN sorts last, zeros are equal whatever their signs, complex numbers order by real and then
    imaginary part. Ties keep their order (also where ``is_stable`` is False).

    Parameters
    ----------
    operand : array, or sequence of arrays of one shape
    dimension : int
        May count from the end.
    is_stable : bool
    num_keys : int
        How many operands are keys; ties in one are broken by the next.

    Returns
    -------
    array, or tuple of arrays

    Raises
    ------
    TypeError
        For no operands, or different shapes.
    ValueError
        For an axis or ``num_keys`` out of range.
    """
    several = isinstance(operand, tuple | list)
    operands = tuple(operand) if several else (operand,)
    if not operands:
        raise TypeError("lax.sort: at least one operand is needed, got none.")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(
            f"lax.sort: num_keys must be between 1 and the number of operands, {len(operands)}, "
            f"got {num_keys}."
        )
    dimension = _axis("sort", dimension, aval_of(operands[0]).ndim)
    outs = bind(
        sort_p, *operands, dimension=dimension, is_stable=bool(is_stable), num_keys=int(num_keys)
    )
    return tuple(outs) if several else outs[0]


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort ``keys`` along an axis and rearrange ``values`` alike; see `sort`."""
    return sort((keys, values), dimension, is_stable, 1)


# --- the largest --------------------------------------------------------------------------------


def _largest(x: np.ndarray, k: int, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``k`` largest, descending by IEEE's total order, and their positions."""
    inner = axis == x.ndim - 1
    x = x if inner else np.ascontiguousarray(np.moveaxis(x, axis, -1))
    falling = ~_ordinals(x, total=True)
    if falling.dtype.itemsize <= 4 and falling.size > _PACKED:
        packed = _packed(falling, x.ndim - 1)
        if 0 < 4 * k < x.shape[-1]:
            packed = np.partition(packed, k - 1, axis=-1)
        order = _positions(np.sort(packed[..., :k] if 4 * k < x.shape[-1] else packed, axis=-1))
    else:
        order = np.argsort(falling, axis=-1, kind="stable")
    order = order[..., :k]
    values = x[order] if x.ndim == 1 else np.take_along_axis(x, order, -1)
    if inner:
        return values, order.astype(int32)
    return np.moveaxis(values, -1, axis), np.moveaxis(order, -1, axis).astype(int32)


def _top_k_aval(x: ShapedArray, *, axis: int, k: int) -> tuple[ShapedArray, ShapedArray]:
    if is_complex(x.dtype):
        raise ValueError(f"lax.top_k: complex numbers have no largest, got {x.str_short()}.")
    if k < 0:
        raise ValueError(f"lax.top_k: k must not be negative, got {k}.")
    if k > x.shape[axis]:
        raise ValueError(
            f"lax.top_k: k must be at most the size {x.shape[axis]} of axis {axis} of shape "
            f"{x.shape}, got {k}."
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return x.update(shape=shape), ShapedArray(shape, int32, x.weak_type)


def _top_k_eval(x: np.ndarray, *, axis: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    return _largest(x, k, axis)


def _top_k_call(ins: Any, outs: Any, *, axis: int, k: int) -> Library:
    (x,) = ins
    native = x.dtype.kind in "iuf" and x.dtype not in HALVES and x.size and k
    statics = (*_rows(x.shape, axis), k)
    few = k <= _INSERTED and x.shape[axis] <= _SCANNED
    kernel = "top_few" if few else "top_k"
    return Library(KernelRef("sort", kernel), statics, x.size, bool(native))


top_k_p = kernel_call(
    "top_k",
    aval=_top_k_aval,
    eval=_top_k_eval,
    call=_top_k_call,
    multiple_results=True,
    jvp=RuleOf(_largest_jvp),
    batch=one_more_axis(axis=shifted),
)


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Array]:
    """Return the ``k`` largest elements along an axis, descending, and their positions.

    Of equals the earlier comes first; NaN counts as largest (a NaN with its sign bit set, as
    smallest).

    Parameters
    ----------
    operand : array
        Of a real dtype or bool.
    k : int
    axis : int
        May count from the end.

    Returns
    -------
    values, indices : array
        The latter of dtype int32.

    Raises
    ------
    ValueError
        For complex operands, an axis out of range, or ``k`` negative or above the axis' size.
    """
    axis = _axis("top_k", axis, aval_of(operand).ndim)
    return bind(top_k_p, operand, axis=axis, k=operator.index(k))


# --- approximate search -------------------------------------------------------------------------


def _candidates(n: int, ndim: int, k: int, recall: float, override: int) -> int:
    """Return how many candidates an approximate search keeps before it aggregates.

    By the bound of Chern et al., *TPU-KNN* (2022): ``(1 - k) / log(recall)`` bins suffice; kept
    here for the result's shape alone.
    """
    tile = 1024 if ndim == 1 else 128
    if n <= tile:
        return n
    if k == 1:
        return tile
    bins = min(max(int((1 - k) / math.log(recall)), tile), n) if recall < 1 else n
    if override >= 0:
        bins = max(bins * n // override, 1)
    halvings = min((n // bins).bit_length() - 1, math.ceil(math.log2(math.ceil(n / tile))))
    return math.ceil(math.ceil(n / tile) / (1 << halvings)) * tile if halvings > 0 else n


def _approx_size(x: ShapedArray, params: dict[str, Any]) -> int:
    n, k = x.shape[params["reduction_dimension"]], params["k"]
    if params["aggregate_to_topk"]:
        return k
    recall, override = params["recall_target"], params["reduction_input_size_override"]
    return _candidates(n, x.ndim, k, recall, override)


def _approx_aval(x: ShapedArray, **params: Any) -> tuple[ShapedArray, ShapedArray]:
    axis, k, recall = params["reduction_dimension"], params["k"], params["recall_target"]
    if not is_float(x.dtype):
        raise ValueError(f"lax.approx_max_k: operand must be floating, got {x.str_short()}.")
    if not 0 < k <= x.shape[axis]:
        raise ValueError(
            f"lax.approx_max_k: k must be in [1, {x.shape[axis]}], the size of axis {axis} of "
            f"shape {x.shape}, got {k}."
        )
    if not 0 < recall <= 1:
        raise ValueError(f"lax.approx_max_k: recall_target must be in (0, 1], got {recall}.")
    shape = (*x.shape[:axis], _approx_size(x, params), *x.shape[axis + 1 :])
    return x.update(shape=shape), ShapedArray(shape, int32, x.weak_type)


def _approx_eval(x: np.ndarray, **params: Any) -> tuple[np.ndarray, np.ndarray]:
    axis = params["reduction_dimension"]
    size = _approx_size(ShapedArray(x.shape, x.dtype), params)
    if params["is_max_k"]:
        return _largest(x, size, axis)
    values, order = _largest(-x, size, axis)
    return -values, order


def _exactly(x: Array, *, axis: int, size: int, is_max: bool) -> Any:
    """Search by `top_k`, for the smallest among numbers of the other sign."""
    values, order = bind(top_k_p, x if is_max else neg(x), axis=axis, k=size)
    return values if is_max else neg(values), order


_exact = inlined(_exactly, many=True)


def _approx_form(ins: Any, outs: Any, **params: Any) -> Any:
    axis, is_max = params["reduction_dimension"], params["is_max_k"]
    return _exact(ins, outs, axis=axis, size=_approx_size(ins[0], params), is_max=is_max)


approx_top_k_p = kernel_call(
    "approx_top_k",
    aval=_approx_aval,
    eval=_approx_eval,
    call=_approx_form,
    multiple_results=True,
    jvp=RuleOf(_largest_jvp),
    batch=one_more_axis(reduction_dimension=shifted),
)


def _approx(
    is_max_k: bool,
    operand: Any,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> list[Array]:
    ndim = aval_of(operand).ndim
    if not ndim:
        raise TypeError("lax.approx_max_k: operand must have an axis, got a scalar.")
    return bind(
        approx_top_k_p,
        operand,
        k=operator.index(k),
        reduction_dimension=_axis("approx_max_k", reduction_dimension, ndim),
        recall_target=float(recall_target),
        is_max_k=is_max_k,
        reduction_input_size_override=int(reduction_input_size_override),
        aggregate_to_topk=bool(aggregate_to_topk),
    )


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Return the ``k`` largest elements along an axis and their positions; here exactly.

    Parameters
    ----------
    operand : array
        Of a floating dtype.
    k : int
    reduction_dimension : int
        May count from the end.
    recall_target : float
        Fraction of the true largest that must be found; all are.
    reduction_input_size_override : int
        Size that ``recall_target`` refers to, where the operand is a part of it.
    aggregate_to_topk : bool
        False keeps more than ``k`` candidates, as many as the target asks for.

    Raises
    ------
    ValueError
        For operands that are not floating, and an axis, ``k`` or ``recall_target`` out of range.
    """
    return _approx(
        True,
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Return the ``k`` smallest elements along an axis and their positions; see `approx_max_k`."""
    return _approx(
        False,
        operand,
        k,
        reduction_dimension,
        recall_target,
        reduction_input_size_override,
        aggregate_to_topk,
    )
