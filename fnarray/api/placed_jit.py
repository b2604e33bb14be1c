"""Arguments and results of compiled functions: where `jit` is told they are, or given up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..control.signature import argument_paths, fun_text
from ..core import tree
from ..core.array import ArrayElsewhere, ArrayImpl
from ..core.source import user_source
from ..core.trace import Tracer
from ..ops.kit.canonical import as_array
from ..runtime.spec import NamedSharding, Sharding, block_shape, place_of
from .resharding import is_where, moved, shardings_for

__all__ = ["brought", "given_up", "sent"]


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
) -> None:
    """Delete donated arguments: as many as there are results of their shape and dtype.

    So does whoever computes a result where an argument lies, and it is what programs expect. Their
    memory is not computed in: another array may look into it.
    """
    given = [args[k] for k in nums if -len(args) <= k < len(args)]
    given += [kwargs[name] for name in names if name in kwargs]
    results = tree.leaves(out)
    kept = set(map(id, results))
    room = Counter((x.shape, x.dtype) for x in results if isinstance(x, ArrayImpl | ArrayElsewhere))
    for x in tree.leaves(given):
        if not isinstance(x, ArrayImpl | ArrayElsewhere) or id(x) in kept or x.is_deleted():
            continue
        kind = x.shape, x.dtype
        if room[kind]:
            room[kind] -= 1
            x.delete()
