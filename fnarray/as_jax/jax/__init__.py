"""``jax`` itself: everything that ``fnarray`` has, and JAX's version."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import fnarray as _fnarray
from fnarray import jax_settings as _settings

from ..finder import home as _home
from ..finder import read_again as _read_again
from .version import __version__ as __version__
from .version import __version_info__ as __version_info__

# A program may set JAX's variables before it imports jax, and fnarray was imported before.
_read_again()

#: Settings that JAX gives a value for a block by a function of their name, and fnarray has not.
_STATES = (
    "allow_f16_reductions", "array_garbage_collection_guard", "auto_pcast", "debug_key_reuse",
    "jax2tf_associative_scan_reductions", "no_execution", "remove_size_one_mesh_axis_from_type",
    "softmax_custom_jvp", "thread_guard",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if _home(f"jax.{name}") is not None and (name == "_src" or not name.startswith("_")):
        return import_module(f"jax.{name}")
    if name in _STATES:
        return _settings.state(name)
    return getattr(_fnarray, name)


def __dir__() -> list[str]:
    return sorted(
        {*vars(_fnarray)["__all__"], *_STATES, "__version__", "__version_info__", "core", "version"}
    )
