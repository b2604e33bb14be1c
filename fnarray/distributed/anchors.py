"""Second copies of results: each device's block on the next device.

A step whose results have them can be forgotten: what one lost worker held comes back from its
neighbour, and nothing before it is computed again. So a loop of any length remembers, and repeats,
a bounded number of steps.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..errors import WorkerLost
from .lineage import DONE, Move, Node, Recipe


def anchor(node: Node) -> None:
    """Copy a step's results to the next devices; once that is done, its inputs are forgotten."""
    ks = sorted(node.kept)
    node.pinned = True
    node.depth = 0
    blocks = [node.blocks[k] for k in ks]
    backup = Node(node.cluster, node.devices, _shift(node, ks, range(len(node.devices))), blocks)
    recipe = Anchored(node, backup, ks)
    launch = node.cluster.launched(backup)
    # By the loop's thread, or by this one where it is over already.
    launch.whenever_over(lambda: recipe.take_over(node))


def _shift(node: Node, ks: Sequence[int], ranks: Collection[int]) -> Move:
    """Return a move of blocks, those of some ranks, each to the next device."""
    n = len(node.devices)
    sends = [[((r + 1) % n, j, ()) for j in range(len(ks))] if r in ranks else [] for r in range(n)]
    makes = [
        [(j, *node.blocks[k], [((r - 1) % n, ())]) for j, k in enumerate(ks)]
        if (r - 1) % n in ranks
        else []
        for r in range(n)
    ]
    return Move([node.key(k) for k in ks], sends, makes)


class Anchored(Recipe):
    """Results whose blocks are on two devices each: what is lost comes from the next device."""

    def __init__(self, node: Node, backup: Node, ks: Sequence[int]):
        super().__init__()
        self.backup, self.ks = backup, ks
        self.valid = node.epochs
        self._copies: tuple[int, ...] = ()
        self._lost: tuple[int, ...] = ()

    def take_over(self, node: Node) -> None:
        """Stand for how a step was done, if all copies are there."""
        launch = self.backup.launch
        if launch is not None and launch.status == DONE:
            self._copies = self.backup.epochs
            node.recipe = self

    def prepare(self, node: Node) -> None:
        """Find which blocks are lost.

        Raises
        ------
        WorkerLost
            Both copies of one are.
        """
        now, n = node.cluster.epochs(node.devices), len(node.devices)
        self._lost = tuple(r for r in range(n) if now[r] != self.valid[r])
        for r in self._lost:
            holder = (r + 1) % n
            if not self._copies or now[holder] != self._copies[holder]:
                raise WorkerLost(
                    f"devices dask:{node.devices[r]} and dask:{node.devices[holder]} were lost "
                    "before what they held had been copied anew. Arrays that need it cannot be "
                    "had: restore() the last checkpoint."
                )

    def message(self, node: Node, rank: int) -> dict[str, Any] | None:
        """Return what one device does: hand the one before it its block, or take its own back."""
        n = len(node.devices)
        before, after = (rank - 1) % n, (rank + 1) % n
        if rank not in self._lost and before not in self._lost:
            return None
        sends, makes = [], []
        for j, k in enumerate(self.ks):
            if before in self._lost:
                sends.append((before, self.backup.key(j), ()))
            if rank in self._lost:
                makes.append((node.key(k), *node.blocks[k], [(after, ())]))
        return {"op": "move", "rank": rank, "sends": sends, "makes": makes}

    def restored(self, node: Node) -> None:
        """Copy anew what lost devices held copies of."""
        self.valid = node.epochs
        n = len(node.devices)
        again = [(r - 1) % n for r in self._lost]
        self.backup.recipe = _shift(node, self.ks, again)
        launch = node.cluster.launched(self.backup)
        launch.whenever_over(lambda: self.take_over(node))
