"""Quantiles: sort along the axes, then read between neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .. import lax
from ..core.array import Array
from ..core.dtypes import canonicalize_dtype, is_complex, to_single
from ..core.eager import replayed
from ..ops.kit.calls import convert
from ._promote import as_operand, no_out, promote_dtypes_inexact
from ._reductions import Axis, canonical_axes
from ._select import choose_where

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _declared(name: str, doc: str, *, of_one: float = 1, skip_nan: bool = False) -> Any:
    """Return a function of quantiles, whose ``q`` is ``of_one`` for all elements."""

    def quantile(
        a: Any,
        q: Any,
        axis: Axis = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
    ) -> Array:
        if of_one != 1:
            (q,) = promote_dtypes_inexact(as_operand(name, q, 1))
            q = lax.div(q, convert(of_one, q.dtype, q.weak_type))
        return _quantile(name, a, q, axis, out, method, keepdims, weights, skip_nan=skip_nan)

    quantile.__name__ = quantile.__qualname__ = name
    quantile.__doc__ = doc
    return replayed(exact=True)(quantile)


quantile = _declared(
    "quantile",
    """Value below which a fraction ``q`` of the elements along axes lies; NaN where one is.

    Parameters
    ----------
    a : array_like
    q : array_like
        Fractions in [0, 1]; its axes come first in the result. Fractions outside are clipped.
    axis : int or sequence of int, optional
        All by default.
    overwrite_input : bool
        Accepted; arrays are immutable.
    method : {"linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"}
        What to read between two neighbours.
    keepdims : bool
    weights : array_like, optional
        Of the shape of ``a``, or of its ``axis``; for ``"inverted_cdf"`` only.

    Raises
    ------
    ValueError
        For complex numbers, another method, or weights with a method that has none, or of another
        shape.
    """,
)
nanquantile = _declared(
    "nanquantile", "`quantile` of the elements that are not NaN; NaN where all are.", skip_nan=True
)
percentile = _declared("percentile", "`quantile` with ``q`` in percent.", of_one=100)
nanpercentile = _declared(
    "nanpercentile", "`nanquantile` with ``q`` in percent.", of_one=100, skip_nan=True
)


@replayed(exact=True)
def median(
    a: Any,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Middle element along axes, or the mean of the middle two; NaN where one is."""
    return _quantile("median", a, 0.5, axis, out, "midpoint", keepdims, None, skip_nan=False)


@replayed(exact=True)
def nanmedian(
    a: Any,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """`median` of the elements that are not NaN; NaN where all are."""
    return _quantile("nanmedian", a, 0.5, axis, out, "midpoint", keepdims, None, skip_nan=True)


# ---- machinery ---------------------------------------------------------------------------------


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Axis,
    out: Any,
    method: str,
    keepdims: bool,
    weights: Any,
    *,
    skip_nan: bool,
) -> Array:
    no_out(name, out, ValueError)
    if method not in _METHODS:
        raise ValueError(f"numpy.{name}: method must be one of {_METHODS}, got {method!r}.")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(
            f"numpy.{name}: only method 'inverted_cdf' supports weights, not {method!r}."
        )
    (a,), (q,) = (promote_dtypes_inexact(as_operand(name, x, k)) for k, x in enumerate((a, q)))
    if is_complex(a.dtype):
        raise ValueError(f"numpy.{name}: complex numbers have no order. Take abs, real or imag.")
    axes = canonical_axes(name, axis, a.ndim)
    if weights is not None:
        a, given = promote_dtypes_inexact(a, as_operand(name, weights))
        weights = _as_rows(_spread(name, given, a.shape, axis), axes)[0]
    rows, kept = _as_rows(a, axes)
    if rows.shape[1] == 0:
        raise ValueError(f"numpy.{name}: no elements along axis {axis} of shape {a.shape}.")
    fractions = lax.reshape(q, (1, q.size))
    if weights is not None:
        if skip_nan:
            weights = choose_where(lax.ne(rows, rows), convert(0, rows.dtype), weights)
        part = convert(fractions, rows.dtype)
        found = _by_weights(rows if skip_nan else _spoilt(rows), weights, part)
    else:
        found = _by_rank(rows if skip_nan else _spoilt(rows), fractions, method, skip_nan)
    shape = [1 if i in axes else n for i, n in enumerate(a.shape)] if keepdims else list(kept)
    return lax.reshape(lax.transpose(found, (1, 0)), (*q.shape, *shape))


