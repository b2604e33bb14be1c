"""Messages: arrays as bytes, and streams of them over Dask's comms, in both directions."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Sequence
from typing import Any, cast

import cloudpickle
import numpy as np
from distributed.comm.core import CommClosedError
from distributed.protocol.serialize import to_serialize

from ..core.array import native
from ..core.dtypes import as_dtype

#: Arrays up to this many bytes are part of a message; larger ones are frames of their own.
INLINE = 16 * 1024
#: Arrays up to this many bytes are copied when they are queued; of larger ones there are views.
COPIED = 64 * 1024


def dtype_named(name: str) -> np.dtype:
    """Return a dtype by its name, those of ml_dtypes too."""
    return cast("np.dtype", as_dtype(name))


def packed(x: np.ndarray, inline: bool = False) -> dict[str, Any]:
    """Return an array as what comms carry: its bytes, whatever the dtype, and what they are.

    They are part of the message where they are few, or ``inline`` says so.
    """
    x = np.ascontiguousarray(x) if x.ndim else np.asarray(x)
    flat = x.reshape(-1).view(np.uint8)
    data = flat.tobytes() if inline or flat.nbytes <= INLINE else to_serialize(flat)
    return {"array": x.dtype.name, "shape": x.shape, "data": data}


def unpacked(message: dict[str, Any]) -> np.ndarray:
    """Return the array that `packed` was given."""
    dtype = dtype_named(message["array"])
    data = message["data"]
    flat = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    return native(flat.view(dtype).reshape(tuple(message["shape"])), dtype)


def encoded(x: Any, inline: bool = False) -> Any:
    """Return arrays, and dicts and lists of them by number, as what comms carry."""
    if isinstance(x, np.ndarray | np.generic):
        x = np.asarray(x)
        return packed(x.copy() if x.nbytes <= COPIED and not inline else x, inline)
    if isinstance(x, dict):
        return {"by": [[k, encoded(v, inline)] for k, v in x.items()]}
    return x


def decoded(x: Any) -> Any:
    """Return what `encoded` was given."""
    if isinstance(x, dict):
        if "array" in x:
            return unpacked(x)
        if "by" in x:
            return {k: decoded(v) for k, v in x["by"]}
    return x


def packed_error(error: BaseException) -> bytes:
    """Return an exception as bytes, its traceback as a note; another if it cannot be pickled."""
    text = "".join(traceback.format_exception(error))
    try:
        plain = cloudpickle.loads(cloudpickle.dumps(error))
        notes = list(getattr(error, "__notes__", ()))
    except Exception as why:  # whatever a user's class does: the text is what matters
        plain = RuntimeError(f"{type(error).__name__}: {error} (not picklable: {why})")
        notes = []
    plain.__notes__ = [*notes, f"On the worker:\n{text}"]
    return cloudpickle.dumps(plain)


class Stream:
    """One end of a comm: messages go out in order, together where they come fast.

    Parameters
    ----------
    comm : distributed.comm.Comm
    lost : callable
        Called on the event loop, once, when the comm is closed.
    """

    def __init__(self, comm: Any, lost: Callable[[], object] | None = None):
        self.comm = comm
        self.lost = lost
        self.closed = False
        self._queue: list[dict[str, Any]] = []
        self._more = asyncio.Event()
        self._flushed: list[Callable[[], None]] = []
        self._writer = asyncio.ensure_future(self._write())

    def send(self, *messages: dict[str, Any], flushed: Callable[[], None] | None = None) -> None:
        """Queue messages; on the event loop."""
        self._queue.extend(messages)
        if flushed is not None:
            self._flushed.append(flushed)
        self._more.set()

    async def _write(self) -> None:
        try:
            while True:
                await self._more.wait()
                self._more.clear()
                batch, self._queue = self._queue, []
                done, self._flushed = self._flushed, []
                if batch:
                    await self.comm.write(batch)
                for call in done:
                    call()
        except OSError:
            self.close()

    async def read(self, on: Callable[[dict[str, Any]], None]) -> None:
        """Call ``on`` with each message until the comm is closed."""
        try:
            while True:
                batch: Sequence[dict[str, Any]] = await self.comm.read()
                for message in batch:
                    on(message)
        except (OSError, CommClosedError):
            pass
        finally:
            self.close()

    def close(self) -> None:
        """End both directions."""
        if self.closed:
            return
        self.closed = True
        self._writer.cancel()
        self.comm.abort()
        for call in self._flushed:
            call()
        if self.lost is not None:
            self.lost()
