"""Scatter: an array with windows of it updated at places that another array holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..core.array import Array, ArrayImpl, aval_of
from ..core.avals import ShapedArray
from ..core.forms import Map, Update
from ..core.graph import ClosedGraph, Literal, eval_graph
from ..core.primitive import Primitive
from ..core.trace import Tracer, bind, trace_graph
from ..errors import ShapeError
from ._canonical import Shape, canonical_shape
from ._rules import check_same_dtypes, register
from ._windows import GatherScatterMode, Windows
from .elementwise import add, max, min, mul, sub
from .gather import canonical_numbers, check_indices
from .shape import broadcast

__all__ = [
    "ScatterDimensionNumbers",
    "scatter",
    "scatter_add",
    "scatter_apply",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
]


class ScatterDimensionNumbers(NamedTuple):
    """How operand, indices and updates of `scatter` correspond; mirrors `GatherDimensionNumbers`.

    Parameters
    ----------
    update_window_dims : tuple of int
        Axes of the updates that run over a window, ascending.
    inserted_window_dims : tuple of int
        Axes of the operand along which windows have size 1 and the updates have no axis.
    scatter_dims_to_operand_dims : tuple of int
        For each entry of an index vector, the operand's axis it is a start along.
    operand_batching_dims, scatter_indices_batching_dims : tuple of int
        Axes of operand and indices that run together.
    """

    update_window_dims: Shape
    inserted_window_dims: Shape
    scatter_dims_to_operand_dims: Shape
    operand_batching_dims: Shape = ()
    scatter_indices_batching_dims: Shape = ()


@lru_cache(maxsize=4096)
def _windows(
    operand: Shape, indices: Shape, updates: Shape, numbers: ScatterDimensionNumbers
) -> Windows:
    gone = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    dims = numbers.update_window_dims
    if len(updates) != len(indices) - 1 + len(dims) or any(not 0 <= d < len(updates) for d in dims):
        raise ShapeError(
            f"lax.scatter: updates of shape {updates} must have the axes of indices of shape "
            f"{indices} but the last, and the window dimensions {dims}."
        )
    extents = iter(updates[d] for d in dims)
    sizes = tuple(1 if d in gone else next(extents, 1) for d in range(len(operand)))
    windows = Windows(
        operand,
        sizes,
        indices,
        dims,
        numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims,
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
    )
    windows.check("scatter")
    if tuple(updates[d] for d in windows.batch_dims) != windows.batch:
        raise ShapeError(
            f"lax.scatter: updates of shape {updates} with window dimensions {dims} must agree "
            f"with the batch {windows.batch} of the indices."
        )
    return windows


def _aval(
    x: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    **params: Any,
) -> ShapedArray:
    check_indices("scatter", indices)
    check_same_dtypes("scatter", (x, updates))
    _windows(x.shape, indices.shape, updates.shape, dimension_numbers)
    return x


Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _unbuffered(out: np.ndarray, index: Any, updates: np.ndarray, ufunc: np.ufunc) -> None:
    """Combine in place where places may repeat.

    NumPy's loop for one flat index is several times faster than that for a tuple of them.
    """
    places = np.arange(out.size).reshape(out.shape)[index] if out.ndim != 1 else index[0]
    flat = np.ascontiguousarray(places).reshape(-1)
    ufunc.at(out.reshape(-1), flat, np.ascontiguousarray(updates).reshape(-1))


def _by_rounds(out: np.ndarray, index: Any, updates: np.ndarray, combine: Combine) -> None:
    """Combine in place by a function of whole arrays: each round takes places' next updates."""
    places = np.arange(out.size).reshape(out.shape)[index].reshape(-1)
    flat, values = out.reshape(-1), updates.reshape(-1)
    left = np.arange(places.size)
    while left.size:
        _, first = np.unique(places[left], return_index=True)
        at = places[left[first]]
        flat[at] = combine(flat[at], values[left[first]])
        left = np.delete(left, first)


