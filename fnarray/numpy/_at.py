"""Functional updates: ``x.at[idx].set(y)`` and its kin."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.array import Array, ArrayImpl, asarray
from ..core.avals import ShapedArray
from ..core.dtypes import result_type
from ..core.hooks import cut_as
from ..core.quiet import quietly
from ..core.source import boundary
from ..core.trace import Tracer, state
from ..ops.convert import convert_element_type, convert_values
from ..ops.gather import GatherScatterMode
from ..ops.kit.canonical import as_array
from ..ops.scatter import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_apply,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from ..ops.shape import broadcast_in_dim, expand_dims, squeeze
from ..ops.slicing import rev
from ._index_parse import ARRAY, INT, NONE, SLICE, Parsed, parse
from ._indexing import Plan, make_plan, take

__all__ = ["IndexUpdateHelper", "IndexUpdateRef"]

Mode = str | GatherScatterMode | None
#: NumPy's operation for each scatter that combines.
_UFUNCS: dict[Callable[..., Array], np.ufunc] = {
    scatter_add: np.add,
    scatter_sub: np.subtract,
    scatter_mul: np.multiply,
    scatter_min: np.minimum,
    scatter_max: np.maximum,
}


class IndexUpdateHelper:
    """What ``x.at`` is: ``x.at[idx]`` names places of an array, to be read or updated."""

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r})"


class IndexUpdateRef:
    """Places of an array. Every method returns a new array; the array itself never changes.

    Parameters of all updates:

    indices_are_sorted, unique_indices : bool
        Promises about the places.
    mode : {"drop", "clip", "promise_in_bounds"} or GatherScatterMode, optional
        What becomes of updates out of range; by default they are dropped.
    wrap_negative_indices : bool
        Whether negative indices count from the end.

    Values are broadcast to the places' shape and converted to the array's dtype. Where places
    repeat, updates that combine do so again and again; of `set`, the last stays.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r}, {self.index!r})"

    @boundary
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return ``x[idx]``; with ``mode="fill"``, places out of range read ``fill_value``."""
        return _said(
            out_sharding,
            take,
            self.array,
            self.index,
            mode=mode,
            fill_value=fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            wrap=wrap_negative_indices,
        )

    @boundary
    def set(self, values: Any, **options: Any) -> Array:
        """Return ``x`` after ``x[idx] = values``."""
        return _update("set", self.array, self.index, values, scatter, **options)

    @boundary
    def add(self, values: Any, **options: Any) -> Array:
        """Return ``x`` after ``x[idx] += values``."""
        return _update("add", self.array, self.index, values, scatter_add, **options)

    @boundary
    def subtract(self, values: Any, **options: Any) -> Array:
        """Return ``x`` after ``x[idx] -= values``."""
        return _update("subtract", self.array, self.index, values, scatter_sub, **options)

    @boundary
    def multiply(self, values: Any, **options: Any) -> Array:
        """Return ``x`` after ``x[idx] *= values``."""
        return _update("multiply", self.array, self.index, values, scatter_mul, **options)

    mul = multiply

    @boundary
    def divide(self, values: Any, **options: Any) -> Array:
        """Return ``x`` after ``x[idx] /= values``; integers become floats."""
        return operator.truediv(self.array, self._scale(values, "divide", options))

    @boundary
    def power(self, values: Any, **options: Any) -> Array:
        """Return ``x`` after ``x[idx] **= values``."""
        return operator.pow(self.array, self._scale(values, "power", options))

    @boundary
    def min(self, values: Any, **options: Any) -> Array:
        """Return ``x`` after ``x[idx] = minimum(x[idx], values)``."""
        return _update("min", self.array, self.index, values, scatter_min, **options)

    @boundary
    def max(self, values: Any, **options: Any) -> Array:
        """Return ``x`` after ``x[idx] = maximum(x[idx], values)``."""
        return _update("max", self.array, self.index, values, scatter_max, **options)

    @boundary
    def apply(
        self,
        func: Callable[[Array], Array],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return ``x`` after ``func`` is applied to its elements at the places.

        Parameters
        ----------
        func : callable
            Maps an element to one of the same dtype; applied again where places repeat.
        """
        x = as_array(self.array)
        plan = make_plan(parse(self.index, x.shape), wrap_negative_indices)
        if 0 in plan.slice_shape:
            return x
        kept = tuple(n for d, n in enumerate(plan.slice_shape) if d not in plan.newaxis_dims)

        def scatter_func(
            operand: Array, indices: Array, _: Any, numbers: Any, **opts: Any
        ) -> Array:
            return scatter_apply(operand, indices, func, numbers, update_shape=kept, **opts)

        options = {
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": mode,
        }
        return _scatter(x, plan, None, scatter_func, options)

    def _scale(self, values: Any, name: str, options: dict[str, Any]) -> Array:
        """Return ones, multiplied by values at the places: repeated places divide repeatedly."""
        x = self.array
        one = ArrayImpl(np.ones((), x.dtype), ShapedArray((), x.dtype, x.weak_type))
        ones = broadcast_in_dim(one, x.shape, ())
        return _update(name, ones, self.index, values, scatter_mul, **options)


def _said(where: Any, f: Callable[..., Array], *args: Any, **options: Any) -> Array:
    return f(*args, **options) if where is None else cut_as(where, f, *args, **options)


