"""What several processes do together, for the one process that there is.

Each function does what it would do among processes of which there is one; nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..api.arrays import device_put
from ..core import tree
from ..runtime.spec import NamedSharding, PartitionSpec

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]
__dir__ = __all__.copy


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Return the values of the process that is the source, as NumPy arrays."""
    if is_source is False:
        raise ValueError("broadcast_one_to_all: the only process must be the source.")
    return tree.map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Return the values of all processes, stacked, or concatenated with ``tiled``; NumPy arrays."""

    def gather(x: Any) -> np.ndarray:
        x = np.asarray(x)
        return x if tiled and x.ndim else x[None]

    return tree.map(gather, in_tree)


def sync_global_devices(name: str) -> None:
    """Wait for the other processes, of which there are none."""


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise `AssertionError` unless all processes have the same values, as one always does."""
    broadcast_one_to_all(in_tree)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the processes have agreed to stop at a step: never, as nobody asks them to."""
    return False


@contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """Give a block the devices whose processes are alive: all, as there is one process."""
    yield list(devices)


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Return values that are this process's part as whole ones, cut over a mesh by their specs.

    Parameters
    ----------
    local_inputs : pytree
    global_mesh : Mesh
    pspecs : pytree of PartitionSpec
        One for each value, or for a subtree of them.
    """
    return device_put(local_inputs, _placed(global_mesh, pspecs))


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Return this process's part of values: all of them, cut as they are as whole ones."""
    return device_put(global_inputs, _placed(global_mesh, pspecs))


def _placed(mesh: Any, pspecs: Any) -> Any:
    def one(spec: Any) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec() if spec is None else spec)

    return tree.map(one, pspecs, is_leaf=lambda x: x is None or isinstance(x, PartitionSpec))
