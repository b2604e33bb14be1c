"""Meshes and shardings, as ``jax.sharding`` names them."""

from .api.resharding import auto_axes, explicit_axes, reshard
from .core.avals import ManualAxisType
from .runtime.ambient import (
    AbstractDevice,
    AbstractMesh,
    get_abstract_mesh,
    get_mesh,
    make_single_device_sharding,
    set_mesh,
    use_abstract_mesh,
)
from .runtime.mesh import AxisType, Mesh, make_mesh
from .runtime.spec import NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "ManualAxisType",
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "auto_axes",
    "explicit_axes",
    "get_abstract_mesh",
    "get_mesh",
    "make_mesh",
    "make_single_device_sharding",
    "reshard",
    "set_mesh",
    "use_abstract_mesh",
]
