"""Meshes of devices, and which part of an array each device has.

All devices share the host's memory, so a sharding moves nothing: it says which device works on
which part.
"""

from __future__ import annotations

import enum
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ..core.array import ArrayImpl
from ..core.avals import ShapedArray
from ..core.frozen import frozen
from .device import Device, Platform, devices, platform_of

Index = tuple[slice, ...]


class _Meshes(threading.local):
    entered: tuple[Mesh, ...] = ()


_meshes = _Meshes()


class AxisType(enum.Enum):
    """Who decides along which axes of a mesh arrays are cut."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


def types_of(given: Any, count: int) -> tuple[AxisType, ...]:
    """Return the types of a mesh's axes, ``Auto`` where none are given.

    Raises
    ------
    ValueError
        They are not as many as axes.
    """
    if given is None:
        return (AxisType.Auto,) * count
    types = (given,) * count if isinstance(given, AxisType) else tuple(given)
    if len(types) != count or not all(isinstance(t, AxisType) for t in types):
        raise ValueError(
            f"Mesh: axis_types must be an AxisType for each of {count} axes, got {given}."
        )
    return types


def types_text(types: tuple[AxisType, ...]) -> str:
    """Return types as meshes show them."""
    return f"({', '.join(map(repr, types))}{',' * (len(types) == 1)})"


class Mesh:
    """Devices on a grid whose axes have names.

    Parameters
    ----------
    devices : array_like of Device
    axis_names : sequence of hashable, or one
        One for each axis of ``devices``.
    axis_types : AxisType or sequence of them, optional
        ``Auto`` by default.

    Raises
    ------
    ValueError
        As many names as axes are needed, all different.
    """

    __slots__ = ("axis_names", "axis_types", "devices")

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None):
        grid = np.array(devices, dtype=object)
        names = tuple(axis_names) if isinstance(axis_names, tuple | list) else (axis_names,)
        if grid.ndim != len(names) or len(set(names)) != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of "
                f"its second argument (`axis_names`), all different, but got devices.ndim == "
                f"{grid.ndim} and axis_names == {names}."
            )
        grid.flags.writeable = False
        self.devices = grid
        self.axis_names: tuple[Hashable, ...] = names
        self.axis_types = types_of(axis_types, len(names))

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """Sizes by name."""
        return OrderedDict(zip(self.axis_names, self.devices.shape, strict=True))

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes in order."""
        return self.devices.shape

    @property
    def size(self) -> int:
        """Number of devices."""
        return self.devices.size

    @property
    def empty(self) -> bool:
        """Whether it has no axes."""
        return self.devices.ndim == 0

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return list(self.devices.flat)

    @property
    def device_ids(self) -> np.ndarray:
        """Numbers of the devices, on the same grid."""
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    def __enter__(self) -> Mesh:
        _meshes.entered += (self,)
        return self

    def __exit__(self, *exc: object) -> None:
        _meshes.entered = _meshes.entered[:-1]

    @property
    def platform(self) -> Platform | None:
        """What runs programs on devices that are not of this process; None where they are."""
        return platform_of(self.devices.flat)

    def _key(self) -> Any:
        return self.axis_names, self.devices.shape, tuple(self.devices.flat), self.axis_types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        axes = ", ".join(f"{name!r}: {n}" for name, n in self.shape.items())
        return f"Mesh({axes}, axis_types={types_text(self.axis_types)})"


def current_mesh() -> Mesh | None:
    """Return the mesh entered last by ``with mesh:``, or None."""
    return _meshes.entered[-1] if _meshes.entered else None


def enter(mesh: Mesh) -> tuple[Mesh, ...]:
    """Make a mesh the current one; return those that were entered before."""
    before = _meshes.entered
    _meshes.entered = (*before, mesh)
    return before


def leave(before: tuple[Mesh, ...]) -> None:
    """Return to the meshes that were entered before."""
    _meshes.entered = before


