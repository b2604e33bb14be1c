"""The mesh that a program has about it, kinds of mesh axes, and meshes without devices."""

from __future__ import annotations

import enum
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Any

from . import mesh as meshes
from .device import Device
from .mesh import Mesh, SingleDeviceSharding

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "ManualAxisType",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_single_device_sharding",
    "set_mesh",
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


class AbstractMesh:
    """Names and sizes of a mesh, without devices.

    Parameters
    ----------
    axis_sizes : sequence of int
    axis_names : sequence of hashable
    axis_types : sequence of AxisType, optional
        ``Auto`` by default.
    """

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
        self.axis_sizes, self.axis_names = sizes, names
        self.axis_types = meshes.types_of(axis_types, len(names))
        self.abstract_device = abstract_device

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """Sizes by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        """Pairs of names and sizes."""
        return tuple(self.shape.items())

    @property
    def size(self) -> int:
        """Number of devices that it stands for."""
        return prod(self.axis_sizes) if self.axis_sizes else 0

    @property
    def empty(self) -> bool:
        """Whether it has no axes."""
        return not self.axis_names

    def _key(self) -> Any:
        return self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        axes = ", ".join(f"{name!r}: {n}" for name, n in self.shape.items())
        return f"AbstractMesh({axes}, axis_types={meshes.types_text(self.axis_types)})"


class _Abstract(threading.local):
    entered: tuple[AbstractMesh, ...] = ()


_abstract = _Abstract()
_NONE = AbstractMesh((), ())


class set_mesh:  # noqa: N801 - JAX's name
    """Make a mesh the one about a program: from here on, or within ``with``.

    Parameters
    ----------
    mesh : Mesh

    Raises
    ------
    TypeError
        For what is no mesh of devices.
    """

    def __init__(self, mesh: Mesh):
        if not isinstance(mesh, Mesh):
            raise TypeError(f"set_mesh: expected a Mesh, got {mesh!r} of type {type(mesh)}.")
        self.mesh = mesh
        self.before = meshes.enter(mesh)

    def __enter__(self) -> Mesh:
        return self.mesh

    def __exit__(self, *exc: object) -> None:
        meshes.leave(self.before)


def make_single_device_sharding(device: Device, memory_kind: str | None = None) -> Any:
    """Return the sharding of arrays that are on one device."""
    return SingleDeviceSharding(device)


def get_mesh() -> Mesh:
    """Return the mesh about the program; an empty one where there is none."""
    return meshes.current_mesh() or meshes.EMPTY


def get_abstract_mesh() -> AbstractMesh:
    """Return names and sizes of the mesh about the program; none where there is none."""
    if _abstract.entered:
        return _abstract.entered[-1]
    mesh = meshes.current_mesh()
    return _NONE if mesh is None else abstract_of(mesh)


def abstract_of(mesh: Mesh) -> AbstractMesh:
    """Return a mesh without its devices."""
    return AbstractMesh(mesh.axis_sizes, mesh.axis_names, mesh.axis_types)


class use_abstract_mesh:  # noqa: N801 - JAX's name
    """Make an abstract mesh the one about what is traced within ``with``."""

    def __init__(self, mesh: AbstractMesh):
        self.mesh = mesh

    def __enter__(self) -> AbstractMesh:
        _abstract.entered += (self.mesh,)
        return self.mesh

    def __exit__(self, *exc: object) -> None:
        _abstract.entered = _abstract.entered[:-1]


def _as_is(fun: Callable[..., Any] | None = None, /, **options: Any) -> Callable[..., Any]:
    return (lambda fun: fun) if fun is None else fun


def auto_axes(
    fun: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Callable[..., Any]:
    """Return a function whose axes the compiler cuts: all devices share memory, so it is itself."""
    return _as_is(fun)


def explicit_axes(
    fun: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Callable[..., Any]:
    """Return a function whose axes are cut as its types say; values are those of the function."""
    return _as_is(fun)
