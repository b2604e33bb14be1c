"""Python functions that take part in a program: computing for it, or acting on the outside.

A ``pure_callback`` computes: its calls may be merged, or dropped where nobody reads the result.
An ``io_callback`` acts and returns: each call is made, in the order of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import tree
from ..core.array import aval_of
from ..core.avals import ShapedArray
from ..core.dtypes import canonicalize_dtype
from ..core.forms import HOST
from ..core.primitive import Primitive
from ..core.source import boundary
from ..errors import JaxRuntimeError, MissingRuleError
from ..ops.kit.registry import register
from ..ops.shape import broadcast, expand_dims
from ..ops.slicing import index_in_dim
from .host import NOT_LINEAR, FlatCallback, act, act_by_row, check_callable
from .scan import stack

__all__ = []

#: What vmap may do with a `pure_callback`.
VMAP_METHODS = (
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None,
)  # fmt: skip

# ---- results -------------------------------------------------------------------------------------


def _result_avals(where: str, shapes: Any) -> tuple[tuple[ShapedArray, ...], tree.PyTreeDef]:
    """Return avals and structure of the promised result."""
    found, out_tree = tree.flatten(shapes)
    avals = []
    for i, leaf in enumerate(found):
        if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            path = tree.keystr(tree.leaves_with_path(shapes)[i][0])
            raise TypeError(
                f"{where}: result_shape_dtypes{path} must have a shape and a dtype, got {leaf!r} "
                f"of type {type(leaf)}. Pass a ShapeDtypeStruct or an array like the result."
            )
        dtype = np.dtype(leaf.dtype)
        if canonicalize_dtype(dtype) != dtype:
            raise ValueError(
                f"{where}: result_shape_dtypes cannot have the 64-bit dtype {dtype} unless "
                "enable_x64 is set."
            )
        avals.append(ShapedArray(leaf.shape, dtype))
    return tuple(avals), out_tree


def _checked(
    where: str, callback: FlatCallback, avals: tuple[ShapedArray, ...], hint: str, result: Any
) -> tuple[np.ndarray, ...]:
    """Return copies of what a callback returned; raise unless it is what was promised."""
    leaves, got_tree = tree.flatten(result)
    if len(leaves) != len(avals):
        raise JaxRuntimeError(
            f"{where}: result_shape_dtypes promises {len(avals)} arrays, as {callback.out_tree}, "
            f"but got {len(leaves)}, as {got_tree}, from {callback.where()}"
        )
    return tuple(_checked_leaf(where, callback, i, avals[i], hint, x) for i, x in enumerate(leaves))


def _checked_leaf(
    where: str, callback: FlatCallback, i: int, aval: ShapedArray, hint: str, x: Any
) -> np.ndarray:
    try:
        found = np.asarray(x)
        dtype = canonicalize_dtype(found.dtype)
        got = ShapedArray(found.shape, dtype).str_short() if dtype.kind in "biufcV" else repr(x)
    except TypeError as error:
        found, got, dtype = np.asarray(None), f"{x!r} ({error})", None
    if dtype != aval.dtype or found.shape != aval.shape:
        spec = callback.out_tree
        path = tree.leaves_with_path(spec.unflatten(range(spec.num_leaves)))[i][0] if spec else ()
        at = f" at {tree.keystr(path)}" if path else ""
        raise JaxRuntimeError(
            f"{where}: result_shape_dtypes promises {aval.str_short()}{at}, but got {got} from "
            f"{callback.where()}\n  Return that, or promise what is returned.{hint}"
        )
    # A copy, also of what has the right dtype: a later step may write over it.
    return np.array(found, aval.dtype, order="C")


def _operands(where: str, args: tuple, kwargs: dict[str, Any]) -> tuple[list[Any], tree.PyTreeDef]:
    """Return leaves and structure of a callback's arguments; raise `TypeError` for no arrays."""
    leaves, in_tree = tree.flatten((args, kwargs))
    for i, leaf in enumerate(leaves):
        try:
            aval_of(leaf)
        except TypeError as error:
            value, path = (args, kwargs), tree.leaves_with_path((args, kwargs))[i][0]
            at = tree.keystr(path[1:]) if value[0] or value[1] else ""
            raise TypeError(
                f"{where}: Argument {leaf!r} of type {type(leaf)}, at {at} of the callback's "
                "arguments, is no array. Bind such values with functools.partial or a closure."
            ) from error
    return leaves, in_tree


