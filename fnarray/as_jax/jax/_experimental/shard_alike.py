"""``jax.experimental.shard_alike``: a wish that two trees be cut alike."""

from __future__ import annotations

from typing import Any

from fnarray import numpy as jnp
from fnarray import tree

__all__ = ["shard_alike"]


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two trees of one structure and shapes; how they are cut is the partitioner's.

    Raises
    ------
    ValueError
        They differ in structure, or leaves in shape.
    """
    if tree.structure(x) != tree.structure(y):
        raise ValueError(
            f"shard_alike: trees must be of one structure, got {tree.structure(x)} and "
            f"{tree.structure(y)}."
        )
    for a, b in zip(tree.leaves(x), tree.leaves(y), strict=True):
        if jnp.shape(a) != jnp.shape(b):
            raise ValueError(
                f"shard_alike: leaves must have one shape, got {jnp.shape(a)} and {jnp.shape(b)}."
            )
    return x, y
