"""``jax.experimental.array_serialization.serialization``: arrays written and read by tensorstore.

Flax's older checkpoints write by its manager; Orbax' managers derive from the same base.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fnarray import device_put


class BarrierTimeoutError(Exception):
    """Processes waited for each other in vain; raised by libraries alone."""


def get_tensorstore_spec(ckpt_path: str | os.PathLike[str], ocdbt: bool = False) -> dict[str, Any]:
    """Return what tells tensorstore where an array is.

    Parameters
    ----------
    ckpt_path : str or path
        Of the array; one that begins with ``gs://`` or ``s3://`` is in a bucket.
    ocdbt : bool, default False
        Keep the arrays of a folder in one store, where this one goes by the path's last part.
    """
    protocol, bucketed, path = str(ckpt_path).rpartition("://")
    path, name = os.path.split(os.path.normpath(path)) if ocdbt else (os.path.normpath(path), "")
    if bucketed:
        bucket, _, path = path.partition("/")
        driver = {"gs": "gcs", "s3": "s3"}[protocol]
        store = {"driver": driver, "bucket": bucket, "path": path}
    else:
        store = {"driver": "file", "path": path}
    if ocdbt:
        if not bucketed and not Path(path).is_absolute():
            raise ValueError(f"Checkpoint path should be absolute. Got {ckpt_path}")
        store = {"driver": "ocdbt", "base": store, "path": name}
    return {"driver": "zarr", "kvstore": store}


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


def _write(x: np.ndarray, spec: dict[str, Any]) -> None:
    ts = import_module("tensorstore")
    store = ts.open(spec, create=True, delete_existing=True, dtype=ts.dtype(x.dtype), shape=x.shape)
    store.result().write(x).result()


def _read(sharding: Any, spec: dict[str, Any], shape: Any, dtype: Any) -> Any:
    found = import_module("tensorstore").open(spec, open=True).result().read().result()
    if shape is not None and tuple(shape) != found.shape:  # cut, or padded with zeros, as JAX does
        both = tuple(slice(min(pair)) for pair in zip(shape, found.shape, strict=True))
        part, found = found[both], np.zeros(shape, found.dtype)
        found[both] = part
    return device_put(found if dtype is None else found.astype(dtype), sharding)


class GlobalAsyncCheckpointManager(GlobalAsyncCheckpointManagerBase):
    """Writes arrays in a thread, one set of them at a time; `tensorstore` must be installed.

    Parameters
    ----------
    timeout_secs : float
        How long processes wait for each other; there is one.
    """

    def __init__(self, timeout_secs: float = 300):
        del timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def check_for_errors(self) -> None:
        """Raise what writing raised, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Return when all is written, or raise what writing raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()

    def serialize(
        self,
        arrays: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        *,
        on_commit_callback: Callable[[], None] | None = None,
    ) -> None:
        """Write arrays where specs say; the callback is called when all of them are."""
        self.wait_until_finished()
        # Copies: what is donated afterwards is written over.
        pairs = [(np.array(x), s) for x, s in zip(arrays, tensorstore_specs, strict=True)]

        def write() -> None:
            try:
                for x, spec in pairs:
                    _write(x, spec)
                if on_commit_callback is not None:
                    on_commit_callback()
            except BaseException as error:  # raised where the program asks
                self._error = error

        self._thread = threading.Thread(target=write)
        self._thread.start()

    def serialize_with_paths(
        self,
        arrays: Sequence[Any],
        paths: Sequence[str],
        *,
        on_commit_callback: Callable[[], None] | None = None,
    ) -> None:
        """Write arrays to paths."""
        specs = [get_tensorstore_spec(path) for path in paths]
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback)

    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Any]:
        """Return the arrays that specs say, where shardings say, of other shapes if asked."""
        del concurrent_gb
        self.wait_until_finished()
        nothing = [None] * len(shardings)
        parts = (shardings, tensorstore_specs, global_shapes or nothing, dtypes or nothing)
        return [_read(*each) for each in zip(*parts, strict=True)]

    def deserialize_with_paths(
        self,
        shardings: Sequence[Any],
        paths: Sequence[str],
        global_shapes: Sequence[Any] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Any]:
        """Return the arrays at paths, as `deserialize` does."""
        specs = [get_tensorstore_spec(path) for path in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)