def _no_jvp(kind: str) -> Callable[..., Any]:
    """Return the jvp rule of an operation without one; `ValueError`, as in JAX."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, callback: FlatCallback, **_: Any):
        raise ValueError(
            f"{kind} callbacks do not support JVP: nobody knows the derivative of "
            f"{callback.where()}\n  Give one with custom_jvp, or apply lax.stop_gradient to the "
            "arguments."
        )

    return jvp


# ---- pure_callback -------------------------------------------------------------------------------


def _evaluate_pure(
    *xs: np.ndarray,
    callback: FlatCallback,
    result_avals: tuple[ShapedArray, ...],
    vmap_method: str | None,
    **params: Any,
) -> tuple[np.ndarray, ...]:
    whole = vmap_method in ("expand_dims", "broadcast_all", "legacy_vectorized")
    hint = f" Under vmap, {vmap_method=} means leading batch axes." if whole else ""
    return _checked("pure_callback", callback, result_avals, hint, callback(*xs))


def _batch_pure(
    size: int, args: list[Any], batched: tuple[bool, ...], *, vmap_method: str | None, **params: Any
) -> tuple[list[Any], tuple[bool, ...]]:
    params["vmap_method"] = vmap_method
    if vmap_method is None:
        raise MissingRuleError(
            "vmap",
            "pure_callback",
            f"how is {params['callback'].where()} to be called on a batch? Say so by vmap_method: "
            f"one of {', '.join(map(repr, VMAP_METHODS[:-1]))}.",
        )
    if vmap_method == "sequential" or size == 0:
        return act_by_row(pure_callback_p, args, batched, params)
    avals = params["result_avals"]
    if vmap_method == "sequential_unrolled":
        rows = [
            act(
                pure_callback_p,
                [
                    index_in_dim(a, i, keepdims=False) if b else a
                    for a, b in zip(args, batched, strict=True)
                ],
                **params,
            )
            for i in range(size)
        ]
        return stack(rows), (True,) * len(avals)
    if vmap_method == "expand_dims":
        args = [a if b else expand_dims(a, (0,)) for a, b in zip(args, batched, strict=True)]
    elif vmap_method == "broadcast_all":
        args = [a if b else broadcast(a, (size,)) for a, b in zip(args, batched, strict=True)]
    params["result_avals"] = tuple(a.update(shape=(size, *a.shape)) for a in avals)
    return act(pure_callback_p, args, **params), (True,) * len(avals)


pure_callback_p = register(
    Primitive(
        "pure_callback",
        quiet=False,
        aval=lambda *avals, result_avals, **params: result_avals,
        eval=_evaluate_pure,
        form=lambda ins, outs, **params: HOST,
        jvp=_no_jvp("Pure"),
        transpose=NOT_LINEAR,
        batch=_batch_pure,
        multiple_results=True,
    )
)


@boundary
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Compute with a Python function, from a compiled program too.

    Parameters
    ----------
    callback : callable
        Pure: a program may call it once for two calls on equal arguments, or not at all where
        nobody reads the result. Takes arrays, and returns arrays or numbers.
    result_shape_dtypes : pytree
        Leaves with the ``shape`` and ``dtype`` of the result's, such as `ShapeDtypeStruct`.
    *args, **kwargs : pytrees of arrays
        For ``callback``.
    sharding : None
        Accepted for compatibility: there is one device.
    vmap_method : str, optional
        What ``vmap`` does: ``"sequential"`` loops over the rows, ``"sequential_unrolled"`` too,
        with the loop written out; the others make one call, in which batched arguments have a
        new leading axis and so has each result. Unbatched ones get a leading axis of size 1 with
        ``"expand_dims"``, of the batch's size with ``"broadcast_all"``, none with
        ``"legacy_vectorized"``.

    Returns
    -------
    pytree of Array
        In the structure of ``result_shape_dtypes``.

    Raises
    ------
    TypeError
        ``callback`` is not callable, an argument is no array, or a leaf of
        ``result_shape_dtypes`` has no shape or dtype.
    ValueError
        ``vmap_method`` is unknown, or a dtype has 64 bits without ``enable_x64``.
    JaxRuntimeError
        As the program runs: the callback returned something else than promised, or raised. What it
        raised is the error's ``__cause__``.
    """
    check_callable("pure_callback", callback)
    if vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"pure_callback: vmap_method must be one of {', '.join(map(repr, VMAP_METHODS))}, got "
            f"{vmap_method!r}."
        )
    leaves, in_tree = _operands("pure_callback", args, kwargs)
    avals, out_tree = _result_avals("pure_callback", result_shape_dtypes)
    outs = act(
        pure_callback_p,
        leaves,
        callback=FlatCallback(callback, in_tree, (), out_tree),
        result_avals=avals,
        sharding=sharding,
        vmap_method=vmap_method,
    )
    return out_tree.unflatten(outs)