def _spread(name: str, weights: Array, shape: tuple[int, ...], axis: Axis) -> Array:
    """Return weights of the elements along some axes, in the order given, as those of all."""
    if weights.shape == shape:
        return weights
    along = () if axis is None else axis if isinstance(axis, Iterable) else (axis,)
    order = [range(len(shape))[i] for i in along]
    want = shape if axis is None else tuple(shape[i] for i in order)
    if weights.shape != want:
        raise ValueError(
            f"numpy.{name}: weights must have the shape of a, {shape}, or of the axes that are "
            f"reduced, {want}, got {weights.shape}."
        )
    ranked = sorted(range(len(order)), key=order.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(weights, ranked), shape, sorted(order))


def _as_rows(a: Array, axes: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """The array as a matrix, ``axes`` along its rows, and the shape of the others."""
    rest = [i for i in range(a.ndim) if i not in axes]
    kept = tuple(a.shape[i] for i in rest)
    length = math.prod(a.shape[i] for i in axes)
    moved = lax.transpose(a, (*rest, *axes)) if axes else a
    return lax.reshape(moved, (math.prod(kept), length)), kept


def _spoilt(rows: Array) -> Array:
    """Rows that are NaN throughout where one of their elements is."""
    spoilt = lax.expand_dims(lax.reduce_or(lax.ne(rows, rows), (1,)), (1,))
    return choose_where(spoilt, convert(math.nan, rows.dtype), rows)


def _by_rank(rows: Array, q: Array, method: str, skip_nan: bool) -> Array:
    """Quantiles ``(rows, q)`` of rows whose elements count alike."""
    # Halves cannot count beyond their digits.
    work = to_single(rows.dtype)
    if skip_nan:
        counted = convert(lax.bitwise_not(lax.ne(rows, rows)), work)
        number = lax.expand_dims(lax.reduce_sum(counted, (1,)), (1,))
    else:
        number = lax.full((1, 1), rows.shape[1], work)
    rows = lax.sort(rows, 1)
    last = lax.max(number - 1, convert(0, work))
    q = convert(q, work)
    if method == "inverted_cdf":
        place = below = above = lax.ceil(q * number) - 1
    else:
        place = q * last
        below, above = lax.floor(place), lax.ceil(place)
    share = place - below
    zero = convert(0, work)
    low, high = (
        _read(rows, choose_where(p < zero, zero, choose_where(p > last, last, p)))
        for p in (below, above)
    )
    found = _between(method)(low, high, convert(share, rows.dtype))
    if skip_nan:
        nan = convert(math.nan, rows.dtype)
        found = choose_where(lax.eq(number, convert(0, work)), nan, found)
    return found


def _read(rows: Array, places: Array) -> Array:
    """Elements of rows at whole-numbered places ``(rows or 1, q)``."""
    index = canonicalize_dtype(int)
    count = rows.shape[0]
    places = lax.broadcast_in_dim(places, (count, places.shape[1]), (0, 1))
    row = lax.broadcasted_iota(index, places.shape, 0)
    return rows[row, convert(places, index)]


def _between(method: str) -> Callable[[Array, Array, Array], Array]:
    return {
        "linear": lambda low, high, share: low * (1 - share) + high * share,
        "lower": lambda low, high, share: low,
        "higher": lambda low, high, share: high,
        "inverted_cdf": lambda low, high, share: low,
        "midpoint": lambda low, high, share: (low + high) * 0.5,
        "nearest": lambda low, high, share: choose_where(share > 0.5, high, low),
    }[method]


def _by_weights(rows: Array, weights: Array, q: Array) -> Array:
    """Smallest elements at which the weights so far reach a fraction ``q`` of all.

    NaN where a weight is negative or NaN: no order of the elements has such a fraction.
    """
    sound = lax.reduce_and(lax.ge(weights, convert(0, weights.dtype)), (1,))
    rows = choose_where(lax.expand_dims(sound, (1,)), rows, convert(math.nan, rows.dtype))
    rows, weights = lax.sort((rows, weights), 1, num_keys=1)
    reached = lax.cumsum(weights, axis=1)
    total = lax.slice_in_dim(reached, reached.shape[1] - 1, reached.shape[1], axis=1)
    reached = reached / total
    # Elements of no weight before the first that counts are never the answer, not even for 0.
    reached = choose_where(lax.eq(reached, convert(0, reached.dtype)), -1, reached)
    before = lax.lt(
        lax.broadcast_in_dim(reached, (*reached.shape, q.shape[1]), (0, 1)),
        lax.broadcast_in_dim(q, (*reached.shape, q.shape[1]), (0, 2)),
    )
    place = lax.reduce_sum(convert(before, canonicalize_dtype(int)), (1,))
    place = lax.min(place, lax.full_like(place, rows.shape[1] - 1))
    return _read(rows, place)
