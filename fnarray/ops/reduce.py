"""Reductions: folds of an operand's elements along some of its axes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import bfloat16, bool_, float16, float32
from ..core.forms import Operand, Reduce
from ..core.frozen import frozen
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive
from ..core.record import known_of, spelled_of
from ..core.trace import Tracer, bind, trace_graph
from ._combine import (
    Arrays,
    Combine,
    Folding,
    check_starts,
    flat_operands,
    fold,
    fold_batch,
    fold_tangents,
    lanewise,
    trace_combiner,
)
from .kit import calls
from .kit.calls import (
    broadcast_in_dim,
    convert,
    cumprod,
    div,
    eq,
    moveaxis,
    mul,
    pad,
    permute,
    reshape,
)
from .kit.checks import ANY, LOGICAL, kind
from .kit.declare import Face, place_axes, reduction, without_axes
from .kit.registry import register
from .kit.rules import (
    CONSTANT,
    LINEAR,
    NOT_LINEAR,
    all_spread,
    partials,
    shifted,
    transposed,
)

__all__ = [
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


def _limit(dtype: np.dtype, limit: str, of_bool: bool, of_float: float) -> Any:
    letter = kind(dtype)
    if letter in "iu":
        return dtype.type(getattr(np.iinfo(dtype), limit))
    return np.array(of_bool if letter == "b" else of_float, dtype)[()]


def lowest_of(dtype: np.dtype) -> Any:
    """Return the neutral element of the maximum: minus infinity where there is one."""
    return _limit(dtype, "min", False, -np.inf)


def highest_of(dtype: np.dtype) -> Any:
    """Return the neutral element of the minimum: plus infinity where there is one."""
    return _limit(dtype, "max", True, np.inf)


# --- NumPy evaluation ---------------------------------------------------------------------------


def wide(dtype: np.dtype) -> np.dtype:
    """Accumulate half precision in float32: to round every partial sum loses the small terms."""
    return float32 if dtype in HALVES else dtype


def _folded(ufunc: np.ufunc, start: Callable[[np.dtype], Any]) -> Callable[..., np.ndarray]:
    """Return the evaluation of a reduction by ``ufunc``; halves are folded in float32."""

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...]) -> np.ndarray:
        kept = wide(x.dtype)
        if x.size == 0:
            return np.full(without_axes(x.shape, axes), start(x.dtype), x.dtype)
        if ufunc is np.add and kept.kind in "fc":
            out = _summed(x, axes, kept)
        else:
            out = ufunc.reduce(x, axis=axes, dtype=kept)
        return out if kept is x.dtype else out.astype(x.dtype)

    known_of[evaluate] = partial(_known, ufunc)
    if ufunc is np.add:
        spelled_of[evaluate] = _in_turn
    return evaluate


def _known(
    ufunc: np.ufunc, x: ShapedArray, *, axes: tuple[int, ...]
) -> Callable[[np.ndarray], np.ndarray] | None:
    """Return the one call of NumPy's that a reduction of an array in order is, if it is one."""
    if x.size == 0 or not axes or wide(x.dtype) is not x.dtype:
        return None
    fold, dtype, shape = ufunc.reduce, x.dtype, without_axes(x.shape, axes)
    if ufunc is np.add and x.dtype.kind in "fc":  # see `_summed`
        if len(axes) == x.ndim:
            if x.size >= _FEW * _ROW:
                return None
            return lambda x: fold(x.reshape(-1), 0, dtype, np.empty(shape, dtype))
        inner = axes[0] == x.ndim - len(axes)
        alone = len(axes) == 1 and x.shape[axes[0]] <= _ROWS
        if 1 in x.shape or not (inner or alone):
            return None
    return lambda x: fold(x, axes, dtype, np.empty(shape, dtype))


#: Numbers in memory, and rows, of which a sum is spelled in NumPy's order.
_SPELLED, _SPELLED_ROWS = 64, 16


