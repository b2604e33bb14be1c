"""Binary functions of scalars as graphs: traced, checked, and applied to arrays to fold by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ..core import tree
from ..core.array import ArrayImpl, aval_of
from ..core.avals import ShapedArray
from ..core.forms import Map
from ..core.graph import ClosedGraph, Literal, eval_graph
from ..core.primitive import Primitive
from ..core.tangents import differentiable, is_zero, zero_of
from ..core.trace import bind, no_trace, trace_graph
from ..errors import MissingRuleError
from .kit.calls import broadcast, broadcast_in_dim, reshape
from .kit.rules import instantiate
from .slicing import concatenate, slice_in_dim

Arrays = Sequence[Any]
#: Combines two lists of equally shaped arrays into one.
Combine = Callable[[Arrays, Arrays], Arrays]
#: Folds arrays into starts that have the shape of the results. The combination is made by a call of
#: the first argument: where there is nothing to fold, it need not be one that can be made.
Folding = Callable[[Callable[[], Combine], Arrays, Arrays], Arrays]


# --- NumPy evaluation ---------------------------------------------------------------------------


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


# --- tracing and checks -----------------------------------------------------------------------


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


# --- applied to arrays, for rules ---------------------------------------------------------------


def _check_elementwise(name: str, slot: str, graph: ClosedGraph) -> None:
    for eqn in graph.eqns:
        if not isinstance(eqn.form(), Map):
            raise MissingRuleError(
                slot,
                name,
                f"its computation does more than elementwise operations ({eqn.primitive}). "
                "Fold with lax.scan or lax.associative_scan",
            )


def _array(x: Any) -> Any:
    return ArrayImpl(np.asarray(x.val, x.aval.dtype), x.aval) if type(x) is Literal else x


def combination(name: str, slot: str, graph: ClosedGraph) -> Combine:
    """Return the combination of two lists of arrays by a graph of scalars."""
    _check_elementwise(name, slot, graph)

    def apply(prim: Primitive, *args: Any, **params: Any) -> Any:
        return bind(prim, *map(_array, args), **params)

    def combine(xs: Arrays, ys: Arrays) -> Arrays:
        outs = eval_graph(graph.jaxpr, graph.consts, (*xs, *ys), apply)
        return [broadcast(_array(o), x.shape) for o, x in zip(outs, xs, strict=True)]

    return combine


def with_tangents(graph: ClosedGraph) -> list[int]:
    """Return which of the combined values have tangents."""
    avals = graph.in_avals[: len(graph.in_avals) // 2]
    return [k for k, aval in enumerate(avals) if differentiable(aval.dtype)]


def dual_combination(name: str, graph: ClosedGraph) -> Combine:
    """Return the combination of two lists of values, each followed by tangents of `inexact`."""
    _check_elementwise(name, "jvp", graph)
    n, moving = len(graph.in_avals) // 2, with_tangents(graph)

    def pairs(values: Arrays) -> list[tuple[Any, Any]]:
        tangents = dict(zip(moving, values[n:], strict=True))
        return [(x, tangents[k] if k in tangents else zero_of(x)) for k, x in enumerate(values[:n])]

    def pair(x: Any) -> tuple[Any, Any]:
        return x if type(x) is tuple else (_array(x), zero_of(x))

    def apply(prim: Primitive, *args: Any, **params: Any) -> Any:
        primals, tangents = zip(*map(pair, args), strict=True)
        if all(map(is_zero, tangents)):
            outs = bind(prim, *primals, **params)
            duals = [zero_of(o) for o in outs] if prim.multiple_results else zero_of(outs)
        else:
            outs, duals = prim.rule("jvp")(primals, tangents, **params)
        if not prim.multiple_results:
            return outs, duals
        return list(zip(outs, cast("Any", duals), strict=True))

    def combine(xs: Arrays, ys: Arrays) -> Arrays:
        outs = eval_graph(graph.jaxpr, graph.consts, (*pairs(xs), *pairs(ys)), apply)
        duals = list(map(pair, outs))
        values = [x for x, _ in duals] + [instantiate(duals[k][1]) for k in moving]
        return [broadcast(x, xs[0].shape) for x in values]

    return combine


def fold(combine: Combine, arrays: Arrays) -> Arrays:
    """Combine along the first axis, which must not be empty: neighbours first, as a tree."""
    while (n := arrays[0].shape[0]) > 1:
        left = [slice_in_dim(x, 0, n - n % 2, 2) for x in arrays]
        pairs = combine(left, [slice_in_dim(x, 1, n, 2) for x in arrays])
        if n % 2:
            pairs = [
                concatenate([x, slice_in_dim(y, n - 1, n)], 0)
                for x, y in zip(pairs, arrays, strict=True)
            ]
        arrays = pairs
    return [reshape(x, x.shape[1:]) for x in arrays]


def fold_tangents(
    name: str, graph: ClosedGraph, outs: Arrays, primals: Arrays, tangents: Arrays, fold: Folding
) -> tuple[Arrays, Arrays]:
    """Return the results of a fold of ``(*arrays, *starts)`` and their tangents.

    Values and tangents are folded together, by the derivative of the combination.
    """
    n, moving = len(outs), with_tangents(graph)
    terms = [*primals[:n], *(instantiate(tangents[k]) for k in moving)]
    starts = [*primals[n:], *(instantiate(tangents[n + k]) for k in moving)]
    starts = [broadcast(start, outs[0].shape) for start in starts]
    folded = fold(lambda: dual_combination(name, graph), terms, starts)
    duals = dict(zip(moving, folded[n:], strict=True))
    return outs, [duals[k] if k in duals else zero_of(out) for k, out in enumerate(outs)]


def fold_batch(
    name: str,
    graph: ClosedGraph,
    arrays: Arrays,
    starts: Arrays,
    flags: Sequence[bool],
    shape: tuple[int, ...],
    fold: Folding,
) -> tuple[Arrays, list[bool]]:
    """Fold a batch whose starts differ from lane to lane, which no form of a fold knows.

    They are combined with what the elements fold to; ``shape`` is that of the results.
    """
    starts = [
        broadcast_in_dim(start, shape, (0,) * flag)
        for start, flag in zip(starts, flags, strict=True)
    ]
    folded = fold(lambda: combination(name, "batch", graph), arrays, starts)
    return list(folded), [True] * len(starts)
