"""Reductions: folds of an operand's elements along some of its axes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core import tree
from ..core.array import Array, ArrayImpl, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import bfloat16, bool_, canonicalize_dtype, float16, float32, is_integer
from ..core.forms import Map, Operand, Reduce
from ..core.graph import ClosedGraph, Literal, eval_graph
from ..core.primitive import Missing, Primitive
from ..core.trace import Tracer, bind, no_trace, trace_graph
from ._rules import (
    ANY,
    LOGICAL,
    REAL,
    check_kind,
    kind,
    place_axes,
    reduction,
    register,
    without_axes,
)

__all__ = [
    "argmax",
    "argmin",
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_xor",
]

HALVES = (float16, bfloat16)


# --- starts of accumulators ---------------------------------------------------------------------


def zero_of(dtype: np.dtype) -> Any:
    """Return the neutral element of addition, ``or`` and ``xor``."""
    return np.zeros((), dtype)[()]


def one_of(dtype: np.dtype) -> Any:
    """Return the neutral element of multiplication."""
    return np.ones((), dtype)[()]


def all_bits_of(dtype: np.dtype) -> Any:
    """Return the neutral element of ``and``."""
    return np.ones((), dtype)[()] if dtype == bool_ else np.array(-1).astype(dtype)[()]


def lowest_of(dtype: np.dtype) -> Any:
    """Return the neutral element of the maximum: minus infinity where there is one."""
    letter = kind(dtype)
    if letter in "iu":
        return dtype.type(np.iinfo(dtype).min)
    return np.array(False if letter == "b" else -np.inf, dtype)[()]


def highest_of(dtype: np.dtype) -> Any:
    """Return the neutral element of the minimum: plus infinity where there is one."""
    letter = kind(dtype)
    if letter in "iu":
        return dtype.type(np.iinfo(dtype).max)
    return np.array(True if letter == "b" else np.inf, dtype)[()]


# --- NumPy evaluation ---------------------------------------------------------------------------


def _folded(ufunc: np.ufunc, start: Callable[[np.dtype], Any]) -> Callable[..., np.ndarray]:
    """Return the evaluation of a reduction by ``ufunc``; halves are folded in float32."""

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...]) -> np.ndarray:
        wide = float32 if x.dtype in HALVES else x.dtype
        if x.size == 0:
            shape = without_axes(x.shape, axes)
            return np.full(shape, start(x.dtype), x.dtype)
        out = ufunc.reduce(x, axis=axes, dtype=wide)
        return out if wide is x.dtype else out.astype(x.dtype)

    return evaluate


def _wide(face: Callable[..., Any]) -> Callable[..., Any]:
    """Accumulate half precision in float32: to round every partial sum loses the small terms."""
    narrow = face.primitive.form  # type: ignore[attr-defined]

    def form(ins: Any, outs: Any, **params: Any) -> Reduce:
        made = narrow(ins, outs, **params)
        return replace(made, dtypes=(float32,)) if ins[0].dtype in HALVES else made

    face.primitive.form = form  # type: ignore[attr-defined]
    return face


def _ordered(sign: str) -> str:
    """Return the template of the complex maximum or minimum: lexicographic, NaN wins."""
    beats = (
        f"({{x0}}.real {sign} {{a0}}.real) | "
        f"(({{x0}}.real == {{a0}}.real) & ({{x0}}.imag {sign} {{a0}}.imag)) | ({{x0}} != {{x0}})"
    )
    return f"({{x0}} if ({{a0}} == {{a0}}) & ({beats}) else {{a0}})"


# --- reductions with a primitive of their own ---------------------------------------------------


@_wide
@reduction(
    {"iuf": "sc.radd({a0}, {x0})", "c": "({a0} + {x0})"},
    start=zero_of,
    eval=_folded(np.add, zero_of),
    print_params=lambda params: {**params, "out_sharding": None},
)
def reduce_sum(x: Array, axes: Sequence[int]) -> Array:
    """Sum over ``axes``, in the operand's dtype: integers wrap, halves add up in float32."""
    ...


@_wide
@reduction(
    {"iuf": "sc.rmul({a0}, {x0})", "c": "({a0} * {x0})"},
    start=one_of,
    eval=_folded(np.multiply, one_of),
)
def reduce_prod(x: Array, axes: Sequence[int]) -> Array:
    """Product over ``axes``, in the operand's dtype: integers wrap."""
    ...


@reduction(
    {"biuf": "sc.maximum({a0}, {x0})", "c": _ordered(">")},
    start=lowest_of,
    eval=_folded(np.maximum, lowest_of),
    dtypes=ANY,
)
def reduce_max(x: Array, axes: Sequence[int]) -> Array:
    """Maximum over ``axes``; NaN wins, and over nothing it is the lowest value of the dtype."""
    ...


