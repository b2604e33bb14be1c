"""Arguments and results of compiled functions: where `jit` is told they are, or given up."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ..control.signature import StaticSpec, argument_paths, fun_text
from ..control.tracing import Traced
from ..core import tree
from ..core.array import ArrayImpl, Deletable
from ..core.avals import ShapedArray
from ..core.graph import Graph, Var
from ..core.source import user_source
from ..core.trace import Tracer
from ..ops.kit.canonical import as_array
from ..runtime.spec import NamedSharding, Sharding, block_shape, place_of
from .resharding import is_where, moved, shardings_for

__all__ = [
    "brought", "donated_leaves", "given_up", "given_up_for", "made_for", "sent", "warn_of_unusable",
]  # fmt: skip


def brought(
    fun: Callable[..., Any], args: tuple, kwargs: dict[str, Any], nums: Sequence[int], ins: Any
) -> tuple:
    """Return a function's arguments where ``in_shardings`` say; ``nums`` are static ones."""
    name = fun_text(fun)
    if kwargs:
        raise ValueError(
            f"jit: arguments given by name are not supported where in_shardings is specified, got "
            f"{sorted(kwargs)} for {name}, at {user_source()}. Give them by position."
        )
    free = [k for k in range(len(args)) if k not in nums and k - len(args) not in nums]
    dynamic = tuple(args[k] for k in free)
    if isinstance(ins, tuple | list) and not is_where(ins) and len(ins) != len(dynamic):
        raise ValueError(
            f"jit: in_shardings must be a tree prefix of the positional arguments, one for each of "
            f"{len(dynamic)} arguments of {name}, got {len(ins)}, at {user_source()}."
        )
    ins = tuple(ins) if isinstance(ins, list) else ins
    wanted = shardings_for("jit in_shardings", ins, dynamic, RuntimeError)
    leaves, spec = tree.flatten_spec(dynamic)
    paths = argument_paths(fun, args, {})
    done = [
        _there(x, where, paths[k] if len(paths) == len(leaves) else f"{k}", name)
        for k, (x, where) in enumerate(zip(leaves, wanted, strict=True))
    ]
    out = list(args)
    for k, value in zip(free, spec.unflatten(done), strict=True):
        out[k] = value
    return tuple(out)


def sent(fun: Callable[..., Any], out: Any, wanted: Any) -> Any:
    """Return a function's results where ``out_shardings`` say."""
    leaves, spec = tree.flatten_spec(out)
    what = f"jit: a result of {fun_text(fun)} and its out_shardings"
    places = shardings_for("jit out_shardings", wanted, out, RuntimeError)
    return spec.unflatten(
        [
            x if where is None else moved(x, where, what)
            for x, where in zip(leaves, places, strict=True)
        ]
    )


def _there(x: Any, where: Any, path: str, fun: str) -> Any:
    """Return an argument where it is asked for; refuse one that is said to be elsewhere."""
    if where is None:
        return x
    what = f"jit: in_shardings of the argument {path} of {fun}"
    x = as_array(x)
    if isinstance(where, NamedSharding):
        block_shape(x.shape, where.mesh, where.spec, what)
    has: Any = None
    if (placement := getattr(x, "placement", None)) is not None:
        has = placement
        same = isinstance(where, Sharding) and where.is_equivalent_to(has, x.ndim)
    elif isinstance(x, Tracer) and any(x.aval.cuts):
        has = x.aval.sharding
        same = place_of(where, x.ndim) is x.aval.update(place=x.aval.place).place
    else:
        same = True
    if not same:
        raise ValueError(
            f"{what}: Sharding passed to jit does not match the sharding on the respective arg, at "
            f"{user_source()}. Got jit sharding: {where}, arg sharding: {has} for arg type: "
            f"{x.aval.str_short()}. Use fnarray.device_put, or leave in_shardings out."
        )
    return moved(x, where, what) if not isinstance(x, Tracer) or not any(x.aval.cuts) else x


