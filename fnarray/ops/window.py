"""Reductions over windows that slide over an operand, and the selections that transpose them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import float32
from ..core.forms import Inline, KernelRef, Library, Operand, Reduce
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive, RuleOf
from ..core.trace import bind
from ._combine import (
    Arrays,
    Combine,
    Folding,
    check_starts,
    flat_operands,
    fold_batch,
    fold_tangents,
    lanewise,
    trace_combiner,
)
from .bitwise import ge, le
from .kit import calls
from .kit.calls import convert, pad, select
from .kit.checks import ANY, NUMBER, check_kind
from .kit.declare import inlined, kernel_call
from .kit.registry import register
from .kit.rules import (
    LINEAR,
    NOT_LINEAR,
    all_spread,
    led_by,
    linear_in,
    one_more_axis,
    partials,
    transposed,
)
from .reduce import HALVES, MONOIDS, combiner, monoid_of_function, monoid_of_graph
from .window_layout import (
    Sizes,
    at_places,
    padtype_to_pads,
    reduce_window_shape_tuple,
    spread_out,
    transposed_pads,
    window_form,
    window_params,
    window_shape,
)

__all__ = ["padtype_to_pads", "reduce_window", "reduce_window_shape_tuple"]

# --- batching -----------------------------------------------------------------------------------

#: Windows of one element, at each place, along the mapped axis.
_BATCH = one_more_axis(
    window_dimensions=led_by(1),
    window_strides=led_by(1),
    padding=led_by((0, 0)),
    base_dilation=led_by(1),
    window_dilation=led_by(1),
)


# --- windows under a monoid ---------------------------------------------------------------------


def _fold_windows(ufunc: np.ufunc, padded: np.ndarray, places: Sizes, params: Any) -> np.ndarray:
    """Combine windows axis by axis, as monoids allow, and their elements in pairs.

    Of 1,000 numbers one after another a float32 sum is off by 3.3 ULP, in pairs by 0.3.
    """
    out = padded
    for axis, window in enumerate(params["window_dimensions"]):
        stride, spread = params["window_strides"][axis], params["window_dilation"][axis]
        x = np.moveaxis(out, axis, 0)
        if stride == 1 and places[axis]:
            x = _runs(ufunc, x, window, spread, {1: x})
        else:
            x = _spaced(ufunc, x, range(0, window * spread, spread), places[axis], stride)
        out = np.moveaxis(x, 0, axis)
    return out.copy() if np.may_share_memory(out, padded) else out


def _runs(
    ufunc: np.ufunc, x: np.ndarray, count: int, spread: int, known: dict[int, np.ndarray]
) -> np.ndarray:
    """Combine so many elements from each place on: two of the runs of half as many."""
    if count not in known:
        half = count // 2
        first, second = (_runs(ufunc, x, k, spread, known) for k in (half, count - half))
        n = len(x) - (count - 1) * spread
        known[count] = ufunc(first[:n], second[half * spread : half * spread + n])
    return known[count]


def _spaced(ufunc: np.ufunc, x: np.ndarray, window: range, n: int, stride: int) -> np.ndarray:
    """Combine the elements of windows at ``n`` places that lie apart."""
    if len(window) == 1:
        (start,) = window
        return x[start : start + (n - 1) * stride + 1 if n else start : stride]
    half = len(window) // 2
    parts = (_spaced(ufunc, x, w, n, stride) for w in (window[:half], window[half:]))
    return ufunc(*parts)


def _sum_transpose(ct: Any, x: ShapedArray, **params: Any) -> Any:
    """Add up the cotangents of the places whose windows hold an element: a window over those."""
    steps, holes = params["window_strides"], params["base_dilation"]
    pads = transposed_pads(x.shape, ct.shape, params)
    back = {**params, "window_strides": holes, "base_dilation": steps, "padding": pads}
    return bind(reduce_window_sum_p, ct, **back)


def _of_extremes(select_prim: Primitive) -> RuleOf:
    """Derivative of windowed extremes: the tangent of each window's selected element."""

    def part(g: Any, out: Any, x: Any, **params: Any) -> Any:
        return bind(select_and_gather_add_p, g, x, select_prim=select_prim, **params)

    return partials(part)


