"""Statistics of samples: covariances and histograms."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array, ArrayImpl
from ..core.dtypes import as_dtype, canonicalize_dtype, is_complex
from ..core.eager import replayed
from ..core.hooks import cut_as
from ..core.trace import Tracer
from ._at import IndexUpdateHelper
from ._creation import asarray
from ._patterns import diag
from ._products import dot
from ._promote import as_operand, operands, promote_dtypes_inexact
from ._ranges import linspace
from ._reductions import average
from ._search import where
from ._select import clip
from ._shape import array_of, concrete, ravel
from ._sorting import index_dtype, searchsorted

__all__ = [
    "bincount",
    "corrcoef",
    "cov",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
]

#: Numbers from which on bins are computed rather than looked for, and how many at a time: those
#: that a near cache holds.
_MANY, _BLOCK = 1 << 12, 1 << 15


# --- covariance ---------------------------------------------------------------------------------


def _variables(name: str, m: Array, y: Array | None, rowvar: bool) -> Array:
    """Return observations as a matrix with a row for each variable."""
    out = []
    for x, single in ((m, m.ndim == 1), (y, y is not None and y.shape[:1] == (1,))):
        if x is None:
            continue
        if x.ndim > 2:
            raise ValueError(f"numpy.{name}: arrays must have at most 2 axes, got {x.shape}.")
        rows = lax.broadcast_to_rank(x, 2)
        vector = single or x.ndim < 2
        out.append(rows if rowvar or vector else lax.transpose(rows, (1, 0)))
    return lax.concatenate(out, 0) if len(out) > 1 else out[0]


def _weights(which: str, w: Any, count: int) -> Array:
    w = array_of("cov", w)
    if w.ndim != 1:
        raise TypeError(f"numpy.cov: {which} must be a vector, got shape {w.shape}.")
    if w.shape[0] != count:
        raise TypeError(f"numpy.cov: {which} must have {count} elements, got {w.shape[0]}.")
    return w


@replayed
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Array:
    """Return the covariances of variables: of one variable, its variance as a scalar.

    Parameters
    ----------
    m : array_like
        Observations; a row for each variable, a column with ``rowvar=False``.
    y : array_like, optional
        Further variables.
    bias : bool
        Divide by the number of observations, not by one less.
    ddof : int, optional
        Divide by the number less ``ddof``, whatever ``bias`` says.
    fweights : array_like of int, optional
        How often each observation counts.
    aweights : array_like, optional
        How much each observation counts.
    dtype : dtype-like, optional

    Raises
    ------
    ValueError
        For more than two axes, or ``ddof`` that is no integer.
    TypeError
        For weights that do not fit.
    """
    arrays = operands("cov", m) if y is None else operands("cov", m, y)
    arrays = promote_dtypes_inexact(*arrays)
    if dtype is not None:
        arrays = [lax.convert_element_type(x, as_dtype(dtype)) for x in arrays]
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"numpy.cov: ddof must be an integer, got {ddof}.")
    X = _variables("cov", arrays[0], arrays[1] if y is not None else None, rowvar)
    if X.shape[0] == 0:
        return lax.full((0, 0), 0, X.dtype)
    ddof = (0 if bias else 1) if ddof is None else int(ddof)
    w: Any = None
    a: Any = None
    if fweights is not None:
        w = _weights("fweights", fweights, X.shape[1])
        if w.dtype.kind not in "iu":
            raise TypeError(f"numpy.cov: fweights must be integers, got dtype {w.dtype}.")
    if aweights is not None:
        a = _weights("aweights", aweights, X.shape[1])
        w = a if w is None else w * a
    mean, total = average(X, axis=1, weights=w, returned=True)
    total = total[0]
    if w is None:
        count = X.shape[1] - ddof
    elif ddof == 0:
        count = total
    elif aweights is None:
        count = total - ddof
    else:
        count = total - ddof * (w * a).sum() / total
    X = X - mean[:, None]
    right = X if w is None else X * w
    right = lax.transpose(right, (1, 0))
    if is_complex(right.dtype):
        right = lax.conj(right)
    out = dot(X, right) / count
    return lax.squeeze(out, tuple(k for k, n in enumerate(out.shape) if n == 1))


@replayed
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Array:
    """Return the correlation coefficients of variables; parameters are as of `cov`."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviation = lax.sqrt(lax.real(diag(c)) if is_complex(c.dtype) else diag(c))
    c = c / deviation[:, None] / deviation[None, :]
    # Rounding may leave the interval that they belong to.
    if is_complex(c.dtype):
        return lax.complex(clip(lax.real(c), -1, 1), clip(lax.imag(c), -1, 1))
    return clip(c, -1, 1)


# --- histograms ---------------------------------------------------------------------------------


