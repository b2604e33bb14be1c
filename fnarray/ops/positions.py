"""Positions of extremes along an axis."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import canonicalize_dtype, is_integer
from ..core.forms import Reduce
from ..core.primitive import Primitive
from ..core.trace import bind
from .kit.calls import bitwise_and, const, convert
from .kit.checks import REAL, check_kind
from .kit.declare import inlined, place_axes, without_axes
from .kit.registry import register
from .kit.rules import CONSTANT, NOT_LINEAR, one_more_axis, shifted
from .reduce import highest_of, lowest_of, wide, zero_of

__all__ = ["argmax", "argmin"]


def _keys(label: str, first: str, find: Any) -> Primitive:
    """Declare the least of the integers whose high half is a number and the low one its place.

    Where a number is of up to 32 bits, one fold finds it and the first place where it stands. What
    NumPy evaluates has no number in its high half, which is not read.
    """

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...]) -> np.ndarray:
        return find(x.astype(wide(x.dtype), copy=False), axis=axes[0]).astype(np.int64)

    def form(ins: Any, outs: Any, *, axes: tuple[int, ...]) -> Reduce:
        return Reduce(
            extents=(ins[0].shape[axes[0]],),
            index=(lambda o, r: place_axes(axes, r, o),),
            inits=(np.iinfo(np.int64).max,),
            combine=("sc.minimum({a0}, {x0})",),
            terms=(f"(sc.{first}_first({{0}}) | {{r0}})",),
            axes=axes,
        )

    return register(
        Primitive(
            f"{label}_key",
            aval=lambda x, *, axes: ShapedArray(without_axes(x.shape, axes), np.dtype(np.int64)),
            eval=evaluate,
            form=form,
            jvp=CONSTANT,
            transpose=NOT_LINEAR,
            batch=one_more_axis(axes=shifted),
        )
    )


def _check_axis(label: str, x: ShapedArray, axis: int, index_dtype: np.dtype) -> None:
    """Check that an axis has elements, and places that a dtype counts."""
    if not 0 <= axis < x.ndim:
        raise ValueError(
            f"lax.{label}: axis must be in [0, {x.ndim}) for shape {x.shape}, got {axis}."
        )
    if not is_integer(index_dtype):
        raise TypeError(f"lax.{label}: index_dtype must be an integer dtype, got {index_dtype}.")
    if x.shape[axis] == 0:
        raise ValueError(
            f"lax.{label}: axis {axis} of shape {x.shape} is empty, so no element is extreme."
        )
    n = x.shape[axis]
    if isinstance(n, int) and n - 1 > np.iinfo(index_dtype).max:
        raise ValueError(
            f"lax.{label}: axis {axis} of shape {x.shape} has more places than {index_dtype} "
            "counts. Use a wider index_dtype: fnarray.enable_x64 enables int64."
        )


def _position(
    label: str, first: str, beats: str, start: Callable[[np.dtype], Any], find: Any
) -> Primitive:
    """Declare the index of an extreme along one axis; ``beats`` compares term and accumulator."""
    keys = _keys(label, first, find)

    def aval(x: ShapedArray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> ShapedArray:
        check_kind(label, x.dtype, "b" + REAL)
        _check_axis(label, x, axes[0], index_dtype)
        return ShapedArray(without_axes(x.shape, axes), index_dtype)

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> np.ndarray:
        return find(x.astype(wide(x.dtype), copy=False), axis=axes[0])

    def place(x: Array, axes: tuple[int, ...], index_dtype: np.dtype) -> Array:
        key = bind(keys, x, axes=axes)
        low = key if index_dtype.itemsize <= 4 else bitwise_and(key, const(key, 0xFFFFFFFF))
        return convert(low, index_dtype)

    in_one = inlined(place)

    def form(ins: Any, outs: Any, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Any:
        (x,) = ins
        if wide(x.dtype).itemsize <= 4 and x.shape[axes[0]] <= 1 << 32:
            return in_one(ins, outs, axes=axes, index_dtype=np.dtype(index_dtype))
        # NaN replaces all but NaN, so the first one stays; of equals the first stays too.
        wins = f"({{x0}} {beats} {{a0}}) | (({{x0}} != {{x0}}) & ({{a0}} == {{a0}}))"
        return Reduce(
            extents=(x.shape[axes[0]],),
            index=(lambda o, r: place_axes(axes, r, o),),
            inits=(start(x.dtype), zero_of(index_dtype)),
            combine=(f"({{x0}} if {wins} else {{a0}})", f"({{x1}} if {wins} else {{a1}})"),
            terms=("{0}", f"sc.to_{index_dtype}({{r0}})"),
            results=(1,),
            dtypes=(wide(x.dtype), index_dtype),
            axes=axes,
        )

    return register(
        Primitive(
            label,
            aval=aval,
            eval=evaluate,
            form=form,
            jvp=CONSTANT,
            transpose=NOT_LINEAR,
            batch=one_more_axis(axes=shifted),
        )
    )


argmax_p = _position("argmax", "greatest", ">", lowest_of, np.argmax)
argmin_p = _position("argmin", "least", "<", highest_of, np.argmin)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Array:
    """Return the index of the maximum along ``axis``: the first of equals, and NaN wins.

    Parameters
    ----------
    operand : array
        Of a real dtype or bool.
    axis : int
        Non-negative; the result lacks it.
    index_dtype : dtype-like
        Integer dtype of the result.

    Raises
    ------
    ValueError
        For an axis out of range, or an empty one.
    TypeError
        For a complex operand, or an ``index_dtype`` that is no integer.
    """
    return _place(argmax_p, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """Return the index of the minimum along ``axis``; see `argmax`."""
    return _place(argmin_p, operand, axis, index_dtype)


def _place(prim: Primitive, operand: Any, axis: int, index_dtype: Any) -> Array:
    index_dtype = canonicalize_dtype(index_dtype)
    return bind(prim, operand, axes=(operator.index(axis),), index_dtype=index_dtype)
