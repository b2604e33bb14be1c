"""Collectives: operations between the examples of a mapped axis, by the axis' name.

Under ``vmap`` the examples are rows of one array, and a collective is array arithmetic on them.
Under ``pmap`` and ``shard_map`` each is a program of its own: they meet (see ``core.shards``), and
the last to come computes what all get.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core import shards, tree
from ..core.array import Array, ArrayImpl
from ..core.avals import ShapedArray
from ..core.axes import axis_env
from ..core.forms import Call
from ..core.primitive import Missing, Primitive
from ..core.source import user_source
from ..core.trace import bind
from ._canonical import as_array, canonical_axis
from ._collective_rules import Groups, Names, chosen_rows, grouped, rest_of
from ._derive import LINEAR, moveaxis, op, reduce_sum, reshape, spread
from ._registry import register

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
    "pvary",
]

AxisName = Hashable | Sequence[Hashable]


# ---- names ---------------------------------------------------------------------------------------


def _names(what: str, axis_name: AxisName) -> Names:
    """Return names as a tuple; raise `NameError` for one that is not bound here."""
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    bound = dict(axis_env())
    for name in names:
        if not isinstance(name, int) and name not in bound:
            known = f"the axes bound here are {', '.join(map(str, bound))}" if bound else "none is"
            raise NameError(
                f"lax.{what}: unbound axis name: {name}, at {user_source()}; {known}. Call it in a "
                f"function mapped with axis_name={name!r}, by vmap, pmap or shard_map."
            )
    return names


def _size(names: Names) -> int:
    bound = dict(reversed(axis_env()))  # the innermost of a name counts
    return prod(bound[name] for name in names)


def _groups(what: str, names: Names, groups: Any) -> Groups:
    """Return ``axis_index_groups`` as tuples; raise `ValueError` unless they part the axis."""
    if groups is None:
        return None
    if len(names) != 1:
        raise ValueError(f"lax.{what}: axis_index_groups need exactly one axis name, got {names}.")
    out = tuple(tuple(map(operator.index, group)) for group in groups)
    if sorted(k for group in out for k in group) != list(range(_size(names))):
        raise ValueError(
            f"lax.{what}: axis_index_groups must cover all indices of the axis of size "
            f"{_size(names)} exactly once, got {groups}."
        )
    return out


def _members(names: Names, groups: Groups) -> int:
    """Return how many examples exchange values with each other."""
    if groups is None:
        return _size(names)
    if len({len(group) for group in groups}) != 1:
        raise ValueError(f"axis_index_groups must be of one size here, got {groups}.")
    return len(groups[0])


def axis_size(axis_name: AxisName) -> int:
    """Return the size of a mapped axis, or the product of several.

    Raises
    ------
    NameError
        No such axis is bound.
    """
    return _size(_names("axis_size", axis_name))


def _host(ins: Any, outs: Any, **params: Any) -> Call:
    return Call(None)


def _shown(params: dict[str, Any]) -> dict[str, Any]:
    """Return params as they print: one name stands alone."""
    names = params["axis_name"]
    return {**params, "axis_name": names[0] if len(names) == 1 else names}


# ---- reductions ----------------------------------------------------------------------------------


def _fold(ufunc: Callable[..., Any]) -> Callable[[list[Any]], Sequence[Any]]:
    def combine(values: list[Any]) -> Sequence[Any]:
        total = values[0]
        for value in values[1:]:
            total = ufunc(total, value)
        return [total] * len(values)

    return combine


def _reducing(
    name: str,
    ufunc: Callable[..., Any],
    reduce: Callable[[Any, int], Any],
    repeat: Callable[[Any, int], Any],
    **rules: Any,
) -> Primitive:
    """Declare a reduction between examples.

    Parameters
    ----------
    reduce : callable
        Of an array along one axis.
    repeat : callable
        Of so many equal values.
    """
    combine = _fold(ufunc)

    def evaluate(x: np.ndarray, *, axis_name: Names, axis_index_groups: Groups) -> np.ndarray:
        what = name, axis_name, x.shape
        return np.array(shards.meet(axis_name, axis_index_groups, what, x, combine), x.dtype)

    def collective(axis: Any, xs: Any, batched: Any, *, axis_name: Names, axis_index_groups: Any):
        (x,) = xs
        rest = rest_of(axis_name, axis.name)
        if axis_index_groups is not None:
            x = x if batched[0] else spread(x, axis)
            if len({len(g) for g in axis_index_groups}) == 1:
                done = reduce(grouped(x, axis_index_groups), 1)
            else:
                parts = [reduce(chosen_rows(x, g), 0) for g in axis_index_groups]
                done = op("concatenate", *(spread(p, 1) for p in parts), dimension=0)
            group_of = [0] * int(axis)
            for g, members in enumerate(axis_index_groups):
                for k in members:
                    group_of[k] = g
            return chosen_rows(done, group_of), True
        if axis_name.count(axis.name) != 1:
            raise ValueError(f"lax.{name}: an axis is named twice in {axis_name}.")
        out = reduce(x, 0) if batched[0] else repeat(x, int(axis))
        if rest:
            out = bind(prim, out, axis_name=rest, axis_index_groups=None)
        return out, False

    def batch(size: int, xs: Any, batched: Any, **params: Any) -> Any:
        return bind(prim, xs[0], **params)

    prim = register(
        Primitive(
            name,
            aval=lambda x, **params: x,
            eval=evaluate,
            form=_host,
            batch=batch,
            collective=collective,
            print_params=lambda params: {
                "axes": params["axis_name"],
                "axis_index_groups": params["axis_index_groups"],
            },
            **rules,
        )
    )
    return prim


psum_p = _reducing(
    "psum",
    np.add,
    lambda x, axis: reduce_sum(x, (axis,)),
    lambda x, n: op("mul", x, ArrayImpl(np.asarray(n, x.dtype), x.aval.update(shape=()))),
    jvp=LINEAR,
    transpose=lambda ct, x, **params: [bind(psum_p, ct, **params)],
)
_NO_JVP = Missing("JAX has none. Gather the values with all_gather, and reduce those.")
_NOT_LINEAR = Missing("it is not linear")
pmax_p = _reducing(
    "pmax",
    np.maximum,
    lambda x, axis: op("reduce_max", x, axes=(axis,)),
    lambda x, n: x,
    jvp=_NO_JVP,
    transpose=_NOT_LINEAR,
)
pmin_p = _reducing(
    "pmin",
    np.minimum,
    lambda x, axis: op("reduce_min", x, axes=(axis,)),
    lambda x, n: x,
    jvp=_NO_JVP,
    transpose=_NOT_LINEAR,
)


def _reduced(prim: Primitive, local: str, x: Any, axis_name: AxisName, groups: Any) -> Any:
    names = _names(prim.name, axis_name)
    groups = _groups(prim.name, names, groups)
    along = tuple(n for n in names if not isinstance(n, int))

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        if prim is psum_p and leaf.dtype == np.bool_:
            leaf = op("convert_element_type", leaf, new_dtype=np.dtype(np.int32), weak_type=False)
        axes = tuple(canonical_axis(prim.name, n, leaf.ndim) for n in names if isinstance(n, int))
        if axes:
            leaf = op(local, leaf, axes=tuple(sorted(axes)))
        return bind(prim, leaf, axis_name=along, axis_index_groups=groups) if along else leaf

    return tree.map(one, x)


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """Sum over one or several mapped axes.

    Parameters
    ----------
    x : pytree of arrays
        Booleans count as int32. Python numbers give Python numbers: ``psum(1, name)`` is the
        number of examples.
    axis_name : hashable, or tuple of them
        Integers among them are axes of the arrays themselves.
    axis_index_groups : sequence of sequences of int, optional
        Sums are taken within these groups of examples; by default among all.

    Raises
    ------
    NameError
        No such axis is bound.
    """
    leaves = tree.leaves(x)
    if leaves and axis_index_groups is None and all(type(v) in _NUMBERS for v in leaves):
        names = _names("psum", axis_name)
        if not any(isinstance(n, int) for n in names):
            return tree.map(lambda v: v * _size(names), x)
    return _reduced(psum_p, "reduce_sum", x, axis_name, axis_index_groups)


_NUMBERS = (int, float, complex)


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """Mean over one or several mapped axes; parameters as `psum`."""
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    names = _names("pmean", axis_name)
    along = tuple(n for n in names if not isinstance(n, int))
    count = _members(along, _groups("pmean", names, axis_index_groups)) if along else 1

    def one(value: Any, leaf: Any) -> Any:
        n = count * prod(np.shape(leaf)[a] for a in names if isinstance(a, int))
        return _divided(value, n)

    return tree.map(one, total, x)


def _divided(value: Any, n: int) -> Any:
    if not isinstance(value, Array):
        return value / n
    dtype = np.dtype(value.dtype)
    if dtype.kind in "iub":
        float_type = np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)
        value = op("convert_element_type", value, new_dtype=float_type, weak_type=False)
    count = ArrayImpl(np.asarray(n, value.dtype), value.aval.update(shape=()))
    return op("div", value, count)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """Maximum over one or several mapped axes; parameters as `psum`."""
    return _reduced(pmax_p, "reduce_max", x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """Minimum over one or several mapped axes; parameters as `psum`."""
    return _reduced(pmin_p, "reduce_min", x, axis_name, axis_index_groups)


# ---- all_gather ----------------------------------------------------------------------------------


def _gather_aval(x: ShapedArray, *, all_gather_dimension: int, axis_size: int, tiled: bool, **_):
    d, shape = all_gather_dimension, x.shape
    if tiled:
        shape = (*shape[:d], shape[d] * axis_size, *shape[d + 1 :])
    else:
        shape = (*shape[:d], axis_size, *shape[d:])
    return x.update(shape=shape)


def _gather_eval(
    x: np.ndarray,
    *,
    all_gather_dimension: int,
    axis_name: Names,
    axis_index_groups: Groups,
    tiled: bool,
    axis_size: int,
) -> np.ndarray:
    join = np.concatenate if tiled else np.stack
    what = "all_gather", axis_name, x.shape, all_gather_dimension

    def combine(values: list[Any]) -> Sequence[Any]:
        return [join(values, axis=all_gather_dimension)] * len(values)

    return np.array(shards.meet(axis_name, axis_index_groups, what, x, combine))


def _gather_collective(
    axis: Any,
    xs: Any,
    batched: Any,
    *,
    all_gather_dimension: int,
    axis_index_groups: Groups,
    tiled: bool,
    **_: Any,
) -> Any:
    x, d = xs[0] if batched[0] else spread(xs[0], axis), all_gather_dimension
    if axis_index_groups is None:
        out = moveaxis(x, 0, d)
        first = 0
    else:
        group_of = [next(g for g in axis_index_groups if k in g) for k in range(axis)]
        flat = [k for g in group_of for k in g]
        n = len(axis_index_groups[0])
        out = moveaxis(reshape(chosen_rows(x, flat), (int(axis), n, *x.shape[1:])), 1, d + 1)
        first = 1
    if tiled:
        s, at = out.shape, d + first
        out = reshape(out, (*s[:at], s[at] * s[at + 1], *s[at + 2 :]))
    return out, bool(first)


def _gather_transpose(
    ct: Any,
    x: Any,
    *,
    all_gather_dimension: int,
    axis_name: Names,
    axis_index_groups: Groups,
    axis_size: int,
    tiled: bool,
) -> list[Any]:
    return [
        bind(
            reduce_scatter_p,
            ct,
            axis_name=axis_name,
            scatter_dimension=all_gather_dimension,
            axis_index_groups=axis_index_groups,
            axis_size=axis_size,
            tiled=tiled,
        )
    ]


def _one_dimension_on(*which: str) -> Callable[..., Any]:
    """Batching along another axis: the dimensions that the params name are one further."""

    def batch_of(prim: Callable[[], Primitive]) -> Callable[..., Any]:
        def batch(size: int, xs: Any, batched: Any, **params: Any) -> Any:
            return bind(prim(), xs[0], **{**params, **{p: params[p] + 1 for p in which}})

        return batch

    return batch_of


all_gather_p = register(
    Primitive(
        "all_gather",
        aval=_gather_aval,
        eval=_gather_eval,
        form=_host,
        jvp=LINEAR,
        transpose=_gather_transpose,
        batch=_one_dimension_on("all_gather_dimension")(lambda: all_gather_p),
        collective=_gather_collective,
    )
)


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Gather the values of all examples.

    Parameters
    ----------
    x : pytree of arrays
    axis_name, axis_index_groups
        As in `psum`. Of several axes the last runs fastest.
    axis : int
        Of the result, along which the examples are laid out.
    tiled : bool
        Whether they are joined along that axis, which the arrays then have, in place of stacked.
    to : str
        Accepted for compatibility.
    """
    names = _names("all_gather", axis_name)
    groups = _groups("all_gather", names, axis_index_groups)

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        d = canonical_axis("all_gather", axis, leaf.ndim + (not tiled))
        for k, name in enumerate(reversed(names)):
            leaf = bind(
                all_gather_p,
                leaf,
                all_gather_dimension=d,
                axis_name=(name,),
                axis_index_groups=groups,
                axis_size=_members((name,), groups),
                tiled=tiled or k > 0,
            )
        return leaf

    return tree.map(one, x)


