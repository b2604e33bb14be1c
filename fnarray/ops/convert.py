"""Conversions between dtypes, choices between arrays, and identities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from ..core.primitive import Primitive, RuleOf
from ..core.tangents import Zero, differentiable, is_undefined, is_zero, tangent_aval
from ..core.trace import bind
from ..errors import ShapeError
from .elementwise import in_single
from .kit import calls
from .kit.calls import bitwise_and, broadcast_in_dim, convert, eq, full, ne
from .kit.checks import FLOAT, all_weak, check_kind, check_same_dtypes, kind
from .kit.declare import elementwise, inlined
from .kit.moves import moving
from .kit.registry import register
from .kit.rules import (
    CONSTANT,
    ELEMENTWISE_BATCH,
    LINEAR,
    NOT_LINEAR,
    instantiate,
    partials,
    spread,
    transposed,
)

__all__ = [
    "bitcast_convert_type",
    "clamp",
    "convert_element_type",
    "copy",
    "optimization_barrier",
    "reduce_precision",
    "select",
    "select_n",
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


# ---- choices -----------------------------------------------------------------------------------


def _select_aval(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if not cases:
        raise ValueError("lax.select_n must have at least one case, got none.")
    if kind(which.dtype) not in "biu":
        raise TypeError(f"lax.select_n: which must be bool or an integer, got {which.dtype}.")
    count = len(cases)
    if is_bool(which.dtype) and count > 2:
        raise TypeError(f"lax.select_n: a bool chooses between 2 cases at most, got {count}.")
    shapes = [c.shape for c in cases]
    if len(set(shapes)) > 1:
        raise ShapeError(
            f"lax.select_n: cases must have the same shapes, got {shapes}. "
            "fnarray.numpy.where broadcasts."
        )
    if which.shape not in ((), shapes[0]):
        raise ShapeError(
            f"lax.select_n: which must be a scalar or have the cases' shape {shapes[0]}, "
            f"got {which.shape}."
        )
    check_same_dtypes("select_n", cases)
    return cases[0].update(weak_type=all_weak(cases))


def _select_eval(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    if which.dtype == np.bool_ and len(cases) == 2:
        return picked(which, cases[1], cases[0])
    chosen = cases[0]
    for k, case in enumerate(cases[1:], 1):
        chosen = picked(which >= k, case, chosen)
    return chosen


#: From so many elements on, a choice by masks pays for its four calls.
_MANY = 1 << 12
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def picked(which: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    """Choose as `numpy.where`, which jumps: a million random choices took it 4 ms, masks 0.4."""
    bits = _BITS.get(yes.dtype.itemsize)
    if bits is None or which.size < _MANY or not which.shape == yes.shape == no.shape:
        return np.where(which, yes, no)
    mask = which.astype(bits)
    np.negative(mask, out=mask)
    other = no.view(bits)
    out = yes.view(bits) ^ other
    out &= mask
    out ^= other
    return out.view(yes.dtype)


def _select_form(ins: tuple[ShapedArray, ...], outs: Any) -> Map:
    count = len(ins) - 1
    if is_bool(ins[0].dtype):
        return Map("({2} if {0} else {1})" if count == 2 else "{1}")
    text = f"{{{count}}}"
    for k in range(count - 1, 0, -1):
        text = f"({{{k}}} if {{0}} < {k} else {text})"
    return Map(text, count)


def _select_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    which, *cases = primals
    out = bind(_select_n_p, which, *cases)
    if all(map(is_zero, tangents[1:])):
        return out, Zero(tangent_aval(out.aval))
    return out, bind(_select_n_p, which, *map(instantiate, tangents[1:]))


def _select_transpose(ct: Any, which: Any, *cases: Any) -> list[Any]:
    zero = full(ct.aval, 0)

    def back(k: int) -> Any:
        return bind(_select_n_p, which, *(ct if i == k else zero for i in range(len(cases))))

    return [None, *(back(k) if is_undefined(case) else None for k, case in enumerate(cases))]


def _scalars_stretched(scalar: tuple[int, ...], full: int) -> RuleOf:
    """Batching where the operands at ``scalar`` may be scalars, all others are like ``full``."""

    def make(prim: Primitive) -> Callable[..., Any]:
        def batch(size: int, xs: Sequence[Any], batched: Sequence[bool], **params: Any) -> Any:
            shape = (size, *xs[full].shape[batched[full] :])

            def fit(k: int, x: Any, b: bool) -> Any:
                if not b:
                    return x if k in scalar and not x.ndim else spread(x, size)
                if x.shape == shape:
                    return x
                return broadcast_in_dim(x, shape, (0,))

            pairs = zip(xs, batched, strict=True)
            return bind(prim, *(fit(k, x, b) for k, (x, b) in enumerate(pairs)), **params)

        return batch

    return RuleOf(make)


_select_n_p = register(
    Primitive(
        "select_n",
        aval=_select_aval,
        eval=_select_eval,
        form=_select_form,
        jvp=_select_jvp,
        transpose=_select_transpose,
        batch=_scalars_stretched(scalar=(0,), full=1),
    )
)


@moving
def select_n(which: Any, *cases: Any) -> Array:
    """Choose each element from the case that ``which`` numbers.

    Parameters
    ----------
    which : array of bool or integers
        Of the cases' shape, or a scalar; False is case 0. Numbers below 0 choose the first case,
        those past the end the last.
    *cases : arrays
        Of one shape and dtype.
    """
    return bind(_select_n_p, which, *cases)


@moving
def select(pred: Any, on_true: Any, on_false: Any) -> Array:
    """Choose ``on_true`` where ``pred`` holds and ``on_false`` elsewhere."""
    return bind(_select_n_p, pred, on_false, on_true)


def _clamp_aval(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
    check_same_dtypes("clamp", (low, x, high))
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise ShapeError(
                f"lax.clamp: {name} must be a scalar or have the operand's shape {x.shape}, "
                f"got {bound.shape}. fnarray.numpy.clip broadcasts."
            )
    return x


def _clamp_form(ins: tuple[ShapedArray, ...], outs: Any) -> Map:
    m = "fk.complexmath" if is_complex(ins[0].dtype) else "sc"
    return Map(f"{m}.minimum({m}.maximum({{1}}, {{0}}), {{2}})", 2)


def _chosen(g: Any, out: Any, x: Any, *others: Any) -> Any:
    """Tangent where the result is ``x`` and none of the others: where they meet, it is 0."""
    which = eq(out, x)
    for other in others:
        which = bitwise_and(which, ne(x, other))
    return calls.select(which, g, 0)


_clamp_p = register(
    Primitive(
        "clamp",
        aval=_clamp_aval,
        eval=lambda low, x, high: np.minimum(np.maximum(x, low), high),
        form=_clamp_form,
        jvp=partials(
            lambda g, out, low, x, high: _chosen(g, out, low, x, high),
            lambda g, out, low, x, high: _chosen(g, out, x, low, high),
            lambda g, out, low, x, high: _chosen(g, out, high, calls.max(low, x)),
        ),
        transpose=NOT_LINEAR,
        batch=_scalars_stretched(scalar=(0, 2), full=1),
    )
)


def clamp(min: Any, x: Any, max: Any) -> Array:
    """``x`` limited to ``[min, max]``, where each bound is a scalar or has the shape of ``x``.

    A NaN in an operand gives NaN; ``max`` wins where the bounds cross.
    """
    return bind(_clamp_p, min, x, max)


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
    )
)


def optimization_barrier(operand: Any, /) -> Any:
    """Return a tree of arrays as it is, keeping rewrites of the graph from crossing this point."""
    leaves, structure = tree.flatten(operand)
    return tree.unflatten(structure, bind(_barrier_p, *leaves))
