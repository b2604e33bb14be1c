"""Collectives that exchange parts: gather, scatter, all-to-all, permutations."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core import tree
from ..core.avals import ShapedArray
from ..core.axes import checked_axes
from ..core.primitive import Primitive
from ..core.source import user_source
from ..core.trace import bind
from ..threads import shards
from ..threads.patterns import Fold, Route
from ._collective_rules import (
    AxisName,
    Groups,
    Names,
    bound_names,
    canonical_groups,
    chosen_rows,
    grouped,
    members,
    on_host,
    one_name,
    size_of,
)
from .kit import calls
from .kit.calls import moveaxis, pad, reduce_sum, reshape
from .kit.canonical import as_array, canonical_axis
from .kit.registry import register
from .kit.rules import LINEAR, one_more_axis, shifted, spread
from .sums_between import gathered_once, own_part

__all__ = [
    "all_gather",
    "all_to_all",
    "pbroadcast",
    "ppermute",
    "pshuffle",
    "psum_scatter",
    "pswapaxes",
]


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
    pattern = Route(lambda parts: join(parts, axis=all_gather_dimension))
    return np.array(shards.meet(axis_name, axis_index_groups, what, x, pattern))


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


def _gather_transpose(ct: Any, x: Any, *, all_gather_dimension: int, **params: Any) -> list[Any]:
    return [bind(reduce_scatter_p, ct, scatter_dimension=all_gather_dimension, **params)]


all_gather_p = register(
    Primitive(
        "all_gather",
        aval=_gather_aval,
        eval=_gather_eval,
        form=on_host,
        jvp=LINEAR,
        transpose=_gather_transpose,
        batch=one_more_axis(all_gather_dimension=shifted),
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
    to : {"varying", "reduced"}
        Type of the result in a `shard_map`: cotangents of one that is reduced are partial sums.

    Raises
    ------
    ValueError
        ``to`` is something else.
    """
    names = bound_names("all_gather", axis_name)
    groups = canonical_groups("all_gather", names, axis_index_groups)
    if to not in ("varying", "reduced"):
        raise ValueError(
            f"lax.all_gather: Got unexpected `to` value {to!r}, at {user_source()}. It can be "
            "'varying' or 'reduced'."
        )

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        if to == "reduced" and checked_axes() >= set(names):
            return gathered_once(leaf, names, axis, tiled)
        d = canonical_axis("all_gather", axis, leaf.ndim + (not tiled))
        for k, name in enumerate(reversed(names)):
            leaf = bind(
                all_gather_p,
                leaf,
                all_gather_dimension=d,
                axis_name=(name,),
                axis_index_groups=groups,
                axis_size=members((name,), groups),
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

    share = _share_of(axis_size, tiled)
    pattern = Route(
        Fold(np.add).folded, lambda v, source, target: share(v, scatter_dimension, target)
    )
    return np.array(shards.meet(axis_name, axis_index_groups, what, x, pattern), x.dtype, order="C")


def _share_of(count: int, tiled: bool) -> Callable[[np.ndarray, int, int], np.ndarray]:
    """Return what cuts out the share of one example: a range along an axis, or a row of it."""

    def share(x: np.ndarray, axis: int, k: int) -> np.ndarray:
        n = x.shape[axis] // count
        return x[(slice(None),) * axis + (slice(k * n, (k + 1) * n) if tiled else k,)]

    return share


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


def _scatter_transpose(ct: Any, x: Any, *, scatter_dimension: int, **params: Any) -> list[Any]:
    return [bind(all_gather_p, ct, all_gather_dimension=scatter_dimension, **params)]


reduce_scatter_p = register(
    Primitive(
        "reduce_scatter",
        aval=_scatter_aval,
        eval=_scatter_eval,
        form=on_host,
        jvp=LINEAR,
        transpose=_scatter_transpose,
        batch=one_more_axis(scatter_dimension=shifted),
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
    names = bound_names("psum_scatter", axis_name)
    groups = canonical_groups("psum_scatter", names, axis_index_groups)

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        d = canonical_axis("psum_scatter", scatter_dimension, leaf.ndim)
        if leaf.aval.sums[0] & set(names) and groups is None:
            return own_part(leaf, names, d, bool(tiled))
        if len(names) > 1 and not tiled:  # one axis for each name
            sizes = [size_of((n,)) for n in names]
            if leaf.shape[d] == prod(sizes):
                leaf = reshape(leaf, (*leaf.shape[:d], *sizes, *leaf.shape[d + 1 :]))
        for name in names:
            leaf = bind(
                reduce_scatter_p,
                leaf,
                axis_name=(name,),
                scatter_dimension=d,
                axis_index_groups=groups,
                axis_size=members((name,), groups),
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

    share, join = _share_of(axis_size, tiled), np.concatenate if tiled else np.stack
    pattern = Route(
        lambda parts: join(parts, axis=concat_axis),
        lambda v, source, target: share(v, split_axis, target),
    )
    return np.ascontiguousarray(shards.meet(axis_name, axis_index_groups, what, x, pattern))


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
        form=on_host,
        jvp=LINEAR,
        transpose=_exchange_transpose,
        batch=one_more_axis(split_axis=shifted, concat_axis=shifted),
        collective=_exchange_collective,
        print_params=lambda params: {k: v for k, v in one_name(params).items() if k != "axis_size"},
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
    names = bound_names("all_to_all", axis_name)
    if len(names) != 1:
        raise ValueError(f"lax.all_to_all takes one axis name, got {names}.")
    groups = canonical_groups("all_to_all", names, axis_index_groups)

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        return bind(
            all_to_all_p,
            leaf,
            axis_name=names,
            split_axis=canonical_axis("all_to_all", split_axis, leaf.ndim),
            concat_axis=canonical_axis("all_to_all", concat_axis, leaf.ndim),
            axis_index_groups=groups,
            axis_size=members(names, groups),
            tiled=bool(tiled),
        )

    return tree.map(one, x)


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange a mapped axis and an axis of the arrays, of the same size."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


# ---- ppermute ------------------------------------------------------------------------------------


def _permute_eval(x: np.ndarray, *, axis_name: Names, perm: tuple[tuple[int, int], ...]) -> Any:
    pairs = frozenset(perm)
    pattern = Route(
        lambda parts: next((p for p in parts if p is not None), np.zeros(x.shape, x.dtype)),
        lambda v, source, target: v,
        lambda source, target: (source, target) in pairs,
    )
    return np.array(shards.meet(axis_name, None, ("ppermute", axis_name, x.shape), x, pattern))


def _permute_collective(
    axis: Any, xs: Any, batched: Any, *, axis_name: Names, perm: tuple[tuple[int, int], ...]
) -> Any:
    x = xs[0] if batched[0] else spread(xs[0], axis)
    source = {target: k for k, target in perm}
    if len(source) < axis:  # nothing is sent to some: they read a row of zeros
        padding = ((0, 1, 0), *((0, 0, 0),) * (x.ndim - 1))
        x = pad(x, 0, padding)
    return chosen_rows(x, [source.get(k, int(axis)) for k in range(axis)]), True


ppermute_p = register(
    Primitive(
        "ppermute",
        aval=lambda x, **params: x,
        eval=_permute_eval,
        form=on_host,
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
    names = bound_names("ppermute", axis_name)
    if len(names) != 1:
        raise ValueError(f"lax.ppermute takes one axis name, got {names}.")
    pairs = tuple((operator.index(s), operator.index(t)) for s, t in perm)
    size = size_of(names)
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
    if sorted(perm) != list(range(size_of(bound_names("pshuffle", axis_name)))):
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
    count = size_of(bound_names("pbroadcast", axis_name))
    if not 0 <= operator.index(source) < count:
        raise ValueError(f"lax.pbroadcast: source must be below {count}, got {source}.")

    def one(leaf: Any) -> Any:
        rows = all_gather(leaf, axis_name)
        shape = rows.shape[1:]
        none = (0,) * len(shape)
        return reshape(calls.slice(rows, (source, *none), (source + 1, *shape)), shape)

    return tree.map(one, x)
