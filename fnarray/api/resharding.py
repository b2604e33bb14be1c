"""What programs say about where their arrays are: shardings asked for, and arrays made of parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from ..control.signature import fun_text
from ..core import tree
from ..core.array import Array, ArrayElsewhere, Deletable, asarray
from ..core.avals import NO_SUMS
from ..core.callables import named_as
from ..core.dtypes import canonicalize_dtype
from ..core.source import user_source
from ..core.trace import Tracer, accepted, bind
from ..errors import ShardingTypeError
from ..ops.kit.canonical import as_array
from ..ops.placing import constrained, placed_as, reshard_p
from ..runtime.ambient import AbstractMesh, get_abstract_mesh, use_abstract_mesh
from ..runtime.device import Device
from ..runtime.layout import Format, check_layout
from ..runtime.mesh import AxisType, Mesh, current_mesh, mesh_for
from ..runtime.placed import PlacedArray, others_of_sums, put
from ..runtime.spec import (
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    block_shape,
    check_rank,
    place_of,
)

__all__ = [
    "auto_axes",
    "explicit_axes",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "reshard",
    "with_sharding_constraint",
]

Where = Sharding | Device | None


def is_where(x: Any) -> bool:
    """Whether a value says where one array is, and is no tree of such."""
    return x is None or isinstance(x, PartitionSpec | Sharding | Device | Format)


def named(what: str, where: Any, error: type[Exception] = ValueError) -> Any:
    """Return the sharding that a spec stands for, on the mesh about the program.

    Raises
    ------
    Exception
        There is no mesh; of a type that differs between functions.
    NotImplementedError
        A format asks for a layout that arrays do not have.
    """
    if isinstance(where, Format):
        check_layout(what, where.layout)
        where = where.sharding
    if not isinstance(where, PartitionSpec):
        return where
    types = get_abstract_mesh()
    if types.empty:
        raise error(
            f"{what}: {where} names axes of a mesh, and there is none about the program, at "
            f"{user_source()}. Enter one: with fnarray.set_mesh(mesh), or give a NamedSharding."
        )
    mesh = current_mesh()
    if mesh is not None and mesh.shape_tuple == types.shape_tuple:
        return NamedSharding(mesh.update(axis_types=types.axis_types), where)
    return NamedSharding(types, where)  # type: ignore[arg-type] - no devices are needed


def shardings_for(
    what: str, where: Any, x: Any, error: type[Exception] = ValueError
) -> list[Where]:
    """Return a sharding for each leaf of a tree, of a tree of them that is a prefix."""
    if is_where(where):
        return [named(what, where, error)] * len(tree.leaves(x))
    try:
        spread = tree.broadcast_prefix(where, x, is_leaf=is_where)
    except (ValueError, TypeError) as problem:
        raise ValueError(
            f"{what}: shardings must be a tree prefix of the values, at {user_source()}. Got "
            f"{where!r} for {tree.structure(x)}. {problem}"
        ) from None
    for one in spread:
        if not is_where(one):
            raise ValueError(
                f"{what}: device must be a Device of fnarray.devices(), a Sharding, a "
                f"PartitionSpec or None, got {one!r}."
            )
    return [named(what, one, error) for one in spread]


def moved(x: Any, where: Any, what: str) -> Any:
    """Return an array, or what is traced, said to be somewhere."""
    if not isinstance(x, Array):
        x = asarray(x)
    if isinstance(where, NamedSharding) and where.mesh.empty:  # as the type of what is uncut says
        return x
    to = SingleDeviceSharding(where) if isinstance(where, Device) else where
    there = to.platform if isinstance(to, Sharding) else None
    if there is not None and not isinstance(x, Tracer):
        return there.put(x, to)
    if isinstance(where, NamedSharding):
        block_shape(x.shape, where.mesh, where.spec, what)  # raises for one that does not divide
    if not isinstance(x, Tracer):
        if isinstance(where, NamedSharding) and not isinstance(where.mesh, Mesh):
            types = where.mesh.axis_types  # pyright: ignore[reportAttributeAccessIssue]
            mesh = mesh_for(where.mesh.shape_tuple).update(axis_types=types)  # pyright: ignore
            where = NamedSharding(mesh, where.spec)
        places = where._assignment() if isinstance(where, Sharding) else [where]
        if len(places) == 1 and isinstance(places[0], Device) and places[0].platform == "gpu":
            from ..runtime import gpu  # asked for by whoever has one

            return gpu.put(x, places[0])
        here: Any = x.on_host() if isinstance(x, ArrayElsewhere) and where is not None else x
        return put(here, where)
    if not isinstance(where, NamedSharding):
        return x
    at = place_of(where, x.ndim)
    asked = x.aval.update(place=at)
    if (asked.cuts, asked.sums) != (x.aval.cuts, x.aval.sums):
        mesh, cuts = where.mesh.shape_tuple, asked.cuts
        x = bind(reshard_p, x, mesh=mesh, cuts=cuts, sums=asked.sums, sharding=where)
    if where.mesh.auto_axes:
        x = constrained(x, where)
    return x


def reshard(x: Any, out_shardings: Any) -> Any:
    """Return a tree of arrays cut otherwise.

    Parameters
    ----------
    x : pytree of arrays
    out_shardings : Sharding or PartitionSpec, or a tree of them that is a prefix of ``x``
        A `PartitionSpec` is one on the mesh about the program (`set_mesh`).

    Raises
    ------
    ValueError
        There is no mesh; the spec names axes that it has not, or that are not of type Explicit, or
        an array is no multiple of the devices along them.
    """
    leaves, structure = tree.flatten_spec(x)
    out = []
    for leaf, where in zip(leaves, shardings_for("reshard", out_shardings, x), strict=True):
        if where is None:
            raise ValueError(
                f"reshard: a sharding must say where each array is to be, got None, at "
                f"{user_source()}. Use PartitionSpec() for one that is not cut."
            )
        if isinstance(where, NamedSharding) and not where.platform:
            _check_explicit(where)
            where = _of_rank(where, np.ndim(leaf))
        out.append(moved(leaf, where, "reshard"))
    return structure.unflatten(out)


def _check_explicit(where: NamedSharding) -> None:
    types = dict(zip(where.mesh.axis_names, where.mesh.axis_types, strict=True))
    for name in (n for names in where.spec.names() for n in names):
        if types[name] is not AxisType.Explicit:
            raise ValueError(
                f"reshard: PartitionSpec cannot contain axis names that are of type Auto or "
                f"Manual, got {where.spec} with axis {name!r} of type {types[name]}, at "
                f"{user_source()}. Use fnarray.lax.with_sharding_constraint for axes of type Auto."
            )


def cut_as(where: Any, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function, and return its result on the device, or cut, as is said."""
    with accepted():
        out = f(*args, **kwargs)
    if isinstance(where, PartitionSpec | NamedSharding):
        where = named(getattr(f, "__name__", "out_sharding"), where)
        _check_summed(getattr(f, "__name__", "out_sharding"), where, (args, kwargs))
        where = tree.map(lambda x: _of_rank(where, x.ndim), out)
        return tree.map(lambda x, w: moved(x, w, "out_sharding"), out, where)
    if not is_where(where):
        raise TypeError(
            f"{getattr(f, '__name__', 'out_sharding')}: `out_sharding` only supports instances of "
            f"`NamedSharding` or `PartitionSpec`, and `device` a Device or a Sharding, got "
            f"{where!r} of type {type(where)}, at {user_source()}."
        )
    return tree.map(lambda x: moved(x, where, "device"), out)


