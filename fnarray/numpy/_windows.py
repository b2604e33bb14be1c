"""Signals: windows, convolution, differences and what undoes them, interpolation."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from .. import lax
from ..core.apart import another
from ..core.array import Array, ArrayImpl
from ..core.dtypes import canonicalize_dtype, is_bool, is_complex, is_half, is_inexact
from ..core.eager import replayed
from ..core.quiet import quietly
from ..core.trace import Tracer
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ._indexing import take as take_index
from ._join import concatenate
from ._math import i0
from ._promote import (
    as_operand,
    operands,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
)
from ._promote import broadcast_to as stretch
from ._search import where
from ._shape import array_of, axes_of, axis_of, moveaxis, ravel
from ._sorting import argsort, places_in, searchsorted

__all__ = [
    "bartlett",
    "blackman",
    "convolve",
    "correlate",
    "diff",
    "ediff1d",
    "gradient",
    "hamming",
    "hanning",
    "interp",
    "kaiser",
    "trapezoid",
    "unwrap",
]


# --- windows ------------------------------------------------------------------------------------


def _points(M: int) -> tuple[int, np.dtype, Array]:
    """Return a window's length, its dtype, and 0, 1, ..., M - 1 in it."""
    M, dtype = operator.index(M), canonicalize_dtype(float)
    return M, dtype, lax.iota(dtype, max(M, 0))


def _ones(M: int, dtype: np.dtype) -> Array:
    return lax.full((max(M, 0),), 1, dtype)


def _cosines(M: int, *weights: float) -> Array:
    """Sum cosines of the window's angle and its multiples: a generalised cosine window."""
    M, dtype, n = _points(M)
    if M <= 1:
        return _ones(M, dtype)
    angle = n * dtype.type(2 * np.pi / (M - 1))
    total: Any = dtype.type(weights[0])
    for k, w in enumerate(weights[1:], 1):
        total = total + lax.cos(angle * dtype.type(k)) * dtype.type(w)
    return total


@replayed
def hamming(M: int) -> Array:
    """Return the Hamming window of ``M`` points: a raised cosine that ends at 0.08."""
    return _cosines(M, 0.54, -0.46)


@replayed
def hanning(M: int) -> Array:
    """Return the Hann window of ``M`` points: a raised cosine that ends at 0."""
    return _cosines(M, 0.5, -0.5)


@replayed
def blackman(M: int) -> Array:
    """Return the Blackman window of ``M`` points: three terms of cosines."""
    return _cosines(M, 0.42, -0.5, 0.08)


@replayed
def bartlett(M: int) -> Array:
    """Return the Bartlett window of ``M`` points: a triangle that ends at 0."""
    M, dtype, n = _points(M)
    if M <= 1:
        return _ones(M, dtype)
    return 1 - abs(2 * n + dtype.type(1 - M)) / dtype.type(M - 1)


@replayed
def kaiser(M: int, beta: Any) -> Array:
    """Return the Kaiser window of ``M`` points; ``beta`` weighs main lobe against side lobes.

    Notes
    -----
    J. F. Kaiser, "Nonrecursive digital filter design using the I0-sinh window function" (1974).
    """
    M, dtype, n = _points(M)
    if M <= 1:
        return _ones(M, dtype)
    beta = lax.convert_element_type(as_operand("kaiser", beta, 1), dtype)
    half = dtype.type(0.5 * (M - 1))
    return i0(beta * lax.sqrt(1 - ((n - half) / half) ** 2)) / i0(beta)


# --- convolution --------------------------------------------------------------------------------


