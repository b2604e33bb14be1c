"""Meshes and shardings, as ``jax.sharding`` names them."""

from __future__ import annotations

from .runtime.mesh import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    make_mesh,
)

__all__ = [
    "Mesh",
    "NamedSharding",
    "PartitionSpec",
    "Sharding",
    "SingleDeviceSharding",
    "make_mesh",
]
