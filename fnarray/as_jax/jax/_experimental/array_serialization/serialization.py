"""``jax.experimental.array_serialization.serialization``: what managers of checkpoints derive from.

Arrays are written and read by libraries (Orbax), by tensorstore.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class BarrierTimeoutError(Exception):
    """Processes waited for each other in vain; raised by libraries alone."""


class GlobalAsyncCheckpointManagerBase(ABC):
    """What writes arrays while a program goes on."""

    @abstractmethod
    def check_for_errors(self) -> None:
        """Raise what writing raised."""

    @abstractmethod
    def wait_until_finished(self) -> None:
        """Return when all is written."""

    @abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Any) -> Any:
        """Write arrays."""

    @abstractmethod
    def deserialize(
        self, shardings: Any, tensorstore_specs: Any, global_shapes: Any = None, dtypes: Any = None
    ) -> Any:
        """Read arrays to where shardings say."""
