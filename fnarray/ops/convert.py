"""Conversions between dtypes, and identities."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from ..core import tree
from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import (
    canonicalize_dtype,
    finfo,
    float64,
    iinfo,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    itemsize_bits,
    to_real,
)
from ..core.forms import Inline, Map
from ..core.graph import ClosedGraph, Graph, Var
from ..core.primitive import Primitive
from ..core.tangents import Zero, differentiable, is_zero, tangent_aval
from ..core.trace import bind
from .elementwise import in_single
from .kit import calls
from .kit.calls import broadcast_in_dim, convert
from .kit.checks import FLOAT, check_kind
from .kit.declare import elementwise, inlined
from .kit.registry import register
from .kit.rules import (
    CONSTANT,
    ELEMENTWISE_BATCH,
    LINEAR,
    NOT_LINEAR,
    partials,
    transposed,
)

__all__ = [
    "bitcast_convert_type",
    "convert_element_type",
    "copy",
    "optimization_barrier",
    "reduce_precision",
    "stop_gradient",
]


# ---- conversion of values ----------------------------------------------------------------------


def convert_values(x: Any, dtype: np.dtype) -> np.ndarray:
    """Return elements in another dtype.

    Integers wrap; floats are cut towards zero and saturate, NaN becomes 0; complex numbers lose
    their imaginary part.
    """
    if is_complex(x.dtype) and not is_complex(dtype):
        x = x.real
    if not (is_float(x.dtype) and is_integer(dtype)):
        return x.astype(dtype)
    if x.dtype.itemsize == 2:
        x = x.astype(np.float32)
    limits = iinfo(dtype)
    if np.all((x >= float(limits.min)) & (x < float(limits.max))):
        return np.asarray(x.astype(dtype))
    with np.errstate(invalid="ignore"):  # what is out of range follows
        out = np.asarray(x.astype(dtype))
    # What C leaves undefined. Comparing with float(max) is right though it rounds up: whatever
    # is not below it saturates.
    for where, value in (
        (x >= float(limits.max), limits.max),
        (x <= float(limits.min), limits.min),
        (x != x, 0),
    ):
        if np.any(where):
            out[where] = value
    return out


def _part(dtype: np.dtype) -> str:
    """Name of the conversion to a dtype's parts; half types are rounded on their way out."""
    part = to_real(dtype)
    return "sc.to_float32" if is_float(part) and part != float64 else f"sc.to_{part.name}"


def _convert_form(ins: tuple[ShapedArray, ...], outs: Any, **params: Any) -> Map:
    old, new = ins[0].dtype, outs[0].dtype
    if old == new:
        return Map("{0}")
    to = _part(new)
    if is_complex(old):
        re = f"{to}({{0}}.real)"
        return Map(f"fk.complexmath.make({re}, {to}({{0}}.imag))" if is_complex(new) else re)
    value = f"{to}({{0}})"
    return Map(f"fk.complexmath.make({value}, {to}(0.0))" if is_complex(new) else value)


def _convert_tangent(g: Any, out: Any, x: Any, *, new_dtype: np.dtype, weak_type: bool) -> Any:
    if not differentiable(new_dtype):
        return Zero(tangent_aval(out.aval))
    return convert(g, new_dtype, weak_type)


_convert_p = register(
    Primitive(
        "convert_element_type",
        aval=lambda x, *, new_dtype, weak_type: ShapedArray(x.shape, new_dtype, weak_type),
        eval=lambda x, *, new_dtype, weak_type: convert_values(x, new_dtype),
        form=_convert_form,
        jvp=partials(_convert_tangent),
        transpose=transposed(lambda ct, x, **_: convert(ct, x.dtype, x.weak_type)),
        batch=ELEMENTWISE_BATCH,
    )
)


def convert_element_type(operand: Any, new_dtype: Any) -> Array:
    """Convert elements to ``new_dtype``.

    Integers wrap around. Floats become integers by cutting towards zero; what is out of range
    saturates, and NaN becomes 0. Complex numbers lose their imaginary part.

    Parameters
    ----------
    operand : array-like
    new_dtype : dtype-like
        Narrowed to 32 bits unless ``enable_x64`` is set.

    Raises
    ------
    TypeError
        No array holds ``new_dtype``, or ``operand`` is no array.
    ValueError
        ``new_dtype`` is None.
    """
    if new_dtype is None:
        raise ValueError("lax.convert_element_type: new_dtype must be given, got None.")
    return convert(operand, canonicalize_dtype(new_dtype))


# ---- conversion of bits ------------------------------------------------------------------------


