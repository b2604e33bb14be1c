"""Products of vectors, matrices and tensors.

All of them are one thing: axes get labels, and two operands are summed over labels that the result
does not have. `contract` says it to ``lax.dot_general``; what sums over nothing is a multiplication
and fuses with its neighbours.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from .. import lax
from ..core.array import Array, ArrayImpl
from ..core.contraction import LINE
from ..core.dtypes import (
    as_dtype,
    bool_,
    canonicalize_dtype,
    dtype_and_weak,
    is_complex,
    lattice_result_type,
)
from ..core.eager import replayed
from ..core.hooks import cut_as
from ..core.large import is_large, is_large_product
from ..core.quiet import quietly
from ..core.trace import Tracer
from ..errors import ShapeError
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import moving
from ._join import stack
from ._promote import no_out, operands, promote_dtypes, promote_dtypes_numeric
from ._shape import array_of, axes_of, axis_of, moveaxis, ravel

__all__ = [
    "cross",
    "diagonal",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
]

Labels = Sequence[Hashable]
_LAST = "last"


# --- the one product ----------------------------------------------------------------------------


def _stretch(name: str, a: Array, la: Labels, b: Array, lb: Labels, out: Labels) -> tuple[Any, ...]:
    """Drop axes of size 1 that the other operand has longer: they broadcast."""
    size_b = dict(zip(lb, b.shape, strict=True))
    drop_a, drop_b = [], []
    for k, (label, n) in enumerate(zip(la, a.shape, strict=True)):
        m = size_b.get(label, n)
        if n == m:
            continue
        if label in out and n == 1:
            drop_a.append(k)
        elif label in out and m == 1:
            drop_b.append(lb.index(label))
        elif label in out:
            raise ValueError(
                f"numpy.{name}: Incompatible shapes for broadcasting: {a.shape} and {b.shape}."
            )
        else:
            raise ShapeError(
                f"numpy.{name}: contracting dimensions must have equal sizes, got shapes "
                f"{a.shape} and {b.shape} (sizes {n} and {m})."
            )
    kept = [[x for k, x in enumerate(ls) if k not in d] for ls, d in ((la, drop_a), (lb, drop_b))]
    return lax.squeeze(a, drop_a), kept[0], lax.squeeze(b, drop_b), kept[1]


def contract(
    name: str, a: Array, la: Labels, b: Array, lb: Labels, out: Labels, precision: Any, dtype: Any
) -> Array:
    """Multiply two arrays whose axes are labelled, and sum over labels that ``out`` lacks.

    Parameters
    ----------
    a, b : Array
        Of one dtype.
    la, lb : sequence
        A label for each axis, none twice. Labels that only one has must be in ``out``.
    out : sequence
        Labels of the result's axes, in order.
    dtype : numpy.dtype
        Of the result.

    Raises
    ------
    ValueError, TypeError
        Sizes of one label differ (and neither is 1, for a label of the result).
    """
    a, la, b, lb = _stretch(name, a, list(la), b, list(lb), out)
    shared = [x for x in la if x in lb]
    summed = [x for x in shared if x not in out]
    if not summed and dtype == a.dtype and dtype != bool_:
        return lax.mul(_spread(a, la, out), _spread(b, lb, out))
    batch = [x for x in shared if x in out]
    numbers = tuple((tuple(map(la.index, ls)), tuple(map(lb.index, ls))) for ls in (summed, batch))
    product = lax.dot_general(a, b, numbers, precision, dtype)
    order = batch + [x for ls in (la, lb) for x in ls if x not in shared]
    return lax.transpose(product, [order.index(x) for x in out])


def _spread(x: Array, labels: Labels, out: Labels) -> Array:
    """Lay an operand's axes along the result's; rank 0 stays, ``lax.mul`` stretches it."""
    if not labels:
        return x
    x = lax.transpose(x, [labels.index(k) for k in out if k in labels])
    return lax.expand_dims(x, [k for k, label in enumerate(out) if label not in labels])


def _promoted(name: str, *args: Any, preferred: Any = None) -> tuple[list[Array], Any, bool]:
    """Return operands of one dtype, and the result's dtype and weakness."""
    args = tuple(operands(name, *args))
    dtype, weak = lattice_result_type([dtype_and_weak(x) for x in args])
    if preferred is not None:
        dtype, weak = canonicalize_dtype(as_dtype(preferred)), False
    return [as_array(x) for x in promote_dtypes(*args)], dtype, weak


def product(
    name: str, a: Any, la: Labels, b: Any, lb: Labels, out: Labels, precision: Any, preferred: Any
) -> Array:
    """`contract` after promotion."""
    (a, b), dtype, weak = _promoted(name, a, b, preferred=preferred)
    return convert(contract(name, a, la, b, lb, out, precision, dtype), dtype, weak)


