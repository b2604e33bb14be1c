"""``vmap``: functions of one example, on batches."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ParamSpec, TypeVar, cast

from ..control.admission import admit
from ..control.refs import refs_given
from ..control.signature import Statics, argument_paths, fun_name, fun_text
from ..core import tree
from ..core.array import Array, aval_of
from ..core.avals import ShapeDtypeStruct
from ..core.axes import Axis
from ..core.callables import named_as
from ..core.ref import Ref, local, store, value_of
from ..core.source import VMAP, under, user_source
from ..core.tangents import chosen
from ..core.trace import Trace, state
from ..ops.kit.calls import moveaxis
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import Overlay, as_seen
from ..ops.kit.rules import spread
from ..transforms.batch import batch

#: Types that an extension maps by rules of its own (`interpreters.batching.register_vmappable`).
#: Taken apart by their leaves, they would be mapped where those rules may not map.
ruled_otherwise: set[type] = set()

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[P, R]:
    """Return ``fun`` mapped over axes of its arguments.

    Parameters
    ----------
    fun : callable
    in_axes : int, None, or a tuple or list of trees of them, one for each positional argument
        The axis of each array to map over, None for arrays that are the same for all examples. A
        tree may be shorter than the argument: an entry holds for all arrays under it. Keyword
        arguments are mapped over their first axes.
    out_axes : int, None, or a tree of them
        Where the mapped axis goes in the results; None for results that are the same for all.
    axis_name : hashable, optional
        Name of the mapped axis for collectives: ``lax.psum(x, axis_name)``.
    axis_size : int, optional
        Number of examples; needed only where no argument tells it.
    spmd_axis_name : optional
        Accepted for compatibility.

    Returns
    -------
    callable
        Runs ``fun`` once, on tracers of one example whose values are not known.

    Raises
    ------
    ValueError
        When called: axes that do not exist, sizes that differ (the message lists each argument),
        or a result mapped that ``out_axes`` says is not.
    TypeError
        ``fun`` is not callable, or ``in_axes`` or ``out_axes`` hold something else.
    """
    if not callable(fun):
        raise TypeError(f"vmap: Expected a callable value, got {fun!r} of type {type(fun)}.")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)  # to be a prefix of the arguments' tuple
    if not isinstance(in_axes, int | tuple | None):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes!r}."
        )
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        check_axes("vmap", what, axes)

    @named_as(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree.flatten_spec((args, kwargs))
        axes = axes_of_arguments("vmap", in_axes, args, kwargs, len(leaves))
        # What is the same for all examples may be anything.
        arrays = checked_arrays("vmap", fun, leaves, args, kwargs, axes)
        axes = from_the_front("vmap", fun, arrays, axes, args, kwargs)
        axis = Axis(size_of("vmap", fun, arrays, axes, axis_size, args, kwargs), axis_name)
        batched = [a is not None for a in axes]
        batches = [x if a is None else _first(x, a) for x, a in zip(arrays, axes, strict=True)]
        results: list[tuple[Any, Any]] = []
        ours = [isinstance(x, Array) for x in batches]
        refs = _MappedRefs(leaves, axes)

        def flat(*xs: Any) -> list[Any]:
            a, k = cast(
                "tuple[Any, Any]", spec.unflatten(refs.inside(_replaced(ours, batches, xs)))
            )
            with admit(fun, "vmap", statics=refs.arguments(a, k)):
                out = cast("Any", fun)(*a, **k)
            outs, out_spec = tree.flatten_spec(out)
            results.append((as_seen(outs, out), out_spec))
            _check_results(fun, out, outs)
            return [*outs, *refs.left()]

        some = chosen(ours, batches), chosen(ours, batched)
        outs, flags = batch(under(VMAP, flat), axis, *some, f"vmap({fun_name(fun)})")
        outs, flags = refs.stored(axis, batches, outs, flags)
        ((given, out_spec),) = results
        places = axes_of_results("vmap", out_axes, out_spec)
        placed = enumerate(zip(outs, flags, places, given, strict=True))
        return out_spec.unflatten([_placed(axis, k, *at, fun, out_spec) for k, at in placed])

    return mapped


def _refuse_ruled(what: str, fun: Callable[..., Any], value: Any) -> None:
    """Raise where a tree holds a value of `ruled_otherwise`."""
    if not ruled_otherwise:
        return
    for x in tree.leaves(value, is_leaf=lambda x: type(x) in ruled_otherwise):
        if type(x) in ruled_otherwise:
            raise NotImplementedError(
                f"{what}: an argument or result of {fun_text(fun)} is a {type(x).__name__}, which "
                f"register_vmappable gave rules of mapping, and {what} maps arrays. Pass the "
                "arrays in it, each with its axis."
            )


def _check_cut_alike(
    what: str, fun: Callable[..., Any], arrays: Sequence[Any], axes: Sequence[int | None]
) -> None:
    """Raise unless mapped axes are cut along the same axes of a mesh."""
    if not any(isinstance(x, Array) and x.aval.place is not None for x in arrays):
        return
    found = {
        x.aval.cuts[a]
        for x, a in zip(arrays, axes, strict=True)
        if a is not None and isinstance(x, Array)
    }
    if len(found) > 1:
        raise ValueError(
            f"{what}: mapped away dimension of inputs passed to {fun_text(fun)} should be sharded "
            f"the same, at {user_source()}. Got {sorted(found)}. Use fnarray.reshard."
        )


def _first(x: Any, a: int) -> Any:
    """Return an array, the mapped axis moved to the front; of a shape alone, an example's."""
    if isinstance(x, ShapeDtypeStruct):
        return x.update(shape=(*x.shape[:a], *x.shape[a + 1 :]), sharding=None)
    return moveaxis(x, a, 0)


