"""Programs by key: which kernels to load and the driver that calls them, without a trace.

The key stands for a function's code, captured constants, argument types and transforms; the
versions and the package's own sources are added here, so that a record never outlives the
code that wrote it.
"""

from __future__ import annotations

import logging
import pickle
from typing import Any, Final

from . import store
from .key import program_name

__all__ = ["get", "put"]

_log: Final = logging.getLogger("fnarray.compile")


def get(key: str) -> Any | None:
    """Return the record put under `key`, or None."""
    payload = store.get(program_name(key))
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
    store.put(program_name(key), pickle.dumps(record, protocol=pickle.HIGHEST_PROTOCOL))
