"""``shard_map``: functions on blocks of arrays, each on a device of a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from ..config import config
from ..control.signature import Signature, argument_paths, fun_text
from ..control.tracing import Traced
from ..core import tree
from ..core.array import ArrayElsewhere, ArrayImpl
from ..core.avals import NO_SUMS, ShapedArray, Sums, place
from ..core.axes import checked_axes, devices_in_use
from ..core.callables import named_as
from ..core.keep import kept_with
from ..core.source import user_source
from ..core.trace import Tracer, bind, state
from ..ops.collective import psum
from ..ops.kit.calls import pad, permute, reshape
from ..ops.kit.canonical import as_array
from ..ops.placing import cast, constrained, kind_along, reshard_p
from ..runtime.ambient import AbstractMesh, get_abstract_mesh, use_abstract_mesh
from ..runtime.device import devices
from ..runtime.mesh import AxisType, Mesh, current_mesh, mesh_for
from ..runtime.placed import PlacedArray
from ..runtime.spec import NamedSharding, PartitionSpec, block_shape, check_spec, sums_of_spec
from .batching import checked_arrays
from .blocks_of import block
from .parallel import Layout, check_devices, eager, run_elsewhere, run_shards
from .resharding import moved

__all__ = ["shard_map", "smap"]

Names = frozenset[Hashable]


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Iterable[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Callable[..., Any]:
    """Return ``f`` mapped over blocks of its arguments, each on a device of a mesh.

    Parameters
    ----------
    f : callable
        Takes and returns blocks, of the rank of the arrays they are cut from. Collectives may name
        the mesh's axes. None makes a decorator.
    in_specs, out_specs : PartitionSpec, or trees of them
        How arguments are cut, and how results are put together; a tree may be shorter than the
        arguments' tuple or the result. ``in_specs``, or a part of it, may be None: types say it,
        and of axes of type Auto that arrays are whole. A mesh axis that a result's spec does not
        name promises that the result is the same along it.
    mesh : Mesh, optional
        By default the one about the program (`set_mesh`).
    axis_names : set of names, optional
        The axes that ``f`` runs on, of type Manual inside; all by default. Along the others its
        arrays are whole, or cut as their types say.
    check_vma : bool
        Whether types inside say along which axes values vary (`typeof`). The promise of
        ``out_specs`` is checked then, and derivatives taken inside of what is the same on all
        devices are summed over them.

    Returns
    -------
    callable

    Raises
    ------
    ValueError
        When called: an axis that is no multiple of the devices along it; specs that name axes that
        ``f`` does not run on, do not fit the arguments, differ from their types, or promise what
        types deny.
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names,
            check_vma=check_vma,
        )  # fmt: skip
    if not callable(f):
        raise TypeError(f"shard_map: Expected a callable value, got {f!r} of type {type(f)}.")
    in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
    chosen, ended = frozenset(axis_names), _ending(f, out_specs)

    @named_as(f)
    def mapped(*args: Any) -> Any:
        grid = _grid(mesh)
        manual = _manual(grid, chosen)
        leaves, spec = tree.flatten_spec((args, {}))
        operands = eager(checked_arrays("shard_map", f, leaves, args, {}))
        signature = Signature(spec, tuple(x.aval for x in operands))
        key = signature, grid, len(devices()), devices_in_use(), config.trace_token
        layout = layouts.get(key)
        if layout is None:
            layout = layouts[key] = _cut(f, operands, in_specs, args, grid, manual, check_vma)

        def results(t: Traced) -> Any:
            specs = _specs("out_specs", out_specs, t.out_spec.unflatten([0] * len(t.out_avals)))
            for s, aval in zip(specs, t.out_avals, strict=True):
                _check_names("out_specs", f, grid, s, manual)
                _check_promise(f, s, aval, manual)
            return tuple(specs), tuple(tuple(n for ns in s.names() for n in ns) for s in specs)

        inside = AbstractMesh(grid.axis_sizes, grid.axis_names, grid.axis_types)
        inside = inside.update_axis_types(dict.fromkeys(manual, AxisType.Manual))
        with use_abstract_mesh(inside):
            if state.trace is None and grid.platform:
                cut = functools.partial(block, f)
                return run_elsewhere("shard_map", f, signature, operands, layout, results, cut)
            operands = [
                _split(_whole(x, grid, s), grid, s)
                for x, s in zip(operands, layout.places, strict=True)
            ]
            t, _, outs, specs = run_shards("shard_map", ended, signature, operands, layout, results)
        return t.out_spec.unflatten(
            [
                _put_together(x, grid, s, aval, f)
                for x, s, aval in zip(outs, specs, t.out_avals, strict=True)
            ]
        )

    layouts: dict[Any, Layout] = kept_with(mapped).table("layouts")
    return mapped


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: Any = 0,
    out_axes: Any,
    axis_name: Hashable,
) -> Callable[..., Any]:
    """Return ``f`` mapped over blocks along one axis of the mesh about the program.

    Parameters
    ----------
    f : callable
    in_axes, out_axes : int or None, or trees of them
        The axis of each argument, and result, that is cut along ``axis_name``; None for those that
        are the same for all devices along it.
    axis_name : name
        Of one axis of the mesh: the others are left as they are.

    Returns
    -------
    callable
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    def spec(axis: int | None) -> PartitionSpec:
        if axis is not None and (type(axis) is not int or axis < 0):
            raise TypeError(
                f"smap: in_axes and out_axes must be ints that are not negative, or None, got "
                f"{axis!r}, at {user_source()}."
            )
        return PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, axis_name)

    ins, outs = (tree.map(spec, a, is_leaf=lambda x: x is None) for a in (in_axes, out_axes))
    return shard_map(f, in_specs=ins, out_specs=outs, axis_names={axis_name})


# ---- meshes and specs ----------------------------------------------------------------------------


def _grid(mesh: Mesh | AbstractMesh | None) -> Mesh:
    """Return the mesh to run on, its axes of the types that they have here."""
    types = get_abstract_mesh()
    if mesh is None:
        grid = current_mesh()
        if grid is None and not types.empty:
            grid = mesh_for(types.shape_tuple)
    else:
        grid = mesh if isinstance(mesh, Mesh) else mesh_for(mesh.shape_tuple)
        if isinstance(mesh, AbstractMesh):
            grid = grid.update(axis_types=mesh.axis_types)
    if grid is None:
        raise ValueError(
            f"shard_map: there is no mesh: pass mesh=, or enter one: with fnarray.set_mesh(mesh), "
            f"at {user_source()}."
        )
    if grid.platform and types.manual_axes:
        raise NotImplementedError(
            f"shard_map on workers cannot run within another one, at {user_source()}. Let one "
            "shard_map run on all axes of the mesh."
        )
    if types.shape_tuple == grid.shape_tuple and (mesh is None or types.manual_axes):
        grid = grid.update(axis_types=types.axis_types)
    return grid


def _manual(grid: Mesh, chosen: Names) -> Names:
    """Return the axes that a function is to run on."""
    if not chosen <= set(grid.axis_names):
        raise ValueError(
            f"shard_map: axis_names={set(chosen)} must be a subset of the mesh's axes "
            f"{grid.axis_names}, at {user_source()}."
        )
    manual = chosen or frozenset(grid.axis_names) - set(grid.manual_axes)
    if taken := manual & set(grid.manual_axes):
        raise ValueError(
            f"shard_map: axes {sorted(map(str, taken))} are those of a shard_map around already, "
            f"at {user_source()}. Name others in axis_names."
        )
    return manual


def is_spec(s: Any) -> bool:
    """Whether this is a spec, and no tree of them."""
    return isinstance(s, PartitionSpec)


def _specs(what: str, specs: Any, full: Any, is_leaf: Any = is_spec) -> list[Any]:
    """Spread a tree of specs over the leaves of a tree it is a prefix of."""
    if isinstance(specs, PartitionSpec):
        return [specs] * len(tree.leaves(full))
    try:
        return tree.broadcast_prefix(specs, full, is_leaf)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"shard_map {what} must be a tree prefix of the corresponding value, got {specs!r} "
            f"for value tree {tree.structure(full)}. {error}"
        ) from None


def _says_sums(specs: Any) -> bool:
    """Whether a tree of specs names axes of partial sums."""
    leaves = [specs] if is_spec(specs) else tree.leaves(specs, is_leaf=is_spec)
    return any(is_spec(s) and (s.unreduced or s.reduced) for s in leaves)


def _ending(f: Callable[..., Any], out_specs: Any) -> Callable[..., Any]:
    """Return a function whose results are whole: partial sums are summed, and said to be outside.

    All devices share the host's memory, in which to put off a sum would save nothing.
    """
    if not _says_sums(out_specs):
        return f

    @named_as(f)
    def inside(*args: Any) -> Any:
        out = f(*args)
        leaves, spec = tree.flatten_spec(out)
        specs = _specs("out_specs", out_specs, out)
        return spec.unflatten(
            [_ended(x, s, f) if is_spec(s) else x for x, s in zip(leaves, specs, strict=True)]
        )

    return inside


def _ended(x: Any, spec: PartitionSpec, f: Callable[..., Any]) -> Any:
    x = as_array(x)
    unreduced, reduced = (tuple(sorted(s, key=str)) for s in (spec.unreduced, spec.reduced))
    if not checked_axes():
        return psum(x, unreduced) if unreduced else x
    for axes, asked, kinds in (
        (unreduced, "unreduced", ("varying", "unreduced")),
        (reduced, "reduced", ("reduced",)),
    ):
        if wrong := [a for a in axes if kind_along(x.aval, a) not in kinds]:
            raise ValueError(
                f"shard_map of {fun_text(f)}: out_specs {spec} say that a result is {asked} along "
                f"{wrong}, and it is {kind_along(x.aval, wrong[0])}: {x.aval.str_short()}, at "
                f"{user_source()}. Say how it is meant with lax.pcast, or name it otherwise."
            )
    x = cast(cast(x, unreduced, "unreduced"), unreduced, "invarying")
    return x


def _check_names(what: str, f: Any, grid: Mesh, spec: Any, manual: Names) -> None:
    check_spec(grid, spec, f"shard_map {what}")
    if (spec.unreduced or spec.reduced) and manual != frozenset(grid.axis_names):
        raise NotImplementedError(
            f"shard_map {what} of {fun_text(f)}: unreduced and reduced axes need a function that "
            f"runs on all axes of the mesh, {grid.axis_names}, got {spec} and "
            f"{sorted(map(str, manual))}, at {user_source()}. Leave axis_names out."
        )
    if others := [n for names in spec.names() for n in names if n not in manual]:
        raise ValueError(
            f"shard_map {what} of {fun_text(f)} must refer to axes that it runs on "
            f"({sorted(map(str, manual))}), but {spec} refers to {others}, at {user_source()}."
        )


def _check_promise(f: Any, spec: PartitionSpec, aval: ShapedArray, manual: Names) -> None:
    """Raise unless a result is the same along the axes that its spec does not name."""
    named = {n for names in spec.names() for n in names}
    more = [n for n in aval.vma if n in manual and n not in named]
    if more:
        raise ValueError(
            f"shard_map of {fun_text(f)}: out_specs {spec} require replication which can't be "
            f"statically inferred: the result, {aval.str_short()}, varies along "
            f"{sorted(map(str, more))}, at {user_source()}. Name these axes in out_specs, bring "
            "the devices' values together with lax.psum or lax.pmean, or pass check_vma=False."
        )


def _of_types(operands: Sequence[Any], manual: Names) -> list[PartitionSpec]:
    """Return the specs that operands' types say: of axes of type Auto they say nothing."""
    return [
        PartitionSpec(
            *(tuple(n for n in names if n in manual) for names in x.aval.cuts),
            unreduced=_sums_outside(x.aval)[0],
            reduced=_sums_outside(x.aval)[1],
        )
        for x in operands
    ]