def _replaced(flags: Sequence[bool], items: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return items, those that are flagged replaced by others in order."""
    given = iter(others)
    return [next(given) if f else x for f, x in zip(flags, items, strict=True)]


class _MappedRefs:
    """Refs among the arguments of a mapped function: each example has a part of its own.

    One that is not mapped is the same for all, and may be read.
    """

    def __init__(self, leaves: Sequence[Any], axes: Sequence[int | None]):
        self.given = {k: x for k, x in enumerate(leaves) if type(x) is Ref}
        self.axes = {k: a for k in self.given if (a := axes[k]) is not None}
        self._parts: dict[int, Ref] = {}

    def inside(self, xs: Sequence[Any]) -> list[Any]:
        """Return arguments of one example, Refs in the places of their values."""
        trace = cast("Trace", state.trace)
        self._parts = {k: local(trace, xs[k]) for k in self.axes}
        refs = self.given | self._parts
        return [refs.get(k, x) for k, x in enumerate(xs)]

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Statics:
        """Return the arguments that hold Refs, for the analysis of the function."""
        return refs_given(args, kwargs) if self.given else ()

    def left(self) -> list[Any]:
        """Return the values that one example leaves in its parts."""
        return [value_of(part) for part in self._parts.values()]

    def stored(
        self, axis: Axis, before: Sequence[Any], outs: Sequence[Any], flags: Sequence[bool]
    ) -> tuple[Sequence[Any], Sequence[bool]]:
        """Write what all examples left, the last of their results; return the others."""
        n = len(outs) - len(self.axes)
        for (k, a), x, f in zip(self.axes.items(), outs[n:], flags[n:], strict=True):
            if x is not before[k]:
                ref = self.given[k]
                store(ref, moveaxis(x if f else spread(x, axis), 0, a % ref.ndim))
        return outs[:n], flags[:n]


def check_axes(what: str, name: str, axes: Any) -> None:
    """Raise `TypeError` unless a tree holds ints and None alone."""
    for leaf in tree.leaves(axes):
        if isinstance(leaf, bool) or not isinstance(leaf, int):
            raise TypeError(
                f"{what} {name} must be an int, None, or a (nested) container with those types as "
                f"leaves, but got {axes!r}."
            )


def checked_arrays(
    what: str,
    fun: Callable[..., Any],
    leaves: Sequence[Any],
    args: tuple,
    kwargs: dict,
    axes: Sequence[int | None] | None = None,
) -> list[Any]:
    """Return arguments as arrays; raise `TypeError` naming one that is none.

    Where there are ``axes``, those that have None stay what they are if they are none: numbers have
    their values in the function, under `jit` too. So do shapes without values, mapped or not.
    """
    _refuse_ruled(what, fun, (args, kwargs))
    out = []
    for k, x in enumerate(leaves):
        if axes is not None and axes[k] is None and not isinstance(x, Array | Ref):
            out.append(x)
            continue
        if axes is not None and isinstance(x, ShapeDtypeStruct):
            out.append(x)
            continue
        try:
            out.append(value_of(x) if type(x) is Ref and what == "vmap" else as_array(x))
        except TypeError as error:
            path = argument_paths(fun, args, kwargs)[k]
            raise TypeError(
                f"{what}: the argument {path} of {fun_text(fun)} is {x!r} of type {type(x)}, not a "
                "valid fnarray type. Pass arrays, numbers, and containers of them."
            ) from error
    return out


def axes_of_arguments(
    what: str, in_axes: Any, args: tuple, kwargs: dict[str, Any], count: int
) -> list[int | None]:
    """Return the mapped axis of each leaf of ``(args, kwargs)``."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            f"{what} in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got len(in_axes)={len(in_axes)}, "
            f"len(args)={len(args)}."
        )
    return [*_prefixed(f"{what} in_axes", in_axes, args), *(0 for _ in tree.leaves(kwargs))]


