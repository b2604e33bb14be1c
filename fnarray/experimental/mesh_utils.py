"""Grids of devices, as ``jax.experimental.mesh_utils`` names them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..runtime.device import Device
from ..runtime.device import devices as all_devices
from ..runtime.mesh import make_mesh

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]
__dir__ = __all__.copy


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return an array of devices of a shape: of all, in their order, by default.

    Parameters
    ----------
    mesh_shape : sequence of int
    devices : sequence of Device, optional
    contiguous_submeshes, allow_split_physical_axes : bool
        Accepted for compatibility: no device here is nearer to some than to others.

    Raises
    ------
    ValueError
        There are more or fewer of them.
    """
    pool = list(all_devices() if devices is None else devices)
    shape = tuple(mesh_shape)
    if prod(shape) != len(pool):
        raise ValueError(
            f"create_device_mesh: Number of devices {len(pool)} must equal the product of "
            f"mesh_shape {shape}, which is {prod(shape)}. Pass devices=jax.devices()"
            f"[:{prod(shape)}], or use jax.make_mesh, which takes the first ones."
        )
    return make_mesh(shape, [str(k) for k in range(len(shape))], devices=pool).devices


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return an array of devices whose blocks are granules: devices that are near each other.

    Parameters
    ----------
    mesh_shape : sequence of int
        The shape of a granule's block.
    dcn_mesh_shape : sequence of int
        How many granules there are along each axis.
    devices : sequence of Device, optional
        All, by default.
    process_is_granule : bool
        Whether the devices of a process are a granule; else those of a slice, which no device
        here has.
    should_sort_granules_by_key : bool
        Whether granules are in the order of their numbers, or in that of the devices.
    allow_split_physical_axes : bool
        Accepted for compatibility.

    Raises
    ------
    ValueError
        The devices have no slices, or there are not that many granules.
    """
    pool = list(all_devices() if devices is None else devices)
    key = "process_index" if process_is_granule else "slice_index"
    granules: dict[int, list[Device]] = {}
    for device in pool:
        if not hasattr(device, key):
            raise ValueError(
                f"create_hybrid_device_mesh: Device {device} does not have attribute {key}. Pass "
                "process_is_granule=True, or use create_device_mesh."
            )
        granules.setdefault(getattr(device, key), []).append(device)
    count = prod(dcn_mesh_shape)
    if len(granules) != count:
        raise ValueError(
            f"create_hybrid_device_mesh: Number of slices {len(granules)} must equal the product "
            f"of dcn_mesh_shape {tuple(dcn_mesh_shape)}, which is {count}."
        )
    order = sorted(granules) if should_sort_granules_by_key else list(granules)
    blocks = np.empty(count, dtype=object)
    for k, number in enumerate(order):
        blocks[k] = create_device_mesh(mesh_shape, granules[number])
    return np.block(blocks.reshape(tuple(dcn_mesh_shape)).tolist())