def _sums_outside(aval: ShapedArray) -> Sums:
    """Return the sums of a value that is no block: its type names its mesh."""
    return aval.sums if aval.place is not None and aval.place.mesh else NO_SUMS


def _cut(
    f: Callable[..., Any],
    arrays: Sequence[Any],
    in_specs: Any,
    args: tuple,
    grid: Mesh,
    manual: Names,
    check_vma: bool,
) -> Layout:
    if isinstance(in_specs, tuple) and len(in_specs) != len(args):
        raise ValueError(
            f"shard_map in_specs must have one entry for each of the {len(args)} arguments of "
            f"{fun_text(f)}, got {in_specs!r}."
        )
    own = _of_types(arrays, manual)
    given = _specs("in_specs", in_specs, args, lambda s: s is None or is_spec(s))
    specs = [s if t is None else t for s, t in zip(own, given, strict=True)]
    blocks = []
    for k, (x, s) in enumerate(zip(arrays, specs, strict=True)):
        where = f"shard_map: the argument {argument_paths(f, args, {})[k]} of {fun_text(f)}"
        check_spec(grid, s, where)
        _check_names("in_specs", f, grid, s, manual)
        _check_type(where, grid, x.aval, s, manual)
        named = frozenset(n for names in s.names() for n in names)
        rest = tuple(tuple(n for n in names if n not in manual) for names in x.aval.cuts)
        at = place(
            () if s.unreduced or s.reduced else grid.shape_tuple,
            rest,
            x.aval.vma | (named if check_vma else frozenset()),
            sums_of_spec(s) if check_vma else NO_SUMS,
        )
        blocks.append(x.aval.update(shape=block_shape(x.shape, grid, s, where), place=at))
    axes = tuple((n, size) for n, size in grid.shape_tuple if n in manual)
    count = 1
    for _, size in axes:
        count *= size
    check_devices("shard_map", count, max(grid.size, len(devices())))
    return Layout(
        axes,
        tuple(specs),
        tuple((*_sum_axes(grid, s), *(n for names in s.names() for n in names)) for s in specs),
        tuple(blocks),
        grid,
        check_vma,
    )


