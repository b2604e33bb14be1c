"""Padding: what surrounds an array, by constants, by repetition, or by statistics of it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .. import lax
from ..core.array import Array
from ..core.dtypes import is_integer
from ..core.eager import replayed
from ..ops.kit.calls import convert
from ..ops.kit.canonical import as_array
from ._indexing import take as take_index
from ._lists import apply_along_axis
from ._quantiles import median
from ._ranges import linspace
from ._reductions import max as reduce_max
from ._reductions import mean
from ._reductions import min as reduce_min
from ._shape import along, array_of, concrete

__all__ = ["pad"]

Pairs = tuple[tuple[int, int], ...]

#: Options of each mode, with their defaults.
_OPTIONS: dict[str, dict[str, Any]] = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}
_STATISTICS = {"maximum": reduce_max, "minimum": reduce_min, "mean": mean, "median": median}


@replayed
def pad(array: Any, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any):
    """Surround an array with further elements.

    Parameters
    ----------
    array : array_like
    pad_width : int, pair, sequence of pairs, or dict
        Elements to put before and after each axis: one pair for all, or one for each; an int stands
        for twice itself. A dict has axes as keys.
    mode : str or callable
        ``"constant"`` (``constant_values``), ``"edge"``, ``"linear_ramp"`` (``end_values``),
        ``"maximum"``, ``"mean"``, ``"median"``, ``"minimum"`` (of the ``stat_length`` elements next
        to the edge), ``"reflect"``, ``"symmetric"`` (``reflect_type`` "even" or "odd"), ``"wrap"``,
        ``"empty"``; or ``mode(vector, pair, axis, kwargs)``, which fills a padded vector.
    **kwargs
        Options of the mode, in the forms that ``pad_width`` may have.

    Raises
    ------
    NotImplementedError
        For an unknown mode.
    ValueError
        For options that it does not have, or negative widths.
    TypeError
        For widths that are not concrete integers.
    """
    a = array_of("pad", array)
    widths = _widths(pad_width, a.ndim)
    if callable(mode):
        return _by_function(a, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise NotImplementedError(
            f"Unimplemented padding mode {mode!r} for numpy.pad: use one of {', '.join(_OPTIONS)}."
        )
    if unknown := kwargs.keys() - _OPTIONS[mode].keys():
        raise ValueError(f"numpy.pad: mode {mode!r} has no option {', '.join(sorted(unknown))}.")
    options = _OPTIONS[mode] | kwargs
    if mode in ("constant", "empty"):
        return _constant(a, widths, options.get("constant_values", 0))
    if mode == "linear_ramp":
        return _ramp(a, widths, options["end_values"])
    if mode in _STATISTICS:
        return _statistic(a, widths, mode, options["stat_length"])
    for axis, (before, after) in enumerate(widths):
        if before or after:
            a = _repeated(a, axis, before, after, mode, options.get("reflect_type", "even"))
    return a


def _widths(pad_width: Any, ndim: int) -> Pairs:
    if isinstance(pad_width, Mapping):
        by_axis = {k % ndim: v for k, v in pad_width.items()}
        pad_width = [by_axis.get(k, (0, 0)) for k in range(ndim)]
        pad_width = [v if np.iterable(v) else (v, v) for v in pad_width]
    given = _nested(pad_width)
    if given.dtype.kind not in "iu":
        raise TypeError(f"numpy.pad: pad_width must be integers, got {pad_width!r}.")
    try:
        pairs = np.broadcast_to(given, (ndim, 2))
    except ValueError as error:
        raise ValueError(
            f"numpy.pad: pad_width must be an int, a pair, or a pair for each of the {ndim} axes, "
            f"got {pad_width!r}."
        ) from error
    if (pairs < 0).any():
        raise ValueError(f"numpy.pad: pad_width must not be negative, got {pad_width!r}.")
    return tuple((operator.index(b), operator.index(e)) for b, e in pairs)


def _nested(x: Any) -> np.ndarray:
    if isinstance(x, list | tuple):
        parts = [_nested(v) for v in x]
        shape = np.broadcast_shapes(*(p.shape for p in parts))
        return np.stack([np.broadcast_to(p, shape) for p in parts]) if parts else np.zeros(0, int)
    return concrete("pad", "pad_width", x)


def _has_items(x: Any) -> bool:
    # A list is not handed to NumPy, which would read the values traced in it.
    return isinstance(x, list | tuple) or np.ndim(x) > 0


def _per_side(name: str, value: Any, ndim: int) -> list[tuple[Any, Any]]:
    """Return an option for each axis and side; its values may be traced."""
    if not _has_items(value):
        return [(value, value)] * ndim
    items = list(value)
    if len(items) == 1 and not _has_items(items[0]):
        return [(items[0], items[0])] * ndim
    if not any(map(_has_items, items)):
        items = [items]
    pairs = [tuple(v) * (2 // len(v)) for v in items if len(v) in (1, 2)]
    if len(pairs) not in (1, ndim):
        raise ValueError(f"numpy.pad: {name} must be a value or a pair for each axis, got {value}.")
    return pairs * (ndim // len(pairs))


def _constant(a: Array, widths: Pairs, values: Any) -> Array:
    sides = _per_side("constant_values", values, a.ndim)
    scalars = [convert(v, a.dtype, a.weak_type) for pair in sides for v in pair]
    if all(v is values for pair in sides for v in pair) or not a.ndim:
        fill = scalars[0] if scalars else convert(0, a.dtype, a.weak_type)
        return lax.pad(a, fill, [(b, e, 0) for b, e in widths])
    for axis, (before, after) in enumerate(widths):
        for side, width in ((0, (before, 0)), (1, (0, after))):
            config = [(*width, 0) if k == axis else (0, 0, 0) for k in range(a.ndim)]
            a = lax.pad(a, scalars[2 * axis + side], config)
    return a


def _repeated(a: Array, axis: int, before: int, after: int, mode: Any, reflect: str) -> Array:
    n = a.shape[axis]
    if not n:
        raise ValueError(f"numpy.pad: axis {axis} of size 0 cannot be padded with mode {mode!r}.")
    if reflect not in ("even", "odd"):
        raise ValueError(f"numpy.pad: reflect_type must be 'even' or 'odd', got {reflect!r}.")
    if reflect == "odd":
        skip = int(mode == "reflect")
        a = _reflect_odd(a, axis, before, skip)
        back = lax.rev(a, (axis,))
        return lax.rev(_reflect_odd(back, axis, after, skip), (axis,))
    places = np.pad(np.arange(n, dtype=np.int32), (before, after), mode)
    runs = _runs(places)
    if len(runs) > _MANY:
        return take_index(a, along(a.ndim, axis, places), mode="clip")
    return lax.concatenate([_run(a, axis, *run) for run in runs], axis)


#: Runs of places from which on they are read one by one: an axis that is repeated often.
_MANY = 8


def _runs(places: np.ndarray) -> list[tuple[int, int, int]]:
    """Cut places into runs up, down or on the spot: the first of each, the step and how many.

    Slices can be read along the axis, where places that are looked up are read one by one: a
    bilateral filter of 5 x 5 ran half as long.
    """
    runs: list[tuple[int, int, int]] = []
    steps = [*np.diff(places).tolist(), None]
    start = 0
    while start < len(places):
        step, end = steps[start], start
        while step in (-1, 0, 1) and steps[end] == step:
            end += 1
        runs.append((int(places[start]), step if end > start else 0, end + 1 - start))
        start = end + 1
    return runs


def _run(a: Array, axis: int, first: int, step: int, count: int) -> Array:
    low, size = (first - (count - 1) * (step < 0), count) if step else (first, 1)
    part = lax.slice_in_dim(a, low, low + size, axis=axis)
    if step < 0:
        return lax.rev(part, (axis,))
    shape = (*a.shape[:axis], count, *a.shape[axis + 1 :])
    return part if size == count else lax.broadcast_in_dim(part, shape, range(a.ndim))


def _reflect_odd(a: Array, axis: int, width: int, skip: int) -> Array:
    """Put ``width`` elements in front, reflected in the first element's place and value."""
    part = partial(lax.slice_in_dim, axis=axis)
    while width:
        step = min(width, max(a.shape[axis] - skip, 1))
        first = part(a, 0, 1)
        start = min(skip, a.shape[axis] - 1)
        mirrored = lax.rev(part(a, start, start + step), (axis,))
        a = lax.concatenate([2 * first - mirrored, a], axis)
        width -= step
    return a


