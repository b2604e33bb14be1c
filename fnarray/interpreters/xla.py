"""What is left of ``jax.interpreters.xla``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.array import ArrayImpl
from ..core.lazy import absent

__all__ = ["apply_primitive", "canonicalize_dtype_handlers"]
__dir__ = __all__.copy

#: By type, how values are made arrays; kept for those who register here, and read by nobody.
canonicalize_dtype_handlers: dict[type, Callable[..., Any]] = {
    np.ndarray: np.asarray,
    ArrayImpl: lambda x: x,
}


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Apply a primitive, as its `bind` does."""
    return prim.bind(*args, **params)


__getattr__ = absent(__name__, {"there is no XLA: fnarray.devices() says what there is": "Backend"})
