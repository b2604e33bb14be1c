"""Grids of devices, as ``jax.experimental.mesh_utils`` names them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..runtime.device import Device
from ..runtime.mesh import make_mesh

__all__ = ["create_device_mesh"]
__dir__ = __all__.copy


def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Device] | None = None
) -> np.ndarray:
    """Return an array of devices of a shape, by default of the first ones.

    Raises
    ------
    ValueError
        There are not that many.
    """
    names = [str(k) for k in range(len(mesh_shape))]
    return make_mesh(mesh_shape, names, devices=devices).devices