def _ramp(a: Array, widths: Pairs, end_values: Any) -> Array:
    for axis, ((before, after), ends) in enumerate(
        zip(widths, _per_side("end_values", end_values, a.ndim), strict=True)
    ):
        sides = []
        for width, end, at in ((before, ends[0], 0), (after, ends[1], a.shape[axis] - 1)):
            edge = lax.index_in_dim(a, at, axis, keepdims=False)
            sides.append(linspace(end, edge, width, endpoint=False, dtype=a.dtype, axis=axis))
        a = lax.concatenate([sides[0], a, lax.rev(sides[1], (axis,))], axis)
    return a


def _statistic(a: Array, widths: Pairs, mode: str, stat_length: Any) -> Array:
    lengths = _per_side("stat_length", stat_length, a.ndim)
    for axis, ((before, after), pair) in enumerate(zip(widths, lengths, strict=True)):
        n = a.shape[axis]
        if any(k is not None and operator.index(k) < 1 for k in pair):
            raise ValueError(f"numpy.pad: stat_length must be positive, got {stat_length!r}.")
        first, last = (n if k is None else min(int(k), n) for k in pair)
        parts = [lax.slice_in_dim(a, 0, first, axis=axis)]
        parts.append(lax.slice_in_dim(a, n - last, n, axis=axis))
        sides = [
            _spread(_STATISTICS[mode](p, axis=axis, keepdims=True), a, axis, width)
            for p, width in zip(parts, (before, after), strict=True)
        ]
        a = lax.concatenate([sides[0], a, sides[1]], axis)
    return a


def _spread(value: Array, a: Array, axis: int, width: int) -> Array:
    if is_integer(a.dtype) and not is_integer(value.dtype):
        value = lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN)
    value = lax.convert_element_type(value, a.dtype)
    shape = tuple(width if k == axis else n for k, n in enumerate(value.shape))
    return lax.broadcast_in_dim(value, shape, range(a.ndim))


def _by_function(a: Array, widths: Pairs, function: Callable[..., Any], options: dict) -> Array:
    a = _constant(a, widths, 0)
    for axis, pair in enumerate(widths):
        a = as_array(apply_along_axis(function, axis, a, pair, axis, options))
    return a
