"""``pmap``, and what it shares with ``shard_map``: functions on several devices at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..config import config
from ..control.admission import admit
from ..control.signature import (
    Signature,
    StaticSpec,
    abstract,
    argnums,
    argument_paths,
    fun_name,
    fun_text,
    unhashable,
)
from ..control.spmd import evaluate, shard_map_p
from ..control.tracing import Traced, cells_of, trace, traced
from ..core import tree
from ..core.array import Array, ArrayElsewhere, ArrayImpl
from ..core.avals import ShapedArray
from ..core.axes import Axes, AxisTrace, devices_in_use
from ..core.callables import named_as
from ..core.keep import kept_with
from ..core.quiet import quietly
from ..core.ref import Ref
from ..core.source import user_source
from ..core.trace import bind, state, tracing
from ..ops.kit.calls import moveaxis
from ..ops.kit.canonical import as_array
from ..ops.kit.moves import as_seen
from ..runtime.device import Device, default_device, devices
from ..runtime.dispatch import buffer_of
from ..runtime.mesh import Mesh
from ..runtime.placed import PlacedArray
from ..runtime.spec import NamedSharding, PartitionSpec
from .batching import (
    axes_of_arguments,
    axes_of_results,
    check_axes,
    checked_arrays,
    from_the_front,
    size_of,
    vmap,
)
from .blocks_of import checked_place, row

if TYPE_CHECKING:
    from ..control.recheck import Recheck

Names = tuple[Hashable, ...]
#: Name of the mapped axis where the user gives none.
UNNAMED = "_pmap_axis"


@dataclass(slots=True)
class Layout:
    """How the arguments of one signature are divided among devices.

    Attributes
    ----------
    axes : tuple of (name, size)
    places : tuple
        For each leaf: its mapped axis, or the spec it is cut by.
    in_names : tuple of tuple of names
        Along which axes each leaf is divided.
    blocks : tuple of ShapedArray
        What one shard gets of each leaf.
    checked : bool
        Whether types say along which axes values differ.
    results : tuple, optional
        The function as it was traced last, where its results go, and their names of axes.
    program : _SpmdCall, optional
    recheck : Recheck, optional
        Compares the function with what was traced, before each call, where ``config`` asks.
    """

    axes: Axes
    places: tuple[Any, ...]
    in_names: tuple[Names, ...]
    blocks: tuple[ShapedArray, ...]
    mesh: Mesh
    checked: bool = False
    results: tuple[Traced, tuple[Any, ...], tuple[Names, ...]] | None = None
    program: _SpmdCall | None = None
    recheck: Recheck | None = None


@dataclass(slots=True)
class _SpmdCall:
    """What a call of one signature does once all is known: no tracing, no moving of axes.

    Attributes
    ----------
    traced : Traced
        Holds as long as this does.
    params : dict
        Of the primitive.
    held : tuple of numpy.ndarray
        Buffers of what the function captured.
    results : tuple of (ShapedArray, NamedSharding or None)
    recheck : Recheck or None
        As of the layout.
    """

    traced: Traced
    params: dict[str, Any]
    held: tuple[Any, ...]
    results: tuple[tuple[ShapedArray, NamedSharding | None], ...]
    recheck: Recheck | None

    def __call__(self, leaves: Sequence[Any], avals: Sequence[ShapedArray]) -> Any:
        """Run on arguments' leaves; return the result."""
        if self.recheck is not None:
            self.recheck()
        outs = quietly(evaluate, *self.held, *map(buffer_of, leaves, avals), **self.params)
        return self.traced.out_spec.unflatten(
            [
                ArrayImpl(x, aval) if where is None else PlacedArray(x, aval, where)
                for x, (aval, where) in zip(outs, self.results, strict=True)
            ]
        )


def eager(leaves: Sequence[Any]) -> list[Any]:
    """Return leaves as operands; NumPy arrays are only read while the call lasts: not copied."""
    if state.trace is not None:
        return [as_array(x) for x in leaves]
    out = []
    for x in leaves:
        if isinstance(x, Array):
            out.append(x)
        else:
            aval = abstract(x)
            out.append(ArrayImpl(buffer_of(x, aval), aval))
    return out


