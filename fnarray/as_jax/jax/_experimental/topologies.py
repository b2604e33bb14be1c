"""``jax.experimental.topologies``: the devices that are attached; others are described by XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....experimental.mesh_utils import create_device_mesh
from ....runtime.device import Device, devices
from ....runtime.mesh import Mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """Devices that programs are compiled for."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = list(devices)


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Return the devices of this machine."""
    return TopologyDescription(devices(platform))


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> TopologyDescription:
    """Raise an error: programs are compiled for the machine they run on.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        f"topology not implemented for {platform or 'cpu'}: got {topology_name!r}, and fnarray "
        "compiles for the devices of this machine. Use get_attached_topology()."
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: Sequence[str],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """Return a mesh of a topology's devices, in their order: none is nearer than others."""
    return Mesh(create_device_mesh(mesh_shape, topo.devices), axis_names)