def _scatter_eval(
    x: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    *,
    windows: Windows,
    mode: GatherScatterMode,
    ufunc: np.ufunc | Combine | None,
    unique: bool,
) -> np.ndarray:
    out = x.copy()
    if not updates.size:
        return out
    clip = mode is GatherScatterMode.CLIP
    if np.prod(windows.batch, dtype=int) == 1:
        box, inside = windows.box(indices)
        if inside or clip:
            shape = out[box].shape
            new = updates.reshape(shape)
            out[box] = new if ufunc is None else ufunc(out[box], new)
        return out
    starts, inside = windows.starts(indices)
    order, index, axes = windows.lattice(starts)
    if not starts:  # every update has the same place
        order, axes = tuple(range(x.ndim)), (*windows.batch_dims, *windows.offset_dims)
        rows = updates.transpose(axes).reshape(-1, *windows.sizes)
        for row in rows:
            out[index] = row if ufunc is None else ufunc(out[index], row)
        return out
    moved = updates.transpose(np.argsort(axes))
    if not (clip or inside.all()):
        rank = len(windows.batch)
        index = tuple(
            np.broadcast_to(i, (*windows.batch, *i.shape[rank:]))[inside]
            if isinstance(i, np.ndarray)
            else i
            for i in index
        )
        moved = moved[inside]
    # The permuted whole shares the copy's buffer where its axes keep their order.
    view = np.ascontiguousarray(out.transpose(order))
    if ufunc is None:
        view[index] = moved
    elif unique:
        view[index] = ufunc(view[index], moved)
    elif isinstance(ufunc, np.ufunc):
        _unbuffered(view, index, moved, ufunc)
    else:
        _by_rounds(view, index, np.ascontiguousarray(moved), ufunc)
    return view.transpose(np.argsort(order))


def _scatter_form(
    ins: Any, combine: str | ClosedGraph, numbers: ScatterDimensionNumbers, mode: GatherScatterMode
) -> Update:
    x, indices, updates = ins
    windows = _windows(x.shape, indices.shape, updates.shape, numbers)
    if mode is GatherScatterMode.CLIP:
        return Update(
            updates.shape,
            lambda u, read: windows.index(u, read, clip=True),
            value=2,
            combine=combine,
        )
    return Update(
        updates.shape,
        lambda u, read: windows.index(u, read, clip=False),
        value=2,
        combine=combine,
        valid=windows.bounds,
    )


@lru_cache(maxsize=256)
def _combiner(face: Callable[..., Any], dtype: np.dtype) -> ClosedGraph:
    """Return the graph of ``face(old, update)``; one object per dtype, so that params are equal."""
    scalar = ShapedArray((), dtype)
    return trace_graph(lambda old, new: (face(old, new),), (scalar, scalar), face.__name__)


def _variant(name: str, face: Callable[..., Any], ufunc: np.ufunc) -> Primitive:
    """Declare a scatter that combines by a binary operation, which knows its own template."""

    def evaluate(
        x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **params: Any
    ) -> np.ndarray:
        windows = _windows(x.shape, indices.shape, updates.shape, dimension_numbers)
        unique = params["unique_indices"]
        return _scatter_eval(
            x, indices, updates, windows=windows, mode=mode, ufunc=ufunc, unique=unique
        )

    def form(ins: Any, outs: Any, *, dimension_numbers: Any, mode: Any, **params: Any) -> Update:
        scalar = ShapedArray((), ins[0].dtype)
        how = face.primitive.form((scalar, scalar), (scalar,))
        return _scatter_form(ins, how.template, dimension_numbers, mode)

    return register(Primitive(name, aval=_aval, eval=evaluate, form=form))


scatter_add_p = _variant("scatter-add", add, np.add)
scatter_sub_p = _variant("scatter-sub", sub, np.subtract)
scatter_mul_p = _variant("scatter-mul", mul, np.multiply)
scatter_min_p = _variant("scatter-min", min, np.minimum)
scatter_max_p = _variant("scatter-max", max, np.maximum)