def _filter(
    name: str, a: Array, v: Array, mode: str, precision: Any, preferred: Any, weak: bool
) -> Array:
    """Slide the shorter vector ``v`` along ``a`` and sum products: a correlation."""
    n, m = a.shape[0], v.shape[0]
    if mode == "full":
        padding = (m - 1, m - 1)
    elif mode == "same":
        padding = (m // 2, m - m // 2 - 1)
    elif mode == "valid":
        padding = (0, 0)
    else:
        raise ValueError(f"numpy.{name}: mode must be 'full', 'same' or 'valid', got {mode!r}.")
    out = lax.conv_general_dilated(
        lax.reshape(a, (1, 1, n)),
        lax.reshape(v, (1, 1, m)),
        (1,),
        [padding],
        precision=precision,
        preferred_element_type=preferred,
    )
    return convert(lax.reshape(out, out.shape[-1:]), out.dtype, weak and preferred is None)


def _vectors(name: str, a: Any, v: Any) -> tuple[Array, Array, bool]:
    a, v = promote_dtypes_inexact(*operands(name, a, v))
    for x in (a, v):
        if x.ndim != 1:
            raise ValueError(f"numpy.{name}: operands must be vectors, got shape {x.shape}.")
        if not x.size:
            raise ValueError(f"numpy.{name}: operands must not be empty.")
    return a, v, a.weak_type and v.weak_type


@replayed
def convolve(
    a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Return the convolution of two vectors.

    Parameters
    ----------
    a, v : array_like
        Integers become floats.
    mode : {"full", "same", "valid"}
        Every overlap; as many as the longer vector's length, centred; or only whole overlaps.
    precision, preferred_element_type : optional
        As for ``lax.conv_general_dilated``.

    Raises
    ------
    ValueError
        For operands that are no vectors, or empty; an unknown mode.
    """
    a, v, weak = _vectors("convolve", a, v)
    if a.size < v.size:
        a, v = v, a
    return _filter("convolve", a, lax.rev(v, (0,)), mode, precision, preferred_element_type, weak)


@replayed
def correlate(
    a: Any,
    v: Any,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Return the correlation of two vectors: products of ``a`` and ``v``'s conjugates, summed.

    Parameters are as of `convolve`.
    """
    a, v, weak = _vectors("correlate", a, v)
    if is_complex(v.dtype):
        v = lax.conj(v)
    if a.size >= v.size:
        return _filter("correlate", a, v, mode, precision, preferred_element_type, weak)
    # Sliding the longer vector along the shorter one gives the lags in reverse.
    out = _filter("correlate", v, a, mode, precision, preferred_element_type, weak)
    return lax.rev(out, (0,))


# --- differences --------------------------------------------------------------------------------


def _steps(a: Array, axis: int) -> Array:
    """Return differences of neighbours along an axis; of bools, whether they differ."""
    n = a.shape[axis]
    low = lax.slice_in_dim(a, 0, max(n - 1, 0), axis=axis)
    high = lax.slice_in_dim(a, min(n, 1), n, axis=axis)
    return lax.ne(high, low) if is_bool(a.dtype) else lax.sub(high, low)


@replayed
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Return differences of neighbours along an axis, ``n`` times over.

    Parameters
    ----------
    a : array_like
        Of bools, the result says whether neighbours differ.
    n : int
    axis : int
    prepend, append : array_like, optional
        Joined to ``a`` first; scalars stand for one slice.

    Raises
    ------
    ValueError
        For a scalar, or a negative ``n``.
    """
    a = array_of("diff", a)
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"numpy.diff: n must not be negative, got {n}.")
    if not a.ndim:
        raise ValueError("numpy.diff: a must have at least 1 axis, got a scalar.")
    if n == 0:
        return another(a)
    axis = axis_of("diff", axis, a.ndim)
    parts = [a]
    slab = tuple(1 if k == axis else size for k, size in enumerate(a.shape))
    for place, extra in ((0, prepend), (len(parts) + 1, append)):
        if extra is not None:
            extra = as_array(as_operand("diff", extra))
            parts.insert(place, extra if extra.ndim else stretch("diff", extra, slab))
    a = concatenate(parts, axis) if len(parts) > 1 else a
    for _ in range(n):
        a = _steps(a, axis)
    return a


@replayed
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """Return differences of neighbours in the flattened array, with values put around them."""
    a = ravel(array_of("ediff1d", ary))
    parts = [_steps(a, 0)]
    for place, extra in ((0, to_begin), (2, to_end)):
        if extra is not None:
            values = ravel(array_of("ediff1d", extra))
            parts.insert(place, lax.convert_element_type(values, a.dtype))
    return lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]


@replayed
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    """Return derivatives along axes by central differences, one-sided at the ends.

    Parameters
    ----------
    f : array_like
    *varargs : scalar or vector
        Spacing, or coordinates: one for all axes, or one for each.
    axis : int or sequence of int, optional
        All axes where omitted.
    edge_order : {1}
        Order of accuracy at the ends.

    Returns
    -------
    Array or list of Array
        One for each axis; a list unless there is a single axis.

    Raises
    ------
    ValueError
        For axes of fewer than 2 elements, or coordinates that do not fit.
    TypeError
        For a number of spacings that fits neither.
    """
    if edge_order not in (None, 1):
        raise ValueError(f"numpy.gradient: edge_order must be 1, got {edge_order}.")
    (a,) = promote_dtypes_inexact(as_operand("gradient", f))
    axes = axes_of("gradient", axis, a.ndim)
    if any(a.shape[k] < 2 for k in axes):
        raise ValueError(
            f"numpy.gradient: axes must have at least 2 elements, got shape {a.shape}."
        )
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"numpy.gradient: {len(varargs)} spacings for {len(axes)} axes.")
    spacings = list(varargs) or [1.0]
    if len(spacings) < len(axes):
        spacings *= len(axes)
    out = [_slope(a, k, _spacing(h, a, k)) for k, h in zip(axes, spacings, strict=False)]
    return out[0] if len(out) == 1 else out


def _spacing(h: Any, a: Array, axis: int) -> Array:
    h = as_array(as_operand("gradient", h, 1))
    if h.ndim > 1 or (h.ndim and h.shape[0] != a.shape[axis]):
        raise ValueError(
            f"numpy.gradient: spacing must be a scalar or {a.shape[axis]} coordinates, got shape "
            f"{h.shape}."
        )
    return convert(h, a.dtype, a.weak_type)


def _slope(a: Array, axis: int, h: Array) -> Array:
    n = a.shape[axis]

    def part(start: int, stop: int) -> Array:
        return lax.slice_in_dim(a, start, stop, axis=axis)

    if h.ndim == 0:
        first, last = (part(1, 2) - part(0, 1)) / h, (part(n - 1, n) - part(n - 2, n - 1)) / h
        inner = (part(2, n) - part(0, n - 2)) / (2 * h)
        return lax.concatenate([first, inner, last], axis)
    steps = lax.expand_dims(_steps(h, 0), [k for k in range(a.ndim) if k != axis])
    left, right = (lax.slice_in_dim(steps, k, k + n - 2, axis=axis) for k in (0, 1))
    inner = (
        part(0, n - 2) * (-right / (left * (left + right)))
        + part(1, n - 1) * ((right - left) / (left * right))
        + part(2, n) * (left / (right * (left + right)))
    )
    first = (part(1, 2) - part(0, 1)) / lax.slice_in_dim(steps, 0, 1, axis=axis)
    last = (part(n - 1, n) - part(n - 2, n - 1)) / lax.slice_in_dim(steps, n - 2, n - 1, axis=axis)
    return lax.concatenate([first, inner, last], axis)


@replayed
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Integrate along an axis by the trapezoidal rule.

    Parameters
    ----------
    y : array_like
    x : array_like, optional
        Coordinates: a vector, or of ``y``'s shape.
    dx : scalar
        Their distance, without ``x``.
    axis : int
    """
    if x is None:
        (y,) = promote_dtypes_inexact(as_operand("trapezoid", y))
        y, dx = promote_dtypes(y, as_operand("trapezoid", dx, 2))
        y = moveaxis(y, axis, -1)
    else:
        y, x = promote_dtypes_inexact(*operands("trapezoid", y, x))
        y = moveaxis(y, axis, -1)
        dx = _steps(x if x.ndim == 1 else moveaxis(x, axis, -1), -1 % x.ndim)
    n, half = y.shape[-1], convert(0.5, y.dtype, True)

    def total(values: Array) -> Array:
        return lax.reduce_sum(values, (values.ndim - 1,))

    if n > 1 and not dx.ndim:
        # Only the ends are rounded before the sum, where every pair would be.
        ends = total(lax.slice_in_dim(y, 0, n, n - 1, axis=-1))
        out = dx * (total(lax.slice_in_dim(y, 1, n - 1, axis=-1)) + half * ends)
        return convert(out, out.dtype)
    pairs = lax.slice_in_dim(y, min(n, 1), n, axis=-1) + lax.slice_in_dim(
        y, 0, max(n - 1, 0), axis=-1
    )
    out = total(dx * pairs) * half
    return convert(out, out.dtype)


@replayed
def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * np.pi) -> Array:
    """Add multiples of a period to elements, so that no neighbours differ by more than half of it.

    Parameters
    ----------
    p : array_like
        Not complex.
    discont : scalar, optional
        Least jump that is mended; half the period where omitted.
    axis : int
    period : scalar
    """
    p = array_of("unwrap", p)
    if is_complex(p.dtype):
        raise ValueError("numpy.unwrap: p must not be complex.")
    if not p.ndim:
        raise ValueError("numpy.unwrap: p must have at least 1 axis, got a scalar.")
    axis = axis_of("unwrap", axis, p.ndim)
    p, period = promote_dtypes_numeric(p, as_operand("unwrap", period, 3))
    if not p.shape[axis]:
        return another(p)
    steps = _steps(p, axis)
    if is_inexact(p.dtype):
        high = period / 2
        exact = True
    else:
        high = period // 2
        exact = period % 2 == 0
    low = -high
    moved = (steps - low) % period + low
    # A jump of exactly half a period keeps its sign.
    moved = where((moved == low) & (steps > 0) & exact, -low, moved)
    limit = high if discont is None else discont
    correction = where(abs(steps) < limit, convert(0, p.dtype), moved - steps)
    n = p.shape[axis]
    tail = lax.slice_in_dim(p, 1, n, axis=axis) + lax.cumsum(correction, axis)
    return lax.concatenate([lax.slice_in_dim(p, 0, 1, axis=axis), tail.astype(p.dtype)], axis)


# --- interpolation ------------------------------------------------------------------------------


def _interp_alike(x: Any, xp: Any, fp: Any, *rest: Any, **settings: Any) -> Any:
    """Return what interpolates by NumPy as `interp` does: among vectors of one real dtype."""
    if rest or settings or not all(type(v) is ArrayImpl for v in (x, xp, fp)):
        return None
    dtype, n = xp.dtype, xp.size
    if dtype.kind != "f" or is_half(dtype) or x.dtype is not dtype or fp.dtype is not dtype:
        return None
    near, one, last = np.spacing(np.finfo(dtype).eps), dtype.type(1), max(n - 1, 1)

    def evaluate(x: np.ndarray, xp: np.ndarray, fp: np.ndarray) -> np.ndarray:
        at = np.minimum(np.maximum(places_in(xp, x, "right"), 1), last)
        low = at - 1
        x0, f0 = xp.take(low, mode="clip"), fp.take(low, mode="clip")
        gap = xp.take(at, mode="clip") - x0
        flat = np.abs(gap) <= near
        slope = (x - x0) / np.where(flat, one, gap)
        out = np.where(flat, f0, f0 + slope * (fp.take(at, mode="clip") - f0))
        return np.where(x > xp[n - 1], fp[n - 1], np.where(x < xp[0], fp[0], out))

    return partial(quietly, evaluate)


@replayed(instead=_interp_alike)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Array:
    """Interpolate linearly between points.

    Parameters
    ----------
    x : array_like
        Where to evaluate.
    xp, fp : array_like
        Coordinates of the points, rising (unless there is a ``period``), and their values.
    left, right : scalar or "extrapolate", optional
        Values below and above all points; those of the nearest point where omitted.
    period : scalar, optional
        Of the coordinates.

    Raises
    ------
    ValueError
        For points that are no vectors of one size of at least 1; a period that is no scalar or 0.
    """
    x, xp = promote_dtypes_inexact(*operands("interp", x, xp))
    (fp,) = promote_dtypes_inexact(as_operand("interp", fp, 2))
    if xp.ndim != 1 or fp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ValueError(
            "numpy.interp: xp and fp must be vectors of one size, not empty, got shapes "
            f"{xp.shape} and {fp.shape}."
        )
    for side, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(
                f"numpy.interp: {side} must be a number or 'extrapolate', got {value!r}."
            )
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = "extrapolate"
    n = xp.shape[0]
    at = searchsorted(xp, x, "right")
    at = lax.clamp(at.dtype.type(1), at, at.dtype.type(max(n - 1, 1)))
    low = at - 1
    x0, x1, f0, f1 = (take_index(v, k, mode="clip") for v in (xp, fp) for k in (low, at))
    gap = x1 - x0
    # Points this close have no slope to speak of: below the spacing of numbers near eps.
    flat = abs(gap) <= np.spacing(np.finfo(xp.dtype).eps)
    slope = (x - x0) / where(flat, convert(1, gap.dtype), gap)
    out = where(flat, f0, f0 + slope * (f1 - f0))
    for side, at, beyond in ((left, 0, lax.lt), (right, n - 1, lax.gt)):
        if isinstance(side, str):
            continue
        end = lax.index_in_dim(xp, at, keepdims=False)
        value = lax.index_in_dim(fp, at, keepdims=False) if side is None else side
        out = where(beyond(x, stretch("interp", end, x.shape)), value, out)
    return out


def _periodic(x: Array, xp: Array, fp: Array, period: Any) -> tuple[Array, Array, Array]:
    """Bring coordinates into one period, sort them, and repeat the last point before the first."""
    period = as_array(as_operand("interp", period, 5))
    if period.ndim:
        raise ValueError(f"numpy.interp: period must be a scalar, got shape {period.shape}.")
    if not isinstance(period, Tracer) and not period:
        raise ValueError("numpy.interp: period must not be 0.")
    x, xp, period = promote_dtypes(x, xp, period)
    period = abs(period)
    x, xp = x % period, xp % period
    order = argsort(xp)
    xp, fp = (take_index(v, order, mode="clip") for v in (xp, fp))
    ends = [lax.slice_in_dim(v, k, k + 1) for v in (xp, fp) for k in (0, xp.shape[0] - 1)]
    xp = lax.concatenate([ends[1] - period, xp, ends[0] + period], 0)
    return x, xp, lax.concatenate([ends[3], fp, ends[2]], 0)
