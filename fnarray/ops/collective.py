"""Collectives: operations between the examples of a mapped axis, by the axis' name.

Under ``vmap`` the examples are rows of one array, and a collective is array arithmetic on them.
Under ``pmap`` and ``shard_map`` each is a program of its own: they meet (see ``threads.shards``),
and the last to come computes what all get.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..core import hooks, tree
from ..core.apart import another
from ..core.array import Array
from ..core.avals import ShapedArray
from ..core.axes import checked_axes
from ..core.primitive import Missing, Primitive
from ..core.source import user_source
from ..core.trace import bind
from ..threads import shards
from ..threads.patterns import Fold
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
    rest_of,
    size_of,
)
from .kit.calls import (
    add,
    concatenate,
    convert,
    div,
    iota,
    mul,
    reduce_max,
    reduce_min,
    reduce_sum,
)
from .kit.canonical import as_array, canonical_axis
from .kit.registry import register
from .kit.rules import LINEAR, spread

__all__ = [
    "axis_index",
    "axis_size",
    "pcast",
    "pmax",
    "pmean",
    "pmin",
    "psum",
    "pvary",
]


def axis_size(axis_name: AxisName) -> int:
    """Return the size of a mapped axis, or the product of several.

    Raises
    ------
    NameError
        No such axis is bound.
    """
    return size_of(bound_names("axis_size", axis_name))


# ---- reductions ----------------------------------------------------------------------------------


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
    pattern = Fold(ufunc)

    def evaluate(x: np.ndarray, *, axis_name: Names, axis_index_groups: Groups) -> np.ndarray:
        what = name, axis_name, x.shape
        return np.array(shards.meet(axis_name, axis_index_groups, what, x, pattern), x.dtype)

    def collective(axis: Any, xs: Any, batched: Any, *, axis_name: Names, axis_index_groups: Any):
        (x,) = xs
        rest = rest_of(axis_name, axis.name)
        if axis_index_groups is not None:
            x = x if batched[0] else spread(x, axis)
            if len({len(g) for g in axis_index_groups}) == 1:
                done = reduce(grouped(x, axis_index_groups), 1)
            else:
                parts = [reduce(chosen_rows(x, g), 0) for g in axis_index_groups]
                done = concatenate([spread(p, 1) for p in parts], 0)
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
            form=on_host,
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


def _psum_transpose(ct: Any, x: Any, *, axis_name: Names, axis_index_groups: Groups) -> Any:
    """Where types say what varies, a sum is the same for all, and so is its cotangent."""
    if x.aval.place is None or axis_index_groups is not None:
        return bind(psum_p, ct, axis_name=axis_name, axis_index_groups=axis_index_groups)
    return hooks.placed_as(ct, x.aval.of_cotangents())


psum_p = _reducing(
    "psum",
    np.add,
    lambda x, axis: reduce_sum(x, (axis,)),
    mul,
    jvp=LINEAR,
    transpose=lambda ct, x, **params: [_psum_transpose(ct, x, **params)],
)
_NO_JVP = Missing("JAX has none. Gather the values with all_gather, and reduce those.")
_NOT_LINEAR = Missing("it is not linear")
pmax_p = _reducing(
    "pmax",
    np.maximum,
    lambda x, axis: reduce_max(x, (axis,)),
    lambda x, n: x,
    jvp=_NO_JVP,
    transpose=_NOT_LINEAR,
)
pmin_p = _reducing(
    "pmin",
    np.minimum,
    lambda x, axis: reduce_min(x, (axis,)),
    lambda x, n: x,
    jvp=_NO_JVP,
    transpose=_NOT_LINEAR,
)


def _reduced(
    prim: Primitive, local: Callable[..., Any], x: Any, axis_name: AxisName, groups: Any
) -> Any:
    names = bound_names(prim.name, axis_name)
    groups = canonical_groups(prim.name, names, groups)
    along = tuple(n for n in names if not isinstance(n, int))

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        if prim is psum_p and leaf.dtype == np.bool_:
            leaf = convert(leaf, np.dtype(np.int32))
        axes = tuple(canonical_axis(prim.name, n, leaf.ndim) for n in names if isinstance(n, int))
        if axes:
            leaf = local(leaf, sorted(axes))
        return bind(prim, leaf, axis_name=along, axis_index_groups=groups) if along else leaf

    out = tree.map(one, x)
    return out if prim is psum_p else tree.map(another, out)


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
        names = bound_names("psum", axis_name)
        if not any(isinstance(n, int) for n in names):
            return tree.map(lambda v: v * size_of(names), x)
    return _reduced(psum_p, reduce_sum, x, axis_name, axis_index_groups)


_NUMBERS = (int, float, complex)


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """Mean over one or several mapped axes; parameters as `psum`."""
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    names = bound_names("pmean", axis_name)
    along = tuple(n for n in names if not isinstance(n, int))
    count = members(along, canonical_groups("pmean", names, axis_index_groups)) if along else 1

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
        value = convert(value, float_type)
    return div(value, n)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """Maximum over one or several mapped axes; parameters as `psum`."""
    return _reduced(pmax_p, reduce_max, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """Minimum over one or several mapped axes; parameters as `psum`."""
    return _reduced(pmin_p, reduce_min, x, axis_name, axis_index_groups)


# ---- axis_index ----------------------------------------------------------------------------------

_INDEX = ShapedArray((), np.int32)


def _index_collective(axis: Any, xs: Any, batched: Any, *, axis_name: Names) -> Any:
    return iota((int(axis),), 0), True


axis_index_p = register(
    Primitive(
        "axis_index",
        aval=lambda *, axis_name: _INDEX,
        eval=lambda *, axis_name: np.asarray(shards.position(axis_name)[0], np.int32),
        form=on_host,
        jvp=Missing("it has no operands"),
        transpose=_NOT_LINEAR,
        batch=Missing("it has no operands"),
        collective=_index_collective,
        print_params=one_name,
    )
)


def axis_index(axis_name: AxisName) -> Array:
    """Return the number of the example along a mapped axis, int32; of several, the last fastest.

    Raises
    ------
    NameError
        No such axis is bound.
    """
    names = bound_names("axis_index", axis_name)
    total: Any = None
    for name in names:
        index = bind(axis_index_p, axis_name=(name,))
        if name in checked_axes():
            index = hooks.varied(index, (name,))
        if total is not None:
            index = add(mul(total, size_of((name,))), index)
        total = index
    return total


# ---- types ---------------------------------------------------------------------------------------


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """Return ``x`` as a value of another type along axes, at no cost.

    Parameters
    ----------
    x : pytree of arrays
    axis_name : hashable, or tuple of them
        Manual axes, of a `shard_map` around.
    to : {"varying", "unreduced", "reduced"}
        What is the same on all devices can become one that varies, and one that is reduced, whose
        cotangents are partial sums; what is reduced one that varies; and what varies partial sums.

    Raises
    ------
    ValueError
        For other changes, such as of what varies to what does; or ``to`` is something else.
    NameError
        No such axis is bound.
    """
    names = bound_names("pcast", axis_name)
    if to not in ("varying", "unreduced", "reduced"):
        raise ValueError(
            f"lax.pcast: Got unexpected `to` value {to!r}, at {user_source()}. It can be "
            "'varying', 'unreduced' or 'reduced'."
        )
    checked = [n for n in names if n in checked_axes()]

    def one(leaf: Any) -> Any:
        leaf = as_array(leaf)
        if not checked:
            return leaf
        kinds = {hooks.kind_along(leaf.aval, n) for n in checked}
        if len(kinds) > 1 or (*kinds, to) not in _CASTS:
            raise ValueError(
                f"lax.pcast: Unsupported pcast from={'/'.join(sorted(kinds))}, {to=}, at "
                f"{user_source()}: the value is {leaf.aval.str_short()}, and the axes {checked}. "
                "Name those along which it is of one kind; use lax.psum for one that is unreduced."
            )
        return hooks.cast(leaf, checked, to)

    return tree.map(one, x)


_CASTS = (
    ("invarying", "varying"),
    ("invarying", "reduced"),
    ("reduced", "varying"),
    ("varying", "unreduced"),
)


def pvary(x: Any, axis_name: AxisName) -> Any:
    """Return ``x`` as a value that may differ along axes; those along which it does are skipped."""
    names = bound_names("pvary", axis_name)
    checked = [n for n in names if n in checked_axes()]
    return tree.map(lambda v: hooks.varied(as_array(v), checked), x) if checked else x
