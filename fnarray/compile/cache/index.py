"""Programs by key: which kernels to load and the driver that calls them, without a trace.

The key stands for a function's code, captured constants, argument types and transforms; the
versions and the package's own sources are added here, so that a record never outlives the
code that wrote it.
"""

from __future__ import annotations

import functools
import pickle
import time
from typing import Any, Final

from ...core.logs import Log
from . import key as keys
from . import store

__all__ = ["get", "put"]

_PACKAGES: Final = ("fnarray", "fnarray_kernels")
#: A file that changed so lately may change again within one tick of the file system's clock.
_SETTLED: Final = 2_000_000_000

_log: Final = Log("fnarray.compile")


def get(key: str) -> Any | None:
    """Return the record put under `key`, or None."""
    payload = store.get(keys.program_name(key, sources()))
    if payload is None:
        return None
    try:
        return pickle.loads(payload)
    except Exception as error:  # a class named in the record may be gone
        _log.debug("program %s cannot be read: %r", key, error)
        return None


def put(key: str, record: object) -> None:
    """Keep a picklable record under `key`.

    Raises
    ------
    pickle.PicklingError, TypeError, AttributeError
        The record cannot be pickled.
    """
    store.put(
        keys.program_name(key, sources()), pickle.dumps(record, protocol=pickle.HIGHEST_PROTOCOL)
    )


@functools.cache
def sources() -> str:
    """Return the hash of the package's sources: read, or known from an earlier reading of them."""
    status, latest = keys.status(*_PACKAGES)
    entry = f"f_{status[:32]}"
    known = store.get(entry)
    if known is not None:
        return known.decode()
    found = " ".join(map(keys.fingerprint, _PACKAGES))
    if time.time_ns() - latest > _SETTLED and keys.status(*_PACKAGES)[0] == status:
        store.put(entry, found.encode())
    return found