def _windowed(
    name: str, monoid: str, dtypes: str, jvp: RuleOf, transpose: Any = NOT_LINEAR
) -> Primitive:
    """Declare the reduction of windows by a known monoid."""
    known = MONOIDS[monoid]
    label = f"reduce_window_{name}"

    def aval(x: ShapedArray, **params: Any) -> ShapedArray:
        check_kind(label, x.dtype, dtypes)
        return x.update(shape=window_shape("reduce_window", x.shape, params))

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

    return register(
        Primitive(
            label,
            aval=aval,
            eval=evaluate,
            form=form,
            jvp=jvp,
            transpose=transpose,
            batch=_BATCH,
        )
    )


reduce_window_sum_p = _windowed("sum", "add", NUMBER, LINEAR, transposed(_sum_transpose))
reduce_window_max_p = _windowed("max", "max", ANY, _of_extremes(ge.primitive))
reduce_window_min_p = _windowed("min", "min", ANY, _of_extremes(le.primitive))
_NAMED = {"add": reduce_window_sum_p, "max": reduce_window_max_p, "min": reduce_window_min_p}


# --- windows under any function -----------------------------------------------------------------


def _general_aval(
    *avals: ShapedArray, jaxpr: ClosedGraph, consts: tuple, **params: Any
) -> tuple[ShapedArray, ...]:
    n = len(avals) // 2
    check_starts("reduce_window", avals[:n], avals[n:])
    shape = window_shape("reduce_window", avals[0].shape, params)
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
        at = at_places(places, r, params)
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


def _folding(params: dict[str, Any]) -> Folding:
    """Return the fold of windows."""
    return lambda make, arrays, starts: _unrolled(make(), arrays, starts, params)


def _unrolled(combine: Combine, arrays: Arrays, starts: Arrays, params: dict[str, Any]) -> Arrays:
    """Fold windows element by element of the window, on whole arrays."""
    shape = arrays[0].shape
    places = reduce_window_shape_tuple(shape, **params)
    real = spread_out(np.ones(shape, bool), False, params)
    config = tuple(
        (low, high, base - 1)
        for (low, high), base in zip(params["padding"], params["base_dilation"], strict=True)
    )
    padded = [pad(x, 0, config) for x in arrays]
    folded = list(starts)
    for r in np.ndindex(*params["window_dimensions"]):
        at = at_places(places, r, params)
        here = real[at]
        if not here.any():
            continue
        box = [tuple(getattr(s, end) for s in at) for end in ("start", "stop", "step")]
        new = combine(folded, [calls.slice(x, *box) for x in padded])
        if not here.all():
            new = [select(here, a, b) for a, b in zip(new, folded, strict=True)]
        folded = new
    return folded


def _general_jvp(
    primals: Any, tangents: Any, *, jaxpr: ClosedGraph, consts: tuple, **params: Any
) -> tuple[Arrays, Arrays]:
    outs = bind(reduce_window_p, *primals, jaxpr=jaxpr, consts=consts, **params)
    return fold_tangents("reduce_window", jaxpr, outs, primals, tangents, _folding(params))


def _general_batch(
    size: int, operands: Any, batched: Any, *, jaxpr: ClosedGraph, consts: tuple, **params: Any
) -> tuple[Arrays, list[bool]]:
    n = len(operands) // 2
    xs = all_spread(size, operands[:n], batched[:n])
    starts, flags = operands[n:], batched[n:]
    moved: dict[str, Any]
    moved = {name: (((0, 0) if name == "padding" else 1), *of) for name, of in params.items()}
    if not any(flags):
        outs = bind(reduce_window_p, *xs, *starts, jaxpr=jaxpr, consts=consts, **moved)
        return outs, [True] * n
    shape = reduce_window_shape_tuple(xs[0].shape, **moved)
    return fold_batch("reduce_window", jaxpr, xs, starts, flags, shape, _folding(moved))


