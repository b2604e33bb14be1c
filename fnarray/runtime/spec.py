"""Shardings: which part of an array each device has.

All devices share the host's memory, so a sharding moves nothing: it says which device works on
which part.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence, Set
from math import prod
from typing import Any

import numpy as np

from ..core.avals import Cuts, Place, Sums, place
from ..core.frozen import frozen
from ..core.source import user_source
from .device import MEMORY_KINDS, Device, Platform, platform_of
from .mesh import AxisType, Grid, Mesh

Index = tuple[slice, ...]


class Unconstrained:
    """An axis of which the compiler decides how it is cut."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"


class PartitionSpec:
    """Along which axes of a mesh each axis of an array is cut.

    Parameters
    ----------
    *partitions : None, a name, or a tuple of names
        For each axis of the array; those left out are not cut.
    unreduced, reduced : set of names
        Axes along which devices have partial sums of the array, and along which they have it whole
        and its cotangents are partial sums.

    Raises
    ------
    TypeError
        ``unreduced`` or ``reduced`` is no set.
    ValueError
        An axis is named in two of the three, or None is.
    """

    __slots__ = ("_partitions", "reduced", "unreduced")

    def __init__(
        self,
        *partitions: Any,
        unreduced: Set[Hashable] = frozenset(),
        reduced: Set[Hashable] = frozenset(),
    ):
        self.unreduced = _names_of("unreduced", unreduced)
        self.reduced = _names_of("reduced", reduced)
        self._partitions = tuple(
            (p[0] if len(p) == 1 else tuple(p) if p else None) if isinstance(p, tuple | list) else p
            for p in partitions
        )
        if self.unreduced or self.reduced:
            self._check_apart()

    def _check_apart(self) -> None:
        """Raise `ValueError` for an axis that is named in two ways."""
        if self.unreduced & self.reduced:
            raise ValueError(
                f"PartitionSpec: unreduced and reduced cannot overlap, got {set(self.unreduced)} "
                f"and {set(self.reduced)} at {user_source()}. Name each mesh axis in one of them."
            )
        cut = {name for names in self.names() for name in names}
        for what in ("unreduced", "reduced"):
            if cut & getattr(self, what):
                raise ValueError(
                    f"PartitionSpec: partitions and {what} cannot overlap, got "
                    f"{self._partitions} and {set(getattr(self, what))} at {user_source()}. An "
                    "axis cuts the array, or there are partial sums along it."
                )

    #: Stands for an axis of which the compiler decides.
    UNCONSTRAINED = Unconstrained()

    @property
    def partitions(self) -> tuple[Any, ...]:
        """What it says for each axis."""
        return self._partitions

    def update(self, **changes: Any) -> PartitionSpec:
        """Return the spec with other partitions, or names of partial sums."""
        given = {"unreduced": self.unreduced, "reduced": self.reduced} | changes
        return PartitionSpec(*given.pop("partitions", self._partitions), **given)

    def to_ct_spec(self) -> PartitionSpec:
        """Return the spec of cotangents: unreduced axes are reduced, and the other way round."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def names(self) -> tuple[tuple[Hashable, ...], ...]:
        """Return the mesh axes of each axis of the array."""
        return tuple(
            () if p is None or p is self.UNCONSTRAINED else p if isinstance(p, tuple) else (p,)
            for p in self._partitions
        )

    def index(self, value: Any) -> int:
        """Return the first axis of which it says this."""
        return self._partitions.index(value)

    def count(self, value: Any) -> int:
        """Count the axes of which it says this."""
        return self._partitions.count(value)

    def __iter__(self) -> Iterator[Any]:
        if self.unreduced or self.reduced:
            raise ValueError(
                f"PartitionSpec: to iterate over {self} at {user_source()} is dangerous: its "
                "unreduced and reduced axes would be lost. Iterate over its partitions."
            )
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __getitem__(self, k: Any) -> Any:
        return self._partitions[k]

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, PartitionSpec):
            return self.update(partitions=(*self._partitions, *other))
        return PartitionSpec(
            *self._partitions,
            *other._partitions,
            unreduced=self.unreduced | other.unreduced,
            reduced=self.reduced | other.reduced,
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PartitionSpec)
            and self._partitions == other._partitions
            and self.unreduced == other.unreduced
            and self.reduced == other.reduced
        )

    def __hash__(self) -> int:
        return hash((self._partitions, self.unreduced, self.reduced))

    def __reduce__(self) -> Any:
        return _spec, (self._partitions, self.unreduced, self.reduced)

    def __repr__(self) -> str:
        if not self.unreduced and not self.reduced:
            return f"P{self._partitions!r}"
        sums = (
            f"{what}={{{', '.join(sorted(map(repr, names)))}}}"
            for what in ("unreduced", "reduced")
            if (names := getattr(self, what))
        )
        return f"P({', '.join((*map(repr, self._partitions), *sums))})"


def _names_of(what: str, names: Any) -> frozenset[Hashable]:
    if not isinstance(names, Set):
        raise TypeError(
            f"PartitionSpec: {what} must be a set of names of mesh axes, got {names!r} at "
            f"{user_source()}. Write it in braces."
        )
    if None in names:
        raise ValueError(
            f"PartitionSpec: {what} cannot contain None, got {names!r} at {user_source()}. Name "
            "axes of the mesh."
        )
    return frozenset(names)


def _spec(partitions: Any, unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


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
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """The devices in their order, as Orbax asks."""
        return tuple(self._assignment())

    @property
    def platform(self) -> Platform | None:
        """What brings arrays to devices that are not of this process; None where they are."""
        return platform_of(self._assignment())

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
        """Name of the kind of memory; all are the host's."""
        return MEMORY_KINDS[0]

    @property
    def has_addressable_devices(self) -> bool:
        """Whether some devices belong to this process: they do."""
        return True

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether the same devices have the same parts of arrays of a rank, in the same memory."""
        mine, theirs = (
            (self._cells(ndim), self.memory_kind),
            (other._cells(ndim), other.memory_kind),
        )
        return self._assignment() == other._assignment() and mine == theirs

    def with_memory_kind(self, kind: str) -> Sharding:
        """Return the sharding with another name for the memory."""
        raise NotImplementedError

    def one_more_axis(self) -> Sharding:
        """Return how arrays with another axis in front, which is not cut, are cut."""
        return self

    def _cells(self, ndim: int) -> Any:
        return None

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
    memory_kind: str = MEMORY_KINDS[0]  # type: ignore[reportIncompatibleMethodOverride]

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """Return the sharding with another name for the memory."""
        return SingleDeviceSharding(self._device, checked_kind(kind))

    def _assignment(self) -> list[Device]:
        return [self._device]

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


class NamedSharding(Sharding):
    """An array cut along the axes of a mesh.

    Parameters
    ----------
    mesh : Mesh
    spec : PartitionSpec
    memory_kind : str, optional
        A name, kept as it is: all memory is the host's.

    Raises
    ------
    ValueError
        The spec names an axis that the mesh does not have, or one twice; or no kind of memory.
    """

    __slots__ = ("_hash", "_kind", "mesh", "spec")

    mesh: Mesh
    spec: PartitionSpec

    # A mesh without devices will do where types alone are spoken of.
    def __init__(self, mesh: Any, spec: PartitionSpec, *, memory_kind: str | None = None):
        check_spec(mesh, spec)
        self.mesh, self.spec = mesh, spec
        self._kind = checked_kind(memory_kind)
        self._hash = hash((mesh, spec, self._kind))

    @property
    def memory_kind(self) -> str:
        """Name of the kind of memory; all are the host's."""
        return self._kind

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """Return the sharding with another name for the memory."""
        return self.update(memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, NamedSharding)
            and (self.spec, self.mesh, self._kind) == (other.spec, other.mesh, other._kind)
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return _named, (self.mesh, self.spec, self._kind)

    @property
    def platform(self) -> Platform | None:
        """What brings arrays to devices that are not of this process; None where they are."""
        return self.mesh.platform

    def _assignment(self) -> list[Device]:
        return list(self.mesh.devices.flat)

    def _cells(self, ndim: int) -> Any:
        sizes = self.mesh.shape
        names = [tuple(n for n in ns if sizes[n] > 1) for ns in self.spec.names()]
        sums = [frozenset(n for n in ns if sizes[n] > 1) for ns in sums_of_spec(self.spec)]
        if not any(names) and not any(sums):
            return None
        # Where a device is along the axes that cut says which part it has.
        return self.mesh.shape_tuple, (*names, *((),) * (ndim - len(names))), *sums

    def one_more_axis(self) -> Sharding:
        """Return how arrays with another axis in front, which is not cut, are cut."""
        return self.update(spec=self.spec.update(partitions=(None, *self.spec.partitions)))

    def update(self, **changes: Any) -> NamedSharding:
        """Return the sharding with another mesh, spec or ``memory_kind``."""
        same = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self._kind}
        return NamedSharding(**(same | changes))

    @property
    def replicated_axes(self) -> frozenset[Hashable]:
        """Axes along which all devices have the same."""
        named = {n for names in self.spec.names() for n in names}
        named = named.union(*sums_of_spec(self.spec))
        return frozenset(n for n in self.mesh.axis_names if n not in named)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raise `ValueError` for a shape of too few axes."""
        check_rank(self.spec, tuple(aval_shape), "NamedSharding")

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has the whole array."""
        shape = self.mesh.shape
        named = (*self.spec.names(), self.spec.unreduced)
        return all(shape[n] == 1 for names in named for n in names)

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
        where = f", memory_kind={self._kind}" if isinstance(self.mesh, Mesh) else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec!r}{where})"


