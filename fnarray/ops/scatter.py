"""Scatter: an array with windows of it updated at places that another array holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, cast

import numpy as np

from ..core.array import Array, ArrayImpl, aval_of
from ..core.avals import ShapedArray
from ..core.forms import Update
from ..core.graph import ClosedGraph
from ..core.primitive import Primitive, Rule, RuleOf
from ..core.record import known_of
from ..core.tangents import Zero, is_undefined, is_zero
from ..core.trace import Tracer, bind, trace_graph
from ..errors import MissingRuleError, ShapeError
from ._scattering import apply_on_arrays, scatter_eval
from ._windows import GatherScatterMode, ScatterDimensionNumbers, Windows
from .elementwise import add, max, min, mul, sub
from .gather import FILLING, canonical_numbers, check_indices, combiner, gather_p
from .kit import calls
from .kit.calls import const, div, eq, full, gt, lt, reshape, select
from .kit.canonical import Shape, canonical_shape
from .kit.checks import check_same_dtypes
from .kit.declare import Face
from .kit.registry import register
from .kit.rules import NOT_LINEAR, instantiate, partials, spread, transposed_each
from .shape import broadcast, broadcast_in_dim, iota

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


def _scatter_form(
    ins: Any, combine: str | ClosedGraph, mode: GatherScatterMode, **params: Any
) -> Update:
    x, indices, updates = ins
    windows = _windows(x.shape, indices.shape, updates.shape, params["dimension_numbers"])
    clip = mode is GatherScatterMode.CLIP
    params["unique_indices"] &= not clip  # places that differ may be clipped to one
    return Update(
        updates.shape,
        lambda u, read: windows.index(u, read, clip=clip),
        value=2,
        combine=combine,
        valid=None if clip else windows.bounds,
        apart=_apart(*ins, **params),
    )


# ---- derivatives and batching --------------------------------------------------------------------


def _read(x: Any, indices: Any, updates: Any, *, mode: GatherScatterMode, **params: Any) -> Array:
    """Return, in the shape of the updates, what an array holds where they go; 0 if nowhere."""
    numbers = params["dimension_numbers"]
    return bind(
        gather_p,
        x,
        indices,
        dimension_numbers=numbers.gather(),
        slice_sizes=_windows(x.shape, indices.shape, updates.shape, numbers).sizes,
        unique_indices=params["unique_indices"],
        indices_are_sorted=params["indices_are_sorted"],
        mode=mode,
        fill_value=0 if mode in FILLING else None,
    )


def _add_to(x: Any, indices: Any, updates: Any, **params: Any) -> Array:
    params["update_jaxpr"] = combiner(add, x.dtype)
    return bind(scatter_add_p, x, indices, updates, **params)


def _apart(x: Any, indices: Any, updates: Any, **params: Any) -> bool:
    """Whether no two updates can go to one place: by promise, or since there is but one window."""
    windows = _windows(x.shape, indices.shape, updates.shape, params["dimension_numbers"])
    free = (n for k, n in enumerate(windows.batch) if k not in windows.indices_batching)
    return params["unique_indices"] or prod(free) <= 1


def _scatter_batch(prim: Primitive) -> Callable[..., Any]:
    def batch(size: int, operands: Any, batched: Any, **params: Any) -> Array:
        x, indices, updates = operands
        x, updates = (
            a if b else spread(a, size) for a, b in ((x, batched[0]), (updates, batched[2]))
        )
        params["dimension_numbers"] = params["dimension_numbers"].led(batched[1])
        return bind(prim, x, indices, updates, **params)

    return batch


_BATCH = RuleOf(_scatter_batch)


def _variant(
    name: str, face: Face, ufunc: np.ufunc, jvp: Rule, transpose: Rule = NOT_LINEAR
) -> Primitive:
    """Declare a scatter that combines by a binary operation, which knows its own template."""

    def evaluate(
        x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **params: Any
    ) -> np.ndarray:
        windows = _windows(x.shape, indices.shape, updates.shape, dimension_numbers)
        unique = params["unique_indices"]
        return scatter_eval(
            x, indices, updates, windows=windows, mode=mode, ufunc=ufunc, unique=unique
        )

    def form(ins: Any, outs: Any, *, mode: Any, **params: Any) -> Update:
        scalar = ShapedArray((), ins[0].dtype)
        how = face.primitive.rule("form")((scalar, scalar), (scalar,))
        return _scatter_form(ins, how.template, mode, **params)

    return register(
        Primitive(
            name,
            aval=_aval,
            eval=evaluate,
            form=form,
            jvp=jvp,
            transpose=transpose,
            batch=_BATCH,
        )
    )


def _need_apart(*operands: Any, **params: Any) -> None:
    if not _apart(*operands, **params):
        raise MissingRuleError(
            "jvp",
            "scatter-mul",
            "updates of one place multiply each other. Pass unique_indices=True where places "
            "do not repeat.",
        )


def _factor_tangent(g: Any, out: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Array:
    _need_apart(x, indices, updates, **params)
    return calls.mul(x, _add_to(full(x.aval, 0), indices, g, **params))


def _factor_cotangent(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Array:
    _need_apart(x, indices, updates, **params)
    return _read(calls.mul(ct, x), indices, updates, **params)


def _extremal_jvp(beaten: Callable[..., Any]) -> RuleOf:
    """Derivative of a scatter of extrema: those who tie share equally, as in JAX."""

    def make(prim: Primitive) -> Callable[..., Any]:
        def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
            x, indices, updates = primals
            dx, _, du = tangents
            out = bind(prim, x, indices, updates, **params)
            if is_zero(dx) and is_zero(du):
                return out, Zero(out.aval)
            zero, one = const(x, 0), const(x, 1)
            lost = beaten(x, out)
            won = eq(updates, _read(out, indices, updates, **params))
            ties = _add_to(select(lost, zero, one), indices, select(won, one, zero), **params)
            share = div(full(x.aval, 1), ties)
            shares = _read(share, indices, updates, **params)
            kept = select(lost, zero, calls.mul(instantiate(dx), share))
            won_by = select(won, calls.mul(instantiate(du), shares), zero)
            return out, _add_to(kept, indices, won_by, **params)

        return jvp

    return RuleOf(make)


def _sum_jvp(prim: Primitive) -> Callable[..., Any]:
    """Derivative of a scatter linear in operand and updates, where no updates leave the former."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        dx, _, du = tangents
        out = bind(prim, *primals, **params)
        return out, dx if is_zero(du) else bind(prim, instantiate(dx), primals[1], du, **params)

    return jvp


