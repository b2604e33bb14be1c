"""``jax.experimental.compilation_cache.compilation_cache``: the cache's folder."""

from __future__ import annotations

from pathlib import Path

from fnarray import config

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | Path) -> None:
    """Keep compiled programs in a folder."""
    config.update("cache_dir", str(path))


def reset_cache() -> None:
    """Keep compiled programs where they are kept by default. None is deleted."""
    config.update("cache_dir", None)
