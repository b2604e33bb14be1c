"""What collectives share: names, groups, and rows of batches by number."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.array import ArrayImpl
from ..core.avals import ShapedArray
from ..core.axes import axis_env
from ..core.forms import Library
from ..core.forms import on_host as hosted
from ..core.source import user_source
from ._windows import GatherDimensionNumbers
from .gather import GatherScatterMode, gather
from .kit.calls import reshape

AxisName = Hashable | Sequence[Hashable]
Names = tuple[Hashable, ...]
Groups = tuple[tuple[int, ...], ...] | None


def bound_names(what: str, axis_name: AxisName) -> Names:
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


def size_of(names: Names) -> int:
    bound = dict(reversed(axis_env()))  # the innermost of a name counts
    return prod(bound[name] for name in names)


def canonical_groups(what: str, names: Names, groups: Any) -> Groups:
    """Return ``axis_index_groups`` as tuples; raise `ValueError` unless they part the axis."""
    if groups is None:
        return None
    if len(names) != 1:
        raise ValueError(f"lax.{what}: axis_index_groups need exactly one axis name, got {names}.")
    out = tuple(tuple(map(operator.index, group)) for group in groups)
    if sorted(k for group in out for k in group) != list(range(size_of(names))):
        raise ValueError(
            f"lax.{what}: axis_index_groups must cover all indices of the axis of size "
            f"{size_of(names)} exactly once, got {groups}."
        )
    return out


def members(names: Names, groups: Groups) -> int:
    """Return how many examples exchange values with each other."""
    if groups is None:
        return size_of(names)
    if len({len(group) for group in groups}) != 1:
        raise ValueError(f"axis_index_groups must be of one size here, got {groups}.")
    return len(groups[0])


def on_host(ins: Any, outs: Any, **params: Any) -> Library:
    return _EXCHANGE


def one_name(params: dict[str, Any]) -> dict[str, Any]:
    """Return params as they print: one name stands alone."""
    names = params["axis_name"]
    return {**params, "axis_name": names[0] if len(names) == 1 else names}


#: Shards meet in the host's memory.
_EXCHANGE = hosted("exchange")


def rest_of(names: Names, name: Hashable) -> Names:
    """Return the names but one."""
    return tuple(n for n in names if n != name)


def chosen_rows(x: Any, numbers: Sequence[int] | np.ndarray) -> Any:
    """Return the rows of an array with these numbers, in this order."""
    order = np.asarray(numbers, np.int32)
    if np.array_equal(order, np.arange(x.shape[0])):
        return x
    indices = ArrayImpl(order[:, None].copy(), ShapedArray((len(order), 1), np.int32))
    return gather(
        x,
        indices,
        GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,)),
        (1, *x.shape[1:]),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def grouped(x: Any, groups: Groups) -> Any:
    """Return rows by groups, of one size: the first axis counts groups, the second members."""
    assert groups is not None
    rows = chosen_rows(x, [k for group in groups for k in group])
    return reshape(rows, (len(groups), len(groups[0]), *x.shape[1:]))