def _named(mesh: Any, spec: PartitionSpec, kind: str) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=kind)


def checked_kind(kind: str | None) -> str:
    """Return a kind of memory, the default one for None; raise `ValueError` for what is none."""
    if kind is not None and kind not in MEMORY_KINDS:
        raise ValueError(
            f"Could not find memory of kind {kind!r}, at {user_source()}: there are "
            f"{', '.join(MEMORY_KINDS)}."
        )
    return kind or MEMORY_KINDS[0]


def check_spec(mesh: Grid, spec: Any, what: str = "NamedSharding") -> None:
    """Raise unless a spec names axes of a mesh, each once."""
    if not isinstance(spec, PartitionSpec):
        raise TypeError(f"{what}: expected a PartitionSpec, got {spec!r} of type {type(spec)}.")
    if spec.unreduced or spec.reduced:
        _check_sums(mesh, spec, what)
    named = [n for names in spec.names() for n in names]
    for name in named:
        if name not in mesh.axis_names:
            raise ValueError(
                f"{what}: Resource axis: {name!r} of {spec} is not found in the mesh, whose axes "
                f"are {mesh.axis_names}, at {user_source()}."
            )
    if len(set(named)) != len(named):
        raise DuplicateSpecError(
            f"{what}: {spec} has duplicate entries: a mesh axis is named more than once, at "
            f"{user_source()}."
        )


