"""One program on several devices: the primitive that ``pmap`` and ``shard_map`` become.

A shard gets row ``[i, j, ...]`` of each operand that is laid out along mapped axes, and all of the
others. Shards run at the same time, each on a thread of its own, whose kernels are serial; where
they exchange values they meet (see ``threads.shards``).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ..core import hooks
from ..core.avals import ShapedArray, place
from ..core.axes import Axes
from ..core.forms import KernelRef, Library
from ..core.graph import ClosedGraph
from ..threads.shards import Coordinates, run_shards
from . import spmd_rules
from ._bodies import holding

__all__ = []

#: Its program runs on several devices, by whatever runs the program itself.
SHARDS = Library(KernelRef("shards", "run"), kernel=False)

Names = tuple[Hashable, ...]


def _aval(
    *avals: ShapedArray,
    jaxpr: ClosedGraph,
    mesh_axes: Axes,
    out_names: tuple[Names, ...],
    **_: Any,
) -> tuple[ShapedArray, ...]:
    sizes = dict(mesh_axes)
    return tuple(
        a.update(shape=(*(sizes[n] for n in names), *a.shape), place=_outside(a, names, sizes))
        for a, names in zip(jaxpr.out_avals, out_names, strict=True)
    )


def _outside(aval: ShapedArray, names: Names, sizes: dict[Hashable, int]) -> Any:
    """Return a result's place outside: it varies along axes of another program alone."""
    if aval.place is None:
        return None
    cuts = (*((),) * len(names), *aval.cuts)
    return place(aval.place.mesh, cuts, aval.vma - set(sizes))


def evaluate(
    *arrays: np.ndarray,
    jaxpr: ClosedGraph,
    mesh_axes: Axes,
    in_names: tuple[Names, ...],
    out_names: tuple[Names, ...],
    name: str,
    checked: bool = False,
    mesh: Any = None,
) -> tuple[np.ndarray, ...]:
    """Run a program on all devices; results are fresh, laid out along axes as ``out_names`` say.

    ``mesh`` is given where they are not of this process.
    """
    if mesh is not None:
        return tuple(mesh.platform.on_host(arrays, jaxpr, mesh, in_names, out_names, name))
    avals = _aval(jaxpr=jaxpr, mesh_axes=mesh_axes, out_names=out_names)
    outs = tuple(np.empty(a.shape, a.dtype) for a in avals)
    hooks.prepared(jaxpr)

    def work(at: Coordinates) -> None:
        # A row of a rank-1 array is a NumPy scalar, which is no buffer: hence asarray.
        rows = [
            np.asarray(x[tuple(at[n] for n in names)]) if names else x
            for x, names in zip(arrays, in_names, strict=True)
        ]
        results = hooks.compiled_call(jaxpr, rows)
        for out, names, result in zip(outs, out_names, results, strict=True):
            # Of a result that is the same for all along an axis, the first shard's counts.
            if all(i == 0 or n in names for n, i in at.items()):
                out[tuple(at[n] for n in names)] = result

    run_shards(work, mesh_axes, name)
    return outs


shard_map_p = holding(
    "shard_map",
    spmd_rules.FAMILY,
    aval=_aval,
    eval=evaluate,
    form=lambda ins, outs, **params: SHARDS,
    batch=spmd_rules.BATCH,
    quiet=True,
    print_params=lambda params: {k: v for k, v in params.items() if k != "checked" or v},
)