def run_shards(
    what: str,
    fun: Callable[..., Any],
    signature: Signature,
    operands: Sequence[Any],
    layout: Layout,
    results: Callable[[Traced], tuple[tuple[Any, ...], tuple[Names, ...]]],
) -> tuple[Traced, dict[str, Any], list[Any], tuple[Any, ...]]:
    """Trace a function on one shard's part, and run it on all.

    Returns
    -------
    traced, params, results, places
    """
    t, places, out_names = _traced_on(what, fun, signature, layout, results)
    params = {
        "jaxpr": t.closed,
        "mesh_axes": layout.axes,
        "in_names": ((),) * len(t.consts) + layout.in_names,
        "out_names": out_names,
        "name": f"{what}({fun_name(fun)})",
        "checked": layout.checked,
    }
    if layout.mesh.platform:
        params["mesh"] = layout.mesh
    return t, params, bind(shard_map_p, *t.consts, *operands, **params), places


def run_elsewhere(
    what: str,
    fun: Callable[..., Any],
    signature: Signature,
    operands: Sequence[Any],
    layout: Layout,
    results: Callable[[Traced], Any],
    cut: Callable[[Any, Sequence[int]], tuple[PartitionSpec, int | None]],
) -> Any:
    """Run a function on devices of another platform; ``cut`` says how of a place and a shape."""
    t, places, _ = _traced_on(what, fun, signature, layout, results)
    ins = [cut(p, a.shape) for p, a in zip(layout.places, layout.blocks, strict=True)]
    outs = [cut(p, a.shape) for p, a in zip(places, t.closed.out_avals, strict=True)]
    there: Any = layout.mesh.platform
    return there.spmd(t, operands, layout.mesh, ins, outs, f"{what}({fun_name(fun)})")


def _traced_on(
    what: str,
    fun: Callable[..., Any],
    signature: Signature,
    layout: Layout,
    results: Callable[[Traced], tuple[tuple[Any, ...], tuple[Names, ...]]],
) -> tuple[Traced, tuple[Any, ...], tuple[Names, ...]]:
    """Trace a function on one shard's part; return where its results go, too."""
    name = f"{what}({fun_name(fun)})"
    signature = signature._replace(in_avals=layout.blocks)
    with tracing(AxisTrace(name, layout.axes, layout.checked)):
        t = traced(fun, signature, user=what)
    if config.recheck != "off" and state.trace is None:
        _recheck(what, fun, signature, layout, t)
    known = layout.results
    if known is None or known[0] is not t:
        # One assignment: another thread may be here with a trace of its own.
        known = layout.results = t, *results(t)
    return known


def _recheck(
    what: str, fun: Callable[..., Any], signature: Signature, layout: Layout, t: Traced
) -> None:
    """Compare a function with what was traced of it, as often as ``config.recheck`` asks."""
    from ..control.recheck import Recheck

    def again() -> Traced:
        with tracing(AxisTrace(what, layout.axes, layout.checked)):
            return trace(fun, signature, user=what)

    if layout.recheck is None or layout.recheck.traced is not t:
        layout.recheck = Recheck(fun, t, again)
    layout.recheck()


def check_devices(what: str, wanted: int, available: int) -> None:
    """Raise unless there are as many devices as a function is to run on."""
    total = wanted * devices_in_use()
    if total > available:
        repair = (
            f"Devices are the cores this process may use; set FNARRAY_NUM_CPU_DEVICES={total}, or "
            f"config.update('num_cpu_devices', {total}), to share them."
        )
        if default_device().platform == "gpu":
            repair = (
                "Devices are this machine's GPUs; name one several times, "
                f"devices=fnarray.devices('gpu') * {-(-total // available)}, to share them."
            )
        raise ValueError(
            f"{what}: compiling computation that requires {total} logical devices, but only "
            f"{available} are available. {repair}"
        )


# ---- pmap ----------------------------------------------------------------------------------------