@reduction(
    {"biuf": "sc.minimum({a0}, {x0})", "c": _ordered("<")},
    start=highest_of,
    eval=_folded(np.minimum, highest_of),
    dtypes=ANY,
)
def reduce_min(x: Array, axes: Sequence[int]) -> Array:
    """Minimum over ``axes``; NaN wins, and over nothing it is the highest value of the dtype."""
    ...


@reduction(
    "sc.and_({a0}, {x0})",
    start=all_bits_of,
    eval=_folded(np.bitwise_and, all_bits_of),
    dtypes=LOGICAL,
)
def reduce_and(x: Array, axes: Sequence[int]) -> Array:
    """Bitwise ``and`` over ``axes``; for bool, whether all hold."""
    ...


@reduction(
    "sc.or_({a0}, {x0})",
    start=zero_of,
    eval=_folded(np.bitwise_or, zero_of),
    dtypes=LOGICAL,
)
def reduce_or(x: Array, axes: Sequence[int]) -> Array:
    """Bitwise ``or`` over ``axes``; for bool, whether any holds."""
    ...


@reduction(
    "sc.xor({a0}, {x0})",
    start=zero_of,
    eval=_folded(np.bitwise_xor, zero_of),
    dtypes=LOGICAL,
)
def reduce_xor(x: Array, axes: Sequence[int]) -> Array:
    """Bitwise exclusive ``or`` over ``axes``; for bool, whether an odd number hold."""
    ...


# --- positions of extremes ----------------------------------------------------------------------


