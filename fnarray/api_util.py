"""Functions of trees made functions of leaves, named as in ``jax.api_util``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any

from .control.signature import argnums as argnums_of
from .core import tree
from .core.array import aval_of
from .core.avals import OverlayAval, ShapedArray, ShapeDtypeStruct
from .extend._graphs import DebugInfo, debug_info
from .extend.linear_util import Store, WrappedFun, transformation2, transformation_with_aux2
from .ops.kit.moves import Overlay

__all__ = [
    "DebugInfo",
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "infer_argnums_and_argnames",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]
__dir__ = __all__.copy


def _flat(fun: Callable[..., Any], store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    args, kwargs = in_tree.unflatten(leaves)
    found, store.value = tree.flatten(fun(*args, **kwargs))
    return found


def _flat_nokwargs(fun: Callable[..., Any], store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    found, store.value = tree.flatten(fun(*in_tree.unflatten(leaves)))
    return found


def flatten_fun(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Store]:
    """Return a function of leaves, and a thunk of its result's tree, once it has run.

    Parameters
    ----------
    fun : WrappedFun
    in_tree : treedef
        Of ``(args, kwargs)``.
    """
    return transformation_with_aux2(_flat, fun, in_tree)


def flatten_fun_nokwargs(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Store]:
    """Return a function of leaves, and a thunk of its result's tree; ``in_tree`` is of args."""
    return transformation_with_aux2(_flat_nokwargs, fun, in_tree)


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """Return a function of some arguments, the others fixed, and the values of those some."""
    nums = (dyn_argnums,) if isinstance(dyn_argnums, int) else dyn_argnums
    places = [index(i) % len(args) for i in nums]
    fixed = list(args)

    def call(fun: Callable[..., Any], *some: Any, **kwargs: Any) -> Any:
        whole = list(fixed)
        for place, x in zip(places, some, strict=True):
            whole[place] = x
        return fun(*whole, **kwargs)

    return transformation2(call, f), tuple(args[i] for i in places)


def shaped_abstractify(x: Any) -> ShapedArray | OverlayAval:
    """Return what tracing knows of a value, or of what stands for one."""
    if isinstance(x, ShapedArray | OverlayAval):
        return x
    if isinstance(x, Overlay):
        return x.kind
    if isinstance(x, ShapeDtypeStruct):
        return ShapedArray(x.shape, x.dtype, x.weak_type)
    return aval_of(x)


def flatten_axes(
    name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[Any]:
    """Return a leaf of ``axis_tree``, a prefix of a tree, for each leaf of the tree."""
    whole = treedef.unflatten([0] * treedef.num_leaves)
    try:
        return tree.broadcast_prefix(axis_tree, whole, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(f"{name}: {axis_tree!r} is no prefix of {treedef}: {error}") from None


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Say of each leaf of arguments if it is donated."""
    whole = in_tree.unflatten(list(range(in_tree.num_leaves)))
    args, kwargs = whole if kws else (whole, {})
    given = [(i in donate_argnums, x) for i, x in enumerate(args)]
    given += [(k in donate_argnames, kwargs[k]) for k in sorted(kwargs)]
    return tuple(flag for flag, x in given for _ in tree.leaves(x))


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """Return the places of donated arguments once static ones are left out."""
    return tuple(i - sum(s < i for s in static_argnums) for i in donate_argnums)


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return positions and names of arguments, each inferred from the other where it is None."""
    nums = None if argnums is None else argnums_of(argnums)
    names = (argnames,) if isinstance(argnames, str) else argnames
    names = None if names is None else tuple(names)
    either = [
        (i, p.name)
        for i, p in enumerate(sig.parameters.values())
        if p.kind is p.POSITIONAL_OR_KEYWORD
        and ((nums is not None and i in nums) or (names is not None and p.name in names))
    ]
    return (
        tuple(i for i, _ in either) if nums is None else nums,
        tuple(name for _, name in either) if names is None else names,
    )


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """Map over sequences, which must be of one length."""
    return [f(*xs) for xs in zip(*args, strict=True)]
