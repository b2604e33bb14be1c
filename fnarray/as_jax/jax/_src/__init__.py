"""Of JAX's internals what widely used libraries fetch, by JAX's names for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...finder import home as _home


def __getattr__(name: str) -> Any:
    # As attributes without an import of their own: JAX has imported them all.
    if not name.startswith("__") and _home(f"jax._src.{name}") is not None:
        return import_module(f"jax._src.{name}")
    raise AttributeError(name)