def _position(label: str, beats: str, start: Callable[[np.dtype], Any], find: Any) -> Primitive:
    """Declare the index of an extreme along one axis; ``beats`` compares term and accumulator."""

    def aval(x: ShapedArray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> ShapedArray:
        check_kind(label, x.dtype, "b" + REAL)
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(
                f"lax.{label}: axis must be in [0, {x.ndim}) for shape {x.shape}, got {axis}."
            )
        if not is_integer(index_dtype):
            raise TypeError(
                f"lax.{label}: index_dtype must be an integer dtype, got {index_dtype}."
            )
        if x.shape[axis] == 0:
            raise ValueError(
                f"lax.{label}: axis {axis} of shape {x.shape} is empty, so no element is extreme."
            )
        return ShapedArray(without_axes(x.shape, axes), index_dtype)

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> np.ndarray:
        return find(x.astype(float32) if x.dtype in HALVES else x, axis=axes[0])

    def form(ins: Any, outs: Any, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Reduce:
        (x,) = ins
        # NaN replaces all but NaN, so the first one stays; of equals the first stays too.
        wins = f"({{x0}} {beats} {{a0}}) | (({{x0}} != {{x0}}) & ({{a0}} == {{a0}}))"
        return Reduce(
            extents=(x.shape[axes[0]],),
            index=(lambda o, r: place_axes(axes, r, o),),
            inits=(start(x.dtype), zero_of(index_dtype)),
            combine=(f"({{x0}} if {wins} else {{a0}})", f"({{x1}} if {wins} else {{a1}})"),
            terms=("{0}", f"sc.to_{index_dtype}({{r0}})"),
            results=(1,),
            dtypes=(float32 if x.dtype in HALVES else x.dtype, index_dtype),
            axes=axes,
        )

    return register(
        Primitive(
            label,
            aval=aval,
            eval=evaluate,
            form=form,
            jvp=Missing("a position is an integer and has no derivative"),
            transpose=Missing("it is not linear"),
        )
    )


argmax_p = _position("argmax", ">", lowest_of, np.argmax)
argmin_p = _position("argmin", "<", highest_of, np.argmin)


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
    index_dtype = canonicalize_dtype(index_dtype)
    return bind(argmax_p, operand, axes=(operator.index(axis),), index_dtype=index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """Return the index of the minimum along ``axis``; see `argmax`."""
    index_dtype = canonicalize_dtype(index_dtype)
    return bind(argmin_p, operand, axes=(operator.index(axis),), index_dtype=index_dtype)


# --- the general reduction ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative combination that reductions know: its face, start, and evaluation."""

    face: Callable[..., Any]
    start: Callable[[np.dtype], Any]
    ufunc: np.ufunc

    def template(self, dtype: np.dtype) -> str:
        """Return the template of the combination of accumulator and term."""
        scalar = ShapedArray((), dtype)
        return self.face.primitive.form((scalar,), (scalar,), axes=()).combine[0]


#: By the name of the primitive that combines two elements.
MONOIDS = {
    "add": Monoid(reduce_sum, zero_of, np.add),
    "mul": Monoid(reduce_prod, one_of, np.multiply),
    "max": Monoid(reduce_max, lowest_of, np.maximum),
    "min": Monoid(reduce_min, highest_of, np.minimum),
    "and": Monoid(reduce_and, all_bits_of, np.bitwise_and),
    "or": Monoid(reduce_or, zero_of, np.bitwise_or),
    "xor": Monoid(reduce_xor, zero_of, np.bitwise_xor),
}


def monoid_of_function(computation: Any, init: Any, dtype: np.dtype) -> str | None:
    """Name the monoid where a ``lax`` function and its start are one; None otherwise."""
    prim = getattr(computation, "primitive", None)
    monoid = MONOIDS.get(prim.name) if isinstance(prim, Primitive) else None
    if monoid is None or isinstance(init, Tracer) or np.shape(init):
        return None
    same = np.asarray(init) == monoid.start(dtype)
    return prim.name if same else None


def monoid_of_graph(graph: ClosedGraph) -> str | None:
    """Name the monoid that a graph of two scalars computes; None where it is no known one."""
    inner = graph.jaxpr
    if len(inner.eqns) != 1 or len(inner.invars) != 2:
        return None
    (eqn,) = inner.eqns
    both = set(map(id, eqn.invars)) == set(map(id, inner.invars))
    named = eqn.primitive.name in MONOIDS and inner.outvars == eqn.outvars
    return eqn.primitive.name if both and named else None


def lanewise(graph: ClosedGraph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evaluate a graph of scalars on each element of equally shaped arrays."""
    shape = arrays[0].shape

    def apply(prim: Primitive, *operands: Any, **params: Any) -> Any:
        return bind(prim, *(o.val if type(o) is Literal else o for o in operands), **params)

    with no_trace():
        if all(isinstance(eqn.form(), Map) for eqn in graph.eqns):
            # Elementwise through and through: its scalars may as well be arrays.
            args = [ArrayImpl(a, ShapedArray(a.shape, a.dtype)) for a in arrays]
            outs = eval_graph(graph.jaxpr, graph.consts, args, apply)
            values = (o.val if type(o) is Literal else o._data for o in outs)
            return [np.broadcast_to(v, shape) for v in values]
        results = [np.empty(shape, a.dtype) for a in graph.out_avals]
        for at in np.ndindex(*shape):
            args = [
                ArrayImpl(np.asarray(a[at]), v) for a, v in zip(arrays, graph.in_avals, strict=True)
            ]
            values = eval_graph(graph.jaxpr, graph.consts, args, apply)
            for out, value in zip(results, values, strict=True):
                out[at] = value.val if type(value) is Literal else value._data
        return results


def trace_combiner(
    name: str, computation: Callable[..., Any], structure: Any, avals: Sequence[ShapedArray]
) -> ClosedGraph:
    """Trace a binary function of two pytrees of scalars; check that it is closed under them."""

    def flat(*args: Any) -> list[Any]:
        n = len(args) // 2
        out = computation(*(tree.unflatten(structure, part) for part in (args[:n], args[n:])))
        leaves, got = tree.flatten(out)
        if got != structure:
            raise ValueError(
                f"lax.{name}: computation must return the structure of its operands, {structure}, "
                f"got {got}."
            )
        return leaves

    graph = trace_graph(flat, (*avals, *avals), getattr(computation, "__name__", "computation"))
    if graph.consts:
        held = ", ".join(aval_of(c).str_short() for c in graph.consts)
        raise ValueError(
            f"lax.{name}: computation must not use arrays from outside, got {held}. "
            "Pass Python numbers, or make them operands."
        )
    for out, aval in zip(graph.out_avals, avals, strict=True):
        if (out.shape, out.dtype) != (aval.shape, aval.dtype):
            raise ValueError(
                f"lax.{name}: computation must return scalars of its operands' dtypes, "
                f"got {out.str_short()} for {aval.str_short()}."
            )
    return graph


def check_starts(name: str, arrays: Sequence[ShapedArray], inits: Sequence[ShapedArray]) -> None:
    """Raise unless operands share a shape and each has a scalar start of its dtype."""
    if any(a.shape != arrays[0].shape for a in arrays):
        got = ", ".join(str(a.shape) for a in arrays)
        raise ValueError(f"lax.{name}: operands must have one shape, got {got}.")
    for a, start in zip(arrays, inits, strict=True):
        if start.shape:
            raise ValueError(f"lax.{name}: initial values must be scalars, got {start.shape}.")
        if start.dtype != a.dtype:
            raise TypeError(
                f"lax.{name}: an initial value must have its operand's dtype, got {start.dtype} "
                f"for {a.dtype}."
            )


def flat_operands(name: str, operands: Any, inits: Any) -> tuple[list[Any], list[Any], Any]:
    """Flatten operands and their starts, which must be of one structure."""
    arrays, structure = tree.flatten(operands)
    starts, of_starts = tree.flatten(inits)
    if structure != of_starts:
        raise ValueError(
            f"lax.{name}: operands and initial values must have one structure, "
            f"got {structure} and {of_starts}."
        )
    if not arrays:
        raise ValueError(f"lax.{name}: at least one operand is needed, got none.")
    return arrays, starts, structure


def _reduce_aval(*avals: ShapedArray, jaxpr: ClosedGraph, dimensions: Any, **_: Any) -> tuple:
    n = len(avals) // 2
    check_starts("reduce", avals[:n], avals[n:])
    ndim = avals[0].ndim
    if any(not 0 <= d < ndim for d in dimensions) or len(set(dimensions)) != len(dimensions):
        raise ValueError(
            f"lax.reduce: dimensions must be distinct and within the {ndim} axes of shape "
            f"{avals[0].shape}, got {dimensions}."
        )
    shape = without_axes(avals[0].shape, dimensions)
    return tuple(ShapedArray(shape, a.dtype, a.weak_type) for a in avals[:n])


def _reduce_eval(*values: np.ndarray, jaxpr: ClosedGraph, dimensions: Any, **_: Any) -> tuple:
    n = len(values) // 2
    known = monoid_of_graph(jaxpr)
    if known:
        monoid = MONOIDS[known]
        folded = monoid.face.primitive.eval(values[0], axes=dimensions)
        return (monoid.ufunc(values[1], folded),)
    kept = without_axes(values[0].shape, dimensions)
    front = range(len(dimensions))
    terms = [np.moveaxis(x, dimensions, front).reshape(-1, *kept) for x in values[:n]]
    folded = [np.broadcast_to(start, kept) for start in values[n:]]
    for row in zip(*terms, strict=True):
        folded = lanewise(jaxpr, (*folded, *row))
    return tuple(folded)


def combiner(graph: ClosedGraph, dtype: np.dtype) -> tuple[str, ...] | ClosedGraph:
    """Return how a graph combines, for `Reduce`: a template where the monoid is known."""
    known = monoid_of_graph(graph)
    return (MONOIDS[known].template(dtype),) if known else graph


def _reduce_form(ins: Any, outs: Any, *, jaxpr: ClosedGraph, dimensions: Any, **_: Any) -> Reduce:
    n = len(outs)
    known = monoid_of_graph(jaxpr) is not None
    return Reduce(
        extents=tuple(ins[0].shape[d] for d in dimensions),
        index=(lambda o, r: place_axes(dimensions, r, o),) * n,
        inits=tuple(Operand(n + k) for k in range(n)),
        combine=combiner(jaxpr, ins[0].dtype),
        terms=tuple(f"{{{k}}}" for k in range(n)),
        results=tuple(range(n)),
        dtypes=(float32,) if known and ins[0].dtype in HALVES else None,
        axes=dimensions,
    )


reduce_p = register(
    Primitive(
        "reduce",
        aval=_reduce_aval,
        eval=_reduce_eval,
        form=_reduce_form,
        multiple_results=True,
    )
)


def reduce(
    operands: Any, init_values: Any, computation: Callable[..., Any], dimensions: Sequence[int]
) -> Any:
    """Fold operands along ``dimensions`` by a binary function.

    The fold runs in row-major order from the initial values where ``computation`` is not one of
    ``lax.add mul max min bitwise_and bitwise_or bitwise_xor``; it should be associative, as no
    order is promised.

    Parameters
    ----------
    operands : pytree of arrays
        Of one shape.
    init_values : pytree of scalars
        Of the same structure and dtypes; the result over no elements.
    computation : callable
        ``computation(accumulated, element)`` on pytrees of scalars, giving the same structure.
    dimensions : sequence of int
        Non-negative and distinct.

    Returns
    -------
    pytree of arrays
        Of the operands' structure, without ``dimensions``.

    Raises
    ------
    ValueError
        For structures, shapes or dimensions that do not fit.
    TypeError
        For an initial value of another dtype.
    """
    arrays, starts, structure = flat_operands("reduce", operands, init_values)
    dims = tuple(map(operator.index, dimensions))
    avals = [aval_of(x) for x in arrays]
    if len(arrays) == 1:
        known = monoid_of_function(computation, starts[0], avals[0].dtype)
        if known:
            return tree.unflatten(structure, [MONOIDS[known].face(arrays[0], dims)])
    check_starts("reduce", avals, [aval_of(s) for s in starts])
    scalars = [ShapedArray((), a.dtype) for a in avals]
    graph = trace_combiner("reduce", computation, structure, scalars)
    outs = bind(reduce_p, *arrays, *starts, computation=computation, jaxpr=graph, dimensions=dims)
    return tree.unflatten(structure, outs)
