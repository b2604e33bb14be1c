"""Between arrays on workers and Dask's own: chunks stay on the workers, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from distributed import get_worker, wait

from ..core.array import asarray
from ..core.avals import ShapedArray
from ..runtime.spec import Sharding
from .arrays import WorkerArray, box_of
from .devices import cluster_of
from .lineage import Handle, Node, Recipe


class _Adopt(Recipe):
    """Blocks of a Dask array, computed where they are wanted; the array's graph is the recipe."""

    def __init__(self, x: Any, indices: Sequence[Any]):
        super().__init__()
        self.x, self.indices = x, indices
        self._futures: list[Any] = []

    def prepare(self, node: Node) -> None:
        """Let Dask compute the blocks."""
        cluster = node.cluster
        whole: dict[Any, Any] = {}
        futures = []
        for d, index in zip(node.devices, self.indices, strict=True):
            address = cluster.links[d].address
            box = box_of(index, self.x.shape)
            if box not in whole:
                whole[box] = cluster.client.compute(
                    self.x[index], workers=[address], allow_other_workers=True
                )
            futures.append(
                cluster.client.submit(
                    _contiguous,
                    whole[box],
                    workers=[address],
                    allow_other_workers=False,
                    pure=False,
                )
            )
        wait(futures)
        for future in futures:
            if future.status != "finished":
                future.result()  # raises what a task raised
        self._futures = futures

    def message(self, node: Node, rank: int) -> dict[str, Any]:
        """Return which of Dask's results one device takes over."""
        key = self._futures[rank].key
        return {"op": "adopt", "key": node.key(0), "future": key}


def _contiguous(x: Any) -> np.ndarray:
    return np.ascontiguousarray(np.asarray(x))


def from_dask(x: Any, sharding: Sharding) -> WorkerArray:
    """Return a Dask array's elements as an array on workers; none come to the client.

    Parameters
    ----------
    x : dask.array.Array
        Its chunks need not be cut as the result is.
    sharding : Sharding
        Of workers.

    Raises
    ------
    ValueError
        The sharding does not divide the array, or a size of it is not known.
    TypeError
        Its dtype has no counterpart.
    """
    shape = tuple(x.shape)
    if any(np.isnan(n) for n in shape):
        raise ValueError(
            f"from_dask: the sizes of {x!r} are not known. Call x.compute_chunk_sizes() first."
        )
    cluster = cluster_of(sharding._assignment(), "from_dask")
    aval = asarray(np.empty((0,), x.dtype)).aval
    x = x.astype(aval.dtype) if aval.dtype != x.dtype else x
    block = tuple(sharding.shard_shape(shape))
    indices = list(sharding.devices_indices_map(shape).values())
    recipe = _Adopt(x, indices)
    numbers = [d.id for d in sharding._assignment()]
    node = Node(cluster, numbers, recipe, [(block, aval.dtype.name)])
    handle = Handle(node, 0)
    cluster.start(node)
    cluster.wait(node)
    recipe._futures = []
    return WorkerArray(handle, ShapedArray(shape, aval.dtype), sharding, range(len(indices)))


def to_dask(x: WorkerArray) -> Any:
    """Return an array on workers as a Dask array, whose chunks are its blocks, where they are."""
    if not isinstance(x, WorkerArray):
        raise TypeError(
            f"to_dask: an array on workers is needed, got {type(x).__name__}. "
            "dask.array.from_array takes others."
        )
    x.block_until_ready()
    node = x.handle.node
    cluster = node.cluster
    blocks: dict[Any, Any] = {}
    futures: list[Any] = []
    places = x.placement.devices_indices_map(x.shape).values()
    for rank, index in zip(x.ranks, places, strict=True):
        box = box_of(index, x.shape)
        if box in blocks:
            continue
        address = cluster.links[node.devices[rank]].address
        future = cluster.client.submit(
            _lent, cluster.token, node.key(x.handle.k), workers=[address], pure=False
        )
        futures.append(future)
        shape = tuple(b - a for a, b in box)
        blocks[box] = da.from_delayed(delayed(future), shape, x.dtype)
    wait(futures)  # the array may be freed from here on
    return da.block(_nested(blocks, len(x.shape)))


def _lent(token: str, key: str) -> np.ndarray:
    """Return a block of this worker's, which Dask then keeps, too."""
    runtime: Any = get_worker().plugins["fnarray"]
    return runtime.sessions[token].store[key]


def _nested(blocks: dict[Any, Any], ndim: int) -> Any:
    """Return blocks by box as nested lists, one level for each axis."""
    if not ndim:
        (one,) = blocks.values()
        return one

    def level(boxes: list[Any], d: int) -> Any:
        if d == ndim:
            return blocks[boxes[0]]
        starts = sorted({box[d] for box in boxes})
        return [level([b for b in boxes if b[d] == s], d + 1) for s in starts]

    return level(list(blocks), 0)
