"""What an array on workers came from, so that what is lost can be computed again.

A `Node` is one step: a program run, arrays put, parts made by a function. It holds how to do it
again (its `Recipe`), never results: those live on workers for as long as an array of the client
refers to them. A chain of nodes is cut where its results have a second copy (`Cluster.anchor`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import count
from math import prod
from typing import Any

import numpy as np

from .wire import dtype_named, packed

PENDING, DONE, FAILED, LOST = "pending", "done", "failed", "lost"
_numbers = count()


class Launch:
    """One attempt of a step, and what its members have answered.

    Attributes
    ----------
    status : str
        ``pending``, ``done``, ``failed`` (a member raised ``error``) or ``lost``.
    """

    def __init__(self, run: str, devices: Sequence[int]):
        self.run = run
        self.devices = tuple(devices)
        self.waiting = set(range(len(devices)))
        self.sent: dict[int, dict[int, int]] = {}
        self.replies: dict[int, dict[str, Any]] = {}
        self.status = PENDING
        self.error: BaseException | None = None
        self.why = ""
        self.over = threading.Event()
        self._then: list[Callable[[], None]] = []

    def end(self, status: str, error: BaseException | None = None, why: str = "") -> None:
        """Set how it ended, once."""
        if self.status == PENDING:
            self.status, self.error, self.why = status, error, why
            self.over.set()
            self._run_then()

    def whenever_over(self, call: Callable[[], None]) -> None:
        """Call a function once it is over, now if it is."""
        self._then.append(call)
        if self.over.is_set():
            self._run_then()

    def _run_then(self) -> None:
        while self._then:
            self._then.pop()()


class Recipe:
    """How a step is done: a message for each of its devices."""

    #: Results of other steps that it takes: pairs of a node and the number of a result.
    inputs: tuple[tuple[Node, int], ...] = ()
    #: Programs that its devices must have, by digest.
    programs: dict[str, bytes]

    def __init__(self) -> None:
        self.programs = {}

    def prepare(self, node: Node) -> None:
        """Get ready for a launch."""

    def message(self, node: Node, rank: int) -> dict[str, Any] | None:
        """Return what one device is to do; None for nothing."""
        raise NotImplementedError

    def restored(self, node: Node) -> None:
        """Note that a step was done again, after a loss."""


class Put(Recipe):
    """Arrays of the client, cut for each device."""

    def __init__(self, whole: np.ndarray, indices: Sequence[Any]):
        super().__init__()
        self.whole, self.indices = whole, indices

    def message(self, node: Node, rank: int) -> dict[str, Any]:
        """Return one device's block."""
        block = np.asarray(self.whole[self.indices[rank]])
        return {"op": "put", "key": node.key(0), "data": packed(block)}


class Make(Recipe):
    """Blocks that a pickled function makes on each device."""

    def __init__(self, funs: Sequence[bytes], shape: Sequence[int], dtype: Any):
        super().__init__()
        self.funs, self.shape = funs, tuple(shape)
        self.dtype = None if dtype is None else np.dtype(dtype).name

    def message(self, node: Node, rank: int) -> dict[str, Any]:
        """Return the function of one device."""
        fun = self.funs[rank]
        return {
            "op": "make", "key": node.key(0), "fun": fun, "shape": self.shape, "dtype": self.dtype
        }  # fmt: skip


class Run(Recipe):
    """A program on all devices of a mesh.

    Parameters
    ----------
    digest, data : str, bytes
        The program.
    name : str
    ins : sequence
        ``(node, number)`` or a small array of the client's, which all devices get.
    axes : sequence of (name, size)
        Of the mesh.
    """

    def __init__(self, digest: str, data: bytes, name: str, ins: Sequence[Any], axes: Any):
        super().__init__()
        self.programs = {digest: data}
        self.digest, self.name, self.ins, self.axes = digest, name, ins, axes
        self.inputs = tuple(x for x in ins if type(x) is tuple)

    def message(self, node: Node, rank: int) -> dict[str, Any]:
        """Return the call of one device."""
        ins = [x[0].key(x[1]) if type(x) is tuple else packed(x) for x in self.ins]
        outs = [node.key(k) if k in node.kept else None for k in range(node.count)]
        return {
            "op": "run", "program": self.digest, "name": self.name, "ins": ins, "outs": outs,
            "rank": rank, "axes": self.axes,
        }  # fmt: skip