def _check_type(
    where: str, grid: Mesh, aval: ShapedArray, spec: PartitionSpec, manual: Names
) -> None:
    """Raise unless an argument is cut along axes of type Explicit as its spec says."""
    if _sums_outside(aval) != sums_of_spec(spec):
        raise ValueError(
            f"{where}: in_specs {spec} must be unreduced and reduced along the axes that the "
            f"argument is, {aval.str_short()}, at {user_source()}. Leave in_specs out, or use "
            "fnarray.reshard."
        )
    explicit = manual & set(grid.explicit_axes)
    asked = (*spec.names(), *((),) * (aval.ndim - len(spec)))
    for names, typed in zip(asked, aval.cuts, strict=False):
        if [n for n in names if n in explicit] != [n for n in typed if n in explicit]:
            raise ValueError(
                f"{where}: in_specs {spec} does not match the type of the input, "
                f"{aval.str_short()}, at {user_source()}. Leave in_specs out, or cut the argument "
                "as they say: fnarray.reshard, fnarray.device_put."
            )


# ---- blocks --------------------------------------------------------------------------------------


def _untyped(x: Any) -> Any:
    """Return an array whose type does not say how it is cut."""
    if type(x) is PlacedArray:
        return ArrayImpl(x._data, x.aval.update(place=None))
    if isinstance(x, Tracer) and (any(x.aval.cuts) or _sums_outside(x.aval) != NO_SUMS):
        return bind(reshard_p, x, mesh=(), cuts=((),) * x.ndim, sums=NO_SUMS, sharding=None)
    return x