# ---- reduce_scatter ------------------------------------------------------------------------------


def _scatter_aval(
    x: ShapedArray, *, scatter_dimension: int, axis_size: int, tiled: bool, **_: Any
) -> ShapedArray:
    d, shape = scatter_dimension, x.shape
    if tiled and shape[d] % axis_size:
        raise ValueError(
            f"lax.psum_scatter: tiled, dimension {d} of size {shape[d]} must be a multiple of the "
            f"{axis_size} examples."
        )
    if not tiled and shape[d] != axis_size:
        raise ValueError(
            f"lax.psum_scatter: dimension {d} must have the size {axis_size} of the mapped axis, "
            f"got shape {shape}. Pass tiled=True to share a larger one out."
        )
    own = (shape[d] // axis_size,) if tiled else ()
    return x.update(shape=(*shape[:d], *own, *shape[d + 1 :]))


def _scatter_eval(
    x: np.ndarray,
    *,
    axis_name: Names,
    scatter_dimension: int,
    axis_index_groups: Groups,
    axis_size: int,
    tiled: bool,
) -> np.ndarray:
    what = "psum_scatter", axis_name, x.shape, scatter_dimension

    def combine(values: list[Any]) -> Sequence[Any]:
        total = _fold(np.add)(values)[0]
        if tiled:
            return np.split(total, axis_size, scatter_dimension)
        return list(np.moveaxis(total, scatter_dimension, 0))

    return np.array(shards.meet(axis_name, axis_index_groups, what, x, combine), x.dtype, order="C")


def _scatter_collective(
    axis: Any,
    xs: Any,
    batched: Any,
    *,
    scatter_dimension: int,
    axis_index_groups: Groups,
    axis_size: int,
    tiled: bool,
    **_: Any,
) -> Any:
    x, d = xs[0] if batched[0] else spread(xs[0], axis), scatter_dimension
    _scatter_aval(
        x.aval.update(shape=x.shape[1:]), scatter_dimension=d, axis_size=axis_size, tiled=tiled
    )
    groups = 0 if axis_index_groups is None else 1
    total = reduce_sum(grouped(x, axis_index_groups) if groups else x, (groups,))
    d += groups
    if tiled:
        s = total.shape
        total = reshape(total, (*s[:d], axis_size, s[d] // axis_size, *s[d + 1 :]))
    out = moveaxis(total, d, groups)
    if groups:
        out = reshape(out, (int(axis), *out.shape[2:]))
        out = chosen_rows(out, np.argsort([k for g in axis_index_groups or () for k in g]))
    return out, True


def _scatter_transpose(
    ct: Any,
    x: Any,
    *,
    axis_name: Names,
    scatter_dimension: int,
    axis_index_groups: Groups,
    axis_size: int,
    tiled: bool,
) -> list[Any]:
    return [
        bind(
            all_gather_p,
            ct,
            all_gather_dimension=scatter_dimension,
            axis_name=axis_name,
            axis_index_groups=axis_index_groups,
            axis_size=axis_size,
            tiled=tiled,
        )
    ]


reduce_scatter_p = register(
    Primitive(
        "reduce_scatter",
        aval=_scatter_aval,
        eval=_scatter_eval,
        form=_host,
        jvp=LINEAR,
        transpose=_scatter_transpose,
        batch=_one_dimension_on("scatter_dimension")(lambda: reduce_scatter_p),
        collective=_scatter_collective,
    )
)


def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Sum over a mapped axis, of which each example keeps its own part.

    Parameters
    ----------
    x : pytree of arrays
    axis_name, axis_index_groups
        As in `psum`.
    scatter_dimension : int
        Which is shared out: of the size of the mapped axis, and gone in the result; or, ``tiled``,
        of a multiple of it.
    tiled : bool
    """
    names = _names("psum_scatter", axis_name)
    groups = _groups("psum_scatter", names, axis_index_groups)

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        d = canonical_axis("psum_scatter", scatter_dimension, leaf.ndim)
        if len(names) > 1 and not tiled:  # one axis for each name
            sizes = [_size((n,)) for n in names]
            if leaf.shape[d] == prod(sizes):
                leaf = reshape(leaf, (*leaf.shape[:d], *sizes, *leaf.shape[d + 1 :]))
        for name in names:
            leaf = bind(
                reduce_scatter_p,
                leaf,
                axis_name=(name,),
                scatter_dimension=d,
                axis_index_groups=groups,
                axis_size=_members((name,), groups),
                tiled=bool(tiled),
            )
        return leaf

    return tree.map(one, x)


# ---- all_to_all ----------------------------------------------------------------------------------


def _exchange_aval(
    x: ShapedArray, *, split_axis: int, concat_axis: int, axis_size: int, tiled: bool, **_: Any
) -> ShapedArray:
    shape = list(x.shape)
    if tiled:
        if shape[split_axis] % axis_size:
            raise ValueError(
                f"lax.all_to_all: tiled, axis {split_axis} of shape {x.shape} must be a multiple "
                f"of the {axis_size} examples."
            )
        shape[split_axis] //= axis_size
        shape[concat_axis] *= axis_size
    else:
        if shape[split_axis] != axis_size:
            raise ValueError(
                "lax.all_to_all requires the size of the mapped axis to equal "
                f"x.shape[split_axis], but they are {axis_size} and {shape[split_axis]}. "
                "Pass tiled=True to share a larger axis out."
            )
        del shape[split_axis]
        shape.insert(concat_axis, axis_size)
    return x.update(shape=tuple(shape))


def _exchange_eval(
    x: np.ndarray,
    *,
    axis_name: Names,
    split_axis: int,
    concat_axis: int,
    axis_index_groups: Groups,
    axis_size: int,
    tiled: bool,
) -> np.ndarray:
    what = "all_to_all", axis_name, x.shape, split_axis, concat_axis

    def combine(values: list[Any]) -> Sequence[Any]:
        if tiled:
            parts = [np.split(v, axis_size, split_axis) for v in values]
            return [np.concatenate(column, concat_axis) for column in zip(*parts, strict=True)]
        rows = [np.moveaxis(v, split_axis, 0) for v in values]
        return [np.stack(column, concat_axis) for column in zip(*rows, strict=True)]

    return np.ascontiguousarray(shards.meet(axis_name, axis_index_groups, what, x, combine))


def _exchange_collective(
    axis: Any,
    xs: Any,
    batched: Any,
    *,
    split_axis: int,
    concat_axis: int,
    axis_index_groups: Groups,
    axis_size: int,
    tiled: bool,
    **_: Any,
) -> Any:
    x = xs[0] if batched[0] else spread(xs[0], axis)
    _exchange_aval(
        x.aval.update(shape=x.shape[1:]),
        split_axis=split_axis,
        concat_axis=concat_axis,
        axis_size=axis_size,
        tiled=tiled,
    )
    groups = 0 if axis_index_groups is None else 1
    if groups:
        x = grouped(x, axis_index_groups)
    # Axis `groups` counts the senders; the receivers are split off and put in front of it.
    split, concat = split_axis + groups + 1, concat_axis + groups + 1
    if tiled:
        s = x.shape
        x = reshape(x, (*s[:split], axis_size, s[split] // axis_size, *s[split + 1 :]))
    out = moveaxis(moveaxis(x, split, groups), groups + 1, concat)
    if tiled:
        s = out.shape
        out = reshape(out, (*s[:concat], s[concat] * s[concat + 1], *s[concat + 2 :]))
    if groups:
        out = reshape(out, (int(axis), *out.shape[2:]))
        out = chosen_rows(out, np.argsort([k for g in axis_index_groups or () for k in g]))
    return out, True


def _exchange_transpose(
    ct: Any, x: Any, *, split_axis: int, concat_axis: int, **params: Any
) -> list[Any]:
    return [bind(all_to_all_p, ct, split_axis=concat_axis, concat_axis=split_axis, **params)]


all_to_all_p = register(
    Primitive(
        "all_to_all",
        aval=_exchange_aval,
        eval=_exchange_eval,
        form=_host,
        jvp=LINEAR,
        transpose=_exchange_transpose,
        batch=_one_dimension_on("split_axis", "concat_axis")(lambda: all_to_all_p),
        collective=_exchange_collective,
        print_params=lambda params: {k: v for k, v in _shown(params).items() if k != "axis_size"},
    )
)


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Exchange parts: example ``j`` gets part ``j`` of every example.

    Parameters
    ----------
    x : pytree of arrays
    axis_name, axis_index_groups
        As in `psum`; one axis.
    split_axis : int
        Along which each array is cut: of the size of the mapped axis, and gone in the result; or,
        ``tiled``, of a multiple of it.
    concat_axis : int
        Of the result, along which the parts are stacked; or, ``tiled``, joined.
    tiled : bool
    """
    names = _names("all_to_all", axis_name)
    if len(names) != 1:
        raise ValueError(f"lax.all_to_all takes one axis name, got {names}.")
    groups = _groups("all_to_all", names, axis_index_groups)

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        return bind(
            all_to_all_p,
            leaf,
            axis_name=names,
            split_axis=canonical_axis("all_to_all", split_axis, leaf.ndim),
            concat_axis=canonical_axis("all_to_all", concat_axis, leaf.ndim),
            axis_index_groups=groups,
            axis_size=_members(names, groups),
            tiled=bool(tiled),
        )

    return tree.map(one, x)


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange a mapped axis and an axis of the arrays, of the same size."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


# ---- ppermute ------------------------------------------------------------------------------------


def _permute_eval(x: np.ndarray, *, axis_name: Names, perm: tuple[tuple[int, int], ...]) -> Any:
    def combine(values: list[Any]) -> Sequence[Any]:
        source = {target: k for k, target in perm}
        return [
            values[source[k]] if k in source else np.zeros(x.shape, x.dtype)
            for k in range(len(values))
        ]

    return np.array(shards.meet(axis_name, None, ("ppermute", axis_name, x.shape), x, combine))


def _permute_collective(
    axis: Any, xs: Any, batched: Any, *, axis_name: Names, perm: tuple[tuple[int, int], ...]
) -> Any:
    x = xs[0] if batched[0] else spread(xs[0], axis)
    source = {target: k for k, target in perm}
    if len(source) < axis:  # nothing is sent to some: they read a row of zeros
        zero = ArrayImpl(np.zeros((), x.dtype), ShapedArray((), x.dtype, x.aval.weak_type))
        padding = ((0, 1, 0), *((0, 0, 0),) * (x.ndim - 1))
        x = op("pad", x, zero, padding_config=padding)
    return chosen_rows(x, [source.get(k, int(axis)) for k in range(axis)]), True


ppermute_p = register(
    Primitive(
        "ppermute",
        aval=lambda x, **params: x,
        eval=_permute_eval,
        form=_host,
        jvp=LINEAR,
        transpose=lambda ct, x, *, axis_name, perm: [
            bind(ppermute_p, ct, axis_name=axis_name, perm=tuple((t, s) for s, t in perm))
        ],
        batch=lambda size, xs, batched, **params: bind(ppermute_p, xs[0], **params),
        collective=_permute_collective,
    )
)


def ppermute(x: Any, axis_name: AxisName, perm: Any) -> Any:
    """Send each example's value to another.

    Parameters
    ----------
    x : pytree of arrays
    axis_name : hashable
    perm : sequence of (int, int)
        Pairs of source and target. Examples that are no target get zeros.

    Raises
    ------
    ValueError
        A source or target is named twice, or does not exist.
    """
    names = _names("ppermute", axis_name)
    if len(names) != 1:
        raise ValueError(f"lax.ppermute takes one axis name, got {names}.")
    pairs = tuple((operator.index(s), operator.index(t)) for s, t in perm)
    size = _size(names)
    for ends in zip(*pairs, strict=True):
        if len(set(ends)) != len(ends) or not all(0 <= k < size for k in ends):
            raise ValueError(
                "lax.ppermute: sources and targets must be unique and on the axis of size "
                f"{size}, got perm {perm}."
            )
    return tree.map(lambda leaf: bind(ppermute_p, as_array(leaf), axis_name=names, perm=pairs), x)


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """Give example ``i`` the value of example ``perm[i]``.

    Raises
    ------
    ValueError
        ``perm`` is no permutation of the axis.
    """
    if sorted(perm) != list(range(axis_size(axis_name))):
        raise ValueError(f"lax.pshuffle: `perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """Give all examples the value of one.

    Parameters
    ----------
    x : pytree of arrays
    axis_name : hashable
    source : int
    """
    count = axis_size(axis_name)
    if not 0 <= operator.index(source) < count:
        raise ValueError(f"lax.pbroadcast: source must be below {count}, got {source}.")

    def one(leaf: Any) -> Any:
        rows = all_gather(leaf, axis_name)
        shape = rows.shape[1:]
        none = (0,) * len(shape)
        bounds = {"start_indices": (source, *none), "limit_indices": (source + 1, *shape)}
        return reshape(op("slice", rows, strides=None, **bounds), shape)

    return tree.map(one, x)


# ---- axis_index ----------------------------------------------------------------------------------

_INDEX = ShapedArray((), np.int32)


def _index_collective(axis: Any, xs: Any, batched: Any, *, axis_name: Names) -> Any:
    return op("iota", dtype=np.dtype(np.int32), shape=(int(axis),), dimension=0), True


axis_index_p = register(
    Primitive(
        "axis_index",
        aval=lambda *, axis_name: _INDEX,
        eval=lambda *, axis_name: np.asarray(shards.position(axis_name)[0], np.int32),
        form=_host,
        jvp=Missing("it has no operands"),
        transpose=_NOT_LINEAR,
        batch=Missing("it has no operands"),
        collective=_index_collective,
        print_params=_shown,
    )
)


def axis_index(axis_name: AxisName) -> Array:
    """Return the number of the example along a mapped axis, int32; of several, the last fastest.

    Raises
    ------
    NameError
        No such axis is bound.
    """
    names = _names("axis_index", axis_name)
    total: Any = None
    for name in names:
        index = bind(axis_index_p, axis_name=(name,))
        if total is not None:
            size = ArrayImpl(np.asarray(_size((name,)), np.int32), _INDEX)
            index = op("add", op("mul", total, size), index)
        total = index
    return total


# ---- types ---------------------------------------------------------------------------------------


def pvary(x: Any, axis_name: AxisName) -> Any:
    """Return ``x``: whether values differ between devices is no part of their types here."""
    _names("pvary", axis_name)
    return x


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """Return ``x``, as `pvary`."""
    _names("pcast", axis_name)
    return x
