"""``shard_map`` with the arguments it had in ``jax.experimental``."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ..api.shards import shard_map as _shard_map
from ..runtime.mesh import Mesh

__all__ = ["shard_map"]
__dir__ = __all__.copy


def shard_map(
    f: Callable[..., Any],
    mesh: Mesh,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset[Hashable] = frozenset(),
) -> Callable[..., Any]:
    """Return ``f`` mapped over blocks of its arguments; see `fnarray.shard_map`.

    Parameters
    ----------
    f : callable
    mesh : Mesh
    in_specs, out_specs : PartitionSpec, or trees of them
    check_rep : bool
        ``check_vma`` of today's.
    auto : set of names
        Axes that ``f`` does not run on.
    """
    names = frozenset(mesh.axis_names) - auto
    return _shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        axis_names=names,
        check_vma=check_rep,
    )
