"""Arrays of which it is said where they are.

All devices share the host's memory, so an array that is cut is an array, and a word about it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.array import ArrayElsewhere, ArrayImpl, ArrayPlaced, _Deleted, default
from ..core.avals import ShapedArray
from ..core.frozen import frozen
from ..errors import UnsupportedOnTarget
from .device import Device, devices, processor
from .mesh import current_mesh
from .spec import Index, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding, place_of


class PlacedArray(ArrayPlaced):
    """An array of which it is said where it is."""

    __slots__ = ("_known_as", "placement")

    _known_as: Any  # over that of arrays of which it is not

    def __init__(self, data: np.ndarray, aval: ShapedArray, placement: Sharding):
        super().__init__(data, aval.update(place=place_of(placement, aval.ndim)))
        self.placement = placement
        self._known_as = _known.setdefault((self.aval, placement), object())

    def __copy__(self) -> PlacedArray:
        return PlacedArray(self._data.copy(), self.aval, self.placement)

    def __iter__(self):
        yield from ArrayImpl(self._data, self.aval.update(place=None))


class DeletedPlaced(_Deleted, PlacedArray):  # pyright: ignore[reportIncompatibleVariableOverride]
    """An array that was deleted: its shape, its dtype and where it was are still known."""

    __slots__ = ()


PlacedArray._deleted = DeletedPlaced  # pyright: ignore[reportPrivateUsage]

#: One object for each type and place: compared, and hashed, faster than they are.
_known: dict[tuple[ShapedArray, Sharding], object] = {}


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
    """Return where an array is; one of which it is not said is where the program is."""
    if (placement := getattr(x, "placement", None)) is not None:
        return placement
    words = getattr(x, "_base", None)  # of random keys
    if type(words) is PlacedArray:
        where = words.placement
        if isinstance(where, NamedSharding):
            where = where.update(spec=PartitionSpec(*where.spec[: x.ndim]))
        return where
    mesh = current_mesh()
    if mesh is not None and mesh.platform is None and type(x) is ArrayImpl:
        return NamedSharding(mesh, PartitionSpec(*(None,) * (x.ndim if mesh.explicit_axes else 0)))
    return SingleDeviceSharding(getattr(x, "place", None) or processor())


def shards_of(x: Any) -> list[Shard]:
    """Return the parts of an array, by device."""
    if (own := getattr(x, "shards", None)) is not None:  # of an array in parts elsewhere
        return own()
    if isinstance(x, ArrayElsewhere):
        return [Shard(x.place, (slice(None),) * x.ndim, 0, x)]
    out, seen = [], {}
    where = sharding_of(x)
    others = others_of_sums(where)
    for device, index in where.devices_indices_map(x.shape).items():
        key = tuple((s.start, s.stop) for s in index)
        seen[key] = replica = seen.get(key, -1) + 1
        data = np.ascontiguousarray(x._data[index]).reshape(x._data[index].shape)
        if device in others:  # a sum is kept whole: it is the first device's part, others add none
            data = np.zeros_like(data)
        aval = x.aval.update(shape=data.shape, place=None)
        part = PlacedArray(data, aval, SingleDeviceSharding(device))
        out.append(Shard(device, index, replica, part))
    return out


def others_of_sums(sharding: Sharding) -> set[Device]:
    """Return the devices that are not the first along axes of partial sums."""
    if not isinstance(sharding, NamedSharding) or not sharding.spec.unreduced:
        return set()
    mesh = sharding.mesh
    along = [k for k, name in enumerate(mesh.axis_names) if name in sharding.spec.unreduced]
    devices: Any = mesh.devices
    return {devices[at] for at in np.ndindex(devices.shape) if any(at[k] for k in along)}


def put(x: ArrayImpl, where: Any) -> ArrayImpl:
    """Return an array said to be somewhere: on a device, or on several by a sharding."""
    if where is None:
        return x
    sharding: Any = SingleDeviceSharding(where) if isinstance(where, Device) else where
    if not isinstance(sharding, Sharding):
        raise ValueError(
            "device_put: device must be a Device of fnarray.devices(), a Sharding or None, got "
            f"{where!r}."
        )
    sharding.shard_shape(x.shape)  # raises for one that does not divide
    if type(x) is PlacedArray and x.placement == sharding:
        return x
    if any(d.platform == "gpu" for d in sharding._assignment()):
        raise UnsupportedOnTarget(
            f"an array cannot lie in parts on GPUs, got {sharding}. Put it on one of them, and let "
            "pmap or shard_map share it out; or make the mesh of fnarray.devices('cpu')."
        )
    # Plain numbers go where others are, unless it is said of them where they stay.
    nowhere = type(x) is ArrayImpl and (x.ndim > 0 or default.find is None)
    if nowhere and sharding == SingleDeviceSharding(processor()) and len(devices("cpu")) == 1:
        return x  # where else it might be
    return PlacedArray(x._data, x.aval, sharding)


def placement_of(x: Any) -> Sharding | None:
    """Return where an array is said to be; None of one that may be anywhere."""
    return x.placement if type(x) is PlacedArray else None


def is_committed(x: Any) -> bool:
    """Whether it is said where an array is; all others are wherever they are needed."""
    return getattr(x, "placement", None) is not None or (
        type(x) is ArrayImpl and current_mesh() is not None
    )