def _batch(rank: int) -> list[int]:
    """Label the batch axes of an operand: from the end, as broadcasting aligns them."""
    return list(range(-rank, 0))


def _common(*ranks: int) -> list[int]:
    return _batch(max(ranks))


def _by_numpy(multiply: Callable[..., Any]) -> Callable[..., Any]:
    """Return what finds NumPy's product where it is ours: of vectors or matrices, not promoted.

    Longer sums are taken in parts, and large products run as programs.
    """

    def instead(a: Any, b: Any, **settings: Any) -> Any:
        ours = (
            type(a) is ArrayImpl is type(b)
            and set(settings.values()) <= {None}
            and a.dtype is b.dtype
            and a.dtype.char in "fdFD"
            and 0 < a.ndim < 3 > b.ndim > 0
            and a.shape[-1] <= LINE
            and not is_large((a.aval, b.aval))
            and not is_large_product(a.size * b.size // max(a.shape[-1], 1), a.dtype)
        )
        return partial(quietly, multiply) if ours else None

    return instead


# --- faces --------------------------------------------------------------------------------------


@replayed(instead=_by_numpy(np.matmul))
def matmul(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Matrix product over the last two axes; the others broadcast.

    Parameters
    ----------
    a, b : array_like
        A vector counts as a row on the left and a column on the right; its axis is dropped.
    precision : optional
        As for ``lax.dot_general``.
    preferred_element_type : dtype-like, optional
        Dtype of sums and result.

    Raises
    ------
    ValueError
        For scalars, or batch axes that do not broadcast.
    TypeError
        For inner sizes that differ.
    """
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            matmul,
            a,
            b,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    a, b = (array_of("matmul", x, i) for i, x in enumerate((a, b)))
    for position, x in enumerate((a, b)):
        if not x.ndim:
            raise ValueError(
                f"numpy.matmul: operand {position} must have at least 1 axis, got a scalar. "
                "Use * to multiply by a scalar."
            )
    left = [*_batch(a.ndim - 2), "row", "sum"] if a.ndim > 1 else ["sum"]
    right = [*_batch(b.ndim - 2), "sum", "column"] if b.ndim > 1 else ["sum"]
    out = _common(a.ndim - 2, b.ndim - 2) + [x for x in ("row", "column") if x in left + right]
    return product("matmul", a, left, b, right, out, precision, preferred_element_type)


def _no_scalar(name: str, *args: Any) -> list[Array]:
    """Return arguments as arrays; each must have an axis to sum along."""
    found = [array_of(name, x, i) for i, x in enumerate(args)]
    if any(not x.ndim for x in found):
        raise ValueError(f"numpy.{name}: operands must not be scalars.")
    return found


def _same(name: str, n: int, m: int, a: Array, b: Array) -> None:
    if n != m:
        raise ValueError(
            f"numpy.{name}: inner sizes must be equal, got {n} and {m} of shapes {a.shape} and "
            f"{b.shape}."
        )


@replayed
def matvec(x1: Any, x2: Any, /) -> Array:
    """Multiply matrices ``(..., m, n)`` by vectors ``(..., n)``."""
    a, b = _no_scalar("matvec", x1, x2)
    if a.ndim < 2:
        raise ValueError(f"numpy.matvec: x1 must have at least 2 axes, got shape {a.shape}.")
    _same("matvec", a.shape[-1], b.shape[-1], a, b)
    left, right = [*_batch(a.ndim - 2), "row", "sum"], [*_batch(b.ndim - 1), "sum"]
    out = [*_common(a.ndim - 2, b.ndim - 1), "row"]
    return product("matvec", a, left, b, right, out, None, None)


@replayed
def vecmat(x1: Any, x2: Any, /) -> Array:
    """Multiply the conjugates of vectors ``(..., n)`` by matrices ``(..., n, m)``."""
    a, b = _no_scalar("vecmat", x1, x2)
    if b.ndim < 2:
        raise ValueError(f"numpy.vecmat: x2 must have at least 2 axes, got shape {b.shape}.")
    _same("vecmat", a.shape[-1], b.shape[-2], a, b)
    left, right = [*_batch(a.ndim - 1), "sum"], [*_batch(b.ndim - 2), "sum", "column"]
    out = [*_common(a.ndim - 1, b.ndim - 2), "column"]
    return product("vecmat", _conjugate(a), left, b, right, out, None, None)


def _conjugate(x: Array) -> Array:
    return lax.conj(x) if is_complex(x.dtype) else x


@replayed(instead=_by_numpy(np.dot))
def dot(
    a: Any,
    b: Any,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum products over the last axis of ``a`` and the last but one of ``b``, or its only one.

    A scalar multiplies. Other axes do not broadcast: the result has those of ``a``, then of ``b``.

    Raises
    ------
    TypeError
        For inner sizes that differ.
    """
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            dot,
            a,
            b,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    a, b = (array_of("dot", x, i) for i, x in enumerate((a, b)))
    left = [("a", k) for k in range(a.ndim)]
    right = [("b", k) for k in range(b.ndim)]
    if a.ndim and b.ndim:
        left[-1] = right[max(b.ndim - 2, 0)] = ("sum", 0)
    out = [x for x in left + right if x[0] != "sum"]
    return product("dot", a, left, b, right, out, precision, preferred_element_type)


@replayed
def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum the products of ``a``'s conjugates and ``b``, both flattened."""
    a, b = (ravel(array_of("vdot", x, i)) for i, x in enumerate((a, b)))
    return product("vdot", _conjugate(a), "i", b, "i", "", precision, preferred_element_type)


@replayed
def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Sum the products of ``x1``'s conjugates and ``x2`` along an axis; the others broadcast.

    Raises
    ------
    ValueError
        For sizes along the axis that differ.
    """
    a, b = _no_scalar("vecdot", x1, x2)
    a, b = (moveaxis(x, axis_of("vecdot", axis, x.ndim), -1) for x in (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"numpy.vecdot: operands must have one size along axis {axis}, got shapes "
            f"{np.shape(x1)} and {np.shape(x2)}."
        )
    left, right = [*_batch(a.ndim - 1), _LAST], [*_batch(b.ndim - 1), _LAST]
    out = _common(a.ndim - 1, b.ndim - 1)
    return product("vecdot", _conjugate(a), left, b, right, out, precision, preferred_element_type)


@replayed
def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum products over the last axes of both; a scalar multiplies."""
    a, b = (array_of("inner", x, i) for i, x in enumerate((a, b)))
    left = [("a", k) for k in range(a.ndim)]
    right = [("b", k) for k in range(b.ndim)]
    if a.ndim and b.ndim:
        left[-1] = right[-1] = ("sum", 0)
    out = [x for x in left + right if x[0] != "sum"]
    return product("inner", a, left, b, right, out, precision, preferred_element_type)


@replayed
def outer(a: Any, b: Any, out: None = None) -> Array:
    """Multiply each element of ``a`` by each of ``b``, both flattened."""
    no_out("outer", out)
    a, b = (ravel(array_of("outer", x, i)) for i, x in enumerate((a, b)))
    return product("outer", a, "i", b, "j", "ij", None, None)


@replayed
def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum products over axes of ``a`` paired with axes of ``b``.

    Parameters
    ----------
    a, b : array_like
    axes : int or pair of (sequences of) int
        The axes of ``a`` and of ``b``, in order; a number ``n`` stands for the last ``n`` of ``a``
        and the first ``n`` of ``b``.

    Raises
    ------
    TypeError
        For malformed ``axes``, or paired sizes that differ.
    ValueError
        For axes out of range.
    """
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            tensordot,
            a,
            b,
            axes,
            precision=precision,
            preferred_element_type=preferred_element_type,
        )
    a, b = (array_of("tensordot", x, i) for i, x in enumerate((a, b)))
    if not np.iterable(axes):
        n = operator.index(axes)
        if not 0 <= n <= min(a.ndim, b.ndim):
            raise TypeError(
                f"numpy.tensordot: number of axes to contract must be between 0 and both ranks, "
                f"got {n} for shapes {a.shape} and {b.shape}."
            )
        axes = (range(a.ndim - n, a.ndim), range(n))
    if len(cast("Any", axes)) != 2:
        raise TypeError(f"numpy.tensordot: axes must be an int or a pair, got {axes}.")
    ours, theirs = (axes_of("tensordot", k, x.ndim) for k, x in zip(axes, (a, b), strict=True))
    if len(ours) != len(theirs):
        raise TypeError(f"numpy.tensordot: axes must pair up, got {axes}.")
    left: list[Any] = [("a", k) for k in range(a.ndim)]
    right: list[Any] = [("b", k) for k in range(b.ndim)]
    for pair, (i, j) in enumerate(zip(ours, theirs, strict=True)):
        left[i] = right[j] = ("sum", pair)
    out = [x for x in left + right if x[0] != "sum"]
    return product("tensordot", a, left, b, right, out, precision, preferred_element_type)


@replayed
def kron(a: Any, b: Any) -> Array:
    """Kronecker product: ``b`` times each element of ``a``, laid out as ``a`` is."""
    a, b = (array_of("kron", x, i) for i, x in enumerate((a, b)))
    rank = max(a.ndim, b.ndim)
    a, b = (lax.broadcast_to_rank(x, rank) for x in (a, b))
    out = [(x, k) for k in range(rank) for x in "ab"]
    whole = product("kron", a, out[::2], b, out[1::2], out, None, None)
    return lax.reshape(whole, [n * m for n, m in zip(a.shape, b.shape, strict=True)])


@replayed
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Vector product of vectors of 2 or 3 components.

    Parameters
    ----------
    a, b : array_like
        Vectors of 2 components lie in the plane; two such give a scalar, its normal component.
    axisa, axisb, axisc : int
        Axes of the components in ``a``, ``b`` and the result.
    axis : int, optional
        Stands for all three.

    Raises
    ------
    ValueError
        For other numbers of components.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_dtypes_numeric(*operands("cross", a, b))
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(
            f"numpy.cross: vectors must have 2 or 3 components, got {a.shape[-1]} and "
            f"{b.shape[-1]}."
        )
    shape = lax.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    u, v = (_components(x, shape) for x in (a, b))

    def minor(i: int, j: int) -> Array:
        return lax.sub(lax.mul(u[i], v[j]), lax.mul(u[j], v[i]))

    if a.shape[-1] == b.shape[-1] == 2:
        return minor(0, 1)
    return moveaxis(stack([minor(1, 2), minor(2, 0), minor(0, 1)], -1), -1, axisc)


def _components(x: Array, shape: tuple[int, ...]) -> list[Array]:
    """Return three components, the third zero in the plane, stretched to a shape."""
    parts = [lax.index_in_dim(x, k, -1, keepdims=False) for k in range(x.shape[-1])]
    lead = len(shape) - (x.ndim - 1)
    parts = [lax.broadcast_in_dim(p, shape, range(lead, len(shape))) for p in parts]
    return parts if len(parts) == 3 else [*parts, lax.full_like(parts[0], 0)]


# --- diagonals ----------------------------------------------------------------------------------


@moving
@replayed
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return a diagonal of the matrices along two axes, as the last axis of the result.

    Parameters
    ----------
    a : array_like
    offset : int
        Diagonals above the main one are positive.
    axis1, axis2 : int

    Raises
    ------
    ValueError
        For an array of fewer than two axes, or one axis twice.
    """
    a = array_of("diagonal", a)
    if a.ndim < 2:
        raise ValueError(f"numpy.diagonal: a must have at least 2 axes, got shape {a.shape}.")
    axes = axes_of("diagonal", (axis1, axis2), a.ndim)
    a = moveaxis(a, axes, (-2, -1))
    *lead, n, m = a.shape
    offset = operator.index(offset)
    count = max(min(n + min(offset, 0), m - max(offset, 0)), 0)
    start = offset if offset >= 0 else -offset * m
    # Along a diagonal the flat index grows by m + 1: a strided slice, which no gather has to check.
    flat = lax.reshape(a, (*lead, n * m))
    if not count:
        return lax.slice_in_dim(flat, 0, 0, axis=-1)
    return lax.slice_in_dim(flat, start, start + (count - 1) * (m + 1) + 1, m + 1, axis=-1)


@replayed
def trace(
    a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
) -> Array:
    """Sum a diagonal of the matrices along two axes.

    Parameters
    ----------
    a : array_like
    offset : int or array
        May be traced.
    axis1, axis2 : int
    dtype : dtype-like, optional
        Of the sum; that of ``a`` where omitted, the default integer for narrower ones.

    Raises
    ------
    ValueError
        For an array of fewer than two axes.
    """
    no_out("trace", out)
    a = array_of("trace", a)
    if a.ndim < 2:
        raise ValueError(f"numpy.trace: a must have at least 2 axes, got shape {a.shape}.")
    a = lax.convert_element_type(a, _sum_dtype(a.dtype) if dtype is None else as_dtype(dtype))
    if not isinstance(offset, Tracer):
        line = diagonal(a, int(offset), axis1, axis2)
        return lax.reduce_sum(line, (line.ndim - 1,))
    a = moveaxis(a, axes_of("trace", (axis1, axis2), a.ndim), (-2, -1))
    row, column = (lax.broadcasted_iota(np.int32, a.shape, a.ndim - k) for k in (2, 1))
    hit = lax.eq(lax.sub(column, row), lax.convert_element_type(offset, np.int32))
    return lax.reduce_sum(lax.select(hit, a, lax.full_like(a, 0)), (a.ndim - 2, a.ndim - 1))


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    """Integers narrower than the default are summed in the default, of their sign."""
    if dtype.kind not in "biu":
        return dtype
    default = canonicalize_dtype(np.uint64 if dtype.kind == "u" else np.int64)
    return dtype if dtype.itemsize > default.itemsize else default