class Move(Recipe):
    """Parts of blocks that devices hand to each other.

    Parameters
    ----------
    keys : sequence of str
        Of the arrays that parts are taken of.
    sends : sequence
        For each device: ``(to, number of the key, index)``.
    makes : sequence
        For each device: ``(number of the result, shape, dtype, [(source, index), ...])``.
    inputs : sequence of (node, number)
        Where the arrays come from.
    """

    def __init__(
        self, keys: Sequence[str], sends: Any, makes: Any, inputs: Sequence[tuple[Node, int]] = ()
    ):
        super().__init__()
        self.keys, self.sends, self.makes, self.inputs = keys, sends, makes, tuple(inputs)

    def message(self, node: Node, rank: int) -> dict[str, Any]:
        """Return what one device sends and receives."""
        return {
            "op": "move", "rank": rank,
            "sends": [(to, self.keys[k], index) for to, k, index in self.sends[rank]],
            "makes": [(node.key(k), *rest) for k, *rest in self.makes[rank]],
        }  # fmt: skip


class Node:
    """One step and its results.

    Parameters
    ----------
    cluster : Cluster
    devices : sequence of int
        Numbers of the devices that do it, by rank.
    recipe : Recipe
    blocks : sequence of (shape, dtype's name)
        Of each result on one device.
    """

    def __init__(
        self,
        cluster: Any,
        devices: Sequence[int],
        recipe: Recipe,
        blocks: Sequence[tuple[tuple[int, ...], str]],
    ):
        self.number = next(_numbers)
        self.cluster = cluster
        self.devices = tuple(devices)
        self.recipe = recipe
        self.count = len(blocks)
        self.blocks = tuple(blocks)
        self.depth = 1 + max((n.depth for n, _ in recipe.inputs), default=0)
        #: Results that workers keep, and how many arrays of the client refer to each.
        self.kept = set(range(self.count))
        self.users = [0] * self.count
        self.pinned = False
        self.attempts = 0
        self.launch: Launch | None = None
        self.epochs: tuple[int, ...] = ()

    def key(self, k: int) -> str:
        """Return the name of a result on workers."""
        return f"{self.number}:{k}"

    def nbytes(self, k: int) -> int:
        """Return the bytes of one device's block of a result."""
        shape, dtype = self.blocks[k]
        return prod(shape) * dtype_named(dtype).itemsize

    def available(self, k: int) -> bool:
        """Whether a result is there, or will be."""
        launch = self.launch
        return (
            launch is not None
            and launch.status in (PENDING, DONE)
            and k in self.kept
            and self.epochs == self.cluster.epochs(self.devices)
        )

    def drop(self, k: int) -> None:
        """Forget one reference of the client's to a result."""
        self.users[k] -= 1
        if not self.users[k] and not self.pinned:
            self.free([k])

    def free(self, ks: Sequence[int]) -> None:
        """Let workers free results."""
        ks = [k for k in ks if k in self.kept]
        self.kept.difference_update(ks)
        if ks:
            self.cluster.free(self.devices, [self.key(k) for k in ks])

    def __del__(self) -> None:
        if self.kept:
            self.free(list(self.kept))


class Handle:
    """A reference of the client's to one result; freed with it."""

    __slots__ = ("k", "node")

    def __init__(self, node: Node, k: int):
        self.node, self.k = node, k
        node.users[k] += 1

    def __del__(self) -> None:
        self.node.drop(self.k)