_SUM = RuleOf(_sum_jvp)

scatter_add_p = _variant(
    "scatter-add",
    add,
    np.add,
    _SUM,
    transposed_each(
        lambda ct, *xs, **params: ct, None, lambda ct, x, *at, **p: _read(ct, *at, **p)
    ),
)
scatter_sub_p = _variant(
    "scatter-sub",
    sub,
    np.subtract,
    _SUM,
    transposed_each(
        lambda ct, *xs, **p: ct, None, lambda ct, x, *at, **p: calls.neg(_read(ct, *at, **p))
    ),
)
scatter_mul_p = _variant(
    "scatter-mul",
    mul,
    np.multiply,
    partials(lambda g, out, x, *at, **p: bind(scatter_mul_p, g, *at, **p), None, _factor_tangent),
    transposed_each(
        lambda ct, x, *at, **p: bind(scatter_mul_p, ct, *at, **p), None, _factor_cotangent
    ),
)
scatter_min_p = _variant("scatter-min", min, np.minimum, _extremal_jvp(gt))
scatter_max_p = _variant("scatter-max", max, np.maximum, _extremal_jvp(lt))


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
    how = None if update_jaxpr is None else apply_on_arrays(update_jaxpr)
    return scatter_eval(
        x, indices, updates, windows=windows, mode=mode, ufunc=how, unique=unique_indices
    )


def _known_set(
    x: ShapedArray,
    indices: ShapedArray,
    updates: ShapedArray,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    update_jaxpr: ClosedGraph | None,
    **params: Any,
) -> Callable[..., np.ndarray] | None:
    """Return what replaces whole rows, columns or elements, where all are inside, as `gather`'s."""
    windows = _windows(x.shape, indices.shape, updates.shape, dimension_numbers)
    if update_jaxpr is not None or windows.rows is None or indices.dtype.kind != "i":
        return None
    if not (x.size and updates.size):
        return None
    order, axes = windows.rows
    back = tuple(np.argsort(axes).tolist())
    known = {"dimension_numbers": dimension_numbers, "update_jaxpr": update_jaxpr, **params}

    def put(x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        places = windows.places(indices)
        if places is None:
            return _eval(x, indices, updates, **known)
        out = x.copy()
        out.transpose(order)[places] = updates.transpose(back)
        return out

    return put


known_of[_eval] = _known_set


def _form(
    ins: Any,
    outs: Any,
    *,
    mode: GatherScatterMode,
    update_jaxpr: ClosedGraph | None,
    **params: Any,
) -> Update:
    combine = "{1}" if update_jaxpr is None else update_jaxpr
    return _scatter_form(ins, combine, mode, **params)


def _set_jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
    """Replacement, the last one counting, is linear in operand and updates together."""
    x, indices, updates = primals
    dx, _, du = tangents
    if params["update_jaxpr"] is not None:
        raise MissingRuleError(
            "jvp",
            "scatter_apply",
            "its function is applied again where places repeat. Gather the elements, apply it to "
            "them, and set them: x.at[idx].set(func(x[idx])).",
        )
    out = bind(scatter_p, x, indices, updates, **params)
    if is_zero(dx) and is_zero(du):
        return out, Zero(out.aval)
    return out, bind(scatter_p, instantiate(dx), indices, instantiate(du), **params)


def _last(x: Any, indices: Any, updates: Any, **params: Any) -> Array:
    """Return which elements of the updates are those that stay."""
    windows = _windows(x.shape, indices.shape, updates.shape, params["dimension_numbers"])
    number = reshape(iota(np.int32, prod(windows.batch)), windows.batch)
    number = broadcast_in_dim(number, updates.shape, windows.batch_dims)
    written = bind(
        scatter_p, full(ShapedArray(x.shape, number.dtype), 0), indices, number, **params
    )
    return eq(_read(written, indices, updates, **params), number)


def _set_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    dx = du = None
    if is_undefined(x):
        dx = bind(scatter_p, ct, indices, full(updates.aval, 0), **params)
    if is_undefined(updates):
        du = _read(ct, indices, updates, **params)
        if not _apart(x, indices, updates, **params):
            du = select(_last(x, indices, updates, **params), du, const(ct, 0))
    return [dx, None, du]


scatter_p = register(
    Primitive(
        "scatter",
        aval=_aval,
        eval=_eval,
        form=_form,
        jvp=_set_jvp,
        transpose=_set_transpose,
        batch=_BATCH,
    )
)


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
            combiner(face, aval_of(operand).dtype),
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
    variant = cast("Face", scatter_variant)
    variant.primitive = prim
    return variant


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