# ---- io_callback ---------------------------------------------------------------------------------


def _evaluate_io(
    *xs: np.ndarray, callback: FlatCallback, result_avals: tuple[ShapedArray, ...], **params: Any
) -> tuple[np.ndarray, ...]:
    return _checked("io_callback", callback, result_avals, "", callback(*xs))


def _batch_io(
    size: int, args: list[Any], batched: tuple[bool, ...], *, ordered: bool, **params: Any
) -> tuple[list[Any], tuple[bool, ...]]:
    if ordered:
        raise ValueError(
            f"vmap of an ordered io_callback: the rows have no order, in "
            f"{params['callback'].where()}\n  Loop with lax.map, or pass ordered=False."
        )
    return act_by_row(io_callback_p, args, batched, {"ordered": ordered, **params})


io_callback_p = register(
    Primitive(
        "io_callback",
        quiet=False,
        aval=lambda *avals, result_avals, **params: result_avals,
        eval=_evaluate_io,
        form=lambda ins, outs, **params: HOST,
        jvp=_no_jvp("IO"),
        transpose=NOT_LINEAR,
        batch=_batch_io,
        effects=("io",),
        multiple_results=True,
    )
)


@boundary
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call an impure Python function, from a compiled program too: each call is made, in order.

    Parameters
    ----------
    callback : callable
        Takes arrays, and returns arrays or numbers, or None where nothing is promised.
    result_shape_dtypes : pytree
        Leaves with the ``shape`` and ``dtype`` of the result's; None for no result.
    *args, **kwargs : pytrees of arrays
        For ``callback``.
    sharding : None
        Accepted for compatibility: there is one device.
    ordered : bool
        Whether the order of calls matters, so that ``vmap``, which calls once per row, must not be
        applied. Calls are made in the order of the program either way.

    Returns
    -------
    pytree of Array
        In the structure of ``result_shape_dtypes``.

    Raises
    ------
    TypeError, ValueError, JaxRuntimeError
        As `pure_callback`.
    """
    check_callable("io_callback", callback)
    leaves, in_tree = _operands("io_callback", args, kwargs)
    avals, out_tree = _result_avals("io_callback", result_shape_dtypes)
    outs = act(
        io_callback_p,
        leaves,
        callback=FlatCallback(callback, in_tree, (), out_tree),
        ordered=ordered,
        result_avals=avals,
        sharding=sharding,
    )
    return out_tree.unflatten(outs)