def _whole(x: Any, grid: Mesh, spec: PartitionSpec) -> Any:
    """Return an argument that is to be split; its cotangent will be cut as it is."""
    if isinstance(x, Tracer) and grid.auto_axes and not grid.platform:
        x = constrained(x, NamedSharding(grid, spec))
    return _untyped(x)


def _put_together(x: Any, grid: Mesh, spec: PartitionSpec, aval: ShapedArray, f: Any) -> Any:
    """Return a result put together, and say how it is cut."""
    x = _joined(_untyped(x), grid, spec, f)
    if any(aval.cuts):
        names = (*spec.names(), *((),) * (x.ndim - len(spec)))
        cuts = ((*outer, *inner) or None for outer, inner in zip(names, aval.cuts, strict=True))
        spec = spec.update(partitions=tuple(cuts))
    if grid.platform:  # on workers types do not say where arrays are
        return x
    if set(grid.manual_axes) and not (grid.explicit_axes or grid.auto_axes):
        return x
    if isinstance(x, ArrayElsewhere):
        return x
    where = NamedSharding(grid, spec)
    if isinstance(x, Tracer):
        return moved(x, where, "shard_map")
    return PlacedArray(x._data, x.aval, where)


def _split(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    """Return an array with the axes it is cut along in front, in the spec's order."""
    sizes, block = mesh.shape, block_shape(x.shape, mesh, spec, "shard_map")
    if sums := _sum_axes(mesh, spec):
        rest = _split(x, mesh, spec.update(unreduced=frozenset()))
        first = reshape(rest, (*(1 for _ in sums), *rest.shape))
        # The first device has the sum, and others add nothing to it.
        more = [(0, sizes[n] - 1, 0) for n in sums]
        return pad(first, 0, (*more, *((0, 0, 0) for _ in rest.shape)))
    shape: list[int] = []
    front: list[int] = []
    names = (*spec.names(), *((),) * (x.ndim - len(spec)))
    for n, along in zip(block, names, strict=True):
        front += range(len(shape), len(shape) + len(along))
        shape += [*(sizes[a] for a in along), n]
    if not front:
        return x
    kept = [k for k in range(len(shape)) if k not in front]
    return permute(reshape(x, shape), (*front, *kept))


def _sum_axes(mesh: Mesh, spec: PartitionSpec) -> tuple[Hashable, ...]:
    """Return the axes of partial sums, in the mesh's order: of these each device has its own."""
    return tuple(n for n in mesh.axis_names if n in spec.unreduced)


def _joined(x: Any, mesh: Mesh, spec: PartitionSpec, f: Callable[..., Any]) -> Any:
    """Undo `_split` on a result."""
    names = spec.names()
    count = sum(map(len, names))
    rank = x.ndim - count
    block(f, spec, x.shape[count:])
    order: list[int] = []
    shape: list[int] = []
    front = 0
    for k in range(rank):
        along = names[k] if k < len(names) else ()
        order += [*range(front, front + len(along)), count + k]
        size = x.shape[count + k]
        for j in range(front, front + len(along)):
            size *= x.shape[j]
        shape.append(size)
        front += len(along)
    return reshape(permute(x, order), shape)
