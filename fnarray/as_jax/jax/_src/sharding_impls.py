"""``jax._src.sharding_impls``: shardings, and how an argument that may be one is read."""

from __future__ import annotations

from typing import Any

from fnarray.api.resharding import named
from fnarray.sharding import *  # noqa: F403
from fnarray.sharding import NamedSharding

#: What is said of a sharding of which nothing is said: `jit` takes None for that.
UNSPECIFIED = None
UnspecifiedValue = type(None)


def canonicalize_sharding(
    sharding: Any, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """Return a sharding on the mesh about the program; None where there is nothing to cut over."""
    if sharding is None or (isinstance(sharding, NamedSharding) and sharding.mesh.empty):
        return None
    return named(api_name, sharding)
