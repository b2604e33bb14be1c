"""Prefix combinations by an associative function, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from ..core import tree
from ..core.array import Array
from ..core.source import boundary
from ..ops.bitwise import bitwise_or
from ..ops.elementwise import add
from ..ops.kit.canonical import as_array, canonical_axis
from ..ops.kit.checks import kind
from ..ops.kit.moves import as_seen
from ..ops.slicing import concatenate, pad, rev, slice_in_dim
from .admission import admit
from .flow import check_functions, operands
from .signature import fun_text

__all__ = ["associative_scan"]

C = TypeVar("C")


@overload
def associative_scan(
    fn: Callable[[C, C], C], elems: C, reverse: bool = False, axis: int = 0
) -> C: ...


@overload
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any: ...


@boundary
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefix combinations ``e0``, ``fn(e0, e1)``, ``fn(fn(e0, e1), e2)``, ... along an axis.

    Neighbours are combined in pairs, the sequence of pairs is scanned, and the elements between
    are filled in (Blelloch, *Prefix Sums and Their Applications*, 1990): about ``2 n``
    combinations, in ``2 log n`` calls of ``fn`` on whole arrays.

    Parameters
    ----------
    fn : callable
        Associative; takes two trees like ``elems``, whose arrays have any size along ``axis``, and
        combines them element by element.
    elems : pytree of arrays
        With axes of one size.
    reverse : bool
        Whether to begin at the end: ``fn(e2, e1)``, ``fn(fn(e2, e1), e0)``.
    axis : int

    Raises
    ------
    TypeError
        ``fn`` is not callable.
    ValueError
        There are no arrays, their sizes along ``axis`` differ or there is no such axis, or ``fn``
        gives another structure or shape.
    """
    check_functions("associative_scan", fn=fn)
    leaves, spec, avals = operands("associative_scan", elems)
    if not leaves:
        raise ValueError("lax.associative_scan: elems has no arrays.")
    seen = as_seen(avals, elems)
    axis = canonical_axis("associative_scan", axis, seen[0].ndim)
    sizes = [a.shape[axis] if axis < a.ndim else None for a in seen]
    if len(set(sizes)) > 1:
        raise ValueError(
            "lax.associative_scan: arrays must have the same size along the axis scanned, "
            f"{axis}, got shapes {', '.join(str(a.shape) for a in avals)}."
        )

    combine = _on_leaves(fn, spec)
    arrays = [as_array(x) for x in leaves]
    if reverse:
        arrays = [rev(x, (axis,)) for x in arrays]
    arrays = _prefixes(combine, arrays, axis)
    if reverse:
        arrays = [rev(x, (axis,)) for x in arrays]
    return spec.unflatten(arrays)


def _on_leaves(fn: Callable[[Any, Any], Any], spec: Any) -> Callable[..., list[Array]]:
    """Return ``fn`` as a function of two lists of leaves, its results checked."""

    def combine(xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        with admit(fn, "associative_scan"):
            out = fn(spec.unflatten(xs), spec.unflatten(ys))
        outs, out_spec = tree.flatten_spec(out)
        # As in JAX, a tuple may come back where a named one went in.
        if len(outs) != len(xs):
            raise ValueError(
                f"lax.associative_scan: {fun_text(fn)} returned {tree.PyTreeDef(out_spec)} for "
                f"two of {tree.PyTreeDef(spec)}. Return as many arrays as elems has."
            )
        for out, x in zip(outs, xs, strict=True):
            if np.shape(out) != x.shape:
                raise ValueError(
                    f"lax.associative_scan: {fun_text(fn)} returned shape {np.shape(out)} for two "
                    f"of shape {x.shape}. Combine element by element."
                )
        return [as_array(out) for out in outs]

    return combine


def _prefixes(combine: Callable[..., list[Array]], xs: list[Array], axis: int) -> list[Array]:
    """Return all prefix combinations of arrays along an axis."""
    n = xs[0].shape[axis]
    if n < 2:
        return xs

    def take(arrays: Sequence[Array], start: int, stop: int, stride: int = 1) -> list[Array]:
        return [slice_in_dim(x, start, stop, stride, axis) for x in arrays]

    pairs = combine(take(xs, 0, n - 1, 2), take(xs, 1, n, 2))
    odd = _prefixes(combine, pairs, axis)
    # Prefix 2k ends with element 2k, after the prefix of the k pairs before it.
    known = take(odd, 0, n // 2 - 1) if n % 2 == 0 else odd
    later = combine(known, take(xs, 2, n, 2))
    even = [
        concatenate([slice_in_dim(x, 0, 1, 1, axis), y], axis)
        for x, y in zip(xs, later, strict=True)
    ]
    return [_interleave(e, o, axis) for e, o in zip(even, odd, strict=True)]


def _interleave(even: Array, odd: Array, axis: int) -> Array:
    """Return the array whose elements alternate between two, the first longer by at most one."""
    longer = even.shape[axis] - odd.shape[axis]
    zero = np.zeros((), even.dtype)[()]

    def spread(x: Array, low: int, high: int) -> Array:
        config = [(0, 0, 0)] * x.ndim
        config[axis] = (low, high, 1)
        return pad(x, zero, config)

    join = bitwise_or if kind(even.dtype) == "b" else add
    return join(spread(even, 0, 1 - longer), spread(odd, 1, longer))
