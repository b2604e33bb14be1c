"""``jax._src.interpreters.pxla``."""

from __future__ import annotations

from typing import Any

#: By aval, what makes arrays of buffers; arrays have one buffer here, and nobody reads this.
global_result_handlers: dict[type, Any] = {}
