"""What JAX keeps under this name."""

from __future__ import annotations

from ..control.callback import io_callback as io_callback
from . import checkify as checkify
from . import mesh_utils as mesh_utils
from . import shard_map as shard_map

__all__ = ["checkify", "io_callback", "mesh_utils", "shard_map"]
