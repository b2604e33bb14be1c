"""Meshes: devices on grids whose axes have names."""

from __future__ import annotations

import enum
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..config import config, override
from ..core.source import user_source
from .device import Device, Platform, devices, platform_of


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


class Grid:
    """Axes with names, sizes and types: what meshes with devices and without have in common."""

    __slots__ = ()

    axis_names: tuple[Hashable, ...]
    axis_types: tuple[AxisType, ...]

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes in order."""
        raise NotImplementedError

    @property
    def platform(self) -> Platform | None:
        """What runs programs on devices that are not of this process; None where they are."""
        return None

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """Sizes by name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Hashable, int], ...]:
        """Pairs of names and sizes."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """Number of devices."""
        return prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether it has no axes."""
        return not self.axis_names

    def names_of(self, kind: AxisType) -> tuple[Hashable, ...]:
        """Return the axes of a type."""
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[Hashable, ...]:
        """Axes of type Auto."""
        return self.names_of(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Hashable, ...]:
        """Axes of type Explicit."""
        return self.names_of(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Hashable, ...]:
        """Axes of type Manual."""
        return self.names_of(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, all of type Auto."""
        return bool(self.axis_names) and self.auto_axes == self.axis_names

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, all of type Explicit."""
        return bool(self.axis_names) and self.explicit_axes == self.axis_names

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, all of type Manual."""
        return bool(self.axis_names) and self.manual_axes == self.axis_names

    @property
    def is_multi_process(self) -> bool:
        """Whether devices belong to several processes: they do not."""
        return False

    def types_changed(self, types: Any) -> tuple[AxisType, ...]:
        """Return the types of the axes, some given anew by name."""
        if unknown := set(types) - set(self.axis_names):
            raise ValueError(f"{type(self).__name__}: no axes {unknown}, of {self.axis_names}.")
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(types.get(name, kind) for name, kind in pairs)

    def __str__(self) -> str:
        axes = ", ".join(f"{name!r}: {n}" for name, n in self.shape_tuple)
        return f"{type(self).__name__}({axes or '()'}, axis_types={types_text(self.axis_types)})"

    __repr__ = __str__


class AbstractDevice:
    """A kind of device, of which there need be none here."""

    def __init__(self, device_kind: str, num_cores: int | None = None, platform: str = "cpu"):
        self.device_kind, self.num_cores, self.platform = device_kind, num_cores, platform

    def _key(self) -> Any:
        return self.device_kind, self.num_cores, self.platform

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractDevice) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def words(self) -> str:
        """Return what is known of it, as a mesh says it."""
        return (
            f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"
        )

    def __repr__(self) -> str:
        return f"AbstractDevice({self.words()})"


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
        self,
        axis_sizes: Any = None,
        axis_names: Any = None,
        axis_types: Any = None,
        **abstract_device: Any,
    ) -> AbstractMesh:
        """Return the mesh with some of its parts replaced."""
        return AbstractMesh(
            self._sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **abstract_device},
        )

    def update_axis_types(self, name_to_type: dict[Hashable, AxisType]) -> AbstractMesh:
        """Return the mesh with other types of some axes."""
        return self.update(axis_types=self.types_changed(name_to_type))

    def _key(self) -> Any:
        # Without the kind of device: types know axes alone.
        return self._sizes, self.axis_names, self.axis_types

    def __str__(self) -> str:
        if self.abstract_device is None:
            return super().__str__()
        return f"{super().__str__()[:-1]}, {self.abstract_device.words()})"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class Mesh(Grid):
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

    __slots__ = ("_hash", "axis_names", "axis_types", "devices")

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
        self.axis_names = names
        self.axis_types = types_of(axis_types, len(names))
        self._hash = hash(self._key())
        if names:
            _latest[self.shape_tuple] = self

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes in order."""
        return self.devices.shape

    @property
    def size(self) -> int:
        """Number of devices."""
        return self.devices.size

    @property
    def platform(self) -> Platform | None:
        """What runs programs on devices that are not of this process; None where they are."""
        return platform_of(self.devices.flat)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return list(self.devices.flat)

    @property
    def local_mesh(self) -> Mesh:
        """The part of this process: all."""
        return self

    @property
    def device_ids(self) -> np.ndarray:
        """Numbers of the devices, on the same grid."""
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The same axes, without devices."""
        if self.empty:
            return AbstractMesh((), ())
        first: Any = self.devices.flat[0]
        kind = AbstractDevice(first.device_kind, None, first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """Return the mesh with some of its parts replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> Mesh:
        _entered.append(enter(self))
        return self

    def __exit__(self, *exc: object) -> None:
        leave(_entered.pop())

    def _key(self) -> Any:
        return self.axis_names, self.devices.shape, tuple(self.devices.flat), self.axis_types

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return "Mesh()" if self.empty else super().__str__()

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
            f"axis_types={types_text(self.axis_types)})"
        )


#: The mesh made last of each shape: types know axes, and no devices.
_latest: dict[tuple[tuple[Hashable, int], ...], Mesh] = {}


class _Entered(threading.local):
    """What undoes the meshes entered by ``with mesh:`` in a thread."""

    def __init__(self) -> None:
        self.before: list[Any] = []

    def append(self, before: Any) -> None:
        """Note how to leave."""
        self.before.append(before)

    def pop(self) -> Any:
        """Return how to leave what was entered last."""
        return self.before.pop()


_entered = _Entered()


def current_mesh() -> Mesh | None:
    """Return the mesh about the program, or None."""
    return config.mesh  # type: ignore[return-value]


def mesh_for(axes: Sequence[tuple[Hashable, int]]) -> Mesh:
    """Return the mesh that a type's axes are of: the one about the program, or the latest."""
    axes = tuple(axes)
    mesh = current_mesh()
    if mesh is not None and mesh.shape_tuple == axes:
        return mesh
    return _latest[axes]


def enter(mesh: Mesh) -> Any:
    """Make a mesh the one about the program; return what `leave` takes."""
    return override("mesh", mesh), override("abstract_mesh", None)


def leave(before: Any) -> None:
    """Return to the mesh that was about the program."""
    mesh, abstract = before
    override("mesh", mesh)
    override("abstract_mesh", abstract)


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

    Parameters
    ----------
    axis_shapes : sequence of int
    axis_names : sequence of str
    axis_types : sequence of AxisType, optional
        ``Explicit`` by default: how arrays are cut is part of their types. Those of workers are
        of type ``Auto`` by default.
    devices : sequence of Device, optional

    Raises
    ------
    ValueError
        There are not that many.
    """
    pool = list(_all_devices() if devices is None else devices)
    if axis_types is None:
        axis_types = AxisType.Auto if platform_of(pool) else AxisType.Explicit
    count = prod(axis_shapes)
    if count > len(pool):
        more = "Set FNARRAY_NUM_CPU_DEVICES or config.num_cpu_devices."
        if platform_of(pool):  # of this kind there are as many as there are
            more = "Make it smaller, or give it more devices: more workers, or more GPUs."
        raise ValueError(
            f"make_mesh: Number of devices {len(pool)} must be >= the product of mesh_shape "
            f"{tuple(axis_shapes)}, at {user_source()}. {more}"
        )
    return Mesh(
        np.array(pool[:count], dtype=object).reshape(tuple(axis_shapes)), axis_names, axis_types
    )


_all_devices = devices