def pmap(
    fun: Callable[..., Any],
    axis_name: Hashable | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
    global_arg_shapes: Any = None,
) -> Callable[..., Any]:
    """Return ``fun`` mapped over axes of its arguments, each example on a device of its own.

    Devices are cores; examples run at the same time, compiled, without the interpreter's lock.
    With more devices than cores they take turns.

    Parameters
    ----------
    fun : callable
        Traced once per signature, on one example. Collectives may name ``axis_name``.
    axis_name : hashable, optional
        Name of the mapped axis.
    in_axes, out_axes
        As in `vmap`. A result whose ``out_axes`` is None is the first device's.
    static_broadcasted_argnums : int or sequence of int
        Arguments that arrive as their Python values.
    devices : sequence of Device, optional
        One for each example; by default the first of `fnarray.devices`.
    backend : str, optional
        ``"cpu"``, the only one.
    axis_size : int, optional
        Number of examples; needed only where no argument tells it.
    donate_argnums, global_arg_shapes
        Accepted for compatibility.

    Returns
    -------
    callable
        Its results are laid out over the devices (``x.sharding``, ``x.addressable_shards``).

    Raises
    ------
    ValueError
        When called: more examples than devices, sizes that differ (the message lists each
        argument), static arguments that cannot be hashed.
    TypeError
        ``fun`` is not callable, or ``in_axes`` or ``out_axes`` hold something else.
    Exception
        What an example raises; a note tells which it was. The others are stopped.
    """
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    _check_options(fun, in_axes, out_axes, backend)
    static = StaticSpec(argnums(static_broadcasted_argnums))
    name = UNNAMED if axis_name is None else axis_name

    @named_as(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        statics: Any = ()
        dyn, axes = args, in_axes
        if static:
            dyn, kwargs, statics = static.split(args, kwargs)
            axes = _dynamic_axes(fun, static, len(args), statics, in_axes)
        leaves, spec = tree.flatten_spec((dyn, kwargs))
        avals = _avals(fun, leaves, dyn, kwargs)
        available = len(_devices()) if devices is None else len(devices)
        in_use = 1 if state.trace is None else devices_in_use()
        signature = Signature(spec, avals, statics)
        key = signature, available, in_use, config.trace_token
        layout = layouts.get(key)
        program = layout and layout.program
        here = state.trace is None and not any(isinstance(x, ArrayElsewhere) for x in leaves)
        if program and here and program.traced.fits(cells_of(fun)):
            return program(leaves, avals)
        operands = eager(leaves)
        if layout is None:
            layout = _layout(fun, operands, axes, dyn, kwargs, name, axis_size, devices)
            layouts[key] = layout
        if config.disable_jit:
            return _op_by_op(fun, signature, operands, layout, axis_name, out_axes)
        results = functools.partial(_places_of_results, fun, out_axes, name)
        if state.trace is None and layout.mesh.platform:
            cut = functools.partial(row, name, fun)
            return run_elsewhere("pmap", fun, signature, operands, layout, results, cut)
        operands = [
            moveaxis(x, a, 0) if a else x for x, a in zip(operands, layout.places, strict=True)
        ]
        t, params, outs, places = run_shards("pmap", fun, signature, operands, layout, results)
        if state.trace is None and not any(layout.places) and not any(places):
            layout.program = _program(t, layout, params, places)
        return t.out_spec.unflatten(
            [_placed(x, p, layout.mesh, name) for x, p in zip(outs, places, strict=True)]
        )

    layouts: dict[Any, Layout] = kept_with(mapped).table("layouts")
    return mapped


_devices = devices


def _op_by_op(
    fun: Callable[..., Any],
    signature: Signature,
    operands: Sequence[Any],
    layout: Layout,
    axis_name: Hashable,
    out_axes: Any,
) -> Any:
    """Return the results under ``disable_jit``: each call runs the function, on batches.

    What it computes of no example, such as parameters that it draws, is then the caller's: Haiku
    keeps those.
    """

    def one(*leaves: Any) -> Any:
        args, kwargs = signature.arguments(leaves)
        return fun(*args, **kwargs)

    size = layout.axes[-1][1]
    mapped = vmap(named_as(fun)(one), layout.places, axis_name=axis_name, axis_size=size)
    with admit(fun, "pmap", statics=signature.statics):
        outs, spec = tree.flatten_spec(mapped(*operands))
    places = _places(fun, out_axes, spec, outs, 0)
    return spec.unflatten(
        [x[0] if p is None else moveaxis(x, 0, p) for x, p in zip(outs, places, strict=True)]
    )


def _avals(fun: Any, leaves: Sequence[Any], dyn: Any, kwargs: Any) -> tuple[Any, ...]:
    if Ref in (kinds := list(map(type, leaves))):
        path = argument_paths(fun, dyn, kwargs)[kinds.index(Ref)]
        raise ValueError(
            f"pmap: the argument {path} of {fun_text(fun)} is a Ref, whose rows are not handed out "
            f"to devices, at {user_source()}. Pass its value, ref[...], and write what is returned."
        )
    try:
        return tuple([x.aval if isinstance(x, Array) else abstract(x) for x in leaves])
    except TypeError:
        checked_arrays("pmap", fun, leaves, dyn, kwargs)  # names the argument
        raise


def _program(
    t: Traced, layout: Layout, params: dict[str, Any], places: tuple[Any, ...]
) -> _SpmdCall:
    mapped = NamedSharding(layout.mesh, PartitionSpec(*(n for n, _ in layout.axes)))
    avals = shard_map_p.aval(**params)
    results = tuple((a, mapped if p == 0 else None) for a, p in zip(avals, places, strict=True))
    held = tuple(buffer_of(c, c.aval) for c in t.consts)
    return _SpmdCall(t, params, held, results, layout.recheck)


def _check_options(fun: Any, in_axes: Any, out_axes: Any, backend: str | None) -> None:
    if not callable(fun):
        raise TypeError(f"pmap: Expected a callable value, got {fun!r} of type {type(fun)}.")
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        check_axes("pmap", what, axes)
    if backend is not None:
        _devices(backend)  # raises for one that does not exist


def _places(
    fun: Callable[..., Any], out_axes: Any, spec: Any, leaves: Sequence[Any], more: int
) -> tuple[int | None, ...]:
    """Return where the mapped axis goes in each leaf, from the front: in keys, among their axes.

    Results will have ``more`` axes than the leaves.
    """
    return tuple(
        None if a is None else checked_place(a, x.ndim + more, fun)
        for a, x in zip(
            axes_of_results("pmap", out_axes, spec),
            as_seen(leaves, spec.unflatten(leaves)),
            strict=True,
        )
    )


def _places_of_results(
    fun: Callable[..., Any], out_axes: Any, name: Hashable, t: Traced
) -> tuple[Any, Any]:
    """Return where each result gets the mapped axis, and the axes over which it differs."""
    places = _places(fun, out_axes, t.out_spec, t.closed.out_avals, 1)
    return places, tuple(() if p is None else (name,) for p in places)


def _dynamic_axes(
    fun: Callable[..., Any], spec: StaticSpec, count: int, statics: Any, in_axes: Any
) -> Any:
    """Return ``in_axes`` without those of static arguments, which are checked."""
    if any(not -count <= k < count for k in spec.nums):
        raise ValueError(
            f"pmapped function has static_broadcasted_argnums={spec.nums} but was called with only "
            f"{count} positional arguments. All static broadcasted arguments must be passed "
            "positionally."
        )
    if found := unhashable(statics):
        where, value, error = found
        raise ValueError(
            "pmap: non-hashable static arguments are not supported: static argument (index "
            f"{where}) of {fun_text(fun)} is {value!r} of type {type(value)}. They are part of "
            "the cache's key: pass a tuple in place of a list."
        ) from error
    if isinstance(in_axes, tuple) and len(in_axes) == count:
        return tuple(a for k, a in enumerate(in_axes) if k not in spec.nums)
    return in_axes


def _layout(
    fun: Callable[..., Any],
    arrays: Sequence[Any],
    in_axes: Any,
    args: tuple,
    kwargs: dict[str, Any],
    name: Hashable,
    axis_size: int | None,
    given: Sequence[Device] | None,
) -> Layout:
    axes = axes_of_arguments("pmap", in_axes, args, kwargs, len(arrays))
    axes = from_the_front("pmap", fun, arrays, axes, args, kwargs)
    size = size_of("pmap", fun, arrays, axes, axis_size, args, kwargs)
    pool = _devices() if given is None else list(given)
    if given is not None and size != len(pool):
        raise ValueError(
            "Leading axis size of input to pmapped function must equal the number of local "
            f"devices passed to pmap. Got axis_size={size}, num_local_devices={len(pool)}."
        )
    check_devices("pmap", size, len(_devices()) if given is None else len(pool))
    places = tuple(axes)
    blocks = tuple(
        x.aval
        if a is None
        else x.aval.update(shape=tuple(n for k, n in enumerate(x.shape) if k != a))
        for x, a in zip(arrays, places, strict=True)
    )
    return Layout(
        ((name, size),),
        places,
        tuple(() if a is None else (name,) for a in places),
        blocks,
        Mesh(pool[:size], (name,)),
    )


def _placed(x: Any, place: int | None, mesh: Mesh, name: Hashable) -> Any:
    """Return a result with the mapped axis where ``out_axes`` wants it."""
    if place is None:
        return x
    x = moveaxis(x, 0, place)
    if type(x) is not ArrayImpl:
        return x
    spec = PartitionSpec(*[None] * place, name)
    return PlacedArray(x._data, x.aval, NamedSharding(mesh, spec))
