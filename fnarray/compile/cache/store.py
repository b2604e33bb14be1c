"""What is compiled, by name: an entry of other versions is no entry."""

from __future__ import annotations

from ...core import store
from ...core.store import Info as Info
from ...core.store import clear as clear
from ...core.store import directory as directory
from ...core.store import info as info
from ...core.store import put_source as put_source
from .key import versions

__all__ = ["Info", "clear", "directory", "get", "info", "put", "put_source"]


def get(key: str) -> bytes | None:
    """Return what was put under `key`, or None where there is no intact entry."""
    return store.get(key, _mark())


def put(key: str, payload: bytes) -> None:
    """Keep `payload` under `key`; on failure warn once and keep nothing."""
    store.put(key, payload, _mark())


def _mark() -> str:
    return "; ".join(versions())
