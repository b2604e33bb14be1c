"""``jax`` itself: everything that ``fnarray`` has, and JAX's version."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import fnarray as _fnarray

from ..finder import home as _home
from .version import __version__ as __version__
from .version import __version_info__ as __version_info__


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if _home(f"jax.{name}") is not None and not name.startswith("_"):
        return import_module(f"jax.{name}")
    return getattr(_fnarray, name)


def __dir__() -> list[str]:
    return sorted(
        {*vars(_fnarray)["__all__"], "__version__", "__version_info__", "core", "version"}
    )