def _in_turn(x: ShapedArray, *, axes: tuple[int, ...]) -> ClosedGraph | None:
    """Return the additions of a sum of few single numbers, in the order in which NumPy adds them.

    That is eight sums side by side along memory, added in pairs, then what remains; else row by
    row. All begin with zero: that of numbers all -0 is 0.
    """
    if x.dtype is not float32 or _known(np.add, x, axes=axes) is None:
        return None
    axis, *others = axes
    whole = len(axes) == x.ndim
    shape = without_axes(x.shape, axes)
    n = x.size if whole else x.shape[axis]
    along = whole or axis == x.ndim - 1
    if (others and not whole) or not 1 < n <= (_SPELLED if along else _SPELLED_ROWS):
        return None

    def total(y: Array) -> list[Array]:
        y = reshape(y, (n,)) if whole else moveaxis(y, axis, y.ndim - 1)

        def cut(z: Array, start: int, stop: int, step: int = 1) -> Array:
            kept = z.shape[:-1]
            strides = (*(1 for _ in kept), step)
            return calls.slice(z, (*(0 for _ in kept), start), (*kept, stop), strides)

        done = n - n % 8 if along else 0
        first = cut(y, 0, 8 if done else 1)
        for i in range(8, done, 8):
            first = calls.add(first, cut(y, i, i + 8))
        for width in (8, 4, 2) if done else ():
            first = calls.add(cut(first, 0, width, 2), cut(first, 1, width, 2))
        for i in range(max(done, 1), n):
            first = calls.add(first, cut(y, i, i + 1))
        return [calls.add(reshape(first, shape), 0)]

    return trace_graph(total, [x], "sum")


#: Rows that are added one after another, each rounded: NumPy sums in pairs along memory alone; and
#: of a long vector how many, of how many: half the error of pairs, in less time (1M: 91, 136 us).
_ROWS, _FEW, _ROW = 32, 16, 2048