def _prefixed(what: str, axes: Any, full: Any) -> list[int | None]:
    """Spread a tree of axes over the leaves of a tree it is a prefix of."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(tree.leaves(full))
    try:
        tops, spec = tree.flatten(axes, lambda x: x is None)
        parts = spec.flatten_up_to(full)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{what} specification must be a tree prefix of the corresponding value, got "
            f"specification {axes!r} for value tree {tree.structure(full)}. {error}"
        ) from None
    return [top for top, part in zip(tops, parts, strict=True) for _ in tree.leaves(part)]


def axes_of_results(what: str, out_axes: Any, spec: Any) -> list[int | None]:
    """Return where the mapped axis goes in each leaf of a result."""
    return _prefixed(f"{what} out_axes", out_axes, spec.unflatten([0] * spec.num_leaves))


def from_the_front(
    what: str,
    fun: Callable[..., Any],
    arrays: Sequence[Any],
    axes: Sequence[int | None],
    args: tuple,
    kwargs: dict[str, Any],
) -> list[int | None]:
    """Return axes counted from the front; raise `ValueError` for one that an argument lacks."""
    found: list[int | None] = []
    for k, (x, a) in enumerate(zip(as_seen(arrays, (args, kwargs)), axes, strict=True)):
        if a is None:
            found.append(a)
            continue
        if not -x.ndim <= a < x.ndim:
            path = argument_paths(fun, args, kwargs)[k]
            least = a + 1 if a >= 0 else -a
            raise ValueError(
                f"{what} was requested to map its argument {path} along axis {a}, which implies "
                f"that its rank should be at least {least}, but is only {x.ndim} (its shape is "
                f"{x.shape})."
            )
        found.append(a % x.ndim)
    return found


def size_of(
    what: str,
    fun: Callable[..., Any],
    arrays: Sequence[Any],
    axes: Sequence[int | None],
    axis_size: int | None,
    args: tuple,
    kwargs: dict[str, Any],
) -> int:
    """Return the number of examples along axes of arrays; raise where it differs."""
    if not arrays and axis_size is None:
        raise ValueError(
            f"{what} wrapped function must be passed at least one argument containing an array or "
            f"axis_size must be specified, got empty *args={args} and **kwargs={kwargs}."
        )
    _check_cut_alike(what, fun, arrays, axes)
    pairs = enumerate(zip(arrays, axes, strict=True))
    sizes = {k: x.shape[a] for k, (x, a) in pairs if a is not None}
    if not sizes and axis_size is None:
        raise ValueError(
            f"{what} must have at least one non-None value in in_axes or axis_size must be "
            "specified."
        )
    found = set(sizes.values()) | (set() if axis_size is None else {axis_size})
    if len(found) == 1:
        return found.pop()
    paths = argument_paths(fun, args, kwargs)
    lines = [f"  * the `axis_size` argument was {axis_size}"] if axis_size is not None else []
    lines += [
        f"  * one axis had size {n}: axis {axes[k]} of argument {paths[k]} of type "
        f"{aval_of(arrays[k]).str_short().lstrip('~')}"
        for k, n in sizes.items()
    ]
    raise ValueError(
        f"{what} got inconsistent sizes for array axes to be mapped:\n" + ";\n".join(lines)
    )


def _check_results(fun: Callable[..., Any], out: Any, outs: Sequence[Any]) -> None:
    _refuse_ruled("vmap", fun, out)
    for x in outs:
        if isinstance(x, Array):
            continue
        try:
            aval_of(x)
        except TypeError as error:
            raise TypeError(
                f"vmap: {fun_text(fun)} returned {x!r} of type {type(x)}, which is not a valid "
                "fnarray type. Return arrays, numbers, and containers of them."
            ) from error


def _placed(
    axis: Axis,
    k: int,
    x: Any,
    batched: bool,
    place: int | None,
    given: Any,
    fun: Any,
    spec: Any,
) -> Any:
    """Return a result with the mapped axis where ``out_axes`` wants it."""
    if place is None:
        if batched:
            path = tree.keystr(tree.leaves_with_path(spec.unflatten([0] * spec.num_leaves))[k][0])
            raise ValueError(
                f"at vmap out_axes{path}, got axis spec None but output was batched on axis 0: "
                f"result {k} of {fun_text(fun)} depends on the mapped axis. Give its out_axes an "
                "int, or reduce it."
            )
        return x if isinstance(given, Array) else given  # a Python number too stays what it was
    if not batched:
        x = spread(x, axis)
    ndim = x.ndim - isinstance(given, Overlay)
    if not -ndim <= place < ndim:
        raise ValueError(
            f"vmap out_axes: axis {place} is out of bounds for array of dimension {ndim}, result "
            f"{k} of {fun_text(fun)}."
        )
    return moveaxis(x, 0, place % ndim)
