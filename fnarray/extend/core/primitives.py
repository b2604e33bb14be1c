"""The operations that there are, as ``<name>_p``, named as in ``jax.extend.core.primitives``."""

from __future__ import annotations

from typing import Any

from ... import lax as _lax
from ...control import checkpoint as _checkpoint  # noqa: F401 - declares remat2
from ...ops.kit.registry import registry as _registry

#: Operations of JAX's names that have another here.
_OTHER = {
    "add_jaxvals_p": "add_any",
    "closed_call_p": "jit",
    "call_p": "jit",
    "remat_p": "remat2",
}


def __getattr__(name: str) -> Any:
    if name in _OTHER:
        return _registry[_OTHER[name]]
    if not name.endswith("_p"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_lax, name)


def __dir__() -> list[str]:
    return sorted({*_OTHER, *(n for n in dir(_lax) if n.endswith("_p"))})