def _check_summed(what: str, where: NamedSharding, operands: Any) -> None:
    """Raise unless a result's partial sums are over axes that some operand is cut along, or has."""
    arrays = [x.aval for x in tree.leaves(operands) if isinstance(x, Array)]
    known = {n for a in arrays for names in (*a.cuts, a.sums[0]) for n in names}
    if arrays and (more := where.spec.unreduced - known):
        raise ShardingTypeError(
            f"{what}: out_sharding's unreduced axes should be those along which what is summed is "
            f"cut: no operand is along {sorted(map(str, more))}, at {user_source()}. Operands are "
            f"{', '.join(a.str_short(True) for a in arrays)}. Cut them with fnarray.reshard."
        )


def placed_like(x: Any, like: Any) -> Any:
    """Return an array of an array's shape, where that is."""
    if isinstance(like, PlacedArray):
        return moved(x, like.placement, "full_like")
    return placed_as(x, like.aval)


def _of_rank(where: NamedSharding, rank: int) -> NamedSharding:
    """Return a sharding whose spec says something of every axis."""
    spec = where.spec
    while len(spec) > rank and spec[-1] is None:
        spec = spec.update(partitions=spec.partitions[:-1])
    # A type has an entry for each axis; a sharding of axes of type Auto is kept as it was given.
    rest = 0 if where.mesh.are_all_axes_auto else rank - len(spec)
    return where.update(spec=spec.update(partitions=(*spec.partitions, *(None,) * rest)))


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Return a tree of arrays, with a word about how they are to be cut.

    Parameters
    ----------
    x : pytree of arrays
    shardings : Sharding or PartitionSpec, or a tree of them that is a prefix of ``x``

    Raises
    ------
    RuntimeError
        A `PartitionSpec` where no mesh is about the program.
    AssertionError
        All axes are of type Explicit, and an array is cut otherwise: its type says so already.
    """
    what = "with_sharding_constraint"
    leaves, structure = tree.flatten_spec(x)
    out = []
    for leaf, where in zip(leaves, shardings_for(what, shardings, x, RuntimeError), strict=True):
        if isinstance(where, NamedSharding) and where.mesh.are_all_axes_explicit:
            leaf = as_array(leaf)
            check_rank(where.spec, leaf.shape, what)
            asked = leaf.aval.update(place=place_of(where, leaf.ndim))
            if (asked.cuts, asked.sums) != (leaf.aval.cuts, leaf.aval.sums):
                raise AssertionError(
                    f"{what} acts as an assert when all axes of the mesh are of type Explicit: the "
                    f"array {leaf.aval.str_short()} is not cut as {where.spec}, at "
                    f"{user_source()}. Use fnarray.reshard to change that."
                )
        out.append(leaf if where is None else moved(leaf, where, what))
    return structure.unflatten(out)


# ---- regions -------------------------------------------------------------------------------------


def retyped(x: Any, names: Iterable[Hashable], kind: AxisType) -> Any:
    """Return an array with axes of its mesh of another type, cut as it was."""
    x = as_array(x)
    if isinstance(placement := getattr(x, "placement", None), NamedSharding):
        mesh = placement.mesh
        types = mesh.types_changed({n: kind for n in names if n in mesh.axis_names})
        return moved(x, NamedSharding(mesh.update(axis_types=types), placement.spec), "auto_axes")
    if not isinstance(x, Tracer) or kind is AxisType.Explicit or not any(x.aval.cuts):
        return x
    assert x.aval.place is not None
    gone = set(names)
    cuts = tuple(tuple(n for n in ns if n not in gone) for ns in x.aval.cuts)
    whole = PartitionSpec(*(ns or None for ns in x.aval.cuts))
    mesh = mesh_for(x.aval.place.mesh)
    where = NamedSharding(mesh, whole)
    return bind(reshard_p, x, mesh=mesh.shape_tuple, cuts=cuts, sums=NO_SUMS, sharding=where)


def _region(
    what: str, axes: Any, kind: AxisType, mesh: AbstractMesh
) -> tuple[tuple[Hashable, ...], AbstractMesh]:
    """Return the axes that change their type, and the mesh with them."""
    if mesh.empty:
        raise ValueError(
            f"{what}: there is no mesh about the program, at {user_source()}. Enter one: with "
            "fnarray.set_mesh(mesh)."
        )
    names = (axes,) if isinstance(axes, str) else tuple(axes or ()) or mesh.axis_names
    return names, mesh.update_axis_types(dict.fromkeys(names, kind))


def auto_axes(
    fun: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Callable[..., Any]:
    """Return a function in which types do not say how arrays are cut.

    Parameters
    ----------
    fun : callable
    axes : name or sequence of names, optional
        Axes of the mesh that are of type Auto inside; all by default.
    out_sharding : PartitionSpec or Sharding, or a tree of them
        How the results are cut, outside; it may be given to the function in a call.

    Raises
    ------
    TypeError
        ``out_sharding`` is given nowhere.
    """
    if fun is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    given = out_sharding

    @named_as(fun)
    def inside(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        wanted = given if out_sharding is None else out_sharding
        if wanted is None:
            raise TypeError(
                f"auto_axes: Missing required keyword argument: 'out_sharding', of {fun_text(fun)},"
                f" at {user_source()}."
            )
        names, mesh = _region("auto_axes", axes, AxisType.Auto, get_abstract_mesh())
        args, kwargs = tree.map(lambda x: retyped(x, names, AxisType.Auto), (args, kwargs))
        with use_abstract_mesh(mesh):
            out = fun(*args, **kwargs)
        return reshard(tree.map(as_array, out), wanted)

    return inside


def explicit_axes(
    fun: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Callable[..., Any]:
    """Return a function in which types say how arrays are cut.

    Parameters
    ----------
    fun : callable
    axes : name or sequence of names, optional
        Axes of the mesh that are of type Explicit inside; all by default.
    in_sharding : PartitionSpec or Sharding, or a tree of them
        How the arguments are cut, inside; it may be given to the function in a call.

    Raises
    ------
    TypeError
        ``in_sharding`` is given nowhere.
    """
    if fun is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    given = in_sharding

    @named_as(fun)
    def inside(*args: Any, in_sharding: Any = None, **kwargs: Any) -> Any:
        wanted = given if in_sharding is None else in_sharding
        if wanted is None:
            raise TypeError(
                f"explicit_axes: Missing required keyword argument: 'in_sharding', of "
                f"{fun_text(fun)}, at {user_source()}."
            )
        names, mesh = _region("explicit_axes", axes, AxisType.Explicit, get_abstract_mesh())
        if len(args) == 1 and isinstance(wanted, PartitionSpec | Sharding):
            wanted = (wanted,)
        with use_abstract_mesh(mesh):
            out = fun(*reshard(tree.map(as_array, args), wanted), **kwargs)
        return tree.map(lambda x: retyped(x, names, AxisType.Auto), out)

    return inside


# ---- arrays of parts -----------------------------------------------------------------------------


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Any,
    data_callback: Callable[[Any], Any],
    dtype: Any = None,
) -> Array:
    """Return an array whose parts a function makes.

    Parameters
    ----------
    shape : sequence of int
    sharding : Sharding
    data_callback : callable
        From the index of a part, a tuple of slices, to its elements.
    dtype : dtype-like, optional
        That of the parts by default.

    Raises
    ------
    ValueError
        A part has another shape than its index, or another dtype than asked for.
    """
    shape = tuple(shape)
    if there := sharding.platform:
        return there.from_callback(shape, sharding, data_callback, dtype)
    if others_of_sums(sharding):
        raise NotImplementedError(
            f"make_array_from_callback: partial sums have no index, got {sharding} at "
            f"{user_source()}. Use make_array_from_single_device_arrays, or reshard a whole."
        )
    whole: np.ndarray | None = None
    done: set[Any] = set()
    for index in sharding.devices_indices_map(shape).values():
        key = tuple((s.start, s.stop) for s in index)
        if key in done:
            continue
        done.add(key)
        part = np.asarray(data_callback(index))
        if dtype is not None and canonicalize_dtype(part.dtype) != canonicalize_dtype(dtype):
            raise ValueError(
                f"make_array_from_callback: dtype={np.dtype(dtype)} must be that of the parts, got "
                f"{part.dtype} at {index}, at {user_source()}. Convert them in data_callback."
            )
        if whole is None:
            whole = np.empty(shape, part.dtype if dtype is None else np.dtype(dtype))
        if part.shape != whole[index].shape:
            raise ValueError(
                f"make_array_from_callback: Expected shard shape {whole[index].shape}: the part at "
                f"{index} of an array of shape {shape} must have shape {whole[index].shape}, got "
                f"{part.shape}, at {user_source()}."
            )
        whole[index] = part
    return put(asarray(np.empty(shape) if whole is None else whole), sharding)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """Return an array of the parts that devices have, in any order.

    Raises
    ------
    TypeError
        A part is no array of a device.
    ValueError
        There are not as many parts as devices, they are not on those, or their shapes are others.
    """
    for x in arrays:
        if not isinstance(x, Deletable):
            raise TypeError(
                f"make_array_from_single_device_arrays: Unsupported type for elements in `arrays`: "
                f"{type(x)}, at {user_source()}. Put each on its device: fnarray.device_put."
            )
    where = sharding.devices_indices_map(tuple(shape))
    if len(arrays) != len(where):
        raise ValueError(
            f"make_array_from_single_device_arrays: there must be a part for each of {len(where)} "
            f"devices, got {len(arrays)}, at {user_source()}."
        )
    by_device = {next(iter(x.devices())): x for x in arrays}
    if by_device.keys() != where.keys():
        raise ValueError(
            "make_array_from_single_device_arrays: the arrays must be from distinct devices, those "
            f"of the sharding: got parts on {sorted(d.id for d in by_device)} for "
            f"{sorted(d.id for d in where)}, at {user_source()}. Put each on its device: "
            "fnarray.device_put(part, device)."
        )
    if others_of_sums(sharding):
        return put(asarray(_summed_parts(shape, sharding, by_device, dtype)), sharding)
    # Of parts that are to be copies of one another the first device's counts, as in JAX.
    found = {_bounds(index): by_device[device] for device, index in reversed(where.items())}
    return make_array_from_callback(shape, sharding, lambda index: found[_bounds(index)], dtype)


def _summed_parts(shape: Sequence[int], sharding: NamedSharding, parts: Any, dtype: Any) -> Any:
    """Return the whole of parts of which some are partial sums: each is counted once."""
    mesh, sums = sharding.mesh, sharding.spec.unreduced
    along = [k for k, name in enumerate(mesh.axis_names) if name in sums]
    whole = np.zeros(tuple(shape), dtype or next(iter(parts.values())).dtype)
    indices = sharding.devices_indices_map(tuple(shape))
    done: set[Any] = set()
    for at in np.ndindex(mesh.devices.shape):
        device: Any = mesh.devices[at]
        key = _bounds(indices[device]), tuple(at[k] for k in along)
        if key not in done:
            done.add(key)
            whole[indices[device]] += np.asarray(parts[device])
    return whole


def _bounds(index: Any) -> tuple[Any, ...]:
    return tuple((s.start, s.stop) for s in index)


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Sequence[int] | None = None
) -> Any:
    """Return arrays of what this process has of them: all, as it is the only one."""

    def whole(x: Any) -> Array:
        x = asarray(np.asarray(x))
        if global_shape is not None and tuple(global_shape) != x.shape:
            raise ValueError(
                "make_array_from_process_local_data: the only process has all of an array, got "
                f"shape {x.shape} for {tuple(global_shape)}."
            )
        return moved(x, sharding, "make_array_from_process_local_data")

    return tree.map(whole, local_data)
