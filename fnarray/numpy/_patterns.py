"""Arrays with a pattern: triangles, diagonals, grids of coordinates."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..core.apart import apart
from ..core.array import Array
from ..core.dtypes import canonicalize_dtype, is_integer
from ..core.eager import replayed
from ..core.hooks import cut_as
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array, canonical_shape
from ..ops.kit.moves import moving
from ._creation import DTypeLike, _dtype
from ._promote import as_operand, broadcast_to, operands, promote_dtypes
from ._ranges import arange, linspace
from ._select import choose_where

__all__ = [
    "diag",
    "diag_indices",
    "diag_indices_from",
    "diagflat",
    "eye",
    "identity",
    "indices",
    "meshgrid",
    "mgrid",
    "ogrid",
    "tri",
    "tril",
    "triu",
    "vander",
]


# ---- by diagonal ---------------------------------------------------------------------------------


def eye(
    N: int,
    M: int | None = None,
    k: Any = 0,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
) -> Array:
    """Ones on the ``k``-th diagonal of an ``N`` by ``M`` array, zeros elsewhere.

    Raises
    ------
    ValueError
        For negative sizes.
    TypeError
        For sizes that are not integers.
    """
    if device is not None:
        return cut_as(device, eye, N, M, k, dtype)
    rows, columns = _sizes("eye", N, M)
    return convert(on_diagonal(lax.eq, rows, columns, k), _dtype(dtype))


def _sizes(name: str, n: Any, m: Any) -> tuple[int, int]:
    try:
        rows = operator.index(n)
        columns = rows if m is None else operator.index(m)
    except TypeError as error:
        raise TypeError(f"numpy.{name}: sizes must be integers, got {n!r} and {m!r}.") from error
    if rows < 0 or columns < 0:
        raise ValueError(f"numpy.{name}: sizes must not be negative, got {n} and {m}.")
    return rows, columns


def on_diagonal(compare: Callable[..., Array], rows: int, columns: int, k: Any) -> Array:
    """Compare row + ``k`` with column: ``eq`` for a diagonal, ``ge`` for a lower triangle."""
    index = canonicalize_dtype(int)
    row, column = (lax.broadcasted_iota(index, (rows, columns), i) for i in (0, 1))
    return compare(lax.add(row, convert(k, index)), column)


def identity(n: int, dtype: DTypeLike = None) -> Array:
    """Identity matrix of ``n`` rows."""
    return eye(n, dtype=dtype)


# ---- triangles ---------------------------------------------------------------------------------


@replayed
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Ones on and below the ``k``-th diagonal of an ``N`` by ``M`` array, zeros above."""
    rows, columns = _sizes("tri", N, M)
    return convert(on_diagonal(lax.ge, rows, columns, k), _dtype(dtype))


def _below(name: str, m: Array, k: int) -> Array:
    if m.ndim < 2:
        raise ValueError(f"numpy.{name}: two axes or more are needed, got shape {m.shape}.")
    mask = on_diagonal(lax.ge, m.shape[-2], m.shape[-1], k)
    return broadcast_to(name, mask, m.shape)


@moving
@replayed
def tril(m: Any, k: int = 0) -> Array:
    """Lower triangle of matrices: zero above the ``k``-th diagonal of the last two axes.

    Raises
    ------
    ValueError
        For fewer than two axes.
    """
    m = as_array(as_operand("tril", m))
    return lax.select_n(_below("tril", m, k), lax.full_like(m, 0), m)


@moving
@replayed
def triu(m: Any, k: int = 0) -> Array:
    """Upper triangle of matrices: zero below the ``k``-th diagonal of the last two axes.

    Raises
    ------
    ValueError
        For fewer than two axes.
    """
    m = as_array(as_operand("triu", m))
    return lax.select_n(_below("triu", m, k - 1), m, lax.full_like(m, 0))


# ---- diagonals ---------------------------------------------------------------------------------


@replayed
def diag(v: Any, k: int = 0) -> Array:
    """Diagonal of a matrix, or the matrix with the given diagonal.

    Parameters
    ----------
    v : array_like
        Of rank 1 or 2.
    k : int
        Which diagonal: above the main one if positive.

    Raises
    ------
    ValueError
        For another rank.
    """
    v = as_array(as_operand("diag", v))
    if v.ndim == 1:
        n = v.shape[0] + abs(k)
        zero = convert(0, v.dtype, v.weak_type)
        column = lax.pad(v, zero, ((max(0, -k), max(0, k), 0),))
        return choose_where(
            on_diagonal(lax.eq, n, n, k), lax.broadcast_in_dim(column, (n, n), (0,)), zero
        )
    if v.ndim != 2:
        raise ValueError(f"numpy.diag: rank 1 or 2 is needed, got shape {v.shape}.")
    rows, columns = v.shape
    count = max(0, min(rows + min(k, 0), columns - max(k, 0)))
    index = canonicalize_dtype(int)
    along = lax.iota(index, count)
    return v[lax.add(along, convert(max(0, -k), index)), lax.add(along, convert(max(0, k), index))]