def _check_sums(mesh: Grid, spec: PartitionSpec, what: str) -> None:
    types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    if getattr(mesh, "platform", None):
        raise NotImplementedError(
            f"{what}: partial sums are no types on workers (unreduced, reduced), got {spec} at "
            f"{user_source()}. Sum with psum, or let products say out_sharding."
        )
    for kind, names in zip(("Unreduced", "Reduced"), sums_of_spec(spec), strict=True):
        for name in names:
            if name not in types:
                raise ValueError(
                    f"{what}: {kind} axes {name!r} of {spec} are not found in the mesh, whose axes "
                    f"are {mesh.axis_names}, at {user_source()}."
                )
            if types[name] is not AxisType.Explicit:
                raise ValueError(
                    f"{what}: {kind} axes can only refer to mesh axes that are of type `Explicit`, "
                    f"got {spec} and {name!r} of type {types[name]}, at {user_source()}. Make the "
                    "mesh with axis_types=(AxisType.Explicit, ...)."
                )


def sums_of_spec(spec: PartitionSpec) -> Sums:
    """Return the axes along which a spec says there are partial sums, and there were."""
    return spec.unreduced, spec.reduced


class DuplicateSpecError(ValueError):
    """A spec names an axis of the mesh twice."""


class IndivisibleError(ValueError):
    """An axis of an array is no multiple of the devices along it."""


def check_rank(spec: PartitionSpec, shape: tuple[int, ...], what: str) -> None:
    """Raise unless an array has as many axes as a spec speaks of."""
    if len(spec) > len(shape):
        raise ValueError(
            f"{what}: {spec} is only valid for values of rank at least {len(spec)}, but was "
            f"applied to one of shape {shape}, at {user_source()}."
        )


def block_shape(
    shape: tuple[int, ...], mesh: Mesh, spec: PartitionSpec, what: str
) -> tuple[int, ...]:
    """Return the shape of one device's block; raise `ValueError` for one that does not divide."""
    sizes = mesh.shape
    check_rank(spec, shape, what)
    out = list(shape)
    for axis, names in enumerate(spec.names()):
        parts = prod(sizes[n] for n in names)
        if shape[axis] % parts:
            raise IndivisibleError(
                f"{what}: {spec} implies that array axis {axis} is partitioned {parts} times, but "
                f"the dimension size is {shape[axis]} (full shape: {shape}), which is not a "
                f"multiple, at {user_source()}."
            )
        out[axis] //= parts
    return tuple(out)


def place_of(sharding: Any, rank: int) -> Place | None:
    """Return what a sharding says of the type of arrays of a rank: axes of type Explicit alone."""
    if not isinstance(sharding, NamedSharding):
        return None
    explicit = set(sharding.mesh.explicit_axes)
    cuts: Cuts = tuple(tuple(n for n in ns if n in explicit) for ns in sharding.spec.names())
    sums = sums_of_spec(sharding.spec)
    return place(sharding.mesh.shape_tuple, (*cuts, *((),) * (rank - len(cuts))), frozenset(), sums)
