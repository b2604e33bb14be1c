"""The mesh that a program has about it, kinds of mesh axes, and meshes without devices."""

from __future__ import annotations

from typing import Any

from ..config import config, override
from ..core.avals import NO_SUMS
from ..core.source import user_source
from ..core.trace import state
from .device import Device
from .mesh import (
    EMPTY,
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    current_mesh,
    enter,
    leave,
)
from .spec import NamedSharding, PartitionSpec, SingleDeviceSharding, checked_kind

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "set_mesh",
    "sharding_of_type",
    "use_abstract_mesh",
]


_NONE = AbstractMesh((), ())


class set_mesh:  # noqa: N801 - JAX's name
    """Make a mesh the one about a program: from here on, or within ``with``.

    Parameters
    ----------
    mesh : Mesh

    Raises
    ------
    ValueError
        For what is no mesh of devices, and where a function is traced.
    """

    def __init__(self, mesh: Mesh):
        if not isinstance(mesh, Mesh):
            raise ValueError(
                f"set_mesh: expected a Mesh, got {mesh!r} of type {type(mesh)}, at {user_source()}."
            )
        if state.trace is not None:
            raise ValueError(
                f"set_mesh can only be used outside of jit, and of what else traces: at "
                f"{user_source()}. Set the mesh around the call."
            )
        self.mesh = mesh
        self.before = enter(mesh)

    def __enter__(self) -> Mesh:
        return self.mesh

    def __exit__(self, *exc: object) -> None:
        leave(self.before)


def make_single_device_sharding(device: Device, memory_kind: str | None = None) -> Any:
    """Return the sharding of arrays that are on one device."""
    return SingleDeviceSharding(device, checked_kind(memory_kind))


def get_mesh() -> Mesh:
    """Return the mesh about the program; an empty one where there is none."""
    return current_mesh() or EMPTY


def get_abstract_mesh() -> AbstractMesh:
    """Return names, sizes and types of the axes about the program; none where there is no mesh."""
    if config.abstract_mesh is not None:
        return config.abstract_mesh  # type: ignore[return-value]
    mesh = current_mesh()
    return _NONE if mesh is None else mesh.abstract_mesh


def sharding_of_type(aval: Any) -> NamedSharding:
    """Return how arrays of a type are cut: on the mesh of the type, without devices."""
    mesh = get_abstract_mesh()
    known = aval.place.mesh if aval.place is not None else ()
    if known and mesh.shape_tuple != known:
        kind = AxisType.Explicit
        mesh = AbstractMesh([n for _, n in known], [name for name, _ in known], kind)
    # In a program on devices sums are no matter of shardings: `manual_axis_type` says them.
    unreduced, reduced = aval.sums if known else NO_SUMS
    cuts = (names or None for names in aval.cuts)
    return NamedSharding(mesh, PartitionSpec(*cuts, unreduced=unreduced, reduced=reduced))


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
