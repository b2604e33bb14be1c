"""The mesh that a program has about it, kinds of mesh axes, and meshes without devices."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from typing import Any

from ..config import config, override
from ..core.source import user_source
from .device import Device
from .mesh import EMPTY, AxisType, Grid, Mesh, current_mesh, enter, leave, types_of
from .spec import NamedSharding, PartitionSpec, SingleDeviceSharding

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "ManualAxisType",
    "abstract_of",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "set_mesh",
    "sharding_of_type",
    "use_abstract_mesh",
]


class ManualAxisType(enum.Enum):
    """How values differ along an axis that a program handles itself."""

    Varying = "varying"
    Unreduced = "unreduced"
    Reduced = "reduced"


class AbstractDevice:
    """A kind of device, of which there need be none here."""

    def __init__(self, device_kind: str, num_cores: int | None = None):
        self.device_kind, self.num_cores = device_kind, num_cores

    def _key(self) -> Any:
        return self.device_kind, self.num_cores

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"AbstractDevice(device_kind={self.device_kind}, num_cores={self.num_cores})"


class AbstractMesh(Grid):
    """Names and sizes of a mesh, without devices.

    Parameters
    ----------
    axis_sizes : sequence of int
    axis_names : sequence of hashable
    axis_types : sequence of AxisType, optional
        ``Auto`` by default.
    """

    __slots__ = ("_sizes", "abstract_device", "axis_names", "axis_types")

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence[Hashable],
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ):
        sizes, names = tuple(axis_sizes), tuple(axis_names)
        if len(sizes) != len(names) or len(set(names)) != len(names):
            raise ValueError(
                f"AbstractMesh: there must be a name for each axis, all different, got sizes "
                f"{sizes} and names {names}."
            )
        self._sizes, self.axis_names = sizes, names
        self.axis_types = types_of(axis_types, len(names))
        self.abstract_device = abstract_device

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes in order."""
        return self._sizes

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(
        self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None
    ) -> AbstractMesh:
        """Return the mesh with some of its parts replaced."""
        return AbstractMesh(
            self._sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def update_axis_types(self, name_to_type: dict[Hashable, AxisType]) -> AbstractMesh:
        """Return the mesh with other types of some axes."""
        return self.update(axis_types=self.types_changed(name_to_type))

    def _key(self) -> Any:
        return self._sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


_NONE = AbstractMesh((), ())


class set_mesh:  # noqa: N801 - JAX's name
    """Make a mesh the one about a program: from here on, or within ``with``.

    Parameters
    ----------
    mesh : Mesh

    Raises
    ------
    ValueError
        For what is no mesh of devices.
    """

    def __init__(self, mesh: Mesh):
        if not isinstance(mesh, Mesh):
            raise ValueError(
                f"set_mesh: expected a Mesh, got {mesh!r} of type {type(mesh)}, at {user_source()}."
            )
        self.mesh = mesh
        self.before = enter(mesh)

    def __enter__(self) -> Mesh:
        return self.mesh

    def __exit__(self, *exc: object) -> None:
        leave(self.before)


def make_single_device_sharding(device: Device, memory_kind: str | None = None) -> Any:
    """Return the sharding of arrays that are on one device."""
    return SingleDeviceSharding(device)


def get_mesh() -> Mesh:
    """Return the mesh about the program; an empty one where there is none."""
    return current_mesh() or EMPTY


def get_abstract_mesh() -> AbstractMesh:
    """Return names, sizes and types of the axes about the program; none where there is no mesh."""
    if config.abstract_mesh is not None:
        return config.abstract_mesh  # type: ignore[return-value]
    mesh = current_mesh()
    return _NONE if mesh is None else abstract_of(mesh)


def abstract_of(mesh: Mesh) -> AbstractMesh:
    """Return a mesh without its devices."""
    return AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)


def sharding_of_type(aval: Any) -> NamedSharding:
    """Return how arrays of a type are cut: on the mesh of the type, without devices."""
    mesh = get_abstract_mesh()
    known = aval.place.mesh if aval.place is not None else ()
    if known and mesh.shape_tuple != known:
        kind = AxisType.Explicit
        mesh = AbstractMesh([n for _, n in known], [name for name, _ in known], kind)
    return NamedSharding(mesh, PartitionSpec(*(names or None for names in aval.cuts)))


class use_abstract_mesh:  # noqa: N801 - JAX's name
    """Make an abstract mesh the one about what is traced within ``with``."""

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(
                f"use_abstract_mesh: expected an AbstractMesh, got {mesh!r} of type {type(mesh)}, "
                f"at {user_source()}."
            )
        self.mesh = mesh

    def __enter__(self) -> AbstractMesh:
        self.before = override("abstract_mesh", self.mesh)
        return self.mesh

    def __exit__(self, *exc: object) -> None:
        override("abstract_mesh", self.before)