def _bitcast_aval(x: ShapedArray, *, new_dtype: np.dtype) -> ShapedArray:
    old = x.dtype
    if old != new_dtype and any(is_bool(d) or is_complex(d) for d in (old, new_dtype)):
        raise TypeError(
            f"lax.bitcast_convert_type: bool and complex only convert to themselves, got {old} "
            f"and {new_dtype}. Use the array's view method, or lax.real and lax.imag."
        )
    from_bits, to_bits = itemsize_bits(old), itemsize_bits(new_dtype)
    shape = x.shape
    if from_bits > to_bits:
        shape = (*shape, from_bits // to_bits)
    elif from_bits < to_bits:
        if not shape or shape[-1] * from_bits != to_bits:
            raise ValueError(
                f"lax.bitcast_convert_type: from {old} to {new_dtype} the last axis must have "
                f"{to_bits // from_bits} elements, got shape {shape}."
            )
        shape = shape[:-1]
    return ShapedArray(shape, new_dtype)


def _bitcast_eval(x: np.ndarray, *, new_dtype: np.dtype) -> np.ndarray:
    old, new = x.dtype.itemsize, new_dtype.itemsize
    if old == new:
        return x.view(new_dtype)
    bits = np.ascontiguousarray(x).reshape(*x.shape, 1) if old > new else np.ascontiguousarray(x)
    return bits.view(new_dtype).reshape(x.shape[:-1] if old < new else (*x.shape, old // new))


_HALF = {"float16": "f16", "bfloat16": "bf16"}


def _places(wide: np.dtype, narrow: np.dtype) -> Array:
    """Return by how many bits the parts of a number are shifted, the lowest first."""
    shifts = calls.iota((wide.itemsize // narrow.itemsize,), 0, wide)
    return calls.mul(shifts, calls.full(shifts.aval, 8 * narrow.itemsize))


def _bits_in_pieces(x: Array, *, new_dtype: np.dtype) -> Array:
    """Return the parts of numbers, or numbers of their parts, which are the last axis."""
    old, new = (np.dtype(f"uint{8 * d.itemsize}") for d in (x.dtype, new_dtype))
    bits = bitcast_convert_type(x, old)
    if old.itemsize > new.itemsize:
        shifts = _places(old, new)
        shape = (*x.shape, *shifts.shape)
        bits = broadcast_in_dim(bits, shape, range(x.ndim))
        parts = calls.shift_right_logical(bits, broadcast_in_dim(shifts, shape, (x.ndim,)))
        return bitcast_convert_type(convert(parts, new), new_dtype)
    shifts = broadcast_in_dim(_places(new, old), x.shape, (x.ndim - 1,))
    parts = calls.shift_left(convert(bits, new), shifts)
    # No two parts have a bit in common: their sum is all of them.
    return bitcast_convert_type(calls.reduce_sum(parts, (x.ndim - 1,)), new_dtype)


_pieced = inlined(_bits_in_pieces)


def _bitcast_form(ins: tuple[ShapedArray, ...], outs: Any, *, new_dtype: np.dtype) -> Any:
    old = ins[0].dtype
    if old == new_dtype:
        return Map("{0}")
    if old.itemsize != new_dtype.itemsize:
        return _pieced(ins, outs, new_dtype=new_dtype)
    # Half types are float32 inside kernels.
    text = f"sc.{_HALF[old.name]}_store({{0}})" if old.name in _HALF else "{0}"
    if new_dtype.name in _HALF:
        return Map(f"sc.{_HALF[new_dtype.name]}_load(sc.bitcast_uint16({text}))")
    return Map(f"sc.bitcast_{new_dtype.name}({text})")


_bitcast_p = register(
    Primitive(
        "bitcast_convert_type",
        aval=_bitcast_aval,
        eval=_bitcast_eval,
        form=_bitcast_form,
        jvp=CONSTANT,
        transpose=NOT_LINEAR,
        batch=ELEMENTWISE_BATCH,
    )
)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Array:
    """Read elements' bits as another dtype.

    To a dtype of ``1/n`` the width there is a new last axis of size ``n``; to one of ``n`` times
    the width the last axis must have size ``n``, and goes.

    Raises
    ------
    TypeError
        One dtype is bool or complex and the other differs.
    ValueError
        The last axis does not have the size needed.
    """
    return bind(_bitcast_p, operand, new_dtype=canonicalize_dtype(new_dtype))


# ---- precision ---------------------------------------------------------------------------------


def _reduce_precision_aval(
    x: ShapedArray, *, exponent_bits: int, mantissa_bits: int
) -> ShapedArray:
    check_kind("reduce_precision", x.dtype, FLOAT)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}"
        )
    return x


def _narrower(dtype: np.dtype, exponent_bits: int, mantissa_bits: int) -> tuple[int, int | None]:
    """Mantissa bits to drop in float32 or float64, and the target's exponent bias if it matters."""
    info = finfo(dtype)
    kept = 52 if dtype == float64 else 23
    drop = kept - mantissa_bits if mantissa_bits < info.nmant else 0
    own = 8 * dtype.itemsize - 1 - info.nmant
    return drop, 2 ** (exponent_bits - 1) - 1 if exponent_bits < own else None


@in_single
def _reduce_single(x: np.ndarray, *, drop: int, bias: int | None) -> np.ndarray:
    out = x
    if drop:
        bits = x.view(f"u{x.dtype.itemsize}")
        one = bits.dtype.type(1)
        half = bits.dtype.type((1 << (drop - 1)) - 1)
        # To nearest, halves to even: add half a step less one, and the last bit that stays.
        bits = bits + half + ((bits >> bits.dtype.type(drop)) & one)
        out = np.asarray(bits & ~bits.dtype.type((1 << drop) - 1)).view(x.dtype)
    if bias is not None:
        size = np.abs(out)
        out = np.where(size >= 2.0 ** (bias + 1), np.copysign(np.inf, x), out)
        out = np.where(size < 2.0 ** (1 - bias), np.copysign(0.0, x), out)
    return np.where(x != x, x, out).astype(x.dtype)


def _reduce_precision_eval(x: np.ndarray, *, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    drop, bias = _narrower(x.dtype, exponent_bits, mantissa_bits)
    return _reduce_single(x, drop=drop, bias=bias)


def _reduce_precision_form(
    ins: tuple[ShapedArray, ...], outs: Any, *, exponent_bits: int, mantissa_bits: int
) -> Map:
    drop, bias = _narrower(ins[0].dtype, exponent_bits, mantissa_bits)
    if not drop and bias is None:
        return Map("{0}")
    wide = "64" if ins[0].dtype == float64 else "32"
    text = "{0}"
    if drop:
        bits = f"sc.bitcast_uint{wide}({{0}})"
        last = f"sc.and_(sc.shr_logical({bits}, u{wide}({drop})), u{wide}(1))"
        rounded = f"sc.add(sc.add({bits}, u{wide}({(1 << drop - 1) - 1})), {last})"
        mask = (1 << int(wide)) - (1 << drop)
        text = f"sc.bitcast_float{wide}(sc.and_({rounded}, u{wide}({mask})))"
    if bias is not None:
        large, small = 2.0 ** (bias + 1), 2.0 ** (1 - bias)
        text = (
            f"(sc.copysign(f{wide}(inf), {{0}}) if sc.abs_({text}) >= f{wide}({large!r}) else "
            f"sc.copysign(f{wide}(0.0), {{0}}) if sc.abs_({text}) < f{wide}({small!r}) else {text})"
        )
    return Map(f"({text} if {{0}} == {{0}} else {{0}})", 8)


_reduce_precision_p = register(
    Primitive(
        "reduce_precision",
        aval=_reduce_precision_aval,
        eval=_reduce_precision_eval,
        form=_reduce_precision_form,
        # Tangents and cotangents are rounded alike: what is computed in a format stays in it.
        jvp=LINEAR,
        transpose=transposed(lambda ct, x, **bits: reduce_precision(ct, **bits)),
        batch=ELEMENTWISE_BATCH,
    )
)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round floats to a format of fewer bits, keeping their dtype.

    Rounds to nearest, halves to even; too large becomes infinite, too small becomes zero.

    Raises
    ------
    ValueError
        ``exponent_bits`` below 1 or ``mantissa_bits`` below 0.
    """
    return bind(
        _reduce_precision_p,
        operand,
        exponent_bits=index(exponent_bits),
        mantissa_bits=index(mantissa_bits),
    )


# ---- operations that keep values ---------------------------------------------------------------


@elementwise("{0}", eval=lambda x: x, name="stop_gradient", jvp=CONSTANT)
def _stop_gradient(x: Any) -> Any:
    """Identity with zero derivative."""


def stop_gradient(x: Any) -> Any:
    """Return ``x``, an array or a tree of them, as a constant for differentiation."""
    return tree.map(_stop_gradient, x)


def _copy_transpose(ct: Any, x: Any) -> Any:
    return copy(ct)


@elementwise("{0}", eval=np.copy, jvp=LINEAR, transpose=transposed(_copy_transpose))
def copy(x: Any) -> Any:
    """Return an array of the same elements in memory of its own."""


def _barrier_form(ins: tuple[ShapedArray, ...], outs: Any) -> Inline:
    variables = tuple(map(Var, ins))
    return Inline(ClosedGraph(Graph((), variables, (), variables)), apart=True)


def _barred(xs: Sequence[Any]) -> list[Any]:
    """Put a barrier around what is no symbolic zero."""
    through = iter(bind(_barrier_p, *(x for x in xs if not is_zero(x))))
    return [x if is_zero(x) else next(through) for x in xs]


_barrier_p = register(
    Primitive(
        "optimization_barrier",
        aval=lambda *xs: xs,
        eval=lambda *xs: xs,
        form=_barrier_form,
        jvp=lambda primals, tangents: (bind(_barrier_p, *primals), _barred(tangents)),
        transpose=lambda cts, *xs: _barred(cts),
        batch=lambda size, xs, batched: (bind(_barrier_p, *xs), batched),
        multiple_results=True,
        typed=True,
    )
)


def optimization_barrier(operand: Any, /) -> Any:
    """Return a tree of arrays as it is, keeping rewrites of the graph from crossing this point."""
    leaves, structure = tree.flatten(operand)
    return tree.unflatten(structure, bind(_barrier_p, *leaves))