reduce_window_p = register(
    Primitive(
        "reduce_window",
        aval=_general_aval,
        eval=_general_eval,
        form=_general_form,
        jvp=_general_jvp,
        transpose=NOT_LINEAR,
        batch=_general_batch,
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


# --- selection within windows: the derivatives of windowed maxima and minima --------------------


_DILATIONS = ("base_dilation", "window_dilation")


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
        at = at_places(places, r, params)
        value, index = padded[at], number[at]
        replace = (index >= 0) & ((chosen < 0) | ~prim.eval(best, value))
        best, chosen = np.where(replace, value, best), np.where(replace, index, chosen)
    return chosen, chosen >= 0


def _undilated(x: ShapedArray | np.ndarray, params: dict[str, Any]) -> dict[str, Any]:
    """Return params with the dilations that `select_and_scatter_add` has only as a transpose."""
    ones = (1,) * x.ndim
    return {"base_dilation": ones, "window_dilation": ones, **params}


def _scatter_transpose(ct: Any, source: Any, x: Any, **params: Any) -> list[Any]:
    return [bind(select_and_gather_add_p, ct, x, **_undilated(x, params)), None]


def _gather_transpose(ct: Any, tangents: Any, x: Any, **params: Any) -> list[Any]:
    if all(d == 1 for name in _DILATIONS for d in params[name]):
        params = {name: of for name, of in params.items() if name not in _DILATIONS}
    return [bind(select_and_scatter_add_p, ct, x, **params), None]


def _check_select(name: str, shape: Sizes, wanted: Sizes) -> None:
    if shape != wanted:
        raise TypeError(f"lax.{name}: the first operand must have shape {wanted}, got {shape}.")


def _scatter_aval(
    source: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **params: Any
) -> ShapedArray:
    check_kind("select_and_scatter_add", x.dtype, "iuf")
    places = window_shape("select_and_scatter_add", x.shape, _undilated(x, params))
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


def _select_call(name: str, ins: Any, prim: Primitive, params: dict[str, Any]) -> Library:
    native = prim.name in ("ge", "le") and ins[1].size and ins[1].ndim
    statics = _native_statics(ins[1], prim, params) if native else ()
    places = prod(reduce_window_shape_tuple(ins[1].shape, **params))
    flops = places * prod(params["window_dimensions"])
    return Library(KernelRef("window", name), statics, ins[1].size, bool(native), flops)


def _wide(x: Any) -> Any:
    return convert(x, float32) if x.dtype in HALVES else x


@inlined
def _scattered_wide(source: Any, x: Any, **params: Any) -> Any:
    """Add up halves in float32, as `_scatter_eval` does; order is the same there."""
    return convert(bind(select_and_scatter_add_p, _wide(source), _wide(x), **params), source.dtype)


@inlined
def _gathered_wide(tangents: Any, x: Any, **params: Any) -> Any:
    return convert(
        bind(select_and_gather_add_p, _wide(tangents), _wide(x), **params), tangents.dtype
    )


def _scatter_call(
    ins: Any, outs: Any, *, select_prim: Primitive, **params: Any
) -> Library | Inline:
    if any(a.dtype in HALVES for a in ins):
        return _scattered_wide(ins, outs, select_prim=select_prim, **params)
    return _select_call("select_and_scatter_add", ins, select_prim, _undilated(ins[1], params))


select_and_scatter_add_p = kernel_call(
    "select_and_scatter_add",
    aval=_scatter_aval,
    eval=_scatter_eval,
    call=_scatter_call,
    jvp=linear_in(0),
    transpose=_scatter_transpose,
    batch=_BATCH,
)


def _gather_aval(
    tangents: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **params: Any
) -> ShapedArray:
    check_kind("select_and_gather_add", x.dtype, "iuf")
    _check_select("select_and_gather_add", tangents.shape, x.shape)
    shape = window_shape("select_and_gather_add", x.shape, params)
    return ShapedArray(shape, tangents.dtype)


def _gather_eval(
    tangents: np.ndarray, x: np.ndarray, *, select_prim: Primitive, **params: Any
) -> np.ndarray:
    chosen, found = _select(select_prim, x, params)
    if not x.size:
        return np.zeros(chosen.shape, tangents.dtype)
    return np.where(found, tangents.reshape(-1)[chosen], np.zeros((), tangents.dtype))


def _gather_call(ins: Any, outs: Any, *, select_prim: Primitive, **params: Any) -> Library | Inline:
    if any(a.dtype in HALVES for a in ins):
        return _gathered_wide(ins, outs, select_prim=select_prim, **params)
    return _select_call("select_and_gather_add", ins, select_prim, params)


select_and_gather_add_p = kernel_call(
    "select_and_gather_add",
    aval=_gather_aval,
    eval=_gather_eval,
    call=_gather_call,
    jvp=linear_in(0),
    transpose=_gather_transpose,
    batch=_BATCH,
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
    for name in _DILATIONS:
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
