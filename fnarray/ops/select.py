"""Choices between arrays, element by element, and between bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.dtypes import is_bool, is_complex
from ..core.forms import Map
from ..core.primitive import Primitive, RuleOf
from ..core.record import known_of
from ..core.tangents import Zero, is_undefined, is_zero, tangent_aval
from ..core.trace import bind
from ..errors import ShapeError
from .kit import calls
from .kit.calls import bitwise_and, broadcast_in_dim, eq, full, ne
from .kit.checks import all_weak, check_same_dtypes, kind
from .kit.moves import moving
from .kit.registry import register
from .kit.rules import NOT_LINEAR, instantiate, partials, spread

__all__ = ["clamp", "select", "select_n"]


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


def _between(which: np.ndarray, no: np.ndarray, yes: np.ndarray) -> np.ndarray:
    return np.where(which, yes, no)


def _known_select(which: ShapedArray, *cases: ShapedArray) -> Callable[..., np.ndarray] | None:
    """Return NumPy's function for a choice between two of few elements."""
    few = len(cases) == 2 and cases[0].size < _MANY
    return _between if few and which.dtype == np.bool_ else None


known_of[_select_eval] = _known_select


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
    return Map(f"{m}.minimum({m}.maximum({{1}}, {{0}}), {{2}})", 2, exact=False)


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