@replayed
def diagflat(v: Any, k: int = 0) -> Array:
    """Matrix with the elements of an array of any rank on its ``k``-th diagonal."""
    v = as_array(as_operand("diagflat", v))
    out = diag(lax.reshape(v, (v.size,)), k)
    return convert(out, out.dtype)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array of ``ndim`` axes of size ``n``.

    Raises
    ------
    ValueError
        For a negative size or rank.
    """
    if n < 0 or ndim < 0:
        raise ValueError(f"numpy.diag_indices: n and ndim must not be negative, got {n}, {ndim}.")
    return (arange(n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """Indices of the main diagonal of an array, whose axes must be equal.

    Raises
    ------
    ValueError
        For fewer than two axes, or axes of several sizes.
    """
    shape = np.shape(as_operand("diag_indices_from", arr))
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(
            f"numpy.diag_indices_from: two or more axes of one size are needed, got shape {shape}."
        )
    return diag_indices(shape[0], len(shape))


# ---- grids -------------------------------------------------------------------------------------


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Coordinates of all points of a grid, one array for each of its axes.

    Parameters
    ----------
    *xi : array_like
        Coordinates along each axis, of rank 1 or 0.
    copy : bool
        Accepted; arrays are immutable.
    sparse : bool
        Leave axes along which nothing changes at size 1.
    indexing : {"xy", "ij"}
        Whether the first axis of results is that of the second argument, or of the first.

    Raises
    ------
    ValueError
        For ranks above 1, or another ``indexing``.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"numpy.meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}.")
    arrays = [as_array(x) for x in operands("meshgrid", *xi)]
    if any(a.ndim > 1 for a in arrays):
        raise ValueError(
            f"numpy.meshgrid: arguments must have rank 1, got shapes {[a.shape for a in arrays]}."
        )
    place = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        place[:2] = [1, 0]
    sizes = [0] * len(arrays)
    for axis, a in zip(place, arrays, strict=True):
        sizes[axis] = a.size
    grids = []
    for axis, a in zip(place, arrays, strict=True):
        shape = [n if i == axis or not sparse else 1 for i, n in enumerate(sizes)]
        grids.append(lax.broadcast_in_dim(lax.reshape(a, (a.size,)), shape, (axis,)))
    return apart(grids, xi)


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """Coordinates of all elements of a shape: one array, or with ``sparse`` a tuple of them.

    Parameters
    ----------
    dimensions : sequence of int
    dtype : dtype-like, optional
        The default integer where omitted.
    sparse : bool
        Leave axes along which nothing changes at size 1.
    """
    sizes = canonical_shape("indices", dimensions)
    target = _dtype(dtype, int)
    counts = [lax.iota(target, n) for n in sizes]
    if sparse:
        rank = len(sizes)
        return tuple(
            lax.reshape(c, [n if i == axis else 1 for i in range(rank)])
            for axis, (c, n) in enumerate(zip(counts, sizes, strict=True))
        )
    if not counts:
        return lax.full((0,), 0, target)
    grids = [lax.broadcast_in_dim(c, (1, *sizes), (i + 1,)) for i, c in enumerate(counts)]
    return lax.concatenate(grids, 0)


class _Grid:
    """Grids written as slices: a complex step, as in ``0:1:5j``, is a count, ends included."""

    def __init__(self, name: str, *, sparse: bool):
        self._name = name
        self._sparse = sparse

    def __repr__(self) -> str:
        return f"fnarray.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _axis_of(key)
        grids = meshgrid(*map(_axis_of, key), indexing="ij", sparse=self._sparse)
        grids = promote_dtypes(*grids) if grids else []
        if self._sparse:
            return grids
        if not grids:
            return lax.full((0,), 0, canonicalize_dtype(int))
        return lax.concatenate([lax.expand_dims(g, (0,)) for g in grids], 0)


def _axis_of(key: slice) -> Array:
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if isinstance(step, complex):
        return linspace(start, key.stop, int(abs(step)))
    return arange(start, key.stop, step)


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


@replayed
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """Matrix whose columns are powers of ``x``, the highest first unless ``increasing``.

    Parameters
    ----------
    x : array_like
        Of rank 1.
    N : int, optional
        Number of columns; the length of ``x`` by default.
    increasing : bool

    Raises
    ------
    ValueError
        For another rank, or a negative ``N``.
    """
    x = as_array(as_operand("vander", x))
    if x.ndim != 1:
        raise ValueError(f"numpy.vander: rank 1 is needed, got shape {x.shape}.")
    columns = x.shape[0] if N is None else N
    if columns < 0:
        raise ValueError(f"numpy.vander: N must not be negative, got {N}.")
    exponents = np.arange(columns)[:: 1 if increasing else -1]
    column = lax.reshape(x, (x.shape[0], 1))
    if is_integer(x.dtype) or x.dtype == np.bool_:
        return convert(column ** exponents.astype(canonicalize_dtype(int)), x.dtype)
    return column ** exponents.astype(canonicalize_dtype(int))