#: The mesh of no devices.
EMPTY = Mesh(np.empty((), object), ())


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: Any = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """Return a mesh of the first devices.

    Raises
    ------
    ValueError
        There are not that many.
    """
    pool = list(_all_devices() if devices is None else devices)
    count = prod(axis_shapes)
    if count > len(pool):
        raise ValueError(
            f"make_mesh: number of devices {len(pool)} must be >= the product of mesh_shape "
            f"{tuple(axis_shapes)}. Set FNARRAY_NUM_CPU_DEVICES or config.num_cpu_devices."
        )
    return Mesh(
        np.array(pool[:count], dtype=object).reshape(tuple(axis_shapes)), axis_names, axis_types
    )


_all_devices = devices


class PartitionSpec:
    """Along which axes of a mesh each axis of an array is cut.

    Parameters
    ----------
    *partitions : None, a name, or a tuple of names
        For each axis of the array; those left out are not cut.
    """

    __slots__ = ("_partitions",)

    def __init__(self, *partitions: Any):
        self._partitions = tuple(tuple(p) if isinstance(p, list) else p for p in partitions)

    def names(self) -> tuple[tuple[Hashable, ...], ...]:
        """Return the mesh axes of each axis of the array."""
        return tuple(
            () if p is None else p if isinstance(p, tuple) else (p,) for p in self._partitions
        )

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __getitem__(self, k: int) -> Any:
        return self._partitions[k]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PartitionSpec):
            return self._partitions == other._partitions
        return self._partitions == other if isinstance(other, tuple) else False

    def __hash__(self) -> int:
        return hash(self._partitions)

    def __repr__(self) -> str:
        return f"PartitionSpec{self._partitions!r}"


P = PartitionSpec


class Sharding:
    """Which part of an array each of some devices has; base of the two kinds."""

    __slots__ = ()

    @property
    def device_set(self) -> set[Device]:
        """The devices."""
        return set(self._assignment())

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process: all."""
        return self.device_set

    @property
    def num_devices(self) -> int:
        """How many devices there are."""
        return len(self._assignment())

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process: they do."""
        return True

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has the whole array."""
        return True

    @property
    def memory_kind(self) -> str:
        """Where the memory is."""
        return "device"

    def _assignment(self) -> list[Device]:
        return []

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of one device's part of an array."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Return the part of an array that each device has."""
        return {d: (slice(None),) * len(global_shape) for d in self._assignment()}

    addressable_devices_indices_map = devices_indices_map


@frozen
class SingleDeviceSharding(Sharding):
    """All of an array on one device."""

    _device: Device

    def _assignment(self) -> list[Device]:
        return [self._device]

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind=device)"