def _as_values(y: Any, dtype: np.dtype) -> Array:
    """Return values to store as an array; a Python int that fits takes the array's dtype."""
    if isinstance(y, Array):
        return y
    if type(y) is int and dtype.kind in "iu":
        info = np.iinfo(dtype)
        if info.min <= y <= info.max:
            return ArrayImpl(np.array(y, dtype), ShapedArray((), dtype))
    if y is None:
        raise ValueError("None is not a valid value for an indexed update; got values=None")
    if isinstance(y, list | tuple):
        from ._creation import array  # loaded by whoever makes arrays of lists

        return array(y)
    return asarray(y)


def _check_cast(y: Array, dtype: np.dtype) -> None:
    """Warn where values do not fit the array's dtype, which a later JAX refuses."""
    if y.dtype != dtype and result_type(y, dtype) != dtype:
        warnings.warn(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={y.dtype} to dtype={dtype}. In future this will be an error: convert the "
            "value (y.astype) or the array.",
            FutureWarning,
            stacklevel=4,
        )


def _converted(x: Array, dtype: np.dtype) -> Array:
    if x.dtype == dtype:
        return x
    if type(x) is ArrayImpl:
        data = quietly(convert_values, x._data, dtype)
        return ArrayImpl(data, ShapedArray(x.shape, dtype))
    return convert_element_type(x, dtype)


def _broadcast(name: str, y: Array, shape: tuple[int, ...]) -> Any:
    if y.shape == shape:
        return y
    lead = len(shape) - y.ndim
    if lead < 0 or any(
        n not in (1, m) for n, m in zip(y.shape, shape[max(lead, 0) :], strict=True)
    ):
        raise ValueError(
            f"x.at[idx].{name}: values of shape {y.shape} cannot be broadcast to shape {shape}, "
            "that of x[idx]."
        )
    return broadcast_in_dim(y, shape, range(lead, len(shape)))


def _update(
    name: str,
    x: Any,
    idx: Any,
    values: Any,
    scatter_op: Callable[..., Array],
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
    out_sharding: Any = None,
    wrap_negative_indices: bool = True,
) -> Array:
    if out_sharding is not None:
        return cut_as(
            out_sharding,
            _update,
            name,
            x,
            idx,
            values,
            scatter_op,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            wrap_negative_indices=wrap_negative_indices,
        )
    x = as_array(x)
    dtype = x.dtype
    y = _as_values(values, dtype)
    _check_cast(y, dtype)
    parsed = parse(idx, x.shape)
    common = result_type(x, y)
    if mode is None and common == dtype and type(x) is ArrayImpl and type(y) is ArrayImpl:
        done = _update_now(name, x, parsed, y, scatter_op, wrap_negative_indices)
        if done is not None:
            return done
    plan = make_plan(parsed, wrap_negative_indices)
    if 0 in plan.slice_shape:
        return x
    y = _broadcast(name, _converted(y, common), plan.slice_shape)
    if not x.size:  # every place is out of range
        return x
    if plan.newaxis_dims:
        y = squeeze(y, plan.newaxis_dims)
    if plan.reversed_dims:
        y = rev(y, plan.reversed_dims)
    options = {
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices,
        "mode": mode,
    }
    out = _scatter(_converted(x, common), plan, y, scatter_op, options)
    return _converted(out, dtype)


def _scatter(
    x: Array, plan: Plan, y: Any, scatter_op: Callable[..., Array], options: dict[str, Any]
) -> Array:
    if plan.bool_dims:
        x = expand_dims(x, plan.bool_dims)
    gathers = plan.numbers
    numbers = ScatterDimensionNumbers(
        gathers.offset_dims, gathers.collapsed_slice_dims, gathers.start_index_map
    )
    options["indices_are_sorted"] |= plan.basic
    options["unique_indices"] |= plan.basic
    out = scatter_op(x, plan.indices, y, numbers, **options)
    return squeeze(out, plan.bool_dims) if plan.bool_dims else out


def _update_now(
    name: str,
    x: ArrayImpl,
    parsed: Parsed,
    y: ArrayImpl,
    scatter_op: Callable[..., Array],
    wrap: bool,
) -> ArrayImpl | None:
    """Update by NumPy where that means the same: distinct places, all in range.

    No record of `core.eager`: whether places are in range follows from their values, and the index
    that moves through a loop would be a signature, hence a trace, for each of its positions.
    """
    ufunc = _UFUNCS.get(scatter_op)
    basic = parsed.all_of(INT, SLICE, NONE)
    one = not basic and sum(e.kind is ARRAY for e in parsed.entries) == 1
    if (
        state.trace is not None
        or x.dtype.kind == "b"
        or not parsed.in_range(wrap)
        or not (basic or (one and parsed.all_of(INT, SLICE, ARRAY)))
        or not (basic or ufunc is None or x.ndim == 1)
    ):
        return None
    index = []
    for e in parsed.entries:
        value, n = e.value, parsed.shape[e.axis] if e.axis >= 0 else 0
        if e.kind is ARRAY:
            if isinstance(value, Tracer) or not value.size or not n:
                return None
            low, high = int(value.min()), int(value.max())
            if high >= n or low < (-n if wrap else 0):
                return None
        index.append(value)
    out = x._data.copy()
    where = tuple(index)
    shape = out[where].shape
    new = _broadcast(name, _converted(y, x.dtype), shape)._data
    if ufunc is None:
        out[where] = new
    elif basic:
        out[where] = ufunc(out[where], new)
    else:
        ufunc.at(out, where[0], new)
    return ArrayImpl(out, x.aval)