def given_up(
    args: tuple, kwargs: dict[str, Any], nums: Sequence[int], names: Sequence[str], out: Any
) -> list[Any]:
    """Delete donated arguments: as many as there are results of their shape and dtype, or size.

    Returns those that are like no result. Which are deleted is what JAX deletes.

    So does whoever computes a result where an argument lies, and it is what programs expect. Their
    memory is not computed in: another array may look into it.
    """
    given = [args[k] for k in nums if -len(args) <= k < len(args)]
    given += [kwargs[name] for name in names if name in kwargs]
    if type(out) is ArrayImpl and [type(x) for x in given] == [ArrayImpl]:  # one for one
        (x,) = given
        if x is not out and x.shape == out.shape and x.dtype == out.dtype:
            x.delete()
            return []
    results = tree.leaves(out)
    kept = set(map(id, results))
    results = [x for x in results if isinstance(x, Deletable)]
    left = [x for x in tree.leaves(given) if isinstance(x, Deletable)]
    left = [x for x in left if id(x) not in kept and not x.is_deleted()]
    found = given_up_for([x.aval for x in left], [x.aval for x in results])
    for k in found:
        left[k].delete()
    return [x for k, x in enumerate(left) if k not in found]


def donated_leaves(
    args: tuple, kwargs: dict[str, Any], statics: StaticSpec, nums: Sequence[int], names: Any
) -> tuple[int, ...]:
    """Return which leaves of the traced arguments `given_up` would delete, static ones not counted.

    Positions are counted among all arguments, as ``donate_argnums`` are, and leaves among those
    that are traced.
    """
    given = [False] * len(args)
    for k in nums:
        if -len(args) <= k < len(args):
            given[k] = True
    marks = statics.split(tuple(given), {})[0]
    rows, named, _ = statics.split(args, kwargs)
    told = [tree.map(lambda _, mark=mark: mark, row) for row, mark in zip(rows, marks, strict=True)]
    by_name = {k: tree.map(lambda _, mark=k in names: mark, v) for k, v in named.items()}
    return tuple(i for i, mark in enumerate(tree.leaves((told, by_name))) if mark)


def given_up_for(given: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> dict[int, int]:
    """Return for which result each donated aval is given up: numbers of both."""
    return dict(_given_up_for(tuple(given), tuple(results)))


@lru_cache(1024)
def _given_up_for(
    given: tuple[ShapedArray, ...], results: tuple[ShapedArray, ...]
) -> dict[int, int]:
    found: dict[int, int] = {}
    for like in (lambda x: (x.shape, x.dtype), lambda x: x.size * x.dtype.itemsize):
        taken, room = set(found.values()), dict[Any, list[int]]()
        for j in reversed(range(len(results))):
            if j not in taken:
                room.setdefault(like(results[j]), []).append(j)
        for k, x in enumerate(given):
            if k not in found and (same := room.get(like(x))):
                found[k] = same.pop()
        if len(found) == len(given):
            break
    return found


def warn_of_unusable(fun: Any, graph: Graph, leaves: Sequence[Any], left: Sequence[Any]) -> None:
    """Warn of donated arguments that stay, but of those that the function does not use."""
    read = {v for eqn in graph.eqns for v in eqn.invars if isinstance(v, Var)} | {*graph.outvars}
    own = graph.invars[len(graph.invars) - len(leaves) :]  # after arrays that it closes over
    used = {id(x) for x, v in zip(leaves, own, strict=True) if v in read}
    kinds = [f"{x.dtype}[{','.join(map(str, x.shape))}]" for x in left if id(x) in used]
    if kinds:
        warnings.warn(
            f"Some donated buffers were not usable: {', '.join(kinds)}, given to {fun_text(fun)}, "
            f"at {user_source()}. No result has their size, so that they stay. Leave "
            "them out of donate_argnums.",
            stacklevel=3,
        )


def made_for(where: Any, fun: Any, t: Traced, make: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls a program where the host's memory is not.

    Parameters
    ----------
    where : Device or Platform
    make : callable
        ``make(graph, consts, out_spec)`` gives the call.

    Raises
    ------
    NotImplementedError
        The function takes Refs.
    """
    if t.written_refs is not None:
        raise NotImplementedError(
            f"jit: {fun_text(fun)} takes Refs, which lie in the host's memory, and is to run on "
            f"{where}. Pass their values, and return the new ones."
        )
    return make(t.closed, t.consts, t.out_spec)
