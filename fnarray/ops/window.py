"""Reductions over windows that slide over an operand, and the selections that transpose them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import float32
from ..core.forms import Call, Operand, Reduce
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive
from ..core.trace import bind
from ._rules import ANY, NUMBER, check_kind, kernel_call, register
from .reduce import (
    HALVES,
    MONOIDS,
    check_starts,
    combiner,
    flat_operands,
    lanewise,
    monoid_of_function,
    monoid_of_graph,
    trace_combiner,
)

__all__ = ["padtype_to_pads", "reduce_window", "reduce_window_shape_tuple"]

Sizes = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]


# --- geometry -----------------------------------------------------------------------------------


def dilated(n: int, dilation: int) -> int:
    """Return the length of ``n`` elements spread ``dilation`` apart."""
    return 0 if n == 0 else (n - 1) * dilation + 1


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """Return the (low, high) padding of each axis that a name stands for.

    ``"VALID"`` pads nothing. ``"SAME"`` pads so that the result has ``ceil(n / stride)``
    elements, with the odd one at the end; ``"SAME_LOWER"`` has it at the start.

    Raises
    ------
    RuntimeError
        For another name.
    """
    if not isinstance(padding, str):
        return [(int(low), int(high)) for low, high in padding]
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(f"padding must be 'VALID', 'SAME' or 'SAME_LOWER', got {padding!r}.")
    pads = []
    for n, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max((-(-n // stride) - 1) * stride + window - n, 0)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if name == "SAME" else (large, small))
    return pads


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Sizes:
    """Return how many places windows have along each axis."""
    ones = (1,) * len(operand_shape)
    places = []
    for n, window, stride, (low, high), base, spread in zip(
        operand_shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation or ones,
        window_dilation or ones,
        strict=True,
    ):
        room = low + dilated(n, base) + high - dilated(window, spread)
        places.append(room // stride + 1 if room >= 0 else 0)
    return tuple(places)


def _check_window(name: str, shape: Sizes, params: dict[str, Any]) -> None:
    for what, sizes in params.items():
        if len(sizes) != len(shape):
            raise TypeError(
                f"lax.{name}: {what} must have one entry per axis of shape {shape}, got {sizes}."
            )
        if what != "padding" and any(n < 1 for n in sizes):
            raise TypeError(f"lax.{name}: {what} must be positive, got {sizes}.")


def _window_shape(name: str, shape: Sizes, params: dict[str, Any]) -> Sizes:
    _check_window(name, shape, params)
    return reduce_window_shape_tuple(shape, **params)


def window_form(shape: Sizes, params: dict[str, Any]) -> tuple[Callable, Callable]:
    """Return index and validity of window element ``r`` at place ``o``, for `Reduce`."""
    pads, base = params["padding"], params["base_dilation"]
    strides, spread = params["window_strides"], params["window_dilation"]
    axes = range(len(shape))

    def position(o: Any, r: Any) -> list[Any]:
        return [o[a] * strides[a] + r[a] * spread[a] - pads[a][0] for a in axes]

    def index(o: Any, r: Any) -> tuple:
        return tuple(p // b if b > 1 else p for p, b in zip(position(o, r), base, strict=True))

    def valid(o: Any, r: Any) -> tuple:
        found = position(o, r)
        inside = [(0, p, dilated(n, b)) for p, n, b in zip(found, shape, base, strict=True)]
        # Between the elements of a dilated operand lie holes, which are padding too.
        filled = [(0, p % b, 1) for p, b in zip(found, base, strict=True) if b > 1]
        return (*inside, *filled)

    return index, valid


def spread_out(x: np.ndarray, fill: Any, params: dict[str, Any]) -> np.ndarray:
    """Return an array dilated and padded with ``fill``; negative padding cuts."""
    pads, base = params["padding"], params["base_dilation"]
    if not any(low or high for low, high in pads) and all(b == 1 for b in base):
        return x
    inner = tuple(map(dilated, x.shape, base))
    shape = tuple(max(low + n + high, 0) for n, (low, high) in zip(inner, pads, strict=True))
    out = np.full(shape, fill, x.dtype)
    into, source = [], []
    for n, b, (low, _), size in zip(x.shape, base, pads, shape, strict=True):
        first = max(-(low // b), 0)  # the first element at or after the start
        last = min((size - 1 - low) // b + 1, n)
        last = max(last, first)
        source.append(slice(first, last))
        into.append(
            slice(low + first * b, max(low + (last - 1) * b + 1, 0) if last > first else 0, b)
        )
    if all(s.stop > s.start for s in source):
        out[tuple(into)] = x[tuple(source)]
    return out


def _places(places: Sizes, r: Sizes, params: dict[str, Any]) -> tuple[slice, ...]:
    """Return where window element ``r`` of every place lies in the padded operand."""
    spread, strides = params["window_dilation"], params["window_strides"]
    return tuple(
        slice(k * d, k * d + (n - 1) * s + 1 if n else k * d, s)
        for k, d, s, n in zip(r, spread, strides, places, strict=True)
    )


# --- windows under a monoid ---------------------------------------------------------------------


def _fold_windows(ufunc: np.ufunc, padded: np.ndarray, places: Sizes, params: Any) -> np.ndarray:
    """Combine windows axis by axis, as monoids allow: the work is the sum of window lengths."""
    out = padded
    for axis, window in enumerate(params["window_dimensions"]):
        stride, spread = params["window_strides"][axis], params["window_dilation"][axis]
        n = places[axis]
        at = (slice(None),) * axis
        parts = (
            out[
                (
                    *at,
                    slice(
                        k * spread, k * spread + (n - 1) * stride + 1 if n else k * spread, stride
                    ),
                )
            ]
            for k in range(window)
        )
        total = np.array(next(parts))
        for part in parts:
            ufunc(total, part, out=total)
        out = total
    return out


def _windowed(name: str, monoid: str, dtypes: str) -> Primitive:
    """Declare the reduction of windows by a known monoid."""
    known = MONOIDS[monoid]
    label = f"reduce_window_{name}"

    def aval(x: ShapedArray, **params: Any) -> ShapedArray:
        check_kind(label, x.dtype, dtypes)
        return x.update(shape=_window_shape("reduce_window", x.shape, params))

    def evaluate(x: np.ndarray, **params: Any) -> np.ndarray:
        places = reduce_window_shape_tuple(x.shape, **params)
        wide = x.astype(float32) if x.dtype in HALVES else x
        padded = spread_out(wide, known.start(wide.dtype), params)
        return _fold_windows(known.ufunc, padded, places, params).astype(x.dtype, copy=False)

    def form(ins: Any, outs: Any, **params: Any) -> Reduce:
        (x,) = ins
        index, valid = window_form(x.shape, params)
        return Reduce(
            extents=params["window_dimensions"],
            index=(index,),
            inits=(known.start(x.dtype),),
            combine=(known.template(x.dtype),),
            dtypes=(float32,) if x.dtype in HALVES else None,
            valid=valid,
        )

    return register(Primitive(label, aval=aval, eval=evaluate, form=form))


reduce_window_sum_p = _windowed("sum", "add", NUMBER)
reduce_window_max_p = _windowed("max", "max", ANY)
reduce_window_min_p = _windowed("min", "min", ANY)
_NAMED = {"add": reduce_window_sum_p, "max": reduce_window_max_p, "min": reduce_window_min_p}


# --- windows under any function -----------------------------------------------------------------


def _general_aval(
    *avals: ShapedArray, jaxpr: ClosedGraph, consts: tuple, **params: Any
) -> tuple[ShapedArray, ...]:
    n = len(avals) // 2
    check_starts("reduce_window", avals[:n], avals[n:])
    shape = _window_shape("reduce_window", avals[0].shape, params)
    return tuple(a.update(shape=shape) for a in avals[:n])


def _general_eval(
    *values: np.ndarray, jaxpr: ClosedGraph, consts: tuple, **params: Any
) -> tuple[np.ndarray, ...]:
    n = len(values) // 2
    xs, inits = values[:n], values[n:]
    places = reduce_window_shape_tuple(xs[0].shape, **params)
    padded = [spread_out(x, 0, params) for x in xs]
    real = spread_out(np.ones(xs[0].shape, bool), False, params)
    folded = [np.broadcast_to(start, places) for start in inits]
    for r in np.ndindex(*params["window_dimensions"]):
        at = _places(places, r, params)
        combined = lanewise(jaxpr, (*folded, *(x[at] for x in padded)))
        folded = [np.where(real[at], new, old) for new, old in zip(combined, folded, strict=True)]
    return tuple(folded)


def _general_form(
    ins: Any, outs: Any, *, jaxpr: ClosedGraph, consts: tuple, **params: Any
) -> Reduce:
    n = len(outs)
    index, valid = window_form(ins[0].shape, params)
    known = monoid_of_graph(jaxpr) is not None
    return Reduce(
        extents=params["window_dimensions"],
        index=(index,) * n,
        inits=tuple(Operand(n + k) for k in range(n)),
        combine=combiner(jaxpr, ins[0].dtype),
        terms=tuple(f"{{{k}}}" for k in range(n)),
        results=tuple(range(n)),
        dtypes=(float32,) if known and ins[0].dtype in HALVES else None,
        valid=valid,
    )


reduce_window_p = register(
    Primitive(
        "reduce_window",
        aval=_general_aval,
        eval=_general_eval,
        form=_general_form,
        multiple_results=True,
    )
)


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Fold the elements under each place of a sliding window by a binary function.

    Padding and the holes of a dilated operand take no part: a window over nothing else gives the
    initial value.

    Parameters
    ----------
    operand : pytree of arrays
        Of one shape.
    init_value : pytree of scalars
        Of the same structure and dtypes.
    computation : callable
        ``computation(accumulated, element)`` on pytrees of scalars; associative.
    window_dimensions, window_strides : sequence of int
        Size and step of the window along each axis; steps of 1 where omitted.
    padding : str or sequence of (int, int)
        ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"``, or (low, high) of each axis; negative cuts.
    base_dilation, window_dilation : sequence of int, optional
        Distance of neighbours in the operand and in the window.

    Raises
    ------
    TypeError
        For windows of another rank than the operand, sizes below 1, and initial values of
        another dtype.
    ValueError
        For structures that differ and initial values that are no scalars.
    """
    arrays, starts, structure = flat_operands("reduce_window", operand, init_value)
    avals = [aval_of(x) for x in arrays]
    params = window_params(
        avals[0].shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    if len(arrays) == 1:
        known = monoid_of_function(computation, starts[0], avals[0].dtype)
        if known in _NAMED:
            return tree.unflatten(structure, [bind(_NAMED[known], arrays[0], **params)])
    check_starts("reduce_window", avals, [aval_of(s) for s in starts])
    scalars = [ShapedArray((), a.dtype) for a in avals]
    graph = trace_combiner("reduce_window", computation, structure, scalars)
    outs = bind(reduce_window_p, *arrays, *starts, jaxpr=graph, consts=(), **params)
    return tree.unflatten(structure, outs)


def window_params(
    shape: Sizes,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the canonical params of a window over an operand of ``shape``."""

    def ints(sizes: Sequence[int] | None) -> Sizes:
        return (1,) * len(shape) if sizes is None else tuple(map(operator.index, sizes))

    params: dict[str, Any] = {
        "window_dimensions": ints(window_dimensions),
        "window_strides": ints(window_strides),
        "base_dilation": ints(base_dilation),
        "window_dilation": ints(window_dilation),
    }
    _check_window("reduce_window", shape, params)
    if isinstance(padding, str):
        spread = map(dilated, shape, params["base_dilation"])
        window = map(dilated, params["window_dimensions"], params["window_dilation"])
        padding = padtype_to_pads(tuple(spread), tuple(window), params["window_strides"], padding)
    params["padding"] = tuple((operator.index(a), operator.index(b)) for a, b in padding)
    if len(params["padding"]) != len(shape):
        raise ValueError(
            f"lax.reduce_window: padding must have one pair per axis of shape {shape}, "
            f"got {params['padding']}."
        )
    return params


# --- selection within windows: the derivatives of windowed maxima and minima --------------------


def _select(
    prim: Primitive, x: np.ndarray, params: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the flat index of each window's selected element, and whether there is one.

    A later element replaces the selected one unless ``prim(selected, later)`` holds.
    """
    places = reduce_window_shape_tuple(x.shape, **params)
    number = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    padded, number = spread_out(x, 0, params), spread_out(number, -1, params)
    best = np.zeros(places, x.dtype)
    chosen = np.full(places, -1, np.int64)
    for r in np.ndindex(*params["window_dimensions"]):
        at = _places(places, r, params)
        value, index = padded[at], number[at]
        replace = (index >= 0) & ((chosen < 0) | ~prim.eval(best, value))
        best, chosen = np.where(replace, value, best), np.where(replace, index, chosen)
    return chosen, chosen >= 0


def _undilated(x: ShapedArray | np.ndarray, params: dict[str, Any]) -> dict[str, Any]:
    ones = (1,) * x.ndim
    return {**params, "base_dilation": ones, "window_dilation": ones}


def _check_select(name: str, shape: Sizes, wanted: Sizes) -> None:
    if shape != wanted:
        raise TypeError(f"lax.{name}: the first operand must have shape {wanted}, got {shape}.")


def _scatter_aval(
    source: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **params: Any
) -> ShapedArray:
    check_kind("select_and_scatter_add", x.dtype, "iuf")
    places = _window_shape("select_and_scatter_add", x.shape, _undilated(x, params))
    _check_select("select_and_scatter_add", source.shape, places)
    return ShapedArray(x.shape, source.dtype)


def _scatter_eval(
    source: np.ndarray, x: np.ndarray, *, select_prim: Primitive, **params: Any
) -> np.ndarray:
    chosen, found = _select(select_prim, x, _undilated(x, params))
    wide = float32 if source.dtype in HALVES else source.dtype
    out = np.zeros(x.size, wide)
    np.add.at(out, chosen[found], source[found].astype(wide))
    return out.astype(source.dtype).reshape(x.shape)


def _native_statics(x: ShapedArray, prim: Primitive, params: dict[str, Any]) -> tuple[Any, ...]:
    places = reduce_window_shape_tuple(x.shape, **params)
    low = tuple(a for a, _ in params["padding"])
    names = ("window_dimensions", "window_strides", "base_dilation", "window_dilation")
    sizes = (x.shape, places, low, *(params[n] for n in names))
    return (prim.name == "ge", x.ndim, *(n for group in sizes for n in group))


def _select_call(name: str, ins: Any, prim: Primitive, params: dict[str, Any]) -> Call:
    plain = all(a.dtype not in HALVES for a in ins) and prim.name in ("ge", "le")
    native = plain and ins[1].size and ins[1].ndim
    statics = _native_statics(ins[1], prim, params) if native else ()
    return Call(f"fk.window.{name}" if native else None, statics)


def _scatter_call(ins: Any, outs: Any, *, select_prim: Primitive, **params: Any) -> Call:
    return _select_call("select_and_scatter_add", ins, select_prim, _undilated(ins[1], params))


select_and_scatter_add_p = kernel_call(
    "select_and_scatter_add", aval=_scatter_aval, eval=_scatter_eval, call=_scatter_call
)


def _gather_aval(
    tangents: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **params: Any
) -> ShapedArray:
    check_kind("select_and_gather_add", x.dtype, "iuf")
    _check_select("select_and_gather_add", tangents.shape, x.shape)
    shape = _window_shape("select_and_gather_add", x.shape, params)
    return ShapedArray(shape, tangents.dtype)


def _gather_eval(
    tangents: np.ndarray, x: np.ndarray, *, select_prim: Primitive, **params: Any
) -> np.ndarray:
    chosen, found = _select(select_prim, x, params)
    if not x.size:
        return np.zeros(chosen.shape, tangents.dtype)
    return np.where(found, tangents.reshape(-1)[chosen], np.zeros((), tangents.dtype))


def _gather_call(ins: Any, outs: Any, *, select_prim: Primitive, **params: Any) -> Call:
    return _select_call("select_and_gather_add", ins, select_prim, params)


select_and_gather_add_p = kernel_call(
    "select_and_gather_add", aval=_gather_aval, eval=_gather_eval, call=_gather_call
)


def select_and_scatter_add(
    source: Any,
    operand: Any,
    select_prim: Primitive,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
) -> Array:
    """Add each element of ``source`` to the place that its window selects in the operand's shape.

    Parameters
    ----------
    source : array
        One element per place of the window.
    operand : array
        Whose elements compete: one stays selected while ``select_prim(selected, later)`` holds.
    select_prim : Primitive
        ``ge`` for maxima, ``le`` for minima.
    window_dimensions, window_strides, padding
        As in `reduce_window`.
    """
    params = window_params(aval_of(operand).shape, window_dimensions, window_strides, padding)
    for name in ("base_dilation", "window_dilation"):
        del params[name]
    return bind(select_and_scatter_add_p, source, operand, select_prim=select_prim, **params)


def select_and_gather_add(
    tangents: Any,
    operand: Any,
    select_prim: Primitive,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Return the element of ``tangents`` where each window selects; zero where it is all padding.

    Parameters are those of `select_and_scatter_add`, with dilations as in `reduce_window`.
    """
    params = window_params(
        aval_of(operand).shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    return bind(select_and_gather_add_p, tangents, operand, select_prim=select_prim, **params)
