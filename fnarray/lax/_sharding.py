"""What programs say about where their arrays are."""

from __future__ import annotations

from typing import Any

from ..api.arrays import reshard

__all__ = ["with_sharding_constraint"]


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Return a tree of arrays cut as said. All devices share memory: values stay as they are.

    Parameters
    ----------
    x : pytree of arrays
    shardings : Sharding or PartitionSpec, or a tree of them
    """
    return reshard(x, shardings)