@frozen
class NamedSharding(Sharding):
    """An array cut along the axes of a mesh.

    Parameters
    ----------
    mesh : Mesh
    spec : PartitionSpec

    Raises
    ------
    ValueError
        The spec names an axis that the mesh does not have, or one twice.
    """

    mesh: Mesh
    spec: PartitionSpec

    def __post_init__(self) -> None:
        check_spec(self.mesh, self.spec)

    def _assignment(self) -> list[Device]:
        return list(self.mesh.devices.flat)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has the whole array."""
        shape = self.mesh.shape
        return all(shape[n] == 1 for names in self.spec.names() for n in names)

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of one device's part of an array."""
        return block_shape(tuple(global_shape), self.mesh, self.spec, "NamedSharding")

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Return the part of an array that each device has."""
        block = self.shard_shape(global_shape)
        sizes = self.mesh.shape
        found = {}
        for at in np.ndindex(self.mesh.devices.shape):
            place = dict(zip(self.mesh.axis_names, at, strict=True))
            index = [slice(None)] * len(block)
            for axis, names in enumerate(self.spec.names()):
                k = 0
                for name in names:
                    k = k * sizes[name] + place[name]
                if names:
                    index[axis] = slice(k * block[axis], (k + 1) * block[axis])
            found[self.mesh.devices[at]] = tuple(index)
        return found

    addressable_devices_indices_map = devices_indices_map

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh!r}, spec={self.spec!r}, memory_kind=device)"


def check_spec(mesh: Mesh, spec: Any, what: str = "NamedSharding") -> None:
    """Raise unless a spec names axes of a mesh, each once."""
    if not isinstance(spec, PartitionSpec):
        raise TypeError(f"{what}: expected a PartitionSpec, got {spec!r} of type {type(spec)}.")
    named = [n for names in spec.names() for n in names]
    for name in named:
        if name not in mesh.axis_names:
            raise ValueError(
                f"{what}: resource axis {name!r} of {spec} is not found in the mesh, whose axes "
                f"are {mesh.axis_names}."
            )
    if len(set(named)) != len(named):
        raise ValueError(f"{what}: a mesh axis is named more than once in {spec}.")


def block_shape(
    shape: tuple[int, ...], mesh: Mesh, spec: PartitionSpec, what: str
) -> tuple[int, ...]:
    """Return the shape of one device's block; raise `ValueError` for one that does not divide."""
    sizes = mesh.shape
    if len(spec) > len(shape):
        raise ValueError(
            f"{what}: {spec} is for arrays of rank at least {len(spec)}, but got one of shape "
            f"{shape}."
        )
    out = list(shape)
    for axis, names in enumerate(spec.names()):
        parts = prod(sizes[n] for n in names)
        if shape[axis] % parts:
            raise ValueError(
                f"{what}: {spec} implies that array axis {axis} is partitioned {parts} times, but "
                f"the dimension size is {shape[axis]} (full shape: {shape}), which is not a "
                "multiple."
            )
        out[axis] //= parts
    return tuple(out)


# ---- arrays with a sharding ----------------------------------------------------------------------


class PlacedArray(ArrayImpl):
    """An array of which it is said where it is."""

    __slots__ = ("placement",)

    def __init__(self, data: np.ndarray, aval: ShapedArray, placement: Sharding):
        super().__init__(data, aval)
        self.placement = placement


@frozen(eq=False)
class Shard:
    """One device's part of an array.

    Attributes
    ----------
    device : Device
    index : tuple of slice
        Which part it is.
    replica_id : int
        Which of the devices that have this part.
    data : Array
    """

    device: Device
    index: Index
    replica_id: int
    data: Any

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


def sharding_of(x: Any) -> Sharding:
    """Return where an array is."""
    if (placement := getattr(x, "placement", None)) is not None:
        return placement
    return SingleDeviceSharding(getattr(x, "place", None) or devices()[0])


def shards_of(x: Any) -> list[Shard]:
    """Return the parts of an array, by device."""
    if (own := getattr(x, "shards", None)) is not None:  # of an array that is elsewhere
        return own()
    out, seen = [], {}
    for device, index in sharding_of(x).devices_indices_map(x.shape).items():
        key = tuple((s.start, s.stop) for s in index)
        seen[key] = replica = seen.get(key, -1) + 1
        data = np.ascontiguousarray(x._data[index]).reshape(x._data[index].shape)
        part = PlacedArray(data, x.aval.update(shape=data.shape), SingleDeviceSharding(device))
        out.append(Shard(device, index, replica, part))
    return out


def put(x: ArrayImpl, where: Any) -> ArrayImpl:
    """Return an array said to be somewhere: on a device, or on several by a sharding."""
    if where is None:
        return x
    sharding = SingleDeviceSharding(where) if isinstance(where, Device) else where
    if not isinstance(sharding, Sharding):
        raise TypeError(
            "device_put: device must be a Device of fnarray.devices(), a Sharding or None, got "
            f"{where!r}."
        )
    sharding.shard_shape(x.shape)  # raises for one that does not divide
    if getattr(x, "sharding", None) == sharding:
        return x
    return PlacedArray(x._data, x.aval, sharding)