def _summed(x: np.ndarray, axes: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Sum in pairs along memory, then along other axes in blocks of blocks of few rows."""
    if len(axes) == x.ndim and x.flags.c_contiguous:
        return _total(x if x.ndim == 1 else x.reshape(-1), dtype)
    order = sorted(range(x.ndim), key=lambda i: -abs(x.strides[i]))
    last = len(order)
    while last and order[last - 1] in axes:
        last -= 1
    out = x
    if last < len(order) or not axes:  # along no axis it would be a copy
        out = np.add.reduce(x, axis=tuple(order[last:]), dtype=dtype, keepdims=True)
    for axis in reversed(order[:last]):
        if axis in axes:
            while (n := out.shape[axis]) > _ROWS:
                whole = n - n % _ROWS
                body, tail = np.split(out, (whole,), axis)
                blocks = body.reshape(*out.shape[:axis], -1, _ROWS, *out.shape[axis + 1 :])
                out = np.add.reduce(blocks, axis=axis + 1, dtype=dtype)
                if whole < n:
                    rest = np.add.reduce(tail, axis=axis, dtype=dtype, keepdims=True)
                    out = np.concatenate((out, rest), axis)
            out = np.add.reduce(out, axis=axis, dtype=dtype, keepdims=True)
    return out.reshape(without_axes(x.shape, axes))


def _total(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Sum a vector: a long one by blocks of few rows, whose sums are added up in double."""
    if not (whole := x.size - x.size % (_FEW * _ROW)) or dtype is not x.dtype:
        return np.add.reduce(x, dtype=dtype)
    rows, double = x[:whole].reshape(-1, _FEW, _ROW), np.result_type(dtype, np.float64)
    rows = np.add.reduce(np.add.reduce(rows, axis=1), axis=None, dtype=double)
    return (rows + np.add.reduce(x[whole:], dtype=double)).astype(dtype)


def _ordered(sign: str) -> str:
    """Return the template of the complex maximum or minimum: lexicographic, NaN wins."""
    beats = (
        f"({{x0}}.real {sign} {{a0}}.real) | "
        f"(({{x0}}.real == {{a0}}.real) & ({{x0}}.imag {sign} {{a0}}.imag)) | ({{x0}} != {{x0}})"
    )
    return f"({{x0}} if ({{a0}} == {{a0}}) & ({beats}) else {{a0}})"


# --- derivatives --------------------------------------------------------------------------------


def _stretch(y: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Repeat a reduction's result along the axes it lacks: what transposes a sum."""
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    return broadcast_in_dim(y, shape, kept)


def _of_extremes(g: Any, out: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """Average the tangents of the elements that equal the result."""
    one_each = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    hits = convert(eq(x, reshape(out, one_each)), g.dtype, g.aval.weak_type)
    return div(calls.reduce_sum(mul(g, hits), axes), calls.reduce_sum(hits, axes))


def _of_product(g: Any, out: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """Weigh tangents by the product of all other elements: of those before, and those after.

    Division would lose the product around a zero.
    """
    g, x = _line(g, axes), _line(x, axes)
    n = x.shape[-1]
    if n < 2:
        return calls.reduce_sum(g, (x.ndim - 1,))
    others = mul(_products_before(x, False), _products_before(x, True))
    return calls.reduce_sum(mul(g, others), (x.ndim - 1,))


def _line(x: Any, axes: tuple[int, ...]) -> Any:
    """Bring axes to the end, as one."""
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    shape = tuple(x.shape[i] for i in kept)
    return reshape(permute(x, kept + axes), (*shape, prod(x.shape[i] for i in axes)))


def _products_before(x: Any, reverse: bool) -> Any:
    """Return running products along the last axis, each without its own element."""
    axis, n = x.ndim - 1, x.shape[-1]
    start = [0] * x.ndim
    stop = list(x.shape)
    start[axis], stop[axis] = (1, n) if reverse else (0, n - 1)
    rest = calls.slice(x, tuple(start), tuple(stop))
    running = cumprod(rest, axis, reverse)
    edge = (0, 1, 0) if reverse else (1, 0, 0)
    config = (*((0, 0, 0),) * axis, edge)
    return pad(running, 1, config)


# --- reductions with a primitive of their own ---------------------------------------------------


@frozen
class Monoid:
    """An associative combination that reductions know: its face, start, and evaluation."""

    face: Face
    start: Callable[[np.dtype], Any]
    ufunc: np.ufunc

    def template(self, dtype: np.dtype) -> str:
        """Return the template of the combination of accumulator and term."""
        scalar = ShapedArray((), dtype)
        return self.face.primitive.rule("form")((scalar,), (scalar,), axes=()).combine[0]


#: By the name of the primitive that combines two elements.
MONOIDS: dict[str, Monoid] = {}


def _monoid(
    name: str,
    ufunc: np.ufunc,
    start: Callable[[np.dtype], Any],
    combine: str | dict[str, str],
    **rules: Any,
) -> Callable[[Callable[..., Any]], Face]:
    """Declare the reduction by a monoid: that of the primitive of a name."""

    def declare(signature: Callable[..., Any]) -> Face:
        made = reduction(combine, start=start, eval=_folded(ufunc, start), **rules)(signature)
        MONOIDS[name] = Monoid(made, start, ufunc)
        return made

    return declare


@_monoid(
    "add",
    np.add,
    zero_of,
    {"iuf": "sc.radd({a0}, {x0})", "c": "({a0} + {x0})"},
    in_order={"iuf": "sc.add({a0}, {x0})", "c": "({a0} + {x0})"},
    accumulator=wide,
    jvp=LINEAR,
    transpose=transposed(lambda ct, x, axes: _stretch(ct, x.shape, axes)),
    print_params=lambda params: {**params, "out_sharding": None},
)
def reduce_sum(x: Array, axes: Sequence[int]) -> Array:
    """Sum over ``axes``, in the operand's dtype: integers wrap, halves add up in float32."""
    ...


@_monoid(
    "mul",
    np.multiply,
    one_of,
    {"iuf": "sc.rmul({a0}, {x0})", "c": "({a0} * {x0})"},
    in_order={"iuf": "sc.mul({a0}, {x0})", "c": "({a0} * {x0})"},
    accumulator=wide,
    jvp=partials(_of_product),
)
def reduce_prod(x: Array, axes: Sequence[int]) -> Array:
    """Product over ``axes``, in the operand's dtype: integers wrap."""
    ...


def _extreme(name: str, ufunc: np.ufunc, start: Callable[[np.dtype], Any], sign: str) -> Any:
    combine = {"biuf": f"sc.{ufunc.__name__}({{a0}}, {{x0}})", "c": _ordered(sign)}
    return _monoid(name, ufunc, start, combine, dtypes=ANY, jvp=partials(_of_extremes))


@_extreme("max", np.maximum, lowest_of, ">")
def reduce_max(x: Array, axes: Sequence[int]) -> Array:
    """Maximum over ``axes``; NaN wins, and over nothing it is the lowest value of the dtype."""
    ...


@_extreme("min", np.minimum, highest_of, "<")
def reduce_min(x: Array, axes: Sequence[int]) -> Array:
    """Minimum over ``axes``; NaN wins, and over nothing it is the highest value of the dtype."""
    ...


def _logical(name: str, ufunc: np.ufunc, start: Callable[[np.dtype], Any], function: str) -> Any:
    combine = f"sc.{function}({{a0}}, {{x0}})"
    return _monoid(name, ufunc, start, combine, dtypes=LOGICAL, jvp=CONSTANT)


@_logical("and", np.bitwise_and, all_bits_of, "and_")
def reduce_and(x: Array, axes: Sequence[int]) -> Array:
    """Bitwise ``and`` over ``axes``; for bool, whether all hold."""
    ...


@_logical("or", np.bitwise_or, zero_of, "or_")
def reduce_or(x: Array, axes: Sequence[int]) -> Array:
    """Bitwise ``or`` over ``axes``; for bool, whether any holds."""
    ...


@_logical("xor", np.bitwise_xor, zero_of, "xor")
def reduce_xor(x: Array, axes: Sequence[int]) -> Array:
    """Bitwise exclusive ``or`` over ``axes``; for bool, whether an odd number hold."""
    ...


# --- the general reduction ----------------------------------------------------------------------


def monoid_of_function(computation: Any, init: Any, dtype: np.dtype) -> str | None:
    """Name the monoid where a ``lax`` function and its start are one; None otherwise."""
    prim = getattr(computation, "primitive", None)
    if not isinstance(prim, Primitive):
        return None
    monoid = MONOIDS.get(prim.name)
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
    n_terms = prod(values[0].shape[d] for d in dimensions)
    terms = [np.moveaxis(x, dimensions, front).reshape(n_terms, *kept) for x in values[:n]]
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


def _rows(x: Any, dims: tuple[int, ...]) -> Any:
    """Bring axes to the front, as one."""
    return moveaxis(_line(x, dims), x.ndim - len(dims), 0)


def _folding(dims: tuple[int, ...]) -> Folding:
    """Return the fold along axes."""

    def folding(make: Callable[[], Combine], arrays: Arrays, starts: Arrays) -> Arrays:
        rows = [_rows(x, dims) for x in arrays]
        if not rows[0].shape[0]:
            return starts
        combine = make()
        return combine(starts, fold(combine, rows))

    return folding


def _reduce_jvp(
    primals: Any, tangents: Any, *, jaxpr: ClosedGraph, dimensions: Any, **params: Any
) -> tuple[Arrays, Arrays]:
    outs = bind(reduce_p, *primals, jaxpr=jaxpr, dimensions=dimensions, **params)
    return fold_tangents("reduce", jaxpr, outs, primals, tangents, _folding(dimensions))


def _reduce_batch(
    size: int, operands: Any, batched: Any, *, jaxpr: ClosedGraph, dimensions: Any, **params: Any
) -> tuple[Arrays, list[bool]]:
    n = len(operands) // 2
    xs = all_spread(size, operands[:n], batched[:n])
    starts, flags, dims = operands[n:], batched[n:], shifted(dimensions)
    if not any(flags):
        outs = bind(reduce_p, *xs, *starts, jaxpr=jaxpr, dimensions=dims, **params)
        return outs, [True] * n
    shape = without_axes(xs[0].shape, dims)
    return fold_batch("reduce", jaxpr, xs, starts, flags, shape, _folding(dims))


reduce_p = register(
    Primitive(
        "reduce",
        aval=_reduce_aval,
        eval=_reduce_eval,
        form=_reduce_form,
        jvp=_reduce_jvp,
        transpose=NOT_LINEAR,
        batch=_reduce_batch,
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