def _apply_on_arrays(graph: ClosedGraph) -> Combine:
    """Return a combination by graph: all at once if it is elementwise, else one by one."""

    def evaluate(prim: Primitive, *args: Any, **params: Any) -> Any:
        arrays = [np.asarray(a.val) if type(a) is Literal else np.asarray(a) for a in args]
        return prim.eval(*arrays, **params)

    consts = [np.asarray(c) for c in graph.consts]
    whole = all(isinstance(eqn.form(), Map) for eqn in graph.eqns)

    def combine(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        if whole:
            (value,) = eval_graph(graph.jaxpr, consts, [old, new], evaluate)
            return np.asarray(value.val if type(value) is Literal else value)
        pairs = zip(old.flat, new.flat, strict=True)
        values = [eval_graph(graph.jaxpr, consts, list(p), evaluate)[0] for p in pairs]
        values = [v.val if type(v) is Literal else v for v in values]
        return np.array(values, old.dtype).reshape(old.shape)

    return combine


def _eval(
    x: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    mode: GatherScatterMode,
    update_jaxpr: ClosedGraph | None,
    unique_indices: bool,
    **params: Any,
) -> np.ndarray:
    windows = _windows(x.shape, indices.shape, updates.shape, dimension_numbers)
    how = None if update_jaxpr is None else _apply_on_arrays(update_jaxpr)
    return _scatter_eval(
        x, indices, updates, windows=windows, mode=mode, ufunc=how, unique=unique_indices
    )


def _form(
    ins: Any,
    outs: Any,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    mode: GatherScatterMode,
    update_jaxpr: ClosedGraph | None,
    **params: Any,
) -> Update:
    combine = "{1}" if update_jaxpr is None else update_jaxpr
    return _scatter_form(ins, combine, dimension_numbers, mode)


scatter_p = register(Primitive("scatter", aval=_aval, eval=_eval, form=_form))


def _bind(
    prim: Primitive,
    graph: ClosedGraph | None,
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str | GatherScatterMode | None,
) -> Array:
    numbers = canonical_numbers("scatter", ScatterDimensionNumbers, dimension_numbers)
    return bind(
        prim,
        operand,
        scatter_indices,
        updates,
        dimension_numbers=numbers,
        indices_are_sorted=bool(indices_are_sorted),
        mode=GatherScatterMode.from_any(mode),
        unique_indices=bool(unique_indices),
        update_consts=(),
        update_jaxpr=graph,
    )


def scatter(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Return an array with windows of it replaced, one for each index vector, in order.

    Parameters
    ----------
    operand : array_like
    scatter_indices : integer array_like
        Its last axis holds the index vectors.
    updates : array_like
        Of the operand's dtype.
    dimension_numbers : ScatterDimensionNumbers
    indices_are_sorted, unique_indices : bool
        Promises about the index vectors.
    mode : GatherScatterMode or str, optional
        What becomes of windows not entirely inside; by default they are left out.

    Raises
    ------
    TypeError
        For dtypes that differ, or dimension numbers that do not fit the shapes.
    ValueError
        For indices that are not integers.

    Notes
    -----
    XLA's Scatter, with the index vectors in the last axis.
    """
    return _bind(
        scatter_p,
        None,
        operand,
        scatter_indices,
        updates,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )


def _combining(prim: Primitive, face: Callable[..., Any], verb: str) -> Callable[..., Array]:
    def scatter_variant(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Array:
        return _bind(
            prim,
            _combiner(face, aval_of(operand).dtype),
            operand,
            scatter_indices,
            updates,
            dimension_numbers,
            indices_are_sorted,
            unique_indices,
            mode,
        )

    name = prim.name.replace("-", "_")
    scatter_variant.__name__ = scatter_variant.__qualname__ = name
    scatter_variant.__doc__ = (
        f"Return an array with windows of it {verb} updates, repeated places again and again.\n\n"
        "    Parameters, errors and modes are those of `scatter`."
    )
    scatter_variant.primitive = prim  # type: ignore[attr-defined]
    return scatter_variant


scatter_add = _combining(scatter_add_p, add, "increased by")
scatter_sub = _combining(scatter_sub_p, sub, "decreased by")
scatter_mul = _combining(scatter_mul_p, mul, "multiplied by")
scatter_min = _combining(scatter_min_p, min, "limited from above by")
scatter_max = _combining(scatter_max_p, max, "limited from below by")


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Return an array with a function applied to windows of it, again where places repeat.

    Parameters
    ----------
    operand, scatter_indices, dimension_numbers, indices_are_sorted, unique_indices, mode
        As in `scatter`.
    func : callable
        Function of one element, of the operand's dtype, giving an element of that dtype. It may
        close over arrays, not over traced values.
    update_shape : sequence of int
        Shape that updates would have.

    Raises
    ------
    TypeError
        As `scatter`, and where ``func`` gives another dtype or shape.
    """
    dtype = aval_of(operand).dtype
    scalar = ShapedArray((), dtype)
    graph = trace_graph(lambda old, new: (func(old),), (scalar, scalar), "scatter_apply")
    (out,) = graph.out_avals
    if out.shape or out.dtype != dtype:
        raise TypeError(
            f"lax.scatter_apply: func must map {scalar.str_short()} to itself, got "
            f"{out.str_short()}."
        )
    if any(isinstance(c, Tracer) for c in graph.consts):
        raise TypeError(
            "lax.scatter_apply: func must not close over traced values. Gather the elements, "
            "apply it to them, and set them: x.at[idx].set(func(x[idx]))."
        )
    shape = canonical_shape("scatter_apply", update_shape)
    unused = broadcast(ArrayImpl(np.zeros((), dtype), scalar), shape)
    return _bind(
        scatter_p,
        graph,
        operand,
        scatter_indices,
        unused,
        dimension_numbers,
        indices_are_sorted,
        unique_indices,
        mode,
    )