def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Count how often each number from 0 occurs, or sum weights of its occurrences.

    Parameters
    ----------
    x : array_like of int
        A vector; negative numbers count as 0.
    weights : array_like, optional
        Of the same shape.
    minlength : int
        Least length of the result.
    length : int, optional
        Length of the result, which makes it possible to trace: larger numbers are left out.

    Raises
    ------
    TypeError
        For numbers that are not integers.
    ValueError
        For ``x`` that is no vector, weights of another shape, a negative length.
    ConcretizationTypeError
        For a traced array and no ``length``.
    """
    if out_sharding is not None:
        return cut_as(out_sharding, bincount, x, weights, minlength, length=length)
    x = array_of("bincount", x)
    if x.dtype.kind not in "biu":
        raise TypeError(f"numpy.bincount: x must be integers, got dtype {x.dtype}.")
    if x.ndim != 1:
        raise ValueError(f"numpy.bincount: x must be a vector, got shape {x.shape}.")
    minlength = operator.index(minlength)
    if length is None:
        values = concrete("bincount", "x", x, "Give the result's length: length.")
        length = max(minlength, int(values.max()) + 1 if values.size else 0)
    length = operator.index(length)
    if min(length, minlength) < 0:
        raise ValueError("numpy.bincount: length and minlength must not be negative.")
    if weights is None:
        w = lax.full(x.shape, 1, canonicalize_dtype(int))
    else:
        w = array_of("bincount", weights, 1)
        if w.shape != x.shape:
            raise ValueError(
                f"numpy.bincount: weights must have the shape of x, got {w.shape} and {x.shape}."
            )
    if x.dtype.kind == "b":
        x = lax.convert_element_type(x, canonicalize_dtype(int))
    if x.dtype.kind == "i":
        x = lax.max(x, x.dtype.type(0))
    return IndexUpdateHelper(lax.full((length,), 0, w.dtype))[x].add(w, mode="drop")


def _limits(a: Array, range_: Any) -> tuple[Array, Array]:
    """Return the ends of a histogram: given, or those of the data; never equal."""
    if range_ is None:
        if not a.size:
            low, high = lax.full((), 0, a.dtype), lax.full((), 1, a.dtype)
        else:
            low, high = a.min(), a.max()
    else:
        low, high = (lax.convert_element_type(v, a.dtype) for v in range_)
    half = where(low == high, a.dtype.type(0.5), a.dtype.type(0))
    return low - half, high + half


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """Return the edges of bins: as given, or ``bins`` equal ones over a range.

    Parameters
    ----------
    a : array_like
    bins : int or vector
        Number of bins, or their edges.
    range : (low, high), optional
        That of the data where omitted.
    weights : array_like, optional
        Accepted; it makes no difference.

    Raises
    ------
    TypeError
        For names of rules such as ``"auto"``: their number of bins depends on the data.
    """
    if isinstance(bins, str):
        raise TypeError(
            f"numpy.histogram_bin_edges: bins must be a number or edges, got rule {bins!r}: the "
            "number of bins must not depend on the data."
        )
    (a,) = promote_dtypes_inexact(as_operand("histogram_bin_edges", a))
    given = array_of("histogram_bin_edges", bins, 1)
    if given.ndim == 1:
        return lax.convert_element_type(given, a.dtype)
    count = operator.index(concrete("histogram_bin_edges", "bins", bins)[()])
    if range is not None and not any(isinstance(v, Tracer) for v in range):
        start, end = range
        return asarray(_known_edges(start, end, count), a.dtype)
    low, high = _limits(ravel(a), range)
    return linspace(low, high, count + 1, dtype=a.dtype)


def _known_edges(low: Any, high: Any, count: int) -> np.ndarray:
    """Edges over a range that is known.

    In float64, rounded once at the end: edges that are off by a digit put the values which are
    meant to lie on them into the bin before.
    """
    low, high = float(low), float(high)
    half = 0.5 if low == high else 0.0
    return np.linspace(low - half, high + half, count + 1)


def _bin_numbers(values: Array, edges: Array) -> Array:
    """Return 1 + the bin of each value; the last bin includes its right edge."""
    found = searchsorted(edges, values, side="right")
    last = lax.index_in_dim(edges, -1, keepdims=False)
    return where(values == last, np.int32(edges.shape[0] - 1), found)


def _counted(a: Array, edges: Array, weights: Array | None) -> np.ndarray | None:
    """Count many known numbers in bins of one width; None where it has to be done otherwise.

    A number's bin follows from where it lies, up to a rounding that its edges tell of. To look for
    it took twenty times as long, as no processor foresees the comparisons.
    """
    arrays = [a, edges] if weights is None else [a, edges, weights]
    if not all(type(x) is ArrayImpl and x.dtype.char in "fd" for x in arrays):
        return None
    values, bounds, *masses = (np.asarray(x).reshape(-1) for x in arrays)
    n = bounds.size - 1
    if values.size < _MANY or n < 1 or not (bounds[1:] > bounds[:-1]).all():
        return None
    with np.errstate(over="ignore"):
        scale = n / (bounds[-1] - bounds[0])
    if not 0 < scale < np.inf:
        return None
    counts = np.zeros(n)
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        inside = (block >= bounds[0]) & (block <= bounds[-1])
        block = block[inside]
        bins = np.minimum(((block - bounds[0]) * scale).astype(np.intp), n - 1)
        bins -= block < bounds[bins]
        bins += (block >= bounds[bins + 1]) & (bins < n - 1)
        if not _holds(block, bins, bounds):
            return None
        mass = [x[start : start + _BLOCK][inside] for x in masses]
        counts += np.bincount(bins, *mass, minlength=n)
    return counts


def _holds(values: np.ndarray, bins: np.ndarray, bounds: np.ndarray) -> bool:
    """Whether each value lies in its bin, the last of which includes its right edge."""
    above = np.append(bounds[1:-1], np.inf)
    return bool(((values >= bounds[bins]) & (values < above[bins])).all())


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Array, Array]:
    """Count elements in bins.

    Parameters
    ----------
    a : array_like
    bins, range : optional
        As for `histogram_bin_edges`. Bins include their left edges, the last one both.
    weights : array_like, optional
        Of the same shape: how much each element counts.
    density : bool, optional
        Divide by the total and the bins' widths.

    Returns
    -------
    counts, edges : Array
        Floating, both.

    Raises
    ------
    ValueError
        For weights of another shape.
    """
    if weights is None:
        (a,) = promote_dtypes_inexact(as_operand("histogram", a))
        # Whole numbers: a count of single precision stops at 16,777,216.
        w = lax.full(a.shape, 1, index_dtype(a.size))
    else:
        if np.shape(a) != np.shape(weights):
            raise ValueError(
                "numpy.histogram: weights must have the shape of a, got "
                f"{np.shape(weights)} and {np.shape(a)}."
            )
        a, w = promote_dtypes_inexact(*operands("histogram", a, weights))
    edges = histogram_bin_edges(a, bins, range)
    known = _counted(a, edges, None if weights is None else w)
    if known is None:
        numbers = _bin_numbers(ravel(a), edges)
        counts = lax.full(edges.shape, 0, w.dtype)
        counts = IndexUpdateHelper(counts)[numbers].add(ravel(w), mode="drop")[1:]
        counts = lax.convert_element_type(counts, a.dtype)
    else:
        counts = asarray(known, a.dtype)
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / counts.sum()
    return counts, edges


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Count points in boxes.

    Parameters
    ----------
    sample : array_like
        A row for each point, a column for each coordinate.
    bins : int, sequence of int, or sequence of vectors
        Of each coordinate, as for `histogram_bin_edges`.
    range : sequence of (low, high) or None, optional
    weights : array_like, optional
        A vector, with an element for each point.
    density : bool, optional

    Returns
    -------
    counts : Array
        Integer; floating with weights.
    edges : list of Array
        Of each coordinate.

    Raises
    ------
    ValueError
        For bins or ranges that are not as many as coordinates, and samples that are no matrix.
    """
    if weights is None:
        (points,) = promote_dtypes_inexact(as_operand("histogramdd", sample))
    else:
        points, weights = promote_dtypes_inexact(*operands("histogramdd", sample, weights))
    if points.ndim != 2:
        raise ValueError(f"numpy.histogramdd: sample must be a matrix, got shape {points.shape}.")
    n, d = points.shape
    if weights is not None and np.shape(weights) != (n,):
        raise ValueError(
            f"numpy.histogramdd: weights must have shape {(n,)}, got {np.shape(weights)}."
        )
    if not isinstance(bins, list | tuple) and not np.ndim(bins):
        bins = [bins] * d
    if len(bins) != d or (range is not None and len(range) != d):
        raise ValueError(f"numpy.histogramdd: give bins and range for each of {d} coordinates.")
    columns = [lax.index_in_dim(points, k, 1, keepdims=False) for k in np.arange(d).tolist()]
    ranges = range if range is not None else [None] * d
    edges = [histogram_bin_edges(*k) for k in zip(columns, bins, ranges, strict=True)]
    shape = tuple(e.shape[0] + 1 for e in edges)
    dtype = index_dtype(prod(shape))
    flat: Any = lax.full((n,), 0, dtype)
    for column, e, size in zip(columns, edges, shape, strict=True):
        number = lax.convert_element_type(_bin_numbers(column, e), dtype)
        flat = flat * dtype.type(size) + number
    counts = lax.reshape(bincount(flat, weights, length=prod(shape)), shape)
    counts = counts[(slice(1, -1),) * d]  # what lies outside
    if density:
        counts = counts / counts.sum()
        for k, e in enumerate(edges):
            widths = e[1:] - e[:-1]
            counts = counts / lax.expand_dims(widths, [j for j in np.arange(d).tolist() if j != k])
    return counts, edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Count points of the plane in boxes; see `histogramdd`.

    Parameters
    ----------
    x, y : array_like
        Vectors of coordinates.
    bins : int, vector, or pair of them
        A vector gives the edges of both coordinates.
    """
    x, y = promote_dtypes_inexact(*operands("histogram2d", x, y))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"numpy.histogram2d: x and y must be vectors of one size, got {x.shape} and {y.shape}."
        )
    several = isinstance(bins, list | tuple) or np.ndim(bins)
    if several and len(bins) not in (1, 2):
        bins = [asarray(bins)] * 2
    sample = lax.concatenate([lax.expand_dims(v, (1,)) for v in (x, y)], 1)
    counts, (x_edges, y_edges) = histogramdd(sample, bins, range, weights, density)
    return counts, x_edges, y_edges
